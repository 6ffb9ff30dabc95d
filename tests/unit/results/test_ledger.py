"""The commit contract: a row appears once, after its head, whatever crashes, times out or goes on as a zombie."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from result_jobs import SCHEMA, Job, assert_once, ids, rows, seen, stored_blocks, table

from streamjoin.errors import InputError, StateError
from streamjoin.flow.periods import Ended
from streamjoin.index.keys import INT64_MAX
from streamjoin.plan.join import RESULT_TIME
from streamjoin.results.block import key_code
from streamjoin.results.head import Head
from streamjoin.results.ledger import FencedError, Ledger
from streamjoin.results.names import batch_name, snapshot_name
from streamjoin.results.patience import Patience
from streamjoin.results.policy import EpochPolicy, Open, PairPolicy, Policy, PunctuationPolicy
from streamjoin.results.reader import ExpiredError, Reader
from streamjoin.results.snapshot import FIRST, Snapshot, SnapshotId, read_meta, with_meta
from streamjoin.results.splitting import SPLIT_UNIT
from streamjoin.results.stores.memory import MemoryStore
from streamjoin.results.stores.sqlite import SqliteStore
from streamjoin.results.stores.store import (
    BlockKey,
    Blocks,
    Records,
    Store,
    StoreDownError,
    StoreError,
    StoreUncertainError,
)

pytestmark = pytest.mark.slow

S = 1_000_000
PAIRS = EpochPolicy(span_us=None, batches=2, threshold_rows=1000)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: Store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "results.db")
    made.prepare()
    yield made
    made.close()


class Through:
    """A store in front of another one; what changes something goes through `change`."""

    kind = "through"
    block_bytes = 1 << 12

    def __init__(self, behind: Store) -> None:
        self.behind = behind

    def change(self, act: Callable[[], Any], name: str) -> Any:
        return act()

    def prepare(self) -> None:
        self.behind.prepare()

    def put_blocks(self, job: str, blocks: Blocks) -> None:
        self.change(lambda: self.behind.put_blocks(job, blocks), "put_blocks")

    def get_blocks(self, job: str, keys: Sequence[BlockKey]) -> Iterator[tuple[BlockKey, bytes]]:
        return self.behind.get_blocks(job, keys)

    def delete_blocks(self, job: str, keys: Sequence[BlockKey]) -> None:
        self.change(lambda: self.behind.delete_blocks(job, keys), "delete_blocks")

    def list_blocks(self, job: str) -> Iterator[BlockKey]:
        return self.behind.list_blocks(job)

    def put_records(self, job: str, records: Records) -> None:
        self.change(lambda: self.behind.put_records(job, records), "put_records")

    def get_records(self, job: str, first: str, last: str) -> Iterator[tuple[str, bytes]]:
        return self.behind.get_records(job, first, last)

    def delete_records(self, job: str, names: Sequence[str]) -> None:
        self.change(lambda: self.behind.delete_records(job, names), "delete_records")

    def head(self, job: str) -> bytes | None:
        return self.behind.head(job)

    def swap_head(self, job: str, expected: bytes | None, new: bytes) -> bool:
        return bool(self.change(lambda: self.behind.swap_head(job, expected, new), "swap_head"))

    def jobs(self) -> list[str]:
        return self.behind.jobs()

    def drop(self, job: str) -> None:
        self.behind.drop(job)

    def close(self) -> None:
        self.behind.close()


class Crash(BaseException):
    """The driver dies."""


class Crashing(Through):
    """Dies before or after change number `at`, counted from 0."""

    def __init__(self, behind: Store, at: int = -1, after: bool = False) -> None:
        super().__init__(behind)
        self.at, self.after, self.changes = at, after, 0

    def change(self, act: Callable[[], Any], name: str) -> Any:
        number, self.changes = self.changes, self.changes + 1
        if number == self.at and not self.after:
            raise Crash
        answer = act()
        if number == self.at:
            raise Crash
        return answer


# ---- whatever crashes -------------------------------------------------------------------------------------------

BATCHES = 6
CONTENT = [rows(0 if number == 3 else 20, seed=number, last_us=(number + 1) * S) for number in range(BATCHES)]
WHOLE = ids(CONTENT)
CODE = key_code(pa.int64(), equality=True, buckets=1)


def drive(job: Job, first: int) -> None:
    for number in range(max(first, 0), BATCHES):
        ended = Ended((number * S,)), Ended((number * S + 300_000,))
        job.batch(number, CONTENT[number], number * S, ((number - 1) * S, number * S), ended=ended)
    job.ledger.finish()


def job_on(store: Store, policy: Policy, retain_us: int | None = None) -> Job:
    return Job(store, policy, CODE, rows_max=5, retain_us=retain_us)


def shown_ids(store: Store) -> list[SnapshotId]:
    if store.head("j") is None:
        return []
    reader = Reader(store, "j")
    reader.refresh()
    return [found.id for found in reader.snapshots()]


def referenced(store: Store) -> tuple[set[BlockKey], set[str]]:
    """Keys of blocks and names of manifests that somebody may still read."""
    reader = Reader(store, "j")
    reader.refresh()
    snapshots = reader.snapshots()
    ledger = Job(store, PAIRS, CODE).start(Head.from_bytes(store.head("j") or b"").origin).ledger
    waiting = {ref.key for ref in ledger._waiting}
    keys = {ref.key for snapshot in snapshots for ref in snapshot.blocks}
    return keys | waiting, {snapshot_name(found.id, found.generation) for found in snapshots}


def assert_tidy(store: Store) -> None:
    """After a last take-over nothing is there that nobody reads."""
    keys, names = referenced(store)
    assert stored_blocks(store) == keys
    manifests = {name for name, _ in store.get_records("j", snapshot_name(FIRST), snapshot_name(SnapshotId(10**18, 0)))}
    assert manifests == names


POLICIES: dict[str, tuple[Policy, int | None]] = {
    "two batches": (PAIRS, None),
    "at once": (EpochPolicy(span_us=3 * S, threshold_rows=16), None),
    "delayed": (EpochPolicy(span_us=S, threshold_rows=100, delayed=0.5, delays=3), None),
    "punctuation": (PunctuationPolicy(S), None),
    "pairs": (PairPolicy(), None),
    "pairs, retained": (PairPolicy(), 2 * S),
    "retained": (EpochPolicy(span_us=None), 2 * S),
}


def wanted_of(policy: Policy, retain_us: int | None) -> tuple[int, list[SnapshotId], list[int]]:
    """Changes, ids and rows of a run without a crash."""
    store = Crashing(MemoryStore())
    drive(job_on(store, policy, retain_us).start(), 0)
    return store.changes, shown_ids(store), seen(store)


def crash_and_recover(store: Store, name: str, at: int) -> None:
    policy, retain_us = POLICIES[name]
    with pytest.raises(Crash):
        drive(job_on(Crashing(store, at), policy, retain_us).start(), 0)
    before = seen(store) if store.head("j") is not None else []
    again = job_on(store, policy, retain_us).start()
    between = seen(store)
    assert set(before) <= set(between) or retain_us is not None
    assert_once(between, sorted(set(between)))
    drive(again, again.ledger.head.batch)  # the last one again too: a commit that is repeated changes nothing
    if retain_us is not None:  # what a crash kept from being removed goes with the next commit
        again.ledger.expire(again.ledger.head.clock_us - retain_us)
    assert again.ledger.head.rows == len(WHOLE) - again.ledger.waiting_rows


@pytest.mark.parametrize("name", POLICIES)
def test_a_crash_between_any_two_changes_loses_and_doubles_nothing(name: str) -> None:
    policy, retain_us = POLICIES[name]
    changes, snapshots, whole = wanted_of(policy, retain_us)
    assert changes > 3 * BATCHES and len(snapshots) > 1
    if retain_us is None and isinstance(policy, EpochPolicy):
        assert whole == WHOLE
    for at in range(changes):
        store = MemoryStore()
        crash_and_recover(store, name, at)
        assert_once(seen(store), whole)
        assert shown_ids(store) == snapshots
        assert_tidy(store)


@pytest.mark.parametrize("name", ["two batches", "retained", "pairs"])
def test_sqlite_survives_a_crash_between_any_two_changes(name: str, tmp_path: Path) -> None:
    policy, retain_us = POLICIES[name]
    changes, snapshots, whole = wanted_of(policy, retain_us)
    for at in range(0, changes, 6):
        store = SqliteStore(tmp_path / f"{at}.db")
        store.prepare()
        crash_and_recover(store, name, at)
        assert_once(seen(store), whole)
        assert shown_ids(store) == snapshots
        assert_tidy(store)
        store.close()


@pytest.mark.parametrize("name", POLICIES)
def test_crashes_again_and_again_lose_and_double_nothing(name: str) -> None:
    policy, retain_us = POLICIES[name]
    _, snapshots, whole = wanted_of(policy, retain_us)
    least = 12 if isinstance(policy, PairPolicy) else 6  # with fewer changes no batch is ever committed
    for step in range(least, least + 9, 2):
        store: Store = MemoryStore()
        generations = 0
        while True:
            generations += 1
            try:
                job = job_on(Crashing(store, step, after=generations % 2 == 0), policy, retain_us).start()
                drive(job, job.ledger.head.batch)
                break
            except Crash:
                assert generations < 100
        assert generations > 1
        if retain_us is not None:  # what a crash kept from being removed goes with the next commit
            job.ledger.expire(job.ledger.head.clock_us - retain_us)
        assert_once(seen(store), whole)
        assert shown_ids(store) == snapshots
        assert_tidy(store)


# ---- what is visible, and when ----------------------------------------------------------------------------------


def test_nothing_is_visible_before_its_head(store: Store) -> None:
    shown: list[list[int]] = []

    class Watching(Through):
        def change(self, act: Callable[[], Any], name: str) -> Any:
            before = seen(self.behind) if self.behind.head("j") is not None else []
            answer = act()
            now = seen(self.behind) if self.behind.head("j") is not None else []
            if name == "swap_head":
                shown.append(now)
            else:
                assert now == before
            return answer

    drive(job_on(Watching(store), PAIRS).start(), 0)
    assert shown[-1] == WHOLE
    steps = [number for number, found in enumerate(shown) if found != shown[number - 1] and found]
    assert len(steps) == 3  # two epochs of two batches, and the end


def test_results_wait_through_a_restart(store: Store) -> None:
    job = job_on(store, EpochPolicy(span_us=100 * S)).start()
    for number in range(3):
        assert job.batch(number, CONTENT[number], (number + 1) * S) == []
        job.start()
        assert job.ledger.waiting_rows == 20 * (number + 1)
    assert seen(store) == []
    (found,) = job.ledger.finish()
    assert found.batches == (0, 2) and found.rows == 60
    assert seen(store) == ids(CONTENT[:3])


NEVER = Ended(), Ended()


def test_blocks_across_the_end_of_a_period_are_split_and_nothing_else_is_written_again(store: Store) -> None:
    forgotten: list[BlockKey] = []
    job = job_on(store, PairPolicy()).start()
    first, second, third = (rows(60, seed=number, last_us=4 * S) for number in range(3))
    assert job.batch(0, first, 0, (0, 0), ended=(Ended((S,)), Ended((2 * S,)))) == []
    before = stored_blocks(store)
    assert job.batch(1, second, 0, (2 * S, 2 * S - 1), ended=NEVER) == []
    job.start()  # by another driver, in the middle of the period
    job.ledger.forget = forgotten.extend
    (found,) = job.batch(2, third, 0, (2 * S, 2 * S), ended=NEVER)
    assert found.batches == (0, 2) and found.time_max_us is not None and found.time_max_us < 2 * S
    whole = table(first, second, third)
    earlier = whole.filter(pc.less(whole[RESULT_TIME], 2 * S))
    assert_once(seen(store), ids(earlier.to_batches()))
    assert forgotten and not stored_blocks(store) & set(forgotten) and before & set(forgotten)
    job.start()  # and between two periods
    (after,) = job.batch(
        3, rows(5, seed=3, first_us=9 * S, last_us=9 * S), 0, (9 * S, 9 * S), ended=(Ended((4 * S + 1,)),) * 2
    )
    assert after.batches == (0, 3), "what is in parts of blocks is of the batch that it came with"
    assert {block.key.unit for block in after.blocks} == {0, SPLIT_UNIT}, "a block inside of a period stays"
    assert_once(seen(store), ids(whole.to_batches()))
    assert job.ledger.waiting_rows == 5
    assert_tidy(store)


class Narrow(MemoryStore):
    """A store that refuses large records and heads, as those do that keep them in cells."""

    def put_records(self, job: str, records: Records) -> None:
        assert all(len(read_meta(content)[0]) <= 8 for name, content in records if name[0] in "sb"), "too large"
        super().put_records(job, records)

    def swap_head(self, job: str, expected: bytes | None, new: bytes) -> bool:
        assert len(Head.from_bytes(new).replaced) <= 8, "too large"
        return super().swap_head(job, expected, new)


@pytest.mark.parametrize("policy", [PunctuationPolicy(2 * S), PairPolicy()], ids=["by time", "by pairs"])
def test_no_record_is_larger_than_a_store_takes_however_many_blocks_a_period_has(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks of a period that close, that go on to wait, that are split, and that a query leaves which ends."""
    for module in ("policy", "ledger"):
        monkeypatch.setattr(f"streamjoin.results.{module}.BLOCKS_A_SNAPSHOT_MAX", 8)
    shown: list[list[str]] = []
    store = Narrow()
    job = job_on(store, policy)
    given = [rows(60, seed=number, last_us=4 * S - 1) for number in range(4)]
    ended = Ended((2 * S,)), Ended((2 * S,))
    for number, content in enumerate(given):
        job.start()  # what waits is read back each time
        mark_us = 2 * S if number == 2 else None
        found = job.batch(number, content, marks_us=(mark_us, mark_us), ended=ended if number == 0 else NEVER)
        shown.append([str(snapshot.id) for snapshot in found])
    assert [len(ids) > 2 for ids in shown] == [False, False, True, False]
    assert shown[2] == [f"1.{part}" for part in range(len(shown[2]))], "of one epoch"
    early = table(*given[:3]).filter(pc.less(table(*given[:3])[RESULT_TIME], 2 * S))
    assert_once(seen(store), ids(early.to_batches()))
    assert job.ledger.waiting_rows == 240 - early.num_rows
    assert len(job.ledger.finish(for_good=True)) > 2
    assert_once(seen(store), ids(given))
    assert_tidy(store)
    assert not list(store.get_records("j", batch_name(0), batch_name(10**9)))


