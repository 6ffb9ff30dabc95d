"""How evenly nodes of a ring are filled where one stream is ten times as fast as the others (PSP, section 5.5)."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from typing import Any

from simulate.ring.adapt import Rule, respond_adapting
from simulate.ring.messages import Query, Row
from simulate.ring.response import Response, respond
from simulate.timed import UnitCosts
from streamjoin.operators.costs.psp import StepTimes

RATES = (1, 10, 1)
"""Rows of each stream in a turn."""
TURN = sum(RATES)
GAP = 2
"""Time units between two rows; half of it once the rate has doubled."""
AFTER = 0.3
"""How many windows after that nodes are looked at."""
COSTS = UnitCosts(hop=1e-3)
"""Rows are counted here, so that nothing takes long enough to matter."""


def rows_of(before: int, after: int = 0) -> list[Row]:
    """So many turns of rows, those of a stream as far apart as may be, and so many that come twice as fast."""
    places = sorted(((at + 0.5) / rate, stream) for stream, rate in enumerate(RATES) for at in range(rate))
    slow = before * TURN
    return [
        Row(places[order % TURN][1], GAP * min(order, slow) + max(order - slow, 0) * GAP // 2, order, 0)
        for order in range((before + after) * TURN)
    ]


def query_of(turns: int) -> Query:
    """Windows of so many turns, of rows that match nothing: what is looked at is where they are."""
    pairs = tuple(((one, one + 1), lambda first, second: False) for one in range(len(RATES) - 1))
    return Query((turns * TURN * GAP,) * len(RATES), pairs, ((1, 2), (0, 2), (1, 0)))


def filled(found: Response) -> list[int]:
    """By node, how many rows it has, of all streams together."""
    return [node.stored for node in found.played.nodes]


def after_a_window(nodes: int, turns: int) -> list[int]:
    """States begin empty, and slices are equal."""
    return filled(respond(COSTS, 0, rows_of(turns + 1), query_of(turns), [nodes] * len(RATES), paced=True))


def after_a_change(nodes: int, turns: int, *, smoothing: bool) -> list[int]:
    """All rates double in a ring that is full; nodes have bounds of rows, or equal slices of time."""
    rows, query = rows_of(turns, round(AFTER * 2 * turns)), query_of(turns)
    stored, lately = rows[: turns * TURN], rows[turns * TURN :]
    if not smoothing:
        return filled(respond(COSTS, 0, lately, query, [nodes] * len(RATES), stored=stored, paced=True))
    rule = Rule(query.windows[0] // 10, nodes, 0.0, StepTimes(1e-9, 0.0, 1e-9))
    return filled(respond_adapting(COSTS, 0, lately, query, nodes, rule, stored=stored))


def points(nodes: tuple[int, ...], turns: int) -> Iterator[dict[str, Any]]:
    """The fullest and the emptiest node, in multiples of the mean.

    Args:
        turns: in a window.
    """
    for count in nodes:
        cases = {
            "a window after the start": after_a_window(count, turns),
            "doubled, equal slices": after_a_change(count, turns, smoothing=False),
            "doubled, smoothing": after_a_change(count, turns, smoothing=True),
        }
        for case, rows in cases.items():
            yield {
                "nodes": count, "case": case, "turns": turns,
                "fullest": max(rows) / fmean(rows), "emptiest": min(rows) / fmean(rows),
            }  # fmt: skip
