"""What a job reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.auth.secrets import open_sealed
from backend.catalog.models import Job, Stream
from backend.settings import Settings


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


def inputs_of(job: Job) -> Inputs:
    """As they were when the job last changed."""
    return Inputs(job.streams, job.relations)


def secrets_of(settings: Settings, session: Session, streams: Iterable[str]) -> dict[str, dict[str, Any]]:
    """What connects to streams and is kept apart from their entries, by stream."""
    found = session.scalars(select(Stream).where(Stream.name.in_(list(streams))))
    return {stream.name: open_sealed(settings, stream.secrets) for stream in found if stream.secrets}
