"""Joins of three and four streams, stage by stage, against a nested loop and DuckDB."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from streamjoin.engine import feeding
from streamjoin.engine.loop import Brought
from streamjoin.engine.slot import SlotStep
from streamjoin.errors import InputError, StateError
from streamjoin.flow.punctuation import lowest_mark_us
from streamjoin.plan.join import RESULT_TIME
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import Cascade
from streamjoin.query import plan_query
from streamjoin.settings.trees import NamedTree

from .loops import AT_ONCE, OPERATORS, cut, joined, loop_of

DISORDER_US = 15
COLUMNS = pa.schema([("ts", pa.int64()), ("id", pa.int64()), ("k", pa.int64()), ("x", pa.int64())])
STREAMS = {name: StreamSchema(name, COLUMNS, "ts", "us", DISORDER_US) for name in "abcd"}
HEAD = "SELECT ONLINE a.id AS a, b.id AS b, c.id AS c"

Row = dict[str, Any]
Shape = int | tuple["Shape", "Shape"]
Condition = Callable[..., bool]


def equal(one: Any, other: Any) -> bool:
    return one is not None and one == other


Within = int | tuple[int, ...] | None

QUERIES: dict[str, tuple[str, Condition, Within]] = {
    "equalities in a row": (
        f"{HEAD} FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k WITHIN 20 MICROSECONDS",
        lambda a, b, c: equal(a["k"], b["k"]) and equal(b["k"], c["k"]),
        20,
    ),
    "a band, and a condition over all": (
        f"{HEAD} FROM a, b, c WHERE a.k = b.k AND ABS(b.x - c.x) <= 5 AND a.x + c.x > b.x WITHIN 30 MICROSECONDS",
        lambda a, b, c: equal(a["k"], b["k"]) and abs(b["x"] - c["x"]) <= 5 and a["x"] + c["x"] > b["x"],
        30,
    ),
    "the first stream meets the third": (
        f"{HEAD} FROM a JOIN b ON a.x > b.x AND b.x > 20 JOIN c ON a.k = c.k WITHIN 25 MICROSECONDS",
        lambda a, b, c: a["x"] > b["x"] > 20 and equal(a["k"], c["k"]),
        25,
    ),
    "a reach for each": (
        f"{HEAD} FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k "
        "WITHIN 45 MICROSECONDS FOR c, 5 MICROSECONDS FOR A, 20 MICROSECONDS FOR b",
        lambda a, b, c: equal(a["k"], b["k"]) and equal(b["k"], c["k"]),
        (5, 20, 45),
    ),
    "a reach for each of four, one of them 0": (
        "SELECT ONLINE a.id AS a, b.id AS b, c.id AS c, d.id AS d FROM a JOIN b USING (k) JOIN c USING (k) JOIN d "
        "USING (k) WITHIN 50 MICROSECONDS FOR a, 0 SECONDS FOR b, 30 MICROSECONDS FOR c, 9 MICROSECONDS FOR d",
        lambda a, b, c, d: all(equal(a["k"], other["k"]) for other in (b, c, d)),
        (50, 0, 30, 9),
    ),
    "full history": (
        f"{HEAD} FROM a, b, c WHERE a.k = b.k AND c.k = a.k AND a.x > 20 AND c.x < 40",
        lambda a, b, c: equal(a["k"], b["k"]) and equal(a["k"], c["k"]) and a["x"] > 20 and c["x"] < 40,
        None,
    ),
    "four": (
        "SELECT ONLINE a.id AS a, b.id AS b, c.id AS c, d.id AS d FROM a JOIN b USING (k) JOIN c USING (k) JOIN d "
        "ON d.k = a.k WITHIN 30 MICROSECONDS",
        lambda a, b, c, d: all(equal(a["k"], other["k"]) for other in (b, c, d)),
        30,
    ),
    "one stream three times": (
        "SELECT ONLINE p.id AS a, q.id AS b, r.id AS c FROM a AS p JOIN a AS q ON p.k = q.k JOIN a AS r ON q.k = r.k "
        "WITHIN 10 MICROSECONDS",
        lambda a, b, c: equal(a["k"], b["k"]) and equal(b["k"], c["k"]),
        10,
    ),
}

BY = [name for name in OPERATORS if name != "biclique in between"]  # which needs many units to be another


def rows(seed: int, count: int = 60, keys: int = 5) -> pa.RecordBatch:
    """Rows out of order by less than the allowed delay; some keys are NULL, and many times are equal."""
    chosen = random.Random(seed)
    times = sorted(chosen.randrange(6 * count) for _ in range(count))
    return pa.RecordBatch.from_arrays(
        [
            pa.array([max(time - chosen.randrange(DISORDER_US), 0) for time in times]),
            pa.array(range(count)),
            pa.array([chosen.choice([None, *range(keys)]) for _ in times], pa.int64()),
            pa.array([chosen.randrange(50) for _ in times]),
        ],
        schema=COLUMNS,
    )


def planned(query: str) -> Cascade:
    found = plan_query(query, STREAMS)
    assert isinstance(found, Cascade)
    return found


def history(plan: Cascade, seed: int = 1) -> list[pa.RecordBatch]:
    by_name = {name: rows(seed * 10 + place) for place, name in enumerate("abcd")}
    return [by_name[stream.name] for stream in plan.streams]


def nested_loop(streams: Sequence[pa.RecordBatch], condition: Condition, within_us: Within) -> Counter[Any]:
    """Every combination of rows for which the condition holds, and of which none is out of reach of the newest.

    Args:
        within_us: the reach of all streams, or of each.
    """
    reaches = within_us if isinstance(within_us, tuple) else (within_us,) * len(streams)

    def near(parts: Sequence[Row]) -> bool:
        newest = max(part["ts"] for part in parts)
        return all(reach is None or newest <= part["ts"] + reach for part, reach in zip(parts, reaches, strict=False))

    # Parts that are out of reach stay so, whatever joins them.
    combined: list[tuple[Row, ...]] = [()]
    for stream in streams:
        listed = stream.to_pylist()
        combined = [(*parts, row) for parts in combined for row in listed if near((*parts, row))]
    return Counter(tuple(part["id"] for part in parts) for parts in combined if condition(*parts))


@pytest.mark.parametrize(
    ("operator", "query"),
    [
        (operator, query)
        for operator in BY
        for query in QUERIES
        # Hash routing needs an equality at each stage.
        if operator != "biclique by hash"
        or query
        in (
            "equalities in a row",
            "full history",
            "four",
            "a reach for each",
            "a reach for each of four, one of them 0",
        )
    ],
)
def test_every_operator_joins_them_exactly(operator: str, query: str, tmp_path: Path) -> None:
    text, condition, within_us = QUERIES[query]
    plan = planned(text)
    streams = history(plan)
    wanted = nested_loop(streams, condition, within_us)
    assert len(wanted) > 5
    assert joined(loop_of(plan, operator, tmp_path), streams) == wanted


@pytest.mark.parametrize("operator", BY)
def test_crashes_and_rescaling_change_nothing(operator: str, tmp_path: Path) -> None:
    text, condition, within_us = QUERIES["equalities in a row"]
    plan = planned(text)
    streams = history(plan, seed=4)
    wanted = nested_loop(streams, condition, within_us)
    assert len(wanted) > 5
    assert joined(loop_of(plan, operator, tmp_path), streams, repeated=True) == wanted


def test_it_is_what_duckdb_joins(tmp_path: Path) -> None:
    text, _, within_us = QUERIES["a band, and a condition over all"]
    plan = planned(text)
    streams = history(plan, seed=7)
    a, b, c = (pa.Table.from_batches([stream]) for stream in streams)
    with duckdb.connect() as database:
        for name, table in zip("abc", (a, b, c), strict=True):
            database.register(name, table)
        wanted = database.execute(
            "SELECT a.id, b.id, c.id FROM a, b, c WHERE a.k = b.k AND ABS(b.x - c.x) <= 5 AND a.x + c.x > b.x "
            f"AND GREATEST(a.ts, b.ts, c.ts) - LEAST(a.ts, b.ts, c.ts) <= {within_us}"
        ).fetchall()
    assert len(wanted) > 5
    assert joined(loop_of(plan, "matrix", tmp_path), streams) == Counter(wanted)


def test_state_stays_as_small_as_the_window(tmp_path: Path) -> None:
    plan = planned(QUERIES["equalities in a row"][0])
    streams = [rows(place, 2_000) for place in range(3)]
    loop = loop_of(plan, "biclique by hash", tmp_path)
    kept = []
    for number, pieces in enumerate(cut(streams, 40)):
        brought = Brought(pieces, 1_000_000 * number)
        list(loop.batch(brought))
        loop.commit(brought)
        kept.append(sum(sum(report.stored_rows) for report in loop.reports))
    assert max(kept[20:]) < 2 * max(kept[5:20])


@pytest.mark.parametrize("operator", [*BY, "ring", "coordinated"])
def test_a_task_that_is_repeated_sends_the_same_whatever_came_first(
    operator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark may repeat a task of a stage after tasks of the next one have read some of what it sent."""
    plan = planned(QUERIES["equalities in a row"][0])
    streams = [rows(place, 200, keys=2) for place in range(3)]
    sent: list[Any] = []
    take = feeding.Feeding.take

    def noted(self: feeding.Feeding, found: pa.RecordBatch, unit: int, query: int) -> Iterator[Any]:
        for routed in take(self, found, unit, query):
            sent.append((unit, routed.slot, routed.targets, routed.first, routed.block.to_pybytes()))
            yield routed

    monkeypatch.setattr(feeding.Feeding, "take", noted)

    forwards: list[Any] = []
    for backwards in (False, True):
        sent.clear()
        if backwards:  # as blocks are fetched in any order
            monkeypatch.setattr(SlotStep, "take", lambda self, routed: self._blocks.insert(0, routed))
        joined(loop_of(plan, operator, tmp_path / str(backwards)), streams)
        forwards = forwards or list(sent)
    assert sent and sent == forwards


