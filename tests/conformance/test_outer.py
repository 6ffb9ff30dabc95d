"""Outer, semi and anti joins of two streams and more, against DuckDB, which knows the time rule as a condition."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from streamjoin.engine import deciding, emit
from streamjoin.engine.deciding import Deciding
from streamjoin.engine.loop import Brought
from streamjoin.engine.slot import SlotStep
from streamjoin.engine.state import UnitState
from streamjoin.flow.punctuation import lowest_mark_us
from streamjoin.plan.join import RESULT_TIME, JoinPlan
from streamjoin.plan.stages import Cascade
from streamjoin.query import RegisteredPredicate, plan_query
from streamjoin.state.store import StateStore

from .loops import OPERATORS, cut, joined, loop_of
from .test_three_streams import STREAMS, rows

KINDS = ("LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI")
EQUALITIES = {
    "equality": "a.k = b.k",
    "with conditions on each side": "a.k = b.k AND a.x > 20 AND b.x < 40",
    "never": "a.k = b.k AND 1 = 0",
}
CONDITIONS = {
    **EQUALITIES,
    "band": "ABS(a.x - b.x) <= 2",
    "inequality": "a.x < b.x - 35",
    "anything": "a.k = b.k OR a.x = b.x",
}
BY = [name for name in OPERATORS if name != "handshake"]
CASES = [
    (operator, condition)
    for operator in BY
    for condition in CONDITIONS
    if condition in EQUALITIES or operator not in ("biclique by hash", "biclique in between")
]
SPANS = {"both sides": ("20 MICROSECONDS", 20, 20), "sides of their own": ("(5 MICROSECONDS, 30 MICROSECONDS)", 5, 30)}


def items(*kinds: str) -> str:
    """The ids of the streams that come out of a chain of joins."""
    seen = ["a", *(name for name, kind in zip("bcd", kinds, strict=False) if kind.split()[-1] not in ("SEMI", "ANTI"))]
    return ", ".join(f"{name}.id AS {name}" for name in seen)


def expected(
    streams: dict[str, pa.RecordBatch],
    joins: Sequence[tuple[str, str]],
    reaches: tuple[int, ...],
    where: str = "TRUE",
    chosen: str | None = None,
) -> Counter[Any]:
    """What joins written one after the other give, (kind, ON) each; `reaches` has each stream's."""
    kinds = [kind for kind, _ in joins]
    with duckdb.connect() as base:
        for (name, batch), reach in zip(streams.items(), reaches, strict=True):
            base.register(f"s_{name}", pa.table(batch))
            columns = ", ".join(f"{column} AS {name}_{column}" for column in batch.schema.names)
            base.execute(
                f"CREATE VIEW {name} AS SELECT {columns}, ts AS hi_{name}, ts + {reach} AS un_{name} FROM s_{name}"
            )
        before = "SELECT *, hi_a AS hi, un_a AS until FROM a"
        for (kind, on), name in zip(joins, list(streams)[1:], strict=True):
            plain = kind.removeprefix("LEFT ") if kind in ("LEFT SEMI", "LEFT ANTI") else kind
            met = f"({_flat(on)}) AND GREATEST(l.hi, hi_{name}) <= LEAST(l.until, un_{name})"
            both = "l.* EXCLUDE (hi, until)" + ("" if plain in ("SEMI", "ANTI") else f", {name}.*")
            times = (
                "l.hi, l.until"
                if plain in ("SEMI", "ANTI")
                else f"GREATEST(l.hi, hi_{name}) AS hi, LEAST(l.until, un_{name}) AS until"
            )
            before = f"SELECT {both}, {times} FROM ({before}) AS l {plain} JOIN {name} ON {met}"
        return Counter(
            base.sql(f"SELECT {_flat(chosen or items(*kinds))} FROM ({before}) WHERE {_flat(where)}").fetchall()
        )


def _flat(text: str) -> str:
    return re.sub(r"\b([abcd])\.(\w+)", r"\1_\2", text)


@pytest.mark.parametrize(
    ("operator", "condition", "kind"),
    # Each operator gives each kind, and each of its conditions is asked for by two or three kinds.
    [
        (*case, kind)
        for number, case in enumerate(CASES)
        for place, kind in enumerate(KINDS)
        if (number + 2 * place) % 5 < 2 or case[1] == "equality"
    ],
)
def test_every_operator_gives_them_exactly(operator: str, condition: str, kind: str, tmp_path: Path) -> None:
    place = CASES.index((operator, condition)) + KINDS.index(kind)
    within, before, after = SPANS["both sides" if place % 2 else "sides of their own"]
    on = CONDITIONS[condition]
    plan = plan_query(f"SELECT ONLINE {items(kind)} FROM a {kind} JOIN b ON {on} WITHIN {within}", STREAMS)
    a, b = rows(place, 120), rows(place + 500, 100)
    wanted = expected({"a": a, "b": b}, [(kind, on)], (after, before))
    assert len(wanted) > 10 or condition == "never"
    assert joined(loop_of(plan, operator, tmp_path), [a, b], 3 + place % 6, repeated=place % 3 == 0) == wanted


