"""What a checkpoint says of its batches, and what a start notes there for the next one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamjoin.durable import put_durably, sync_all
from streamjoin.errors import InputError, StateError
from streamjoin.intake.shedding import Rules, Shedding
from streamjoin.spark.offsetlog import drop_torn
from streamjoin.spec.job import Job
from streamjoin.state.generation import last_logged


def settle(job: Job) -> None:
    """Take away what a power cut left torn, and sync what a start left that was killed before it did.

    Cost: a sync for each folder in the checkpoint, and for each small file of Spark's.
    """
    drop_torn(job.offsets)
    if job.sync:
        sync_all(job.checkpoint, lambda path: path.parent.name == "sources" or path.is_relative_to(job.offsets))


def pending(job: Job) -> bool:
    """Whether a batch was planned that is not done. Sinks may have its results already."""
    return last_in(job, "offsets") > last_in(job, "commits")


def shedding(job: Job, rules: Rules) -> Shedding:
    """What this start sheds by, remembered for the next: a batch that is repeated sheds as it did before.

    Raises:
        StateError: what an earlier start left is damaged.
    """
    path = job.checkpoint / "shedding.json"
    try:
        known = Shedding.from_json(json.loads(path.read_text()))
    except FileNotFoundError:
        known = Shedding()
    except (ValueError, KeyError, TypeError, InputError):
        raise StateError(f"{path} is damaged; restore the checkpoint from a copy or start with another one") from None
    now = known.changed(rules, last_in(job, "offsets"))
    if now != known:
        write_json(path, now.to_json())
    return now


def begins(job: Job) -> frozenset[int]:
    """The first batch that this start plans, and that of an earlier one if it has to be repeated.

    Remembered for the next start, so that a batch knows in every attempt whether a stop was before it.

    Raises:
        StateError: what an earlier start left is damaged.
    """
    path, planned = job.checkpoint / "runs.json", last_in(job, "offsets")
    try:
        known = frozenset(int(batch) for batch in json.loads(path.read_text())["begins"])
    except FileNotFoundError:
        known = frozenset()
    except (ValueError, KeyError, TypeError):
        raise StateError(f"{path} is damaged; restore the checkpoint from a copy or start with another one") from None
    now = known & {planned} | {planned + 1}
    if now != known:
        write_json(path, {"begins": sorted(now)})
    return now


def version_of(job: Job) -> int:
    """The state's version after the last batch that is done."""
    return last_in(job, "commits") + 1


def lasting_version(job: Job) -> int:
    """The same where no batch is pending, and none is again after a power loss: older versions may be removed then."""
    assert not pending(job)
    sync_all(job.offsets, lambda path: path.parent.name == "commits")
    return version_of(job)


def last_in(job: Job, log: str) -> int:
    """The last batch in a log of Spark's; -1 for none."""
    return last_logged(job.offsets, log)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Put a small file of a checkpoint into place in one step, so that it lasts."""
    put_durably(path, json.dumps(value, indent=1).encode())