@pytest.mark.parametrize("operator", [*BY, *AT_ONCE])
@pytest.mark.parametrize("query", ["equalities in a row", "four", "a reach for each"])
def test_no_result_comes_below_the_watermark_that_was_stated_before(operator: str, query: str, tmp_path: Path) -> None:
    """Snapshots by punctuation close by it, and stages drop by that of a flow."""
    plan = planned(QUERIES[query][0]).keyed()
    streams = [rows(place, 150, keys=3) for place in range(len(plan.streams))]
    loop = loop_of(plan, operator, tmp_path)
    last = len(loop.operators) - 1
    stated: int | None = None
    seen = risen = 0
    drains = sum(one.drain_batches for one in loop.operators)
    for number, pieces in enumerate([*cut(streams, 12), *([[] for _ in streams] for _ in range(drains))]):
        brought = Brought(pieces, 1_000_000 * number, drains=number >= 12)
        for _, part in loop.batch(brought):
            times = part.column(RESULT_TIME).to_pylist()
            seen += len(times)
            assert stated is None or min(times) >= stated
        loop.commit(brought)
        units = len(loop.operators[last].units)
        before, stated = stated, lowest_mark_us(report.output_mark_us for report in loop.reports[-units:])
        risen += stated != before
    assert seen > 20 and risen > 5