@pytest.mark.parametrize("operator", ["matrix", "splitjoin", "biclique at random"])
@pytest.mark.parametrize("kind", [*KINDS, "INNER"])
def test_predicates_that_are_registered_join_like_any_other(kind: str, operator: str, tmp_path: Path) -> None:
    near = RegisteredPredicate(lambda one, other: abs(one - other) <= 2, (pa.int64(), pa.int64()))
    plan = plan_query(
        f"SELECT ONLINE {items(kind)} FROM a {kind} JOIN b ON near(a.x, b.x) WITHIN 20 MICROSECONDS",
        STREAMS,
        predicates={"near": near},
    )
    a, b = rows(1, 120), rows(501, 100)
    wanted = expected({"a": a, "b": b}, [(kind, "ABS(a.x - b.x) <= 2")], (20, 20))
    assert len(wanted) > 20 and joined(loop_of(plan, operator, tmp_path), [a, b], 4) == wanted


WHERES = {
    "the preserved side": "a.x > 15",
    "the other side": "b.x > 15",
    "none on the other side": "b.id IS NULL",
    "both": "a.x + COALESCE(b.x, 0) > 40",
    "nothing": "1 = 0",
}


@pytest.mark.parametrize("kind", ["LEFT", "RIGHT", "FULL"])
@pytest.mark.parametrize("where", WHERES)
def test_where_filters_what_comes_out(kind: str, where: str, tmp_path: Path) -> None:
    query = (
        f"SELECT ONLINE {items(kind)} FROM a {kind} JOIN b ON a.k = b.k WHERE {WHERES[where]} WITHIN 20 MICROSECONDS"
    )
    a, b = rows(31, 80), rows(32, 80)
    wanted = expected({"a": a, "b": b}, [(kind, "a.k = b.k")], (20, 20), WHERES[where])
    assert joined(loop_of(plan_query(query, STREAMS), "biclique by hash", tmp_path), [a, b]) == wanted


CHAINS = [
    ("LEFT", "LEFT"), ("LEFT", "INNER"), ("INNER", "LEFT"), ("FULL", "LEFT"), ("LEFT", "FULL"), ("RIGHT", "INNER"),
    ("FULL", "FULL"), ("LEFT SEMI", "LEFT"), ("LEFT", "LEFT ANTI"), ("LEFT ANTI", "LEFT SEMI"), ("FULL", "LEFT SEMI"),
    ("INNER", "LEFT ANTI"), ("RIGHT", "RIGHT"), ("INNER", "FULL"), ("FULL", "INNER"),
]  # fmt: skip


@pytest.mark.parametrize("kinds", CHAINS, ids=" then ".join)
def test_they_follow_one_another_exactly(kinds: tuple[str, str], tmp_path: Path) -> None:
    second = "a.k = c.k AND c.x > 10"
    query = (
        f"SELECT ONLINE {items(*kinds)} FROM a {kinds[0]} JOIN b ON a.k = b.k AND b.x < 40 "
        f"{kinds[1]} JOIN c ON {second} WITHIN 25 MICROSECONDS"
    )
    plan = plan_query(query, STREAMS)
    seed = CHAINS.index(kinds) * 10
    operator = ("biclique at random", "splitjoin", "matrix")[CHAINS.index(kinds) % 3]
    streams = {name: rows(seed + place, 60) for place, name in enumerate("abc")}
    wanted = expected(streams, [(kinds[0], "a.k = b.k AND b.x < 40"), (kinds[1], second)], (25, 25, 25))
    assert len(wanted) > 3
    loop = loop_of(plan, operator, tmp_path)
    assert joined(loop, list(streams.values()), 6, repeated=seed % 20 == 0) == wanted


def test_a_condition_of_on_that_where_has_too_is_checked_in_both_places(tmp_path: Path) -> None:
    second = "a.k = c.k AND a.x > 20"
    query = (
        f"SELECT ONLINE {items('INNER', 'LEFT')} FROM a JOIN b ON a.k = b.k LEFT JOIN c ON {second} WHERE a.x > 20 "
        "WITHIN 25 MICROSECONDS"
    )
    streams = {name: rows(40 + place, 60) for place, name in enumerate("abc")}
    wanted = expected(streams, [("INNER", "a.k = b.k"), ("LEFT", second)], (25, 25, 25), "a.x > 20")
    assert len(wanted) > 3
    assert joined(loop_of(plan_query(query, STREAMS), "splitjoin", tmp_path), list(streams.values())) == wanted


