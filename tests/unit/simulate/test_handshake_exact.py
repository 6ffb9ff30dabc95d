"""The chain finds every pair once: whatever the order of messages, the window, the blocks and the indexes."""

from __future__ import annotations

from collections import Counter

import pytest

from simulate.handshake.blocks import ONE_BY_ONE, BlockSize
from simulate.handshake.chain import Chain
from simulate.handshake.messages import END, Ack, AckBlock, StreamTuple, TupleBlock, TupleMessage
from simulate.handshake.stores import HashMap, OrderedMap, Scan
from simulate.handshake.tasks import Task
from simulate.handshake.windows import CountWindow, FullHistory, TimeWindow
from simulate.network import Chosen, Earliest, Network, Shuffled, every_run
from simulate.stream import Stream
from streamjoin.operators.costs.handshake import efficiency_hash, efficiency_naive
from tests.unit.simulate.handshake_runs import (
    CROSS,
    SIZES,
    WINDOWS,
    check_empty,
    every_state,
    found,
    history,
    of,
    oracle,
    play,
)

pytestmark = pytest.mark.slow


def one_seed(seed: int, ratio: float | None) -> None:
    rows = history(seed, r=3 + seed % 4, s=2 + seed % 5)
    window, block, workers = WINDOWS[seed % len(WINDOWS)], SIZES[seed // 5 % len(SIZES)], (2, 3, 4, 8)[seed // 25 % 4]
    chain = play(rows, seed, workers=workers, window=window, block=block, ratio=ratio)
    assert found(chain) == oracle(rows, window), (seed, chain.network.log)
    if isinstance(window, FullHistory):
        assert chain.results.comparisons["cross"] == len(of(rows, Stream.R)) * len(of(rows, Stream.S)), seed


@pytest.mark.parametrize("ratio", [None, 20.0])
def test_seeds_find_every_pair_once(ratio: float | None) -> None:
    for seed in range(50):
        one_seed(seed, ratio)


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.soak) for part in (1, 2, 3))])
@pytest.mark.parametrize("ratio", [None, 20.0])
def test_2000_seeds_find_every_pair_once(ratio: float | None, part: int) -> None:
    for seed in range(part, 2_000, 4):
        one_seed(seed, ratio)


def explore(workers: int, r: int, s: int, *, end: bool) -> int:
    """Check every state; how many there are. Without `end`, the end comes when the links are empty."""
    chain = Chain(Network(Chosen(), keep_log=False), workers, [CROSS], block=ONE_BY_ONE)
    for stream, count in ((Stream.R, r), (Stream.S, s)):
        chain.feed(stream, [StreamTuple(stream, number) for number in range(count)])
    if end:
        chain.end()
    states = lasts = 0
    for network, workers_now, last in every_state(chain):
        results = workers_now[0]._results
        assert len(results.pairs) == len(set(results.pairs)), results.pairs
        assert results.comparisons["cross"] == len(results.pairs)
        if last:
            lasts += 1
            assert network.waiting() == 0 and not any(flow.copies for w in workers_now for flow in w.flows.values())
            if not end:
                for stream in Stream:
                    network.actor(f"in-{stream}").end(network)  # type: ignore[attr-defined]
                network._scheduler = Earliest()
                network.run()
            assert Counter(results.pairs) == Counter({("cross", i, j): 1 for i in range(r) for j in range(s)})
        else:
            states += 1
    assert lasts > 0
    return states


def test_every_state_of_two_workers() -> None:
    assert explore(2, 1, 2, end=True) > 500


def test_every_state_of_three_workers_and_three_tuples_to_the_end() -> None:
    assert explore(3, 2, 1, end=True) > 14_000


@pytest.mark.soak
def test_every_state_of_three_workers_and_four_tuples_to_the_end() -> None:
    assert explore(3, 2, 2, end=True) > 30_000


@pytest.mark.soak
def test_every_state_of_three_workers_and_six_tuples() -> None:
    assert explore(3, 3, 3, end=False) > 1_000


def test_every_run_of_two_tuples() -> None:
    chains: list[Chain] = []

    def run_once(scheduler: Chosen) -> None:
        rows = [StreamTuple(Stream.R, 0), StreamTuple(Stream.S, 0)]
        chains.append(play(rows, scheduler=scheduler, workers=1, end=False))

    runs = sum(1 for _ in every_run(run_once))
    assert runs > 10
    assert all(found(chain) == Counter({("cross", 0, 0): 1}) for chain in chains)


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_the_length_of_the_chain_changes_no_pair(workers: int) -> None:
    rows = history(7, 8, 8)
    for window in WINDOWS:
        assert found(play(rows, 1, workers=workers, window=window, block=BlockSize(2))) == oracle(rows, window)


def test_both_modes_find_the_same_with_as_many_messages_as_hops() -> None:
    rows = [StreamTuple(Stream.R, number) for number in range(12)]
    counts = {}
    for name, block in (("tuple", ONE_BY_ONE), ("block", BlockSize(4))):
        chain = play(rows, 3, workers=4, block=block, tasks=())
        between = [each.message for each in chain.network.log if each.sender[0] == each.receiver[0] == "w"]
        counts[name] = Counter(type(message) for message in between)
    assert counts["tuple"][TupleMessage] == counts["tuple"][Ack] == 12 * 3
    assert counts["block"][TupleBlock] == counts["block"][AckBlock] >= 12 * 3 // 4
    assert not {TupleBlock, AckBlock} & set(counts["tuple"]) and not {TupleMessage, Ack} & set(counts["block"])


