"""What the reconciler does to a catalog, with real processes and without a broker."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from kombu.exceptions import OperationalError

from backend.catalog.database import Catalog
from backend.catalog.models import Event, Job, Lease, User
from backend.jobs.joinfile import result_spec
from backend.settings import Settings
from streamjoin.results.stores.spec import StoreSpec
from streamjoin.results.stores.sqlite import SqliteStore
from streamjoin.results.stores.store import StoreDownError, StoreError
from tests.servers.process import comes_true
from worker import launch, leases, processes
from worker.decide import Deed
from worker.reconcile import RESEND_S, STARTING_S, UNKNOWN_S, Reconciler

from .jobs import add_job, change, events_of, job_of, lease_of, want

S = 1_000_000
STAND_IN = f"{sys.executable} -m tests.worker.stand_in"


@dataclass
class Desk:
    """A reconciler, its clocks, and the tasks it sent; the broker may be down."""

    settings: Settings
    catalog: Catalog
    now_us: int = 1_700_000_000 * S
    sent: list[tuple[str, list[Any], str]] = field(default_factory=list)
    down: bool = False

    def __post_init__(self) -> None:
        self.reconciler = Reconciler(
            self.settings, self.catalog, self.send, "here", lambda: self.now_us, lambda: self.now_us / S
        )

    def send(self, task: str, arguments: list[Any], queue: str) -> None:
        if self.down:
            raise OperationalError("refused")
        self.sent.append((task, arguments, queue))

    def look(self, after_s: float = 0.0, *, wait: bool = True) -> dict[str, Deed]:
        """Look, and wait until what is removed is gone or stays."""
        self.now_us += round(after_s * S)
        done = self.reconciler.once()
        assert not wait or comes_true(lambda: not len(self.reconciler.removals), 60)
        return done

    def take(self, job: str, generation: int = 1, pid: int | None = None, since: str | None = None) -> None:
        """As a worker on this machine."""
        with self.catalog.begin() as session:
            leases.take(
                session, job, generation, "here", now_us=self.now_us, lease_s=self.settings.lease_s,
                home=leases.home_of(self.settings),
            )  # fmt: skip
        if pid is not None:
            with self.catalog.begin() as session:
                leases.enter(session, job, generation, pid, since or "", home=leases.home_of(self.settings))

    def see(self, job: str, observed: str) -> None:
        change(self.catalog, job, observed=observed, observed_since_us=self.now_us)


@pytest.fixture
def desk(settings: Settings, catalog: Catalog) -> Desk:
    return Desk(settings, catalog)


@pytest.fixture
def sleeper() -> Iterator[tuple[int, str]]:
    """A process that lives, and does not listen to SIGTERM."""
    with subprocess.Popen(["sh", "-c", "trap '' TERM; exec sleep 600"]) as process:
        assert comes_true(lambda: Path(f"/proc/{process.pid}/cmdline").read_bytes().startswith(b"sleep"), 5)
        since = processes.started(process.pid)
        assert since is not None
        yield process.pid, since
        process.kill()


def test_jobs_come_back_whose_owner_has_more_than_a_share_by_now(desk: Desk) -> None:
    desk.settings.auth, desk.settings.user_job_slots_max, desk.settings.user_job_memory_mib_max = "on", 1, 1
    with desk.catalog.begin() as session:
        session.add_all(User(id=id, name=id, role="operator", created_at_us=0) for id in ("usr_kim", "usr_sam"))
    jobs = {add_job(desk.catalog, wanted="running", owner_id="usr_kim") for _ in range(2)}
    for job in jobs:
        desk.take(job)
        desk.see(job, "running")
    for after_s in (3.9, 0.2):
        assert desk.look(after_s) == {}
    assert desk.look(1.3) == dict.fromkeys(jobs, Deed.FREE)  # their host died
    for job in jobs:
        desk.see(job, "failed")  # by the clock of this test
    desk.look(RESEND_S)
    assert {arguments[0] for task, arguments, _ in desk.sent if task == "streamjoin.launch"} == jobs
    for job in jobs:
        desk.take(job, generation=2)


def test_a_job_that_is_wanted_is_launched_once_in_a_while(desk: Desk) -> None:
    job = add_job(desk.catalog, wanted="running")
    desk.look()
    assert desk.sent == [("streamjoin.launch", [job, 1], "streamjoin")]
    desk.look(RESEND_S / 2)
    assert len(desk.sent) == 1
    desk.look(RESEND_S / 2)  # nobody took it
    assert [arguments for _, arguments, _ in desk.sent] == [[job, 1], [job, 1]]
    desk.take(job)
    assert desk.look(1) == {}


def test_drivers_start_a_few_at_a_time_and_who_waits_longest_is_next(desk: Desk) -> None:
    most = desk.settings.starts_max
    jobs = [add_job(desk.catalog, wanted="running") for _ in range(most + 2)]
    for number, job in enumerate(jobs):
        change(desk.catalog, job, observed_since_us=desk.now_us - S * (len(jobs) - number))
    assert list(desk.look()) == jobs[:most]
    for job in jobs[:most]:
        desk.take(job)
        desk.see(job, "starting")
    assert desk.look(1) == {}
    desk.see(jobs[0], "running")
    assert desk.look(1) == {jobs[most]: Deed.LAUNCH}
    # What was sent has its turn until nobody can take it any more.
    assert desk.look(0.1) == {jobs[most]: Deed.LAUNCH}
    assert [arguments[0] for _, arguments, _ in desk.sent] == jobs[: most + 1]
    for job in jobs[1:most]:
        desk.see(job, "running")
    assert list(desk.look(0.1)) == jobs[most:]


def test_a_driver_that_starts_for_ever_takes_no_turn(desk: Desk, sleeper: tuple[int, str]) -> None:
    stuck = [add_job(desk.catalog, wanted="running") for _ in range(desk.settings.starts_max)]
    for job in stuck:
        desk.take(job, 1, *sleeper)
        desk.see(job, "starting")
    more = add_job(desk.catalog, wanted="running")
    change(desk.catalog, more, observed_since_us=desk.now_us)
    assert more not in desk.look()
    for after_s, launched in ((STARTING_S - 1, False), (2, True)):
        desk.now_us += round(after_s * S)
        with desk.catalog.begin() as session:
            for job in stuck:
                leases.renew(session, job, 1, now_us=desk.now_us, lease_s=4)
        assert (more in desk.look()) == launched


def test_a_driver_that_lives_is_left_alone(desk: Desk, sleeper: tuple[int, str]) -> None:
    job = add_job(desk.catalog, wanted="running")
    desk.take(job, 1, *sleeper)
    desk.see(job, "running")
    for _ in range(20):
        assert desk.look(1) == {}
        with desk.catalog.begin() as session:
            leases.renew(session, job, 1, now_us=desk.now_us, lease_s=4)
    assert desk.sent == []


def test_a_driver_that_died_has_failed_and_the_next_generation_waits_longer_each_time(desk: Desk) -> None:
    job = add_job(desk.catalog, wanted="running")
    for generation, pause_s in ((1, 1), (2, 2), (3, 4)):
        desk.take(job, generation, 2**22 + 1, "boot-1")
        desk.see(job, "running")
        assert desk.look() == {job: Deed.FREE}
        seen = job_of(desk.catalog, job)
        assert (seen.observed, seen.failures) == ("failed", generation)
        assert seen.reason is not None and "without a word" in seen.reason
        change(desk.catalog, job, observed_since_us=desk.now_us)
        assert desk.look(pause_s - 0.1) == {}
        assert desk.look(0.2) == {job: Deed.LAUNCH}
        assert desk.sent[-1][1] == [job, generation + 1]


def test_a_lease_whose_driver_never_started_is_freed_when_it_is_over(desk: Desk) -> None:
    job = add_job(desk.catalog, wanted="running")
    desk.take(job)
    assert desk.look(3.9) == {}
    assert desk.look(0.2) == {}  # it may be only the clock
    assert desk.look(1.3) == {job: Deed.FREE}
    assert job_of(desk.catalog, job).observed == "failed"


def test_a_clock_that_jumps_costs_no_driver_that_renews(desk: Desk, sleeper: tuple[int, str]) -> None:
    job = add_job(desk.catalog, wanted="running")
    desk.take(job, 1, *sleeper)
    desk.see(job, "running")
    desk.reconciler.steady_s = lambda: 0.0
    assert desk.look(3600) == {}
    with desk.catalog.begin() as session:
        leases.renew(session, job, 1, now_us=desk.now_us, lease_s=4)
    desk.reconciler.steady_s = lambda: 2.0
    assert desk.look() == {}
    assert desk.sent == []


def test_a_driver_that_does_not_renew_is_killed(desk: Desk, sleeper: tuple[int, str]) -> None:
    job = add_job(desk.catalog, wanted="running")
    desk.take(job, 1, *sleeper)
    desk.see(job, "running")
    desk.look(4)
    assert desk.look(2) == {job: Deed.KILL}
    assert desk.sent == [("streamjoin.stop", [job, 1, True], "host.here")]


def test_a_driver_on_another_machine_is_replaced_when_its_lease_is_over(desk: Desk) -> None:
    job = add_job(desk.catalog, wanted="running")
    with desk.catalog.begin() as session:
        leases.take(session, job, 1, "there", now_us=desk.now_us, lease_s=4, home=leases.Home("of there"))
        leases.enter(session, job, 1, 7, "boot-1")
    desk.see(job, "running")
    assert desk.look(3) == {}
    desk.look(1)
    assert desk.look(2) == {job: Deed.FREE}


def test_stopping_asks_then_urges_then_kills(desk: Desk, sleeper: tuple[int, str]) -> None:
    job = add_job(desk.catalog, wanted="running")
    desk.take(job, 1, *sleeper)
    desk.see(job, "running")
    want(desk.catalog, job, "stopped")

    def renewed(after_s: float) -> Deed | None:
        with desk.catalog.begin() as session:
            leases.renew(session, job, 1, now_us=desk.now_us + round(after_s * S), lease_s=4)
        return desk.look(after_s).get(job)

    assert renewed(0) == Deed.ASK
    lease = lease_of(desk.catalog, job)
    assert lease is not None and lease.stop
    assert job_of(desk.catalog, job).observed == "stopping"
    assert renewed(1) is None
    assert renewed(1.5) == Deed.TERMINATE
    assert renewed(9) == Deed.TERMINATE
    assert renewed(1) == Deed.KILL
    assert [arguments[2] for _, arguments, _ in desk.sent] == [False, True]


@pytest.mark.parametrize("how", [{"version": 2}, {"restart_version": 2}])
def test_a_new_version_stops_the_driver_and_starts_another_without_a_failure(
    desk: Desk, sleeper: tuple[int, str], how: dict[str, int]
) -> None:
    job = add_job(desk.catalog, wanted="running", wanted_since_us=1)
    desk.take(job, 1, *sleeper)
    desk.see(job, "running")
    change(desk.catalog, job, **how)
    assert desk.look(1) == {job: Deed.ASK}
    with desk.catalog.begin() as session:  # as the driver
        leases.end(session, job, 1)
    desk.see(job, "stopped")
    change(desk.catalog, job, observed="stopped")
    with desk.catalog.begin() as session:
        session.get_one(Lease, job).pid = None
    assert desk.look(0.1) == {job: Deed.LAUNCH}
    desk.take(job, 2)
    assert desk.look(0.1) == {}
    assert job_of(desk.catalog, job).failures == 0
    assert events_of(desk.catalog, job)[-1] == "job.restarted"


def test_a_job_that_fails_by_its_own_fault_is_left_alone_until_somebody_starts_it(desk: Desk) -> None:
    from worker.observed import observe

    job = add_job(desk.catalog, wanted="running")
    for generation in range(1, 6):
        assert desk.look(60) == {job: Deed.LAUNCH}
        desk.take(job, generation)
        with desk.catalog.begin() as session:
            leases.end(session, job, generation)
            observe(session, job, generation, "failed", now_us=desk.now_us, reason="no column x", own_fault=True)
    assert desk.look(99_999) == {}
    assert job_of(desk.catalog, job).phase == "failed"
    change(desk.catalog, job, failures=0, reason=None)
    assert desk.look(1) == {job: Deed.LAUNCH}


def test_a_broker_that_is_down_is_told_and_asked_again(desk: Desk) -> None:
    job = add_job(desk.catalog, wanted="running")
    desk.down = True
    assert desk.look() == {}
    reason = job_of(desk.catalog, job).reason
    assert reason is not None and "Redis" in reason
    desk.down = False
    assert desk.look(0.1) == {job: Deed.LAUNCH}
    desk.take(job)
    assert job_of(desk.catalog, job).reason is None


def test_a_job_that_nobody_can_look_at_is_unknown_after_a_while_and_never_failed(
    desk: Desk, sleeper: tuple[int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = add_job(desk.catalog, wanted="running")
    other = add_job(desk.catalog, wanted="stopped")
    desk.take(job, 1, *sleeper)
    desk.see(job, "running")

    def refuse(pid: int, since: str | None) -> bool:
        raise PermissionError("no access to /proc")

    monkeypatch.setattr(processes, "is_alive", refuse)
    for _ in range(round(UNKNOWN_S) - 1):
        desk.look(1)
    assert job_of(desk.catalog, job).observed == "running"
    desk.look(2)
    assert job_of(desk.catalog, job).observed == "unknown"
    assert job_of(desk.catalog, job).failures == 0
    assert job_of(desk.catalog, other).observed == "stopped"
    monkeypatch.undo()
    desk.look(1)
    assert job_of(desk.catalog, job).observed == "unknown"  # the driver itself says what it is, when it renews


def test_a_deleted_job_goes_with_results_state_and_rows(desk: Desk) -> None:
    settings = desk.settings
    job = add_job(desk.catalog, wanted="deleted", incarnation=1)
    folder = settings.job_folder(job)
    (folder / "checkpoint").mkdir(parents=True)
    spec = result_spec(settings, job_of(desk.catalog, job))
    store = spec.open()
    store.prepare()
    for name in (job, f"{job}-1", "job_other"):
        store.swap_head(name, None, b"head")
    store.close()
    with desk.catalog.begin() as session:
        for actor in (None, "usr_1"):
            session.add(Event(id=f"evt_{actor}", job_id=job, kind="job.started_by_user", message="", actor_id=actor))
    kept = folder.parent / "kept.db"
    os.link(dict(spec.settings)["path"], kept)
    assert desk.look() == {job: Deed.REMOVE}
    assert not folder.exists()
    assert SqliteStore(kept).jobs() == ["job_other"]
    with desk.catalog.read() as session:
        assert session.get(Job, job) is None
        left = session.get(Event, "evt_usr_1")
        assert session.get(Event, "evt_None") is None
        assert left is not None and left.job_id is None  # what people did is kept for as long as admins say
    assert desk.look() == {}


@pytest.mark.parametrize("failure", [StoreDownError("it does not answer"), StoreError("it refuses the password")])
def test_a_job_whose_store_is_down_or_refuses_is_removed_later(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, failure: StoreError
) -> None:
    job = add_job(desk.catalog, wanted="deleted")
    spec = result_spec(desk.settings, job_of(desk.catalog, job))
    store = spec.open()
    store.prepare()

    def fails(*_: object) -> None:
        raise failure

    with monkeypatch.context() as patched:
        patched.setattr(SqliteStore, "drop", fails)
        patched.setattr("backend.jobs.joinfile.result_spec", lambda *_: replace(spec, kind="cassandra"))
        patched.setattr(StoreSpec, "open", lambda _: store)
        desk.look()
        reason = job_of(desk.catalog, job).reason
        assert reason is not None and str(failure) in reason
    desk.look(1)
    with desk.catalog.read() as session:
        assert session.get(Job, job) is None


def test_a_deleted_job_whose_store_the_platform_no_longer_has_is_kept_unless_it_never_ran(desk: Desk) -> None:
    ran, never = add_job(desk.catalog, wanted="deleted"), add_job(desk.catalog, wanted="deleted")
    for job in (ran, never):
        change(desk.catalog, job, spec=job_of(desk.catalog, job).spec.with_store("cassandra"))
    change(desk.catalog, ran, generation=1)
    desk.look()
    assert "this platform has no cassandra" in (job_of(desk.catalog, ran).reason or "")
    with desk.catalog.read() as session:
        assert session.get(Job, never) is None


@pytest.mark.parametrize(("observed", "told"), [("running", True), ("starting", False)])
def test_a_driver_here_that_runs_is_told_to_stop_at_once(desk: Desk, observed: str, told: bool) -> None:
    """Before it runs it may not know the signal yet, and looks at its lease."""
    with subprocess.Popen(["sleep", "600"]) as process:
        job = add_job(desk.catalog, wanted="running")
        desk.take(job, 1, process.pid, processes.started(process.pid))
        desk.see(job, observed)
        assert desk.look() == {}
        want(desk.catalog, job, "stopped")
        assert desk.look() == {job: Deed.ASK}
        assert comes_true(lambda: processes.started(process.pid) is None, 5 if told else 0.3) is told
        process.kill()


def test_a_deleted_job_that_runs_is_stopped_first(desk: Desk, sleeper: tuple[int, str]) -> None:
    job = add_job(desk.catalog, wanted="running")
    desk.take(job, 1, *sleeper)
    desk.see(job, "running")
    want(desk.catalog, job, "deleted")
    assert desk.look() == {job: Deed.ASK}
    assert desk.look() == {}
    with desk.catalog.begin() as session:
        leases.end(session, job, 1)
        session.get_one(Lease, job).pid = None
    assert desk.look(0.1) == {job: Deed.REMOVE}


def test_two_reconcilers_at_once_do_what_one_does(settings: Settings, catalog: Catalog) -> None:
    jobs = [add_job(catalog, wanted="running") for _ in range(8)]
    jobs += [add_job(catalog, wanted="deleted") for _ in range(8)]
    desks = [Desk(settings, catalog), Desk(settings, catalog)]
    for job in jobs[:8]:
        desks[0].take(job, 1, 2**22 + 1, "boot-1")
        desks[0].see(job, "running")
    failures: list[BaseException] = []

    def run(desk: Desk) -> None:
        try:
            for _ in range(10):
                desk.look(0.05)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(desk,)) for desk in desks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with catalog.read() as session:
        assert session.query(Job).count() == 8
    for job in jobs[:8]:
        seen = job_of(catalog, job)
        assert (seen.observed, seen.failures, seen.generation) == ("failed", 1, 1)
        assert events_of(catalog, job) == ["job.starting", "job.failed"]


def test_a_driver_that_cannot_be_started_is_a_failure_with_its_reason(
    settings: Settings, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = add_job(catalog, wanted="running")
    monkeypatch.setenv(processes.DRIVER_COMMAND, "/no/such/program")
    assert not launch.launch(settings, catalog, job, 1, "here")
    seen, lease = job_of(catalog, job), lease_of(catalog, job)
    assert seen.observed == "failed"
    assert seen.reason is not None and "could not be started" in seen.reason
    assert lease is not None and lease.ended


@pytest.mark.slow
def test_a_dead_drivers_children_are_killed_before_its_lease_is_freed(
    settings: Settings, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings.model_copy(update={"lease_s": 20.0})
    desk = Desk(settings, catalog)
    job = add_job(catalog, wanted="running")
    monkeypatch.setenv(processes.DRIVER_COMMAND, STAND_IN)
    assert launch.launch(settings, catalog, job, 1, "here")
    assert not launch.launch(settings, catalog, job, 1, "here")
    assert comes_true(lambda: job_of(catalog, job).observed == "running", 60)
    (leader,) = processes.leaders(settings.data)
    os.kill(leader, 9)
    assert comes_true(lambda: processes.started(leader) is None, 5)
    assert len(processes.members(settings.data)) == 1
    assert desk.look() == {job: Deed.FREE}
    assert processes.members(settings.data) == []
    assert Path(settings.job_folder(job) / launch.LOG).exists()


def test_a_look_tells_which_drivers_to_watch_and_when_a_job_that_failed_is_due(
    desk: Desk, sleeper: tuple[int, str]
) -> None:
    runs, failed, elsewhere = (add_job(desk.catalog, wanted="running") for _ in range(3))
    desk.take(runs, 1, *sleeper)
    desk.take(elsewhere, 1, 1, "another")
    with desk.catalog.begin() as session:
        session.get_one(Lease, elsewhere).host = "there"
    change(desk.catalog, failed, observed="failed", observed_since_us=desk.now_us, failures=2)
    desk.look(0.5)
    assert (desk.reconciler.drivers, desk.reconciler.due_s) == ({sleeper}, 1.5)
    assert desk.look(1.5) == {failed: Deed.LAUNCH}
    assert desk.reconciler.due_s is None


def test_a_look_at_many_jobs_is_short(desk: Desk, sleeper: tuple[int, str]) -> None:
    for _ in range(100):
        job = add_job(desk.catalog, wanted="running")
        desk.take(job, 1, *sleeper)
        desk.see(job, "running")
    desk.look()
    seconds = []
    for _ in range(3):
        begun_s = time.thread_time()
        assert desk.look(1) == {}
        seconds.append(time.thread_time() - begun_s)
    assert min(seconds) < 0.5, "one of three may have collected the garbage of all tests before"
