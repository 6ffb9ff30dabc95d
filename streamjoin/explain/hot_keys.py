"""Keys of which one unit would get more than its share."""

from __future__ import annotations

from dataclasses import dataclass

from streamjoin.engine.operator import Operator
from streamjoin.explain.sampling import Look
from streamjoin.plan.window import S

HOT_SHARES = 0.5
"""A key is hot from so many times a unit's fair share: its unit gets half as much again as the others, at least."""


@dataclass(frozen=True, slots=True)
class HotKey:
    """A key that one unit gets all tuples of, and that is more than other units get in all.

    Args:
        share: of the stream's sampled tuples.
        units: how many store the stream.
    """

    share: float
    units: int

    def __str__(self) -> str:
        return (
            f"one key has {self.share:.0%} of the sampled tuples, and by hash one unit of {self.units} gets all of them"
        )


def hot_keys(operator: Operator, looked: Look) -> dict[int, HotKey]:
    """Keys that are too frequent for hash routing; other operators do not send equal keys to one unit."""
    if (units := operator.capabilities.units_by_key) is None:
        return {}
    # A stream that comes in at a later stage is S there.
    shares = looked.top_key_shares()
    keys = {number: HotKey(round(share, 4), units[min(number, S)]) for number, share in shares.items()}
    return {side: key for side, key in keys.items() if key.share > HOT_SHARES / key.units and key.units > 1}
