"""One `check` touches the library: run a case by an operator, and compare with the reference."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pytest

from streamjoin.engine.operator import Operator
from streamjoin.operators.biclique import Biclique, Routing
from streamjoin.operators.handshake import Handshake
from streamjoin.operators.matrix import Matrix
from streamjoin.operators.reference import Pairs, count_window_join, full_history_join, time_window_join
from streamjoin.operators.splitjoin import SplitJoin
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.window import CountWindow, TimeWindow
from streamjoin.query import plan_query

from .conditions import CONDITIONS
from .histories import History
from .local import Batch, LocalRun

WINDOWS = {
    "20 us": "WITHIN 20 MICROSECONDS",
    "only after": "WITHIN (0 MICROSECONDS, 50 MICROSECONDS)",
    "same time": "WITHIN 0 SECONDS",
    "full history": "",
    "1 row": "WITHIN 1 ROWS",
    "7 rows": "WITHIN 7 ROWS",
}

ANY: dict[str, Operator] = {
    "biclique 1+1": Biclique(1, 1),
    "biclique 2+3": Biclique(2, 3),
    "matrix 1x1": Matrix(1, 1),
    "matrix 2x3": Matrix(2, 3),
    "splitjoin 1": SplitJoin(1),
    "splitjoin 4": SplitJoin(4),
    "splitjoin 3, runs of 5": SplitJoin(3, 5),
    "handshake 1": Handshake(1, 3),
    "handshake 2": Handshake(2),
    "handshake 3": Handshake(3, 4),
    "handshake 8": Handshake(8, 5),
}
"""Operators for every predicate."""

KEYED: dict[str, Operator] = {
    "biclique by hash 3+2": Biclique(3, 2, Routing.HASH),
    "biclique by contrand 5/2 + 6/3": Biclique(5, 6, Routing.CONTRAND, 2, 3),
    "biclique by contrand 3/1 + 4/4": Biclique(3, 4, Routing.CONTRAND, 1, 4),
}
"""Operators that route by an equality."""

OPERATORS: dict[str, Operator] = {**ANY, **KEYED}
REPRESENTATIVES = ("biclique 2+3", "matrix 2x3", "splitjoin 3, runs of 5", "handshake 3")
"""One of each kind, for the cases that are run with every change; the others take part when all tests are run."""
NAMES = [
    name if name in REPRESENTATIVES or name in KEYED else pytest.param(name, marks=pytest.mark.slow)
    for name in OPERATORS
]
"""Names of all operators, as values of a test's parameter."""

IN_TURN = [pytest.param(True, id="in turn"), pytest.param(False, id="all", marks=pytest.mark.soak)]
"""One value of a test's last parameter meets each pair of the others: so each value meets every value of any other
parameter that has as many. All combinations are for `make soak`."""
T = TypeVar("T")


def in_turn(values: Iterable[T], one: bool, *others: tuple[Iterable[object], object]) -> Iterator[tuple[int, T]]:
    """One of the values with its number, which one depends on the places of the other parameters; or all of them."""
    turn = sum(list(all_values).index(value) for all_values, value in others)
    every = list(enumerate(values))
    return iter([every[turn % len(every)]] if one else every)


def of_each_kind(operators: Iterable[str], values: Iterable[object]) -> list[Any]:
    """(operator, value) as a test's parameters: one operator of each kind with all values, each other one with one.

    Other pairs are for `make soak`.
    """
    found, all_values = [], list(values)
    for place, operator in enumerate(operators):
        in_full = operator in REPRESENTATIVES or operator in KEYED
        for number, value in enumerate(all_values):
            marks = [] if in_full else [pytest.mark.slow]
            if not in_full and number != place % len(all_values):
                marks.append(pytest.mark.soak)
            found.append(pytest.param(operator, value, marks=marks))
    return found


Run = Callable[[LocalRun, Sequence[Batch]], list[pa.RecordBatch]]


def straight(run: LocalRun, batches: Sequence[Batch]) -> list[pa.RecordBatch]:
    """All batches, one after the other."""
    return list(run.run(batches))


def restored(run: LocalRun, batches: Sequence[Batch]) -> list[pa.RecordBatch]:
    """Every batch is done twice, as after a crash before its commit; the first results are lost."""
    results: list[pa.RecordBatch] = []
    for batch in batches:
        run.batch(batch, commit=False)
        results += run.batch(batch)
    return results


def rescaled(run: LocalRun, batches: Sequence[Batch]) -> list[pa.RecordBatch]:
    """Another number of slots in every batch, and between the two attempts of one."""
    results: list[pa.RecordBatch] = []
    for number, batch in enumerate(batches):
        run.slots = 1 + (number + 2) % 4
        run.batch(batch, commit=False)
        run.slots = 1 + number % 3
        results += run.batch(batch)
    return results


RUNS: dict[str, Run] = {"straight": straight, "restored": restored, "rescaled": rescaled}


def plan(
    history: History, condition: str, window: str, *, index: str = "auto", period_us: int | None = None
) -> JoinPlan:
    """The plan of a case."""
    where = CONDITIONS[condition][0]
    text = "SELECT ONLINE r.id AS r_id, s.id AS s_id FROM r, s" + (f" WHERE {where}" if where else "")
    streams = {"r": history.schema("r"), "s": history.schema("s")}
    return plan_query(f"{text} {WINDOWS[window]}", streams, index=index, archive_period_us=period_us)


def expected(history: History, condition: str, plan: JoinPlan, batches: int) -> Pairs:
    """What the definition of the join asks for."""
    match = CONDITIONS[condition][1]
    if isinstance(plan.window, TimeWindow):
        return time_window_join(history.r, history.s, match, plan.window.before_us, plan.window.after_us)
    if isinstance(plan.window, CountWindow):
        return count_window_join(history.arrivals(batches), match, plan.window.rows)
    return full_history_join(history.r, history.s, match)


def pairs_of(results: list[pa.RecordBatch]) -> Pairs:
    """(r id, s id) of every result row."""
    return [
        pair for rows in results for pair in zip(rows.column(0).to_pylist(), rows.column(1).to_pylist(), strict=True)
    ]


def check(
    operator: Operator,
    history: History,
    condition: str,
    window: str,
    *,
    run: Run = straight,
    batches: int = 4,
    pieces: int = 1,
    index: str = "auto",
    period_us: int | None = None,
    slots: int = 2,
) -> LocalRun:
    """Compare an operator with the reference, as multisets: a missing pair shows, and one that is there twice."""
    found_plan = plan(history, condition, window, index=index, period_us=period_us)
    with tempfile.TemporaryDirectory() as folder:
        job = LocalRun(found_plan, operator, Path(folder), slots)
        got = Counter(pairs_of(run(job, [*history.cuts(batches, pieces), *job.drain()])))
    want = Counter(expected(history, condition, found_plan, batches))
    missing, extra = want - got, got - want
    assert not missing and not extra, (
        f"{sum(missing.values())} of {sum(want.values())} pairs missing, such as {sorted(missing)[:3]}; "
        f"{sum(extra.values())} too many, such as {sorted(extra)[:3]}"
    )
    return job
