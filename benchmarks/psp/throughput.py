"""How many rows per second get through: the ring with one and with several in flight (PSP-I), and ATR by its nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice

from benchmarks.psp.costs import CHANNELS, PIXELS, step_times, unit_costs
from benchmarks.psp.response import MS, Costs, Point
from simulate.replicated import aligned
from simulate.replicated.traffic import bytes_of
from simulate.ring.chance import Chance
from simulate.ring.response import Response, respond
from simulate.timed import Timed
from streamjoin.operators.costs.psp import Met, central_s, rate_per_s

STREAMS, MATCHES = 3, 1.0
LOADED = 0.8
"""Of the rate that the basic ring can take: so fast do rows come where response times are compared."""
RARELY = 0.05
"""The share of its time that one node of ATR would work, so that a row hardly ever waits for another one."""


def interleaved(
    measured: Costs, nodes: Sequence[int], stored: int, inputs: int, in_flight: Sequence[int]
) -> Iterator[Point]:
    """Rings with full windows; `in_flight` begins with 1, the basic ring.

    Each ring runs twice. With all rows there from the beginning it tells the rate that it can take. With rows that come
    by Poisson, at `LOADED` of the basic ring's rate, it tells how soon it answers.
    """
    costs, tuple_bytes = unit_costs(measured), PIXELS[0] * CHANNELS
    times = step_times(costs, tuple_bytes)
    met = [Met(stored, MATCHES / stored)] * (STREAMS - 1)
    for count in nodes:
        basic = 0.0
        for most in in_flight:
            run = partial(_ring, measured, count, stored, inputs, most)
            at_once = run(1_000_000, paced=False)
            rate = inputs / _lasted_s(at_once)
            basic = basic or rate
            paced = run(round(1e9 / (LOADED * basic)), paced=True)
            yield {
                "nodes": count, "in_flight": most, "stored": stored, "rate": rate,
                "limit": rate_per_s(met, count, times), "busiest": at_once.busiest,
                "response": paced.result / MS, "cycle": paced.cycle / MS, "results": paced.results,
                "twice": max(sum(node.kept_twice_max for node in one.played.nodes) for one in (at_once, paced)),
            }  # fmt: skip


def _ring(
    measured: Costs, nodes: int, stored: int, inputs: int, in_flight: int, gap_ns: int, *, paced: bool
) -> Response:
    load, before = Chance(STREAMS, stored, MATCHES, gap_ns), STREAMS * stored
    rows = list(islice(load.rows(poisson=paced), before + inputs))
    return respond(
        unit_costs(measured), PIXELS[0] * CHANNELS, rows[before:], load.query, [nodes] * STREAMS,
        stored=rows[:before], in_flight=in_flight, paced=paced,
    )  # fmt: skip


def _lasted_s(found: Response) -> float:
    source = found.played.source
    return (max(source.done.values()) - min(source.read.values())) / 1e9


def of_aligned(
    measured: Costs, nodes: Sequence[int], stored: int, windows: int, segments: Sequence[float]
) -> Iterator[Point]:
    """ATR: rows per second where all are there from the beginning, and response times where they come rarely.

    Args:
        windows: how many of rows there are; with fewer segments than nodes some nodes have nothing to do.
        segments: L, in windows.
    """
    costs, tuple_bytes = unit_costs(measured), PIXELS[0] * CHANNELS
    met = [Met(stored, MATCHES / stored)] * (STREAMS - 1)
    gap_s = central_s(met, step_times(costs, tuple_bytes)) / RARELY
    load = Chance(STREAMS, stored, MATCHES, round(gap_s * 1e9))
    rows = list(islice(load.rows(poisson=True), windows * stored * STREAMS))
    came = {row.order: row.ts for row in rows}
    for length in segments:
        for count in nodes:
            lasted, response = 0, 0.0
            for paced in (False, True):
                network = Timed(costs, partial(bytes_of, tuple_bytes=tuple_bytes))
                played = aligned.play(
                    rows, load.query, count, round(length * load.window), 0, network, paced=paced
                )  # fmt: skip
                found = [one for node in played.nodes for one in node.found]
                if paced:
                    waited = sum(one.count * (one.at - came[one.origin]) for one in found)
                    response = waited / sum(one.count for one in found) / MS
                else:
                    lasted = network.now_ns
            yield {
                "system": "aligned", "nodes": count, "segment": length, "windows": windows,
                "segments": len(played.diffusion.sizes), "rate": len(rows) / (lasted / 1e9), "response": response,
            }  # fmt: skip
