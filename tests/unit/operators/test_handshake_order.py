"""Ordered results of a chain: up to where they are found, what waits, and what its files cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from streamjoin.engine.arranging import in_order
from streamjoin.engine.operator import Operator
from streamjoin.operators.handshake import Handshake
from streamjoin.operators.handshake import step as step_module
from streamjoin.operators.handshake.settled import NO_TUPLE, settled
from streamjoin.operators.handshake.state import ChainState
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.window import TimeWindow
from streamjoin.state.store import KEPT_VERSIONS, StateStore
from tests.conformance.check import expected, pairs_of, plan
from tests.conformance.histories import History, history
from tests.conformance.local import DRAIN, LocalRun
from tests.conformance.test_ordering import BATCHES, Pair, falls, sequence
from tests.unit.operators.test_handshake_chain import contents, steady


def ordered_run(folder: Path, operator: Operator, given: History, window: str) -> LocalRun:
    return LocalRun(replace(plan(given, "equality", window), ordering=Ordering.TOTAL), operator, folder)


def states(folder: Path, run: LocalRun) -> list[ChainState]:
    store = StateStore(folder)
    return [ChainState.of(store.load(unit.number, run.version)) for unit in run.operator.units]


@pytest.mark.parametrize("workers", [1, 2, 3, 6])
def test_settled_is_the_newer_number_of_the_first_pair_that_has_not_met(workers: int) -> None:
    rng = np.random.default_rng(workers)
    for tuples in (0, 1, 2, 5, 30):
        for _ in range(50):
            numbers = rng.permutation(tuples)
            split = int(rng.integers(0, tuples + 1))
            # R's older tuples are further right, S's further left, as in a chain; or anywhere.
            places = [np.sort(rng.integers(0, workers, size)) for size in (split, tuples - split)]
            r = list(zip(np.sort(numbers[:split])[::-1].tolist(), places[0].tolist(), strict=True))
            s = list(zip(np.sort(numbers[split:]).tolist(), places[1].tolist(), strict=True))
            unmet = [max(a, b) for a, i in r for b, j in s if i < j]
            oldest = [
                np.array([min((n for n, at in side if at == worker), default=NO_TUPLE) for worker in range(workers)])
                for side in (r, s)
            ]
            assert settled(oldest[0], oldest[1], tuples) == min(unmet, default=tuples)


@pytest.mark.slow
def test_an_order_that_does_not_wait_is_caught(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given = steady(20, 20, BATCHES)
    places = sequence(given, counted=False)

    def pairs(folder: Path) -> list[Pair]:
        run = ordered_run(folder, Handshake(4, 3), given, "full history")
        batches = [run.batch(batch) for batch in [*given.cuts(BATCHES), *run.drain()]]
        return pairs_of([rows for results in batches for rows in in_order(Ordering.TOTAL, results)])

    in_turn = pairs(tmp_path / "1")
    assert not falls(Ordering.TOTAL, in_turn, places)
    monkeypatch.setattr(step_module, "settled", lambda oldest_r, oldest_s, most: most)
    hasty = pairs(tmp_path / "2")
    assert Counter(hasty) == Counter(in_turn)
    assert falls(Ordering.OUTER, hasty, places)


@pytest.mark.slow
def test_results_wait_in_the_state_and_are_counted_when_they_leave(tmp_path: Path) -> None:
    given = steady(20, 20, 30)
    run = ordered_run(tmp_path, Handshake(3, 5), given, "full history")
    left = waited = 0
    for batch in given.cuts(30):
        results = run.batch(batch)
        reports = run.reports[-1]
        assert sum(report.results for report in reports) == sum(rows.num_rows for rows in results)
        left += sum(rows.num_rows for rows in results)
        waiting = [run_.rows for state in states(tmp_path, run) for run_ in state.waiting]
        assert sum(report.waiting_results for report in reports) == sum(waiting)
        waited = max(waited, sum(waiting))
        (reached,) = {state.settled for state in states(tmp_path, run)}
        assert reached == run.span.stop <= 40 * run.version
    assert left and waited
    for batch in run.drain():
        left += sum(rows.num_rows for rows in run.batch(batch))
    assert left == len(expected(given, "equality", run.plan, 30))
    assert not any(state.waiting for state in states(tmp_path, run))


def test_nothing_waits_in_a_chain_of_one_worker(tmp_path: Path) -> None:
    given = steady(20, 20, 6)
    run = ordered_run(tmp_path, Handshake(1), given, "full history")
    pairs = pairs_of([rows for batch in given.cuts(6) for rows in run.batch(batch)])
    assert Counter(pairs) == Counter(expected(given, "equality", run.plan, 6))
    assert not any(report.waiting_results for reports in run.reports for report in reports)


def test_a_repeated_batch_writes_the_same_files_and_gives_the_same_results(tmp_path: Path) -> None:
    given = history(6, r=90, s=80)
    run = ordered_run(tmp_path, Handshake(3, 4), given, "7 rows")
    for batch in [*given.cuts(5, pieces=2), *run.drain()]:
        once = rows_of(run.batch(batch, commit=False))
        first = contents(tmp_path)
        run.slots = 1 + run.slots % 3
        assert rows_of(run.batch(batch)) == once
        assert contents(tmp_path) == first


def rows_of(results: Sequence[object]) -> list[str]:
    return sorted(str(row) for rows in results for row in rows.to_pylist())  # type: ignore[attr-defined]


@pytest.mark.slow
def test_files_of_results_are_few_and_go_with_the_last_kept_version(tmp_path: Path) -> None:
    given = steady(12, 12, 60)
    run = ordered_run(tmp_path, Handshake(3, 5), given, "20 us")
    # A window of twenty-five batches.
    run.plan = replace(run.plan, window=TimeWindow(250, 250), archive_period_us=10)
    store, most = StateStore(tmp_path), 0
    for batch in given.cuts(60):
        run.batch(batch)
        most = max(most, *(len(state.waiting) for state in states(tmp_path, run)))
    assert 1 < most <= 12
    for worker in store.units():
        assert store.versions(worker) == list(range(61 - KEPT_VERSIONS, 61))
        for version in store.versions(worker):
            for info in store.load(worker, version).named():
                assert store.open_segment(worker, info).num_rows == info.rows
    assert store.sweep() == 0
    # Results that wait are no tuples: who asks for the load must not count them.
    run.batch(DRAIN)
    stored = sum(sum(report.stored_rows) for report in run.reports[-1])
    assert store.live_tuples(range(3), run.version) == stored
