"""The page of BiStream's evaluation, from its figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks import provenance
from benchmarks.bistream.feeds import KEYS

Point = dict[str, Any]
MODEL_TRAFFIC = {"JM16": 8, "JB8": 10, "JB8-CR2": 6, "JB8-CR4": 4}
"""B of sections 4.1 and 4.2, in Sigma, where both streams bring as many bytes."""


def page(results: dict[str, Any]) -> str:
    """The text of the page."""
    said = provenance.said(results.get("begun"), results.get("commit"))
    found, size = results["figures"], results["size"]
    capacity = f"{size['capacity'] / 1024:,.0f} KiB"
    head = f"""# BiStream: the join-biclique beside the join-matrix

Source: *Scalable Distributed Stream Join Processing* (SIGMOD 2015), section 6 and its appendix. Written by
`python -m benchmarks.bistream`; do not edit. All figures: [bistream.json](bistream.json). {said}

## How it is made

JB16 is a biclique of 8 + 8 units with random routing, JB16-CR4 one with ContRand and 4 + 4 subgroups, JM16 a matrix of
4 x 4. They are the engine's own operators and units. All of them run in one process one after the other, without Spark,
and each counts as a machine of its own: what is routed to it counts as sent, and a batch is done when its slowest unit
is. So volumes, windows and bytes are counted, exactly as they would be on as many machines; rates and latencies are
measured unit by unit ({results["machine"]["model"]}, one core), and leave out routing, network and results.

The joins are the paper's Q5 and Q7 (suppliers with their nation, and line items) and its band of line items, with
values drawn as TPC-H draws them: {KEYS:,} keys. Rows are selected and projected before they are sent. Here the
streams bring equally many tuples; in the paper, equally many bytes. A unit's memory is {capacity} in place of 1.5 GB,
and windows are seconds in place of minutes. The paper's own capacities contradict one another from figure to figure,
so only shapes and ratios are compared. Its plots survive as captions in our text.
"""
    return head + "".join(
        (
            _volumes(found["volumes"], capacity),
            _over_time(found["over_time"]),
            _windows(found["windows"], capacity),
            _traffic(found["traffic"]),
            _throughput(found["throughput"], capacity),
            _latency(found["latency"], 2 * max(size["rows"] // 10, 1)),
            _aggregates(found["aggregates"]),
            ELASTIC,
        )
    )


def _table(points: list[Point], row: str, column: str, shown: Callable[[Point], str], named: str = "") -> str:
    """A line for each value of `row`, a column for each value of `column`."""
    columns = list(dict.fromkeys(one[column] for one in points))
    lines = [f"\n| {named or row} | {' | '.join(map(str, columns))} |", "| --- |" + " --: |" * len(columns)]
    for value in dict.fromkeys(one[row] for one in points):
        cells = {one[column]: shown(one) for one in points if one[row] == value}
        lines.append(f"| {value} | {' | '.join(cells.get(name, '') for name in columns)} |")
    return "\n".join(lines) + "\n"


def _ratio(points: list[Point], one: str, other: str, what: str, feed: str = "Q7") -> float:
    known = {point["setting"]: point[what] for point in points if point["feed"] == feed}
    return float(known[one] / known[other]) if one in known and other in known else float("nan")


def _volumes(points: list[Point], capacity: str) -> str:
    said = ", ".join(
        f"{one} / {other} {_ratio(points, one, other, 'fed'):.2f} ({paper})"
        for one, other, paper in (
            ("JB16", "JM16", "4"), ("JB64", "JM64", "7.8"), ("JB64", "JB16", "3.8"), ("JM64", "JM16", "1.9")
        )
    )  # fmt: skip
    return (
        f"""
## Figures 6(a), 10, 15 to 17: how much fits

In the paper, Q7: a matrix of 16 is full at 19 M tuples and one of 64 at 37 M, a biclique at 76 M and 290 M: the
biclique grows with its units, the matrix with their root. Here, thousand tuples of both streams until a unit stores
more than {capacity}, full history:
"""
        + _table(points, "setting", "feed", lambda one: f"{one['fed'] / 1e3:,.0f}", "thousand tuples")
        + f"""
Ratios for Q7, with the paper's: {said}.

Bicliques and matrices grow as in the paper. The ratios between them are below the paper's 4 and 8 because a tuple of S
has more bytes than one of R here: with as many units for each, those of S are full while those of R have room, and in a
matrix every unit stores both.

![Thousand tuples that fit, by units](bistream_volume.png)
"""
    )


def _over_time(points: list[Point]) -> str:
    def line(one: Point) -> str:
        window = len(one["stored"]) // 3
        full = [stored / 1024 for stored in one["stored"][window + window // 5 :]]
        return f"| {one['window_s']:g} | {min(full):,.0f} | {max(full):,.0f} | {max(full) / min(full):.2f} |"

    lines = "\n".join(map(line, points))
    return f"""
## Figure 6(b): what is stored over time

In the paper: flat once a window has passed, with ripples, as whole segments expire. Here, JB16, Q5, segments of a tenth
of the window, KiB of a unit on average after the first window and its last segment:

| window, s | least | most | most / least |
| --: | --: | --: | --: |
{lines}