def test_block_messages_are_a_share_of_the_tuples() -> None:
    """All of it is swept through: a full block moves each time, the last may be short."""
    rows = [StreamTuple(Stream.R, number) for number in range(10)]
    for size in (1, 3, 10, 1000):
        chain = play(rows, workers=3, block=BlockSize(size), tasks=(), end=False)
        sent = [
            each.message.items
            for each in chain.network.log
            if each.sender[0] == each.receiver[0] == "w" and isinstance(each.message, TupleBlock)
        ]
        assert all(len(items) == size for items in sent)
        chain.pause()
        chain.network.log.clear()
        rest = chain.loads(Stream.R)
        chain.end()
        chain.resume()
        chain.network.run()
        assert sum(chain.loads(Stream.R)) == 0 and sum(rest) == 10, "a tail shorter than a block is not stuck"


@pytest.mark.parametrize("low_high", [(0, 0), (-1, 2), (None, 0), (1, None), (None, None)])
def test_the_three_structures_find_the_same(low_high: tuple[int | None, int | None]) -> None:
    rows = history(11, 12, 12, keys=5)
    kinds = ["scan", "bst", "hash"] if low_high == (0, 0) else ["scan", "bst"]
    tasks = [Task(kind, *low_high, index=kind) for kind in kinds]
    for window in WINDOWS:
        chain = play(rows, 5, workers=3, window=window, tasks=tasks, block=BlockSize(2))
        expected: Counter[tuple[str, int, int]] = Counter()
        for task in tasks:
            expected += oracle(rows, window, task)
        assert found(chain) == expected
        if isinstance(window, FullHistory):
            assert chain.results.comparisons["scan"] == 144


def test_an_inequality_is_refused_on_a_hash_map() -> None:
    with pytest.raises(ValueError, match="equality only"):
        Task("q", 0, 1, index="hash")
    with pytest.raises(ValueError, match="one key"):
        HashMap().candidates(0, 1)
    with pytest.raises(ValueError, match="no index"):
        Task("q", index="heap")


def test_a_key_has_all_its_tuples() -> None:
    for store in (Scan(), OrderedMap(), HashMap()):
        items = [StreamTuple(Stream.R, number, key=7) for number in range(1_000)]
        for item in items:
            store.add(item)
        found_now, before = store.candidates(7, 7)
        assert len(list(found_now)) == 1_000 and before <= 1
        for item in items:
            store.remove(item)
        assert len(store) == 0 and not getattr(store, "keys", ())


def test_ascending_keys_cost_a_logarithm() -> None:
    store = OrderedMap()
    for number in range(20_000):
        store.add(StreamTuple(Stream.R, number, key=number))
    assert store.candidates(5, 5)[1] == 15
    assert [item.key for item in store.candidates(None, 2)[0]] == [0, 1, 2]
    assert [item.key for item in store.candidates(19_998, None)[0]] == [19_998, 19_999]


def test_secondary_predicates_are_tested_in_the_same_pass() -> None:
    rows = history(13, 10, 10, keys=3)
    plain = Task("q", index="hash")
    both = Task("q", index="hash", secondary=(lambda r, s: r.number % 2 == 0, lambda r, s: s.number > 2))
    chains = [play(rows, 2, tasks=[task]) for task in (plain, both)]
    assert chains[0].results.comparisons == chains[1].results.comparisons
    expected = {pair: 1 for pair in oracle(rows, FullHistory(), plain) if pair[1] % 2 == 0 and pair[2] > 2}
    assert found(chains[1]) == expected


def test_tasks_share_the_tuples_and_the_messages() -> None:
    rows = history(17, 10, 10)
    tasks = [Task("a"), Task("b", -1, 1, "bst"), Task("c", index="hash"), CROSS]
    one, four = play(rows, 4, tasks=tasks[:1]), play(rows, 4, tasks=tasks)
    assert one.network.log == four.network.log
    assert all(len(worker.instances) == 4 for worker in four.workers)
    for task in tasks:
        of_task = Counter(pair for pair in four.results.pairs if pair[0] == task.name)
        assert of_task == oracle(rows, FullHistory(), task)


def test_efficiency_is_outputs_over_comparisons() -> None:
    rows = history(19, 10, 10, keys=1)
    chain = play(rows, workers=1, tasks=[Task("scan"), Task("hash", index="hash")])
    assert chain.results.processing_efficiency("scan") == efficiency_naive(10, 10, 100) == 1.0
    assert chain.results.processing_efficiency("hash") == efficiency_hash(10, 10, 100) == 100 / 120
    assert Chain(Network(Chosen()), 1, []).results.processing_efficiency("scan") == 0.0


def test_pairs_of_a_count_window_may_meet_late() -> None:
    """A hundred tuples come between the pair and its meeting; what counts is the stamps."""
    rows = history(23, 60, 60)
    window = CountWindow(5)
    chain = play(rows, 6, workers=5, window=window, ratio=20.0, checked=False)
    assert found(chain) == oracle(rows, window)


@pytest.mark.parametrize("ends", [True, False])
def test_a_pair_at_rest_in_different_workers_is_found(ends: bool) -> None:
    """By the end of the streams, or, where the sources are silent, by marks alone."""
    window = TimeWindow(10, 10)
    network = Network(Shuffled(1))
    chain = Chain(network, 8, [CROSS], window, BlockSize(2))
    for stream in Stream:
        chain.feed(stream, [StreamTuple(stream, 0, time=5)])
    network.run()
    assert not chain.results.pairs and chain.loads(Stream.R) == chain.loads(Stream.S)[::-1] == [1, 0, 0, 0, 0, 0, 0, 0]
    for intake in chain.intakes.values():
        intake.tell_mark(END if ends else 16, network)
    network.run()
    assert chain.results.pairs == [("cross", 0, 0)]
    check_empty(chain)
