"""What a job reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from backend.catalog.models import Job


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
