"""Imported by the process from which drivers and readers are forked: each would load the compiled kernels otherwise.

Nothing here may start Arrow's threads, for a process that has some should not be forked: no compression, for one.
"""

import numpy as np

from streamjoin.index.kernels import radix_order
from streamjoin.results.block import hash_sum

from . import driver, watch  # noqa: F401
from .job import CASES, unit_rows

rows = unit_rows(0, 1, 2)
hash_sum(rows)
for case in CASES.values():
    codes = case.code.codes(rows.column("k"))
    radix_order(case.code.buckets_of(codes), radix_order(codes, np.arange(codes.size)))
