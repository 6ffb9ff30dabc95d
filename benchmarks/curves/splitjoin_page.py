"""`splitjoin.md`: SplitJoin's evaluation beside ours, section by section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.curves import paper
from benchmarks.curves.model import FAN
from benchmarks.curves.splitjoin import LATENCY_TUPLES
from benchmarks.curves.text import machine, point_at, ratio, table, us

Part = Mapping[str, Any]


class Figures:
    """What several sections speak of: the figures at the paper's 28 cores."""

    def __init__(self, results: Part) -> None:
        self.part, self.units = results["splitjoin"], results["units"]
        self.cores, self.minutes, self.window = paper.CORES, str(paper.TIME_WINDOW_MIN), str(paper.COUNT_WINDOW)
        self.time, self.count = self.part["time"][self.minutes], self.part["count"][self.window]
        self.place = self.time["cores"].index(self.cores)
        self.rate, self.rate_count = self.time["splitjoin"][self.place], self.count["splitjoin"][self.place]
        self.loaded = point_at(self.part["stages"]["time"]["points"], "cores", self.cores)
        self.loaded_count = point_at(self.part["stages"]["count"]["points"], "cores", self.cores)
        self.fixed, self.alone = self.part["visiting"]["fixed"], self.part["visiting"][self.minutes]
        self.smallest = min(self.part["count"], key=int)
        self.gains = {
            name: each["splitjoin"][self.place] / each["chain"][self.place]
            for name, each in (
                (self.minutes, self.time),
                (self.window, self.count),
                (self.smallest, self.part["count"][self.smallest]),
            )
        }
        self.compared_us = self.time["rows"][self.place] * self.units["compare"] / 1e3


_LEFT_OUT = """## What is not in these curves

Caches and memory shared by cores, processes that compete for a core, bounded buffers, expiry (a region that is full
drops as many tuples as it stores), the Combiner's work, and an operating system that lets a process wait. Sub-windows
are always full.
"""


def splitjoin(results: Part) -> str:
    """The whole page."""
    at = Figures(results)
    return "\n".join(
        (
            _head(results),
            _method(at, results),
            _beside(at),
            _over_time_windows(at),
            _over_count_windows(at),
            _visiting(at),
            _stages(at),
            _match_probability(at),
            _star_interval(at),
            _LEFT_OUT,
        )
    )


def _head(results: Part) -> str:
    return f"""# SplitJoin's evaluation beside ours

Source: "SplitJoin: a scalable, low-latency stream join architecture with adjustable ordering precision" (USENIX ATC
2016). The text of the paper that we have has no pictures and no axis values; red marks are all the numbers that it
states. Written by `python -m benchmarks.curves`; do not edit. All figures: [curves.json](curves.json).

{machine(results)}
"""


def _method(at: Figures, results: Part) -> str:
    unit_rows = [
        ["T_P, comparing with one stored tuple", f"{at.units['compare']:.2f} ns",
         "nested loop in Numba, one core, the paper's band of +-10 on both columns, matches written down"],
        ["the same as NumPy expressions", f"{results['numpy_compare']:.2f} ns", "not used in the curves"],
        ["T_CL, one hop", us(at.units["link"]),
         "64 bytes through a pipe to a process that waits for them, half of the way there and back, median"],
        ["of it, the sender's work", us(at.units["send"]), "processor time while the queue is never empty"],
        ["of it, the receiver's work", us(at.units["receive"]), "the same"],
        ["T_Col, merging one result", f"{at.units['collect']:.1f} ns", "two inputs in order into one, Numba"],
        ["asking for the time", f"{at.units['clock']:.0f} ns", "clock_gettime; not used in the curves"],
    ]  # fmt: skip
    return f"""## How the curves are made

The paper ran up to 32 join cores on a machine of 32. This machine does not have them, so what one step costs is
measured on it, and the steps are put together in two ways:

- **Lines** are formulas. Latency is the paper's (5), (6) for SplitJoin and (2) for the low-latency handshake chain
  (LH), which tests show to be equal to the [simulation](../protocols/splitjoin.md) in small cases. Throughput has no
  formula in the paper: here it is that of the busiest process, a core, a distributor or a merger, charged for its
  messages, its comparisons and its part of merging.
- **Dots** are runs of the simulated protocol, message by message, on a virtual clock in ns: trees of fan-out {FAN},
  cores that do one thing at a time, outer order by Algorithm 5. A core's probe of its whole sub-window is one step of
  the simulation and takes as long as all its comparisons. Dots and lines of throughput differ
  by at most {_off(at.part, "splitjoin"):.1%}
  for SplitJoin and {_off(at.part, "chain"):.1%} for LH, whose dots contain the time until the chain is full. For
  SplitJoin that holds by construction: a simulated core takes the time for a tuple that the formula has.

{table(["unit", "measured", "how"], unit_rows)}

The chain's monitoring time T_ML and collecting its results are free here, which favours the chain. Each of its cores
takes in and passes on every tuple and one expiry message for each.
"""


