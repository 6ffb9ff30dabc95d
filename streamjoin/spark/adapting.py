"""How units of a job came and went in a run, as the units that decide have told."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

KEPT = 10_000
"""Changes that a job remembers: it may run for months."""


@dataclass(slots=True)
class Adapting:
    """Changes of a run.

    Args:
        units: how many units of each stream, or nodes of a ring, store and drain, from which batch on, where that
            changed.
        decisions: those that were made, with their numbers.
    """

    units: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=KEPT))
    decisions: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=KEPT))
    _last: dict[int, dict[str, Any]] = field(default_factory=dict)

    def add(self, batch: int, units: Sequence[Mapping[str, Any]]) -> None:
        """Note what the units of a batch tell."""
        for unit in units:
            if not (told := unit.get("adapting")):
                continue
            stage = unit.get("stage", 0) + 1
            now = {"units": told["units"], "draining": told["draining"]}
            if self._last.get(stage) != now:
                self._last[stage] = now
                self.units.append({"batch": batch, "at_us": told["at_us"], "stage": stage, **now})
            self.decisions += [{"stage": stage, **decision} for decision in told["decisions"]]

    def to_json(self) -> dict[str, Any]:
        """As a report has it; empty where units stay."""
        if not self.units:
            return {}
        return {"adaptive": {"units": list(self.units), "decisions": list(self.decisions)}}
