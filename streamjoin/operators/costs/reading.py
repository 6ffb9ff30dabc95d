"""What single steps of joins with relations take here: the unit costs that rates are predicted from.

Printed by `python -m benchmarks.reading_times`, in the time of one core. The relation's files are mapped, so reading a
row is putting it in order, which is c_H here; what a tuple takes on its way in and out is all in c_S.
"""

from __future__ import annotations

from dataclasses import replace

from streamjoin.operators.costs.ssbj import StepTimes

SCAN_TIMES = StepTimes(seek=38e3, read=0, look_up=52, output=13, take=30, append=0, remove=0, meet=22e3, search=3.5)
"""Of an operator that reads a relation part by part."""
CACHE_TIMES = replace(SCAN_TIMES, take=70)
"""Of one that has a cache as well: each tuple is looked for in it first."""
SORTED_TIMES = StepTimes(seek=0, read=0, look_up=45, output=16, take=0, append=0, remove=0)
"""Of one that looks rows up in a sorted relation."""

BATCH_S = 0.25
"""What Spark takes for a batch, however small: how long rows that come wait at least, where a rate is given."""


def rate_of(times: StepTimes, matches: float) -> float:
    """Tuples a second of one core that looks each of them up, where one has so many results."""
    return 1e9 / times.hit(matches)
