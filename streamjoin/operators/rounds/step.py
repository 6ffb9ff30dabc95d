"""What every round of a join of many streams begins with: its meeting, and what a `Step` has to show."""

from __future__ import annotations

from streamjoin.engine.unit import Work
from streamjoin.operators.rounds.meeting import Meeting
from streamjoin.plan.rounds import RoundPlan


class RoundStep:
    """A `Step` but for `results`.

    Args:
        inputs: how many streams enter: all of them, or what the round before found.
    """

    def __init__(self, work: Work, plan: RoundPlan, inputs: int) -> None:
        self.meeting = Meeting(work, inputs)
        self.report = self.meeting.report
        self.state = work.before
        self.span = range(0)
        self.plan = plan
        self._work = work

    @property
    def query(self) -> int:
        """See `Step`."""
        return self.meeting.query
