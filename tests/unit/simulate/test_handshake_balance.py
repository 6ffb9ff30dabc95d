"""Loads even out by themselves; what blocks of a size cost in balance, beside what the formulas say."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from simulate.handshake.blocks import BlockSize
from simulate.handshake.chain import Chain
from simulate.handshake.messages import StreamTuple, TupleBlock
from simulate.handshake.windows import TimeWindow
from simulate.network import Earliest, Network, Shuffled
from simulate.stream import Stream
from streamjoin.operators.costs import handshake as costs
from tests.unit.simulate.handshake_runs import SIZES, found, history, oracle, play

pytestmark = pytest.mark.slow

SECOND = 1_000_000


def steady(
    workers: int,
    block: BlockSize,
    *,
    rates: tuple[int, int] = (20, 20),
    window_s: int = 10,
    slow: str | None = None,
    slow_us: int = 50_000,
) -> Iterator[dict[Stream, list[int]]]:
    """Loads of both streams, sampled at 50 times by chance in the third and fourth window.

    Args:
        rates: tuples a second of R and of S.
        slow: the worker whose links take `slow_us`; the others take 1 ms.
    """
    network = Network(
        Earliest(),
        delay_us=lambda sender, receiver, _: slow_us if slow in (sender, receiver) else 1_000,
        keep_log=False,
    )
    window_us = window_s * SECOND
    chain = Chain(network, workers, [], TimeWindow(window_us, window_us), block)
    last_us = 4 * window_us
    for stream, rate in zip(Stream, rates, strict=True):
        for number in range(rate * window_s * 4):
            at_us = number * SECOND // rate
            network.wake_at(f"in-{stream}", at_us, [StreamTuple(stream, number, time=at_us)])
        for at_us in range(0, last_us, window_us // 50):
            network.wake_at(f"in-{stream}", at_us, at_us)
    chance = random.Random(workers)
    for sample_us in sorted(chance.randrange(2 * window_us, last_us) for _ in range(50)):
        network.run(until=lambda at_us=sample_us: network.now_us >= at_us)  # type: ignore[misc]
        yield {stream: chain.loads(stream) for stream in Stream}


def mean_imbalance(samples: Iterator[dict[Stream, list[int]]]) -> dict[Stream, float]:
    """IF, averaged over the samples."""
    figures: dict[Stream, list[float]] = {stream: [] for stream in Stream}
    for loads in samples:
        for stream in Stream:
            figures[stream].append(costs.imbalance(loads[stream]))
    return {stream: sum(values) / len(values) for stream, values in figures.items()}


@pytest.mark.parametrize(
    ("slow", "slow_us", "size"), [(None, 0, 5), ("w0", 50_000, 1), ("w1", 50_000, 5), ("w1", 100_000, 5)]
)
def test_a_slow_worker_keeps_its_share(slow: str | None, slow_us: int, size: int) -> None:
    """20 a second for 10 s in 4 workers: a fair share is 50. On the slow links up to two tuples are under way."""
    for stream, figure in mean_imbalance(steady(4, BlockSize(size), slow=slow, slow_us=slow_us)).items():
        assert figure <= 0.10, (stream, figure)


def test_a_block_makes_up_for_a_slow_link() -> None:
    """A report is as old as the link is long: tuple by tuple, loads must differ by what comes in that time."""
    one, five = (mean_imbalance(steady(4, BlockSize(size), slow="w1", slow_us=100_000)) for size in (1, 5))
    assert one[Stream.R] > 0.12 and five[Stream.R] < one[Stream.R] / 1.5


def test_rates_of_ten_to_one_are_each_even() -> None:
    for stream, figure in mean_imbalance(steady(4, BlockSize(1), rates=(60, 6))).items():
        share = costs.fair_share(60 if stream is Stream.R else 6, 10, 4)
        assert figure <= 3 / share + 0.05, (stream, figure)


@pytest.mark.parametrize("workers", [3, 6, pytest.param(10, marks=pytest.mark.slow)])
def test_the_most_is_within_a_ramp_of_the_average(workers: int) -> None:
    """The rule compares neighbours, so loads may fall along the chain by a block a worker."""
    size = 10
    worst = 0.0
    for loads in steady(workers, BlockSize(size), rates=(10 * workers, 10 * workers), window_s=4):
        for of_stream in loads.values():
            worst = max(worst, max(of_stream) - sum(of_stream) / workers)
    assert worst <= (workers / 2 + 1) * size


@pytest.mark.parametrize(("size", "least"), [(100, 0), (50, 10), (25, 50), (12, 50)])
def test_a_block_without_a_cap_starves_workers(size: int, least: int) -> None:
    """The text's example at a tenth of its rate: a fair share is 50, the best block without the cap 100, with it 25.

    With 100 some worker is always empty, with 50 the head nearly is at times, with 25 nobody has less than half.
    """
    assert costs.best_block(20, 10, 4, 0.5, 1.0) == 100 and costs.block_size(20, 10, 4, 0.5, 1.0) == 25
    lowest = [min(loads[Stream.R]) for loads in steady(4, BlockSize(size))]
    if size == 100:
        assert max(lowest) == 0
    elif size == 50:
        assert min(lowest) < least
    else:
        assert min(lowest) >= least // 2


def test_a_burst_evens_out_after_the_input_has_stopped() -> None:
    for block in (BlockSize(1), BlockSize(5)):
        network = Network(Shuffled(4))
        chain = Chain(network, 5, [], block=block)
        chain.feed(Stream.R, [StreamTuple(Stream.R, number) for number in range(100)])
        network.run()
        loads = chain.loads(Stream.R)
        assert sum(loads) == 100 and max(loads) - 20 <= 3.5 * block.tuples, loads


def test_a_dynamic_block_takes_a_burst_at_once() -> None:
    def blocks(block: BlockSize) -> list[int]:
        network = Network(Earliest())
        chain = Chain(network, 2, [], block=block)
        chain.pause()
        chain.feed(Stream.R, [StreamTuple(Stream.R, number) for number in range(40)])
        network.run()
        chain.resume()
        network.run()
        return [
            len(each.message.items)
            for each in network.log
            if (each.sender, each.receiver) == ("w0", "w1") and isinstance(each.message, TupleBlock)
        ]

    assert blocks(BlockSize(4, dynamic=True)) == [40]
    assert blocks(BlockSize(4)) == [4] * 5


def test_every_size_finds_the_same_pairs() -> None:
    window = TimeWindow(30, 30)
    rows = history(31, 12, 12)
    for block in (*SIZES, BlockSize(1_000)):
        assert found(play(rows, 2, window=window, block=block)) == oracle(rows, window)


def test_a_block_stays_as_large_when_the_rate_changes() -> None:
    def sizes(pause_us: Callable[[int], int]) -> list[int]:
        network = Network(Earliest(), delay_us=lambda *_: 10)
        Chain(network, 3, [], block=BlockSize(4))
        at_us = 0
        for number in range(60):
            at_us += pause_us(number)
            network.wake_at("in-R", at_us, [StreamTuple(Stream.R, number)])
        network.run()
        return [len(message.items) for message in between(network)]

    def between(network: Network) -> list[Any]:
        return [
            each.message
            for each in network.log
            if each.sender[0] == each.receiver[0] == "w" and isinstance(each.message, TupleBlock)
        ]

    assert set(sizes(lambda number: 100)) == set(sizes(lambda number: 100 if number < 30 else 1)) == {4}


def test_block_sizes_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        BlockSize(0)
    with pytest.raises(ValueError, match="no block size"):
        BlockSize(2, one_by_one=True)
