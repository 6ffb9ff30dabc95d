"""Results leave in the order that was promised: checked against arrival, not against the numbers the engine gave."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from streamjoin.engine.operator import Operator
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.window import CountWindow
from streamjoin.spark.gather import Gathering, run_rows

from .check import KEYED, OPERATORS, expected, of_each_kind, pairs_of, plan
from .histories import History, cut, history
from .local import LocalRun

BATCHES = 5
Pair = tuple[int, int]


def sequence(given: History, counted: bool, batches: int = BATCHES) -> dict[tuple[str, int], int]:
    """(stream, id) -> place in the one sequence of both streams."""
    if counted:
        order = given.arrivals(batches)
    else:
        order = [
            (name, row)
            for r, s in zip(cut(given.r, batches), cut(given.s, batches), strict=True)
            for name, rows in (("r", r), ("s", s))
            for row in rows
        ]
    return {(name, row["id"]): place for place, (name, row) in enumerate(order)}


def falls(ordering: Ordering, pairs: list[Pair], places: dict[tuple[str, int], int]) -> list[tuple[Pair, Pair]]:
    """Neighbours that break the promise."""
    found = []
    last: dict[str, tuple[tuple[int, ...], Pair]] = {}
    for r, s in pairs:
        r_place, s_place = places["r", r], places["s", s]
        newer, older = max(r_place, s_place), min(r_place, s_place)
        # Each stream's results are a sequence of their own, unless the order is total.
        of = "both" if ordering is Ordering.TOTAL else "r" if newer == r_place else "s"
        mark = (newer,) if ordering is Ordering.OUTER else (newer, older)
        if of in last and mark < last[of][0]:
            found.append((last[of][1], (r, s)))
        last[of] = (mark, (r, s))
    return found


def ordered(
    operator: Operator, given: History, condition: str, window: str, ordering: Ordering, folder: Path, slots: int
) -> list[Pair]:
    """The pairs in the order in which the gather stage gives them."""
    wanted = replace(plan(given, condition, window), ordering=ordering)
    run = LocalRun(wanted, operator, folder, slots)
    pairs: list[Pair] = []
    reached = 0
    for batch in [*given.cuts(BATCHES, pieces=2), *run.drain()]:
        gatherings = [Gathering((wanted,)) for _ in range(slots)]
        results = run.batch(batch)
        assert run.span.start == reached, "batches follow each other"
        reached = run.span.stop
        for rows in results:
            for row in run_rows(rows, 0, run.span, slots):
                assert not list(gatherings[row.column("slot")[0].as_py()].receive(iter([row])))
        for gathering in gatherings:
            pairs += pairs_of(list(gathering.results(0)))
    assert reached == len(given.r) + len(given.s)
    return pairs


@pytest.mark.parametrize(
    ("operator", "ordering"), of_each_kind(OPERATORS, [Ordering.OUTER, Ordering.INNER, Ordering.TOTAL])
)
def test_results_leave_in_the_promised_order(operator: str, ordering: Ordering, tmp_path: Path) -> None:
    condition, found = ("equality" if operator in KEYED else "band"), 0
    for number, window in enumerate(("20 us", "7 rows", "full history")):
        given = history(number, r=60, s=50, time_shape="disordered", delay_us=30)
        folder = tmp_path / str(number)
        pairs = ordered(OPERATORS[operator], given, condition, window, ordering, folder, slots=1 + number)
        wanted = plan(given, condition, window)
        assert Counter(pairs) == Counter(expected(given, condition, wanted, BATCHES))
        assert falls(ordering, pairs, sequence(given, isinstance(wanted.window, CountWindow))) == []
        found += len(pairs)
    assert found > 100


def test_the_checker_notices_two_results_that_changed_places(tmp_path: Path) -> None:
    given = history(1, r=60, s=50)
    pairs = ordered(OPERATORS["splitjoin 4"], given, "band", "7 rows", Ordering.TOTAL, tmp_path, 2)
    places = sequence(given, counted=True)
    of = [max(places["r", r], places["s", s]) for r, s in pairs]
    for place, (one, other) in enumerate(pairwise(of)):
        swapped = [*pairs[:place], pairs[place + 1], pairs[place], *pairs[place + 2 :]]
        assert falls(Ordering.TOTAL, swapped, places)
        same_stream = (places["r", pairs[place][0]] == one) == (places["r", pairs[place + 1][0]] == other)
        if same_stream:
            assert falls(Ordering.INNER, swapped, places)
        assert bool(falls(Ordering.OUTER, swapped, places)) == (same_stream and one != other)


def test_without_an_order_results_are_out_of_order(tmp_path: Path) -> None:
    """Otherwise the tests above would show nothing."""
    given = history(2, r=60, s=50)
    wanted = plan(given, "band", "full history")
    run = LocalRun(wanted, OPERATORS["splitjoin 4"], tmp_path, 2)
    pairs = [pair for batch in given.cuts(BATCHES) for pair in pairs_of(run.batch(batch))]
    assert falls(Ordering.OUTER, pairs, sequence(given, counted=False))
