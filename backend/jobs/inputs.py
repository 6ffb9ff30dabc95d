"""What a job reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.catalog.ids import now_us
from backend.catalog.machines import folder_id, takes_jobs
from backend.catalog.models import Job, Machine
from backend.settings import Settings
from backend.streams.pushed import is_push
from backend.uploads.names import is_upload
from streamjoin.errors import InputError


@dataclass(frozen=True, slots=True)
class Inputs:
    """Entries of `streams:` and `relations:` of a join file, by name."""

    streams: Mapping[str, Any]
    relations: Mapping[str, Any]

    def as_in(self, earlier: Inputs) -> Inputs:
        """The same names, with the entries they had `earlier` where they were there."""
        return Inputs(
            {name: earlier.streams.get(name, entry) for name, entry in self.streams.items()},
            {name: earlier.relations.get(name, entry) for name, entry in self.relations.items()},
        )

    def and_those(self, others: Inputs) -> Inputs:
        """These as they are, and others that are not among them."""
        return Inputs({**others.streams, **self.streams}, {**others.relations, **self.relations})

    @property
    def sent(self) -> dict[str, str]:
        """What of them people sent to the platform, which lies in the data folder of the API: place -> what it is."""
        sections = (("streams", self.streams), ("relations", self.relations))
        found = {f"{section}.{name}": entry for section, entries in sections for name, entry in entries.items()}
        return {
            place: "pushed rows" if is_push(entry) else str(entry["path"])
            for place, entry in found.items()
            if is_push(entry) or is_upload(entry.get("path"))
        }

    @property
    def stay(self) -> bool:
        """Whether a job with them stays with a data folder: versions of relations, too, are in no other place."""
        return bool(self.relations or self.sent)


def inputs_of(job: Job) -> Inputs:
    """As they were when the job last changed."""
    return Inputs(job.streams, job.relations)


def check_sent(session: Session, settings: Settings, inputs: Inputs) -> None:
    """Refuse uploads and pushed rows where a job may come to a machine that has not got them.

    Raises:
        InputError: names such a machine, and the way out.
    """
    if not (sent := inputs.sent):
        return
    at_us, own, (place, what) = now_us(), folder_id(settings.data), next(iter(sent.items()))
    for machine in session.scalars(select(Machine).order_by(Machine.name)):
        if machine.folder != own and takes_jobs(machine, at_us):
            raise InputError(
                f"reads {what[:200]}, in the data folder of {settings.machine}, and {machine.name}, which takes jobs, "
                "too, has another one; let all machines mount one data folder, or put the rows where all of them have "
                "them: in files at one path, or in Kafka",
                field=place,
            )
