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


def phase(wanted: str, observed: str) -> str:
    """One word for people."""
    if wanted == DELETED:
        return "deleting"
    return _PHASES.get((wanted, observed), observed)
