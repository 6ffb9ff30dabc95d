"""What people want of a job, what is seen of it, and which moves there are between the two.

    wanted     set by people                running | stopped | deleted
    observed   set by whoever looked        stopped, starting, running, stopping, failed, unknown

An error while looking is no state of a job: `unknown` says since when nobody could look.
"""

from __future__ import annotations

from typing import Final

RUNNING: Final = "running"
STOPPED: Final = "stopped"
DELETED: Final = "deleted"
STARTING: Final = "starting"
STOPPING: Final = "stopping"
FAILED: Final = "failed"
UNKNOWN: Final = "unknown"

WANTED: Final = (RUNNING, STOPPED, DELETED)
OBSERVED: Final = (STOPPED, STARTING, RUNNING, STOPPING, FAILED, UNKNOWN)

MOVES: Final[dict[str, frozenset[str]]] = {
    STOPPED: frozenset({STARTING}),
    STARTING: frozenset({RUNNING, STOPPING, STOPPED, FAILED, UNKNOWN}),
    RUNNING: frozenset({STOPPING, STOPPED, FAILED, UNKNOWN}),
    STOPPING: frozenset({STOPPED, FAILED, UNKNOWN}),
    FAILED: frozenset({STARTING, STOPPED}),
    UNKNOWN: frozenset({STARTING, RUNNING, STOPPING, STOPPED, FAILED}),
}
"""From each observed state, those that may follow it."""

GIVE_UP_FAILURES: Final = 5
"""So many failures in a row by a mistake of the job's own are enough; trying again cannot help."""
GIVEN_UP: Final = "; it failed so too often, and is started again when somebody starts or changes it"
"""How the reason of a job ends that was given up."""

_PHASES: Final = {
    (RUNNING, STOPPED): "starting",
    (RUNNING, STOPPING): "restarting",
    (RUNNING, FAILED): "recovering",
    (STOPPED, RUNNING): "stopping",
    (STOPPED, STARTING): "stopping",
}


def may_follow(before: str, after: str) -> bool:
    """Whether a job that was seen `before` may be seen `after`."""
    return before == after or after in MOVES[before]


def is_given_up(failures: int, reason: str | None) -> bool:
    """Whether a job that failed is left alone until somebody starts or changes it."""
    return failures >= GIVE_UP_FAILURES and reason is not None and reason.endswith(GIVEN_UP)


def phase(wanted: str, observed: str, *, given_up: bool) -> str:
    """One word for people.

    Args:
        given_up: see `is_given_up`; nobody tries such a job again.
    """
    if wanted == DELETED:
        return "deleting"
    if observed == FAILED and given_up:
        return FAILED
    return _PHASES.get((wanted, observed), observed)
