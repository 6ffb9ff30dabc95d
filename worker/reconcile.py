"""The reconciler: looks at every job again and again, and takes the next step from what is seen to what is wanted.

`python -m worker.reconcile` runs on each machine that has drivers. Nothing is lost with one: any number may run, each
may be killed at any moment, and what one forgets the next look shows again.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from celery import Celery
from kombu.exceptions import OperationalError as BrokerDownError
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from backend.catalog import lifecycle
from backend.catalog.database import Catalog
from backend.catalog.ids import now_us
from backend.catalog.models import Job, Lease
from backend.jobs.inputs import inputs_of
from backend.logs import set_up_logs
from backend.private import keep_private
from backend.settings import Settings, read_settings
from streamjoin.errors import InputError
from worker import leases, machines, processes, removal
from worker.app import make_app, send
from worker.decide import Action, Deed, JobSeen, LeaseSeen, Process, decide, pause_s
from worker.launch import free
from worker.observed import observe
from worker.queues import QUEUE, queue_of
from worker.removals import Removals
from worker.tasks import FORGET, LAUNCH, STOP
from worker.thin import thin
from worker.told import Told
from worker.watch import Watch

RESEND_S: Final = 10.0
"""A task that changed nothing within so long is sent again; the one before is void by then."""
UNKNOWN_S: Final = 60.0
"""A job that nobody could look at for so long is unknown."""
STARTING_S: Final = 120.0
"""A driver that has been starting for longer takes no turn from others."""
PATIENCE: Final = 0.3
"""A lease that ran out is left alone for this part of its length: clocks jump, and laptops sleep."""
THIN_EVERY_S: Final = 60.0
_log = logging.getLogger("streamjoin.reconciler")

Send = Callable[[str, list[Any], str], None]
"""Sends a task: its name, its arguments, the queue.

