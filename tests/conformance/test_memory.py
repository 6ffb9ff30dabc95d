"""State stays bounded, and nothing is stored twice or where it does not belong (BiStream, sections 3.1 to 3.3)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.engine.operator import Operator
from streamjoin.operators.biclique import Biclique, Routing
from streamjoin.operators.matrix import Matrix
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query
from streamjoin.state.store import StateStore

from .histories import TIMESTAMP
from .local import LocalRun

pytestmark = pytest.mark.slow

COLUMNS = pa.schema([("id", pa.int64()), ("ts", TIMESTAMP), ("k", pa.int64())])
WINDOW_US, DELAY_US = 10_000, 500


def steady(first: int, rows: int, rng: np.random.Generator, keys: int = 1000) -> pa.RecordBatch:
    """One row a microsecond, disordered inside the delay."""
    numbers = np.arange(first, first + rows)
    ts = numbers + rng.integers(0, DELAY_US, rows)
    return pa.RecordBatch.from_arrays(
        [pa.array(numbers), pa.array(ts).view(TIMESTAMP), pa.array(rng.integers(0, keys, rows))], schema=COLUMNS
    )


def a_plan(where: str = "r.k = s.k", within: str = f"WITHIN {WINDOW_US} MICROSECONDS") -> JoinPlan:
    streams = {name: StreamSchema(name, COLUMNS, "ts", delay_us=DELAY_US) for name in "rs"}
    return plan_query(f"SELECT ONLINE r.id AS a, s.id AS b FROM r, s WHERE {where} {within}", streams)


def stored(run: LocalRun) -> dict[int, list[tuple[int, int]]]:
    """(side, id) of every tuple in each unit's newest state."""
    store = StateStore(run.state)
    found: dict[int, list[tuple[int, int]]] = {}
    for unit in run.operator.units:
        state = store.load(unit.number, run.version)
        found[unit.number] = [
            (side, value)
            for side in (0, 1)
            for info in state.tuples(side)
            for value in store.open_segment(unit.number, info).column("id").to_pylist()
        ]
    return found


