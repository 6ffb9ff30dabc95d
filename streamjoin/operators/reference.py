"""The reference every operator is compared with: a nested loop over a recorded history, sharing no code with them.

A history is the two streams in arrival order. Each row is a mapping with at least "ts" (us) and whatever the predicate
reads; the result is the list of (r, s) index pairs that the definition of the join asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
Pairs = list[tuple[int, int]]


def time_window_join(
    r_rows: Sequence[Row], s_rows: Sequence[Row], match: Callable[[Row, Row], bool], before_us: int, after_us: int
) -> Pairs:
    """Pairs with -before_us <= s.ts - r.ts <= after_us that `match`."""
    return [
        (i, j)
        for i, r in enumerate(r_rows)
        for j, s in enumerate(s_rows)
        if -before_us <= s["ts"] - r["ts"] <= after_us and match(r, s)
    ]


def full_history_join(r_rows: Sequence[Row], s_rows: Sequence[Row], match: Callable[[Row, Row], bool]) -> Pairs:
    """All pairs that `match`."""
    return [(i, j) for i, r in enumerate(r_rows) for j, s in enumerate(s_rows) if match(r, s)]


def count_window_join(arrivals: Iterable[tuple[str, Row]], match: Callable[[Row, Row], bool], rows: int) -> Pairs:
    """Pairs of each arriving tuple with the last `rows` tuples of the other stream, in one order over both.

    Args:
        arrivals: ("r" or "s", row) in that order.
    """
    seen: dict[str, list[tuple[int, Row]]] = {"r": [], "s": []}
    pairs: Pairs = []
    for stream, row in arrivals:
        other = "s" if stream == "r" else "r"
        number = len(seen[stream])
        for partner_number, partner in seen[other][-rows:]:
            if match(row, partner) if stream == "r" else match(partner, row):
                pairs.append((number, partner_number) if stream == "r" else (partner_number, number))
        seen[stream].append((number, row))
    return pairs