def _off(part: Part, system: str) -> float:
    """How far dots and lines of a system's throughput are apart at most."""
    return max(
        abs(dot[system] / each[system][dot["cores"] - 1] - 1)
        for kind in ("time", "count")
        for each in part[kind].values()
        for dot in each["simulated"]
    )


def _beside(at: Figures) -> str:
    percent = f"{at.part['stages']['time']['load']:.0%}"
    beside = [
        ["tuples/s, 15 min", f"{paper.TUPLES_PER_S_TIME:,.0f}", f"{at.rate:,.0f}"],
        ["tuples/s, 2^21 tuples", f"{paper.TUPLES_PER_S_COUNT:,.0f}", f"{at.rate_count:,.0f}"],
        ["throughput over the chain, 15 min", f"up to {paper.GAIN_THROUGHPUT:g} x", ratio(at.gains[at.minutes])],
        ["the same, 2^17 tuples", "not given", ratio(at.gains[at.smallest])],
        ["visiting latency, SplitJoin, 15 min", f"{paper.VISITING_MS:g} ms", f"{at.loaded['visiting'] / 1e3:.2f} ms"],
        ["visiting latency, chain, 15 min", f"{paper.CHAIN_VISITING_MS:.0f}.x ms (digits lost)",
         f"{at.loaded['chain_visiting'] / 1e3:.2f} ms"],
        ["their ratio", f"{paper.GAIN_VISITING:g} x", ratio(at.loaded["chain_visiting"] / at.loaded["visiting"])],
        ["their ratio, nobody waits", "not given",
         ratio(at.alone["chain"][at.place] / at.alone["splitjoin"][at.place])],
        [f"their ratio, sub-windows of {at.part['visiting']['fixed_rows']:,}, nobody waits", "not given",
         ratio(at.fixed["chain"][at.place] / at.fixed["splitjoin"][at.place])],
        ["chain, 15 min / SplitJoin, 2^21", f"{paper.GAIN_VISITING_COUNT:g} x",
         ratio(at.loaded["chain_visiting"] / at.loaded_count["visiting"])],
        ["SplitJoin, 15 min / SplitJoin, 2^21", f"{paper.GAIN_COUNT_OVER_TIME:g} x",
         ratio(at.loaded["visiting"] / at.loaded_count["visiting"])],
    ]  # fmt: skip
    return f"""## Beside the paper

{table([f"{at.cores} cores", "paper", "ours"], beside)}

Our latencies are those at {percent} of what each system can take, tuples coming by chance, unless nobody waits. They
are of a short run after an empty start, which makes them too low (see [Stages](#stages-figures-15-and-18)). The
paper does not say how loaded its system was. At the same window our cores take
{paper.TUPLES_PER_S_COUNT / at.rate_count:.2f} of the paper's time for a tuple: they are newer, and share neither memory
nor caches with 27 others.
"""


