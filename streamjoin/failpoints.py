"""Named places where a test may make the process fail.

`STREAMJOIN_FAILPOINTS=unit.before_manifest:kill:3` kills the process (exit status 137, no clean-up) the third time that
place is reached; `raise` raises instead. Without the variable a failpoint costs one dictionary look-up.
"""

from __future__ import annotations

import os

NAMES = (
    "router.before_punctuation",
    "unit.before_probe",
    "unit.mid_results",
    "unit.before_segments",
    "unit.after_segments",
    "unit.before_manifest",
    "unit.after_manifest",
    "batch.before_commit",
    "batch.mid_commit",
    "batch.after_commit",
    "rejected.before_head",
    "rejected.after_head",
    "state.before_collect",
    "generation.after_fence",
    "generation.before_owner",
    "generation.after_owner",
    "generation.after_put",
    "requery.before_note",
    "requery.after_note",
    "relation.before_version",
    "relation.after_version",
    "store.after_blocks",
    "ledger.before_records",
    "ledger.before_head",
    "ledger.after_head",
    "ledger.after_base",
    "ledger.mid_expire",
)


class FailpointError(Exception):
    """A failpoint set to `raise` was reached."""


def _parse(text: str) -> dict[str, tuple[str, int]]:
    points = {}
    for item in filter(None, text.split(",")):
        name, action, *count = item.split(":")
        if name not in NAMES or action not in ("kill", "raise"):
            raise ValueError(f"no such failpoint: {item}; places are {', '.join(NAMES)}, actions kill and raise")
        points[name] = (action, int(count[0]) if count else 1)
    return points


_points = _parse(os.environ.get("STREAMJOIN_FAILPOINTS", ""))
_reached: dict[str, int] = {}


def failpoint(name: str) -> None:
    """Fail here, if a test asked for it."""
    if name not in _points:
        return
    action, count = _points[name]
    _reached[name] = _reached.get(name, 0) + 1
    if _reached[name] != count:
        return
    if action == "raise":
        raise FailpointError(name)
    _kill_job()


def _kill_job() -> None:
    # In a Spark task the job's driver is what must die; its process id is handed down in the environment.
    import signal

    driver = int(os.environ.get("STREAMJOIN_DRIVER_PID", "0"))
    if driver:
        os.kill(driver, signal.SIGKILL)
    os._exit(137)
