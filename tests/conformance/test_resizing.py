"""A handshake chain of another length in mid-window, with tuples on their way: every pair once, and in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamjoin.engine.arranging import in_order
from streamjoin.engine.state import UnitState
from streamjoin.operators.handshake import Handshake
from streamjoin.operators.handshake import chain as chain_module
from streamjoin.operators.handshake.resize import groups, resized
from streamjoin.operators.handshake.state import ChainState, Files
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.window import CountWindow, R, S
from streamjoin.state.store import StateStore

from .check import expected, pairs_of
from .histories import History, history
from .local import DRAIN, LocalRun
from .test_ordering import falls, sequence
from .test_rescaling import long

BATCHES = 14
LENGTHS = {3: 1, 5: 16, 8: 3, 9: 2, 11: 5}
"""Before which batch the chain has how many workers; 4 to begin with."""
Pairs = list[tuple[int, int]]


def resizing(
    given: History, window: str, folder: Path, ordering: Ordering = Ordering.NONE, lengths: Mapping[int, int] = LENGTHS
) -> tuple[LocalRun, Pairs]:
    """The run, and its pairs as they left."""
    run = LocalRun(replace(long(given, window), ordering=ordering), Handshake(4, 3), folder, slots=2)
    pairs: Pairs = []
    on_their_way = 0
    for number, batch in enumerate([*given.cuts(BATCHES, pieces=2), *[DRAIN] * 16]):
        if number in lengths:
            states = [StateStore(folder).load(unit.number, run.version) for unit in run.operator.units]
            on_their_way += sum(any(ChainState.of(state).sent) for state in states)
            run.resize(Handshake(lengths[number], 3 + number))
        results = run.batch(batch)
        pairs += pairs_of(list(in_order(ordering, results) if ordering is not Ordering.NONE else results))
    assert on_their_way, "nothing was on its way when the length changed"
    return run, pairs


def check_files(run: LocalRun) -> None:
    store = StateStore(run.state)
    units = [unit.number for unit in run.operator.units]
    assert [unit for unit in store.units() if store.versions(unit)] == units
    assert store.sweep() == 0
    for unit in units:
        for info in store.load(unit, run.version).named():
            assert store.open_segment(unit, info).num_rows == info.rows


@pytest.mark.parametrize("ordering", [Ordering.NONE, Ordering.TOTAL])
@pytest.mark.parametrize("window", ["20 us", "7 rows", "full history"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_four_workers_then_one_then_sixteen_and_others(
    window: str, ordering: Ordering, seed: int, tmp_path: Path
) -> None:
    given = history(seed, r=150, s=130, time_shape="disordered", delay_us=20)
    run, pairs = resizing(given, window, tmp_path, ordering)
    assert Counter(pairs) == Counter(expected(given, "band", run.plan, BATCHES))
    assert len(pairs) > 50
    if ordering is Ordering.TOTAL:
        places = sequence(given, isinstance(run.plan.window, CountWindow), BATCHES)
        assert falls(ordering, pairs, places) == []
    check_files(run)


@pytest.mark.parametrize("lengths", [{15: 16}, {15: 1}, {15: 2, 16: 7}, {14: 3, 15: 2, 16: 1}])
def test_a_chain_changes_its_length_while_it_drains(lengths: dict[int, int], tmp_path: Path) -> None:
    given = history(5, r=150, s=130)
    run, pairs = resizing(given, "full history", tmp_path, lengths=lengths)
    assert Counter(pairs) == Counter(expected(given, "band", run.plan, BATCHES))


def test_a_length_may_change_twice_without_a_batch_in_between(tmp_path: Path) -> None:
    given = history(6, r=150, s=130)
    run = LocalRun(long(given, "full history"), Handshake(5, 3), tmp_path)
    pairs: Pairs = []
    for number, batch in enumerate([*given.cuts(BATCHES), *[DRAIN] * 6]):
        if number == 6:
            for workers in (3, 2, 6, 1, 4):
                run.resize(Handshake(workers, 2))
        pairs += pairs_of(run.batch(batch))
    assert Counter(pairs) == Counter(expected(given, "band", run.plan, BATCHES))


def joining(state: UnitState, unmet: tuple[tuple[Files, Files], ...]) -> UnitState:
    return replace(state, values=replace(ChainState.of(state), unmet=unmet).values)


def at_rest(state: UnitState) -> tuple[Files, Files]:
    r, s = (tuple(info.file for info in ChainState.of(state).at_rest(side)) for side in (R, S))
    return r, s


def without_a_join(states: Mapping[int, UnitState], workers: int) -> dict[int, UnitState]:
    return {worker: joining(state, ()) for worker, state in resized(states, workers).items()}


def everything_joins(states: Mapping[int, UnitState], workers: int) -> dict[int, UnitState]:
    """All that lies in a merged worker, as if it had just come in."""
    after = resized(states, workers)
    return {
        worker: joining(state, (at_rest(state),) if ChainState.of(state).unmet else ())
        for worker, state in after.items()
    }


@pytest.mark.parametrize(("naive", "has_more"), [(without_a_join, False), (everything_joins, True)])
def test_merged_workers_that_join_too_little_or_too_much_are_caught(
    naive: Callable[..., Any], has_more: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(chain_module, "resized", naive)
    given = history(0, r=150, s=130)
    run, pairs = resizing(given, "full history", tmp_path)
    found, wanted = Counter(pairs), Counter(expected(given, "band", run.plan, BATCHES))
    assert found - wanted if has_more else wanted - found


@pytest.mark.parametrize("before", [1, 2, 3, 7])
@pytest.mark.parametrize("after", [1, 2, 3, 7, 16])
def test_neighbours_stay_neighbours_and_ends_stay_ends(before: int, after: int) -> None:
    found = groups(before, after)
    assert len(found) == after
    assert [old for group in found for old in group] == list(range(before))
    assert 0 in found[0]
    assert before == 1 or before - 1 in found[-1]
