"""One job's newest snapshots, read once for however many follow it.

A thread looks at the head, reads what was committed, and encodes it once for each different question. The loop's thread
hands it out. Both agree on the newest snapshot under one lock, so whoever joins knows exactly what comes to him.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
from collections.abc import Callable, Sequence

from backend.problems import Place as Mistake
from backend.problems import Problem, unexpected
from backend.results.limits import Limits
from backend.results.payload import Encoder, Held, Payload
from backend.results.places import Place
from backend.results.readers import Opened, Readers
from backend.results.trouble import store_problem
from backend.results.view import Following, View
from streamjoin.errors import InputError, StreamJoinError
from streamjoin.results.description import Description
from streamjoin.results.follow import POLL_S
from streamjoin.results.head import Head
from streamjoin.results.reader import ExpiredError, Reader
from streamjoin.results.rows import Rows
from streamjoin.results.snapshot import FIRST, Snapshot, SnapshotId
from streamjoin.results.stores.store import StoreError

REMOTE_POLL_S = 0.2
"""Of stores in a cluster, where looking costs a round trip to several nodes; the memory makes it unnecessary."""
NOTHING_YET_S = 0.25
TROUBLE_S = (0.1, 2.0)
UNDELIVERED_MAX = 8
SNAPSHOTS_A_LOOK = 256
ALL = (None, None)
"""The question for all rows and columns: there is room for it whatever others ask."""
FROM_OLDEST = 'forget what came before, and subscribe from "oldest"'

_log = logging.getLogger("streamjoin.results")


class Feed:
    """Follows one job.

    Args:
        last: the newest snapshot that was handed out; None until the job has results.
        ready: set once there are results, and with them a schema.
        mark_us, clock_us: of the newest look at the head.
        began_empty: there were no results when it began.
        trouble: why nothing can be read just now.
        memory_reads: looks at the head that the memory answered; durable_reads: those that the durable store did.
    """

    def __init__(
        self, place: Place, readers: Readers, limits: Limits, held: Held, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.place = place
        self.limits = limits
        self.held = held
        self.followers: set[Following] = set()
        self.description: Description | None = None
        self.last: SnapshotId | None = None
        self.mark_us: int | None = None
        self.clock_us: int | None = None
        self.phase = "unknown"
        self.trouble: Problem | None = None
        self.ready = asyncio.Event()
        self.is_over = False
        self.began_empty = False
        self.memory_reads = 0
        self.durable_reads = 0
        self.dropped_snapshots = 0
        self.dropped_rows = 0
        self._readers = readers
        self._loop = loop
        self._views: dict[tuple[str | None, tuple[str, ...] | None], View] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._undelivered = threading.Semaphore(UNDELIVERED_MAX)
        self._thread = threading.Thread(target=self._run, name=f"follow-{place.name}", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread after what it does just now."""
        self.is_over = True
        self._stop.set()

    def end(self, reason: str) -> None:
        """Tell all followers that nothing more comes."""
        self.stop()
        for follower in list(self.followers):
            follower.finish(reason)

    def view(self, where: str | None, select: tuple[str, ...] | None) -> View | None:
        """The question, if somebody asks it already."""
        return self._views.get((where, select))

    def join(self, view: View, actor: str | None = None) -> View:
        """One user more: from now on there are payloads for this question, or for the same one that was there before.

        Args:
            actor: who asks it; None where everybody is the same, and only what all ask counts.
        Raises:
            Problem: too many different ones are asked.
        """
        found = self._views.get(view.key)
        if found is None:
            self._check_room(view, actor)
            found, view.actor = view, actor
            with self._lock:
                self._views[found.key] = found
        found.users += 1
        return found

    def _check_room(self, view: View, actor: str | None) -> None:
        if view.key == ALL:
            return
        limits, parts = self.limits, view.parts
        if parts > limits.condition_parts_an_actor:
            raise Problem(
                "invalid.condition_too_large",
                f"the condition is evaluated in {parts:,} parts, and one that follows results may be in "
                f"{limits.condition_parts_an_actor:,}; CASE, IN and BETWEEN evaluate what they compare once a value",
                params={"limit": limits.condition_parts_an_actor},
                errors=[Mistake(pointer="/where", detail=f"{parts:,} parts are too many")],
            )
        others = [one for one in self._views.values() if one.key != ALL]
        bounds = [(others, "", limits.views, limits.condition_parts)]
        if actor is not None:
            theirs = [one for one in others if one.actor == actor]
            bounds.insert(0, (theirs, " of yours", limits.views_an_actor, limits.condition_parts_an_actor))
        for asked, whose, views_max, parts_max in bounds:
            if len(asked) >= views_max:
                what = f"{len(asked)} different questions{whose} follow this job"
            elif parts + sum(one.parts for one in asked) > parts_max:
                what = f"conditions{whose} that follow this job would be evaluated in more than {parts_max:,} parts"
            else:
                continue
            raise Problem("rate_limited.too_many_views", f"{what}, which is the limit; share one of them")

    def leave(self, view: View) -> None:
        """One user less."""
        view.users -= 1
        if view.users == 0:
            with self._lock:
                self._views.pop(view.key, None)

    @property
    def views(self) -> int:
        """How many different questions there are."""
        return len(self._views)

    def attach(self, view: View, follower: Following) -> SnapshotId:
        """Every snapshot after the returned one is offered to the follower, in order."""
        with self._lock:
            view.followers.add(follower)
            assert self.last is not None
            return self.last

    # In threads.

    def snapshots(self, after: SnapshotId, upto: SnapshotId) -> list[Snapshot]:
        """Some of the snapshots with after < id <= upto, oldest first.

        Raises:
            ExpiredError: there are none any more.
        """
        with self._readers.lent(self.place) as opened:
            reader, head = _covering(opened, after, upto)
            if after < head.floor:
                raise ExpiredError(f"snapshots up to {head.floor} are no longer kept")
            return reader.snapshots(after, upto)[:SNAPSHOTS_A_LOOK]

    def oldest(self) -> tuple[SnapshotId, Snapshot | None]:
        """The newest snapshot that is no longer kept, and of groups that change the base that stands for it.

        Raises:
            ExpiredError: the base was replaced meanwhile.
        """
        with self._readers.lent(self.place) as opened:
            head = opened.durable.refresh()
            base = opened.durable.base(head, head.floor) if head.floor_base is not None else None
            return head.floor, base

    def check_is_of(self, results: str | None) -> None:
        """Refuse a snapshot of other results, where whoever goes on says of which it is.

        Raises:
            Problem: it is of other results.
        """
        if results is not None and results != self.place.name:
            raise Problem(
                "conflict.other_results",
                f"what was read is of {results}, and the results are those of {self.place.name} now; they are another "
                "job's, or this one began anew",
                hint=FROM_OLDEST,
            )

    def check_is_ours(self, id: SnapshotId) -> None:
        """Refuse a snapshot that is older than all that these results ever had.

        Raises:
            Problem: it is of other results.
        """
        with self._readers.lent(self.place) as opened:
            reader, head = _covering(opened, id, id)
            known = reader.snapshots()
        if id > FIRST and head.floor == FIRST and known and id < known[0].id:
            raise Problem(
                "conflict.other_results",
                f"snapshot {id} is older than all results of this job; it is of another job, or from before this one "
                "began anew",
                hint=FROM_OLDEST,
            )

    def make(self, view: View, snapshot: Snapshot) -> Payload:
        """A payload for who comes late."""
        with self._readers.lent(self.place) as opened:
            reader, _ = _covering(opened, SnapshotId(snapshot.id.epoch, snapshot.id.part - 1), snapshot.id)
            return self._encode(opened, reader, snapshot, [view])[view]

    def make_base(self, base: Snapshot, view: View) -> Payload:
        """A payload of the groups that live in a base. One that is not asked for is not there, and does not end."""
        assert self.description is not None
        rows = Rows(view.rows.question, self.description.schema)
        encoder = Encoder(base, self.limits.part_bytes, self.limits.snapshot_bytes, self.held)
        with self._readers.lent(self.place) as opened:
            for batch in opened.durable.snapshot_rows(base):
                encoder.add(rows.of(batch))
        return encoder.payload()

    def _encode(self, opened: Opened, reader: Reader, snapshot: Snapshot, views: Sequence[View]) -> dict[View, Payload]:
        limits = self.limits
        encoders = {view: Encoder(snapshot, limits.part_bytes, limits.snapshot_bytes, self.held) for view in views}
        if encoders:
            behind = opened.durable if reader is not opened.durable else None
            for batch in reader.snapshot_rows(snapshot, behind):
                for view, encoder in encoders.items():
                    encoder.add(view.rows.of(batch))
        return {view: encoder.payload() for view, encoder in encoders.items()}

    # The thread.

    def _run(self) -> None:
        pause_s = trouble_s = TROUBLE_S[0]
        opened: Opened | None = None
        try:
            while not self._stop.is_set():
                try:
                    opened = opened or self._readers.take(self.place)
                    pause_s = self._look(opened)
                    self.trouble, trouble_s = None, TROUBLE_S[0]
                except Problem as problem:
                    self.began_empty = problem.code == "conflict"
                    self.trouble = None if self.began_empty else problem
                    pause_s = NOTHING_YET_S
                except StreamJoinError as failure:
                    pause_s = trouble_s = min(trouble_s * 2, TROUBLE_S[1])
                    self.trouble = store_problem(self.place, failure)
                except Exception:
                    _log.exception("following job %s failed; it is tried again", self.place.job_id)
                    self.trouble = unexpected()
                    pause_s = TROUBLE_S[1]
                self._stop.wait(pause_s)
        finally:
            if opened is not None:
                self._readers.give(opened)

    def _look(self, opened: Opened) -> float:
        """Hand out what is new; returns when to look again."""
        if self.description is None:
            self.description, _ = opened.describe()
        reader, head = self._source(opened)
        pause_s = POLL_S if reader is not opened.durable or self.place.spec.kind == "sqlite" else REMOTE_POLL_S
        if self.last is None:
            self._tell(head)
            self.last = head.state.last
            self._call(self.ready.set)
        elif head.state.last < self.last:
            self._call(lambda: self.end("restarted"))
        elif self.last < head.floor:
            self._call(lambda: self.end("resync"))
        elif head.state.last != self.last:
            for snapshot in reader.snapshots(self.last, head.state.last):
                self._publish(opened, reader, snapshot)
        self._tell(head)
        return pause_s

    def _source(self, opened: Opened) -> tuple[Reader, Head]:
        """The memory if it goes on where we are; else the durable store."""
        if (recent := opened.memory_reader()) is not None:
            try:
                head = recent.refresh()
            except (InputError, StoreError):
                head = None
            if head is not None and (self.last is None or head.floor <= self.last <= head.state.last):
                self.memory_reads += 1
                return recent, head
        self.durable_reads += 1
        return opened.durable, opened.durable.refresh()

    def _tell(self, head: Head) -> None:
        marks = [mark for mark in head.marks_us if mark is not None]
        self.mark_us = min(marks) if len(marks) == len(head.marks_us) else None
        self.clock_us = head.clock_us or None

    def _publish(self, opened: Opened, reader: Reader, snapshot: Snapshot) -> None:
        made: dict[View, Payload] = {}
        while not self._stop.is_set():
            with self._lock:
                missing = [view for view in self._views.values() if view not in made]
                if not missing:
                    self.last = snapshot.id
                    self._call(functools.partial(self._deliver, made))
                    break
            made |= self._encode(opened, reader, snapshot, missing)
        # A loop that is behind is not given more than a few snapshots to hand out.
        while not self._undelivered.acquire(timeout=0.5) and not self._stop.is_set():
            continue

    def _call(self, act: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(act)
        except RuntimeError:  # the loop has ended, and the process is about to
            self._stop.set()

    def _deliver(self, made: dict[View, Payload]) -> None:
        self._undelivered.release()
        for view, payload in made.items():
            view.remember(payload, self.limits)
            for follower in tuple(view.followers):
                follower.offer(payload)


def _covering(opened: Opened, after: SnapshotId, upto: SnapshotId) -> tuple[Reader, Head]:
    """The memory if it has all of a range of snapshots; else the durable store."""
    if (recent := opened.memory_reader()) is not None:
        try:
            head = recent.refresh()
        except (InputError, StoreError):
            head = None
        if head is not None and head.floor <= after and upto <= head.state.last:
            return recent, head
    return opened.durable, opened.durable.refresh()