def test_a_late_result_of_pairs_goes_into_the_next_period_that_closes(store: Store) -> None:
    job = job_on(store, PairPolicy()).start()
    (found,) = job.batch(0, rows(0), 0, (5 * S, 5 * S), ended=(Ended((S,)),) * 2)
    assert found.rows == 0
    assert job.batch(1, rows(7, seed=1, last_us=S - 1), 0, (5 * S, 5 * S), ended=NEVER) == []
    (found,) = job.batch(2, rows(0), 0, (9 * S, 9 * S), ended=(Ended((6 * S,)),) * 2)
    assert found.rows == 7


def test_what_waits_is_recorded_once_and_forgotten_once_it_is_visible(store: Store) -> None:
    job = job_on(store, EpochPolicy(span_us=None, batches=4, threshold_rows=50)).start()
    for number in (0, 1, 2, 4, 5, 6):
        job.batch(number, rows(20, seed=number))
    records = [name for name, _ in store.get_records("j", batch_name(0), batch_name(10**9))]
    since = job.ledger.head.waiting_since
    assert since is not None and all(name >= batch_name(since) for name in records)
    job.ledger.finish()
    assert list(store.get_records("j", batch_name(0), batch_name(10**9))) == []
    assert len(seen(store)) == 120


def test_a_snapshot_knows_what_is_in_it(store: Store) -> None:
    published: list[Snapshot] = []
    job = Job(store, PAIRS, publish=published.append).start()
    job.batch(0, rows(30, 0, 100, -500, -100), 5, (1, None))
    job.batch(1, rows(40, 1, 100, 10, 20), 6, (2, 3))
    (made,) = job.batch(2, rows(0), 7, (8, 9))
    reader = Reader(store, "j")
    reader.refresh()
    assert reader.snapshots() == published == [made]
    times = [
        at for batch in (rows(30, 0, 100, -500, -100), rows(40, 1, 100, 10, 20)) for at in batch["__time"].to_pylist()
    ]
    assert (made.rows, made.time_min_us, made.time_max_us) == (70, min(times), max(times))
    assert (made.marks_us, made.closed_us) == ((8, 9), 7)
    assert made.batches[0] == 0 and made.id == SnapshotId(1, 0)
    assert made.size == sum(len(content) for _, content in store.get_blocks("j", [ref.key for ref in made.blocks]))
    assert Snapshot.from_bytes(made.to_bytes()) == made


