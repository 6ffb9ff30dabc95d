"""What the page says about response times: PSP's figures 8(a, c, e, g, h)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import floor
from typing import Any

Point = dict[str, Any]

SHOWN = (1, 2, 4, 6, 8, 10, 12, 16, 19)
"""N that have a column."""
PAPER_STORED = 500
"""lambda W: 50 rows/s for 10 s."""
RESULTS_MIN = 30
"""A mean of fewer results would say little."""


def costs(measured: dict[str, Any], model: str) -> str:
    """What steps take."""
    size = 16 + 15_000
    send = measured["message"] + measured["byte"] * size
    comparisons = ", ".join(
        f"{ns / 1e3:,.1f} µs with {int(pixels):,} pixels" for pixels, ns in measured["comparison"].items()
    )
    return f"""
## What steps take

Response times come from a virtual clock: each node does one thing after the other, and each step takes what was
measured here before ({model}, one core). A comparison calls the paper's predicate, which asks whether enough pixels of
two images are near each other, in NumPy on generated images: {comparisons}. To take up a row or a partial result takes
{measured["probe"] / 1e3:,.2f} µs; to store a row and to drop it {(measured["insert"] + measured["purge"]) / 1e3:,.2f}
µs; a message of a row {send / 1e3:,.1f} µs of processor time (T_s), half of it at each end. The network is assumed, as
there is one machine here: {measured["hop"] / 1e3:,.0f} µs from one to the next and a gigabit per second, together
T_n = {(measured["hop"] + measured["link_byte"] * size) / 1e3:,.0f} µs for a row. Links delay messages, but carry as
many as there are.
"""


def rings(points: list[Point]) -> str:
    """Figure 8(a)."""
    stored = points[0]["stored"]
    as_there = ", as in the paper," if stored == PAPER_STORED else ""
    growing = "; ".join(_growing(points, streams) for streams in dict.fromkeys(one["streams"] for one in points))
    return f"""
## Figure 8(a): how soon the ring answers

In the paper, with 3 streams: the response time rises with the selectivity. With more nodes it falls, but not
always: with S = 0.5 it rises after 14 nodes. For smaller selectivities the paper expects the best number of nodes
to be larger.

Here lambda W is {stored:,}{as_there} and S is lower, so that p is small enough to simulate. One row is in the
ring at a time and meets full windows. In milliseconds, from when the head reads a row: the mean until a result, over
all results, and the mean until all of a row are there (a cycle), over all rows; a row with many results counts for more
in the first. That is left out where there were fewer than {RESULTS_MIN} results.

