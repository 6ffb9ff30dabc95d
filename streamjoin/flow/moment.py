"""When a batch begins. Nothing here looks at a clock.

A machine's wall clock is set now and then, and it goes on while the machine sleeps; neither is time in which a stream
was silent. So inside a run silence is measured by a steady clock, and the wall clock says what time it is for people.
Of the time between two runs nothing is known but what the wall clock says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

STEP_US = 10_000
"""The wall clock was set if it has left logged time by more than that; what is less may be its usual drift."""


@dataclass(frozen=True, slots=True)
class Moment:
    """When a batch began, as it is logged; all in us.

    Args:
        clock_us: logged time. It advances by the steady clock inside a run, and with a run from the wall clock, or from
            where it was if that is later.
        arrival_us: the event time of rows that have no other. It is the wall clock's, and never goes back: where the
            wall clock was set back it goes half as fast as the steady clock until the two meet.
        wall_us: what the wall clock said.
    """

    clock_us: int = 0
    arrival_us: int = 0
    wall_us: int = 0

    def begun(self, wall_us: int) -> Moment:
        """The first one of a run, after this one of the run before."""
        return Moment(max(self.clock_us, wall_us), max(self.arrival_us, wall_us), wall_us)

    def after(self, passed_us: int, wall_us: int) -> Moment:
        """A later one of the same run, so much later by the steady clock."""
        # At the first look after the clock was set back all that has passed counts: Spark may have looked in between,
        # before it was set.
        is_ahead = self.arrival_us > self.wall_us
        arrival_us = self.arrival_us + (passed_us // 2 if is_ahead else passed_us)
        return Moment(self.clock_us + passed_us, max(wall_us, arrival_us), wall_us)

    def is_off(self, logged: Moment) -> bool:
        """Whether the wall clock was set since a moment that was logged."""
        return abs((self.wall_us - self.clock_us) - (logged.wall_us - logged.clock_us)) > STEP_US

    def to_json(self) -> dict[str, int]:
        """Part of an offset; `from_json` reads it back."""
        return asdict(self)

    @staticmethod
    def from_json(offset: Mapping[str, Any]) -> Moment:
        """The inverse of `to_json`; one that was logged before all three were is all of the wall clock."""
        clock_us = int(offset["clock_us"])
        return Moment(clock_us, int(offset.get("arrival_us", clock_us)), int(offset.get("wall_us", clock_us)))
