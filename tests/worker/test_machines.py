"""Which machine a job goes to: one with room, the one that has its state, or any where that is in a store."""

from __future__ import annotations

import os
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from pydantic import ValidationError
from sqlalchemy.orm import Session

from backend.catalog.database import Catalog
from backend.catalog.ids import now_us
from backend.catalog.jobspec import JobSpec
from backend.catalog.machines import SILENT_S, folder_id
from backend.catalog.models import Lease, Machine
from backend.jobs.inputs import Inputs, check_sent
from backend.jobs.joinfile import check_store, join_file
from backend.settings import Settings
from backend.streams.pushed import PUSH
from streamjoin.errors import InputError
from worker import launch, leases, machines, processes
from worker.checks import check_state
from worker.decide import Deed
from worker.machines import Machines, Room, place
from worker.queues import QUEUE, queue_of
from worker.tasks import FORGET, LAUNCH

from .jobs import add_job, change, job_of, lease_of, want
from .test_reconcile import STAND_IN, Desk

GB = 1 << 30
STORE: dict[str, Any] = {
    "state": "s3://key:secret@bucket/states?region=x", "result_store": "cassandra", "cassandra_hosts": ("127.0.0.1",),
}  # fmt: skip


def add_machine(catalog: Catalog, name: str, free_bytes: int, folder: str = "", silent_s: float = 0.0) -> None:
    seen_at_us = now_us() - round(silent_s * 1e6)
    with catalog.begin() as session:
        session.merge(Machine(name=name, folder=folder or f"of {name}", seen_at_us=seen_at_us, free_bytes=free_bytes))


@pytest.fixture
def desk(settings: Settings, catalog: Catalog) -> Desk:
    return Desk(settings, catalog)


def ran(desk: Desk, job: str, host: str, folder: str | None) -> None:
    """The job ran on a machine, and was stopped there."""
    with desk.catalog.begin() as session:
        leases.take(session, job, 1, host, now_us=desk.now_us, lease_s=4, home=leases.Home(folder))
        session.get_one(Lease, job).ended = True
    change(desk.catalog, job, observed="stopped")


def queues(desk: Desk) -> list[str]:
    return [queue for task, _, queue in desk.sent if task == LAUNCH]


def test_the_machine_with_the_most_room_is_taken_until_it_was_told_of_enough() -> None:
    rooms = [Room("a", "A", 8 * GB), Room("b", "B", 6 * GB), Room("c", "A", 1 * GB)]
    assert place(rooms, None, [], GB, {}) == rooms[0]
    assert place(rooms, None, ["a", "a", "a"], GB, {}) == rooms[1]
    assert place(rooms, "B", [], GB, {}) == rooms[1]
    assert place(rooms, "A", ["a"] * 8, GB, {}) == rooms[2]
    assert place(rooms, "C", [], GB, {}) is None


def test_jobs_are_spread(desk: Desk) -> None:
    for name, free in (("a", 6 * GB), ("b", 6 * GB - 1)):
        add_machine(desk.catalog, name, free)
    for _ in range(4):
        add_job(desk.catalog, wanted="running")
    desk.reconciler.settings = desk.settings.model_copy(update={"driver_memory_mib": 1024})
    assert list(desk.look().values()) == [Deed.LAUNCH] * 4
    assert sorted(queues(desk)) == [queue_of("a"), queue_of("a"), queue_of("b"), queue_of("b")]
    assert desk.look(1.0) and len(desk.sent) == 4  # nobody is told twice


def test_without_a_machine_that_said_so_lately_any_worker_takes_it(desk: Desk) -> None:
    add_machine(desk.catalog, "a", GB, silent_s=SILENT_S + 1)
    add_job(desk.catalog, wanted="running")
    desk.look()
    assert queues(desk) == [QUEUE]


def test_a_job_goes_on_where_its_state_is_and_waits_for_it(desk: Desk) -> None:
    job = add_job(desk.catalog, wanted="running")
    add_machine(desk.catalog, "a", 8 * GB)
    add_machine(desk.catalog, "b", 1 * GB)
    ran(desk, job, "b", "of b")
    desk.look()
    assert queues(desk) == [queue_of("b")]
    add_machine(desk.catalog, "b", 1 * GB, silent_s=SILENT_S + 1)
    desk.look(20.0)
    assert len(desk.sent) == 1
    assert job_of(desk.catalog, job).reason == "it waits for the worker of b, in whose data folder its state is"
    # Another machine with the same folder, such as a container that was made anew, is as good.
    add_machine(desk.catalog, "c", 1 * GB, "of b")
    desk.look(20.0)
    assert queues(desk)[1:] == [queue_of("c")]