def test_a_unit_of_the_stage_before_that_is_not_heard_of_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(QUERIES["equalities in a row"][0])
    punctuate = feeding.Feeding.punctuate
    monkeypatch.setattr(
        feeding.Feeding, "punctuate", lambda self, reports, now_us: punctuate(self, reports[1:], now_us)
    )
    with pytest.raises(StateError, match="units of the stage before"):
        joined(loop_of(plan, "matrix", tmp_path), history(plan))


def test_a_block_between_stages_that_is_lost_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(QUERIES["equalities in a row"][0])
    take = feeding.Feeding.take
    monkeypatch.setattr(feeding.Feeding, "take", lambda self, *found: itertools.islice(take(self, *found), 1, None))
    with pytest.raises(StateError, match="tuples of batch"):
        joined(loop_of(plan, "matrix", tmp_path), history(plan))


def test_a_window_of_pairs_alone_is_caught(tmp_path: Path) -> None:
    """Without `until`, a tuple of the third stream meets pairs whose older part is out of its reach."""
    text, condition, within_us = QUERIES["equalities in a row"]
    plan = planned(text)
    last = plan.stages[-1]
    query = last.plan.queries[0]
    broken = replace(query, predicate=replace(query.predicate, residual=()))
    plan = replace(plan, stages=(*plan.stages[:-1], replace(last, plan=broken)))
    streams = history(plan)
    wanted = nested_loop(streams, condition, within_us)
    found = joined(loop_of(plan, "matrix", tmp_path), streams)
    assert wanted - found == Counter() and found - wanted