def test_a_snapshot_says_how_many_tuples_were_shed_while_it_was_collected(store: Store) -> None:
    policy = EpochPolicy(span_us=None, batches=3, threshold_rows=40)
    job = Job(store, policy).start()
    assert job.batch(0, rows(10), shed=5) == []
    # What was shed is remembered by the head, so a restart forgets nothing of it.
    job = Job(store, policy).start()
    assert job.batch(0, rows(10), shed=5) == []
    many = job.batch(1, rows(90), shed=2)
    assert len(many) == 1 + 1 and [found.shed for found in many] == [7, 7]
    assert job.batch(2, rows(0), shed=4) == []
    assert job.batch(3, rows(1), shed=1) == []
    assert [found.shed for found in job.ledger.finish()] == [5]
    job.batch(4, rows(50))
    reader = Reader(store, "j")
    reader.refresh()
    assert [found.shed for found in reader.snapshots()] == [7, 7, 5, 0]
    assert reader.snapshots()[0].summary()["shed"] == 7


def test_records_from_before_there_was_shedding_are_read(store: Store) -> None:
    job = Job(store, EpochPolicy(span_us=None)).start()
    job.batch(0, rows(10))
    (made,) = job.batch(1, rows(0))
    refs, meta = read_meta(made.to_bytes())
    del meta["shed"]
    assert Snapshot.from_bytes(with_meta(refs, meta)) == made
    head = json.loads(store.head("j") or b"")
    del head["shed"]
    assert Head.from_bytes(json.dumps(head).encode()) == job.ledger.head


