"""Units that come and go beside what else a biclique does: outer joins, groups, orders, several queries and stages."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from streamjoin.plan.ordering import Ordering
from streamjoin.query import plan_query

from . import test_groups as groups
from . import test_ordering as ordering
from . import test_outer as outer
from . import test_queries as queries
from . import test_starting as starting
from . import test_three_streams as three
from .check import expected, plan
from .elastic import ROUTED, of_loop, scripted
from .histories import history
from .loops import joined, loop_of


@pytest.mark.parametrize("kind", outer.KINDS)
def test_outer_semi_and_anti_joins(kind: str, tmp_path: Path) -> None:
    place = outer.KINDS.index(kind)
    operator = ("biclique by hash", "biclique at random", "biclique in between")[place % 3]
    found = plan_query(
        f"SELECT ONLINE {outer.items(kind)} FROM a {kind} JOIN b ON a.k = b.k WITHIN 20 MICROSECONDS", three.STREAMS
    )
    a, b = three.rows(place, 90), three.rows(place + 500, 80)
    loop = loop_of(found, operator, tmp_path)
    loop.operators = of_loop(loop.operators, place)
    wanted = outer.expected({"a": a, "b": b}, [(kind, "a.k = b.k")], (20, 20))
    assert joined(loop, [a, b], 12, repeated=True) == wanted


@pytest.mark.parametrize("operator", ["biclique by hash", "biclique at random"])
def test_three_streams(operator: str, tmp_path: Path) -> None:
    query, condition, within = three.QUERIES["equalities in a row"]
    found = three.planned(query)
    loop = loop_of(found, operator, tmp_path)
    loop.operators = of_loop(loop.operators, 3)
    streams = three.history(found)
    assert joined(loop, streams, 10, repeated=True) == three.nested_loop(streams, condition, within)


def test_groups(tmp_path: Path) -> None:
    streams = [groups.rows(1), groups.rows(2)]
    loop = groups.loop_of(groups.planned(groups.TUMBLING), tmp_path, operator="biclique")
    loop.operators = of_loop(loop.operators, 4)
    found = groups.by_group(groups.flat(groups.given(loop, streams, repeated=True, batches=10)))
    groups.check(found, groups.wanted(streams, groups.Windowed(40, 40, groups.by_k)))


@pytest.mark.parametrize("order", [Ordering.INNER, Ordering.TOTAL])
def test_results_in_order(order: Ordering, tmp_path: Path) -> None:
    for number, window in enumerate(("20 us", "7 rows")):
        given = history(number, r=60, s=50, time_shape="disordered", delay_us=30)
        operator = scripted(ROUTED["contrand"], number)
        pairs = ordering.ordered(operator, given, "equality", window, order, tmp_path / str(number), slots=2)
        wanted = plan(given, "equality", window)
        assert Counter(pairs) == Counter(expected(given, "equality", wanted, ordering.BATCHES))
        assert ordering.falls(order, pairs, ordering.sequence(given, window == "7 rows")) == []


def test_several_queries_that_come_and_go(tmp_path: Path) -> None:
    given = history(41, r=150, s=140, time_shape="disordered", delay_us=15)
    run, found = starting.run_all(given, scripted(ROUTED["random"], 5), tmp_path, twice=True)
    starting.check(given, run.operator, found)
    assert len({frozenset(report.unit for report in reports) for reports in run.reports}) > 3


def test_several_queries_of_one_key() -> None:
    queries.check(scripted(ROUTED["hash"], 6), history(6, r=90, s=80), queries.EQUAL["one key"], "rescaled", 9)