def _over_time_windows(at: Figures) -> str:
    hand_over = at.part["hand_over"]["lines"][at.minutes]
    peak = max(hand_over, key=lambda point: point["ratio"])
    handed = [point["us"] for point in hand_over if point["ratio"] >= paper.GAIN_THROUGHPUT]
    needed = (
        f"For a ratio of 1.6 a message would have to cost {handed[0]:,.0f} us or more (right picture)."
        if handed
        else f"However dear messages were, the ratio would not pass {peak['ratio']:.2f} (right picture): from "
        f"{peak['us']:,.0f} us on the distributor at SplitJoin's root is the busiest. The rest of the 60 % may be "
        "in what the model leaves out of the chain, such as the coordinator's decisions and T_ML."
    )
    return f"""## Throughput over cores, time windows (figure 12)

![throughput over cores, time windows](splitjoin_time.png)

Both grow with the square root of k, because a faster input also fills a window of so many minutes with more tuples:
at {at.cores} cores and 15 minutes a window has {at.time["rows"][at.place] * at.cores / 2**20:.1f} x 2^20 tuples a
stream, in the paper about 2. LH is as fast but for {(at.gains[at.minutes] - 1):.1%}, and not 60 % slower: a tuple's
comparisons take a core {at.compared_us:,.0f} us, an expiry message
{(at.units["send"] + at.units["receive"]) / 1e3:.2f} us. {needed} The paper blames these messages, too; what one cost
there the text does not say. The paper's drop at 32 cores comes from helper threads without a core of their own; the
simulation gives each process one.
"""


