"""What the ring, ATR and CTR send and store: PSP's figures 7 and 8(b, d, f). Counted, so that no costs are needed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from simulate.network import Earliest
from simulate.replicated import aligned, coordinated
from simulate.replicated.stored import Watched
from simulate.replicated.traffic import traffic
from simulate.ring import system
from simulate.ring.messages import Query, Row

WINDOW = 120
"""Time units, in which each stream brings `STORED` rows."""
STORED = 20
TUPLE_BYTES = 15_000
"""The paper's small images: 5,000 pixels of three bytes."""


@dataclass(frozen=True, slots=True)
class Case:
    """A run.

    Args:
        system: ring, aligned or coordinated.
        matches: p, how many rows of the next stream match a partial result.
        segment: L, in windows.
        copies: c.
    """

    system: str
    streams: int
    nodes: int
    matches: float
    segment: float = 5.0
    copies: int = 2


def history(streams: int, windows: int, matches: float) -> tuple[list[Row], Query]:
    """Streams that bring rows in turn; each is joined with the next one where their values are equal."""
    chosen = random.Random(streams)
    values = round(STORED / matches)
    count = windows * STORED * streams
    gap = WINDOW // (STORED * streams)
    rows = [Row(order % streams, order * gap, order, chosen.randrange(values)) for order in range(count)]
    conditions = tuple(((one, one + 1), lambda r, s: r.value == s.value) for one in range(streams - 1))
    orders = tuple(
        tuple(sorted((one for one in range(streams) if one != origin), key=lambda one: (abs(one - origin), one)))
        for origin in range(streams)
    )
    return rows, Query((WINDOW,) * streams, conditions, orders)


def run_case(case: Case, windows: int) -> dict[str, float]:
    """Messages, rows and bytes that were sent for a row; and the most rows that were stored.

    The last on all nodes at one moment, and on one node, in multiples of the rows in all windows.
    """
    rows, query = history(case.streams, windows, case.matches)
    played: system.Played | aligned.Played | coordinated.Played
    network = Watched(Earliest())
    if case.system == "ring":
        played = system.play_on(network, rows, query, [case.nodes] * case.streams)
    elif case.system == "aligned":
        length = round(case.segment * WINDOW)
        played = aligned.play(rows, query, case.nodes, length, 0, network)
    else:
        length = round(case.segment * WINDOW)
        played = coordinated.play(rows, query, case.nodes, length, case.copies, network)
    sent, live = traffic(network.log), STORED * case.streams
    return {
        "messages": sent.messages / len(rows),
        "rows": sent.tuples / len(rows),
        "bytes": sent.bytes(TUPLE_BYTES) / len(rows),
        "stored": network.most / live,
        "fullest": network.fullest / live,
        "results": len(played.results),
    }


def figures(nodes: tuple[int, ...]) -> dict[str, tuple[Case, ...]]:
    """All runs, by what they show."""
    systems: tuple[dict[str, Any], ...] = (
        {"system": "ring"},
        {"system": "aligned"},
        {"system": "aligned", "segment": 1.0},
        {"system": "coordinated", "segment": 0.25},
    )
    by_nodes = tuple(
        Case(streams=streams, nodes=count, matches=matches, **one)
        for streams, matches in ((3, 1.0), (3, 5.0), (5, 1.0))
        for count in nodes
        for one in systems
    )
    last = nodes[-1]
    by_segment = tuple(Case("aligned", 3, count, 1.0, length) for count in nodes for length in (1.0, 2.0, 5.0))
    copies = [one for one in (1, 2, 4, 9) if 2 * one <= last]
    by_copies = tuple(
        Case("coordinated", 3, count, 1.0, 0.25, one) for count in nodes for one in copies if 2 * one <= count
    )
    return {"traffic": by_nodes, "segments": by_segment, "copies": by_copies}


def counted(nodes: tuple[int, ...], windows: int) -> dict[str, list[dict[str, Any]]]:
    """All figures; a run that two of them have is done once."""
    known: dict[Case, dict[str, float]] = {}

    def points(cases: tuple[Case, ...]) -> Iterator[dict[str, Any]]:
        for case in cases:
            if case not in known:
                known[case] = run_case(case, windows)
            yield {**asdict(case), **known[case]}

    return {name: list(points(cases)) for name, cases in figures(nodes).items()}