def test_committing_a_batch_again_changes_nothing(store: Store) -> None:
    job = job_on(store, EpochPolicy(span_us=None)).start()
    drive(job, 0)
    head, whole = store.head("j"), seen(store)
    for number in (BATCHES - 1, 0, 3):
        assert job.batch(number, CONTENT[number]) == []
    assert job.ledger.finish() == []
    assert (store.head("j"), seen(store)) == (head, whole)


def test_a_driver_that_wrote_a_batch_otherwise_before_it_died_leaves_nothing_of_it(store: Store) -> None:
    job = job_on(store, EpochPolicy(span_us=None)).start()
    job.batch(0, CONTENT[0])
    job.put(1, rows(500, seed=77, keys=3))  # and then it dies
    again = job_on(store, EpochPolicy(span_us=None)).start()
    assert {key.batch for key in stored_blocks(store)} == {0}
    drive(again, 1)
    assert_once(seen(store), WHOLE)


# ---- zombies ----------------------------------------------------------------------------------------------------


def test_a_zombie_can_write_blocks_but_show_nothing_and_is_swept(store: Store) -> None:
    zombie = job_on(store, EpochPolicy(span_us=None)).start()
    zombie.batch(0, CONTENT[0])
    other = job_on(store, EpochPolicy(span_us=None)).start()
    mine = zombie.put(1, rows(99, seed=50))
    other.batch(1, CONTENT[1])
    with pytest.raises(FencedError, match="another driver has taken over"):
        zombie.batch(1, rows(99, seed=50))
    other.batch(2, CONTENT[2])
    with pytest.raises(FencedError):
        zombie.ledger.finish()
    zombie.put(2, rows(99, seed=51))
    assert_once(seen(store), ids(CONTENT[:2]))
    assert {ref.key for ref in mine} <= stored_blocks(store)
    last = job_on(store, EpochPolicy(span_us=None)).start()
    assert not {key for key in stored_blocks(store) if key.number > 5 or key in {ref.key for ref in mine}}
    drive(last, 2)
    assert_once(seen(store), WHOLE)
    assert_tidy(store)


