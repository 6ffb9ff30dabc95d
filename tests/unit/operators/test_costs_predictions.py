"""What the formulas predict of SplitJoin and of the chain, and of whole inputs, against what running operators did."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.engine.operator import Operator
from streamjoin.explain.compare.prediction import NOT_ROUTED, mean_stored, predicted
from streamjoin.operators import registry
from streamjoin.operators.biclique import Biclique, Routing
from streamjoin.operators.costs import Latency, StreamStatistics, UnitCosts
from streamjoin.operators.costs.handshake import best_block, handshake, target
from streamjoin.operators.costs.splitjoin import splitjoin
from streamjoin.operators.matrix import Matrix
from streamjoin.operators.splitjoin import SplitJoin
from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query
from tests.conformance.local import LocalRun

R = StreamStatistics(tuple_bytes=10, rate_per_s=200, stored=2_000)
S = StreamStatistics(tuple_bytes=20, rate_per_s=100, stored=500)


# ---- one operator -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cores", [1, 2, 28])
def test_every_core_receives_every_tuple_and_one_stores_it(cores: int) -> None:
    found = splitjoin(R, S, cores, 2, 2)
    assert found.replication == cores
    assert found.memory_bytes == 10 * 2_000 + 20 * 500, "whatever the number of cores"
    assert found.comparisons_per_s == 200 * 500 + 100 * 2_000
    assert found.busiest_bytes_per_s == 2_000 + 2_000
    assert found.bytes_per_s == cores * found.busiest_bytes_per_s


def test_splitjoin_has_a_latency_where_steps_have_been_measured() -> None:
    assert splitjoin(R, S, 8, 2, 2).latency is None
    costs = UnitCosts(link_us=3, probe_us=50)
    assert splitjoin(R, S, 8, 2, 2, costs).latency == Latency(processing_us=3 * 3 + 50 + 3 * 3, visiting_us=9 + 25)
    # On Spark a shuffle is one hop to all cores, and one core needs no tree.
    assert _latency(SplitJoin(8), costs) == Latency(3 + 50 + 3, 3 + 25)
    assert _latency(SplitJoin(1), costs) == Latency(50, 25)
    assert _latency(Matrix(2, 2), costs) is None


def _latency(operator: Operator, costs: UnitCosts) -> Latency | None:
    found = registry.predict(operator, R, S, 0.0, costs)
    assert found is not None
    return found.latency


def test_a_tuple_of_the_chain_is_in_one_worker_and_passes_them_all() -> None:
    found = handshake(R, S, 4)
    assert found.memory_bytes == 10 * 2_000 + 20 * 500
    assert (found.replication, found.bytes_per_s) == (4, 4 * 4_000)
    assert found.comparisons_per_s == 200 * 500 + 100 * 2_000


def test_the_chains_block_is_the_papers_example_with_its_cap() -> None:
    block = handshake(R, S, 4).block
    assert block is not None
    # 200 tuples a second and 10 s: (16) says 1000, twice a worker's fair share of 500; half of the share is the cap.
    assert best_block(200, 10, 4, 0.5, 1.0) == 1_000
    assert block.tuples == (250, 62)
    assert block.target == (target(250, 200, 10, 4, 0.5, 1, 1), target(62, 100, 5, 4, 0.5, 1, 1))
    assert (block.weight, block.cost_serialization, block.cost_transmission) == (0.5, 1.0, 1.0)


def test_a_stream_that_brings_nothing_has_no_block() -> None:
    assert handshake(R, StreamStatistics(20, 0, 0), 4).block is None


# ---- a whole input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("full", "tuples", "mean"), [(10, 100, 9.5), (100, 100, 50), (math.inf, 100, 50), (0, 9, 0)])
def test_windows_fill_up_from_nothing(full: float, tuples: int, mean: float) -> None:
    assert mean_stored(full, tuples) == mean
    # The same by counting: before its arrival, each tuple finds as many as came before it, or a window full.
    if tuples == 100:
        counted = sum(min(full, at + 0.5) for at in range(tuples)) / tuples
        assert counted == pytest.approx(mean, rel=0.01)


def tuples(**counts: int) -> dict[str, Any]:
    """The part of a report that says how many tuples came, and went to units."""
    return {"tuples_in": counts, **{what: dict.fromkeys(counts, 0) for what in NOT_ROUTED}}


COLUMNS = pa.schema([("ts", pa.timestamp("us", tz="UTC")), ("k", pa.int64())])
COUNTS = {"r": 2_000, "s": 1_000}
BATCHES = 12
SPAN_US = 300_000
OPERATORS = [Biclique(2, 2, Routing.HASH), Matrix(1, 2), SplitJoin(2)]


def played(operator: Operator, window: str, folder: Path, keep: str = "") -> tuple[LocalRun, dict[str, Any]]:
    """A run in batches that are short beside the window, by nested loop, and its report as far as it matters here."""
    streams = {name: StreamSchema(name, COLUMNS, "ts") for name in "rs"}
    where = f"r.k = s.k {keep}" if operator.name == "biclique" else f"r.k < s.k - 990 {keep}"
    plan = plan_query(f"SELECT ONLINE r.k FROM r, s WHERE {where} {window}", streams, index="scan")
    run = LocalRun(plan, operator, folder, slots=2)
    rng = np.random.default_rng(7)
    parts = {name: _batches(count, rng) for name, count in COUNTS.items()}
    for number in range(BATCHES):
        run.batch(([parts["r"][number]], [parts["s"][number]]))
    reports = [report for batch in run.reports for report in batch]
    stored = [sum(report.stored_bytes for report in batch) for batch in run.reports]
    return run, {
        **tuples(**COUNTS),
        "dropped_by_selection": {"r": run.counts.get("dropped_by_selection", 0), "s": 0},
        "comparisons": sum(report.comparisons for report in reports),
        "replication": sum(sum(report.received.values()) for report in reports) / sum(COUNTS.values()),
        "state_rows_max": max(sum(sum(report.stored_rows) for report in batch) for batch in run.reports),
        "state_bytes_max": max(stored),
    }


def _batches(count: int, rng: np.random.Generator) -> list[pa.RecordBatch]:
    ts_us = np.linspace(0, SPAN_US - 1, count).astype(np.int64)
    keys = rng.integers(0, 1_000, count)
    return [
        pa.RecordBatch.from_arrays([pa.array(ts).view(COLUMNS.field("ts").type), pa.array(k)], schema=COLUMNS)
        for ts, k in zip(np.array_split(ts_us, BATCHES), np.array_split(keys, BATCHES), strict=True)
    ]


def _sample(stored_s: float) -> tuple[StreamStatistics, StreamStatistics]:
    """Of streams whose tuples stay for so many seconds."""
    rates = [count / (SPAN_US / 1e6) for count in COUNTS.values()]
    r, s = (StreamStatistics(16, rate, rate * stored_s) for rate in rates)
    return r, s


@pytest.mark.parametrize("operator", [found for found in OPERATORS if found.name != "biclique"], ids=str)
def test_over_full_history_a_nested_loop_compares_r_times_s(operator: Operator, tmp_path: Path) -> None:
    _, figures = played(operator, "", tmp_path)
    found = predicted(operator, _sample(math.inf), figures)
    assert found is not None
    assert figures["comparisons"] == found["comparisons"] == COUNTS["r"] * COUNTS["s"]


@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_replication_and_memory_of_an_input_are_what_was_measured(operator: Operator, tmp_path: Path) -> None:
    _, figures = played(operator, "", tmp_path, "AND r.k < 300")
    sample = _sample(math.inf)
    found = predicted(operator, sample, figures)
    assert found is not None
    assert figures["dropped_by_selection"]["r"] > 1_000, "or the next line shows nothing"
    assert found["replication"] == pytest.approx(figures["replication"], rel=0.03)
    assert found["memory_bytes"] / 16 == pytest.approx(figures["state_rows_max"], rel=0.03)


@pytest.mark.parametrize("operator", [Matrix(1, 2), SplitJoin(2)], ids=str)
def test_comparisons_of_a_time_window_are_those_of_a_nested_loop(operator: Operator, tmp_path: Path) -> None:
    _, figures = played(operator, "WITHIN 75 MILLISECONDS", tmp_path)
    found = predicted(operator, _sample(0.075), figures)
    assert found is not None
    assert found["comparisons"] == pytest.approx(figures["comparisons"], rel=0.02)
    assert found["comparisons"] < 0.5 * COUNTS["r"] * COUNTS["s"], "or the window shows nothing"


def test_without_a_sample_only_the_replication_is_known() -> None:
    figures = {**tuples(r=30, s=10), "null_keys": {"r": 10, "s": 0}, "shed": {"r": 0, "s": 10}}
    found = predicted(SplitJoin(3), None, figures)
    assert found == {"replication": 3 * 20 / 40, "memory_bytes": None, "comparisons": None}


def test_an_input_without_tuples_predicts_nothing_wild() -> None:
    sample = _sample(1.0)
    found = predicted(Matrix(2, 2), sample, tuples(r=0, s=0))
    assert found == {"replication": 0.0, "memory_bytes": 0, "comparisons": 0}


def test_latency_and_blocks_are_told_where_the_paper_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = tuples(r=4_000, s=4_000)
    found = predicted(SplitJoin(2), (R, S), figures, UnitCosts(1.0, 10.0))
    assert found is not None and found["latency_us"] == {"processing": 12.0, "visiting": 6.0}
    monkeypatch.setattr(registry, "predict", lambda operator, r, s, delay_s, costs=None: handshake(r, s, 4))
    found = predicted(SplitJoin(2), (R, S), figures)
    assert found is not None and found["block_tuples"] == {"r": 250, "s": 62}
