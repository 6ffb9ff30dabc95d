"""What steps of an operator's units take, measured by the driver as batches are done, and logged before the next one.

Reports are of the attempts that counted, so there is one answer; tasks of a batch read what was logged before it began.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from streamjoin.durable import put_durably
from streamjoin.engine.operator import Watching
from streamjoin.operators.costs.watched import Watched
from streamjoin.spec.job import Job
from streamjoin.spec.measured import MEASURED_FILE, MeasuredLog, Times
from streamjoin.state.generation import own_head
from streamjoin.state.root import ObjectRoot


class Measuring:
    """The times of a job's steps.

    Args:
        job: its checkpoint is held by this process.
        watching: what its operator is watched for.
    Raises:
        StateError: what an earlier start logged is damaged.
    """

    def __init__(self, job: Job, watching: Watching) -> None:
        self._job = job
        self._watching = watching
        self._log = MeasuredLog.of(job.checkpoint)
        self._logged_for = -1
        self._watched = Watched(dict(self._log.entries[-1][1]) if self._log.entries else {})

    @staticmethod
    def of(job: Job) -> Measuring | None:
        """None for a job of an operator of which nobody asks."""
        watching = job.operator.watching
        return Measuring(job, watching) if watching is not None else None

    def add(self, slots: Sequence[Mapping[str, Any]]) -> None:
        """Note what a batch took; `slots` are its reports."""
        stages = sorted({slot["stage"] for slot in slots})
        rounds = [[slot for slot in slots if slot["stage"] == stage] for stage in stages]
        tuples = sum(item["counts"].get("rows", 0) for slot in slots for item in slot["intake"])
        spent = [[unit["spent"] for slot in of_round for unit in slot["units"]] for of_round in rounds]
        hops_s = [
            min(slot["at_s"]["received"] for slot in after) - max(slot["at_s"]["done"] for slot in before)
            for before, after in pairwise(rounds)
        ]
        self._watched.add(self._watching.observed(spent, hops_s, tuples))

    def log(self, batch: int) -> None:
        """Before a batch begins: what its tasks know.

        Cost: a small file that is synced, where a time has become another one by a tenth.
        """
        if batch <= self._logged_for:
            return  # it is repeated, maybe after its times were noted: it knows what it knew
        self._logged_for = batch
        log = self._log.with_batch(batch, self._watched.known)
        if log != self._log:
            put_durably(self._job.checkpoint / MEASURED_FILE, log.to_text().encode())
            self._log = log

    def to_json(self) -> list[dict[str, Any]]:
        """What steps take, as the next batch knows it."""
        return self._watching.told(self._log.entries[-1][1] if self._log.entries else {})


def measured_before(job: Job, batch: int) -> Times:
    """What a task of a batch knows of the time of steps.

    Cost: one small file or object.
    Raises:
        StateError: it is damaged.
    """
    if isinstance(job.state, ObjectRoot):
        text = own_head(job.state).files.get(MEASURED_FILE)
        return {} if text is None else MeasuredLog.from_text(text).before(batch)
    return MeasuredLog.of(job.checkpoint).before(batch)