@pytest.mark.parametrize("behind", [0, 1, 2])
def test_the_manifest_of_a_zombie_is_never_read_and_is_swept_although_its_id_was_used(
    store: Store, behind: int
) -> None:
    zombie = job_on(store, EpochPolicy(span_us=None)).start()
    drive_to = [0, 1]
    for number in drive_to:
        zombie.batch(number, CONTENT[number])
    other = job_on(store, EpochPolicy(span_us=None)).start()
    for number in range(2, 2 + behind):
        other.batch(number, CONTENT[number])
    with pytest.raises(FencedError):  # it writes blocks and a manifest, and fails at the head
        zombie.batch(2, rows(50, seed=60))
    zombies = [
        name
        for name, content in store.get_records("j", snapshot_name(FIRST), snapshot_name(SnapshotId(10**18, 0)))
        if 50 in [ref.rows for ref in Snapshot.from_bytes(content).blocks] or name.endswith("/00000001")
    ]
    assert len(zombies) == 2
    assert set(seen(store)) <= set(WHOLE)
    drive(other, 2 + behind)
    assert_once(seen(store), WHOLE)
    assert_tidy(store)


def test_retention_does_not_follow_a_zombies_manifest_to_blocks_that_count(store: Store) -> None:
    class TwoOfFive(EpochPolicy):
        rule = "5 batches"

    zombie = job_on(store, TwoOfFive(span_us=None, batches=2)).start()
    zombie.batch(0, CONTENT[0], 0)  # waits: its blocks will count
    other = job_on(store, EpochPolicy(span_us=None, batches=5), 3 * S).start()
    with pytest.raises(FencedError):
        zombie.batch(2, CONTENT[2], 1)  # a manifest with what waits, closed long ago
    for number in range(1, BATCHES):
        other.batch(number, CONTENT[number], number * S)
    other.ledger.finish()
    assert_once(seen(store), WHOLE)


def test_old_results_go_although_nothing_new_closes(store: Store) -> None:
    job = job_on(store, EpochPolicy(span_us=None, batches=1), 3 * S).start()
    job.batch(0, CONTENT[0], 0)
    job.batch(1, CONTENT[1], S)
    nothing = CONTENT[0].slice(0, 0)
    job.batch(2, nothing, 2 * S)  # what batch 1 brought is a snapshot now
    assert_once(seen(store), ids(CONTENT[:2]))
    job.batch(3, nothing, 4 * S + 1)
    assert_once(seen(store), ids(CONTENT[1:2]))
    names: list[str] = []

    class Noting(Through):
        def change(self, act: Callable[[], Any], name: str) -> Any:
            names.append(name)
            return act()

    again = job_on(Noting(store), EpochPolicy(span_us=None, batches=1), 3 * S).start()
    again.batch(4, nothing, 5 * S + 1)
    assert_once(seen(store), [])
    names.clear()
    again.batch(5, nothing, 6 * S)
    assert set(names) <= {"put_blocks", "swap_head"}, "where nothing is old nothing is removed"


def test_a_driver_with_an_earlier_lease_that_wakes_up_late_takes_over_nothing(store: Store) -> None:
    current = job_on(store, PAIRS).start(lease=7)
    with pytest.raises(FencedError, match=r"a driver with a later lease, 7, .* this one, with 6, stops"):
        job_on(store, PAIRS).start(lease=6)
    current.batch(0, CONTENT[0])  # and the one that has the job goes on
    again = job_on(store, PAIRS).start(lease=7)  # the same driver, which began anew
    without = job_on(store, PAIRS).start()  # nobody gave it a lease, and it forgets none
    assert (again.ledger.head.lease, without.ledger.head.lease) == (7, 7)
    assert without.ledger.head.generation > again.ledger.head.generation


