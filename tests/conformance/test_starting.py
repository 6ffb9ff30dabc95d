"""Queries that are started and stopped over stored tuples (ESJ: tasks come and go on a running job)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamjoin.engine import requery
from streamjoin.engine.arranging import in_order
from streamjoin.engine.coverage import check_starts
from streamjoin.engine.operator import Operator
from streamjoin.operators.biclique import Biclique
from streamjoin.operators.handshake import Handshake
from streamjoin.operators.handshake.started import StartedSegment
from streamjoin.operators.splitjoin import SplitJoin
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.sharing import Lasting, SharedJoin
from streamjoin.query import plan_query
from streamjoin.state.store import StateStore

from .check import ANY, KEYED, NAMES, OPERATORS, WINDOWS, expected, pairs_of, plan
from .conditions import CONDITIONS
from .histories import COLUMNS, History, history
from .kills import killed_at_every_rename
from .local import DRAIN, LocalRun
from .test_ordering import falls, sequence

BATCHES = 12
Query = tuple[str, str]
"""A condition and a window."""
ALL = {"base": ("equality", "full history"), "near": ("band", "20 us"), "both": ("two bands", "full history"),
       "some": ("selection on both sides", "only after"), "text": ("text equality", "20 us")}  # fmt: skip
BY_ROWS = {"base": ("band", "7 rows"), "near": ("everything", "1 row"), "both": ("two bands", "7 rows"),
           "some": ("selection on both sides", "1 row"), "text": ("text equality", "7 rows")}  # fmt: skip
BY_KEY = {"base": ("null-safe equality", "full history"), "near": ("equality", "20 us"),
          "both": ("two equalities", "only after"),
          "some": ("equality, then band", "20 us"), "text": ("equality", "same time")}  # fmt: skip
TIMES: Mapping[int, Sequence[str]] = {
    0: ("near", "base"),
    3: ("near", "base", "both"),
    5: ("text", "both", "base", "some"),
    6: ("base", "some", "near2", "text"),
    9: ("some", "base"),
}
"""Before which batch there are which queries; `near2` is `near`, which was stopped and is started again."""


def named_plan(given: History, query: Query, ordering: Ordering = Ordering.NONE) -> JoinPlan:
    """A query that keeps all columns of both streams, so that others can be started over its tuples."""
    columns = ", ".join(f"{name}.{column} AS {name}_{column}" for column in COLUMNS.names for name in "rs")
    where = CONDITIONS[query[0]][0]
    text = f"SELECT ONLINE {columns} FROM r, s" + (f" WHERE {where} " if where else " ") + WINDOWS[query[1]]
    return replace(plan_query(text, {"r": given.schema("r"), "s": given.schema("s")}), ordering=ordering)


def plans(given: History, queries: Mapping[str, Query], times: Mapping[int, Sequence[str]], ordering: Ordering) -> Any:
    """At which batch there is which plan."""
    started: frozenset[str] = frozenset()
    before: Sequence[str] = times[0]
    for at, names in times.items():
        started |= frozenset(names) - frozenset(before)
        ones = tuple(named_plan(given, queries[name.rstrip("2")], ordering) for name in names)
        yield at, SharedJoin(tuple(names), ones, started=started)
        before = names


def run_all(
    given: History,
    operator: Operator,
    folder: Path,
    queries: Mapping[str, Query] = ALL,
    times: Mapping[int, Sequence[str]] = TIMES,
    ordering: Ordering = Ordering.NONE,
    twice: bool = False,
) -> tuple[LocalRun, dict[str, list[tuple[int, int]]]]:
    """The run, and each query's pairs as they left."""
    found = dict(plans(given, queries, times, ordering))
    run = LocalRun(found[0], operator, folder, slots=2)
    pairs: dict[str, list[tuple[int, int]]] = {name: [] for names in times.values() for name in names}
    for number, batch in enumerate([*given.cuts(BATCHES, pieces=2), *run.drain()]):
        if number in found and number:
            run.requery(found[number])
        if twice:
            run.batch(batch, commit=False)
        results = run.batch(batch)
        for query, name in enumerate(run.plan.names_of_queries):
            mine = [rows for of, rows in zip(run.of_queries, results, strict=True) if of == query]
            pairs[name] += pairs_of(list(in_order(ordering, mine) if ordering is not Ordering.NONE else mine))
    return run, pairs


