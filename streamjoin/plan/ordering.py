"""The order in which results leave a join: SplitJoin's punctuated result ordering, and a total order beyond it.

Every tuple has a *sequence number*: its place in the one sequence of both streams that all units agree on. A batch
takes the next numbers. Inside it R's tuples come before S's; with a count window they alternate, R first. So the number
of a tuple rises with its arrival, and of a pair the tuple with the higher one is the *newer*: it found the other.

    none    results leave as they are found
    outer   results of an earlier tuple come before those of a later one of its stream
    inner   and among the results of one tuple, those with an older partner come first
    total   and both hold over the results of the two streams together

Source: SplitJoin (USENIX ATC 2016), "Relaxed Adjustable Punctuation". Its stars tell a merger that a core is through
with a tuple; here the end of the batch tells it of all tuples of the batch at once.
"""

from __future__ import annotations

from enum import StrEnum

NEWER = "__newer"
"""Engine column of a result: the sequence number of its newer tuple, int64."""
OLDER = "__older"
"""Engine column of a result: the sequence number of its older tuple, int64."""


class Ordering(StrEnum):
    """What is promised of the order of results."""

    NONE = "none"
    OUTER = "outer"
    INNER = "inner"
    TOTAL = "total"


class InNoOrder:
    """What promises nothing of the order of its results."""

    __slots__ = ()

    @property
    def ordering(self) -> Ordering:
        """Results leave as they are found."""
        return Ordering.NONE

    @property
    def gathered(self) -> bool:
        """See `JoinPlan`."""
        return False
