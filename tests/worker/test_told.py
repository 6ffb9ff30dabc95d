"""A machine that claims to take jobs, but whose worker gets no messages, keeps no jobs from other machines."""

from __future__ import annotations

import pytest

from backend.catalog.database import Catalog
from backend.settings import Settings
from worker import leases
from worker.machines import Room, place
from worker.queues import queue_of
from worker.reconcile import RESEND_S
from worker.told import LEFT_OUT_S

from .jobs import add_job, change, job_of, want
from .test_machines import GB, add_machine, queues, ran
from .test_reconcile import Desk


@pytest.fixture
def desk(settings: Settings, catalog: Catalog) -> Desk:
    """Machines a, which has the most room, and b."""
    return Desk(settings, catalog)


def look(desk: Desk, after_s: float = 0.0) -> list[str]:
    """Look, with both machines there; the machines that were told to launch something."""
    add_machine(desk.catalog, "a", 64 * GB)
    add_machine(desk.catalog, "b", 16 * GB)
    before = len(desk.sent)
    desk.look(after_s)
    return [queue.removeprefix(queue_of("")) for queue in queues(desk)[before:]]


def takes(desk: Desk, job: str, machine: str, generation: int = 1) -> None:
    """The machine's worker takes the launch; the job is then to begin anew, anywhere."""
    with desk.catalog.begin() as session:
        home = leases.Home(f"of {machine}")
        leases.take(session, job, generation, machine, now_us=desk.now_us, lease_s=4, home=home)
        leases.end(session, job, generation)
    change(desk.catalog, job, observed="stopped", incarnation=generation)


def test_machines_that_do_not_answer_are_asked_where_no_other_one_is_able_and_in_turn() -> None:
    rooms = [Room("a", "A", 8 * GB), Room("b", "B", 6 * GB), Room("c", "A", 1 * GB)]
    assert place(rooms, None, [], GB, {"a": 5.0}) == rooms[1]
    assert place(rooms, "A", [], GB, {"a": 5.0}) == rooms[2]
    assert place(rooms, "A", [], GB, {"a": 5.0, "c": 4.0}) == rooms[2]
    assert place(rooms, "A", [], GB, {"a": 5.0, "c": 6.0}) == rooms[0]
    assert place(rooms, "B", [], GB, {"b": 5.0}) == rooms[1]


def test_a_machine_that_takes_no_messages_is_left_out_for_all_jobs_and_the_job_says_so(desk: Desk) -> None:
    job = add_job(desk.catalog, wanted="running")
    assert look(desk) == ["a"]
    assert look(desk, RESEND_S - 1) == []
    assert look(desk, 1) == ["b"]
    assert job_of(desk.catalog, job).reason == (
        "it waits for a worker: that of a does not answer; look whether it reaches Redis"
    )
    add_job(desk.catalog, wanted="running")
    assert look(desk, 1) == ["b"]
    takes(desk, job, "b")
    assert job_of(desk.catalog, job).reason is None


def test_a_machine_that_is_left_out_is_tried_again_after_a_while(desk: Desk) -> None:
    job = add_job(desk.catalog, wanted="running")
    look(desk)
    look(desk, RESEND_S)
    for generation in range(1, 4):
        takes(desk, job, "b", generation)
        assert look(desk, LEFT_OUT_S / 4) == ["b"]
    takes(desk, job, "b", 4)
    assert look(desk, LEFT_OUT_S / 4) == ["a"]


def test_a_machine_that_takes_any_lease_answers(desk: Desk) -> None:
    job, other = (add_job(desk.catalog, wanted=wanted) for wanted in ("running", "stopped"))
    look(desk)
    assert look(desk, RESEND_S) == ["b"]
    takes(desk, job, "b")
    assert look(desk, 1) == ["b"], "that b answers says nothing of a"
    want(desk.catalog, other, "running")
    takes(desk, other, "a")  # another reconciler told it
    want(desk.catalog, other, "stopped")
    takes(desk, job, "b", 2)
    assert look(desk, 1) == ["a"]


def test_a_machine_that_alone_has_the_state_is_told_again_and_again(desk: Desk) -> None:
    job = add_job(desk.catalog, wanted="running")
    ran(desk, job, "a", "of a")
    assert [look(desk, RESEND_S) for _ in range(4)] == [["a"]] * 4
    assert "that of a does not answer" in (job_of(desk.catalog, job).reason or "")


def test_of_machines_that_are_all_silent_each_is_tried(desk: Desk) -> None:
    add_job(desk.catalog, wanted="running")
    assert [look(desk, RESEND_S) for _ in range(6)] == [["a"], ["b"]] * 3


def test_attack_a_job_that_is_stopped_and_started_makes_no_machine_silent(desk: Desk) -> None:
    """A machine that found nothing to launch meanwhile still counts as answering."""
    job = add_job(desk.catalog, wanted="running")
    assert look(desk) == ["a"]
    want(desk.catalog, job, "stopped")
    look(desk, 1)
    want(desk.catalog, job, "running")
    assert look(desk, RESEND_S) == ["a"]
    assert job_of(desk.catalog, job).reason is None


def test_what_is_remembered_of_launches_is_no_more_than_there_is(desk: Desk) -> None:
    job = add_job(desk.catalog, wanted="running")
    look(desk)
    look(desk, RESEND_S)
    told = desk.reconciler._told
    assert (set(told._waiting), set(told.silent())) == ({job}, {"a"})
    takes(desk, job, "b")
    want(desk.catalog, job, "deleted")
    look(desk, 1)
    look(desk, LEFT_OUT_S)
    assert (told._waiting, told._launched, told.silent()) == ({}, {}, {})