def batches_of(given: History) -> dict[tuple[str, int], int]:
    """(stream, id) -> the batch that brought it."""
    return {
        (name, int(number)): at
        for at, both in enumerate(given.cuts(BATCHES))
        for name, (rows,) in zip("rs", both, strict=True)
        for number in rows.column("id").to_pylist()
    }


def wanted(given: History, name: str, query: Query, times: Mapping[int, Sequence[str]]) -> Counter[tuple[int, int]]:
    """The reference: pairs whose later tuple came while the query was there."""
    brought = batches_of(given)
    there = [at for at in range(BATCHES) if name in times[max(start for start in times if start <= at)]]
    return Counter(
        (r, s)
        for r, s in expected(given, query[0], named_plan(given, query), BATCHES)
        if max(brought["r", r], brought["s", s]) in there
    )


def check(
    given: History,
    operator: Operator,
    found: Mapping[str, list[tuple[int, int]]],
    queries: Mapping[str, Query] = ALL,
    times: Mapping[int, Sequence[str]] = TIMES,
    least: int = 100,
) -> None:
    last = times[max(times)]
    for name, pairs in found.items():
        want, got = wanted(given, name, queries[name.rstrip("2")], times), Counter(pairs)
        assert not got - want, f"{name}: {len(got - want)} too many"
        # Pairs that a chain has on their way to each other when their query is stopped are not found any more.
        if name in last or not isinstance(operator, Handshake):
            assert got == want, f"{name}: {len(want - got)} missing"
    assert sum(map(len, found.values())) > least


def check_files(run: LocalRun) -> None:
    store = StateStore(run.state)
    assert store.sweep() == 0
    for unit in run.operator.units:
        for info in store.load(unit.number, run.version).named():
            assert store.open_segment(unit.number, info).num_rows == info.rows


ANYWHERE = [name for name in NAMES if (name if isinstance(name, str) else name.values[0]) in ANY]


@pytest.mark.parametrize("queries", [ALL, BY_ROWS], ids=["by time", "by rows"])
@pytest.mark.parametrize("operator", ANYWHERE)
def test_queries_come_and_go(operator: str, queries: Mapping[str, Query], tmp_path: Path) -> None:
    given = history(41, r=150, s=140, time_shape="disordered", delay_us=15)
    run, found = run_all(given, OPERATORS[operator], tmp_path, queries)
    check(given, run.operator, found, queries)
    check_files(run)


@pytest.mark.parametrize("operator", KEYED)
def test_queries_of_one_key_come_and_go(operator: str, tmp_path: Path) -> None:
    given = history(42, r=150, s=140)
    run, found = run_all(given, KEYED[operator], tmp_path, BY_KEY)
    check(given, run.operator, found, BY_KEY)


SLIM = {
    "cells": {"base": ("equality", "full history"), "near": ("equality", "20 us")},
    "keys": {"base": ("band", "full history"), "near": ("band", "20 us")},
    "a grid": {"base": ("two bands", "full history"), "near": ("two bands", "only after")},
    "cells and keys": {"base": ("equality, then band", "full history"), "near": ("equality, then band", "only after")},
    "by rows": {"base": ("equality", "7 rows"), "near": ("equality", "1 row")},
}


@pytest.mark.parametrize("operator", ["biclique 1+1", "biclique 2+3", "matrix 2x3", "handshake 3"])
@pytest.mark.parametrize("case", SLIM)
def test_an_index_is_taken_from_another_where_its_columns_are_not_stored(
    operator: str, case: str, tmp_path: Path
) -> None:
    given = history(53, r=150, s=140, time_shape="disordered", delay_us=15)
    base, near = (plan(given, *SLIM[case][name]) for name in ("base", "near"))
    before = SharedJoin(("base",), (base,), Lasting(base.names))
    after = SharedJoin(("near", "base"), (near, base), before.lasting, frozenset({"near"}))
    check_starts(after, before, OPERATORS[operator], (False, False))
    times = {0: ("base",), 5: ("near", "base"), 9: ("near",)}
    run = LocalRun(before, OPERATORS[operator], tmp_path)
    found: dict[str, list[tuple[int, int]]] = {"base": [], "near": []}
    for number, batch in enumerate([*given.cuts(BATCHES), *run.drain()]):
        if number == 5:
            run.requery(after)
        if number == 9:
            run.requery(SharedJoin(("near",), (near,), before.lasting, after.started))
        results = run.batch(batch)
        for query, name in enumerate(run.plan.names_of_queries):
            found[name] += pairs_of([rows for of, rows in zip(run.of_queries, results, strict=True) if of == query])
    assert found["near"]
    check(given, run.operator, found, SLIM[case], times, least=20)


