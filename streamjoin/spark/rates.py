"""How many tuples streams have brought lately in a second of event time, as predictions of orders take it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streamjoin.spark.batchreport import BatchReport

BATCHES = 1_000
"""What lately is, at most."""
SPAN_US_MIN = 1_000_000
"""Less event time says nothing of a rate."""


@dataclass(slots=True)
class Rates:
    """By stream, its newest event time and the tuples that came up to then, after each of the last batches.

    The tuples of a batch came after the newest one of the batch before, so that those of the first batch are not
    counted: nobody knows when they began.
    """

    _seen: dict[int, deque[tuple[int, int]]] = field(default_factory=dict)

    def add(self, batch: BatchReport) -> None:
        """Take what a batch brought."""
        for stream, latest_us in batch.latest_us.items():
            counts = batch.intake.get(stream, {})
            seen = self._seen.setdefault(stream, deque(maxlen=BATCHES))
            before_us, before = seen[-1] if seen else (latest_us, 0)
            kept = counts.get("rows", 0) - counts.get("dropped_by_selection", 0)
            seen.append((max(latest_us, before_us), before + kept))

    def per_s(self, names: Sequence[str]) -> Mapping[str, float]:
        """By name, of the streams of which it is known."""
        found = {}
        for stream, seen in self._seen.items():
            (first_us, first), (last_us, last) = seen[0], seen[-1]
            if last_us - first_us >= SPAN_US_MIN:
                found[names[stream]] = (last - first) / (last_us - first_us) * 1e6
        return found
