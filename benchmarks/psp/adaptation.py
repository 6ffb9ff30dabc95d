"""The rate of all streams doubles midway, and the ring adapts or does not: PSP's figures 8(g, h)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from benchmarks.psp.costs import CHANNELS, PIXELS, step_times, unit_costs
from benchmarks.psp.response import AVAILABLE, MS
from simulate.ring.adapt import Monitor, Rule, respond_adapting
from simulate.ring.chance import Chance
from simulate.ring.messages import Row
from simulate.ring.response import Response, respond
from streamjoin.operators.costs.psp import Met, cycle_s

LOADED = 0.85
"""How busy a ring of the best length is after the change: its cycle in mean gaps between rows."""
PERIODS = 10
"""In a window."""
WAYS = ("off", "smoothing", "smoothing and nodes")


@dataclass(frozen=True, slots=True)
class Change:
    """A run.

    Args:
        stored, matches: lambda W and p before the change; both double with the rate.
        before, after: windows that are counted.
    """

    streams: int
    stored: int
    matches: float
    before: int
    after: int


def points(measured: Mapping[str, Any], change: Change) -> Iterator[dict[str, Any]]:
    """The run without adaptation, with slices that follow the number of rows, and with nodes that are added, too."""
    costs, tuple_bytes = unit_costs(measured), PIXELS[0] * CHANNELS
    times = step_times(costs, tuple_bytes)

    def cycle(nodes: int, factor: float) -> float:
        share = change.matches / change.stored
        return cycle_s([Met(factor * change.stored, share)] * (change.streams - 1), nodes, times)

    first, best = (min(range(1, AVAILABLE + 1), key=lambda nodes: cycle(nodes, factor)) for factor in (1.0, 2.0))
    gap = 2 * cycle(best, 2.0) / LOADED
    load = Chance(change.streams, change.stored, change.matches, round(gap * 1e9))
    midway, ends = (1 + change.before) * load.window, (1 + change.before + change.after) * load.window
    every = list(takewhile(lambda row: row.ts < ends, load.rows(poisson=True, speed=lambda ts: 1 + (ts >= midway))))
    stored, rows = ([row for row in every if (row.ts < load.window) == is_early] for is_early in (True, False))
    for way in WAYS:
        if way == "off":
            found = respond(
                costs, tuple_bytes, rows, load.query, [first] * change.streams, stored=stored, paced=True
            )  # fmt: skip
        else:
            available = AVAILABLE if way == WAYS[-1] else first
            rule = Rule(load.window // PERIODS, available, change.matches / change.stored, times)
            found = respond_adapting(costs, tuple_bytes, rows, load.query, first, rule, stored=stored)
        source = found.played.source
        changes = source.changes if isinstance(source, Monitor) else []
        yield {
            "streams": change.streams, "matches": change.matches, "stored": change.stored, "way": way,
            "nodes": first, "gap": gap * 1e3,
            "changes": [[(at - midway) / load.window, nodes] for at, nodes in changes],
            "builds": found.sent["builds"] / len(rows), "results": found.results,
            "response": _over_time(found, rows, midway, load.window),
        }  # fmt: skip


def _over_time(found: Response, rows: list[Row], midway: int, window: int) -> list[list[float]]:
    """By tenths of a window: how many windows after the change it begins, and the mean response in ms."""
    period = window / PERIODS
    came = {row.order: row.ts for row in rows}
    sums: dict[int, tuple[float, int]] = {}
    for node in found.played.nodes:
        for one in node.found:
            at = (came[one.origin] - midway) // period
            waited, count = sums.get(int(at), (0.0, 0))
            sums[int(at)] = (waited + one.count * (one.at - came[one.origin]), count + one.count)
    return [[at / PERIODS, waited / count / MS, count] for at, (waited, count) in sorted(sums.items())]