def test_of_two_drivers_that_take_over_at_once_one_is_fenced(store: Store) -> None:
    job_on(store, PAIRS).start()

    class Interrupted(Through):
        """Another driver takes over between the look at the head and the change of it."""

        other: Job | None = None

        def change(self, act: Callable[[], Any], name: str) -> Any:
            if name == "swap_head" and self.other is None:
                self.other = job_on(self.behind, PAIRS)
                self.other.start()
            return act()

    between = Interrupted(store)
    last = job_on(between, PAIRS).start()
    assert between.other is not None
    assert last.ledger.head.generation > between.other.ledger.head.generation
    with pytest.raises(FencedError):
        between.other.batch(0, CONTENT[0])
    drive(last, 0)
    assert_once(seen(store), WHOLE)


# ---- answers that do not come -----------------------------------------------------------------------------------


class Uncertain(Through):
    """Change number `at` of the head is applied now, late or never, and nobody hears of it."""

    def __init__(self, behind: Store, at: int, outcome: str) -> None:
        super().__init__(behind)
        self.at, self.outcome, self.swaps = at, outcome, 0
        self.pending: Callable[[], Any] | None = None

    def change(self, act: Callable[[], Any], name: str) -> Any:
        if name != "swap_head":
            return act()
        number, self.swaps = self.swaps, self.swaps + 1
        if self.pending is not None and self.outcome == "late":
            pending, self.pending = self.pending, None
            pending()
        if number != self.at:
            return act()
        if self.outcome == "applied":
            act()
        else:
            self.pending = act
        raise StoreUncertainError("no answer came")


def quick(retry_s: float = 60.0) -> Patience:
    clock = [0.0]

    def sleep(seconds: float) -> None:
        assert seconds > 0
        clock[0] += seconds

    return Patience(retry_s, sleep=sleep, clock=lambda: clock[0])


@pytest.mark.parametrize("outcome", ["applied", "late", "never"])
@pytest.mark.parametrize("retain_us", [None, S])
def test_a_commit_without_an_answer_is_read_back_and_made_once(outcome: str, retain_us: int | None) -> None:
    wanted = MemoryStore()
    drive(job_on(wanted, PAIRS, retain_us).start(), 0)
    for at in range(BATCHES + 2):
        store = MemoryStore()
        uncertain = Uncertain(store, at, outcome)
        job = replace(job_on(uncertain, PAIRS, retain_us), patience=quick())
        drive(job.start(), 0)
        assert uncertain.swaps > at
        assert job.patience.retries >= 1
        assert_once(seen(store), seen(wanted))
        assert shown_ids(store) == shown_ids(wanted)


def test_a_commit_that_is_applied_after_another_driver_took_over_changes_nothing(store: Store) -> None:
    uncertain = Uncertain(store, 2, "never")
    zombie = replace(job_on(uncertain, EpochPolicy(span_us=None)), patience=quick(0.0)).start()
    zombie.batch(0, CONTENT[0])
    with pytest.raises(StoreError):
        zombie.batch(1, rows(10, seed=70))
    other = job_on(store, EpochPolicy(span_us=None)).start()
    other.batch(1, CONTENT[1])
    assert uncertain.pending is not None and uncertain.pending() is False
    drive(other, 2)
    assert_once(seen(store), WHOLE)


class Down(Through):
    """Cannot be reached for some calls."""

    down = 0

    def change(self, act: Callable[[], Any], name: str) -> Any:
        if self.down > 0:
            self.down -= 1
            raise StoreDownError("the store is down")
        return act()


def test_a_store_that_is_down_for_a_while_only_costs_time(store: Store) -> None:
    down = Down(store)
    job = replace(job_on(down, PAIRS), patience=quick()).start()
    for number in range(BATCHES):
        down.down = 5
        job.batch(number, CONTENT[number])
    assert job.patience.retries == 5 * BATCHES and down.down == 0
    job.ledger.finish()
    assert_once(seen(store), WHOLE)


def test_a_store_that_is_down_for_too_long_is_an_error_and_the_batch_can_be_committed_later(store: Store) -> None:
    down = Down(store)
    job = replace(job_on(down, EpochPolicy(span_us=None)), patience=quick(10.0)).start()
    job.batch(0, CONTENT[0])
    refs = job.put(1, CONTENT[1])
    down.down = 10**9
    with pytest.raises(StoreDownError, match="the store is down"):
        job.batch(1, CONTENT[1])
    assert 5 < job.patience.retries < 40
    down.down = 0
    assert [ref.key for ref in job.put(1, CONTENT[1])] == [ref.key for ref in refs]
    drive(job, 1)
    assert_once(seen(store), WHOLE)


def test_pauses_grow_up_to_two_seconds_and_end_at_the_deadline() -> None:
    pauses: list[float] = []
    patience = Patience(60.0, sleep=pauses.append, clock=lambda: sum(pauses))

    def fail() -> None:
        raise StoreUncertainError("no answer")

    with pytest.raises(StoreUncertainError):
        patience.steadily(fail)
    assert 50 < sum(pauses) <= 60 and max(pauses) <= 2.0 and pauses[0] <= 0.05
    assert all(0.5 <= pause / min(0.05 * 2**number, 2.0) <= 1.0 for number, pause in enumerate(pauses))
    assert patience.retries == len(pauses)


