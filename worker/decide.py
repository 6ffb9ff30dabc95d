"""What is to be done about one job: a function of what is wanted, what was seen, and the time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from backend.catalog import lifecycle

BACKOFF_S_MAX: Final = 60.0
WELL_S: Final = 300.0
"""A job that has been running for so long has got over its failures."""
KILL_AFTER_S: Final = 10.0
"""So long after SIGTERM a driver that is still there is killed."""

LINGER_S: Final = 10.0
"""So long a driver that gave its lease back may take to end its Spark; it holds nothing that another one needs."""


class Process(StrEnum):
    """What is known of the process that a lease names."""

    ALIVE = "alive"
    GONE = "gone"
    ELSEWHERE = "on another machine"
    UNBORN = "not known yet"


class Deed(StrEnum):
    """What to do."""

    NOTHING = "nothing"
    LAUNCH = "launch the next generation"
    ASK = "ask the driver to stop"
    TERMINATE = "send SIGTERM to the driver"
    KILL = "kill the driver and all it started"
    FREE = "give the lease back for a driver that is gone"
    SEEN = "write down what is seen"
    FORGIVE = "count failures from 0 again"
    REMOVE = "remove the job and all it has"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSeen:
    """A lease that has not been given back.

    Args:
        version: of the job that its driver runs.
        process: what is known of the driver's process.
        overdue: it ran out, and was not renewed for a while since.
    """

    version: int
    stop: bool = False
    process: Process = Process.ALIVE
    overdue: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSeen:
    """A job, and who runs it.

    Args:
        version: that a driver should run.
        given_up: it failed too often by its own fault.
        lease: None where nobody holds one.
        lingers: nobody holds a lease, and the last driver's process is still there.
    """

    wanted: str
    observed: str
    wanted_since_us: int = 0
    observed_since_us: int = 0
    version: int = 1
    failures: int = 0
    given_up: bool = False
    lease: LeaseSeen | None = None
    lingers: bool = False


@dataclass(frozen=True, slots=True)
class Action:
    """What to do, and what to write down of it.

    Args:
        after: the observed state to write, for `Deed.SEEN`.
        why: one sentence for people.
    """

    deed: Deed
    why: str | None = None
    after: str | None = None


NOTHING: Final = Action(Deed.NOTHING)


def backoff_s(failures: int) -> float:
    """How long to wait after so many failures in a row."""
    return 0.0 if failures <= 0 else min(BACKOFF_S_MAX, 2.0 ** (failures - 1))


def decide(job: JobSeen, now_us: int, stop_grace_s: float) -> Action:
    """The next step towards what is wanted; there may be more, which the next look shows.

    Args:
        stop_grace_s: so long a driver that was asked to stop is left alone.
    """
    if job.lease is None:
        return _without_driver(job, now_us)
    if (gone := _loss(job.lease)) is not None:
        return gone
    since_s = (now_us - job.observed_since_us) / 1e6
    if job.lease.stop:
        if job.observed != lifecycle.STOPPING:  # it was seen to be something else since it was asked
            return Action(Deed.SEEN, after=lifecycle.STOPPING)
        if since_s > stop_grace_s + KILL_AFTER_S:
            return Action(Deed.KILL, f"it did not stop within {stop_grace_s + KILL_AFTER_S:g} s")
        return Action(Deed.TERMINATE) if since_s > stop_grace_s else NOTHING
    if job.wanted != lifecycle.RUNNING:
        return Action(Deed.ASK, f"it is to be {job.wanted}")
    if job.version > job.lease.version:
        return Action(Deed.ASK, "it was changed, or is to restart")
    if job.observed == lifecycle.RUNNING and job.failures and since_s > WELL_S:
        return Action(Deed.FORGIVE)
    return NOTHING


def _loss(lease: LeaseSeen) -> Action | None:
    if lease.process == Process.GONE:
        return Action(Deed.FREE, "the driver's process ended without a word; its log may tell more")
    if not lease.overdue:
        return None
    match lease.process:
        case Process.ALIVE:
            return Action(Deed.KILL, "it does not renew its lease")
        case Process.UNBORN:
            return Action(Deed.FREE, "the driver was not started in time")
        case _:
            return Action(Deed.FREE, "the driver does not renew its lease, and its machine does not tell why")


def _without_driver(job: JobSeen, now_us: int) -> Action:
    waited_s = (now_us - job.observed_since_us) / 1e6
    if job.lingers and (job.observed != lifecycle.STOPPED or waited_s > LINGER_S):
        return Action(Deed.KILL, "its lease is over")
    if job.wanted == lifecycle.DELETED:
        return NOTHING if job.lingers else Action(Deed.REMOVE)
    if job.observed in (lifecycle.STARTING, lifecycle.RUNNING, lifecycle.STOPPING, lifecycle.UNKNOWN):
        failed = job.wanted == lifecycle.RUNNING and job.observed in (lifecycle.STARTING, lifecycle.RUNNING)
        after = lifecycle.FAILED if failed else lifecycle.STOPPED
        return Action(Deed.SEEN, "nobody runs it", after)
    if job.wanted == lifecycle.STOPPED:
        # A failure stays to be seen, unless somebody stopped the job after it.
        seen = job.observed == lifecycle.FAILED and job.wanted_since_us > job.observed_since_us
        return Action(Deed.SEEN, after=lifecycle.STOPPED) if seen else NOTHING
    if job.observed == lifecycle.FAILED and (job.given_up or pause_s(job, now_us) is not None):
        return NOTHING
    return Action(Deed.LAUNCH)


def pause_s(job: JobSeen, now_us: int) -> float | None:
    """How long a job that failed is still left alone; None for one that is not, or that is not started again."""
    if job.lease is not None or job.wanted != lifecycle.RUNNING or job.observed != lifecycle.FAILED or job.given_up:
        return None
    left_s = backoff_s(job.failures) - (now_us - job.observed_since_us) / 1e6
    return left_s if left_s > 0 else None
