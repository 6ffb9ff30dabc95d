"""The index alone, without Spark: probes a second of one segment, and the rates of sorting and hashing, on one core."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.scale import Scale
from streamjoin.index import kernels
from streamjoin.index.layout import layout_of
from streamjoin.index.segment import ProbeCounts, Segment, SegmentInfo, build
from streamjoin.index.view import CELL, KEY
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.values import Columns
from streamjoin.plan.window import R
from streamjoin.query import plan_query

EXPECTED_S = 60
REPEATS = 5
BAND = "ABS(r.x - s.x) <= 10 AND ABS(r.y - s.y) <= 10"
CASES = {
    "hash": ("r.k = s.k", "auto", 1),
    "tree of x": ("ABS(r.x - s.x) <= 10", "auto", 64),
    "grid": (BAND, "auto", 1),
    "scan": (BAND, "scan", 1 << 13),
}
"""Index -> (predicate, wanted index, how many times fewer probes than for the fastest)."""


def run(scale: Scale) -> dict[str, Any]:
    """`probes`: by index, probes and candidate pairs a second; `kernels`: rows a second. The best of some repeats."""
    rows = scale.pick(1 << 20, 1 << 14)
    probes = scale.pick(1 << 18, 1 << 13)
    rng = np.random.default_rng(1)
    stored, probing = _rows(rng, rows), _rows(rng, probes)
    return {
        "segment_rows": rows,
        "probes": {
            name: _probe(stored, probing.slice(0, max(probes // fewer, 1)), predicate, wanted)
            for name, (predicate, wanted, fewer) in CASES.items()
        },
        "kernels": _kernels(rng, rows),
    }


def _rows(rng: np.random.Generator, rows: int) -> pa.RecordBatch:
    """Keys as many as rows in a segment of 2^20; x and y as in SplitJoin's benchmark."""
    return pa.record_batch(
        {
            "ts": pa.array(np.arange(rows, dtype=np.int64)).cast(pa.timestamp("us", "UTC")),
            "k": pa.array(rng.integers(0, 1 << 20, rows)),
            "x": pa.array(rng.integers(1, 10_001, rows, dtype=np.int32)),
            "y": pa.array(rng.uniform(1, 10_000, rows).astype(np.float32)),
        }
    )


def _probe(stored: pa.RecordBatch, probing: pa.RecordBatch, predicate: str, wanted: str) -> dict[str, Any]:
    schemas = {name: StreamSchema(name, stored.schema, "ts") for name in ("r", "s")}
    plan = plan_query(f"SELECT ONLINE r.k AS rk, s.k AS sk FROM r, s WHERE {predicate}", schemas, index=wanted)
    assert isinstance(plan, JoinPlan)
    layout = layout_of(plan, R)
    nothing = np.zeros(0, np.int64)
    columns: Columns = {("r", name): stored.column(name) for name in stored.schema.names}

    def built() -> tuple[pa.RecordBatch, SegmentInfo]:
        order, cells, keys = layout.arrange(columns, nothing, stored.num_rows)
        kept = stored.select(["k"]).take(pa.array(order))
        return build(kept, stored.column("ts").cast(pa.int64()).to_numpy()[order], None, {CELL: cells, KEY: keys})

    built_s = _best_s(built)
    batch, info = built()
    segment = Segment.attach(batch, info, (layout,))
    counts = ProbeCounts()
    pairs = 0

    def probe() -> None:
        nonlocal counts, pairs
        counts, pairs = ProbeCounts(), 0
        asked: Columns = {("s", name): probing.column(name) for name in probing.schema.names}
        probes = layout.probes(asked, nothing, probing.num_rows)
        pairs = sum(found.size for found, _ in segment.probe(0, probes, layout, counts))

    seconds = _best_s(probe)
    return {
        "kind": str(layout), "probes": probing.num_rows, "seconds": seconds,
        "probes_per_second": probing.num_rows / seconds,
        "candidates": pairs, "compared": counts.comparisons, "compared_per_second": counts.comparisons / seconds,
        "build_rows_per_second": stored.num_rows / built_s,
    }  # fmt: skip


def _kernels(rng: np.random.Generator, rows: int) -> dict[str, float]:
    """Rows a second of the loops that every batch goes through."""
    order = np.arange(rows, dtype=np.int64)
    narrow, wide = rng.integers(0, 1 << 22, rows), rng.integers(-(1 << 62), 1 << 62, rows)
    letters = rng.integers(97, 123, rows * 20, dtype=np.uint8)
    offsets = np.arange(0, rows * 20 + 1, 20, dtype=np.int64)
    calls: dict[str, Callable[[], object]] = {
        "sort, keys below 2^22": lambda: kernels.radix_order(narrow, order),
        "sort, keys of 63 bits": lambda: kernels.radix_order(wide, order),
        "hash of int64": lambda: kernels.mix(wide),
        "hash of 20 characters": lambda: kernels.hash_bytes(offsets, letters),
    }
    return {name: rows / _best_s(call) for name, call in calls.items()}


def _best_s(call: Callable[[], object]) -> float:
    """The shortest of some runs: what disturbs a run only ever makes it longer. The first compiles and is not timed."""
    call()
    best_s = float("inf")
    for _ in range(REPEATS):
        begun_s = time.perf_counter()
        call()
        best_s = min(best_s, time.perf_counter() - begun_s)
    return best_s
