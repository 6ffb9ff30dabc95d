"""The papers' formulas: their own numbers, and what running operators really send and store."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.engine.operator import Operator
from streamjoin.index.columns import stored_columns
from streamjoin.operators import costs
from streamjoin.operators.biclique import Biclique, Routing
from streamjoin.operators.costs import StreamStatistics
from streamjoin.operators.matrix import Matrix
from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query
from tests.conformance.local import LocalRun

SIGMA = StreamStatistics(tuple_bytes=1.0, rate_per_s=1.0, stored=1.0)


def test_bytes_of_bistream_figure_11_settings() -> None:
    # Four partitions of each relation: JB8 is random, CR2 and CR4 have two and four subgroups, JM16 is 4 x 4.
    assert costs.biclique_bytes_per_s(SIGMA, SIGMA, 4, 4, 1, 1) == 10
    assert costs.biclique_bytes_per_s(SIGMA, SIGMA, 4, 4, 2, 2) == 6
    assert costs.biclique_bytes_per_s(SIGMA, SIGMA, 4, 4, 4, 4) == 4
    assert costs.matrix_bytes_per_s(SIGMA, SIGMA, 4, 4) == 8


@pytest.mark.parametrize(("m", "n", "d", "e"), [(4, 4, 1, 1), (4, 4, 2, 2), (5, 6, 2, 3), (7, 3, 7, 3), (8, 1, 4, 1)])
def test_inputs_of_all_units_add_up_to_the_whole(m: int, n: int, d: int, e: int) -> None:
    r, s = StreamStatistics(30, 200, 10_000), StreamStatistics(50, 90, 20_000)
    r_inputs, s_inputs = costs.biclique_inputs_bytes_per_s(r, s, m, n, d, e)
    assert len(r_inputs) == m
    assert len(s_inputs) == n
    assert sum(r_inputs) + sum(s_inputs) == pytest.approx(costs.biclique_bytes_per_s(r, s, m, n, d, e))


def test_the_biclique_stores_everything_once_and_the_matrix_a_line_of_copies() -> None:
    r, s = StreamStatistics(10, 0, 1_000), StreamStatistics(20, 0, 500)
    assert costs.biclique_memory_bytes(r, s, 8, 8, 1, 1, delay_s=5) == 10 * 1_000 + 20 * 500
    assert costs.matrix_memory_bytes(r, s, 4, 5) == 10 * 5 * 1_000 + 20 * 4 * 500


def test_waiting_tuples_grow_with_the_delay() -> None:
    r, s = StreamStatistics(10, 100, 0), StreamStatistics(20, 50, 0)
    assert costs.biclique_memory_bytes(r, s, 4, 6, 2, 3, delay_s=2) == 10 * (6 / 3 * 100 * 2) + 20 * (4 / 2 * 50 * 2)


def test_a_new_row_of_the_matrix_is_filled_with_copies_first() -> None:
    s = StreamStatistics(tuple_bytes=100, rate_per_s=0, stored=20)
    # At half load a unit of 1000 bytes in 4 columns holds 500 bytes of S, which a new row must copy.
    assert costs.matrix_scaling_gain(s, other_partitions=4, capacity_bytes=1_000) == pytest.approx(0.5)
    assert costs.biclique_scaling_gain() == 1


@pytest.mark.parametrize(
    ("load", "units", "change"), [(0.8, 4, 2), (0.3, 6, -3), (0.29, 6, -3), (0.6, 5, 0), (0.01, 1, 0)]
)
def test_two_phase_scaling_changes_as_many_units_as_figure_12_shows(load: float, units: int, change: int) -> None:
    assert costs.scaling_change(load, units) == change


COLUMNS = pa.schema([("ts", pa.timestamp("us", tz="UTC")), ("k", pa.int64())])
ROWS = {"r": 40_000, "s": 20_000}


def rows(count: int, seed: int) -> pa.RecordBatch:
    rng = np.random.default_rng(seed)
    ts = pa.array(np.arange(count)).view(COLUMNS.field("ts").type)
    return pa.RecordBatch.from_arrays([ts, pa.array(rng.integers(0, 10_000, count))], schema=COLUMNS)


@pytest.mark.parametrize(
    "operator",
    [
        Biclique(3, 5),
        Biclique(4, 4, Routing.HASH),
        Biclique(4, 6, Routing.CONTRAND, 2, 3),
        Biclique(5, 6, Routing.CONTRAND, 2, 4),
        Biclique(2, 4, Routing.CONTRAND, 1, 4),
        Matrix(2, 3),
        Matrix(4, 4),
    ],
    ids=str,
)
def test_measured_replication_bytes_and_memory_are_what_the_formulas_say(operator: Operator, tmp_path: Path) -> None:
    from streamjoin.operators import registry

    streams = {name: StreamSchema(name, COLUMNS, "ts") for name in "rs"}
    plan = plan_query("SELECT ONLINE r.k FROM r, s WHERE r.k = s.k WITHIN 1 MICROSECONDS", streams)
    run = LocalRun(plan, operator, tmp_path, slots=3)
    run.batch(([rows(ROWS["r"], 1)], [rows(ROWS["s"], 2)]))
    reports = run.reports[0]
    size = 16.0  # event time and key
    r, s = (StreamStatistics(size, ROWS[name], ROWS[name]) for name in "rs")
    predicted = registry.predict(operator, r, s, 0.0)
    assert predicted is not None
    received = sum(sum(report.received.values()) for report in reports)
    assert received / sum(ROWS.values()) == pytest.approx(predicted.replication, rel=0.02)
    sent = sum(sum(report.received_bytes.values()) for report in reports)
    # Routed columns are k alone besides the engine's event time; unequal subgroups make In differ, not B.
    assert sent == pytest.approx(predicted.bytes_per_s * 16 / size, rel=0.1)


def test_full_history_memory_is_what_the_formulas_say(tmp_path: Path) -> None:
    streams = {name: StreamSchema(name, COLUMNS, "ts") for name in "rs"}
    plan = plan_query("SELECT ONLINE r.ts FROM r, s WHERE r.k = s.k AND r.k < 0", streams)
    whole = plan_query("SELECT ONLINE r.k AS a, s.k AS b FROM r, s WHERE r.k = s.k", streams)
    assert stored_columns(plan, 1) == ()
    for operator, copies in ((Biclique(2, 2, Routing.HASH), 1.0), (Matrix(2, 2), 2.0)):
        run = LocalRun(whole, operator, tmp_path / operator.name)
        run.batch(([rows(ROWS["r"], 1)], [rows(ROWS["s"], 2)]))
        stored = sum(sum(report.stored_rows) for report in run.reports[0])
        assert stored == copies * sum(ROWS.values())
