"""How soon the ring, ATR and CTR answer, on machines whose steps take what was measured: PSP's figures 8(a, c, e)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from benchmarks.psp.costs import CHANNELS, PIXELS, step_times, unit_costs
from simulate.replicated import aligned, coordinated
from simulate.replicated.traffic import bytes_of
from simulate.ring.chance import Chance
from simulate.ring.response import respond
from simulate.timed import Timed
from streamjoin.operators.costs.psp import (
    Met,
    StepTimes,
    best_length,
    central_s,
    cycle_s,
    latency_s,
    sent_tuples,
)

MS = 1e6
AVAILABLE = 19
"""The paper's nodes."""
SETTINGS = (
    (3, 0.5), (3, 1.0), (3, 5.0), (5, 0.5), (5, 1.0), (5, 5.0), (7, 0.5), (7, 1.0), (9, 0.5), (9, 1.0),
)  # fmt: skip
"""M and p."""
FEW_STORED = 10
"""lambda W with which p of 0.5, 1 and 5 goes with the paper's S of 0.05, 0.1 and 0.5."""
ROUND_PAIRS = 500
"""To simulate a partial result on its round takes about as long as so many comparisons."""
BUSY = 0.3
"""The share of its time that one node would work, if it did everything."""

IN_FLIGHT = 8
"""Rows in the ring at a time where it is compared with others, which do not wait for one row's end either."""

Costs = Mapping[str, Any]
Point = dict[str, Any]


def model_of(streams: int, stored: int, matches: float, times: StepTimes, nodes: int) -> Point:
    """What the formulas say of a ring: ms, and rows and partial results that are sent for a row."""
    met = [Met(stored, matches / stored)] * (streams - 1)
    return {
        "equation": 1e3 * latency_s(met, nodes, times),
        "equation_best": best_length(met, times, AVAILABLE),
        "cycle_model": 1e3 * cycle_s(met, nodes, times),
        "cycle_best": min(range(1, AVAILABLE + 1), key=lambda each: cycle_s(met, each, times)),
        "sent_model": sent_tuples(met, [nodes] * len(met)),
    }


def ring_points(
    measured: Costs, nodes: Sequence[int], stored: int, pairs: int, *, pixels: int = PIXELS[0],
    settings: Sequence[tuple[int, float]] = SETTINGS,
) -> Iterator[Point]:  # fmt: skip
    """Rings of each setting and each number of nodes; one row at a time, which meets full windows.

    Args:
        stored: lambda W.
        pairs: how many may be compared in a run, or as much done: so many rows come in.
    """
    costs, tuple_bytes = unit_costs(measured, pixels), pixels * CHANNELS
    times = step_times(costs, tuple_bytes)
    for streams, matches in settings:
        load = Chance(streams, stored, matches, 1_000)
        a_row = (stored + ROUND_PAIRS) * sum(matches**each for each in range(streams - 1))
        inputs = round(min(max(pairs / a_row, 30), 200))
        before = streams * stored
        rows = list(islice(load.rows(), before + inputs))
        for count in nodes:
            found = respond(
                costs, tuple_bytes, rows[before:], load.query, [count] * streams, stored=rows[:before]
            )  # fmt: skip
            yield {
                "streams": streams, "matches": matches, "stored": stored, "pixels": pixels, "nodes": count,
                "inputs": inputs, "results": found.results, "response": found.result / MS,
                "cycle": found.cycle / MS, "busiest": found.busiest,
                "sent": (found.sent["rows"] + found.sent["partials"]) / inputs,
                **model_of(streams, stored, matches, times, count),
            }  # fmt: skip


def baselines(
    measured: Costs, nodes: Sequence[int], stored: int, windows: int, segments: Sequence[float], copies: Sequence[int],
    *, ring: bool = True,
) -> Iterator[Point]:  # fmt: skip
    """All three systems of 3 streams with p = 1, where rows come by Poisson and rarely.

    Args:
        segments: L of ATR, in windows.
        copies: c of CTR.
        ring: simulate it, too.
    """
    workload = _Workload(measured, stored, windows)
    for count in nodes:
        if ring:
            yield {"system": "ring", "nodes": count, **workload.ring(count)}
        for length in segments:
            yield {"system": "aligned", "nodes": count, "segment": length, **workload.aligned(count, length)}
        for one in copies:
            if 2 * one <= count:
                yield {"system": "coordinated", "nodes": count, "copies": one, **workload.coordinated(count, one)}


CTR_SEGMENT = 0.05
"""L of CTR, in windows: a segment waits until it is complete."""


class _Workload:
    """Rows for all systems; those of the first window are not counted, as windows are not full."""

    def __init__(self, measured: Costs, stored: int, windows: int) -> None:
        self._costs, self._bytes = unit_costs(measured), PIXELS[0] * CHANNELS
        met = [Met(stored, 1 / stored)] * 2
        gap = central_s(met, step_times(self._costs, self._bytes)) / BUSY
        self._load = Chance(3, stored, 1.0, round(gap * 1e9))
        every = islice(self._load.rows(poisson=True), 2 * (windows + 1) * stored * 3)
        self._rows = [row for row in every if row.ts < (windows + 1) * self._load.window]
        self._first = next(row.order for row in self._rows if row.ts >= self._load.window)
        self._came = {row.order: row.ts for row in self._rows}

    def _network(self) -> Timed:
        return Timed(self._costs, partial(bytes_of, tuple_bytes=self._bytes))

    def _point(self, found: Sequence[tuple[int, int, int]], network: Timed) -> Point:
        """Of results: since when they were waited for, when they were there, and how many."""
        results = sum(count for _, _, count in found)
        nodes = [busy for name, busy in network.busy_ns.items() if name.startswith(("node", "host"))]
        return {
            "results": results,
            "response": sum(count * (at - since) for since, at, count in found) / results / MS,
            "busiest": max(nodes) / network.now_ns,
        }

    def ring(self, nodes: int) -> Point:
        """A ring, some rows at a time."""
        before, rows = self._rows[: self._first], self._rows[self._first :]
        found = respond(
            self._costs, self._bytes, rows, self._load.query, [nodes] * 3,
            stored=before, in_flight=IN_FLIGHT, paced=True,
        )  # fmt: skip
        return {"results": found.results, "response": found.result / MS, "busiest": found.busiest}

    def aligned(self, nodes: int, segment: float) -> Point:
        """ATR, the first stream its master."""
        network, length = self._network(), round(segment * self._load.window)
        played = aligned.play(self._rows, self._load.query, nodes, length, 0, network, paced=True)
        every = [one for node in played.nodes for one in node.found if one.origin >= self._first]
        return self._point([(self._came[one.origin], one.at, one.count) for one in every], network)

    def coordinated(self, nodes: int, copies: int) -> Point:
        """CTR; what a result waits for begins when the last segment that it needs is complete."""
        network, length = self._network(), round(CTR_SEGMENT * self._load.window)
        played = coordinated.play(self._rows, self._load.query, nodes, length, copies, network, paced=True)
        every = [(key, one) for host in played.nodes for key, one in host.found if one.origin >= self._first]
        return {
            **self._point([((key[1] + 1) * length, one.at, one.count) for key, one in every], network),
            "hosts": sum(played.diffusion.covers) / len(played.diffusion.covers),
        }
