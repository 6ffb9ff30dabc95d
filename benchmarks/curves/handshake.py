"""The handshake chain's figures: processing efficiency, what blocks cost and what they do to balance.

ESJ's text has formulas and no evaluation. Counts come from the simulated chain's own stores and messages.
"""

from __future__ import annotations

import pickle
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

from benchmarks.curves.units import best_s
from simulate.handshake.blocks import BlockSize
from simulate.handshake.chain import Chain
from simulate.handshake.messages import AckBlock, SizeChange, StreamTuple, TupleBlock
from simulate.handshake.stores import STORES, Scan
from simulate.handshake.windows import TimeWindow
from simulate.network import Earliest, Network
from simulate.stream import Stream
from streamjoin.operators.costs import handshake as formulas

SECOND_US = 1_000_000
WINDOW_S = 10
LINK_US = 1_000
WEIGHT = 0.5
RATE_PER_S, WORKERS = 200, 4
"""The text's own example for the best block."""
QUICK_RATE_PER_S = 20
BLOCKS = (1, 2, 5, 10, 20, 50, 100, 250, 500, 1000, 2000, 5000, 10_000)
SHARE = 50
"""Tuples of a stream in a worker, for chains of other lengths and with a slow worker."""
EFFICIENCY = {
    "scan": formulas.efficiency_naive, "bst": formulas.efficiency_bst, "hash": formulas.efficiency_hash,
}  # fmt: skip
MESSAGES = {TupleBlock: "TUPLE_BLK", AckBlock: "ACK_BLK", SizeChange: "SIZE_CHG"}
Sent = Callable[[str, str, Any], None]
Loads = dict[Stream, list[int]]


def figures(quick: bool = False) -> dict[str, Any]:
    """All of them."""
    serialization = serialization_share(quick)
    return {
        "efficiency": _efficiency(3 if quick else 5),
        "serialization": serialization,
        "best": {
            str(cost): {
                "best": formulas.best_block(RATE_PER_S, WINDOW_S, WORKERS, WEIGHT, cost),
                "capped": formulas.block_size(RATE_PER_S, WINDOW_S, WORKERS, WEIGHT, cost),
            }
            for cost in (1.0, serialization["share"])
        },
        "blocks": _blocks(
            (5, 25, 100) if quick else BLOCKS, QUICK_RATE_PER_S if quick else RATE_PER_S, serialization["share"]
        ),
        "workers": _workers((1, 2) if quick else (1, 2, 3, 4, 6, 8, 12, 16), (25,) if quick else (5, 25)),
        "slow": _slow_table((100,) if quick else (1, 50, 100, 200), (5,) if quick else (1, 2, 5, 10)),
        "over_time": _over_time(100, 5, windows=1 if quick else 4),
    }


def comparisons(index: str, tuples: int) -> tuple[int, int]:
    """(comparisons, outputs) of as many r as s with distinct keys, each key once in each, in turn and by chance."""
    chance = random.Random(1)
    keys = {stream: chance.sample(range(tuples), tuples) for stream in Stream}
    stores = {stream: STORES[index]() for stream in Stream}
    compared = outputs = 0
    for number in range(tuples):
        for stream in Stream:
            key = keys[stream][number]
            opposite = stores[stream.opposite]
            found, searched = opposite.candidates(key, key)
            # The scan hands out all that it has: its length is the count, and the partner needs no search here.
            candidates = len(opposite) if isinstance(opposite, Scan) else sum(1 for _ in found)
            compared += searched + candidates
            outputs += candidates
            stores[stream].add(StreamTuple(stream, number, key))
    return compared, tuples if index == "scan" else outputs


def _efficiency(measured_to: int) -> list[dict[str, Any]]:
    """For n = 10^3 and up: rho by formula, and by counting in the stores where that does not take minutes."""
    rows = []
    for power in range(3, 7):
        n = 10**power
        row: dict[str, Any] = {"n": n, "predicted": {name: rho(n, n, n) for name, rho in EFFICIENCY.items()}}
        if power <= measured_to:
            counted = {name: comparisons(name, n) for name in EFFICIENCY}
            row["measured"] = {name: outputs / compared for name, (compared, outputs) in counted.items()}
            row["compared_per_tuple"] = {name: compared / (2 * n) for name, (compared, _) in counted.items()}
        rows.append(row)
    return rows


def serialization_share(quick: bool) -> dict[str, float]:
    """C_ser and C_tr as shares of what serializing one tuple alone takes, by timing messages of few and many tuples."""
    repeats = 20 if quick else 200

    def message_ns(tuples: int, times: int) -> float:
        items = tuple(StreamTuple(Stream.R, number, number, number) for number in range(tuples))
        message = TupleBlock(Stream.R, "w0", 1, items)

        def cross() -> None:
            for _ in range(times):
                pickle.loads(pickle.dumps(message))

        return best_s(cross, 5 if quick else 50) / times * 1e9

    one_ns, many_ns = message_ns(1, repeats), message_ns(1_000, 1)
    tuple_ns = (many_ns - one_ns) / 999
    return {"message_ns": one_ns - tuple_ns, "tuple_ns": tuple_ns, "share": (one_ns - tuple_ns) / one_ns}