![Response times by nodes](psp_response.png)
{_times(points)}
The best numbers of nodes, of those that were simulated, beside N* of equation 5 and the best length by
[the formula of a cycle](../protocols/ring.md#the-formulas); how busy the busiest node is with the shortest cycle; how
many rows came in; and how far the rows and partial results that were sent are from section 4.3's formula at most. With
many rounds that is chance, as few rows make most of the partial results; tests hold thousands of rows to 5 %.
{_best(points)}
By the length of a cycle the best number of nodes is {growing}. By equation 5 it grows with p, as more work for a
row is worth more hops; the paper expects the opposite. Its own S of 0.5 makes 250 partial results of a row in the
first round alone, of two rows each. At its 150 rows/s these are {150 * 250 * 2 * 15_000 / 1e6:,.0f} MB/s on each
link, and a gigabit link carries 125, so its links may have been what made more nodes worse. Here links carry
everything. The
formulas take a partial result for one row. Here it carries all of its rows, so that its way is longer, and an END that
comes alone carries none.
"""


def few_stored(points: list[Point]) -> str:
    """The same with the paper's selectivities."""
    return f"""
### With the paper's selectivities

Here S is 0.05, 0.1 and 0.5 as in the paper, and lambda W is {points[0]["stored"]} instead. There is little to
compare for a row, and some nodes have no row of a stream at all. One node sends nothing over the network, though
equation 5 counts its hops, too:
{_times(points)}{_best(points)}"""


def pixels(points: list[Point]) -> str:
    """Of larger images."""
    lines = ["\n| pixels | best N by response | by cycle | ms of a cycle there |", "| --: | --: | --: | --: |"]
    for count in dict.fromkeys(one["pixels"] for one in points):
        mine = [one for one in points if one["pixels"] == count]
        best = min(mine, key=lambda one: one["cycle"])
        response = min(mine, key=lambda one: one["response"])
        lines.append(f"| {count:,} | {response['nodes']} | {best['nodes']} | {best['cycle']:,.1f} |")
    table = "\n".join(lines)
    return f"""
### Larger images

In the paper: the cost of a join is varied by images, and no result is told. Here {points[0]["streams"]} streams with
p = {points[0]["matches"]:g}. Comparisons and messages both take longer with more pixels:
{table}
"""


def baselines(points: list[Point]) -> str:
    """Figures 8(c, e)."""
    by_name: dict[str, list[Point]] = {}
    for one in points:
        by_name.setdefault(_name(one), []).append(one)
    ratios = "; ".join(
        f"{name} {every[-1]['response'] / every[0]['response']:.2f}"
        for name, every in by_name.items()
        if len(every) > 1
    )
    return f"""
## Figures 8(c, e): how soon ATR and CTR answer

In the paper: the response time of ATR does not fall with more nodes, as one node does all the work for a row. That
of CTR falls with more nodes, and rises with more copies, as fewer nodes take part.

Here 3 streams, p = 1, and rows come by Poisson, so rarely that a node which did everything would work 30 % of the
time. Up to 8 rows are in the ring at a time. In milliseconds from when a row comes until a result, waiting included. A
segment of CTR, a twentieth of a window, waits until it is complete; that takes longer than anything else and depends on
the segment alone, so it is left out, and finding routes takes no time. Three things have to be known to compare the
columns. Rows come to the ring for nothing, as its head has them in its own queue, while ATR and CTR pay T_n and T_s for
the way from the diffusion operator. CTR pays only for pairs inside the window, though it also looks at the other rows
of its segments. And nine windows are few segments of ATR: where L = 5 W there are two, so that more nodes cannot change
anything:
{_table(points, "nodes", _name, lambda one: f"{one['response']:,.2f}")}
With the most nodes in place of the fewest, times as long: {ratios}.

How many hosts took part in a hop of CTR, on average:
{_table([one for one in points if "hosts" in one], "nodes", _name, lambda one: f"{one['hosts']:.1f}")}
A segment is stored on the hosts of its first hop first, which get it anyway. So state gathers on as many hosts as a hop
has, as the paper fears of one copy. Where more take part with more nodes, times fall as in the paper; where as few do,
times stay. The paper does not say how its copies are placed. Rows of a segment travel together, so that CTR's times are
those of a whole segment.
"""


def adaptation(points: list[Point]) -> str:
    """Figures 8(g, h)."""
    head = """
## Figures 8(g, h): the rate doubles

In the paper: the rate rises from 50 to 100 rows/s midway, and with adaptation the ring is much more stable. It does
not say which of its adaptations were on.

Here rows come by Poisson, one is in the ring at a time, and the others wait. With the rate of all streams lambda W
and p double, too. *Smoothing*: each node but the last has a bound of rows instead of a slice of time, set anew each
tenth of a window. *Nodes*: besides, there are more nodes once these make the shortest cycle by the formula, as
rates are measured; rows move on as new ones come, and nobody stops (passive adjustment). The gap between rows is
such that the best number of nodes is busy 85 % of the time after the change. Response times with waiting, in
milliseconds, by windows:

![Response times while the rate doubles](psp_adaptation.png)
"""
    shapes = dict.fromkeys((one["streams"], one["matches"], one["stored"]) for one in points)
    return head + "".join(
        _change([one for one in points if (one["streams"], one["matches"], one["stored"]) == shape]) for shape in shapes
    )


def _growing(points: list[Point], streams: int) -> str:
    """The best numbers of nodes of so many streams, by p."""
    mine = [one for one in points if one["streams"] == streams]
    matches = list(dict.fromkeys(one["matches"] for one in mine))
    best = [
        min((one for one in mine if one["matches"] == p), key=lambda one: one["cycle"])["nodes"] for p in matches
    ]  # fmt: skip
    return f"{_and(best)} for p = {_and(f'{p:g}' for p in matches)} with {streams} streams"


def _and(values: Iterable[Any]) -> str:
    *first, last = map(str, values)
    return f"{', '.join(first)} and {last}" if first else last


def _times(points: list[Point]) -> str:
    mine = [one for one in points if one["nodes"] in SHOWN]

    def shown(one: Point) -> str:
        response = f"{one['response']:,.1f}" if one["results"] >= RESULTS_MIN else "–"
        return f"{response}, {one['cycle']:,.1f}"

    return _table(mine, "N", lambda one: f"{one['nodes']}", shown, row_of=_setting)


def _setting(one: Point) -> str:
    return f"{one['streams']} streams, p = {one['matches']:g}"


def _best(points: list[Point]) -> str:
    lines = [
        "\n| | by response | by cycle | N* | by formula of a cycle | busiest node | rows | sent, off by |",
        "| --- | --: | --: | --: | --: | --: | --: | --: |",
    ]
    for setting in dict.fromkeys(map(_setting, points)):
        mine = [one for one in points if _setting(one) == setting]
        cycle = min(mine, key=lambda one: one["cycle"])
        response = min(mine, key=lambda one: one["response"])["nodes"] if cycle["results"] >= RESULTS_MIN else "–"
        off = max(abs(one["sent"] / one["sent_model"] - 1) for one in mine)
        lines.append(
            f"| {setting} | {response} | {cycle['nodes']} | {cycle['equation_best']} | {cycle['cycle_best']} "
            f"| {cycle['busiest']:.0%} | {cycle['inputs']} | {off:.1%} |"
        )
    return "\n".join(lines) + "\n"


def _name(one: Point) -> str:
    if one["system"] == "aligned":
        return f"ATR, L = {one['segment']:g} W"
    return f"CTR, c = {one['copies']}" if one["system"] == "coordinated" else "ring"


def _table(
    points: list[Point], corner: str, column: Callable[[Point], str], shown: Callable[[Point], str],
    row_of: Callable[[Point], Any] = lambda one: one["nodes"],
) -> str:  # fmt: skip
    columns = list(dict.fromkeys(map(column, points)))
    lines = [f"\n| {corner} | {' | '.join(columns)} |", "| --: |" + " --: |" * len(columns)]
    for value in dict.fromkeys(map(row_of, points)):
        cells = {column(one): shown(one) for one in points if row_of(one) == value}
        lines.append(f"| {value} | {' | '.join(cells.get(name, '') for name in columns)} |")
    return "\n".join(lines) + "\n"


def _change(points: list[Point]) -> str:
    """The three ways of one change."""
    first = points[0]
    lines = [
        f"\n### {first['streams']} streams, p = {first['matches']:g} and then {2 * first['matches']:g}\n",
        f"| windows after the change | {' | '.join(one['way'] for one in points)} |",
        "| --: |" + " --: |" * len(points),
    ]
    by_window = [_windows(one["response"]) for one in points]
    for window in sorted(by_window[0]):
        cells = (f"{each[window]:,.1f}" if window in each else "" for each in by_window)
        lines.append(f"| {window} to {window + 1} | {' | '.join(cells)} |")
    changes = points[-1]["changes"]
    added = _and(f"{nodes} after {at:.1f} windows" for at, nodes in changes) if changes else "always as many"
    moved = ", ".join(f"{one['builds']:.1f}" for one in points)
    return (
        "\n".join(lines)
        + f"""

N = {first["nodes"]} before; with nodes added, {added}. A row came every {first["gap"] / 2:,.1f} ms on average after
the change. Rows that moved on to the next node, for each row that came: {moved}.
"""
    )


def _windows(tenths: list[list[float]]) -> dict[int, float]:
    """The mean response by whole windows; an entry of `tenths` has its time, its mean and how many results it had."""
    sums: dict[int, list[float]] = {}
    for at, mean, count in tenths:
        sums.setdefault(floor(at + 1e-9), []).extend([mean * count, count])
    return {window: sum(values[::2]) / sum(values[1::2]) for window, values in sums.items()}
