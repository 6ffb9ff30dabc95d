"""The equi join at 131,072 tuples a batch, with as many live tuples as in `equi_large`.

The first file of each stream fills the window in one batch, for all systems alike; it and the next three batches are
the warm-up, so that small batches alone are measured. Spark with RocksDB needs more than eight minutes for that first
batch, so it is in `equi_large` only.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from benchmarks.equi import Workload, own_rows, run_workload
from benchmarks.scale import Scale
from benchmarks.systems import Rates

TARGETS = {"spark-default": 4.0}
EXPECTED_S = 1000
FULL = Workload(
    files=34, rows_per_file=65_536, keys=4_000_000, span_ms_per_file=65_536, window_s=4194, first_file=64,
    warmup_rows=2 * 65_536 * 67, full_rows=2 * 65_536 * 67, memory_mb=10_240, limit_s=300, slow_ones=False,
)  # fmt: skip
QUICK = Workload(
    files=8, rows_per_file=2048, keys=8192, span_ms_per_file=2048, window_s=8, first_file=4,
    warmup_rows=2 * 2048 * 7, full_rows=2 * 2048 * 7, memory_mb=1024, limit_s=180,
)  # fmt: skip


def run(scale: Scale) -> dict[str, Any]:
    """See `run_workload`."""
    return run_workload(scale, "equi_small", scale.pick(FULL, QUICK))


def own(scale: Scale) -> AbstractContextManager[Callable[[Scale], Rates]]:
    """See `own_rows`."""
    return own_rows(scale, "equi_small", scale.pick(FULL, QUICK))