def test_other_failures_are_not_tried_again() -> None:
    patience, calls = quick(), []

    def refuse() -> None:
        calls.append(1)
        raise StoreError("no")

    with pytest.raises(StoreError):
        patience.steadily(refuse)
    assert (len(calls), patience.retries) == (1, 0)


# ---- whose results they are -------------------------------------------------------------------------------------


def test_results_of_another_query_are_refused_and_kept(store: Store) -> None:
    drive(job_on(store, PAIRS).start(), 0)
    head = store.head("j")
    other = pa.schema([*SCHEMA, pa.field("more", pa.int8())])
    with pytest.raises(InputError, match="of another query under the name j"):
        replace(job_on(store, PAIRS), schema=other).start()
    with pytest.raises(InputError, match="of another query"):
        replace(job_on(store, PAIRS), code=key_code(pa.int64(), equality=True, buckets=8)).start()
    assert store.head("j") == head
    assert_once(seen(store), WHOLE)
    replace(job_on(store, PAIRS), schema=other, name="k").start()


def test_results_of_another_checkpoint_are_refused_and_kept(store: Store) -> None:
    drive(job_on(store, PAIRS).start("one"), 0)
    head = store.head("j")
    with pytest.raises(InputError, match="of another checkpoint under the name j"):
        job_on(store, PAIRS).start("other")
    assert store.head("j") == head
    job_on(store, PAIRS).start("one")


def test_a_driver_that_died_before_its_first_head_leaves_the_name_free(store: Store) -> None:
    with pytest.raises(Crash):
        job_on(Crashing(store, 1), PAIRS).start("one")
    with pytest.raises(InputError, match="no results of a job j"):
        Reader(store, "j").description  # noqa: B018
    other = pa.schema([*SCHEMA, pa.field("more", pa.int8())])
    replace(job_on(store, PAIRS), schema=other).start("two")
    assert Reader(store, "j").description.schema == other


# ---- retention --------------------------------------------------------------------------------------------------


def test_old_snapshots_are_removed_with_their_blocks_head_first(store: Store) -> None:
    order: list[str] = []

    class Watching(Through):
        def change(self, act: Callable[[], Any], name: str) -> Any:
            order.append(name)
            return act()

    job = Job(Watching(store), EpochPolicy(span_us=None), CODE, retain_us=2 * S).start()
    for number in range(6):
        job.batch(number, rows(10, seed=number))
    tail = order[order.index("delete_blocks") - 2 :] if "delete_blocks" in order else []
    assert "swap_head" in tail[:2]
    # Closed when the next batch came: number n at n + 1 seconds. At 5 s, those before 3 s are gone.
    assert_once(seen(store), ids(rows(10, seed=number) for number in (2, 3, 4)))
    assert len(stored_blocks(store)) == 4
    assert job.ledger.head.rows == 50 and job.ledger.head.snapshots == 5
    assert_tidy(store)


def test_a_reader_in_the_middle_of_what_is_removed_is_told_so(store: Store) -> None:
    job = Job(store, EpochPolicy(span_us=None), CODE, block_bytes=1).start()
    for number in range(3):
        job.batch(number, rows(100 * 64, seed=number))
    job.ledger.finish()
    reader = Reader(store, "j")
    reader.refresh()
    refs = [ref for snapshot in reader.snapshots() for ref in snapshot.blocks]
    reading, late = reader.rows(refs), reader.rows(refs)
    for _ in range(12):  # what was fetched at a time: 4 blocks, then 8
        next(reading)
    next(late)
    assert job.ledger.expire(2 * S) == 1
    with pytest.raises(ExpiredError, match=r"snapshot 1\.0 was removed"):
        list(reading)
    reader.refresh()  # someone else asks the same reader meanwhile
    with pytest.raises(ExpiredError, match="removed"):
        list(late)
    assert_once(seen(store), ids(rows(100 * 64, seed=number) for number in (1, 2)))


def test_a_reader_that_looks_while_manifests_are_removed_knows_from_where_on_it_sees(store: Store) -> None:
    job = job_on(store, EpochPolicy(span_us=None)).start()
    drive(job, 0)

    class Slow(Through):
        """Retention comes between the look at the head and the look at manifests."""

        def get_records(self, name: str, first: str, last: str) -> Iterator[tuple[str, bytes]]:
            if first.startswith("s/"):
                job.ledger.expire(4 * S)
            return self.behind.get_records(name, first, last)

    reader = Reader(Slow(store), "j")
    head = reader.refresh()
    assert reader.snapshots()[0].id > head.floor > FIRST


def test_a_missing_block_of_a_snapshot_that_was_not_removed_is_damage(store: Store) -> None:
    job = job_on(store, PAIRS).start()
    drive(job, 0)
    reader = Reader(store, "j")
    reader.refresh()
    refs = reader.snapshots()[0].blocks
    store.delete_blocks("j", [refs[0].key])
    with pytest.raises(StateError, match="is missing; the store lost it"):
        list(reader.rows(refs))


