"""The checkpoint directory of a job: one driver at a time, and always the same join.

job.json       what the checkpoint belongs to
lock           held by the running driver
offsets/       Spark's offsets and commits
state/         the units' state           sources/       file logs
dead-letters/  rows that cannot be joined
shedding.json  the rules of load shedding, where there ever were any
"""

from __future__ import annotations

import fcntl
import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from streamjoin.errors import InputError, StateError
from streamjoin.intake.shedding import Rules, Shedding
from streamjoin.job import IDENTITY_FILE, Job
from streamjoin.operators.operator import Elastic
from streamjoin.ordering import Ordering
from streamjoin.state import rescale
from streamjoin.state.manifest import FORMAT
from streamjoin.state.store import StateStore


def identity(job: Job) -> dict[str, Any]:
    """What must not change while a checkpoint is used; slots may, and units of an operator that is `Elastic`."""
    plan = job.plan
    keyed = [query.keyed for query in plan.queries]
    return {
        "format": FORMAT,
        "query": " ".join(plan.text.split()),
        "streams": {
            name: {"columns": str(stream.columns), "time": stream.time, "delay_us": stream.delay_us}
            for name, stream in zip(plan.names, plan.streams, strict=True)
        },
        "index": plan.index,
        "archive_period_us": plan.archive_period_us,
        "main predicate": plan.main,
        "operator": job.operator.lasting if isinstance(job.operator, Elastic) else repr(job.operator),
        "keyed results": keyed[0] if len(keyed) == 1 else keyed,
        # What the order is may change; stored tuples have their sequence numbers or have them not.
        "ordered results": plan.ordering is not Ordering.NONE,
    }


@dataclass(slots=True)
class Held:
    """A checkpoint that this process holds.

    Args:
        id: its own, by which stores tell the results of one from another's.
        units: of which number of units its state is.
        resizes: how often that has changed.
    """

    id: str
    units: int
    resizes: int

    def resizes_for(self, job: Job) -> bool:
        """Whether the state has to change for the job's operator."""
        return self.units != len(job.operator.units)

    def resize(self, job: Job) -> None:
        """Give the state as many units as the operator has; there must be no pending batch.

        Raises:
            StateError: the state is not all there.
        """
        assert isinstance(job.operator, Elastic) and not pending(job)
        store = StateStore(job.state)
        rescale.begin(store, _version(job), self.units, job.operator)
        self._complete(job, store)
        store.sweep()

    def _complete(self, job: Job, store: StateStore) -> None:
        """Finish what was begun, now or by a start that was killed."""
        if (units := rescale.complete(store)) is not None:
            self.units, self.resizes = units, self.resizes + 1
            path = job.checkpoint / IDENTITY_FILE
            _write(path, {**json.loads(path.read_text()), "units": self.units, "resizes": self.resizes})
            rescale.forget(store)


def pending(job: Job) -> bool:
    """Whether a batch was planned that is not done. Sinks may have its results already."""
    return _last(job, "offsets") > _last(job, "commits")


@contextmanager
def opened(job: Job) -> Iterator[Held]:
    """Hold a job's checkpoint.

    Raises:
        InputError: another driver holds it.
        StateError: it belongs to another join.
    """
    job.checkpoint.mkdir(parents=True, exist_ok=True)
    with open(job.checkpoint / "lock", "a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise InputError(
                f"checkpoint {job.checkpoint} is in use by process {lock.read().strip()}; stop that job first, or "
                "give this one another run.checkpoint"
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        held = _check_identity(job)
        store = StateStore(job.state)
        held._complete(job, store)
        store.sweep()
        yield held


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
    now = known.changed(rules, _last(job, "offsets"))
    if now != known:
        _write(path, now.to_json())
    return now


def _check_identity(job: Job) -> Held:
    path = job.checkpoint / IDENTITY_FILE
    mine = json.loads(json.dumps(identity(job)))
    if path.exists():
        try:
            theirs = json.loads(path.read_text())
        except ValueError:
            raise StateError(
                f"{path} is damaged; restore the checkpoint from a copy or start with another one"
            ) from None
        if changed := [name for name in mine if theirs.get(name) != mine[name]]:
            raise InputError(
                f"checkpoint {job.checkpoint} belongs to another join, with other {' and '.join(changed)}; use another "
                "run.checkpoint, or remove that one to start anew",
                field="run.checkpoint",
            )
        units = len(job.operator.units)
        return Held(str(theirs["id"]), theirs.get("units", units), theirs.get("resizes", 0))
    if job.offsets.exists() or job.state.exists():
        raise StateError(f"{path} is missing, so nobody can tell which join this checkpoint belongs to")
    held = Held(uuid.uuid4().hex, len(job.operator.units), 0)
    _write(path, {**mine, "slots": job.slots, **asdict(held)})
    return held


def _version(job: Job) -> int:
    """The state's version after the last batch that is done."""
    return _last(job, "commits") + 1


def _last(job: Job, log: str) -> int:
    """The last batch in a log of Spark's; -1 for none."""
    return max((int(path.name) for path in (job.offsets / log).glob("[0-9]*")), default=-1)


def _write(path: Path, value: Mapping[str, Any]) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(value, indent=1))
    os.replace(temporary, path)