def test_a_job_that_starts_anew_or_has_its_state_in_a_store_goes_anywhere(desk: Desk) -> None:
    desk.reconciler.settings = desk.settings.model_copy(update=STORE)
    anew, stored = (add_job(desk.catalog, wanted="running") for _ in range(2))
    add_machine(desk.catalog, "a", 8 * GB)
    ran(desk, anew, "b", "of b")
    change(desk.catalog, anew, incarnation=1)
    ran(desk, stored, "b", None)
    desk.look()
    assert queues(desk) == [queue_of("a"), queue_of("a")]


TABLE = {"t": {"source": "csv", "path": "/data/t.csv"}}
PUSHED = {"s": {"source": "jsonl", "path": "/spool/s", "time": "at", PUSH: True}}
SENT = {"s": {"source": "csv", "path": "upload:a.csv", "time": "at"}}


@pytest.mark.parametrize("inputs", [{"relations": TABLE}, {"streams": PUSHED}, {"streams": SENT}])
def test_relations_and_what_was_sent_bind_a_job_to_its_data_folder_beside_a_store(
    desk: Desk, inputs: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are in no store, so the job would not go on elsewhere; it waits as those without a store do."""
    monkeypatch.setenv(processes.DRIVER_COMMAND, STAND_IN)
    settings = desk.settings.model_copy(update=STORE)
    desk.reconciler.settings = settings
    job = add_job(desk.catalog, wanted="running", **inputs)
    with desk.catalog.begin() as session:
        folder = folder_id(settings.data)
        leases.take(session, job, 1, "b", now_us=desk.now_us, lease_s=4, home=leases.Home(folder, to_store=True))
        session.get_one(Lease, job).ended = True
    change(desk.catalog, job, observed="stopped")
    assert join_file(settings, job_of(desk.catalog, job), {}).run.state is None
    add_machine(desk.catalog, "a", 8 * GB)
    desk.look()
    assert desk.sent == []
    assert job_of(desk.catalog, job).reason == "it waits for the worker of b, in whose data folder its state is"
    other = settings.model_copy(update={"data": settings.data / "other"})
    assert not launch.launch(other, desk.catalog, job, 2, "a")  # whoever sent it
    add_machine(desk.catalog, "b", 1 * GB, folder)
    desk.look(20.0)
    assert queues(desk) == [queue_of("b")]


def test_a_job_whose_relation_came_after_its_state_was_in_a_store_says_so(desk: Desk) -> None:
    desk.reconciler.settings = desk.settings.model_copy(update=STORE)
    job = add_job(desk.catalog, wanted="running", relations=TABLE)
    add_machine(desk.catalog, "b", 8 * GB)
    ran(desk, job, "b", None)
    desk.look()
    assert desk.sent == [] and "a job with relations, uploads or pushed rows keeps it in a data folder" in (
        job_of(desk.catalog, job).reason or ""
    )


def test_what_was_sent_to_one_folder_is_refused_where_jobs_run_with_another(
    settings: Settings, catalog: Catalog
) -> None:
    add_machine(catalog, "here", 8 * GB, folder_id(settings.data))
    with catalog.read() as session:
        for streams in (PUSHED, SENT):
            check_sent(session, settings, Inputs(streams, {}))
    add_machine(catalog, "gone", 8 * GB, silent_s=SILENT_S + 1)
    add_machine(catalog, "b", 8 * GB)
    with catalog.read() as session:
        check_sent(session, settings, Inputs({}, TABLE))
        for streams, said in ((PUSHED, "pushed rows"), (SENT, "upload:a.csv")):
            with pytest.raises(InputError, match=rf"^streams\.s: reads {said}, .* and b, which takes jobs, too, has"):
                check_sent(session, settings, Inputs(streams, {}))


@pytest.mark.parametrize(
    ("was_in", "now", "said"),
    [
        ("of b", STORE, "its state is in the data folder of b, and STREAMJOIN_STATE names a store now"),
        (None, {}, "its state is in the store that STREAMJOIN_STATE named"),
    ],
)
@pytest.mark.parametrize("there", [["a", "b"], []])
def test_a_job_begins_nowhere_without_the_state_that_it_has(
    desk: Desk, was_in: str | None, now: dict[str, Any], said: str, there: list[str]
) -> None:
    """Where the setting was changed meanwhile: it would begin anew, without a word."""
    for name in there:
        add_machine(desk.catalog, name, 8 * GB)
    job = add_job(desk.catalog, wanted="running")
    ran(desk, job, "b", was_in)
    settings = desk.settings.model_copy(update=now)
    desk.reconciler.settings = settings
    desk.look()
    assert desk.sent == [] and (job_of(desk.catalog, job).reason or "").startswith(said)
    assert not launch.launch(settings, desk.catalog, job, 2, "b")  # whoever sent it
    assert job_of(desk.catalog, job).generation == 1


def test_jobs_that_must_wait_take_no_turn_from_others(desk: Desk) -> None:
    add_machine(desk.catalog, "a", 8 * GB)
    for _ in range(desk.settings.starts_max):
        stuck = add_job(desk.catalog, wanted="running")
        ran(desk, stuck, "dead", "of dead")
        change(desk.catalog, stuck, observed_since_us=desk.now_us - 10**9)
    free = add_job(desk.catalog, wanted="running")
    desk.look()
    assert [arguments[0] for task, arguments, _ in desk.sent if task == LAUNCH] == [free]


def test_jobs_of_a_version_that_knew_one_folder_stay_with_it(desk: Desk) -> None:
    add_machine(desk.catalog, "old", 1 * GB)
    add_machine(desk.catalog, "new", 8 * GB)
    jobs = [add_job(desk.catalog, wanted="running") for _ in range(2)]
    for job in jobs:
        ran(desk, job, "old", None)
        with desk.catalog.begin() as session:
            session.get_one(Lease, job).incarnation = None  # as a migration leaves it
    first, other = jobs
    machine = Machines(
        desk.catalog, "renamed", "of new", partial(leases.adopt, folder="of new", has_state=lambda job, n: job == first)
    )
    machine.say()
    found = lease_of(desk.catalog, first)
    assert found is not None and (found.folder, found.incarnation) == ("of new", 0)
    desk.look()
    sent = {arguments[0]: queue for task, arguments, queue in desk.sent if task == LAUNCH}
    assert sent[other] == queue_of("old") and sent[first] in (queue_of("new"), queue_of("renamed"))
    desk.reconciler.settings = desk.settings.model_copy(update=STORE)
    third = add_job(desk.catalog, wanted="running")
    ran(desk, third, "old", None)
    with desk.catalog.begin() as session:
        session.get_one(Lease, third).incarnation = None
    desk.look(1.0)
    assert "STREAMJOIN_STATE names a store now" in (job_of(desk.catalog, third).reason or "")


def test_a_change_that_starts_anew_while_a_driver_starts_leaves_it_bound(catalog: Catalog) -> None:
    job = add_job(catalog, wanted="running")
    with catalog.begin() as session:
        leases.take(session, job, 1, "b", now_us=now_us(), lease_s=4, home=leases.Home("of b"))
    change(catalog, job, incarnation=1, version=2)
    with catalog.begin() as session:
        assert leases.enter(session, job, 1, 1, "x", home=leases.Home("of b")).incarnation == 1
    lease = lease_of(catalog, job)
    assert lease is not None and leases.bound_to(lease, job_of(catalog, job)) == "of b"


@pytest.mark.parametrize(("before", "after", "folder"), [({}, TABLE, "of b"), (TABLE, {}, None)])
def test_a_job_that_gains_or_loses_its_relation_while_a_driver_starts_is_bound_to_where_its_state_will_be(
    catalog: Catalog, before: dict[str, Any], after: dict[str, Any], folder: str | None
) -> None:
    home = leases.Home("of b", to_store=True)
    job = add_job(catalog, wanted="running", relations=before)
    with catalog.begin() as session:
        leases.take(session, job, 1, "b", now_us=now_us(), lease_s=4, home=home)
    change(catalog, job, incarnation=1, version=2, relations=after)
    with catalog.begin() as session:
        leases.enter(session, job, 1, 1, "x", home=home)
    lease, changed = lease_of(catalog, job), job_of(catalog, job)
    assert lease is not None and leases.bound_to(lease, changed) == folder
    assert leases.moved_text(lease, changed, to_store=folder is None) is None


def test_a_machine_whose_clock_is_far_ahead_gets_no_jobs(desk: Desk) -> None:
    add_job(desk.catalog, wanted="running")
    add_machine(desk.catalog, "dead", 64 * GB, silent_s=-3600)
    add_machine(desk.catalog, "a", 8 * GB)
    desk.look()
    assert queues(desk) == [queue_of("a")]


def test_whoever_has_spoken_leaves_no_catalog_open_for_a_fork(settings: Settings, catalog: Catalog) -> None:
    machine = Machines(catalog, "a", "of a")
    machine.say()
    assert open_below(settings.data) == []
    with catalog.read() as session:
        assert [room.name for room in machines.rooms(session, now_us())] == ["a"]
    assert open_below(settings.data) != [], "what is looked for is found where it is"
    machine.leave()
    assert open_below(settings.data) == []


def open_below(folder: Path) -> list[str]:
    """The files below a folder that this process has open."""
    return [file.path for file in psutil.Process().open_files() if Path(file.path).is_relative_to(folder.absolute())]


def test_attack_forks_find_no_catalog_open(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child of a fork while SQLite is open in another thread could never write."""
    machine = Machines(catalog, "a", "of a")
    machine.start()
    inside = threading.Event()
    merge = Session.merge

    def slowly(self: Session, one: Any) -> Any:
        found = merge(self, one)
        self.flush()
        inside.set()
        time.sleep(0.5)
        return found

    monkeypatch.setattr(Session, "merge", slowly)
    teller = threading.Thread(target=machine.say)
    teller.start()
    assert inside.wait(10)
    if (child := os.fork()) == 0:
        try:
            machine.say()
            os._exit(0)
        finally:
            os._exit(1)
    teller.join()
    assert os.waitpid(child, 0)[1] == 0
    machine.leave()


def test_a_machine_refuses_a_job_whose_state_is_elsewhere(
    settings: Settings, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it was sent: it would begin anew, and give everything twice."""
    monkeypatch.setenv(processes.DRIVER_COMMAND, STAND_IN)
    job = add_job(catalog, wanted="running")
    with catalog.begin() as session:
        leases.take(session, job, 1, "b", now_us=now_us(), lease_s=4, home=leases.Home("of b"))
        session.get_one(Lease, job).ended = True
    want(catalog, job, "running")
    assert not launch.launch(settings, catalog, job, 2, "here")
    lease = lease_of(catalog, job)
    assert lease is not None and (lease.generation, lease.host) == (1, "b")
    assert processes.members(settings.data, job) == []


def test_a_machine_says_that_it_is_there_and_that_it_leaves(settings: Settings, catalog: Catalog) -> None:
    machine = Machines(catalog, "a", folder_id(settings.data))
    machine.say()
    machine.say()
    with catalog.read() as session:
        (room,) = machines.rooms(session, now_us())
        assert machines.rooms(session, now_us() + round(1e6 * (SILENT_S + 1))) == []
    assert (room.name, room.folder) == ("a", folder_id(settings.data)) and room.free_bytes > 1 << 20
    machine.leave()
    with catalog.read() as session:
        assert machines.rooms(session, now_us()) == []


def test_a_data_folder_is_known_by_one_name(tmp_path: Path) -> None:
    assert folder_id(tmp_path / "a") == folder_id(tmp_path / "a") != folder_id(tmp_path / "b")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["folder-id"]


def test_what_a_removed_job_left_on_other_machines_goes(desk: Desk) -> None:
    job = add_job(desk.catalog, wanted="deleted")
    add_machine(desk.catalog, "a", GB)
    add_machine(desk.catalog, "here", GB)
    assert desk.look() == {job: Deed.REMOVE}
    assert desk.sent == [(FORGET, [job], queue_of("a"))]


def test_a_machine_forgets_jobs_that_are_gone_and_no_others(settings: Settings, catalog: Catalog) -> None:
    there, gone = add_job(catalog), "job_01jd3xv4e2q8r5t9w1y7z0abcd"
    for job in (there, gone):
        (settings.job_folder(job) / "checkpoint-0").mkdir(parents=True)
    for job in (there, gone, "..", "job_x", ""):
        launch.forget(settings, catalog, job)
    assert settings.job_folder(there).is_dir() and not settings.job_folder(gone).exists()
    assert (settings.data / "catalog.db").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"state": "/mnt/states"}, "STREAMJOIN_STATE is /mnt/states"),
        ({"state": "file:///mnt/states"}, "a place in an object store is a URI"),
        ({"state": "s3://"}, "STREAMJOIN_STATE: names no bucket"),
        ({"state": "s4://key:secret@b"}, "STREAMJOIN_STATE: s4://b cannot be opened"),
        ({"result_store": "sqlite"}, "which has not the files of SQLite"),
        ({"worker_name": "a b"}, "worker_name"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Settings(auth="off", **{**STORE, **given})


def test_the_doctor_looks_at_the_store_of_states_and_tells_no_secret(settings: Settings) -> None:
    assert list(check_state(settings)) == []
    nowhere = "s3://key:secret@bucket/states?scheme=http&endpoint_override=127.0.0.1:1"
    (found,) = check_state(settings.model_copy(update={**STORE, "state": nowhere}))
    assert found.verdict == "wrong" and found.detail.startswith("s3://bucket/states cannot be looked at: ")
    assert "secret" not in f"{found}"


def test_a_job_has_its_state_below_the_place_of_the_platform(settings: Settings, catalog: Catalog) -> None:
    job = job_of(catalog, add_job(catalog, incarnation=2))
    assert join_file(settings, job, {}).run.state is None
    stored = settings.model_copy(update=STORE)
    run = join_file(stored, job, {}).run
    assert run.state == f"s3://key:secret@bucket/states/{job.id}/2?region=x"
    assert run.cache.path == str(settings.data / "cache")
    with pytest.raises(InputError, match="stay behind when the job goes on on another machine; write cassandra"):
        check_store(stored, JobSpec(job.spec.query, results={"store": "sqlite"}))
