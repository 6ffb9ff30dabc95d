"""Numbers for the words of PSP's figure 7: of routing, duplicates, balancing, and keeping state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from statistics import fmean
from typing import Any

from benchmarks.psp.traffic import STORED, TUPLE_BYTES, WINDOW, history
from simulate.network import Earliest
from simulate.replicated import aligned, coordinated
from simulate.replicated.stored import Watched
from simulate.replicated.traffic import ENTRY_BYTES, traffic
from simulate.ring import system
from simulate.ring.messages import Build, Parts, Query, Row

STREAMS, MATCHES = 3, 1.0
SEGMENT, CTR_SEGMENT, COPIES = 5.0, 0.25, 2
"""L of ATR and of CTR, in windows, and c."""

Point = dict[str, Any]


def points(nodes: tuple[int, ...], windows: int) -> Iterator[Point]:
    """Each system on so many nodes; all of it is counted, so that no costs are needed.

    Of each point:
        looked_up: entries of a routing table that were looked at, for a row that comes in.
        metadata: bytes of names of segments and hosts that were sent, for a row.
        times_found: how often each result would be found if nodes answered for all that they have.
        granule: rows that can only go to another node together.
        table: entries that are kept of where state is, at the moment with the most.
        moved: rows that a node handed to another one, for a row.
        copies: rows that were put into a state from the outside, for a row.
        messages, bytes: see `traffic`.
    """
    rows, query = history(STREAMS, windows, MATCHES)
    for count in nodes:
        yield {"system": "aligned", "nodes": count, **_aligned(rows, query, count)}
        yield {"system": "coordinated", "nodes": count, **_coordinated(rows, query, count)}
        yield {"system": "ring", "nodes": count, **_ring(rows, query, count)}


def _aligned(rows: list[Row], query: Query, nodes: int) -> Point:
    network = Watched(Earliest())
    played = aligned.play(rows, query, nodes, round(SEGMENT * WINDOW), 0, network)
    spread = played.diffusion
    return {
        "looked_up": spread.looked_up / len(rows),
        "times_found": _times_found(played.results, played.results),
        "granule": fmean(spread.sizes.values()),
        "table": spread.table_most,
        "moved": 0.0,
        "copies": spread.sizes.total() / len(rows),
        **_sent(network, len(rows)),
    }


def _coordinated(rows: list[Row], query: Query, nodes: int) -> Point:
    length, network = round(CTR_SEGMENT * WINDOW), Watched(Earliest())
    played = coordinated.play(rows, query, nodes, length, COPIES, network)
    each_answers = coordinated.play(
        rows, query, nodes, length, COPIES, Earliest(), broken=coordinated.Broken(no_assignment=True)
    )
    return {
        "looked_up": played.diffusion.weighed / len(rows),
        "times_found": _times_found(each_answers.results, played.results),
        "granule": fmean(len(each) for _, each in coordinated.segments_of(rows, length)),
        "table": played.diffusion.table_most,
        "moved": 0.0,
        "copies": float(COPIES),
        **_sent(network, len(rows)),
    }


def _ring(rows: list[Row], query: Query, nodes: int) -> Point:
    network = Watched(Earliest())
    played = system.play_on(network, rows, query, [nodes] * STREAMS)
    moved = sum(isinstance(one.message, Build) for one in network.log)
    return {
        "looked_up": 0.0,
        "times_found": _times_found(played.results, played.results),
        "granule": 1.0,
        "table": 0,
        "moved": moved / len(rows),
        "copies": 1.0,
        **_sent(network, len(rows)),
    }


def _times_found(found: list[Parts], wanted: list[Parts]) -> float:
    """How often a result is found on average."""
    assert set(found) == set(wanted)
    return len(found) / len(Counter(wanted))


def _sent(network: Watched, rows: int) -> Point:
    sent = traffic(network.log)
    return {
        "metadata": sent.entries * ENTRY_BYTES / rows,
        "messages": sent.messages / rows,
        "bytes": sent.bytes(TUPLE_BYTES) / rows,
        "stored": network.most / (STORED * STREAMS),
    }