@pytest.mark.parametrize("operator", ["biclique 2+3", "handshake 3"])
@pytest.mark.parametrize("ordering", [Ordering.OUTER, Ordering.TOTAL])
def test_results_stay_in_order(operator: str, ordering: Ordering, tmp_path: Path) -> None:
    given = history(43, r=150, s=140)
    run, found = run_all(given, OPERATORS[operator], tmp_path, ordering=ordering)
    check(given, run.operator, found)
    for pairs in found.values():
        assert falls(ordering, pairs, sequence(given, False, BATCHES)) == []


@pytest.mark.slow
@pytest.mark.parametrize("operator", ["biclique 2+3", "splitjoin 3, runs of 5", "handshake 3"])
def test_repeated_batches_change_nothing(operator: str, tmp_path: Path) -> None:
    given = history(44, r=150, s=140)
    _, found = run_all(given, OPERATORS[operator], tmp_path, twice=True)
    check(given, OPERATORS[operator], found)


def test_a_chain_that_does_not_mark_stored_tuples_finds_pairs_of_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(StartedSegment, "over", staticmethod(lambda segment, bit, probing: segment))
    given = history(41, r=150, s=140)
    times = {0: ("base",), 5: ("base", "both")}
    _, found = run_all(given, Handshake(3, 4), tmp_path, times=times)
    want = wanted(given, "both", ALL["both"], times)
    assert Counter(found["both"]) - want and Counter(found["base"]) == wanted(given, "base", ALL["base"], times)