@pytest.mark.parametrize("where", ["b.id IS NULL AND c.id IS NOT NULL", "a.x > 20", "c.x > 20 OR b.x > 20", "b.x < 30"])
def test_where_stays_above_what_may_be_null(where: str, tmp_path: Path) -> None:
    joins = [("LEFT", "a.k = b.k"), ("LEFT", "a.k = c.k AND (b.x IS NULL OR b.x < c.x)")]
    written = " ".join(f"{kind} JOIN {name} ON {on}" for (kind, on), name in zip(joins, "bc", strict=True))
    plan = plan_query(
        f"SELECT ONLINE {items('LEFT', 'LEFT')} FROM a {written} WHERE {where} WITHIN 25 MICROSECONDS", STREAMS
    )
    streams = {name: rows(70 + place, 60) for place, name in enumerate("abc")}
    wanted = expected(streams, joins, (25, 25, 25), where)
    assert len(wanted) > 3
    assert joined(loop_of(plan, "biclique at random", tmp_path), list(streams.values())) == wanted


def test_join_binds_tighter_than_the_comma(tmp_path: Path) -> None:
    chosen = "c.id AS c, a.id AS a, b.id AS b"
    query = f"SELECT ONLINE {chosen} FROM c, a LEFT JOIN b ON a.k = b.k WHERE c.k = a.k WITHIN 25 MICROSECONDS"
    plan = plan_query(query, STREAMS)
    assert isinstance(plan, Cascade)
    assert plan.shape == "(c, (a, b))"
    streams = {name: rows(90 + place, 60) for place, name in enumerate("abc")}
    same = expected(streams, [("LEFT", "a.k = b.k"), ("INNER", "a.k = c.k")], (25,) * 3, chosen="c.id, a.id, b.id")
    found = joined(loop_of(plan, "biclique by hash", tmp_path), [streams["c"], streams["a"], streams["b"]])
    assert found == same


def test_a_name_alone_is_of_what_comes_out(tmp_path: Path) -> None:
    plan = plan_query(
        "SELECT ONLINE id AS a FROM a ANTI JOIN b ON a.k = b.k WHERE x > 10 WITHIN 20 MICROSECONDS", STREAMS
    )
    a, b = rows(13, 60), rows(14, 60)
    wanted = expected({"a": a, "b": b}, [("LEFT ANTI", "a.k = b.k")], (20, 20), "a.x > 10")
    assert len(wanted) > 5
    assert joined(loop_of(plan, "biclique by hash", tmp_path), [a, b]) == wanted


def test_using_gives_the_value_that_is_there(tmp_path: Path) -> None:
    for kind in ("LEFT", "RIGHT", "FULL"):
        plan = plan_query(
            f"SELECT ONLINE k, a.id AS a, b.id AS b FROM a {kind} JOIN b USING (k) WITHIN 20 MICROSECONDS", STREAMS
        )
        a, b = rows(11, 60), rows(12, 60)
        wanted = expected({"a": a, "b": b}, [(kind, "a.k = b.k")], (20, 20), chosen="COALESCE(a.k, b.k), a.id, b.id")
        assert joined(loop_of(plan, "biclique by hash", tmp_path / kind), [a, b]) == wanted


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_final_when_it_leaves_and_the_mark_says_so(kind: str, tmp_path: Path) -> None:
    """Batch by batch: what has left is what DuckDB gives in the end, and nothing is older than the mark before it."""
    plan = plan_query(f"SELECT ONLINE {items(kind)} FROM a {kind} JOIN b ON a.k = b.k WITHIN 20 MICROSECONDS", STREAMS)
    assert isinstance(plan, JoinPlan)
    a, b = rows(21, 300, 30), rows(22, 300, 30)
    wanted = expected({"a": a, "b": b}, [(kind, "a.k = b.k")], (20, 20))
    loop = loop_of(replace(plan, keyed=True), "biclique at random", tmp_path)
    found: Counter[Any] = Counter()
    mark_us, moved, waited, reported = None, 0, 0, 0
    for number, of_batch in enumerate([*cut([a, b], 12), [[], []]]):
        brought = Brought(of_batch, 1_000_000 * number, drains=number >= 12)
        for _, part in loop.batch(brought):
            times = part.column(RESULT_TIME).to_numpy()
            assert mark_us is None or not times.size or times.min() >= mark_us
            found.update(
                zip(
                    *(part.column(name).to_pylist() for name in part.schema.names[: len(items(kind).split(","))]),
                    strict=True,
                )
            )
        loop.commit(brought)
        assert found <= wanted
        reported += sum(report.results for report in loop.reports)
        stated = lowest_mark_us(report.output_mark_us for report in loop.reports)
        moved += stated != mark_us
        mark_us = stated
        waited += any(report.open_rows for report in loop.reports)
    assert found == wanted and reported == found.total()
    assert moved > 5 and waited > 5
    # A semi join gives nothing for the unmatched, so where a job goes on they may still be matched.
    assert any(report.open_rows for report in loop.reports) == (kind == "LEFT SEMI")
    assert all(report.ended for report in loop.reports)


