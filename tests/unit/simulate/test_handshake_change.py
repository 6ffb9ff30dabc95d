"""Workers that are added and removed, and punctuations that travel with the tuples."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from simulate.handshake.blocks import ONE_BY_ONE, BlockSize
from simulate.handshake.chain import Chain
from simulate.handshake.messages import Item, Punctuation, StreamTuple
from simulate.handshake.results import Results
from simulate.handshake.windows import FullHistory, TimeWindow, Window
from simulate.handshake.worker import Worker
from simulate.network import Earliest, Network, Shuffled
from simulate.stream import Stream
from tests.unit.simulate.handshake_runs import (
    CROSS,
    SIZES,
    WINDOWS,
    check_empty,
    found,
    history,
    of,
    oracle,
    run,
    speeds,
)
from tests.unit.simulate.seeds import told

pytestmark = pytest.mark.slow


class NoJoin(Worker):
    """Is merged without any join."""

    def join_across(self, left: Worker, right: Worker) -> None:
        pass


class Reinserts(Worker):
    """Takes the tuples of the one that is removed as if they had just come."""

    def join_across(self, left: Worker, right: Worker) -> None:
        gone = left if right is self else right
        for stream in Stream:
            for item in gone.flows[stream].stored:
                self.probe(item)


def barrier(chain: Chain, rows: Sequence[StreamTuple]) -> None:
    """Nobody forwards, the links run empty."""
    chain.pause()
    run(chain, rows)
    assert chain.network.waiting() == 0
    assert all(not flow.copies for worker in chain.workers for flow in worker.flows.values())


def changed(
    seed: int,
    changes: Sequence[str],
    window: Window,
    worker: type[Worker] = Worker,
    start: int = 3,
    end_first: bool = False,
) -> tuple[Chain, list[StreamTuple]]:
    """A history with a change of the chain between its parts; with `end_first` all changes are made while it drains."""
    chance = random.Random(seed)
    rows = history(seed, 8, 8)
    network = Network(Shuffled(seed))
    chain = Chain(network, start, [CROSS], window, SIZES[seed % len(SIZES)], worker=worker)
    parts = len(changes) + 1
    with told(seed, network):
        came: list[StreamTuple] = []
        for place in range(parts):
            part = rows if end_first else rows[len(rows) * place // parts : len(rows) * (place + 1) // parts]
            if not end_first or place == 0:
                came += part
                for stream in Stream:
                    chain.feed(stream, of(part, stream))
            if place == (0 if end_first else parts - 1):
                chain.end()
            if place < len(changes):
                run(chain, came, steps=chance.randrange(40))
                barrier(chain, came)
                if changes[place] == "add":
                    chain.add(chance.randrange(len(chain.workers) + 1))
                else:
                    chain.remove(chance.randrange(len(chain.workers)))
                chain.resume()
        run(chain, came)
        check_empty(chain)
    return chain, rows


CHANGES = [["add"], ["remove"], ["remove", "remove"], ["add", "remove", "remove", "add"], ["remove", "add", "add"]]


@pytest.mark.parametrize(
    "seeds", [8, pytest.param(100, marks=pytest.mark.slow), pytest.param(400, marks=pytest.mark.soak)]
)
@pytest.mark.parametrize("changes", CHANGES, ids=",".join)
def test_workers_come_and_go_exactly(changes: list[str], seeds: int) -> None:
    for seed in range(seeds):
        for end_first in (False, True):
            window = WINDOWS[seed % len(WINDOWS)]
            chain, rows = changed(seed, changes, window, end_first=end_first)
            assert found(chain) == oracle(rows, window), (seed, end_first)
            if isinstance(window, FullHistory):
                assert chain.results.comparisons["cross"] == 64, seed


def test_one_worker_grows_to_sixteen_and_back() -> None:
    changes = ["add"] * 15 + ["remove"] * 15
    chain, rows = changed(3, changes, FullHistory(), start=1)
    assert len(chain.workers) == 1
    assert found(chain) == oracle(rows, FullHistory())


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_a_new_worker_fills(place: int) -> None:
    network = Network(Earliest())
    chain = Chain(network, 3, [CROSS])
    rows = history(1, 48, 48)
    for stream in Stream:
        chain.feed(stream, of(rows, stream))
    network.run()
    chain.pause()
    pairs = len(chain.results.pairs)
    new = chain.add(place)
    assert new.load(Stream.R) == new.load(Stream.S) == 0 and len(chain.results.pairs) == pairs
    chain.resume()
    network.run()
    # Tuples move one way only: those behind the new worker can fill it, those ahead of it cannot.
    filled = {stream: chain.loads(stream)[place] for stream in Stream}
    assert (filled[Stream.R] > 0) is (place > 0) and (filled[Stream.S] > 0) is (place < 3)
    more = [StreamTuple(stream, 48 + number) for number in range(48) for stream in Stream]
    for stream in Stream:
        chain.feed(stream, of(more, stream))
    network.run()
    for stream in Stream:
        assert max(chain.loads(stream)) - min(chain.loads(stream)) <= 4, chain.loads(stream)


def removal(worker: type[Worker]) -> Counter[str]:
    seen: Counter[str] = Counter()
    for seed in range(20):
        chain, rows = changed(seed, ["remove"], FullHistory(), worker)
        expected, got = oracle(rows, FullHistory()), found(chain)
        seen["lost"] += bool(expected - got)
        seen["repeated"] += bool(got - expected)
    return seen


def test_a_removal_without_a_join_loses_pairs() -> None:
    seen = removal(NoJoin)
    assert seen["lost"] >= 8 and not seen["repeated"]


def test_a_removal_by_inserting_again_repeats_pairs() -> None:
    assert removal(Reinserts)["repeated"] >= 8


def test_a_change_needs_a_barrier() -> None:
    chain = Chain(Network(Earliest()), 2, [CROSS])
    with pytest.raises(RuntimeError, match="at a barrier"):
        chain.add(0)
    chain.pause()
    chain.feed(Stream.R, [StreamTuple(Stream.R, 0)])
    with pytest.raises(RuntimeError, match="at a barrier"):
        chain.remove(0)
    chain.network.run()
    chain.remove(0)
    with pytest.raises(RuntimeError, match="cannot be removed"):
        chain.remove(0)


def punctuated(rows: Sequence[StreamTuple], stream: Stream, every: int, count: int) -> list[Item]:
    """A stream with a punctuation after each `every` tuples, `count` at most."""
    items: list[Item] = []
    for row in of(rows, stream):
        items.append(row)
        assert isinstance(row, StreamTuple)
        if (row.number + 1) % every == 0 and row.number // every < count:
            items.append(Punctuation(stream, row.number // every, row.number + 1))
    return items


def committed(
    seed: int, *, workers: int = 4, counts: tuple[int, int] = (3, 3), ratio: float = 20.0
) -> tuple[Chain, Any]:
    """A run with punctuations, and the pairs that must be out before a pair of them is committed."""
    window = TimeWindow(25, 25)
    rows = history(seed, 9, 9)
    network = Network(Shuffled(seed, speeds(seed, workers, ratio)))
    chain = Chain(network, workers, [CROSS], window, (ONE_BY_ONE, BlockSize(2))[seed % 2])
    for stream, count in zip(Stream, counts, strict=True):
        chain.feed(stream, punctuated(rows, stream, 3, count))
    chain.end()
    with told(seed, network):
        run(chain, rows)
        check_empty(chain)
        assert found(chain) == oracle(rows, window)
    due = {
        number: {pair for pair in found(chain) if pair[1] < 3 * (number + 1) and pair[2] < 3 * (number + 1)}
        for number in range(3)
    }
    return chain, due


def complete(results: Results, number: int, collected: int, due: dict[int, set[Any]]) -> bool:
    return due[number] <= set(results.pairs[:collected])


@pytest.mark.parametrize(
    "seeds", [20, pytest.param(250, marks=pytest.mark.slow), pytest.param(1_000, marks=pytest.mark.soak)]
)
def test_a_commit_has_every_earlier_pair(seeds: int) -> None:
    for seed in range(seeds):
        chain, due = committed(seed)
        commits = chain.results.commits
        assert [commit.number for commit in commits] == [0, 1, 2]
        assert sorted(commit.number for commit in chain.results.met) == [0, 1, 2], "each pair is joined, and once"
        assert all(complete(chain.results, each.number, each.results, due) for each in commits), seed


def test_a_punctuation_that_has_left_is_found_by_its_pair() -> None:
    """The R before it are long past when the first S comes."""
    network = Network(Earliest())
    chain = Chain(network, 2, [CROSS], TimeWindow(10, 10), ONE_BY_ONE)
    chain.feed(Stream.R, [StreamTuple(Stream.R, 0, time=0), Punctuation(Stream.R, 0, 1)])
    chain.intakes[Stream.S].tell_mark(50, network)
    network.run()
    assert chain.results.left[Stream.R] == 1 and chain.results.met == []
    chain.feed(Stream.S, [StreamTuple(Stream.S, 0, time=60), Punctuation(Stream.S, 0, 1)])
    chain.end()
    network.run()
    assert [(commit.number, commit.results) for commit in chain.results.commits] == [(0, 0)]
    assert not any(worker.departed[stream] for worker in chain.workers for stream in Stream)


def test_the_meeting_of_two_punctuations_is_too_early() -> None:
    early = 0
    for seed in range(15):
        chain, due = committed(seed)
        early += not all(complete(chain.results, each.number, each.results, due) for each in chain.results.met)
    assert early > 0


def test_nothing_is_committed_without_a_pair() -> None:
    assert committed(1, counts=(3, 0))[0].results.commits == []
    assert [commit.number for commit in committed(1, counts=(3, 1))[0].results.commits] == [0]


def test_punctuations_are_no_load_and_keep_their_place() -> None:
    chain = Chain(Network(Earliest()), 1, [CROSS], block=BlockSize(4))
    items: list[Item] = [StreamTuple(Stream.R, 0), Punctuation(Stream.R, 0, 1), StreamTuple(Stream.R, 1)]
    chain.feed(Stream.R, items)
    chain.network.run()
    flow = chain.workers[0].flows[Stream.R]
    assert list(flow.stored) == items and flow.live == chain.workers[0].load(Stream.R) == 2
