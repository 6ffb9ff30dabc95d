"""Joins in brackets, against nested loops and DuckDB, which reads the same FROM with the window written out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from streamjoin.engine.deciding import Deciding
from streamjoin.engine.loop import Brought
from streamjoin.flow.punctuation import lowest_mark_us
from streamjoin.plan import tree
from streamjoin.plan.coercion import call
from streamjoin.plan.join import RESULT_TIME
from streamjoin.plan.stages import Cascade
from streamjoin.query import plan_query

from .loops import OPERATORS, cut, given, joined, loop_of
from .test_asof_stages import Flow, Oracle, Part, same
from .test_three_streams import STREAMS, rows

OUTER = ("INNER", "LEFT", "RIGHT", "FULL")
BY = [name for name in OPERATORS if name != "handshake"]
ONE_SPAN = ("WITHIN 25 MICROSECONDS", (25, 25, 25, 25))
ONE_EACH = (
    "WITHIN 12 MICROSECONDS FOR a, 45 MICROSECONDS FOR b, 0 SECONDS FOR c, 30 MICROSECONDS FOR d",
    (12, 45, 0, 30),
)

On = Callable[[Part, Part], Any]


def below(name: str, limit: int) -> On:
    return lambda one, other: _found(one, other, name, "x", lambda x: x < limit)


def above(name: str, limit: int) -> On:
    return lambda one, other: _found(one, other, name, "x", lambda x: x > limit)


def _found(one: Part, other: Part, name: str, column: str, holds: Callable[[int], bool]) -> bool:
    row = (one.of | other.of).get(name)
    return row is not None and holds(row[column])


def near(name: str, other: str, by: int) -> On:
    def on(one: Part, two: Part) -> bool:
        x, y = one.value(name, "x"), two.value(other, "x")
        return x is not None and y is not None and abs(x - y) <= by

    return on


@dataclass(frozen=True)
class Condition:
    """An ON, as text and as what it asks of a row of the left side and one of the right."""

    text: str
    parts: tuple[On, ...]

    def __call__(self, one: Part, other: Part) -> bool:
        return all(part(one, other) for part in self.parts)


A_B = Condition("a.k = b.k AND b.x < 40", (same("a", "b", "k"), below("b", 40)))
A_C = Condition("a.k = c.k", (same("a", "c", "k"),))
B_C = Condition("b.k = c.k AND c.x > 10", (same("b", "c", "k"), above("c", 10)))
C_D = Condition("c.k = d.k", (same("c", "d", "k"),))
B_D = Condition("b.k = d.k AND c.x < 45", (same("b", "d", "k"), below("c", 45)))
ACROSS = Condition("b.k = c.k AND d.x > 5 AND a.x < 45", (same("b", "c", "k"), above("d", 5), below("a", 45)))
BAND = Condition("ABS(b.x - c.x) <= 4", (near("b", "c", 4),))


@dataclass(frozen=True)
class Joined:
    """One join of a FROM."""

    left: Joined | str
    kind: str
    right: Joined | str
    on: Condition

    def streams(self) -> list[str]:
        return [name for side in (self.left, self.right) for name in _streams(side)]

    def text(self, within_us: int | None = None, seen: Sequence[str] = ()) -> str:
        """FROM; for DuckDB with the condition that rows are inside the window, which is that of all streams.

        Args:
            seen: the streams that come out of its two sides, if not all.
        """
        left = self.left if isinstance(self.left, str) else f"({self.left.text(within_us)})"
        right = self.right if isinstance(self.right, str) else f"({self.right.text(within_us)})"
        times = ", ".join(f"{name}.ts" for name in seen or self.streams())
        window = "" if within_us is None else f" AND GREATEST({times}) - LEAST({times}) <= {within_us}"
        return f"{left} {self.kind} JOIN {right} ON {self.on.text}{window}"

    def flow(self, oracle: Oracle) -> Flow:
        left, right = (
            oracle.flow(side) if isinstance(side, str) else side.flow(oracle) for side in (self.left, self.right)
        )
        return oracle.join(left, right, self.on, self.kind)


def _streams(side: Joined | str) -> list[str]:
    return [side] if isinstance(side, str) else side.streams()


Shape = Callable[..., Joined]
SHAPES: dict[str, Shape] = {
    "on the right": lambda one, two: Joined("a", one, Joined("b", two, "c", B_C), A_B),
    "by a band": lambda one, two: Joined("a", one, Joined("b", two, "c", BAND), A_B),
    "on both sides": lambda one, two, three: Joined(
        Joined("a", one, "b", A_B), two, Joined("c", three, "d", C_D), ACROSS
    ),
    "inside each other": lambda one, two, three: Joined(
        "a", one, Joined("b", two, Joined("c", three, "d", C_D), B_C), A_B
    ),
    "in a row inside": lambda one, two, three: Joined(
        "a", one, Joined(Joined("b", two, "c", B_C), three, "d", B_D), A_C
    ),
}
CASES = [
    *((shape, (one, two)) for shape in ("on the right", "by a band") for one in OUTER for two in OUTER),
    # Of three kinds each pair of two, at each two places.
    *(
        (shape, (one, two, OUTER[(place + other) % 4]))
        for shape in ("on both sides", "inside each other", "in a row inside")
        for place, one in enumerate(OUTER)
        for other, two in enumerate(OUTER)
    ),
]


def planned(asked: Joined, within: str) -> Cascade:
    items = ", ".join(f"{name}.id AS {name}" for name in asked.streams())
    found = plan_query(f"SELECT ONLINE {items} FROM {asked.text()} {reaching(asked, within)}", STREAMS)
    assert isinstance(found, Cascade)
    return found


def reaching(asked: Joined, within: str) -> str:
    """WITHIN of the streams that are there."""
    if "FOR" not in within:
        return within
    spans = within.removeprefix("WITHIN ").split(", ")
    return "WITHIN " + ", ".join(span for span in spans if span[-1] in asked.streams())


def histories(asked: Joined, seed: int, count: int = 50) -> dict[str, pa.RecordBatch]:
    return {name: rows(20 * seed + place, count, keys=4) for place, name in enumerate(asked.streams())}


def nested_loops(asked: Joined, streams: dict[str, pa.RecordBatch], reaches_us: Sequence[float]) -> Counter[Any]:
    read = {name: batch.to_pylist() for name, batch in streams.items()}
    flow = asked.flow(Oracle(read, dict(zip("abcd", reaches_us, strict=True))))
    return Counter(tuple(part.value(name, "id") for name in asked.streams()) for part in flow)


def in_duckdb(
    asked: Joined, streams: dict[str, pa.RecordBatch], select: str, where: str = "TRUE", seen: Sequence[str] = ()
) -> Counter[Any]:
    """`seen` are the streams that the window of the outer ON is of, if not all."""
    with duckdb.connect() as base:
        for name, batch in streams.items():
            base.register(name, pa.table(batch))
        return Counter(base.sql(f"{select} FROM {asked.text(25, seen)} WHERE {where}").fetchall())


@pytest.mark.parametrize(("shape", "kinds"), CASES)
def test_they_are_joined_as_they_are_written(shape: str, kinds: tuple[str, ...], tmp_path: Path) -> None:
    asked, number = SHAPES[shape](*kinds), CASES.index((shape, kinds))
    streams = histories(asked, number)
    operators = [name for name in BY if shape != "by a band" or name not in ("biclique by hash", "biclique in between")]
    for place, (within, reaches_us) in enumerate((ONE_SPAN, ONE_EACH)):
        wanted = nested_loops(asked, streams, reaches_us)
        assert len(wanted) > 5
        if place == 0:
            assert in_duckdb(asked, streams, f"SELECT {', '.join(f'{name}.id' for name in streams)}") == wanted
        loop = loop_of(planned(asked, within), operators[(number + place) % len(operators)], tmp_path / str(place))
        assert joined(loop, list(streams.values()), 3 + number % 6, repeated=(number + place) % 2 == 0) == wanted


WHERES = ["c.x > 20", "c.id IS NULL", "b.id IS NULL OR a.x < c.x", "COALESCE(a.x, 0) + COALESCE(c.x, 0) > 40"]


@pytest.mark.parametrize("kinds", [("LEFT", "LEFT"), ("RIGHT", "LEFT"), ("FULL", "RIGHT"), ("INNER", "FULL")])
@pytest.mark.parametrize("where", WHERES)
def test_where_filters_what_comes_out(where: str, kinds: tuple[str, str], tmp_path: Path) -> None:
    asked, number = SHAPES["on the right"](*kinds), WHERES.index(where)
    streams = histories(asked, 80 + number, 70)
    items = "a.id AS a, b.id AS b, c.id AS c"
    plan = plan_query(f"SELECT ONLINE {items} FROM {asked.text()} WHERE {where} {ONE_SPAN[0]}", STREAMS)
    loop = loop_of(plan, BY[number], tmp_path)
    assert joined(loop, list(streams.values())) == in_duckdb(asked, streams, f"SELECT {items}", where)


@pytest.mark.parametrize("kinds", [("LEFT", "INNER"), ("RIGHT", "LEFT"), ("FULL", "FULL")], ids=" of ".join)
def test_groups_are_made_of_what_comes_out(kinds: tuple[str, str], tmp_path: Path) -> None:
    asked = SHAPES["on the right"](*kinds)
    streams = histories(asked, 130, 120)
    items = "COUNT(*) AS n, COUNT(c.id) AS found, SUM(b.x) AS total"
    plan = plan_query(
        f"SELECT ONLINE a.k, {items} FROM {asked.text()} {ONE_SPAN[0]} GROUP BY a.k, TUMBLE(40 MICROSECONDS)", STREAMS
    )
    wanted = in_duckdb(asked, streams, f"SELECT a.k, {items}", "TRUE GROUP BY a.k, GREATEST(a.ts, b.ts, c.ts) // 40")
    assert len(wanted) > 10
    assert joined(loop_of(plan, "biclique at random", tmp_path), list(streams.values()), 20) == wanted


@pytest.mark.parametrize("operator", BY)
@pytest.mark.parametrize("kinds", [("LEFT", "LEFT"), ("FULL", "RIGHT"), ("INNER", "FULL")], ids=" of ".join)
def test_every_operator_joins_them_exactly_in_a_job_that_starts_anew(
    operator: str, kinds: tuple[str, str], tmp_path: Path
) -> None:
    asked = SHAPES["on the right"](*kinds)
    streams = histories(asked, 90 + BY.index(operator), 70)
    plan, found = planned(asked, ONE_SPAN[0]), Counter[Any]()
    counts: tuple[dict[str, int], ...] = ()
    positions: tuple[int, ...] = ()
    for number, pieces in enumerate([*cut(list(streams.values()), 6), *[[[] for _ in streams]] * 3]):
        loop = loop_of(plan, operator, tmp_path, slots=1 + number % 3, units=3)
        loop.version, loop.counts, loop.positions = number, counts or loop.counts, positions or loop.positions
        brought = Brought(pieces, 1_000_000 * number, drains=number >= 6)
        for _, part in loop.batch(brought):
            found.update(zip(*(column.to_pylist() for column in part.columns), strict=True))
        loop.commit(brought)
        counts, positions = loop.counts, loop.positions
    assert found == nested_loops(asked, streams, ONE_SPAN[1])


@pytest.mark.parametrize("operator", ["handshake", "ring", "aligned", "coordinated"])
def test_inner_joins_in_brackets_are_joined_by_all_operators(operator: str, tmp_path: Path) -> None:
    asked = SHAPES["on both sides"]("INNER", "INNER", "INNER")
    streams = histories(asked, 95, 80)
    wanted = nested_loops(asked, streams, ONE_EACH[1])
    plan = planned(asked, ONE_EACH[0])
    assert len(wanted) > 5 and plan.shape == "((a, b), (c, d))"
    assert joined(loop_of(plan, operator, tmp_path), list(streams.values())) == wanted


@pytest.mark.parametrize("kind", ["SEMI", "ANTI"])
@pytest.mark.parametrize("inside", [*OUTER, "SEMI", "ANTI"])
def test_rows_are_looked_for_in_brackets(kind: str, inside: str, tmp_path: Path) -> None:
    asked = SHAPES["on the right"](kind, inside)
    streams = histories(asked, 100 + OUTER.index(inside) if inside in OUTER else 106, 70)
    number = [*OUTER, "SEMI", "ANTI"].index(inside)
    plan = plan_query(f"SELECT ONLINE a.id AS a FROM {asked.text()} {ONE_SPAN[0]}", STREAMS)
    seen = ["a", "b"] if inside in ("SEMI", "ANTI") else ["a", "b", "c"]
    wanted = in_duckdb(asked, streams, "SELECT a.id", seen=seen)
    assert len(wanted) > 5
    assert joined(loop_of(plan, BY[number % len(BY)], tmp_path), list(streams.values()), repeated=True) == wanted


@pytest.mark.parametrize("kinds", [("FULL", "LEFT"), ("RIGHT", "FULL"), ("LEFT", "INNER")], ids=" of ".join)
def test_rows_are_final_and_not_older_than_what_the_marks_said(kinds: tuple[str, str], tmp_path: Path) -> None:
    asked = SHAPES["on the right"](*kinds)
    streams = histories(asked, 110, 250)
    wanted = nested_loops(asked, streams, ONE_SPAN[1])
    loop = loop_of(planned(asked, ONE_SPAN[0]).keyed(), "biclique at random", tmp_path)
    units = len(loop.operators[-1].units)
    found: Counter[Any] = Counter()
    stated, risen = None, 0
    for parts in given(loop, list(streams.values()), 15):
        for part in parts:
            assert stated is None or min(part.column(RESULT_TIME).to_pylist()) >= stated
            found.update(zip(*(part.column(name).to_pylist() for name in asked.streams()), strict=True))
        assert found <= wanted
        before, stated = stated, lowest_mark_us(report.output_mark_us for report in loop.reports[-units:])
        risen += stated != before
    assert found == wanted and risen > 5


@pytest.mark.parametrize("mistake", ["none", "no brackets", "an end of both", "a notice is lost"])
def test_mistakes_are_caught(mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Joined("a", "LEFT", Joined("b", "RIGHT", "c", B_C), A_C)
    streams = histories(asked, 120, 120)
    wanted = nested_loops(asked, streams, ONE_SPAN[1])
    joins = asked
    if mistake == "no brackets":
        joins = Joined(Joined("a", "LEFT", "b", A_B), "RIGHT", "c", A_C)
    elif mistake == "an end of both":  # of a row that has no partner, too
        monkeypatch.setattr(tree, "_until", lambda left, right, kind: call("least", left, right))
    elif mistake == "a notice is lost":
        monkeypatch.setattr(Deciding, "_read_notices", lambda self: np.zeros(0, np.int64))
    loop = loop_of(planned(joins, ONE_SPAN[0]), "biclique at random", tmp_path)
    assert (joined(loop, list(streams.values()), 20) == wanted) == (mistake == "none")
