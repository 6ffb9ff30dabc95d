"""`handshake.md`: figures of the handshake chain, section by section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.curves.text import machine, point_at, table

Part = Mapping[str, Any]

_LEFT_OUT = """## What is not in these figures

Time that workers take to join or serialize: links have delays, workers have none. Tuples that come behind their mark,
and rates that change.
"""


def handshake(results: Part) -> str:
    """The whole page."""
    part = results["handshake"]
    return "\n".join((_head(results), _efficiency(part), _blocks(part), _lengths(part), _slow_links(part), _LEFT_OUT))


def _head(results: Part) -> str:
    return f"""# The handshake chain's figures

Source: ESJ, "Join engine". Its text has formulas and no evaluation, so these are our own figures, from the simulated
[protocol](../protocols/handshake.md) and beside the formulas. Written by `python -m benchmarks.curves`; do not edit.
All figures: [curves.json](curves.json).

{machine(results)}
"""


def _efficiency(part: Part) -> str:
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
    return f"""## Processing efficiency

![rho and comparisons over n](handshake_efficiency.png)

rho = outputs / comparisons of n tuples of R and n of S, arriving in turn; each key comes once in each stream. Counted
in the chain's own stores; in brackets the formulas, with 1 for the constant that the big O hides.

{table(["n", "rho, scan", "tree", "hash", "comparisons a tuple, scan", "tree", "hash"], efficiency)}

The scan compares n / 2 tuples on average, since the other stream is half there; the tree about log2 n, a little less
than in the formula, which has the full tree from the first tuple on; the hash map 1.5, a look-up for each tuple and
its partner for every second one. On distinct keys rho falls as 1 / n for the scan and stays the same for the hash
map.
"""


def _blocks(part: Part) -> str:
    blocks, best, serialization = part["blocks"], part["best"], part["serialization"]
    points = blocks["points"]
    text_best = best["1.0"]
    share_best = best[next(key for key in best if key != "1.0")]
    window_rows = blocks["rate_per_s"] * blocks["window_s"]
    fair = window_rows / blocks["workers"]
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
    capped = point_at(points, "block", text_best["capped"])
    one = points[0]
    larger = [point for point in points if point["block"] > window_rows]
    beyond = (
        f"Above the window of {window_rows:,.0f} tuples no block is ever full: tuples leave the head by the sweep "
        f"alone, one at a time, and IF is m - 1 = {larger[-1]['imbalance']:.0f}. "
        if larger
        else ""
    )
    return f"""## Blocks

![imbalance and bytes over the block size](handshake_blocks.png)

{blocks["workers"]} workers, {blocks["rate_per_s"]} tuples a second and stream, a window of {
        blocks["window_s"]
    } s, links of
1 ms: a fair share w_avg is {
        fair:,.0f}. IF is the mean of 200 samples; messages and bytes are those between workers, for one
tuple and hop, each message as long as its pickled form. J is the paper's target with the measured costs.

{table(["b", "IF", "b / w_avg", "J", "TUPLE_BLK", "ACK_BLK", "SIZE_CHG", "bytes"], block_rows)}

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
"""


def _lengths(part: Part) -> str:
    workers = part["workers"]
    lengths = [point["workers"] for point in next(iter(workers["blocks"].values()))]
    worker_rows = [
        [str(m), *(f"{each[at]['imbalance']:.3f}" for each in workers["blocks"].values())]
        for at, m in enumerate(lengths)
    ]
    return f"""## Length of the chain

![imbalance over the workers](handshake_workers.png)

A fair share of {workers["share"]} tuples in every worker, whatever their number:

{table(["m", *(f"IF, b = {block}" for block in workers["blocks"])], worker_rows)}

From two workers on IF does not grow with the chain; b / w_avg is {
        " and ".join(f"{int(block) / workers['share']:.1f}" for block in workers["blocks"])
    }.
"""


def _slow_links(part: Part) -> str:
    slow, workers = part["slow"], part["workers"]
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
    return f"""## A worker behind slow links

![loads over time](handshake_over_time.png)

{len(moving["loads"])} workers, {slow["rate_per_s"]:.0f} tuples a second and stream, a window of {
        moving["window_s"]
    } s, so that a fair
share is {workers["share"]}; the links of w1 take {moving["slow_ms"]:.0f} ms, the others 1 ms; b = {
        moving["block"]
    }. The chain starts
empty; {after}. The slow worker has no more and no less than its neighbours but for a block.

Mean IF of both streams in full windows, w1's links taking so many ms:

{table(["b", *(f"{link} ms" for link in slow["links_ms"])], slow_rows)}

Up to 100 ms the mean stays within 10 % for b = {
        ", ".join(map(str, good)) or "none of these"
    }. Tuple by tuple a slow link is worse,
as a worker's report of its load is as old as the link is long; a block makes up for it, up to where b / w_avg itself
counts.
"""
