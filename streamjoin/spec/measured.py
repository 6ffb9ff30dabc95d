"""What a job's steps take, as its driver measured and logged it: a file of its checkpoint.

Whoever decides by it reads what was logged before the batch began, so a batch that is repeated decides the same. The
driver writes before a batch, never again for one that it has written for, and only where a time has become another one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from streamjoin.errors import StateError
from streamjoin.operators.costs.watched import LEAST_S, MOST_S

MEASURED_FILE = "measured.json"
_OTHER = 1.1
"""A time that differs by less is the same."""
_KEPT = 2
"""The newest entry, and the one before it, for a batch that is repeated."""
Times = dict[str, float]
"""In seconds, by name."""


@dataclass(frozen=True, slots=True)
class MeasuredLog:
    """What was logged, oldest first: the first batch that knows some times, and these."""

    entries: tuple[tuple[int, Times], ...] = ()

    def before(self, batch: int) -> Times:
        """What a batch knows; nothing where nothing was measured."""
        return next((dict(times) for first, times in reversed(self.entries) if first <= batch), {})

    def with_batch(self, batch: int, times: Mapping[str, float]) -> MeasuredLog:
        """The log before a batch begins, with what is known by now; itself where that changes nothing.

        What was logged for this batch, or for a later one, stays: it is repeated.
        """
        if not times or any(first >= batch for first, _ in self.entries):
            return self
        if self.entries and not _differ(self.entries[-1][1], times):
            return self
        return MeasuredLog((*self.entries, (batch, dict(times)))[-_KEPT:])

    def to_text(self) -> str:
        """`from_text` reads it back."""
        return json.dumps({"entries": [{"batch": batch, "seconds": times} for batch, times in self.entries]}, indent=1)

    @staticmethod
    def from_text(text: str) -> MeasuredLog:
        """The inverse of `to_text`.

        Raises:
            ValueError: it is damaged.
        """
        try:
            found = [(int(one["batch"]), _times(one["seconds"])) for one in json.loads(text)["entries"]]
        except (KeyError, TypeError, AttributeError) as wrong:
            raise ValueError(str(wrong)) from None
        return MeasuredLog(tuple(found))

    @staticmethod
    def of(checkpoint: Path) -> MeasuredLog:
        """What a checkpoint's driver has logged; nothing where it never has.

        Raises:
            StateError: it is damaged.
        """
        path = checkpoint / MEASURED_FILE
        try:
            return MeasuredLog.from_text(path.read_text())
        except FileNotFoundError:
            return MeasuredLog()
        except ValueError:
            raise StateError(
                f"{path} is damaged; restore the checkpoint from a copy, or remove this file, and its job measures anew"
            ) from None


def known_times(checkpoint: Path) -> Times:
    """What its next batch would know, for people; nothing where that is damaged, which whoever starts the job says."""
    try:
        entries = MeasuredLog.of(checkpoint).entries
    except (StateError, OSError):
        return {}
    return dict(entries[-1][1]) if entries else {}


def _times(found: Mapping[str, float]) -> Times:
    times = {str(name): float(seconds) for name, seconds in found.items()}
    if not all(isfinite(one) and LEAST_S <= one <= MOST_S for one in times.values()):
        raise ValueError("a time that no step takes")
    return times


def _differ(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    if one.keys() != other.keys():
        return True
    return any(max(one[name], other[name]) > _OTHER * min(one[name], other[name]) for name in one)