@pytest.mark.parametrize(
    "operator", [Biclique(2, 3), Biclique(3, 2, Routing.HASH), Biclique(4, 4, Routing.CONTRAND, 2, 2)], ids=repr
)
def test_each_tuple_lies_in_exactly_one_unit_of_its_own_side(operator: Biclique, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    run = LocalRun(a_plan(within=""), operator, tmp_path)
    for batch in range(5):
        run.batch(([steady(batch * 400, 400, rng)], [steady(batch * 400, 400, rng)]))
        units = stored(run)
        everywhere = Counter(entry for entries in units.values() for entry in entries)
        assert everywhere == Counter({(side, number): 1 for side in (0, 1) for number in range((batch + 1) * 400)})
        for number, entries in units.items():
            own = 0 if number < operator.r_units else 1
            assert {side for side, _ in entries} <= {own}


def test_the_matrix_stores_a_row_and_a_column_of_copies(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    run = LocalRun(a_plan(within=""), Matrix(2, 3), tmp_path)
    run.batch(([steady(0, 500, rng)], [steady(0, 500, rng)]))
    everywhere = Counter(side for entries in stored(run).values() for side, _ in entries)
    assert everywhere == {0: 3 * 500, 1: 2 * 500}


@pytest.mark.parametrize("rows", [200, 1_000, 7_000])
@pytest.mark.parametrize("operator", [Biclique(2, 2, Routing.HASH), Biclique(1, 2), Matrix(1, 1)], ids=repr)
def test_live_state_never_exceeds_window_delay_and_archive_period(
    operator: Operator, rows: int, tmp_path: Path
) -> None:
    rng = np.random.default_rng(2)
    plan = a_plan()
    run = LocalRun(plan, operator, tmp_path)
    assert plan.archive_period == WINDOW_US // 10
    # One row a microsecond and stream: spans are row counts. A batch is joined before it lets anything go.
    bound = WINDOW_US + 2 * DELAY_US + plan.archive_period + rows
    highest = [0, 0]
    for batch in range(5 * WINDOW_US // rows):
        run.batch(([steady(batch * rows, rows, rng)], [steady(batch * rows, rows, rng)]))
        for side in (0, 1):
            live = sum(report.stored_rows[side] for report in run.reports[-1])
            highest[side] = max(highest[side], live)
            assert live <= bound
    assert min(highest) >= WINDOW_US  # nothing inside the window was let go either


@pytest.mark.parametrize(("before", "after"), [(0, WINDOW_US), (WINDOW_US, 0)], ids=["only after", "only before"])
def test_a_window_to_one_side_keeps_one_stream_for_its_length_and_the_other_for_its_delay(
    before: int, after: int, tmp_path: Path
) -> None:
    rng = np.random.default_rng(9)
    plan = a_plan(within=f"WITHIN ({before} MICROSECONDS, {after} MICROSECONDS)")
    run = LocalRun(plan, Biclique(2, 2, Routing.HASH), tmp_path)
    assert plan.archive_period is not None
    rows = 1_000
    for batch in range(3 * WINDOW_US // rows):
        run.batch(([steady(batch * rows, rows, rng)], [steady(batch * rows, rows, rng)]))
        # Stored tuples of R wait for S as long as it may come after them, and those of S as long as it may before R.
        for side, keeps in enumerate((after, before)):
            live = sum(report.stored_rows[side] for report in run.reports[-1])
            assert live <= keeps + 2 * DELAY_US + plan.archive_period + rows
            assert live >= keeps or batch * rows < keeps


def test_segments_stay_few_however_small_the_batches_are(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    run = LocalRun(a_plan(), Biclique(1, 1), tmp_path)
    for batch in range(600):
        run.batch(([steady(batch * 50, 50, rng)], [steady(batch * 50, 50, rng)]))
    # Ten closed periods and one half, and about log2(20) small segments of the current one.
    assert max(report.segments for report in run.reports[-1]) <= 11 + 2 + 6


def test_memory_comes_back_when_only_the_other_stream_goes_on(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    run = LocalRun(a_plan(), Biclique(2, 2, Routing.HASH), tmp_path)
    run.batch(([steady(0, 5_000, rng)], [steady(0, 5_000, rng)]))
    for batch in range(1, 8):
        run.batch(([], [steady(batch * 5_000, 5_000, rng)]))
    # R is silent: its stored tuples fall by S's mark; S's cannot, because R may still bring their partners.
    assert sum(report.stored_rows[0] for report in run.reports[-1]) == 0
    assert sum(report.stored_rows[1] for report in run.reports[-1]) == 8 * 5_000


def test_keys_the_other_stream_never_brings_expire_all_the_same(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    run = LocalRun(a_plan(), Biclique(4, 4, Routing.HASH), tmp_path)
    for batch in range(8):
        run.batch(([steady(batch * 5_000, 5_000, rng, keys=1)], [steady(batch * 5_000, 5_000, rng, keys=1)]))
    # All tuples have one key, so three units of each side get no tuple ever; punctuations alone tell them the time.
    for report in run.reports[-1]:
        assert sum(report.stored_rows) <= WINDOW_US + 2 * DELAY_US + WINDOW_US // 10 + 5_000


def test_one_row_of_the_far_future_does_not_empty_the_window_unnoticed(tmp_path: Path) -> None:
    """It ends the time of its stream, and whatever comes after it is counted as late, so that somebody sees why."""
    rng = np.random.default_rng(7)
    run = LocalRun(a_plan(), Biclique(2, 2, Routing.HASH), tmp_path)

    def late() -> tuple[int, int]:
        """Of R and of S in the last batch."""
        r, s = (sum(report.late[side] for report in run.reports[-1]) for side in (0, 1))
        return r, s

    far = steady(10**16, 1, rng)
    run.batch(([steady(0, 5_000, rng)], [steady(0, 5_000, rng)]))
    assert late() == (0, 0)
    run.batch(([far], []))
    assert late() == (0, 0)
    for batch in (1, 2, 3):
        run.batch(([steady(batch * 5_000, 5_000, rng)], [steady(batch * 5_000, 5_000, rng)]))
        assert late() == (5_000, 0)
        # R's are still stored, and go as S's time goes on; of S, which nothing of R can meet any more, nothing is.
        r, s = (sum(report.stored_rows[side] for report in run.reports[-1]) for side in (0, 1))
        assert 0 < r <= WINDOW_US + 2 * DELAY_US + WINDOW_US // 10 + 5_001 and s == 0


def test_a_count_window_keeps_the_last_rows_of_the_stream_not_of_the_unit(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    run = LocalRun(a_plan(within="WITHIN 100 ROWS"), Biclique(3, 3, Routing.HASH), tmp_path)
    for batch in range(20):
        run.batch(([steady(batch * 200, 200, rng, keys=3)], [steady(batch * 200, 200, rng, keys=3)]))
    for side in (0, 1):
        kept = sum(report.stored_rows[side] for report in run.reports[-1])
        assert 100 <= kept <= 100 + 200


def test_count_windows_let_go_by_a_tenth_of_the_window_however_small_the_batches(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    run = LocalRun(a_plan(within="WITHIN 4000 ROWS"), Biclique(1, 1), tmp_path)
    for batch in range(120):
        run.batch(([steady(batch * 100, 100, rng)], [steady(batch * 100, 100, rng)]))
        for side in (0, 1):
            live = sum(report.stored_rows[side] for report in run.reports[-1])
            assert live <= 4000 + 400 + 100
    assert min(sum(report.stored_rows[side] for report in run.reports[-1]) for side in (0, 1)) >= 4000


@pytest.mark.parametrize("where", ["r.k = s.k", "r.k = s.k AND r.id % 2 = 0"], ids=["one hot key", "every second row"])
def test_random_routing_spreads_one_hot_key_and_a_stream_that_strictly_alternates(where: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    run = LocalRun(a_plan(where, within=""), Biclique(4, 4), tmp_path)
    run.batch(([steady(0, 100_000, rng, keys=1)], [steady(0, 10, rng, keys=1)]))
    shares = [report.stored_rows[0] for report in run.reports[-1] if report.label.startswith("R")]
    assert len(shares) == 4 and sum(shares) >= 50_000
    assert max(shares) / (sum(shares) / 4) <= 1.02


def test_contrand_lowers_the_imbalance_that_zipf_keys_give_hash_routing(tmp_path: Path) -> None:
    from streamjoin.generate import generator

    rows = generator("zipf.r").rows(0, 50_000, seed=1, rate=1e6, options={"skew": 1.0, "keys": 1000})
    rows = pa.RecordBatch.from_arrays([rows.column("id"), rows.column("ts"), rows.column("k")], schema=COLUMNS)
    imbalance = {}
    for name, operator in {
        "hash": Biclique(8, 1, Routing.HASH),
        "contrand": Biclique(8, 1, Routing.CONTRAND, 2),
    }.items():
        run = LocalRun(a_plan(within=""), operator, tmp_path / name)
        run.batch(([rows], []))
        shares = [report.stored_rows[0] for report in run.reports[-1] if report.label.startswith("R")]
        imbalance[name] = max(shares) / (sum(shares) / len(shares))
    assert imbalance["contrand"] < imbalance["hash"] - 0.2
