"""Continuous queries: every snapshot once, in order, as soon as it is committed; no gap where one begins or goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pytest
from result_jobs import Job, assert_once, ids, rows

from streamjoin.errors import InputError
from streamjoin.results.answer import ask
from streamjoin.results.follow import News, follow
from streamjoin.results.policy import EpochPolicy
from streamjoin.results.question import Question
from streamjoin.results.reader import ExpiredError, Reader
from streamjoin.results.snapshot import FIRST, SnapshotId
from streamjoin.results.stores.memory import MemoryStore
from streamjoin.results.stores.sqlite import SqliteStore
from streamjoin.results.stores.store import Store

EACH = EpochPolicy(span_us=None)
S = 1_000_000
WAIT_S = 20.0
BATCHES = 25


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: Store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "results.db")
    made.prepare()
    yield made
    made.close()


def another(store: Store) -> Store:
    """One object serves one thread at a time."""
    return SqliteStore(store.path) if isinstance(store, SqliteStore) else store


class Follower(threading.Thread):
    """Keeps what it is told until it has seen `until`, or is stopped."""

    def __init__(self, store: Store, until: SnapshotId, after: SnapshotId | None = None, begin_with: int = 0) -> None:
        super().__init__(daemon=True)
        self.reader, self.until, self.after, self.begin_with = Reader(another(store), "j"), until, after, begin_with
        self.stop, self.begun = threading.Event(), threading.Event()
        self.news: list[News] = []
        self.first: list[int] = []
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            if self.begin_with:
                answer = ask(self.reader, Question())
                self.first, self.after = ids(answer), answer.last
            self.begun.set()
            for news in follow(self.reader, after=self.after, stop=self.stop, poll_s=0.001):
                self.news.append(news)
                if news.snapshot.id >= self.until:
                    return
        except BaseException as failure:
            self.failure = failure
            self.begun.set()

    def end(self) -> list[News]:
        self.join(WAIT_S)
        assert not self.is_alive() and self.failure is None, self.failure
        return self.news


def ids_of(news: list[News]) -> list[int]:
    return sorted(value for one in news for value in ids(one.rows))


def whole(batches: int) -> list[int]:
    return ids(rows(40, seed=number) for number in range(batches))


def test_followers_in_several_threads_see_each_snapshot_once_and_in_order(store: Store) -> None:
    job = Job(store, EACH, rows_max=10).start()
    last = SnapshotId(BATCHES, 0)
    followers = [Follower(store, last, FIRST) for _ in range(3)]
    for follower in followers:
        follower.start()
    for number in range(BATCHES):
        job.batch(number, rows(40, seed=number))
    job.ledger.finish()
    for follower in followers:
        news = follower.end()
        assert [one.snapshot.id for one in news] == [SnapshotId(epoch, 0) for epoch in range(1, BATCHES + 1)]
        assert_once(ids_of(news), whole(BATCHES))
        assert all(sum(batch.num_rows for batch in one.rows) == one.snapshot.rows for one in news)


@pytest.mark.slow
def test_a_one_time_answer_and_what_follows_it_have_no_gap_and_no_overlap(store: Store) -> None:
    job = Job(store, EACH, rows_max=10).start()
    followers = []
    for number in range(BATCHES):
        job.batch(number, rows(40, seed=number))
        if number % 6 == 0:  # also while there is no snapshot at all
            followers.append(Follower(store, SnapshotId(BATCHES, 0), begin_with=1))
            followers[-1].start()
    assert all(follower.begun.wait(WAIT_S) for follower in followers)
    job.ledger.finish()
    for follower in followers:
        assert_once(follower.first + ids_of(follower.end()), whole(BATCHES))


def test_following_begins_with_what_is_new_unless_it_is_told_otherwise(store: Store) -> None:
    job = Job(store, EACH).start()
    for number in range(4):
        job.batch(number, rows(40, seed=number))
    reader = Reader(another(store), "j")
    every = follow(reader, after=FIRST, poll_s=0)
    some = follow(reader, after=SnapshotId(2, 0), poll_s=0)
    assert [one.snapshot.id.epoch for one in islice(every, 3)] == [1, 2, 3]
    assert next(some).snapshot.id.epoch == 3
    stop = threading.Event()
    threading.Timer(0.05, stop.set).start()
    assert list(follow(reader, stop=stop, poll_s=0.001)) == []  # nothing new came until it was stopped
    job.batch(4, rows(40, seed=4))
    assert [next(one).snapshot.id.epoch for one in (every, some)] == [4, 4]


def test_a_follower_of_a_job_without_snapshots_sees_the_first() -> None:
    job = Job(MemoryStore(), EACH).start()
    follower = Follower(job.store, SnapshotId(1, 0))
    follower.start()
    assert follower.begun.wait(WAIT_S)
    time.sleep(0.05)
    job.batch(0, rows(40))
    job.ledger.finish()
    assert_once(ids_of(follower.end()), ids([rows(40)]))


def test_an_open_snapshot_is_not_seen() -> None:
    job = Job(MemoryStore(), EpochPolicy(span_us=None, batches=100)).start()
    stop = threading.Event()
    following = follow(Reader(job.store, "j"), after=FIRST, stop=stop, poll_s=0.001)
    for number in range(5):
        job.batch(number, rows(40, seed=number))
    threading.Timer(0.05, stop.set).start()
    assert list(following) == []
    job.ledger.finish()
    assert_once(ids(next(follow(Reader(job.store, "j"), after=FIRST)).rows), whole(5))


def test_an_empty_snapshot_is_told_too() -> None:
    policy = EpochPolicy(span_us=None, batches=1, threshold_rows=100, delayed=0.5, delays=1)
    job = Job(MemoryStore(), policy).start()
    for number in range(5):
        job.batch(number, rows(0))
    news = next(follow(Reader(job.store, "j"), after=FIRST))
    assert (news.snapshot.rows, news.rows) == (0, [])


def test_a_follower_gets_the_rows_and_columns_it_asked_for() -> None:
    job = Job(MemoryStore(), EACH, rows_max=10).start()
    for number in range(4):
        job.batch(number, rows(200, seed=number, keys=10))
    reader = Reader(job.store, "j")

    def told(question: Question) -> list[News]:
        return list(islice(follow(reader, after=FIRST, question=question), 3))

    news = told(Question(where="price > 0.5 AND name = 'n1'", select=("name", "id")))
    wanted = [
        row["id"] for number in range(3) for row in rows(200, seed=number, keys=10).to_pylist()
        if row["price"] > 0.5 and row["name"] == "n1"
    ]  # fmt: skip
    assert_once(ids_of(news), wanted)
    fields = pa.schema([("name", pa.string()), ("id", pa.int64())])
    assert all(batch.schema == fields and batch.num_rows for one in news for batch in one.rows)
    for question, keys in ((Question(key=3), {3}), (Question(key_from=3, key_to=5), {3, 4, 5})):
        wanted = [
            row["id"] for number in range(3) for row in rows(200, seed=number, keys=10).to_pylist()
            if row["__key"] in keys
        ]  # fmt: skip
        assert_once(ids_of(told(question)), wanted)
    assert [one.rows for one in told(Question(where="price > 2"))] == [[], [], []]


@pytest.mark.parametrize(
    "question",
    [Question(select=("nope",)), Question(where="nope > 1"), Question(key="x"), Question(key_from=2, key_to=1)],
)
def test_a_wrong_filter_is_wrong_input_at_once_although_nothing_came_yet(question: Question) -> None:
    job = Job(MemoryStore(), EACH).start()
    with pytest.raises(InputError):
        next(follow(Reader(job.store, "j"), question=question))


def test_an_unknown_job_is_wrong_input() -> None:
    with pytest.raises(InputError, match="the store has no results of a job other"):
        next(follow(Reader(MemoryStore(), "other")))


@pytest.mark.parametrize("all_gone", [False, True])
def test_going_on_after_a_snapshot_older_than_the_retention_is_an_error(all_gone: bool) -> None:
    job = Job(MemoryStore(), EACH).start()
    for number in range(6):
        job.batch(number, rows(10, seed=number))
    job.ledger.expire(100 * S if all_gone else 4 * S)
    for after in (FIRST, SnapshotId(1, 0), SnapshotId(2, 0)):
        with pytest.raises(ExpiredError, match="removed"):
            next(follow(Reader(job.store, "j"), after=after))
    if not all_gone:
        assert next(follow(Reader(job.store, "j"), after=SnapshotId(3, 0))).snapshot.id == SnapshotId(4, 0)


def test_a_follower_that_retention_overtakes_is_told_so_and_sees_no_gap() -> None:
    job = Job(MemoryStore(), EACH).start()
    for number in range(3):
        job.batch(number, rows(10, seed=number))
    following = follow(Reader(job.store, "j"), after=FIRST, poll_s=0)
    assert next(following).snapshot.id == SnapshotId(1, 0)
    for number in range(3, 8):
        job.batch(number, rows(10, seed=number))
    job.ledger.expire(6 * S)
    seen: list[SnapshotId] = []
    with pytest.raises(ExpiredError):
        seen.extend(news.snapshot.id for news in following)
    assert seen in ([], [SnapshotId(2, 0)])  # what it had begun with, and nothing after the gap


def test_stopping_ends_it_promptly() -> None:
    job = Job(MemoryStore(), EACH).start()
    follower = Follower(job.store, SnapshotId(9, 0))
    follower.start()
    assert follower.begun.wait(WAIT_S)
    time.sleep(0.05)
    begun_s = time.monotonic()
    follower.stop.set()
    assert follower.end() == []
    assert time.monotonic() - begun_s < 20


def test_stopping_between_two_snapshots_ends_it_there() -> None:
    job = Job(MemoryStore(), EACH).start()
    for number in range(4):
        job.batch(number, rows(10, seed=number))
    stop = threading.Event()
    found = []
    for news in follow(Reader(job.store, "j"), after=FIRST, stop=stop):
        found.append(news.snapshot.id.epoch)
        stop.set()
    assert found == [1]
