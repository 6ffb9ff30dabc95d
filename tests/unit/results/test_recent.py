"""Recent snapshots in memory and older ones in the store: one answer, each row once, and no reading in vain."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.plan.join import RESULT_KEY, RESULT_TIME
from streamjoin.results.answer import ask
from streamjoin.results.block import key_code
from streamjoin.results.description import Description
from streamjoin.results.follow import follow
from streamjoin.results.parts import BatchDone
from streamjoin.results.policy import EpochPolicy
from streamjoin.results.question import Question
from streamjoin.results.reader import Reader
from streamjoin.results.recent import Recent
from streamjoin.results.sink import StoreSink
from streamjoin.results.snapshot import FIRST
from streamjoin.results.stores.memory import MemoryStore
from streamjoin.results.stores.spec import StoreSpec
from streamjoin.results.stores.sqlite import SqliteStore
from streamjoin.results.stores.store import BlockKey

SCHEMA = pa.schema([("n", pa.int64()), (RESULT_TIME, pa.int64()), (RESULT_KEY, pa.int64())])
ROWS = 2000
KEYS = 50
SPAN_US = 1000


class Job:
    """A job that writes one snapshot a batch: batch b has the times from b * SPAN_US on."""

    def __init__(self, folder: Path, bytes_max: int) -> None:
        spec = StoreSpec("sqlite", (("path", str(folder / "results.db")),))
        memory = StoreSpec("memory", (("name", str(folder)),))
        self.memory = MemoryStore.named(str(folder))
        code = key_code(pa.int64(), equality=True, buckets=1)
        self.recent = Recent(self.memory, "job", bytes_max)
        policy = EpochPolicy(span_us=None, immediate=False)
        self.sink = StoreSink(spec, "job", Description(SCHEMA, code), policy, recent=self.recent, memory=memory)
        self.writer = self.sink.begin("here")
        self.rows: list[tuple[int, int, int]] = []
        self.batch = 0

    def run(self, batches: int) -> None:
        """Some batches, and one more that closes the last of them."""
        for _ in range(batches):
            rng = np.random.default_rng(self.batch)
            numbers = np.arange(ROWS) + self.batch * ROWS
            times, keys = rng.integers(0, SPAN_US, ROWS) + self.batch * SPAN_US, rng.integers(0, KEYS, ROWS)
            self.rows += zip(numbers.tolist(), times.tolist(), keys.tolist(), strict=True)
            self._commit(
                pa.RecordBatch.from_arrays([pa.array(numbers), pa.array(times), pa.array(keys)], schema=SCHEMA)
            )
        self._commit(None)

    def _commit(self, rows: pa.RecordBatch | None) -> None:
        with self.writer.part(self.batch, 0, SCHEMA) as part:
            if rows is not None:
                part.write(rows, 0)
        self.sink.commit(BatchDone(self.batch, self.batch), [part.summary()])
        self.batch += 1

    def readers(self) -> tuple[Reader, Reader]:
        """Of the durable store, which counts what is read, and of memory."""
        return Reader(CountedStore(self.sink.ledger.store.path), "job"), Reader(self.memory, "job")  # type: ignore[attr-defined]


class CountedStore(SqliteStore):
    """Counts what is read, and can be broken."""

    asked = 0
    blocks = 0

    def get_blocks(self, job: str, keys: Sequence[BlockKey]) -> Iterator[tuple[BlockKey, bytes]]:
        self.asked += 1
        self.blocks += len(keys)
        return super().get_blocks(job, keys)

    def get_records(self, job: str, first: str, last: str) -> Iterator[tuple[str, bytes]]:
        self.asked += 1
        return super().get_records(job, first, last)

    def head(self, job: str) -> bytes | None:
        self.asked += 1
        return super().head(job)


def numbers(answer: Any) -> Counter[int]:
    return Counter(n for batch in answer for n in batch.column("n").to_pylist())


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """Twelve snapshots, of which memory holds the newest few."""
    job = Job(tmp_path, bytes_max=100_000)
    job.run(12)
    return job


def test_memory_is_bounded_and_holds_the_newest_snapshots(job: Job) -> None:
    durable, recent = job.readers()
    durable.refresh()
    recent.refresh()
    kept = recent.snapshots()
    assert 1 < len(kept) < 12 and job.recent.evicted == 12 - len(kept)
    assert sum(found.size for found in kept) <= 100_000
    assert kept == durable.snapshots()[-len(kept) :]
    assert {ref.key for found in kept for ref in found.blocks} == set(job.memory.list_blocks("job"))


def test_a_range_inside_memory_does_not_ask_the_store(job: Job) -> None:
    durable, recent = job.readers()
    recent.refresh()
    begin_us = (12 - len(recent.snapshots())) * SPAN_US
    answer = ask(durable, Question(from_us=begin_us), recent)
    assert numbers(answer) == Counter(n for n, time, _ in job.rows if time >= begin_us)
    assert durable.store.asked == 0  # type: ignore[attr-defined]


def test_a_range_across_the_seam_reads_only_the_older_part_in_the_store(job: Job) -> None:
    durable, recent = job.readers()
    recent.refresh()
    seam_us = (12 - len(recent.snapshots())) * SPAN_US
    answer = ask(durable, Question(from_us=seam_us - 2 * SPAN_US), recent)
    assert numbers(answer) == Counter(n for n, time, _ in job.rows if time >= seam_us - 2 * SPAN_US)
    older = sum(len(found.blocks) for found in durable.snapshots(upto=recent.refresh().floor)[-2:])
    assert durable.store.blocks == older and recent.reads.blocks > 0  # type: ignore[attr-defined]


def test_an_old_range_reads_nothing_in_memory(job: Job) -> None:
    durable, recent = job.readers()
    answer = ask(durable, Question(from_us=0, to_us=SPAN_US - 1), recent)
    assert numbers(answer) == Counter(n for n, time, _ in job.rows if time < SPAN_US)
    assert recent.reads.blocks == 0


def test_a_key_is_looked_for_in_both_and_found_once(job: Job) -> None:
    durable, recent = job.readers()
    want = Counter(n for n, _, key in job.rows if key == 7)
    assert numbers(ask(durable, Question(key=7), recent)) == want
    assert recent.reads.blocks > 0 and durable.store.blocks > 0  # type: ignore[attr-defined]


@pytest.mark.parametrize("limit", [1, 999, 5000])
def test_pages_across_the_seam_are_the_whole_answer_even_while_snapshots_leave_memory(job: Job, limit: int) -> None:
    durable, recent = job.readers()
    want = Counter(n for n, *_ in job.rows if n % (2 if limit > 1 else 400) == 0)
    where = f"n % {2 if limit > 1 else 400} = 0"
    got: Counter[int] = Counter()
    cursor = None
    while True:
        answer = ask(durable, Question(where=where, limit=limit, cursor=cursor), recent)
        got += numbers(answer)
        if (cursor := answer.cursor) is None:
            break
        if len(got) % 3 == 0:
            job.run(1)  # pages go on as of the first one
    assert got == want


@pytest.mark.slow
@pytest.mark.parametrize("limit", [50, 700])
def test_pages_of_a_key_range_are_the_whole_answer_while_snapshots_leave_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(SqliteStore, "block_bytes", 2048)  # so that a page ends between blocks of other snapshots
    job = Job(tmp_path, bytes_max=100_000)
    job.run(12)
    durable, recent = job.readers()
    want = Counter(n for n, _, key in job.rows if 10 <= key <= 30)
    got: Counter[int] = Counter()
    cursor = None
    for page in range(1000):
        answer = ask(durable, Question(key_from=10, key_to=30, limit=limit, cursor=cursor), recent)
        got += numbers(answer)
        if (cursor := answer.cursor) is None:
            break
        if page % 4 == 0:
            job.run(1)
    assert got == want


def test_blocks_that_leave_memory_while_they_are_read_come_from_the_store(job: Job) -> None:
    durable, recent = job.readers()
    want = Counter(n for n, *_ in job.rows)
    answer = ask(durable, Question(), recent)
    first = next(iter(answer))
    job.run(12)  # nothing of what was there is in memory now
    assert numbers(answer) + Counter(first.column("n").to_pylist()) == want


def test_followers_read_memory_only_and_see_each_snapshot_once(job: Job) -> None:
    _, recent = job.readers()
    stop = threading.Event()
    seen: list[Any] = []
    rows: Counter[int] = Counter()

    def read() -> None:
        for news in follow(recent, after=begun, stop=stop, poll_s=0.001):
            seen.append(news.snapshot.id)
            rows.update(n for batch in news.rows for n in batch.column("n").to_pylist())
            if len(seen) == 5:
                stop.set()

    begun = recent.refresh().state.last
    before = len(job.rows)
    reader = threading.Thread(target=read)
    reader.start()
    job.run(5)
    reader.join(30)
    stop.set()
    assert len(seen) == 5 and seen == sorted(set(seen))
    assert rows == Counter(n for n, *_ in job.rows[before:])


def test_a_second_driver_begins_with_an_empty_memory_and_no_gap(job: Job, tmp_path: Path) -> None:
    again = Job(tmp_path, bytes_max=100_000)
    again.batch, again.rows = job.batch, job.rows
    durable, recent = again.readers()
    assert recent.refresh().floor == durable.refresh().state.last and recent.snapshots() == []
    again.run(2)
    assert numbers(ask(durable, Question(), recent)) == Counter(n for n, *_ in job.rows)
    assert numbers(ask(durable, Question(from_us=3 * SPAN_US), recent)) == Counter(
        n for n, time, _ in job.rows if time >= 3 * SPAN_US
    )
    assert recent.refresh().floor > FIRST


def test_a_time_of_1970_is_a_time_where_others_are_before_it(tmp_path: Path) -> None:
    job = Job(tmp_path, bytes_max=1)
    for number, at in enumerate((-1000, 0, -500, -400)):
        columns = [pa.array([number] * ROWS), pa.array([at] * ROWS), pa.array([1] * ROWS)]
        job._commit(pa.RecordBatch.from_arrays(columns, schema=SCHEMA))
    job._commit(None)
    store, memory = job.readers()
    for number, at in ((0, -1000), (1, 0)):
        assert numbers(ask(store, Question(from_us=at, to_us=at), memory)) == {number: ROWS}
