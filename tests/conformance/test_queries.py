"""Several queries in one job: each gets what it would get alone, and tuples are stored once (ESJ: tasks)."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from streamjoin.engine.operator import Operator
from streamjoin.index.segment import SegmentInfo
from streamjoin.operators.biclique import Biclique
from streamjoin.operators.handshake import Handshake
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.sharing import SharedJoin
from streamjoin.plan.window import R
from streamjoin.query import plan_query
from streamjoin.state.store import StateStore

from .check import ANY, KEYED, OPERATORS, RUNS, expected, of_each_kind, pairs_of, plan
from .histories import History, history
from .local import Batch, LocalRun

Case = tuple[tuple[str, str], ...]
"""A condition and a window for each query."""

MIXED: dict[str, Case] = {
    "one window each": (("equality", "20 us"), ("band", "only after"), ("everything", "same time")),
    "with full history": (("two bands", "20 us"), ("text equality", "full history"), ("nothing", "20 us")),
    "selections": (("selection on both sides", "20 us"), ("either or", "20 us"), ("band", "20 us")),
    "twice the same": (("band", "20 us"), ("band", "20 us")),
    "by rows": (("equality", "1 row"), ("everything", "7 rows"), ("float band", "1 row")),
}
EQUAL: dict[str, Case] = {
    "one key": (("equality", "20 us"), ("two equalities", "only after"), ("equality, then band", "20 us")),
    "one key, which one query joins where it is NULL": (
        *(("equality", "20 us"), ("null-safe equality", "only after"), ("null-safe equality", "full history")),
    ),
    "one key by rows": (("two equalities", "1 row"), ("equality", "7 rows")),
}
"""All queries have the equality r.k = s.k."""


def found(job: LocalRun, batches: Sequence[Batch], run: str) -> list[Counter[tuple[int, int]]]:
    """The pairs of each query."""
    pairs = [Counter[tuple[int, int]]() for _ in job.plan.queries]

    def batch(pieces: Batch, *, commit: bool = True) -> None:
        results = job.batch(pieces, commit=commit)
        if commit:
            for query, rows in zip(job.of_queries, results, strict=True):
                pairs[query].update(pairs_of([rows]))

    for number, pieces in enumerate(batches):
        if run != "straight":
            job.slots = 1 + (number + 2) % 4 if run == "rescaled" else job.slots
            batch(pieces, commit=False)
            job.slots = 1 + number % 3 if run == "rescaled" else job.slots
        batch(pieces)
    return pairs


def check(operator: Operator, given: History, case: Case, run: str = "straight", batches: int = 4) -> LocalRun:
    """Compare every query with its own reference."""
    plans = tuple(plan(given, condition, window) for condition, window in case)
    shared = SharedJoin(tuple(f"q{number}" for number in range(len(plans))), plans)
    with tempfile.TemporaryDirectory() as folder:
        job = LocalRun(shared, operator, Path(folder))
        got = found(job, [*given.cuts(batches, 2), *job.drain()], run)
    for (condition, window), one, pairs in zip(case, plans, got, strict=True):
        want = Counter(expected(given, condition, one, batches))
        assert pairs == want, f"{condition} {window}: {len(want - pairs)} missing, {len(pairs - want)} too many"
    return job


@pytest.mark.parametrize(("operator", "case"), of_each_kind(ANY, MIXED))
def test_each_query_gets_what_it_would_get_alone(operator: str, case: str) -> None:
    check(OPERATORS[operator], history(31, r=120, s=120), MIXED[case])


@pytest.mark.parametrize("operator", KEYED)
@pytest.mark.parametrize("case", EQUAL)
def test_queries_with_one_key_are_routed_by_it(operator: str, case: str) -> None:
    check(KEYED[operator], history(32, r=120, s=120), EQUAL[case])


@pytest.mark.parametrize("operator", ["biclique 2+3", "splitjoin 3, runs of 5", "handshake 3"])
@pytest.mark.parametrize("run", [name for name in RUNS if name != "straight"])
def test_crashes_and_rescaling_change_nothing(operator: str, run: str) -> None:
    check(OPERATORS[operator], history(33, r=120, s=120), MIXED["one window each"], run, batches=6)


@pytest.mark.slow
@pytest.mark.parametrize("operator", ["biclique 2+3", "handshake 3"])
def test_small_segments_are_merged_with_their_indexes(operator: str) -> None:
    check(OPERATORS[operator], history(34, r=300, s=300), MIXED["with full history"], batches=24)


def stored(queries: int, operator: Operator) -> tuple[LocalRun, list[SegmentInfo]]:
    """A job with so many queries, in the middle of its input, and what it stores of both streams."""
    given = history(35, r=200, s=200)
    plans = tuple(plan(given, "band", "full history") for _ in range(queries))
    shared = SharedJoin(tuple(f"q{number}" for number in range(queries)), plans) if queries > 1 else plans[0]
    with tempfile.TemporaryDirectory() as folder:
        job = LocalRun(shared, operator, Path(folder))
        list(job.run(given.cuts(4)))
        states = [StateStore(Path(folder), sync=False).load(unit.number, 4) for unit in operator.units]
    return job, [info for state in states for info in state.tuples()]


@pytest.mark.parametrize("operator", [Biclique(2, 2), Handshake(3, 8)], ids=str)
def test_tuples_are_stored_and_sent_once_however_many_queries_there_are(operator: Operator) -> None:
    one, stored_one = stored(1, operator)
    four, stored_four = stored(4, operator)
    assert sum(info.rows for info in stored_one) == sum(info.rows for info in stored_four)
    for name in ("received", "forwarded"):
        ones, fours = (
            [
                getattr(report, name).get(kind)
                for batch in job.reports
                for report in batch
                for kind in ("both", "tuples")
            ]
            for job in (one, four)
        )
        assert ones == fours, name
    # Indexes are four: every query has all tuples in its own, here.
    assert {info.members for info in stored_four} == {(info.rows,) * 4 for info in stored_four}
    assert all(not info.members for info in stored_one)


def test_an_index_lists_only_what_its_query_selects() -> None:
    given = history(36, r=200, s=200)
    texts = [f"SELECT ONLINE r.id AS a, s.id AS b FROM r, s WHERE r.k = s.k AND r.x {less} 50 AND s.x {less} 50"
             for less in ("<", ">=")]  # fmt: skip
    schemas = {"r": given.schema("r"), "s": given.schema("s")}
    plans = tuple(plan_query(text, schemas) for text in texts)
    with tempfile.TemporaryDirectory() as folder:
        job = LocalRun(SharedJoin(("low", "high"), plans), Biclique(1, 1), Path(folder))
        got = found(job, given.cuts(3), "straight")
        state = StateStore(Path(folder), sync=False).load(0, 3)
    members = [sum(info.members[query] for info in state.tuples(R)) for query in (0, 1)]
    with_key = [row for row in given.r if row["k"] is not None]
    assert members == [sum(row["x"] < 50 for row in with_key), sum(row["x"] >= 50 for row in with_key)]
    assert min(members) > 20
    # Without a key a tuple is for neither.
    assert job.counts["null_keys"] == len(given.r) + len(given.s) - job.counts["routed"] > 0
    for pairs, limit in zip(got, (lambda x: x < 50, lambda x: x >= 50), strict=True):
        want = Counter(
            (r["id"], s["id"])
            for r in given.r for s in given.s
            if r["k"] is not None and r["k"] == s["k"] and limit(r["x"]) and limit(s["x"])
        )  # fmt: skip
        assert pairs == want and want


def test_names_in_a_query_are_its_own() -> None:
    given = history(37, r=80, s=80)
    schemas = {"r": given.schema("r"), "s": given.schema("s")}
    texts = [
        "SELECT ONLINE r.id AS a, s.id AS b FROM r, s WHERE r.k = s.k WITHIN 20 MICROSECONDS",
        "SELECT ONLINE x.id AS a, y.id AS b FROM r x, s y WHERE y.k = x.k WITHIN 20 MICROSECONDS",
    ]
    shared = SharedJoin(("plain", "renamed"), tuple(plan_query(text, schemas) for text in texts))
    assert len(shared.predicate.equalities) == 1
    with tempfile.TemporaryDirectory() as folder:
        job = LocalRun(shared, KEYED["biclique by hash 3+2"], Path(folder))
        plain, renamed = found(job, given.cuts(3), "straight")
    assert plain and plain == renamed


@pytest.mark.parametrize("ordering", [Ordering.OUTER, Ordering.TOTAL])
def test_sequence_numbers_are_those_of_the_streams(ordering: Ordering) -> None:
    given = history(38, r=80, s=80)
    plans = tuple(replace(plan(given, name, "20 us"), ordering=ordering) for name in ("band", "everything"))
    alone, together = [], []
    for chosen, out in ((plans[0], alone), (SharedJoin(("a", "b"), plans), together)):
        with tempfile.TemporaryDirectory() as folder:
            job = LocalRun(chosen, Biclique(2, 2), Path(folder))
            for pieces in given.cuts(4):
                results = job.batch(pieces)
                out += [
                    row for query, rows in zip(job.of_queries, results, strict=True) if query == 0
                    for row in rows.to_pylist()
                ]  # fmt: skip
    key = sorted(alone[0])
    assert alone and sorted(alone, key=lambda row: [row[name] for name in key]) == sorted(
        together, key=lambda row: [row[name] for name in key]
    )


def test_longest_window_and_period_are_kept() -> None:
    given = history(39, r=10, s=10)
    plans = tuple(plan(given, "band", window) for window in ("20 us", "only after"))
    shared = SharedJoin(("a", "b"), plans)
    assert str(shared.window) == "within (20 us before, 50 us after)"
    assert shared.archive_period == max(period for one in plans if (period := one.archive_period))