def steady(
    workers: int,
    block: int,
    rate_per_s: float,
    samples_s: Sequence[float],
    slow_ms: float | None = None,
    sent: Sent = lambda sender, receiver, message: None,
) -> Iterator[Loads]:
    """Loads of both streams at these times, tuples coming evenly from time 0 on.

    Args:
        slow_ms: the links of worker 1 take so long; the others take 1 ms.
        sent: told each message.
    """

    def delay_us(sender: str, receiver: str, message: Any) -> int:
        sent(sender, receiver, message)
        return LINK_US if slow_ms is None or "w1" not in (sender, receiver) else round(slow_ms * 1_000)

    network = Network(Earliest(), delay_us, keep_log=False)
    window_us = WINDOW_S * SECOND_US
    chain = Chain(network, workers, [], TimeWindow(window_us, window_us), BlockSize(block))
    ends_us = round(samples_s[-1] * SECOND_US)
    for stream in Stream:
        for number in range(int(rate_per_s * samples_s[-1]) + 1):
            at_us = round(number * SECOND_US / rate_per_s)
            network.wake_at(f"in-{stream}", at_us, [StreamTuple(stream, number, time=at_us)])
        for at_us in range(0, ends_us, window_us // 50):
            network.wake_at(f"in-{stream}", at_us, at_us)
    for sample_s in samples_s:
        network.run(until=lambda until_us=sample_s * SECOND_US: network.now_us >= until_us)  # type: ignore[misc]
        yield {stream: chain.loads(stream) for stream in Stream}


def sampled_s(seed: int, samples: int = 200, from_windows: float = 2, to_windows: float = 2.4) -> list[float]:
    """Times by chance in windows that are full, for means."""
    chance = random.Random(seed)
    return sorted(chance.uniform(from_windows, to_windows) * WINDOW_S for _ in range(samples))


def mean_imbalance(samples: Iterator[Loads]) -> float:
    """IF, the mean over samples and streams."""
    figures = [formulas.imbalance(loads[stream]) for loads in samples for stream in Stream]
    return sum(figures) / len(figures)


def _blocks(blocks: Sequence[int], rate_per_s: float, share: float) -> dict[str, Any]:
    """IF, and messages and bytes of a tuple's hop, over the block size."""
    points = []
    for block in blocks:
        messages: Counter[str] = Counter()
        sizes: Counter[str] = Counter()

        def count(sender: str, receiver: str, message: Any, messages: Any = messages, sizes: Any = sizes) -> None:
            if sender[0] == receiver[0] == "w":
                kind = MESSAGES[type(message)]
                messages[kind] += 1
                sizes[kind] += len(pickle.dumps(message))
                messages["tuples"] += len(message.items) if isinstance(message, TupleBlock) else 0

        figure = mean_imbalance(steady(WORKERS, block, rate_per_s, sampled_s(block), sent=count))
        hops = messages.pop("tuples")
        points.append(
            {
                "block": block,
                "imbalance": figure,
                "predicted": formulas.imbalance_predicted(block, rate_per_s, WINDOW_S, WORKERS),
                "target": formulas.target(block, rate_per_s, WINDOW_S, WORKERS, WEIGHT, 1 - share, share),
                "hops": hops,
                "messages": {kind: number / hops for kind, number in messages.items()} if hops else {},
                "bytes": {kind: size / hops for kind, size in sizes.items()} if hops else {},
            }
        )
    return {"workers": WORKERS, "rate_per_s": rate_per_s, "window_s": WINDOW_S, "points": points}


def _workers(lengths: Sequence[int], blocks: Sequence[int]) -> dict[str, Any]:
    """IF over the length of the chain, each worker's fair share being the same."""
    return {
        "share": SHARE,
        "blocks": {
            str(block): [
                {"workers": m, "imbalance": mean_imbalance(steady(m, block, m * SHARE / WINDOW_S, sampled_s(m)))}
                for m in lengths
            ]
            for block in blocks
        },
    }


def _slow_table(links_ms: Sequence[int], blocks: Sequence[int]) -> dict[str, Any]:
    """IF where worker 1 of four has slow links."""
    rate = WORKERS * SHARE / WINDOW_S
    return {
        "rate_per_s": rate,
        "links_ms": list(links_ms),
        "blocks": {
            str(block): [
                mean_imbalance(steady(WORKERS, block, rate, sampled_s(4, 400, 2, 4), slow_ms=slow)) for slow in links_ms
            ]
            for block in blocks
        },
    }


def _over_time(slow_ms: float, block: int, windows: int) -> dict[str, Any]:
    """Each worker's r and IF of r, from an empty chain on."""
    # No multiple of the time between two tuples, or every sample would show the same moment of a block.
    times_s = [0.137 * at for at in range(1, int(windows * WINDOW_S / 0.137) + 1)]
    samples = steady(WORKERS, block, WORKERS * SHARE / WINDOW_S, times_s, slow_ms=slow_ms)
    loads = [each[Stream.R] for each in samples]
    return {
        "slow_ms": slow_ms,
        "block": block,
        "window_s": WINDOW_S,
        "times_s": times_s,
        "loads": {f"w{at}": list(of_worker) for at, of_worker in enumerate(zip_longest(*loads))},
        "imbalance": [formulas.imbalance(each) for each in loads],
    }
