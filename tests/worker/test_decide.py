"""Every state a job can be in, and the next step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from backend.catalog import lifecycle
from worker.decide import (
    BACKOFF_S_MAX,
    KILL_AFTER_S,
    LINGER_S,
    WELL_S,
    Action,
    Deed,
    JobSeen,
    LeaseSeen,
    Process,
    backoff_s,
    decide,
    pause_s,
)

S = 1_000_000
NOW = 1_700_000_000 * S
GRACE_S = 60.0
LIVES = LeaseSeen(version=1)
ASKED = LeaseSeen(version=1, stop=True)
GONE = LeaseSeen(version=1, process=Process.GONE)


def job(wanted: str, observed: str, ago_s: float = 0, **more: Any) -> JobSeen:
    return JobSeen(wanted=wanted, observed=observed, observed_since_us=NOW - round(ago_s * S), **more)


@pytest.mark.parametrize(
    ("seen", "deed"),
    [
        # wanted to run, and nobody does
        (job("running", "stopped"), Deed.LAUNCH),
        (job("running", "failed", 1, failures=1), Deed.LAUNCH),
        (job("running", "failed", 0.9, failures=1), Deed.NOTHING),
        (job("running", "failed", 7.9, failures=4), Deed.NOTHING),
        (job("running", "failed", 8, failures=4), Deed.LAUNCH),
        (job("running", "failed", 59, failures=40), Deed.NOTHING),
        (job("running", "failed", 60, failures=40), Deed.LAUNCH),
        (job("running", "failed", 9999, failures=5, given_up=True), Deed.NOTHING),
        (job("running", "failed", 0, failures=0), Deed.LAUNCH),  # somebody started it again
        # wanted to run, and somebody does
        (job("running", "starting", 5, lease=LIVES), Deed.NOTHING),
        (job("running", "running", 5, lease=LIVES), Deed.NOTHING),
        (job("running", "running", WELL_S + 1, failures=3, lease=LIVES), Deed.FORGIVE),
        (job("running", "running", WELL_S - 1, failures=3, lease=LIVES), Deed.NOTHING),
        (job("running", "running", version=2, lease=LIVES), Deed.ASK),
        (job("running", "starting", version=2, lease=LIVES), Deed.ASK),
        (job("running", "stopping", 1, version=2, lease=ASKED), Deed.NOTHING),
        # the driver is gone
        (job("running", "running", lease=GONE), Deed.FREE),
        (job("stopped", "stopping", lease=replace(GONE, stop=True)), Deed.FREE),
        (job("deleted", "running", lease=GONE), Deed.FREE),
        # it does not renew
        (job("running", "running", lease=replace(LIVES, overdue=True)), Deed.KILL),
        (job("stopped", "stopping", lease=replace(ASKED, overdue=True)), Deed.KILL),
        (job("running", "starting", lease=replace(LIVES, overdue=True, process=Process.UNBORN)), Deed.FREE),
        (job("running", "running", lease=replace(LIVES, overdue=True, process=Process.ELSEWHERE)), Deed.FREE),
        (job("running", "starting", lease=replace(LIVES, process=Process.UNBORN)), Deed.NOTHING),
        (job("running", "running", lease=replace(LIVES, process=Process.ELSEWHERE)), Deed.NOTHING),
        # not wanted, and somebody runs it
        (job("stopped", "running", lease=LIVES), Deed.ASK),
        (job("deleted", "starting", lease=LIVES), Deed.ASK),
        (job("stopped", "unknown", lease=LIVES), Deed.ASK),
        (job("stopped", "stopping", GRACE_S, lease=ASKED), Deed.NOTHING),
        (job("stopped", "stopping", GRACE_S + 1, lease=ASKED), Deed.TERMINATE),
        (job("stopped", "stopping", GRACE_S + KILL_AFTER_S + 1, lease=ASKED), Deed.KILL),
        (job("running", "stopping", GRACE_S + KILL_AFTER_S + 1, lease=ASKED), Deed.KILL),
        # not wanted, and nobody runs it
        (job("stopped", "stopped"), Deed.NOTHING),
        (job("deleted", "stopped"), Deed.REMOVE),
        (job("deleted", "failed"), Deed.REMOVE),
        (job("stopped", "failed", 5), Deed.NOTHING),
        (job("stopped", "failed", 5, wanted_since_us=NOW), Deed.SEEN),
        # the process of a lease that is over
        (job("running", "failed", 99, lingers=True), Deed.KILL),
        (job("deleted", "stopped", lingers=True), Deed.NOTHING),  # its Spark ends; the next driver need not wait
        (job("running", "stopped", lingers=True), Deed.LAUNCH),
        (job("stopped", "stopped", LINGER_S, lingers=True), Deed.NOTHING),
        (job("stopped", "stopped", LINGER_S + 1, lingers=True), Deed.KILL),
        (job("deleted", "stopped", LINGER_S + 1, lingers=True), Deed.KILL),
    ],
)
def test_the_next_step(seen: JobSeen, deed: Deed) -> None:
    assert decide(seen, NOW, GRACE_S).deed == deed


@pytest.mark.parametrize(
    ("seen", "after"),
    [
        (job("running", "running"), "failed"),
        (job("running", "starting"), "failed"),
        (job("running", "stopping"), "stopped"),
        (job("running", "unknown"), "stopped"),
        (job("stopped", "running"), "stopped"),
        (job("stopped", "unknown"), "stopped"),
        (job("stopped", "running", lease=replace(ASKED)), "stopping"),
    ],
)
def test_what_is_seen_is_written_down(seen: JobSeen, after: str) -> None:
    action = decide(seen, NOW, GRACE_S)
    assert (action.deed, action.after) == (Deed.SEEN, after)
    assert after in lifecycle.MOVES[seen.observed]


def test_every_state_has_a_step_and_what_it_writes_is_legal() -> None:
    leases = [None, *(LeaseSeen(version=v, stop=stop, process=process, overdue=overdue) for v in (1, 2)
                      for stop in (True, False) for process in Process for overdue in (True, False))]  # fmt: skip
    for wanted in lifecycle.WANTED:
        for observed in lifecycle.OBSERVED:
            for lease in leases:
                for ago_s in (0, 65, 400):
                    seen = job(wanted, observed, ago_s, version=2, failures=3, lease=lease)
                    action = decide(seen, NOW, GRACE_S)
                    assert isinstance(action, Action)
                    if action.deed == Deed.LAUNCH:
                        assert wanted == "running" and lease is None and observed in ("stopped", "failed")
                    if action.deed == Deed.REMOVE:
                        assert wanted == "deleted" and lease is None


def test_pauses_grow_and_end_growing() -> None:
    for failures, since_s, left_s in ((1, 0.25, 0.75), (1, 1, None), (3, 1, 3), (0, 0, None)):
        assert pause_s(job("running", "failed", since_s, failures=failures), NOW) == left_s
    assert pause_s(job("stopped", "failed", 0, failures=3), NOW) is None
    assert pause_s(job("running", "failed", 0, failures=5, given_up=True), NOW) is None
    assert [backoff_s(failures) for failures in (0, 1, 2, 3, 7, 1000)] == [0, 1, 2, 4, BACKOFF_S_MAX, BACKOFF_S_MAX]
