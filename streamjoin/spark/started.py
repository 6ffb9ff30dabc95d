"""What a checkpoint says of its batches, and what a start notes there for the next one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamjoin.durable import put_durably, sync_all
from streamjoin.errors import InputError, StateError
from streamjoin.intake.shedding import Rules, Shedding
from streamjoin.plan.window import format_us
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
        InputError: a batch has to be repeated, and streams have another `idle` or other ends of periods than it had.
    """
    path, planned = job.checkpoint / "runs.json", last_in(job, "offsets")
    noted: dict[str, Any] = {}
    try:
        noted = json.loads(path.read_text())
        known = frozenset(int(batch) for batch in noted["begins"])
    except FileNotFoundError:
        known = frozenset()
    except (ValueError, KeyError, TypeError):
        raise StateError(f"{path} is damaged; restore the checkpoint from a copy or start with another one") from None
    streams = {stream.name: [stream.idle_us, str(stream.ending or "")] for stream in job.plan.streams}
    if pending(job):
        _check_streams(streams, noted.get("streams", {}), planned)
    now = known & {planned} | {planned + 1}
    if (told := {"begins": sorted(now), "streams": streams}) != noted:
        write_json(path, told)
    return now


def _check_streams(streams: Mapping[str, list[Any]], before: Mapping[str, list[Any]], batch: int) -> None:
    for name, (idle_us, ending) in streams.items():
        idle_before_us, ending_before = before.get(name, (idle_us, ending))
        was = "without it" if idle_before_us is None else f"with {format_us(idle_before_us)}"
        if idle_before_us != idle_us:
            raise InputError(
                f"batch {batch} was begun {was}, and is done again at this start; start the job once with that, "
                "and change it afterwards",
                field=f"streams.{name}.idle",
            )
        if ending_before != ending:
            raise InputError(
                f"batch {batch} was begun with other ends of periods, and is done again at this start; start the job "
                "once with those, and change them afterwards",
                field=f"streams.{name}.punctuate",
            )


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