@pytest.mark.parametrize("operator", ["biclique 2+3", "matrix 2x3", "handshake 3"])
def test_a_query_that_sees_no_stored_tuples_is_caught(
    operator: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = requery.select_by

    def none(*given: Any) -> Any:
        found = real(*given)
        return replace(found, joinable=np.zeros_like(found.joinable))

    monkeypatch.setattr(requery, "select_by", none)
    given = history(41, r=150, s=140)
    times = {0: ("base",), 5: ("base", "both")}
    _, found = run_all(given, OPERATORS[operator], tmp_path, times=times)
    want = wanted(given, "both", ALL["both"], times)
    assert want - Counter(found["both"]) and not Counter(found["both"]) - want


@pytest.mark.parametrize("operator", [Biclique(2, 2), SplitJoin(3), Handshake(3, 8)], ids=str)
def test_what_only_a_stopped_query_needed_goes(operator: Operator, tmp_path: Path) -> None:
    given = history(45, r=200, s=200)
    low, high = (
        plan_query(
            "SELECT ONLINE r.id AS r_id, s.id AS s_id, r.n FROM r, s "
            f"WHERE r.k = s.k AND r.x {less} 50 AND s.x {less} 50",
            {"r": given.schema("r"), "s": given.schema("s")},
        )
        for less in ("<", ">=")
    )
    both = SharedJoin(("low", "high"), (low, high))
    one = SharedJoin(("low",), (low,))
    run = LocalRun(both, operator, tmp_path / "stopped")
    alone = LocalRun(one, operator, tmp_path / "alone")
    cuts = given.cuts(6)
    pairs: list[Counter[tuple[int, int]]] = [Counter(), Counter()]
    for number, batch in enumerate([*cuts, *run.drain()]):
        if number == 4:
            before = stored(run)
            run.requery(one)
            after = stored(run)
        results = run.batch(batch)
        pairs[0].update(pairs_of([rows for of, rows in zip(run.of_queries, results, strict=True) if of == 0]))
        pairs[1].update(pairs_of(alone.batch(batch)))
    assert pairs[0] == pairs[1] and pairs[0]
    # Those of `high` are gone, and with one query its order is the tuples' own: no row numbers.
    assert 0 < after[0] < before[0] and after[1] / after[0] < before[1] / before[0]
    assert stored(run)[0] == stored(alone)[0]


def stored(run: LocalRun) -> tuple[int, int]:
    """Tuples in the state, and their bytes in memory."""
    store = StateStore(run.state, sync=False)
    found = [
        (info.rows, store.open_segment(unit.number, info).nbytes)
        for unit in run.operator.units
        for info in store.load(unit.number, run.version).tuples()
    ]
    return sum(rows for rows, _ in found), sum(size for _, size in found)


def test_all_queries_may_be_others_and_what_none_wants_goes(tmp_path: Path) -> None:
    given = history(46, r=100, s=100)
    nobody = named_plan(given, ("nothing", "20 us"))
    nobody = replace(
        nobody, predicate=replace(nobody.predicate, selections=named_plan(given, ALL["some"]).predicate.selections)
    )
    run = LocalRun(SharedJoin(("base",), (named_plan(given, ALL["base"]),)), Biclique(2, 2), tmp_path)
    first, *_ = given.cuts(2)
    run.batch(first)
    rows, _ = stored(run)
    run.requery(SharedJoin(("some",), (nobody,), started=frozenset({"some"})))
    assert 0 < stored(run)[0] < rows


@pytest.mark.slow
@pytest.mark.parametrize("operator", ["biclique 2+3", "handshake 3"])
def test_a_start_that_is_killed_while_it_writes_anew_is_finished_or_begun_again(
    operator: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = history(47, r=80, s=80)
    cuts = given.cuts(BATCHES)
    first, second = (plan for _, plan in plans(given, ALL, {0: ("near", "base"), 5: ("base", "both")}, Ordering.NONE))

    def begun(folder: Path) -> LocalRun:
        run = LocalRun(first, OPERATORS[operator], folder)
        for batch in cuts[:5]:
            run.batch(batch)
        return run

    moved, again = killed_at_every_rename(begun, lambda run: run.requery(second), tmp_path, monkeypatch)
    assert 5 < len(again) < moved - 3


def test_before_the_first_batch_there_is_nothing_to_write(tmp_path: Path) -> None:
    given = history(48, r=40, s=40)
    first, second = (plan for _, plan in plans(given, ALL, {0: ("near",), 1: ("near", "base")}, Ordering.NONE))
    run = LocalRun(first, Biclique(1, 1), tmp_path)
    batches = given.cuts(3)
    run.batch(batches[0], commit=False)
    run.requery(second)
    pairs: Counter[tuple[int, int]] = Counter()
    for batch in batches:
        results = run.batch(batch)
        pairs.update(pairs_of([rows for of, rows in zip(run.of_queries, results, strict=True) if of == 1]))
    assert pairs == Counter(expected(given, "equality", second.queries[1], 3))


def test_a_chain_of_another_length_knows_who_was_there(tmp_path: Path) -> None:
    """Merged workers join what had not met; of a query that was started meanwhile these are no results."""
    given = history(49, r=150, s=140)
    times = {0: ("near", "base"), 5: ("near", "base", "both")}
    found = dict(plans(given, ALL, times, Ordering.NONE))
    run = LocalRun(found[0], Handshake(4, 3), tmp_path)
    pairs: dict[str, list[tuple[int, int]]] = {"near": [], "base": [], "both": []}
    for number, batch in enumerate([*given.cuts(BATCHES), *[DRAIN] * 6]):
        if number == 5:
            run.resize(Handshake(2, 3))
            run.requery(found[5])
            run.resize(Handshake(5, 3))
        if number == 7:
            run.resize(Handshake(1, 3))
        results = run.batch(batch)
        for query, name in enumerate(run.plan.names_of_queries):
            pairs[name] += pairs_of([rows for of, rows in zip(run.of_queries, results, strict=True) if of == query])
    check(given, run.operator, pairs, times=times)
