"""The equi join at a million tuples a batch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from benchmarks.equi import Workload, own_rows, run_workload
from benchmarks.scale import Scale
from benchmarks.systems import Rates

TARGETS = {"spark-default": 10.0, "flink-heap-1s": 8.0}
EXPECTED_S = 1800
FULL = Workload(
    files=12, rows_per_file=524_288, keys=4_000_000, span_ms_per_file=524_288, window_s=4194, first_file=1,
    warmup_rows=1 << 20, full_rows=8 << 20, memory_mb=10_240, limit_s=420,
)  # fmt: skip
QUICK = Workload(
    files=4, rows_per_file=8192, keys=8192, span_ms_per_file=8192, window_s=16, first_file=1,
    warmup_rows=16_384, full_rows=32_768, memory_mb=1024, limit_s=180,
)  # fmt: skip


def run(scale: Scale) -> dict[str, Any]:
    """See `run_workload`. One batch is a file of each stream; the warm-up is the first one."""
    return run_workload(scale, "equi_large", scale.pick(FULL, QUICK))


def own(scale: Scale) -> AbstractContextManager[Callable[[Scale], Rates]]:
    """See `own_rows`."""
    return own_rows(scale, "equi_large", scale.pick(FULL, QUICK))
