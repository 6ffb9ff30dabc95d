"""What units that join relations have done and hold, as a report, a metric and a page show it.

A unit's report counts by names: `tuples` it joined, `relation_rows` it read for them, `cache_hits`. Measured is the
time of units alone, which the cost model predicts (`costs/reading.py`): intake is not in it, nor what Spark takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WORK = "work_us"
PHASES = ("units_phasing_out", "units_counting", "units_switching")
"""How many units are in a round of each kind, by the number of the round modulo three."""


def counted(unit: Mapping[str, Any]) -> dict[str, int]:
    """What a unit's report counts of a relation's join, with the microseconds it took; empty of any other unit."""
    if not (counts := unit.get("reading")):
        return {}
    return {**counts, WORK: round(1e6 * sum(unit["seconds"].values()))}


def measured(counts: Mapping[str, int], at_once: int) -> dict[str, float | None]:
    """What follows from counts of all units.

    Args:
        at_once: how many units work at the same time.
    Returns:
        rate_per_s: tuples a second; None before there were any.
        rows_read_per_tuple, cached_share: None where a relation is not read part by part, or there is no cache.
    """
    tuples, work_us = counts.get("tuples", 0), counts.get(WORK, 0)

    def per_tuple(what: str) -> float | None:
        return round(counts[what] / tuples, 4) if tuples and what in counts else None

    return {
        "rate_per_s": round(tuples * 1e6 * at_once / work_us, 1) if tuples and work_us else None,
        "rows_read_per_tuple": per_tuple("relation_rows"),
        "cached_share": per_tuple("cache_hits"),
    }
