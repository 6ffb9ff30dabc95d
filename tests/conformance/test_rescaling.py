"""SplitJoin with more cores or fewer in mid-window: the same pairs in the same order, and shares that even out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from streamjoin.engine.arranging import in_order
from streamjoin.engine.state import UnitState
from streamjoin.errors import StateError
from streamjoin.operators.splitjoin import SplitJoin, router
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.window import CountWindow, R, S, TimeWindow
from streamjoin.state import rewrite
from streamjoin.state.store import StateStore

from .check import expected, pairs_of, plan
from .histories import History, history
from .kills import killed_at_every_rename
from .local import LocalRun
from .test_ordering import falls, sequence

BATCHES = 12
STEPS = {4: 6, 8: 3}
"""Before which batch there are how many cores; 4 to begin with."""


def long(given: History, window: str) -> JoinPlan:
    """A plan whose windows reach over several batches."""
    found = plan(given, "band", window)
    match found.window:
        case TimeWindow():
            return replace(found, window=TimeWindow(200, 200), archive_period_us=50)
        case CountWindow():
            return replace(found, window=CountWindow(34))
    return found


def rescaled(
    given: History, window: str, folder: Path, ordering: Ordering = Ordering.NONE
) -> tuple[LocalRun, list[tuple[int, int]]]:
    """The run, and its pairs as they left."""
    run = LocalRun(replace(long(given, window), ordering=ordering), SplitJoin(4), folder, slots=2)
    pairs: list[tuple[int, int]] = []
    for number, batch in enumerate(given.cuts(BATCHES, pieces=2)):
        if number in STEPS:
            run.resize(SplitJoin(STEPS[number], 2))
        results = run.batch(batch)
        in_turn = in_order(ordering, results) if ordering is not Ordering.NONE else iter(results)
        pairs += pairs_of(list(in_turn))
    return run, pairs


@pytest.mark.parametrize("ordering", [Ordering.NONE, Ordering.TOTAL])
@pytest.mark.parametrize("window", ["20 us", "7 rows", "full history"])
@pytest.mark.parametrize("seed", [0, 1])
def test_four_cores_then_six_then_three(window: str, ordering: Ordering, seed: int, tmp_path: Path) -> None:
    given = history(seed, r=140, s=120, time_shape="disordered", delay_us=20)
    run, pairs = rescaled(given, window, tmp_path, ordering)
    assert Counter(pairs) == Counter(expected(given, "band", run.plan, BATCHES))
    assert len(pairs) > 50
    if ordering is Ordering.TOTAL:
        places = sequence(given, isinstance(run.plan.window, CountWindow), BATCHES)
        assert falls(ordering, pairs, places) == []
    store = StateStore(tmp_path)
    assert [unit for unit in store.units() if store.versions(unit)] == [0, 1, 2]
    assert store.sweep() == 0
    for unit in range(3):
        for info in store.load(unit, run.version).named():
            assert store.open_segment(unit, info).num_rows == info.rows


def test_shares_are_even_as_soon_as_segments_can_be(tmp_path: Path) -> None:
    given = history(3, r=240, s=240)
    run, _ = rescaled(given, "full history", tmp_path)
    for number, cores in ((4, 6), (8, 3), (11, 3)):
        for side in (R, S):
            shares = [report.stored_rows[side] for report in run.reports[number]]
            assert len(shares) == cores and sum(shares) == 20 * (number + 1)
            # Before six cores there were four segments of twenty.
            assert max(shares) <= 20 * (number + 1) / cores + 20


def test_state_that_is_lost_on_the_way_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Cores that are no more, and whose tuples nobody takes: the checks above would see it."""
    real = router.spread

    def naive(states: Mapping[int, UnitState], units: int) -> dict[int, UnitState]:
        kept = {unit: state for unit, state in states.items() if unit < units}
        return {**real(states, units), **kept}

    monkeypatch.setattr(router, "spread", naive)
    given = history(0, r=140, s=120)
    run, pairs = rescaled(given, "full history", tmp_path)
    assert Counter(pairs) != Counter(expected(given, "band", run.plan, BATCHES))


@pytest.mark.parametrize("cores", [6, 3])
def test_a_start_that_is_killed_while_it_rescales_is_finished_by_the_next(
    cores: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = history(2, r=140, s=120)
    batches = given.cuts(BATCHES)

    def begun(folder: Path) -> LocalRun:
        run = LocalRun(long(given, "7 rows"), SplitJoin(4), folder)
        for batch in batches[:5]:
            run.batch(batch)
        return run

    moved, again = killed_at_every_rename(begun, lambda run: run.resize(SplitJoin(cores, 2)), tmp_path, monkeypatch)
    assert again == [0], "what was written down is done by whoever comes next"
    assert moved > cores


def test_before_the_first_batch_there_is_nothing_to_move(tmp_path: Path) -> None:
    given = history(2, r=40, s=40)
    run = LocalRun(long(given, "7 rows"), SplitJoin(4), tmp_path)
    batches = given.cuts(3)
    # The first batch was joined by four cores and is not done.
    run.batch(batches[0], commit=False)
    run.resize(SplitJoin(2, 2))
    pairs = pairs_of([rows for batch in batches for rows in run.batch(batch)])
    assert Counter(pairs) == Counter(expected(given, "band", run.plan, 3))


@pytest.mark.parametrize("stage", [0, 1])
def test_what_a_version_before_wrote_down_of_one_stage_is_done(stage: int, tmp_path: Path) -> None:
    store = StateStore(tmp_path, stage)
    after = {unit: UnitState(3) for unit in range(2)}
    rewrite.begin(store, 3, {store.stage: (SplitJoin(2).units, after)}, {"resizes": 1})
    path = tmp_path / "rewrite.json"
    found = json.loads(path.read_text())
    (one,) = found.pop("stages")
    if not stage:  # the first of them did not say which
        del one["stage"]
    path.write_text(json.dumps(found | one))
    assert rewrite.complete(StateStore(tmp_path)) == {"resizes": 1}
    assert [store.load(unit, 3).version for unit in range(2)] == [3, 3]


def test_what_was_written_down_and_is_damaged_is_named(tmp_path: Path) -> None:
    (tmp_path / "rewrite.json").write_text('{"version": 3')
    with pytest.raises(StateError, match=r"rewrite\.json is damaged"):
        rewrite.complete(StateStore(tmp_path))


def test_state_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="unit 0 has no state of version 7"):
        rewrite.resized(StateStore(tmp_path), 7, 3, SplitJoin(2))


def test_a_unit_whose_state_is_lost_is_named(tmp_path: Path) -> None:
    given = history(2, r=40, s=40)
    run = LocalRun(long(given, "7 rows"), SplitJoin(4), tmp_path)
    for batch in given.cuts(3):
        run.batch(batch)
    (tmp_path / "0" / "2" / "3.json").unlink()
    with pytest.raises(StateError, match="unit 2 has no state of version 3"):
        run.resize(SplitJoin(2))
    # Offsets that begin anew over later state, as whoever removed only one of the two has them.
    run.loop.version = 0
    with pytest.raises(StateError, match="its offsets begin anew"):
        run.resize(SplitJoin(2))


def test_fewer_units_over_the_state_of_more_are_refused(tmp_path: Path) -> None:
    given = history(2, r=40, s=40)
    run = LocalRun(long(given, "7 rows"), SplitJoin(4), tmp_path)
    first, second = given.cuts(2)
    run.batch(first)
    run.operator = SplitJoin(3)
    with pytest.raises(StateError, match="has units up to 3, and the operator has 3"):
        run.batch(second)
