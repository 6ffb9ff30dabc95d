"""The loop over states in memory gives what it gives over files, batch by batch, repeated ones included."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from streamjoin.engine.loop import Brought, Loop
from streamjoin.engine.slot import States
from streamjoin.errors import StateError
from streamjoin.state.memory import MemoryStates
from streamjoin.state.store import StateStore
from tests.conformance.check import NAMES, OPERATORS, expected, pairs_of, plan
from tests.conformance.histories import history
from tests.conformance.local import DRAIN

CONDITION = "equality, then band"


@pytest.mark.parametrize("window", ["20 us", "7 rows", "full history"])
@pytest.mark.parametrize("operator", NAMES)
def test_memory_and_files_give_the_same_batches(operator: str, window: str, tmp_path: Path) -> None:
    chosen, given = OPERATORS[operator], history(5, r=70, s=60)
    query = plan(given, CONDITION, window)
    memory = MemoryStates()
    places: list[Callable[[int], States]] = [lambda _: memory, lambda stage: StateStore(tmp_path, stage, sync=False)]
    in_memory, in_files = (Loop(query, (chosen,), place, 3) for place in places)
    found = []
    for number, pieces in enumerate([*given.cuts(6, 2), *[DRAIN] * chosen.drain_batches]):
        brought = Brought(pieces, 1_000_000 * number, drains=pieces is DRAIN)
        if number % 2:
            list(in_memory.batch(brought))  # lost, as by a crash before its commit
        one, other = list(in_memory.batch(brought)), list(in_files.batch(brought))
        assert one == other
        assert [report.unit for report in in_memory.reports] == [report.unit for report in in_files.reports]
        assert [report.stored_rows for report in in_memory.reports] == [
            report.stored_rows for report in in_files.reports
        ]
        for loop in (in_memory, in_files):
            loop.commit(brought)
        found += [rows for _, rows in one]
    assert in_memory.positions == in_files.positions == (70, 60)
    assert Counter(pairs_of(found)) == Counter(expected(given, CONDITION, query, 6)) != Counter()


@pytest.mark.parametrize("operator", ["biclique 2+3", "handshake 3"])
def test_memory_keeps_no_segment_that_no_state_names(operator: str) -> None:
    chosen, given, memory = OPERATORS[operator], history(5, r=400, s=400), MemoryStates()
    loop = Loop(plan(given, CONDITION, "20 us"), (chosen,), lambda _: memory)
    kept = []
    for number, pieces in enumerate(given.cuts(80)):
        brought = Brought(pieces, 1_000_000 * number)
        list(loop.batch(brought))
        loop.commit(brought)
        named = sum(report.segments for report in loop.reports)
        kept.append((len(memory._segments), named))
    # Those of two versions; expired and merged ones go.
    assert all(there <= 3 * named + 10 for there, named in kept)
    assert max(there for there, _ in kept) < 60


def test_what_is_not_there_is_said() -> None:
    given, memory = history(5, r=20, s=20), MemoryStates()
    query = plan(given, CONDITION, "20 us")
    loop = Loop(query, (OPERATORS["matrix 2x3"],), lambda _: memory)
    (pieces,) = given.cuts(1)
    brought = Brought(pieces, 0)
    list(loop.batch(brought))
    loop.commit(brought)
    fewer = Loop(query, (OPERATORS["matrix 1x1"],), lambda _: memory, version=1)
    with pytest.raises(StateError, match="a state of unit 5, and units of this operator end before 1"):
        list(fewer.batch(brought))
    with pytest.raises(StateError, match="unit 0 has no state of version 7 in memory"):
        list(Loop(query, (OPERATORS["matrix 2x3"],), lambda _: memory, version=7).batch(brought))
