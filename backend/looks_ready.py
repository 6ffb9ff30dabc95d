"""Imported by the process that looks are forked from (see `apart`): what looks load and compile is there once."""

import numba  # noqa: F401
import pandas  # noqa: F401
import pyarrow as pa

from streamjoin.warming import load_join_kernels, load_text_kernels

# Arrow's own allocator takes a GiB of addresses at once, which the kernel counts as if it were in use.
pa.set_memory_pool(pa.system_memory_pool())
load_join_kernels()
load_text_kernels()