def test_rows_wait_until_time_has_come_so_far(tmp_path: Path) -> None:
    """Without an end, exactly the rows whose partners may still come are missing."""
    plan = plan_query(
        "SELECT ONLINE a.id AS a, b.id AS b FROM a LEFT JOIN b ON a.k = b.k WITHIN 20 MICROSECONDS", STREAMS
    )
    a, b = rows(23, 200, 30), rows(24, 200, 30)
    wanted = expected({"a": a, "b": b}, [("LEFT", "a.k = b.k")], (20, 20))
    found = joined(loop_of(plan, "splitjoin", tmp_path), [a, b], ends=False)
    times = dict(zip(a.column("id").to_pylist(), a.column("ts").to_pylist(), strict=True))
    missing = wanted - found
    assert not found - wanted and missing
    # The last batch's mark was not known before it, so the one of the batch before counts.
    sofar = b.column("ts").to_numpy()[: -(-b.num_rows // 5) * 4].max() - 15
    assert all(other is None and times[one] + 20 >= sofar for one, other in missing)


def test_state_ends_with_the_window(tmp_path: Path) -> None:
    plan = plan_query(
        "SELECT ONLINE a.id AS a, b.id AS b FROM a FULL JOIN b ON a.k = b.k WITHIN 20 MICROSECONDS", STREAMS
    )
    loop = loop_of(plan, "biclique by hash", tmp_path)
    stored, bits, kept = [], [], []
    for number, of_batch in enumerate(cut([rows(25, 2000), rows(26, 2000)], 40)):
        brought = Brought(of_batch, 1_000_000 * number)
        list(loop.batch(brought))
        loop.commit(brought)
        stored.append(sum(sum(report.stored_rows) for report in loop.reports))
        states = [StateStore(tmp_path, 0).load(unit.number, loop.version) for unit in loop.operators[0].units]
        bits.append(sum(info.bytes for state in states for info in state.segments(deciding.BITS)))
        kept += [_bits_of(tmp_path, unit, state) for unit, state in enumerate(states)]
    assert max(stored[10:]) < 2.5 * stored[5] and max(bits[10:]) < 1.5 * max(bits[:5])
    assert all(0 < size <= 3 * -(-numbers // 8) for size, numbers in kept), "three bits are kept of a row, and no copy"


def _bits_of(folder: Path, unit: int, state: UnitState) -> tuple[int, int]:
    """Bytes that a unit keeps of rows, and how many numbers there are from its oldest row to the newest of all."""
    (info,) = state.segments(deciding.BITS)
    kept = StateStore(folder, 0).open_segment(unit, info)
    size = sum(len(kept.column(name)[0].as_buffer()) for name in kept.schema.names if name != "first")
    return size, state.sequence - kept.column("first")[0].as_py()


def test_what_comes_too_late_is_counted_and_gives_no_pair(tmp_path: Path) -> None:
    plan = plan_query(
        "SELECT ONLINE a.id AS a, b.id AS b FROM a LEFT JOIN b ON a.k = b.k WITHIN 20 MICROSECONDS", STREAMS
    )
    loop = loop_of(plan, "biclique by hash", tmp_path)

    def batch(*given: list[tuple[int, int, int]]) -> list[tuple[Any, ...]]:
        pieces = [[of_stream(stream)] if stream else [] for stream in given]
        brought = Brought(pieces, 1_000_000 * loop.version)
        found = [
            row
            for _, part in loop.batch(brought)
            for row in zip(*(column.to_pylist() for column in part.columns), strict=True)
        ]
        loop.commit(brought)
        return sorted(found)

    assert batch([(100, 1, 7), (140, 2, 8)], [(100, 50, 9)]) == []
    assert batch([], [(150, 51, 9)]) == []
    # b has come to 150 - 15, so nothing inside its delay can match the row at 100. It is stored with the other one.
    assert batch([], [(151, 52, 9)]) == [(1, None)]
    assert batch([], [(101, 53, 7), (152, 54, 8)]) == [(2, 54)]
    assert sum(report.late_after_final for report in loop.reports) == 1
    assert batch([], [(300, 55, 9)]) == [] and batch([], [(301, 56, 9)]) == []


def of_stream(given: list[tuple[int, int, int]]) -> pa.RecordBatch:
    times, ids, keys = zip(*given, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(times), pa.array(ids), pa.array(keys), pa.array([0] * len(given))], schema=STREAMS["a"].columns
    )


def test_a_run_that_goes_on_after_its_end_goes_on_exactly(tmp_path: Path) -> None:
    """What was given at the end is final; what comes then meets all that is still there, but not those rows."""
    plan = plan_query(
        "SELECT ONLINE a.id AS a, b.id AS b FROM a LEFT JOIN b ON a.k = b.k WITHIN 20 MICROSECONDS", STREAMS
    )
    loop = loop_of(plan, "biclique by hash", tmp_path)
    first = joined(loop, [of_stream([(100, 1, 7), (101, 2, 8)]), of_stream([(100, 50, 8)])], 1)
    assert first == Counter({(1, None): 1, (2, 50): 1})
    loop.counts = ({}, {})
    then = joined(loop, [of_stream([(105, 3, 7)]), of_stream([(106, 51, 7), (107, 52, 8)])], 1)
    assert then == Counter({(3, 51): 1, (2, 52): 1})


@pytest.mark.parametrize(
    "mutation",
    [
        "all notices are lost",
        "each unit loses the notices of a row",
        "one batch early",
        "rows of the batch are decided",
    ],
)
def test_a_mistake_shows(mutation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_query(
        "SELECT ONLINE a.id AS a, b.id AS b FROM a FULL JOIN b ON a.k = b.k WITHIN 20 MICROSECONDS", STREAMS
    )
    a, b = rows(27, 200), rows(28, 200)
    wanted = expected({"a": a, "b": b}, [("FULL", "a.k = b.k")], (20, 20))
    if mutation == "all notices are lost":
        monkeypatch.setattr(Deciding, "_read_notices", lambda self: np.zeros(0, np.int64))
    elif mutation == "each unit loses the notices of a row":
        read, lost = Deciding._read_notices, {}

        def without_one(self: Deciding) -> Any:
            told = read(self)
            # Some rows are matched at home, too, so one row alone would show nothing.
            gone = np.isin(told, lost.setdefault(self.work.unit.number, told[:1]) if told.size else told)
            self._bits.matched[told[gone] - self._bits.first] = False
            return told[~gone]

        monkeypatch.setattr(Deciding, "_read_notices", without_one)
    elif mutation == "one batch early":
        real = Deciding._until_us
        monkeypatch.setattr(Deciding, "_until_us", lambda self, side, segment: real(self, side, segment) - 40)
    else:
        begun = Deciding._final

        def early(self: Deciding, side: int, clocks: Any) -> Any:
            before = self.work.before
            object.__setattr__(self, "work", replace(self.work, before=replace(before, clocks=clocks)))
            yield from begun(self, side, clocks)
            object.__setattr__(self, "work", replace(self.work, before=before))

        monkeypatch.setattr(Deciding, "_final", early)
    assert joined(loop_of(plan, "biclique by hash", tmp_path), [a, b], 60) != wanted


def test_rows_that_match_nothing_leave_in_one_order_whatever_came_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stage may send them in several blocks; a task that is repeated must give them as before."""
    monkeypatch.setattr(emit, "ROWS_A_BATCH", 5)
    query = (
        "SELECT ONLINE a.id AS a, b.id AS b FROM a FULL JOIN b ON a.k = b.k LEFT JOIN c ON a.k = c.k AND a.x > 40 "
        "WITHIN 20 MICROSECONDS"
    )
    plan, streams = plan_query(query, STREAMS), [rows(place, 200, keys=2) for place in range(3)]
    given: list[Any] = []
    for backwards in (False, True):
        if backwards:  # as blocks are fetched in any order
            monkeypatch.setattr(SlotStep, "take", lambda self, routed: self._blocks.insert(0, routed))
        loop, found = loop_of(plan, "biclique at random", tmp_path / str(backwards)), []
        for number, of_batch in enumerate(cut(streams)):
            brought = Brought(of_batch, 1_000_000 * number)
            found += [row for _, part in loop.batch(brought) for row in part.to_pylist()]
            loop.commit(brought)
        given.append(found)
    assert len(given[0]) > 50 and given[0] == given[1]