def test_a_reader_does_not_mix_a_job_with_the_one_that_was_dropped_before_it(store: Store) -> None:
    drive(job_on(store, EpochPolicy(span_us=None)).start("one"), 0)
    reader = Reader(store, "j")
    reader.refresh()
    assert len(reader.snapshots()) == 5
    store.drop("j")
    with pytest.raises(InputError, match=r"dropped|no results"):
        reader.refresh()
    job = job_on(store, EpochPolicy(span_us=None)).start("two")
    job.batch(0, rows(5, seed=90))
    job.batch(1, rows(5, seed=91))
    reader.refresh()
    found = [batch for snapshot in reader.snapshots() for _, batch in reader.rows(snapshot.blocks)]
    assert ids(found) == ids([rows(5, seed=90)])


def test_retention_does_not_read_all_that_is_kept_at_every_commit() -> None:
    class Counting(Through):
        records = 0

        def get_records(self, name: str, first: str, last: str) -> Iterator[tuple[str, bytes]]:
            for found in self.behind.get_records(name, first, last):
                self.records += first.startswith("s/")
                yield found

    counting = Counting(MemoryStore())
    job = job_on(counting, EpochPolicy(span_us=None), 50 * S).start()
    for number in range(50):
        job.batch(number, rows(1, seed=number))
    counting.records = 0
    for number in range(50, 150):
        job.batch(number, rows(1, seed=number))
    assert counting.records <= 3 * 100
    assert len(seen(counting)) == 51


def test_sweeping_keeps_what_is_shown_and_what_waits(store: Store) -> None:
    job = job_on(store, EpochPolicy(span_us=None, batches=2)).start()
    for number in range(3):
        job.batch(number, CONTENT[number])
    before = stored_blocks(store)
    for _ in range(3):
        again = job_on(store, EpochPolicy(span_us=None, batches=2)).start()
        assert stored_blocks(store) == before
        assert again.ledger.waiting_rows == 20
    drive(again, 3)
    assert_once(seen(store), WHOLE)


# ---- records ----------------------------------------------------------------------------------------------------


def test_heads_come_back_and_damaged_ones_are_errors_of_the_state() -> None:
    head = Head(
        "x", 3, 7, Open(4, SnapshotId(3, 1), 2), ((1, 0), (3, 5)), ((1, FIRST), (3, SnapshotId(2, 0))), 5,
        SnapshotId(1, 0), 100, 9, (None, -5), 12,
    )  # fmt: skip
    assert Head.from_bytes(head.to_bytes()) == head
    for content in (b"", b"{}", b"[]", b"\xff", head.to_bytes()[:-9], b'{"format": 99}'):
        with pytest.raises(StateError):
            Head.from_bytes(content)


def test_damaged_manifests_are_errors_of_the_state() -> None:
    store = MemoryStore()
    drive(job_on(store, PAIRS).start(), 0)
    ((_, content), *_) = store.get_records("j", snapshot_name(FIRST), snapshot_name(SnapshotId(10**18, 0)))
    made = Snapshot.from_bytes(content)
    for place in range(0, len(content), 3):
        changed = bytearray(content)
        changed[place] ^= 0x41
        try:
            found = Snapshot.from_bytes(bytes(changed))
        except StateError:
            continue
        assert (found.rows, found.hash_sum) == (made.rows, made.hash_sum)
    for size in (0, 5, 100, len(content) // 2):
        with pytest.raises(StateError):
            Snapshot.from_bytes(content[:size])


@pytest.mark.parametrize(
    "id", [FIRST, SnapshotId(0, 0), SnapshotId(41, 0), SnapshotId(10**13, 7), SnapshotId(5, 10**6)]
)
def test_ids_come_back_from_their_text(id: SnapshotId) -> None:
    assert SnapshotId.parse(str(id)) == id


@pytest.mark.parametrize(
    "text", ["", ".", "1", "1.", ".1", "1.0.0", "a.b", "-1.0", "1.-2", "١.٢", "1.0x", "9" * 60 + ".1"]
)
def test_what_is_no_id_is_wrong_input(text: str) -> None:
    with pytest.raises(InputError, match="is not a snapshot id"):
        SnapshotId.parse(text)


def test_names_of_manifests_sort_as_their_ids() -> None:
    some = [FIRST, *(SnapshotId(epoch, part) for epoch in (0, 9, 10, 10**13) for part in (0, 9, 10, 10**6))]
    names = [snapshot_name(id, generation) for id in some for generation in (0, 1, 99)]
    assert names == sorted(names)
    assert [batch_name(batch) for batch in (0, 9, 10, 10**9)] == sorted(
        batch_name(batch) for batch in (0, 9, 10, 10**9)
    )


def test_every_generation_has_its_own_number(store: Store) -> None:
    generations = [Ledger.take_over(job_on(store, PAIRS).start().ledger) for _ in range(3)]
    assert generations == [2, 4, 6]
    assert generations[-1] < INT64_MAX
