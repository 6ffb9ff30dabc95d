"""Workers of the handshake chain together: what they store, send, compare and keep, batch after batch."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from streamjoin.engine.operator import Operator
from streamjoin.engine.state import totals_of
from streamjoin.engine.unit import UnitReport
from streamjoin.flow.punctuation import IDLE_TIMEOUT_US
from streamjoin.operators.biclique import Biclique
from streamjoin.operators.handshake import Handshake
from streamjoin.operators.handshake.state import ChainState
from streamjoin.plan.window import R, S, TimeWindow
from streamjoin.state.store import KEPT_VERSIONS, StateStore
from tests.conformance.check import check, expected, pairs_of, plan
from tests.conformance.histories import History, Row, history, make_rows
from tests.conformance.local import DRAIN, Batch, LocalRun

pytestmark = pytest.mark.slow

NOTHING: Batch = ([], [])


def local(folder: Path, operator: Operator, given: History, window: str, condition: str = "equality") -> LocalRun:
    return LocalRun(plan(given, condition, window), operator, folder)


def steady(r: int, s: int, batches: int, *, keys: int = 5) -> History:
    """`r` tuples of R and `s` of S in a batch, which takes 10 us."""
    rng = np.random.default_rng(r + s)

    def rows(count: int) -> list[Row]:
        ts_us = np.sort(rng.integers(0, 10 * batches, count * batches))
        return make_rows(rng, ts_us.tolist(), rng.integers(0, keys, count * batches).tolist())

    return History(rows(r), rows(s))


def loads(reports: Sequence[UnitReport], side: int) -> list[int]:
    return [report.stored_rows[side] for report in sorted(reports, key=lambda report: report.unit)]


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
@pytest.mark.parametrize("block", [None, 1, 7])
def test_on_the_full_history_every_pair_is_compared_once(workers: int, block: int | None) -> None:
    given = history(workers, r=23, s=17, key_shape="one hot")
    job = check(Handshake(workers, block), given, "equality", "full history", index="scan", batches=5)
    assert sum(report.comparisons for reports in job.reports for report in reports) == 23 * 17


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_a_tuple_is_in_one_worker_or_on_its_way(workers: int) -> None:
    given = history(3, r=40, s=30, key_shape="one hot")
    job = check(Handshake(workers, 3), given, "equality", "full history", batches=5)
    for number, reports in enumerate(job.reports, start=1):
        arrived = [len(rows) * min(number, 5) // 5 for rows in (given.r, given.s)]
        assert [sum(loads(reports, side)) for side in (R, S)] == arrived


@pytest.mark.parametrize(("block", "blocks"), [(1, 47 + 23), (10, 5 + 3), (1000, 2)])
def test_every_tuple_makes_every_hop_in_blocks_of_its_size(block: int, blocks: int) -> None:
    given = history(4, r=47, s=23, key_shape="one hot")
    job = check(Handshake(4, block), given, "equality", "full history", batches=4)
    forwarded: Counter[str] = Counter()
    for reports in job.reports:
        for report in reports:
            forwarded.update(report.forwarded)
    assert forwarded["tuples"] == (47 + 23) * 3
    assert forwarded["blocks"] == blocks * 3


def test_what_was_sent_on_is_counted_since_the_start(tmp_path: Path) -> None:
    given = history(4, r=47, s=23, key_shape="one hot")
    job = local(tmp_path, Handshake(3, 5), given, "full history")
    for batch in [*given.cuts(4), *job.drain()]:
        job.batch(batch)
    totals = totals_of(StateStore(tmp_path).load(worker, job.version) for worker in range(3))
    assert (totals["forwarded_tuples"], totals["received_both"]) == ((47 + 23) * 2, 47 + 23)


def test_a_block_stays_one_file_until_its_last_worker(tmp_path: Path) -> None:
    job = local(tmp_path, Handshake(4, 6), history(5, r=100, s=100, key_shape="one hot"), "full history")
    for batch in history(5, r=100, s=100, key_shape="one hot").cuts(9):
        job.batch(batch)
    store = StateStore(tmp_path)
    for worker in (1, 2):
        state = store.load(worker, job.version)
        found = list(state.named())
        assert found and all(info.rows == 6 for info in found)
        for side, head in ((R, 0), (S, 3)):
            assert all(info.file.startswith(f"../{head}/") for info in ChainState.of(state).at_rest(side))


@pytest.mark.parametrize("workers", [2, 8])
def test_a_pair_at_rest_in_different_workers_is_found_when_streams_end(workers: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    given = History(make_rows(rng, [5], [1]), make_rows(rng, [7], [1]))
    # A block that is never full, so that nothing moves before the end.
    job = local(tmp_path, Handshake(workers, 100), given, "20 us")
    (batch,) = given.cuts(1)
    assert not job.batch(batch)
    for _ in range(3):
        assert not job.batch(NOTHING)
    assert pairs_of([rows for _ in job.drain() for rows in job.batch(DRAIN)]) == [(0, 0)]


def test_a_live_job_finds_waiting_pairs_when_both_streams_are_silent(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    given = History(make_rows(rng, [5], [1]), make_rows(rng, [7], [1]))
    job = local(tmp_path, Handshake(5, 100), given, "20 us")
    (batch,) = given.cuts(1)
    assert not job.batch(batch)
    assert not job.batch(NOTHING, clock_us=IDLE_TIMEOUT_US - 1)
    assert not any(job.batch(NOTHING, clock_us=IDLE_TIMEOUT_US - 1) for _ in range(5))
    found = [rows for _ in range(5) for rows in job.batch(NOTHING, clock_us=IDLE_TIMEOUT_US)]
    assert pairs_of(found) == [(0, 0)]


@pytest.mark.parametrize("window", ["20 us", "7 rows", "full history"])
def test_a_job_that_came_to_its_end_goes_on_exactly(window: str, tmp_path: Path) -> None:
    given = history(8, r=60, s=60)
    job = local(tmp_path, Handshake(3, 4), given, window)
    results = []
    for number, batch in enumerate(given.cuts(6)):
        results += job.batch(batch)
        if number in (1, 2, 5):
            results += [rows for _ in job.drain() for rows in job.batch(DRAIN)]
    assert Counter(pairs_of(results)) == Counter(expected(given, "equality", job.plan, 6))


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*.*")
    }


@pytest.mark.parametrize("block", [None, 4])
def test_a_repeated_batch_writes_the_same_files_and_outboxes(block: int | None, tmp_path: Path) -> None:
    given = history(6, r=90, s=80)
    job = local(tmp_path, Handshake(3, block), given, "7 rows")
    for batch in [*given.cuts(4, pieces=2), *job.drain()]:
        job.batch(batch, commit=False)
        first = contents(tmp_path)
        job.slots = 1 + job.slots % 3
        job.batch(batch)
        assert contents(tmp_path) == first


def test_files_go_with_the_last_kept_version_that_names_them(tmp_path: Path) -> None:
    given = steady(6, 6, 40)
    job = local(tmp_path, Handshake(3, 5), given, "20 us")
    files = []
    for batch in given.cuts(40):
        job.batch(batch)
        files.append(len(list(tmp_path.rglob("*.arrow"))))
    store = StateStore(tmp_path)
    assert max(files[30:]) <= 1.3 * max(files[:30])
    for worker in store.units():
        assert store.versions(worker) == list(range(41 - KEPT_VERSIONS, 41))
        for version in store.versions(worker):
            for info in store.load(worker, version).named():
                assert store.open_segment(worker, info).num_rows == info.rows
    # What one worker let go of, another may still name in an older version; nothing that is named may go.
    assert store.sweep() == 0
    (tmp_path / "0" / "1" / "99-0.arrow").write_bytes(b"left behind")
    assert store.sweep() == 1


def test_an_attached_file_is_forgotten_when_it_was_handed_over(tmp_path: Path) -> None:
    given = steady(6, 6, 12)
    job = local(tmp_path, Handshake(4, 5), given, "20 us")
    store = StateStore(tmp_path, sync=False)
    for batch in given.cuts(12):
        job.batch(batch)
        for worker in range(4):
            state = store.load(worker, job.version)
            named = list(state.named())
            for info in named:
                store.open_segment(worker, info)
            store.detach_except(worker, state)
            assert len(store._attached[worker]) == len(named)


@pytest.mark.parametrize(("r", "s"), [pytest.param(20, 20, marks=pytest.mark.soak), (40, 4)])
def test_loads_are_even_whatever_the_rates(r: int, s: int, tmp_path: Path) -> None:
    workers, block = 3, 4
    given = steady(r, s, 36, keys=1000)
    # A window of twenty-five batches.
    long = replace(plan(given, "equality", "20 us"), window=TimeWindow(250, 250), archive_period_us=10)
    job = LocalRun(long, Handshake(workers, block), tmp_path)
    for batch in given.cuts(36):
        job.batch(batch)
    for side, rate in ((R, r), (S, s)):
        for reports in job.reports[28:]:
            share = loads(reports, side)
            assert min(share) > 0
            # A link carries what comes in with a batch if its ends differ by twice as much: the rule sends half.
            ramp = 2 * rate * (workers - 1) / 2
            assert max(share) - sum(share) / workers <= (workers / 2 + 1) * block + ramp + rate


def test_without_balance_a_worker_keeps_its_part_of_the_window(tmp_path: Path) -> None:
    given = steady(20, 20, 24, keys=1000)
    # A window of twelve batches: three a worker.
    long = replace(plan(given, "equality", "20 us"), window=TimeWindow(120, 120), archive_period_us=10)
    job = LocalRun(long, Handshake(4, 5, balance=False), tmp_path)
    results = [rows for batch in [*given.cuts(24), *job.drain()] for rows in job.batch(batch)]
    assert Counter(pairs_of(results)) == Counter(expected(given, "equality", long, 24))
    for side in (R, S):
        for reports in job.reports[18:24]:
            share = loads(reports, side)
            # The head has also what has just come in, and what has just set out.
            assert max(share) - min(share) <= 3 * 20
    # In the beginning nothing is old enough to leave the head: this is what balance is for.
    assert loads(job.reports[2], R) == [60, 0, 0, 0]


def test_late_tuples_count_once_however_far_they_go(tmp_path: Path) -> None:
    given = replace(history(9, r=60, s=60, time_shape="disordered", delay_us=90), delay_us=0)
    late = []
    for number, operator in enumerate((Biclique(1, 1), Handshake(4, 3))):
        job = local(tmp_path / str(number), operator, given, "full history")
        for batch in [*given.cuts(6), *job.drain()]:
            job.batch(batch)
        late.append([sum(report.late[side] for reports in job.reports for report in reports) for side in (R, S)])
    assert late[0] == late[1] and min(late[0]) > 0
