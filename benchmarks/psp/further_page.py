"""What the page says beside PSP's figure 8: figure 7's words, PSP-I, ATR's throughput, unequal rates, and jobs."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from operator import truediv
from typing import Any

from benchmarks.psp.unequal import AFTER
from streamjoin.explain.compare.distribution import FIGURE_7, SYSTEMS

Point = dict[str, Any]


def words(points: list[Point]) -> str:
    """Figure 7, each word beside our numbers."""
    nodes = list(dict.fromkeys(one["nodes"] for one in points))
    each = "".join(_words_on(nodes_now, points) for nodes_now in nodes)
    return f"""
## Figure 7: the paper's words, and numbers for them

`streamjoin compare` prints these words where it compares two of the three. Here the word of the paper, and what was
counted with 3 streams, p = 1:
{each}
- *routing cost*: entries of a routing table that were looked at, for each row that came in;
- *metadata for each segment*: bytes of names of segments and hosts that were sent, for each row;
- *duplicate removal*: how often each result would be found, if every node that is asked answered for all that it has;
- *balancing granularity*: how many rows can go to another node only together: those of a segment, or one;
- *state management*: entries of the table that says where state is, at most; how often a row is put into a state; and
  how often a node hands it to another one;
- *adaptation*: the ring with more nodes is in the [last section](#figures-8g-h-the-rate-doubles). It was not simulated
  of the other two, of which the paper says nothing;
- *network*: messages and KiB for each row.

ATR's metadata are the numbers of the segments that a row is for, which its node could work out from the row's time; so
the paper has none. No table says where the ring's rows are, as all move on while they age, so there is nothing to
manage. But each of them is handed on up to N - 1 times, and that is a part of what the network carries.
"""


def _words_on(nodes: int, points: list[Point]) -> str:
    by_system = {one["system"]: one for one in points if one["nodes"] == nodes}
    names = [name for name in SYSTEMS if name in by_system]
    lines = [f"\n| {nodes} nodes | {' | '.join(SYSTEMS[name] for name in names)} |", "| --- |" + " --- |" * len(names)]
    for trait in FIGURE_7:
        counted = COUNTED.get(trait.name)
        cells = [trait.words[name] + (f": {counted(by_system[name])}" if counted is not None else "") for name in names]
        lines.append(f"| {trait.name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


COUNTED: dict[str, Callable[[Point], str]] = {
    "routing cost": lambda one: f"{one['looked_up']:.1f}",
    "metadata for each segment": lambda one: f"{one['metadata']:,.0f} bytes",
    "duplicate removal": lambda one: f"{one['times_found']:.2f} times",
    "balancing granularity": lambda one: f"{one['granule']:,.0f} row{'s'[: one['granule'] > 1]}",
    "state management": lambda one: f"{one['table']} entries, {one['copies']:.1f} put, {one['moved']:.1f} handed on",
    "network": lambda one: f"{one['messages']:,.1f}, {one['bytes'] / 1024:,.0f} KiB",
}
"""By the name of what is compared."""


KEPT = "Rows that are kept though they have moved on or are too old: the sum of each node's most"


def interleaved(points: list[Point]) -> str:
    """Section 4.4."""
    first = points[0]

    def column(one: Point) -> str:
        return f"{one['in_flight']} in flight" if one["in_flight"] > 1 else "basic"

    tables = "".join(
        f"\n{title}:\n{_table(points, column, shown)}"
        for title, shown in (
            ("Rows per second, with all rows there from the beginning", lambda one: f"{one['rate']:,.0f}"),
            ("Response time, waiting included, in milliseconds", lambda one: f"{one['response']:,.2f}"),
            (KEPT, lambda one: f"{one['twice']}"),
        )
    )
    busiest = max(points, key=lambda one: one["rate"] / one["limit"])
    return f"""
## Interleaved processing (PSP-I)

In the paper, section 4.4: the basic ring takes a row only when the one before is through, so that nodes wait for the
network; with several in flight they work meanwhile. It tells no figures.

Here 3 streams, p = 1, lambda W is {first["stored"]:,} and windows are full. For response times rows come by Poisson, at
80 % of the rate that the basic ring of so many nodes can take; up to so many of them are in flight as the column says,
and the others wait.
{tables}
Equation 4 has nodes that are always busy. The ring of {busiest["nodes"]} nodes with {busiest["in_flight"]} in flight
comes nearest: its busiest node works {busiest["busiest"]:.0%} of the time, and its rate is
{busiest["rate"] / busiest["limit"]:.2f} times what the equation says. A row that has moved on stays until no row in
flight needs it, which is what interleaving costs.

On Spark there is nothing of this to choose: a batch always has all of its rows in flight, and
[`ring`](../operators/ring.md) decides what is too old when the batch is over.
"""


def throughput(points: list[Point]) -> str:
    """Section 7: what more nodes bring ATR."""
    first = points[0]

    def column(one: Point) -> str:
        return f"L = {one['segment']:g} W"

    growth = "; ".join(_growth(points, length) for length in dict.fromkeys(one["segment"] for one in points))
    return f"""
## ATR: rows per second by nodes

In the paper: one node does all the work for a row, so response times do not fall with more nodes, though more segments
are joined at the same time.

Here 3 streams, p = 1, {first["windows"]} windows of rows. Rows per second with all rows there from the beginning, and
response times in milliseconds of rows that come by Poisson, so rarely that one node alone would work 5 % of the time:
{_table(points, column, lambda one: f"{one['rate']:,.0f}, {one['response']:,.2f}")}
With the most nodes in place of the fewest: {growth}. A long segment keeps one node busy, and there are no more nodes at
work than there are segments.
"""


def _growth(points: list[Point], length: float) -> str:
    few, *_, many = [one for one in points if one["segment"] == length]
    return (
        f"L = {length:g} W, of {few['segments']} segments, {many['rate'] / few['rate']:.1f} times the rate and "
        f"{many['response'] / few['response']:.2f} times the response time"
    )


def unequal(points: list[Point]) -> str:
    """Section 5.5."""
    return f"""
## Unequal rates

In the paper, section 5.5: what is to be even is how many rows a node has of all streams together, and rings begin with
slices of equal length.

Here one of three streams brings ten rows for each of the others, {12 * points[0]["turns"]:,} rows are in all windows,
and the rows of the fullest and the emptiest node are in multiples of the mean: a window after an empty ring began, and
{AFTER:g} windows after the rates of all streams have doubled, without and with bounds that are set anew each tenth of a
window (smoothing):
{_table(points, lambda one: one["case"], lambda one: f"{one['fullest']:.2f}, {one['emptiest']:.2f}")}
"""


def on_spark(points: list[Point]) -> str:
    """What two cores can show."""
    tree = points[0]
    lines = ["| way | tuples/s | seconds of the job | times as long as the tree |", "| --- | --: | --: | --: |"]
    for one in points:
        took_s = statistics.median(one["seconds"])
        times = statistics.median(map(truediv, one["seconds"], tree["seconds"]))
        lines.append(f"| {one['way']} | {one['rate']:,.0f} | {took_s:.1f} | {times:.2f} |")
    return f"""
## On Spark, with two cores

What was simulated, as jobs: {tree["rows"]:,} rows of 3 streams with equal keys and a million rows a batch, two tasks
at a time, {tree["results"]:,} results, the same of each way. The ways take turns, {len(tree["seconds"])} each; medians,
the last column's of the turns' ratios, the start of a job included.

{chr(10).join(lines)}

More nodes than cores share them: what a row costs more with each node is seen, what they would bring on machines of
their own is not.
"""


def _table(points: Sequence[Point], column: Callable[[Point], str], shown: Callable[[Point], str]) -> str:
    """By nodes."""
    columns = list(dict.fromkeys(map(column, points)))
    lines = [f"\n| nodes | {' | '.join(columns)} |", "| --: |" + " --: |" * len(columns)]
    for nodes in dict.fromkeys(one["nodes"] for one in points):
        cells = {column(one): shown(one) for one in points if one["nodes"] == nodes}
        lines.append(f"| {nodes} | {' | '.join(cells.get(name, '') for name in columns)} |")
    return "\n".join(lines) + "\n"