Raises BrokerDownError where the broker does not answer.
"""


@dataclass
class Reconciler:
    """What one process remembers between two looks; all of it may be forgotten.

    Args:
        clock_us: the time that leases are compared with.
        steady_s: a clock that nobody sets.
        drivers: that the last look saw here, by number and start.
        due_s: so long after the last look a job that failed may be launched again; None where none waits for that.
        removals: jobs that are being removed; a look passes over them.
    """

    settings: Settings
    catalog: Catalog
    send: Send
    host: str
    clock_us: Callable[[], int] = now_us
    steady_s: Callable[[], float] = time.monotonic
    _sent: dict[tuple[Any, ...], float] = field(default_factory=dict)
    _ran_out: dict[str, tuple[int, int, float]] = field(default_factory=dict)
    _blind: dict[str, float] = field(default_factory=dict)
    _thinned_s: float | None = None
    _rooms: list[machines.Room] = field(default_factory=list)
    _told: Told = field(init=False)
    drivers: set[tuple[int, str]] = field(default_factory=set)
    due_s: float | None = None
    removals: Removals = field(init=False)

    def __post_init__(self) -> None:
        self.removals = Removals(self._remove)
        self._told = Told(RESEND_S, lambda: self.steady_s())

    def once(self) -> dict[str, Deed]:
        """Look at every job, and take one step each; what was done, by job.

        Raises:
            SQLAlchemyError: the catalog does not answer.
        """
        with self.catalog.read() as session:
            joined = select(Job, Lease).outerjoin(Lease, Lease.job_id == Job.id)
            rows = [(job, lease) for job, lease in session.execute(joined.order_by(Job.observed_since_us))]
            self._rooms = machines.rooms(session, now_us())
        self._told.look(rows, {room.name for room in self._rooms})
        done: dict[str, Deed] = {}
        self.drivers, self.due_s = set(), None
        # Each start takes a core for a while. If all jobs start at once, Spark gives up waiting for its own workers.
        turns = self.settings.starts_max - sum(self._is_starting(job, lease) for job, lease in rows)
        for job, lease in rows:
            if job.id in self.removals:
                continue
            try:
                seen = self._look(job, lease)
                action = decide(seen, self.clock_us(), self.settings.stop_grace_s)
                self._note_due(seen)
                due = action.deed == Deed.LAUNCH and not self._is_sent(job)
                if due and turns <= 0:
                    continue
                self._do(job, lease, action)
                turns -= due and self._is_sent(job)  # one that has to wait takes no turn from others
                self._blind.pop(job.id, None)
            except BrokerDownError as failure:
                _log.warning("the broker does not answer, and will be asked again: %s", failure)
                self._wait_for_broker(job)
                continue
            except Exception as failure:
                _log.exception("job %s could not be looked at", job.id)
                self._could_not_look(job, failure)
                continue
            if action.deed != Deed.NOTHING:
                done[job.id] = action.deed
        self._forget({job.id for job, _ in rows})
        self._thin()
        return done

    def _note_due(self, job: JobSeen) -> None:
        left_s = pause_s(job, self.clock_us())
        if left_s is not None:
            self.due_s = left_s if self.due_s is None else min(left_s, self.due_s)

    def _is_starting(self, job: Job, lease: Lease | None) -> bool:
        since_s = (self.clock_us() - job.observed_since_us) / 1e6
        held = lease is not None and not lease.ended
        return self._is_sent(job) or (held and job.observed == lifecycle.STARTING and since_s < STARTING_S)

    def _is_sent(self, job: Job) -> bool:
        """Whether a worker was told to launch its next driver, and may still do so."""
        sent_s = self._sent.get((LAUNCH, job.id, job.generation + 1), -RESEND_S)
        return self.steady_s() - sent_s < RESEND_S

    def _look(self, job: Job, lease: Lease | None) -> JobSeen:
        held = lease is not None and not lease.ended
        process = Process.UNBORN if lease is None else self._process(lease)
        return JobSeen(
            wanted=job.wanted,
            observed=job.observed,
            wanted_since_us=job.wanted_since_us,
            observed_since_us=job.observed_since_us,
            version=leases.version_of(job),
            failures=job.failures,
            given_up=job.is_given_up,
            lease=LeaseSeen(
                version=lease.job_version, stop=lease.stop, process=process, overdue=self._overdue(lease)
            ) if lease is not None and held else None,
            lingers=not held and process == Process.ALIVE,
        )  # fmt: skip

    def _process(self, lease: Lease) -> Process:
        if lease.host != self.host:
            return Process.ELSEWHERE
        if lease.pid is None:
            return Process.UNBORN
        if not processes.is_alive(lease.pid, lease.pid_started):
            return Process.GONE
        self.drivers.add((lease.pid, lease.pid_started or ""))
        return Process.ALIVE

    def _overdue(self, lease: Lease) -> bool:
        if not leases.expired(lease, self.clock_us()):
            self._ran_out.pop(lease.job_id, None)
            return False
        generation, expires_at_us, since_s = self._ran_out.get(lease.job_id, (0, 0, 0.0))
        if (generation, expires_at_us) != (lease.generation, lease.expires_at_us):
            since_s = self.steady_s()
            self._ran_out[lease.job_id] = (lease.generation, lease.expires_at_us, since_s)
        return self.steady_s() - since_s >= PATIENCE * self.settings.lease_s

    def _do(self, job: Job, lease: Lease | None, action: Action) -> None:
        match action.deed:
            case Deed.LAUNCH:
                self._launch(job, lease)
            case Deed.TERMINATE | Deed.KILL:
                assert lease is not None
                force = action.deed == Deed.KILL
                self._send(STOP, [job.id, lease.generation, force], queue_of(lease.host))
            case Deed.ASK:
                assert lease is not None
                with self.catalog.begin() as session:
                    asked = leases.ask_to_stop(session, job.id, lease.generation)
                    if asked:
                        self._observe(session, job, lifecycle.STOPPING, action.why)
                if asked and job.observed == lifecycle.RUNNING and lease.host == self.host and lease.pid is not None:
                    processes.ask_to_end(lease.pid, lease.pid_started)  # it need not wait until it looks
            case Deed.FREE:
                assert lease is not None
                self._free(job, lease, action.why or "")
            case Deed.SEEN:
                assert action.after is not None
                with self.catalog.begin() as session:
                    self._observe(session, job, action.after, action.why)
            case Deed.FORGIVE:
                with self.catalog.begin() as session:
                    found = session.get(Job, job.id, with_for_update=True)
                    if found is not None and found.observed == lifecycle.RUNNING:
                        found.failures = 0
            case Deed.REMOVE:
                self.removals.ask(job.id)

    def _launch(self, job: Job, lease: Lease | None) -> None:
        to_store = self.settings.state is not None and not inputs_of(job).stay
        if lease is not None and (moved := leases.moved_text(lease, job, to_store=to_store)) is not None:
            self._note(job, moved)
            return
        if (silent := self._told.in_vain(job)) is not None:
            _log.warning("the worker of %s did not launch job %s within %g s", silent, job.id, RESEND_S)
            self._note(job, f"it waits for a worker: that of {silent} does not answer; look whether it reaches Redis")
        if not self._rooms:
            self._send(LAUNCH, [job.id, job.generation + 1], QUEUE)
            return
        folder = None if lease is None else leases.bound_to(lease, job)
        rooms = self._rooms
        if lease is not None and lease.incarnation is None and len({room.folder for room in rooms}) > 1:
            # A version that knew one folder only began it, on that machine.
            rooms = [room for room in rooms if room.name == lease.host]
        driver_bytes = self.settings.driver_memory_mib << 20
        room = machines.place(rooms, folder, self._told.counted(), driver_bytes, self._told.silent())
        if room is None:
            assert lease is not None
            self._note(job, f"it waits for the worker of {lease.host}, in whose data folder its state is")
        elif self._send(LAUNCH, [job.id, job.generation + 1], queue_of(room.name)):
            self._told.add(job, room.name)

    def _observe(self, session: Any, job: Job, after: str, why: str | None) -> None:
        observe(session, job.id, job.generation, after, now_us=self.clock_us(), reason=why)

    def _send(self, task: str, arguments: list[Any], queue: str) -> bool:
        key = (task, *arguments)
        if self.steady_s() - self._sent.get(key, -RESEND_S) < RESEND_S:
            return False
        self.send(task, arguments, queue)
        self._sent[key] = self.steady_s()
        _log.info("sent %s %s to %s", task, arguments, queue)
        return True

    def _free(self, job: Job, lease: Lease, why: str) -> None:
        if lease.host == self.host:
            # Java and Python workers notice by themselves that their driver is gone, but not at once.
            of_driver = partial(processes.members, self.settings.data, job.id, below=lease.generation + 1)
            if left := processes.kill_all(of_driver):
                raise OSError(f"processes {left} cannot be ended")
        with self.catalog.begin() as session:
            if free(session, lease, why):
                _log.warning("job %s: generation %d: %s", job.id, lease.generation, why)

    def _remove(self, job_id: str) -> None:
        """In a thread of its own."""
        if not removal.remove(self.settings, self.catalog, job_id):
            return
        try:
            for room in self._rooms:
                if room.name != self.host:
                    self.send(FORGET, [job_id], queue_of(room.name))
        except BrokerDownError as failure:
            _log.warning("other machines are not told that job %s is gone: %s", job_id, failure)

    def _note(self, job: Job, reason: str) -> None:
        if job.reason != reason:
            with self.catalog.begin() as session:
                found = session.get(Job, job.id, with_for_update=True)
                if found is not None and found.observed == job.observed:
                    found.reason = reason

    def _wait_for_broker(self, job: Job) -> None:
        if job.wanted == lifecycle.RUNNING and job.observed == lifecycle.STOPPED:
            self._note(job, "it waits for a worker: the broker, Redis, does not answer")

    def _could_not_look(self, job: Job, failure: Exception) -> None:
        since_s = self._blind.setdefault(job.id, self.steady_s())
        if self.steady_s() - since_s < UNKNOWN_S:
            return
        try:
            with self.catalog.begin() as session:
                self._observe(session, job, lifecycle.UNKNOWN, f"nobody could look at it: {type(failure).__name__}")
        except SQLAlchemyError:
            _log.warning("job %s cannot be written down as unknown", job.id)

    def _forget(self, there: set[str]) -> None:
        """Keep no more than the jobs that there are."""
        for memory in (self._ran_out, self._blind):
            for job_id in memory.keys() - there:
                del memory[job_id]
        old_s = self.steady_s() - RESEND_S
        self._sent = {key: at_s for key, at_s in self._sent.items() if at_s > old_s}

    def _thin(self) -> None:
        if self._thinned_s is None or self.steady_s() - self._thinned_s >= THIN_EVERY_S:
            self._thinned_s = self.steady_s()
            thin(self.catalog, self.clock_us(), self.settings.events_days, self.settings.audit_days)
            with self.catalog.begin() as session:
                machines.forget(session, now_us())


def sender(app: Celery) -> Send:
    """Sends through Celery; a message that lies there for too long is void."""

    def sends(task: str, arguments: list[Any], queue: str) -> None:
        send(app, task, arguments, queue, expires_s=RESEND_S)

    return sends


def main() -> None:
    """Reconcile until SIGTERM or Ctrl-C."""
    keep_private()
    try:
        settings = read_settings()
    except InputError as wrong:
        sys.exit(f"streamjoin: {wrong}")
    set_up_logs("reconciler")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    catalog = Catalog(settings.catalog)
    reconciler = Reconciler(settings, catalog, sender(make_app(settings)), settings.machine)
    _log.info("reconciling every %g s", settings.reconcile_s)
    watch = Watch(catalog)
    answers = True
    while not stop.is_set():
        watch.mark()
        try:
            reconciler.once()
            answers = True
        except SQLAlchemyError as failure:
            if answers:
                _log.warning("the catalog does not answer, and will be asked again: %s", failure)
            answers = False
        watch.on(reconciler.drivers)
        due_s = settings.reconcile_s if reconciler.due_s is None else reconciler.due_s
        watch.wait(stop, min(due_s, settings.reconcile_s), time.monotonic)
    watch.close()
    catalog.close()


if __name__ == "__main__":
    main()
