"""What goes wrong without each rule of the protocol: a worker that leaves it out, and what it loses or repeats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from simulate.handshake.blocks import BlockSize
from simulate.handshake.chain import Chain
from simulate.handshake.messages import Item, Message, StreamTuple, TupleBlock, TupleMessage
from simulate.handshake.windows import FullHistory, TimeWindow, Window
from simulate.handshake.worker import Worker
from simulate.network import Network, Shuffled
from simulate.stream import Stream
from tests.unit.simulate.handshake_runs import CROSS, found, history, oracle, play

pytestmark = pytest.mark.slow

SEEDS = 30


class NoCopiesAnswer(Worker):
    """A forwarded tuple is gone for every probe."""

    def answers(self, stream: Stream) -> bool:
        return False


class BothCopiesAnswer(Worker):
    """The copies of both streams answer."""

    def answers(self, stream: Stream) -> bool:
        return True


class ChannelPerStream(Worker):
    """Messages of R and of S may overtake each other on a link; nothing else puts them in order."""

    def post(self, receiver: str, message: Message, network: Network) -> None:
        network.send(f"{self.name}/{message.stream}", receiver, message)

    def probe(self, item: Item, skip: Sequence[Item] = ()) -> None:
        super().probe(item)


class AcknowledgesFirst(Worker):
    """Says that it has joined a tuple, and joins it when it comes round to it."""

    def receive(self, sender: str, message: Any, network: Network) -> None:
        if isinstance(message, TupleMessage | TupleBlock):
            super()._acknowledge(message, network)
            network.wake_at(self.name, network.now_us, message)
        else:
            super().receive(sender, message, network)

    def wake(self, tag: Any, network: Network) -> None:
        self.take([tag], network)

    def _acknowledge(self, message: TupleMessage | TupleBlock, network: Network) -> None:
        pass


class AcknowledgesBeforeInserting(Worker):
    """Joins a tuple and acknowledges it, and inserts it when it comes round to it."""

    def _insert(self, message: TupleMessage | TupleBlock) -> None:
        self.__dict__.setdefault("later", []).append(message)

    def settle(self, network: Network) -> None:
        super().settle(network)
        if self.__dict__.get("later"):
            network.wake_at(self.name, network.now_us)

    def wake(self, tag: Any, network: Network) -> None:
        later, self.__dict__["later"] = self.__dict__.get("later", []), []
        for message in later:
            super()._insert(message)
        self.settle(network)


def outcome(
    worker: type[Worker], window: Window | None = None, *, workers: int = 3, ratio: float | None = None
) -> Counter[str]:
    """In how many seeds there were losses, and duplicates."""
    seen: Counter[str] = Counter()
    for seed in range(SEEDS):
        rows = history(seed, 6, 6)
        chain = play(rows, seed, worker=worker, window=window, workers=workers, ratio=ratio, checked=False)
        expected, got = oracle(rows, window or FullHistory()), found(chain)
        seen["lost"] += bool(expected - got)
        seen["repeated"] += bool(got - expected)
        seen["wrong"] += got != expected
    return seen


def test_the_protocol_itself_is_right_on_the_same_seeds() -> None:
    assert outcome(Worker)["wrong"] == outcome(Worker, ratio=20.0)["wrong"] == 0


def test_no_visible_copies_lose_pairs() -> None:
    seen = outcome(NoCopiesAnswer)
    assert seen["lost"] == SEEDS and not seen["repeated"]


def test_both_streams_copies_repeat_pairs() -> None:
    seen = outcome(BothCopiesAnswer)
    assert seen["repeated"] == SEEDS and not seen["lost"]


def test_a_channel_per_stream_loses_and_repeats() -> None:
    seen = outcome(ChannelPerStream)
    assert seen["wrong"] > 0.9 * SEEDS and seen["lost"] and seen["repeated"]


def test_acknowledging_before_the_join_is_wrong() -> None:
    assert outcome(AcknowledgesFirst)["wrong"] > 0.9 * SEEDS


def test_acknowledging_before_inserting_is_wrong() -> None:
    assert outcome(AcknowledgesBeforeInserting)["lost"] > 0.5 * SEEDS


class LoadOfBoth(Worker):
    """Counts the tuples of both streams as its load."""

    def load(self, stream: Stream) -> int:
        return sum(super(LoadOfBoth, self).load(each) for each in Stream)

    def surplus(self, stream: Stream) -> int:
        return super().surplus(stream) + self.flows[stream.opposite].live


def ten_and_ten(worker: type[Worker]) -> Chain:
    """Ten R in the left one of two workers, ten S in the right one, and then they may move."""
    network = Network(Shuffled(1))
    chain = Chain(network, 2, [CROSS], worker=worker)
    chain.pause()
    for stream in Stream:
        chain.feed(stream, [StreamTuple(stream, number) for number in range(10)])
    network.run()
    assert chain.loads(Stream.R) == [10, 0] and chain.loads(Stream.S) == [0, 10]
    chain.resume()
    network.run()
    return chain


def test_a_load_over_both_streams_never_moves() -> None:
    assert len(ten_and_ten(LoadOfBoth).results.pairs) == 0
    chain = ten_and_ten(Worker)
    assert chain.loads(Stream.R) == chain.loads(Stream.S) == [5, 5]
    assert len(chain.results.pairs) == 75, "all but the five R and the five S that have not moved"


class DropsInPlace(Worker):
    """Lets a tuple go where it is when the other stream's mark passes its window."""

    def sweep(self, stream: Stream, network: Network) -> None:
        while count := self._leaving(self.flows[stream], stream):
            self.drop(stream, count)


@pytest.mark.parametrize("workers", [4, 8])
def test_dropping_in_place_loses_pairs(workers: int) -> None:
    window = TimeWindow(20, 20)
    seen = outcome(DropsInPlace, window, workers=workers)
    assert seen["lost"] > 0.9 * SEEDS and not seen["repeated"]
    assert not outcome(Worker, window, workers=workers)["wrong"]


class TestsArrivalsOnly(Worker):
    """Looks at the forwarding condition when a tuple arrives, and at no other time."""

    __test__ = False

    def take(self, messages: Sequence[Message], network: Network) -> None:
        self.__dict__["arrival"] = any(isinstance(each, TupleMessage | TupleBlock) for each in messages)
        super().take(messages, network)

    def balance(self, stream: Stream, network: Network) -> None:
        if self.__dict__.get("arrival"):
            super().balance(stream, network)


def burst(worker: type[Worker]) -> list[int]:
    network = Network(Shuffled(2))
    chain = Chain(network, 4, [], block=BlockSize(1), worker=worker)
    chain.intakes[Stream.R].block = BlockSize(40)
    chain.feed(Stream.R, [StreamTuple(Stream.R, number) for number in range(40)])
    network.run()
    return chain.loads(Stream.R)


def test_a_test_on_arrivals_only_stalls() -> None:
    even = burst(Worker)
    assert max(even) - min(even) <= 3 and sum(even) == 40
    assert burst(TestsArrivalsOnly)[0] >= 38
