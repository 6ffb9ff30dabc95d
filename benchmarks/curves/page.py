"""The text of the evaluation pages, with every figure taken from the run's results."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.curves import paper
from benchmarks.curves.model import FAN
from benchmarks.provenance import said
from benchmarks.quiet import BUSY_SHARE_MAX

Part = Mapping[str, Any]


WIDTH = 120


def pages(results: Part) -> dict[str, str]:
    """File name -> text."""
    return {"splitjoin.md": _wrapped(splitjoin(results)), "handshake.md": _wrapped(handshake(results))}


def _wrapped(text: str) -> str:
    """Paragraphs and points of lists in lines of one width, whatever figures they hold; the rest as it is."""
    return "\n\n".join(map(_wrapped_block, text.rstrip().split("\n\n"))) + "\n"


def _wrapped_block(block: str) -> str:
    if block.startswith(("#", "|", "!")):
        return block
    parts = re.split(r"\n(?=- )", block)
    indent = "  " if block.startswith("- ") else ""
    wrapped = [
        textwrap.fill(" ".join(part.split()), WIDTH, subsequent_indent=indent, break_long_words=False,
                      break_on_hyphens=False)
        for part in parts
    ]  # fmt: skip
    return "\n".join(wrapped)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The first column is text, the others are numbers, but for one that says how."""
    sides = ["---", *("---" if name == "how" else "--:" for name in header[1:])]
    lines = ["| " + " | ".join(header) + " |", "| " + " | ".join(sides) + " |"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def _machine(results: Part) -> str:
    machine = results["machine"]
    toy = "**Toy sizes: these numbers show that the programs work, and nothing else.**\n\n" if results["quick"] else ""
    busy = results["busy_before"]
    noisy = (
        f" Other programs used {busy:.0%} of the cores' time just before: units that are timed can be too slow."
        if busy > BUSY_SHARE_MAX
        else ""
    )
    return (
        f"{toy}{machine['cores']} cores ({machine['model']}), {machine['system']}, Python {machine['python']}, "
        f"NumPy {machine['numpy']}, Numba {machine['numba']}. "
        f"{said(results.get('begun'), results.get('commit'))}{noisy}"
    )


def _at(points: Sequence[Part], key: str, value: float) -> Part:
    """The point where `key` is `value`, else the last: toy runs have fewer."""
    return next((point for point in points if point[key] == value), points[-1])


def _us(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e3:,.2f} us"


def _times(value: float) -> str:
    return f"{value:.2f} x"


def splitjoin(results: Part) -> str:
    """`splitjoin.md`."""
    part, units = results["splitjoin"], results["units"]
    cores, minutes, window = paper.CORES, str(paper.TIME_WINDOW_MIN), str(paper.COUNT_WINDOW)
    time, count = part["time"][minutes], part["count"][window]
    place = time["cores"].index(cores)
    rate, rate_count = time["splitjoin"][place], count["splitjoin"][place]
    loaded = _at(part["stages"]["time"]["points"], "cores", cores)
    loaded_count = _at(part["stages"]["count"]["points"], "cores", cores)
    fixed, alone = part["visiting"]["fixed"], part["visiting"][minutes]
    smallest = min(part["count"], key=int)
    gains = {
        name: each["splitjoin"][place] / each["chain"][place]
        for name, each in ((minutes, time), (window, count), (smallest, part["count"][smallest]))
    }
    off = max(
        abs(dot["splitjoin"] / each["splitjoin"][dot["cores"] - 1] - 1)
        for kind in ("time", "count")
        for each in part[kind].values()
        for dot in each["simulated"]
    )
    off_chain = max(
        abs(dot["chain"] / each["chain"][dot["cores"] - 1] - 1)
        for kind in ("time", "count")
        for each in part[kind].values()
        for dot in each["simulated"]
    )
    hand_over = part["hand_over"]["lines"][minutes]
    peak = max(hand_over, key=lambda point: point["ratio"])
    handed = [point["us"] for point in hand_over if point["ratio"] >= paper.GAIN_THROUGHPUT]
    needed = (
        f"For a ratio of 1.6 a message would have to cost {handed[0]:,.0f} us or more (right picture)."
        if handed
        else f"However dear messages were, the ratio would not pass {peak['ratio']:.2f} (right picture): from "
        f"{peak['us']:,.0f} us on the distributor at SplitJoin's root is the busiest. The rest of the 60 % may be "
        "in what the model leaves out of the chain, such as the coordinator's decisions and T_ML."
    )
    compared_us = time["rows"][place] * units["compare"] / 1e3
    halved = count["splitjoin"][place] / part["count"][str(paper.COUNT_WINDOW // 2)]["splitjoin"][place]
    points = part["selectivity"]["points"]
    largest = str(paper.SUB_WINDOWS[-1])
    first, rare, last = (
        each["by_rows"][largest]["tuples_per_s"]
        for each in (points[0], _at(points, "match_probability", 1e-4), points[-1])
    )
    robust, dense = rare / first, last / first
    stars = part["stars"]["lines"][largest]
    free = _at(stars, "interval", paper.STAR_INTERVAL_FREE)["tuples_per_s"] / stars[-1]["tuples_per_s"]
    every = stars[0]["tuples_per_s"] / stars[-1]["tuples_per_s"]
    below = _at(stars, "interval", paper.STAR_INTERVAL_FREE // 2)["tuples_per_s"] / stars[-1]["tuples_per_s"]
    waits = loaded["distribution"] / loaded["end_to_end"]
    gathers = loaded["gathering"] / loaded["end_to_end"]
    percent = f"{part['stages']['time']['load']:.0%}"
    stage_rows = [
        [
            f"{title}, {point['cores']} cores",
            *(f"{point[name]:,.0f}" for name in (
                "distribution", "execution", "gathering", "end_to_end", "processing", "visiting"
            )),
        ]
        for title, kind in (("15 min", "time"), ("2^21", "count"))
        for point in part["stages"][kind]["points"]
        if point["cores"] in (4, 8, 16, cores)
    ]  # fmt: skip
    unit_rows = [
        ["T_P, comparing with one stored tuple", f"{units['compare']:.2f} ns",
         "nested loop in Numba, one core, the paper's band of +-10 on both columns, matches written down"],
        ["the same as NumPy expressions", f"{results['numpy_compare']:.2f} ns", "not used in the curves"],
        ["T_CL, one hop", _us(units["link"]),
         "64 bytes through a pipe to a process that waits for them, half of the way there and back, median"],
        ["of it, the sender's work", _us(units["send"]), "processor time while the queue is never empty"],
        ["of it, the receiver's work", _us(units["receive"]), "the same"],
        ["T_Col, merging one result", f"{units['collect']:.1f} ns", "two inputs in order into one, Numba"],
        ["asking for the time", f"{units['clock']:.0f} ns", "clock_gettime; not used in the curves"],
    ]  # fmt: skip
    beside = [
        ["tuples/s, 15 min", f"{paper.TUPLES_PER_S_TIME:,.0f}", f"{rate:,.0f}"],
        ["tuples/s, 2^21 tuples", f"{paper.TUPLES_PER_S_COUNT:,.0f}", f"{rate_count:,.0f}"],
        ["throughput over the chain, 15 min", f"up to {paper.GAIN_THROUGHPUT:g} x", _times(gains[minutes])],
        ["the same, 2^17 tuples", "not given", _times(gains[smallest])],
        ["visiting latency, SplitJoin, 15 min", f"{paper.VISITING_MS:g} ms", f"{loaded['visiting'] / 1e3:.2f} ms"],
        ["visiting latency, chain, 15 min", f"{paper.CHAIN_VISITING_MS:.0f}.x ms (digits lost)",
         f"{loaded['chain_visiting'] / 1e3:.2f} ms"],
        ["their ratio", f"{paper.GAIN_VISITING:g} x", _times(loaded["chain_visiting"] / loaded["visiting"])],
        ["their ratio, nobody waits", "not given", _times(alone["chain"][place] / alone["splitjoin"][place])],
        [f"their ratio, sub-windows of {part['visiting']['fixed_rows']:,}, nobody waits", "not given",
         _times(fixed["chain"][place] / fixed["splitjoin"][place])],
        ["chain, 15 min / SplitJoin, 2^21", f"{paper.GAIN_VISITING_COUNT:g} x",
         _times(loaded["chain_visiting"] / loaded_count["visiting"])],
        ["SplitJoin, 15 min / SplitJoin, 2^21", f"{paper.GAIN_COUNT_OVER_TIME:g} x",
         _times(loaded["visiting"] / loaded_count["visiting"])],
    ]  # fmt: skip
    return f"""# SplitJoin's evaluation beside ours

Source: "SplitJoin: a scalable, low-latency stream join architecture with adjustable ordering precision" (USENIX ATC
2016). The text of the paper that we have has no pictures and no axis values; red marks are all the numbers that it
states. Written by `python -m benchmarks.curves`; do not edit. All figures: [curves.json](curves.json).

{_machine(results)}

## How the curves are made

The paper ran up to 32 join cores on a machine of 32. This machine does not have them, so what one step costs is
measured on it, and the steps are put together in two ways:

- **Lines** are formulas. Latency is the paper's (5), (6) for SplitJoin and (2) for the low-latency handshake chain
  (LH), which tests show to be equal to the [simulation](../protocols/splitjoin.md) in small cases. Throughput has no
  formula in the paper: here it is that of the busiest process, a core, a distributor or a merger, charged for its
  messages, its comparisons and its part of merging.
- **Dots** are runs of the simulated protocol, message by message, on a virtual clock in ns: trees of fan-out {FAN},
  cores that do one thing at a time, outer order by Algorithm 5. A core's probe of its whole sub-window is one step of
  the simulation and takes as long as all its comparisons. Dots and lines of throughput differ by at most {off:.1%}
  for SplitJoin and {off_chain:.1%} for LH, whose dots contain the time until the chain is full.

{_table(["unit", "measured", "how"], unit_rows)}

The chain's monitoring time T_ML and collecting its results are free here, which favours the chain. Each of its cores
takes in and passes on every tuple and one expiry message for each.

## Beside the paper

{_table([f"{cores} cores", "paper", "ours"], beside)}

Our latencies are those at {percent} of what each system can take, tuples coming by chance, unless nobody waits. The
paper does not say how loaded its system was. At the same window our cores take
{paper.TUPLES_PER_S_COUNT / rate_count:.2f} of the paper's time for a tuple: they are newer, and share neither memory
nor caches with 27 others.

## Throughput over cores, time windows (figure 12)

![throughput over cores, time windows](splitjoin_time.png)

Both grow with the square root of k, because a faster input also fills a window of so many minutes with more tuples:
at {cores} cores and 15 minutes a window has {time["rows"][place] * cores / 2**20:.1f} x 2^20 tuples a stream, in the
paper about 2. LH is as fast but for {(gains[minutes] - 1):.1%}, and not 60 % slower: a tuple's comparisons take a
core {compared_us:,.0f} us, an expiry message {(units["send"] + units["receive"]) / 1e3:.2f} us. {needed} The paper
blames these messages, too; what one cost there the text does not say. The paper's drop at 32 cores comes from helper
threads without a core of their own; the simulation gives each process one.

## Throughput over cores, count windows (figure 16)

![throughput over cores, count windows](splitjoin_count.png)

Doubling the window from 2^20 to 2^21 leaves {halved:.2f} of the throughput at {cores} cores. The smaller the window,
the more of the time goes into messages and the larger is the gain over LH: {gains[smallest]:.2f} x at 2^17. The paper
finds count windows about 20 % faster than time windows, through narrower tuples and a clock call for each; here a
clock call is {units["clock"] / 1e3 / compared_us:.2%} of a tuple's comparisons, and stored time stamps are not read
by the loop, so that windows of as many tuples give the same.

With an index instead of the nested loop our engine takes more than that from the same input on this machine's two
cores, see [SplitJoin's band join](../benchmarks.md#splitjoins-band-join).

## Visiting latency over cores (figure 13)

![visiting latency over cores](splitjoin_visiting.png)

Left, where only the way to the cores changes, it is a logarithm against a line: from 4 to {cores} cores SplitJoin
goes from {fixed["splitjoin"][3]:.1f} to {fixed["splitjoin"][place]:.1f} us, LH from {fixed["chain"][3]:.1f} to
{fixed["chain"][place]:.1f} us. Dots lie a little above SplitJoin's line, as a distributor writes to its children one
after the other; they lie below LH's, whose (2) rounds half a hop up. Right, in windows of 15 minutes, sub-windows
shrink as cores are added and comparing dominates; as in the paper, both are alike at 4 cores and drift apart. The
ratio is {loaded["chain_visiting"] / loaded["visiting"]:.1f} and not 3.3, since a hop of {_us(units["link"])} is a
small part of {compared_us:,.0f} us of comparisons; with smaller sub-windows it is
{fixed["chain"][place] / fixed["splitjoin"][place]:.1f}. The paper's milliseconds are
{paper.VISITING_MS / 1e3 * paper.TUPLES_PER_S_TIME:.0f} times what a tuple takes at its own rate, so that there tuples
waited for that many others.

## Stages (figures 15 and 18)

![stages over cores](splitjoin_stages.png)

Mean us of results, at {percent} load; their sum is end to end:

{_table(["window", "dis", "exe", "gather", "ete", "PL", "vis"], stage_rows)}

`dis` and `exe` fall as cores are added, as in the paper, `exe` with the sub-window. In the paper gathering is the
largest stage; here it is {gathers:.0%} of the whole and waiting before the cores {waits:.0%}. Mergers wait for the
slowest core, and the simulated cores are all equally fast, while the paper's threads on four sockets are not; buffers
before our cores have no bound, so that all the waiting is there. `PL` is until the star behind a tuple's results has
left. Visiting latency with a count window is {loaded["visiting"] / loaded_count["visiting"]:.1f} times better than
with 15 minutes because the window holds {time["rows"][place] / count["rows"][place]:.1f} times fewer tuples; in the
paper both hold about 2^21.

## Match probability (figure 17)

![throughput over match probability](splitjoin_selectivity.png)

{cores} cores, by formula, with T_P measured anew for each probability: {points[0]["compare"]:.2f} ns at 10^-6,
{points[-1]["compare"]:.1f} ns at 10^-1, as matches are written down and branches guessed wrong. Up to 10^-4
{robust:.0%} of the throughput is left (w = 2^15), which is what the paper calls robust; at 10^-1 it is {dense:.1%},
where {points[-1]["by_rows"][largest]["results_per_s"] / 1e6:,.0f} million results/s have to pass the last merger. The
paper states no number.

## Star interval (figure 19)

![throughput over star interval](splitjoin_stars.png)

{cores} cores, inner order. At the largest interval, one star for a probe, inner order is strict outer order. At 2^11
{free:.0%} of the throughput is left for w = 2^15, at 2^10 {below:.0%}, and with a star for each comparison
{every:.2%}; the paper sees no loss down to 2^11 and falls from 2^10 on. The knee is at the same place, and softer: a
star is a message here, worth {units["send"] / units["compare"]:,.0f} comparisons to the core that sends it, and
further down a merger, which takes two stars and sends one, is the busiest process. (The paper draws a star for each
comparison at 2^1; it is 2^0 here.)

## What is not in these curves

Caches and memory shared by cores, processes that compete for a core, bounded buffers, expiry (a region that is full
drops as many tuples as it stores), the Combiner's work, and an operating system that lets a process wait. Sub-windows
are always full.
"""


def handshake(results: Part) -> str:
    """`handshake.md`."""
    part = results["handshake"]
    blocks, best, slow, workers = part["blocks"], part["best"], part["slow"], part["workers"]
    points = blocks["points"]
    text_best = best["1.0"]
    share_best = best[next(key for key in best if key != "1.0")]
    serialization = part["serialization"]
    window_rows = blocks["rate_per_s"] * blocks["window_s"]
    fair = window_rows / blocks["workers"]
    efficiency = [
        [
            f"{row['n']:,}",
            *(
                f"{row['measured'][index]:.3g} ({row['predicted'][index]:.3g})"
                if "measured" in row
                else f"({row['predicted'][index]:.3g})"
                for index in ("scan", "bst", "hash")
            ),
            *(
                f"{row['compared_per_tuple'][index]:,.1f}" if "measured" in row else "-"
                for index in ("scan", "bst", "hash")
            ),
        ]
        for row in part["efficiency"]
    ]
    block_rows = [
        [
            f"{point['block']:,}", f"{point['imbalance']:.4f}", f"{point['predicted']:.3f}",
            f"{point['target']:,.1f}", *(
                f"{point['messages'].get(kind, 0):.3g}" for kind in ("TUPLE_BLK", "ACK_BLK", "SIZE_CHG")
            ),
            f"{sum(point['bytes'].values()):,.0f}",
        ]
        for point in points
    ]  # fmt: skip
    capped = _at(points, "block", text_best["capped"])
    one = points[0]
    lengths = [point["workers"] for point in next(iter(workers["blocks"].values()))]
    worker_rows = [
        [str(m), *(f"{each[at]['imbalance']:.3f}" for each in workers["blocks"].values())]
        for at, m in enumerate(lengths)
    ]
    slow_rows = [[block, *(f"{figure:.3f}" for figure in figures)] for block, figures in slow["blocks"].items()]
    within = {
        (int(block), link): figure
        for block, figures in slow["blocks"].items()
        for link, figure in zip(slow["links_ms"], figures, strict=True)
    }
    good = [
        block
        for block in map(int, slow["blocks"])
        if all(within[block, link] <= 0.1 for link in slow["links_ms"] if link <= 100)
    ]
    moving = part["over_time"]
    full = [
        figure for at_s, figure in zip(moving["times_s"], moving["imbalance"], strict=True) if at_s > moving["window_s"]
    ]
    after = (
        f"once the window is full IF is {sum(full) / len(full):.2f} in the mean and {max(full):.2f} at the most"
        if full
        else "the run ends before the window is full"
    )
    larger = [point for point in points if point["block"] > window_rows]
    beyond = (
        f"Above the window of {window_rows:,.0f} tuples no block is ever full: tuples leave the head by the sweep "
        f"alone, one at a time, and IF is m - 1 = {larger[-1]['imbalance']:.0f}. "
        if larger
        else ""
    )
    return f"""# The handshake chain's figures

Source: ESJ, "Join engine". Its text has formulas and no evaluation, so these are our own figures, from the simulated
[protocol](../protocols/handshake.md) and beside the formulas. Written by `python -m benchmarks.curves`; do not edit.
All figures: [curves.json](curves.json).

{_machine(results)}

## Processing efficiency

![rho and comparisons over n](handshake_efficiency.png)

rho = outputs / comparisons of n tuples of R and n of S, arriving in turn; each key comes once in each stream. Counted
in the chain's own stores; in brackets the formulas, with 1 for the constant that the big O hides.

{_table(["n", "rho, scan", "tree", "hash", "comparisons a tuple, scan", "tree", "hash"], efficiency)}

The scan compares n / 2 tuples on average, since the other stream is half there; the tree about log2 n, a little less
than in the formula, which has the full tree from the first tuple on; the hash map 1.5, a look-up for each tuple and
its partner for every second one. On distinct keys rho falls as 1 / n for the scan and stays the same for the hash
map.

## Blocks

![imbalance and bytes over the block size](handshake_blocks.png)

{blocks["workers"]} workers, {blocks["rate_per_s"]} tuples a second and stream, a window of {
        blocks["window_s"]
    } s, links of
1 ms: a fair share w_avg is {
        fair:,.0f}. IF is the mean of 200 samples; messages and bytes are those between workers, for one
tuple and hop, each message as long as its pickled form. J is the paper's target with the measured costs.

{_table(["b", "IF", "b / w_avg", "J", "TUPLE_BLK", "ACK_BLK", "SIZE_CHG", "bytes"], block_rows)}

- The text's example, C_ser = 1 and alpha = 0.5 at 200 tuples/s, 10 s and 4 workers, gives b* = {
        text_best["best"]:,.0f}: twice
  a fair share of 500. Capped at half a share it is {text_best["capped"]}; there IF is {
        capped["imbalance"]:.2f} and a tuple's hop
  takes {sum(capped["bytes"].values()):,.0f} bytes instead of {sum(one["bytes"].values()):,.0f} with b = {one["block"]}.
- Measured, a message costs {serialization["message_ns"] / 1e3:.1f} us to serialize and read again and a tuple in it
  {serialization["tuple_ns"] / 1e3:.1f} us, so that of one tuple sent alone C_ser is {
        serialization["share"]:.2f} and C_tr
  {1 - serialization["share"]:.2f}: b* = {share_best["best"]:,.0f}, capped {share_best["capped"]}.
- Up to the cap IF is about half of b / w_avg or less: at any moment the last block is between nothing and full.
- TUPLE_BLK and ACK_BLK fall as 1 / b. SIZE_CHG does not: it also carries the stream's mark, which moves with every
  tuple that
  comes in, so that about one a tuple and hop is left. Blocks of more than some 20 tuples save little for that reason.
- {beyond}J has hardly a slope from b = 100 on: the formula's minimum is flat, and the cap costs next to nothing.

## Length of the chain

![imbalance over the workers](handshake_workers.png)

A fair share of {workers["share"]} tuples in every worker, whatever their number:

{_table(["m", *(f"IF, b = {block}" for block in workers["blocks"])], worker_rows)}

From two workers on IF does not grow with the chain; b / w_avg is {
        " and ".join(f"{int(block) / workers['share']:.1f}" for block in workers["blocks"])
    }.

## A worker behind slow links

![loads over time](handshake_over_time.png)

{len(moving["loads"])} workers, {slow["rate_per_s"]:.0f} tuples a second and stream, a window of {
        moving["window_s"]
    } s, so that a fair
share is {workers["share"]}; the links of w1 take {moving["slow_ms"]:.0f} ms, the others 1 ms; b = {
        moving["block"]
    }. The chain starts
empty; {after}. The slow worker has no more and no less than its neighbours but for a block.

Mean IF of both streams in full windows, w1's links taking so many ms:

{_table(["b", *(f"{link} ms" for link in slow["links_ms"])], slow_rows)}

Up to 100 ms the mean stays within 10 % for b = {
        ", ".join(map(str, good)) or "none of these"
    }. Tuple by tuple a slow link is worse,
as a worker's report of its load is as old as the link is long; a block makes up for it, up to where b / w_avg itself
counts.

## What is not in these figures

Time that workers take to join or serialize: links have delays, workers have none. Tuples that come behind their mark,
and rates that change.
"""