![What a unit stores over time](bistream_time.png)
"""


def _windows(points: list[Point], capacity: str) -> str:
    lines = []
    for feed, rate in dict.fromkeys((one["feed"], one["rate"]) for one in points):
        known = {one["setting"]: one["window_s"] for one in points if one["feed"] == feed}
        ratios = [
            f"{known[one] / known[other]:.2f}"
            for one, other in (("JB8", "JM16"), ("JB16", "JM16"), ("JB36", "JM36"), ("JM36", "JM16"))
        ]
        cells = [f"{seconds:.1f}" for seconds in known.values()]
        lines.append(f"| {feed}, {rate:,.0f}/s | {' | '.join(cells + ratios)} |")
    shares = [one["share"] for one in points]
    names = " | ".join(dict.fromkeys(one["setting"] for one in points))
    body = "\n".join(lines)
    return f"""
## Table 4: the largest window

Seconds with which the fullest unit stores about {capacity}: guessed, and corrected once by a run with the guess. A run
with each of these windows stored {min(shares):.2f} to {max(shares):.2f} of that, so that the largest windows which fit
are up to {_off(shares):.0%} off:

| | {names} | JB8 / JM16 | JB16 / JM16 | JB36 / JM36 | JM36 / JM16 |
| --- |{" --: |" * 9}
{body}
| the paper, Q5 at 50,000/s | 278 | 549 | 1,262 | 140 | 207 | 1.99 | 3.92 | 6.10 | 1.48 |
"""


def _off(shares: list[float]) -> float:
    return max(abs(share - 1) for share in shares)


def _traffic(points: list[Point]) -> str:
    def relative(one: Point) -> str:
        return f"{one['bytes']:,.0f} ({_ratio(points, one['setting'], 'JM16', 'bytes', one['feed']):.3f})"

    model = " | ".join(f"({MODEL_TRAFFIC[name] / MODEL_TRAFFIC['JM16']:.3f})" for name in MODEL_TRAFFIC)
    return (
        """
## Figures 11, 18 and 19: bytes that travel

In the paper: JB8 sends more than JM16, JB8-CR2 and JB8-CR4 less. Here, bytes for each tuple that comes, with everything
that a tuple carries on its way, and their ratio to JM16:
"""
        + _table(points, "feed", "setting", relative)
        + f"| equations 5 and 6 | {model} |\n"
    )


def _throughput(points: list[Point], capacity: str) -> str:
    def rates(key: str) -> Callable[[Point], str]:
        return lambda one: ", ".join(f"{rate / 1e3:,.0f}" for rate in one[key])

    return (
        f"""
## Figures 7 and 8: throughput

In the paper: with little stored all are alike, and JB16 below JM16; beyond JM16's memory JB8 is 10 times and JB16-CR8
100 times as fast as JM16, and then JB8 falls, too. Q5 is 1.5 times as fast as Q7, and both far ahead of Band, which has
no equality. Here, thousand tuples of both streams a second, by the median batch of the first, second and last third of
a run of
{points[0]["fed"][-1] / 1e3:,.0f} thousand tuples, all in memory. There was one run of each, so that small differences
may be chance:
"""
        + _table(points, "feed", "setting", rates("rate"))
        + f"""
The same if a unit had {capacity} of memory and read what it stores beyond that from a disk in each batch, at an assumed
100 MB/s:
"""
        + _table(points, "feed", "setting", rates("rate_by_disk"))
        + """
Band is not far behind here: a sorted segment finds both neighbours of a key as fast as an equal one. Beyond memory the
ratios stay small, because a batch of ours reads a segment once for all of its rows, where the paper's units read for
each tuple.
"""
    )


def _latency(points: list[Point], rows: int) -> str:
    cells = "\n".join(f"| {one['setting']} | {' | '.join(f'{ms:.2f}' for ms in one['ms'])} |" for one in points)
    return f"""
## Figure 9: latency

In the paper: means within 10 ms of each other, JB16 slightly the highest, JB16-CR8 below JM16. Here, ms from the moment
when a batch of {rows:,} tuples has arrived until the slowest unit is done with it, Q5:

| | best | 25 % | 50 % | 75 % | worst |
| --- | --: | --: | --: | --: | --: |
{cells}

A job on Spark waits for its batch to begin and for its tasks to be launched on top of that, which takes far longer
([benchmarks](../benchmarks.md)).
"""


def _aggregates(points: list[Point]) -> str:
    lines = "\n".join(
        f"| {one['feed']} | {one['setting']} | {one['pairs']:,} | {one['grouped_s'] / one['alone_s']:.2f} | "
        f"{one['pair_bytes'] / 1024:,.0f} | {one['view_bytes'] / 1024:,.0f} | "
        f"{one['pair_bytes'] / one['view_bytes']:.1f} |"
        for one in points
    )
    return f"""
## Figures 13 and 14: aggregates

In the paper: aggregates cost a negligible share of throughput, and batched views send much less than single results.
Here, all processor time of a join grouped by nation and second, beside the join alone that gives its pairs; KiB between
the phases if every pair were sent, and of the views that are:

| | | pairs | time with / without | pairs, KiB | views, KiB | saved |
| --- | --- | --: | --: | --: | --: | --: |
{lines}

The paper's units sum up in passing while machines of their own merge; here all of it is in one process's time.
"""


ELASTIC = """
## Figure 12: units that come and go

Its trace, scaled, is on the [operator's page](../operators/biclique.md#units-that-come-and-go) and simulated at
[64 units](../protocols/biclique.md#units-that-come-and-go).
"""