def trees(streams: Sequence[int]) -> Iterator[Shape]:
    """Every tree of these streams, of which left and right are told apart in one way."""
    if len(streams) == 1:
        yield streams[0]
        return
    first, *others = streams
    for size in range(len(others)):
        for beside in itertools.combinations(others, size):
            right = [stream for stream in others if stream not in beside]
            yield from itertools.product(trees([first, *beside]), trees(right))


def test_every_tree_of_four_streams_gives_the_same(tmp_path: Path) -> None:
    streams = [rows(place, 40, keys=3) for place in range(4)]
    shapes = list(trees(range(4)))
    wanted = nested_loop(
        streams,
        lambda a, b, c, d: equal(a["k"], b["k"]) and c["x"] > b["x"] and equal(d["k"], c["k"]) and a["x"] < d["x"],
        40,
    )
    assert len(shapes) == 15 and len(wanted) > 20
    for number, shape in enumerate(shapes):
        operator = BY[1 + number % (len(BY) - 1)]
        plan = plan_query(
            "SELECT ONLINE a.id AS a, b.id AS b, c.id AS c, d.id AS d FROM a, b, c, d WHERE a.k = b.k AND c.x > b.x "
            "AND d.k = c.k AND a.x < d.x WITHIN 40 MICROSECONDS",
            STREAMS,
            tree=named(shape),
        )
        assert isinstance(plan, Cascade)
        loop = loop_of(plan, operator, tmp_path / str(number))
        assert joined(loop, streams, repeated=number % 2 == 1) == wanted, (plan.shape, operator)


def named(tree: Shape) -> NamedTree:
    if isinstance(tree, int):
        return "abcd"[tree]
    left, right = map(named, tree)
    return left, right


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (("a", ("b", "x")), "the query has no stream x; it reads a, b, c"),
        (("a", ("b", "b")), "b is in it twice"),
        (("a", "b"), "it lacks c; all streams of the query are joined"),
    ],
)
def test_a_tree_of_other_streams_is_refused(tree: NamedTree, message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan_query(QUERIES["equalities in a row"][0], STREAMS, tree=tree)


@pytest.mark.parametrize("tree", [("a", ("b", "c")), (("a", "c"), "b"), ("c", ("b", "a"))])
def test_reaches_hold_in_every_tree(tree: NamedTree, tmp_path: Path) -> None:
    text, condition, within_us = QUERIES["a reach for each"]
    plan = plan_query(text, STREAMS, tree=tree)
    assert isinstance(plan, Cascade)
    streams = history(plan)
    assert joined(loop_of(plan, "matrix", tmp_path), streams) == nested_loop(streams, condition, within_us)


def test_two_streams_have_one_tree() -> None:
    with pytest.raises(InputError, match="two streams are joined in one way"):
        plan_query("SELECT ONLINE a.id FROM a, b WITHIN 1 SECONDS", STREAMS, tree=("b", "a"))