def _over_count_windows(at: Figures) -> str:
    halved = at.count["splitjoin"][at.place] / at.part["count"][str(paper.COUNT_WINDOW // 2)]["splitjoin"][at.place]
    return f"""## Throughput over cores, count windows (figure 16)

![throughput over cores, count windows](splitjoin_count.png)

Doubling the window from 2^20 to 2^21 leaves {halved:.2f} of the throughput at {at.cores} cores. The smaller the window,
the more of the time goes into messages and the larger is the gain over LH: {at.gains[at.smallest]:.2f} x at 2^17. The
paper finds count windows about 20 % faster than time windows, through narrower tuples and a clock call for each; here a
clock call is {at.units["clock"] / 1e3 / at.compared_us:.2%} of a tuple's comparisons, and stored time stamps are not
read by the loop, so that windows of as many tuples give the same.

With an index instead of the nested loop our engine takes more than that from the same input on this machine's two
cores, see [SplitJoin's band join](../benchmarks.md#splitjoins-band-join).
"""


def _visiting(at: Figures) -> str:
    return f"""## Visiting latency over cores (figure 13)

![visiting latency over cores](splitjoin_visiting.png)

Left, where only the way to the cores changes, it is a logarithm against a line: from 4 to {at.cores} cores SplitJoin
goes from {at.fixed["splitjoin"][3]:.1f} to {at.fixed["splitjoin"][at.place]:.1f} us, LH from
{at.fixed["chain"][3]:.1f} to {at.fixed["chain"][at.place]:.1f} us. Dots lie a little above SplitJoin's line, as a
distributor writes to its children one after the other; they lie below LH's, whose (2) rounds half a hop up. Right, in
windows of 15 minutes, sub-windows shrink as cores are added and comparing dominates; as in the paper, both are alike
at 4 cores and drift apart. The ratio is {at.loaded["chain_visiting"] / at.loaded["visiting"]:.1f} and not 3.3, since
a hop of {us(at.units["link"])} is a small part of {at.compared_us:,.0f} us of comparisons; with smaller sub-windows
it is {at.fixed["chain"][at.place] / at.fixed["splitjoin"][at.place]:.1f}. The paper's milliseconds are
{paper.VISITING_MS / 1e3 * paper.TUPLES_PER_S_TIME:.0f} times what a tuple takes at its own rate, so that there tuples
waited for that many others.
"""


def _stages(at: Figures) -> str:
    waits = at.loaded["distribution"] / at.loaded["end_to_end"]
    gathers = at.loaded["gathering"] / at.loaded["end_to_end"]
    load = at.part["stages"]["time"]["load"]
    percent = f"{load:.0%}"
    stage_rows = [
        [
            f"{title}, {point['cores']} cores",
            *(f"{point[name]:,.0f}" for name in (
                "distribution", "execution", "gathering", "end_to_end", "processing", "visiting"
            )),
        ]
        for title, kind in (("15 min", "time"), ("2^21", "count"))
        for point in at.part["stages"][kind]["points"]
        if point["cores"] in (4, 8, 16, at.cores)
    ]  # fmt: skip
    return f"""## Stages (figures 15 and 18)

![stages over cores](splitjoin_stages.png)

Mean us of results, at {percent} load; their sum is end to end. These are the first {LATENCY_TUPLES} tuples after an
empty start, the first third left out, with arrivals of one seed, and not a steady state: `dis`, `ete`, `PL` and `vis`
are too low, by nearly half. In the long run tuples wait {load / (2 - 2 * load):.1f} times as long for a core as it
takes for one, if it takes as long for each (M/D/1). So ratios of loaded latencies, such as the chain's visiting latency
to SplitJoin's, {at.loaded["chain_visiting"] / at.loaded["visiting"]:.2f} here, are of these tuples alone:

{table(["window", "dis", "exe", "gather", "ete", "PL", "vis"], stage_rows)}

`dis` and `exe` fall as cores are added, as in the paper, `exe` with the sub-window. In the paper gathering is the
largest stage; here it is {gathers:.0%} of the whole and waiting before the cores {waits:.0%}. Mergers wait for the
slowest core, and the simulated cores are all equally fast, while the paper's threads on four sockets are not; buffers
before our cores have no bound, so that all the waiting is there. `PL` is until the star behind a tuple's results has
left. Visiting latency with a count window is {at.loaded["visiting"] / at.loaded_count["visiting"]:.1f} times better
than with 15 minutes because the window holds {at.time["rows"][at.place] / at.count["rows"][at.place]:.1f} times fewer
tuples; in the paper both hold about 2^21.
"""


def _match_probability(at: Figures) -> str:
    points = at.part["selectivity"]["points"]
    largest = str(paper.SUB_WINDOWS[-1])
    first, rare, last = (
        each["by_rows"][largest]["tuples_per_s"]
        for each in (points[0], point_at(points, "match_probability", 1e-4), points[-1])
    )
    robust, dense = rare / first, last / first
    return f"""## Match probability (figure 17)

![throughput over match probability](splitjoin_selectivity.png)

{at.cores} cores, by formula, with T_P measured anew for each probability: {points[0]["compare"]:.2f} ns at 10^-6,
{points[-1]["compare"]:.1f} ns at 10^-1, as matches are written down and branches guessed wrong. Up to 10^-4
{robust:.0%} of the throughput is left (w = 2^15), which is what the paper calls robust; at 10^-1 it is {dense:.1%},
where {points[-1]["by_rows"][largest]["results_per_s"] / 1e6:,.0f} million results/s have to pass the last merger. The
paper states no number.
"""


def _star_interval(at: Figures) -> str:
    largest = str(paper.SUB_WINDOWS[-1])
    stars = at.part["stars"]["lines"][largest]
    free = point_at(stars, "interval", paper.STAR_INTERVAL_FREE)["tuples_per_s"] / stars[-1]["tuples_per_s"]
    every = stars[0]["tuples_per_s"] / stars[-1]["tuples_per_s"]
    below = point_at(stars, "interval", paper.STAR_INTERVAL_FREE // 2)["tuples_per_s"] / stars[-1]["tuples_per_s"]
    return f"""## Star interval (figure 19)

![throughput over star interval](splitjoin_stars.png)

{at.cores} cores, inner order. At the largest interval, one star for a probe, inner order is strict outer order. At 2^11
{free:.0%} of the throughput is left for w = 2^15, at 2^10 {below:.0%}, and with a star for each comparison
{every:.2%}; the paper sees no loss down to 2^11 and falls from 2^10 on. The knee is at the same place, and softer: a
star is a message here, worth {at.units["send"] / at.units["compare"]:,.0f} comparisons to the core that sends it, and
further down a merger, which takes two stars and sends one, is the busiest process. (The paper draws a star for each
comparison at 2^1; it is 2^0 here.)
"""
