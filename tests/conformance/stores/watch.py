"""A reader that looks at a job again and again and compares everything it sees with what must be there."""

from __future__ import annotations

import random
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np
import pyarrow as pa

from streamjoin.results.answer import ask
from streamjoin.results.block import hash_sum
from streamjoin.results.follow import follow
from streamjoin.results.head import Head
from streamjoin.results.question import Question
from streamjoin.results.reader import Reader
from streamjoin.results.snapshot import FIRST, Snapshot, SnapshotId
from streamjoin.results.stores.spec import StoreSpec
from streamjoin.results.stores.store import Store, StoreDownError

from .job import (
    CASES,
    SCHEMA,
    Case,
    CommitLog,
    Undisturbed,
    all_ids,
    batches_of_ids,
    rows_of_ids,
    sorted_by_id,
    without_generation,
)

ANEW_EVERY = 20
ALL_EVERY = 60
DOWN_S_MAX = 90.0


@dataclass
class Watch:
    """One reader's checks. Every look raises an AssertionError where a promise is broken.

    Args:
        open: a connection of its own to the store.
        end: the first batch that there is not, once that is known.
        looks, snapshots, rows: how much was looked at.
    """

    open: Callable[[], Store]
    job: str
    case: Case
    seed: int
    end: Callable[[], int | None]
    looks: int = 0
    snapshots: int = 0
    rows: int = 0
    _seen: list[Snapshot] = field(default_factory=list)
    _ids: set[int] = field(default_factory=set)
    _head: Head = field(default_factory=Head)
    _followed: SnapshotId = FIRST
    _news: int = 0

    def __post_init__(self) -> None:
        self._store = self.open()
        self._reader = Reader(self._store, self.job)
        self._follower = Reader(self.open(), self.job)
        self._must = Undisturbed(self.case, self.seed, self._store.block_bytes)
        self._random = random.Random(self.seed)

    def look(self) -> None:
        """Look once."""
        if self._store.head(self.job) is None:
            assert self._head == Head(), "the job is gone"
            return
        head = self._reader.refresh()
        self._check_head(head)
        self._check_snapshots(head, self._reader.snapshots())
        self._follow()
        if self.looks % ANEW_EVERY == 0:
            anew = Reader(self._store, self.job)
            anew.refresh()
            assert anew.snapshots()[: len(self._seen)] == self._seen, "a snapshot changed"
        if self.looks % ALL_EVERY == 0:
            self._ask_all()
        elif self._seen:
            self._ask_some()
        self.looks += 1

    def look_patiently(self) -> None:
        """Look once; a store that gives no answer for a while, on a machine that is busy, is asked again."""
        down_from_s = time.monotonic()
        while True:
            try:
                self.look()
            except StoreDownError:
                if time.monotonic() - down_from_s > DOWN_S_MAX:
                    raise
                time.sleep(0.5)
            else:
                return

    def last_look(self, batches: int) -> None:
        """Everything has been done: every row of every batch is there once, but for those that wait."""
        self.look_patiently()
        self._ask_all()
        assert self._head.batch == batches - 1
        ids = np.array(sorted([*self._ids, *self._must.waiting_ids().tolist()]), np.int64)
        assert np.array_equal(ids, all_ids(self.seed, batches)), "not all rows came"
        assert self._followed == self._head.state.last and self._news == len(self._seen)

    def _check_head(self, head: Head) -> None:
        before, self._head = self._head, head
        for name in ("generation", "batch", "rows", "snapshots", "floor"):
            assert getattr(head, name) >= getattr(before, name), f"{name} of the head fell"
        assert head.state.last >= before.state.last, "the newest snapshot was taken back"
        if head.generation == before.generation:
            assert (head.batch_owners, head.id_owners) == (before.batch_owners, before.id_owners)

    def _check_snapshots(self, head: Head, found: list[Snapshot]) -> None:
        self._must_come_to(head, len(found))
        assert found[: len(self._seen)] == self._seen, "a snapshot that was there changed or went"
        for snapshot in found[len(self._seen) :]:
            assert not self._seen or snapshot.id > self._seen[-1].id, "ids do not rise"
            self._check_new(snapshot)
            self._seen.append(snapshot)
        wanted = [each.id for each in self._must.snapshots]
        assert [each.id for each in self._seen] == wanted, "not the snapshots that these batches give"
        assert head.snapshots == len(wanted) and head.state.last == (wanted[-1] if wanted else FIRST)
        assert head.rows == len(self._ids)

    def _must_come_to(self, head: Head, count: int) -> None:
        self._must.advance(head.batch)
        if count > len(self._must.snapshots) and self.end() == head.batch + 1:
            self._must.finish()

    def _check_new(self, snapshot: Snapshot) -> None:
        place = len(self._seen)
        assert place < len(self._must.snapshots), f"snapshot {snapshot.id} is one too many"
        wanted = self._must.snapshots[place]
        assert tuple(map(without_generation, snapshot.blocks)) == wanted.blocks, f"{snapshot.id} has other blocks"
        batches = [rows for _, rows in self._reader.rows(snapshot.blocks)]
        rows = sorted_by_id(batches, SCHEMA)
        ids = rows.column("id").to_numpy()
        assert rows.num_rows == snapshot.rows, f"{snapshot.id} is torn"
        hashed = sum(map(hash_sum, rows.to_batches())) % 2**64
        assert hashed == snapshot.hash_sum, f"{snapshot.id} has other rows"
        assert np.array_equal(ids, wanted.ids) and rows.equals(rows_of_ids(self.seed, ids)), f"{snapshot.id} is wrong"
        if ids.size:
            first, last = snapshot.batches
            came = batches_of_ids(ids)
            held = (first, int(came.min()), int(came.max()), last, self._head.batch)
            assert sorted(held) == list(held), f"{snapshot.id} has other batches than it says: {held}"
        assert self._ids.isdisjoint(ids.tolist()) and np.unique(ids).size == ids.size, "a row came twice"
        self._ids.update(ids.tolist())
        self.snapshots += 1
        self.rows += ids.size

    def _follow(self) -> None:
        """A client that comes back with the last id it has: the rest, each snapshot once and in order."""
        stop = threading.Event()  # set where it would wait for news
        for news in follow(self._follower, after=self._followed, stop=stop, wait=lambda _: stop.set()):
            assert news.snapshot.id > self._followed, "a continuous query went back"
            if self._news >= len(self._must.snapshots):  # committed since
                self._must_come_to(self._follower.refresh(), self._news + 1)
            wanted = self._must.snapshots[self._news]
            ids = ids_of(news.rows)
            assert news.snapshot.id == wanted.id and np.array_equal(ids, wanted.ids), "a continuous query missed rows"
            self._followed, self._news = news.snapshot.id, self._news + 1

    def _ask_all(self) -> None:
        answer = ask(self._reader, Question())
        ids = ids_of(answer)
        assert ids.size >= len(self._ids), "there were more rows before"
        self._must_come_to(self._reader.refresh(), len(self._reader.snapshots()))
        wanted = [each.ids for each in self._must.snapshots if each.id <= answer.last]
        assert np.array_equal(ids, joined(wanted)), "an answer is wrong"
        self.rows += ids.size

    def _ask_some(self) -> None:
        """A few snapshots in a row, in pages."""
        last = self._random.randrange(len(self._seen))
        first = max(last - self._random.randrange(4), 0)
        after = str(self._seen[first - 1].id) if first else None
        question = Question(
            select=("id",), after=after, upto=str(self._seen[last].id), limit=self._random.randrange(20, 500)
        )
        pages = []
        while True:
            answer = ask(self._reader, question)
            pages.append(ids_of(answer))
            if answer.cursor is None:
                break
            question = replace(question, cursor=answer.cursor)
        ids = joined(pages)
        wanted = joined([each.ids for each in self._must.snapshots[first : last + 1]])
        assert np.array_equal(ids, wanted), "the pages of an answer are wrong"
        self.rows += ids.size


def joined(parts: Iterable[np.ndarray]) -> np.ndarray:
    """All ids, rising."""
    return np.sort(np.concatenate([np.zeros(0, np.int64), *parts]))


def ids_of(batches: Iterable[pa.RecordBatch]) -> np.ndarray:
    """The ids of rows, rising."""
    return joined(batch.column("id").to_numpy() for batch in batches)


def run(spec: StoreSpec, job: str, case: str, seed: int, folder: Path, stop: Event, report: Connection) -> None:
    """A reader as a process: it looks until it is stopped, and says what it saw."""
    watch = Watch(spec.open, job, CASES[case], seed, CommitLog(folder).end)
    broken = None
    try:
        while not stop.is_set():
            watch.look_patiently()
        end = CommitLog(folder).end()
        if end is not None:
            watch.last_look(end)
    except Exception:
        broken = traceback.format_exc()
    report.send((watch.looks, watch.snapshots, watch.rows, broken))
