"""MP-2PF message by message: states, copies, acknowledgements, load reports, and a worker that crashes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from simulate.handshake.blocks import ONE_BY_ONE, BlockSize
from simulate.handshake.chain import Chain
from simulate.handshake.messages import (
    END,
    Ack,
    AckBlock,
    Item,
    Message,
    SizeChange,
    StreamTuple,
    TupleBlock,
    TupleMessage,
)
from simulate.handshake.states import TRANSITIONS, Event, State, after
from simulate.handshake.windows import FullHistory, TimeWindow
from simulate.handshake.worker import Worker
from simulate.network import Earliest, Network, Shuffled
from simulate.stream import Stream
from tests.unit.simulate.handshake_runs import CROSS, check_empty, found, history, of, oracle, play, run

pytestmark = pytest.mark.slow

EXPECTED = {
    State.PROCESSING: {
        Event.TUPLE: State.PROCESSING,
        Event.SIZE_CHG: State.PROCESSING,
        Event.ACK: State.DELETING,
        Event.CONDITION_MET: State.FORWARDING,
    },
    State.FORWARDING: {Event.SENT: State.PROCESSING},
    State.DELETING: {Event.DELETED: State.PROCESSING},
}


class Unstamped(Worker):
    """Joins with every copy it has, also with those that met the tuple before it was first sent."""

    def probe(self, item: Item, skip: Sequence[Item] = ()) -> None:
        super().probe(item)


def numbered(stream: Stream, count: int) -> list[Item]:
    return [StreamTuple(stream, number) for number in range(count)]


def chain_of(workers: int, block: BlockSize = ONE_BY_ONE, worker: type[Worker] = Worker) -> Chain:
    return Chain(Network(Earliest()), workers, [CROSS], block=block, worker=worker)


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("event", Event)
def test_every_state_and_event(state: State, event: Event) -> None:
    if event in EXPECTED[state]:
        assert after(state, event) is TRANSITIONS[state, event] is EXPECTED[state][event]
    else:
        with pytest.raises(RuntimeError, match=f"{event.name} cannot happen in {state.name}"):
            after(state, event)


def test_messages_are_values() -> None:
    message = SizeChange(Stream.R, "w1", 1, 2)
    with pytest.raises(FrozenInstanceError):
        message.load = 3  # type: ignore[misc]


def three_unacknowledged() -> tuple[Chain, Worker]:
    """The first of two workers has sent three of six tuples on; no acknowledgement has come."""
    chain = chain_of(2)
    head = chain.workers[0]
    for number in range(6):
        head.receive("in-R", TupleMessage(Stream.R, "in-R", number + 1, StreamTuple(Stream.R, number)), chain.network)
    assert list(head.flows[Stream.R].copies) == [1, 2, 3]
    return chain, head


def sent_to(chain: Chain, receiver: str) -> list[Message]:
    """What is on its way to an actor."""
    channels = sorted(chain.network._channels.items())
    return [entry[3] for (_, to), channel in channels if to == receiver for entry in channel.queue]


def test_three_acknowledgements_are_one_visit_and_one_report() -> None:
    chain, head = three_unacknowledged()
    before, reports = head.visits[State.DELETING], len(sent_to(chain, "in-R"))
    head.paused = True
    head.take([Ack(Stream.R, "w1", number) for number in (1, 2, 3)], chain.network)
    assert head.visits[State.DELETING] == before + 1 and head.state is State.PROCESSING
    assert [type(each) for each in sent_to(chain, "in-R")[reports:]] == [SizeChange]
    assert not head.flows[Stream.R].copies


def test_an_acknowledgement_deletes_its_copy_and_no_other() -> None:
    chain, head = three_unacknowledged()
    head.paused = True
    load = head.load(Stream.R)
    head.take([Ack(Stream.R, "w1", 2)], chain.network)
    assert list(head.flows[Stream.R].copies) == [1, 3] and head.load(Stream.R) == load - 1
    reports = len(sent_to(chain, "in-R"))
    head.take([Ack(Stream.R, "w1", 2), Ack(Stream.R, "w1", 99)], chain.network)
    assert list(head.flows[Stream.R].copies) == [1, 3]
    assert len(sent_to(chain, "in-R")) == reports, "late and unknown ones change nothing and tell nothing"


def test_a_copy_whose_window_ends_in_flight_still_answers() -> None:
    network = Network(Earliest())
    chain = Chain(network, 2, [CROSS], TimeWindow(10, 10), ONE_BY_ONE)
    left, right = chain.workers
    right.receive("in-S", TupleMessage(Stream.S, "in-S", 1, StreamTuple(Stream.S, 0, time=0), 0), network)
    assert list(right.flows[Stream.S].copies) == [1]
    crossing = TupleMessage(Stream.R, "w0", 1, StreamTuple(Stream.R, 0, time=10), mark=11)
    right.receive("w0", crossing, network)
    assert chain.results.pairs == [("cross", 0, 0)]
    assert left.name == "w0"


def test_only_neighbours_talk_and_there_is_no_centre() -> None:
    chain = play(history(3, 8, 8), 3, workers=5)
    line = ["in-R", "w0", "w1", "w2", "w3", "w4", "in-S"]
    for each in chain.network.log:
        assert abs(line.index(each.sender) - line.index(each.receiver)) == 1
    for each in chain.network.log:
        step = line.index(each.receiver) - line.index(each.sender)
        way = 1 if each.message.stream is Stream.R else -1
        if isinstance(each.message, TupleMessage):
            assert step == way
        elif isinstance(each.message, Ack):
            assert step == -way


def test_a_change_of_r_is_told_to_the_left_only() -> None:
    chain = chain_of(3)
    middle = chain.workers[1]
    middle.paused = True
    middle.receive("w0", TupleMessage(Stream.R, "w0", 1, StreamTuple(Stream.R, 0)), chain.network)
    assert [type(each) for each in sent_to(chain, "w0")] == [Ack, SizeChange]
    assert sent_to(chain, "w2") == []


def test_an_idle_chain_sends_nothing() -> None:
    chain = play(history(5, 6, 6), end=False)
    count = len(chain.network.log)
    for worker in chain.workers:
        worker.settle(chain.network)
    assert chain.network.waiting() == 0 and len(chain.network.log) == count


def test_the_head_acknowledges_and_reports_to_the_intake() -> None:
    chain = play(history(5, 9, 6), end=False)
    intake = chain.intakes[Stream.R]
    assert intake.acknowledged == 9 and intake.load == chain.loads(Stream.R)[0] == 3
    assert not hasattr(intake, "copies")


def test_copies_are_what_is_sent_and_not_acknowledged() -> None:
    rows = history(9, 8, 8)
    network = Network(Shuffled(9))
    chain = Chain(network, 3, [CROSS], block=ONE_BY_ONE)
    for stream in Stream:
        chain.feed(stream, of(rows, stream))
    chain.end()
    most = 0
    while network.step():
        acknowledged = Counter(
            (each.receiver, each.message.stream) for each in network.log if isinstance(each.message, Ack)
        )
        for worker in chain.workers:
            for stream, flow in worker.flows.items():
                assert len(flow.copies) == flow.sent - acknowledged[worker.name, stream]
                most = max(most, len(flow.copies))
    assert most > 1, "several forwards were under way at once"
    check_empty(chain)


class Withholding(Worker):
    """Keeps back the acknowledgements it owes its right neighbour."""

    kept: list[tuple[str, Message]]

    def post(self, receiver: str, message: Message, network: Network) -> None:
        if self.name == "w0" and receiver == "w1" and isinstance(message, Ack | AckBlock):
            self.__dict__.setdefault("kept", []).append((receiver, message))
        else:
            super().post(receiver, message, network)


class WithholdingUnstamped(Withholding, Unstamped):
    """The same, and joins with every copy."""


def withheld(seed: int, worker: type[Worker]) -> tuple[Chain, list[Any]]:
    rows = history(seed, 6, 6)
    return play(rows, seed, worker=worker, checked=False), rows


def test_joining_goes_on_without_acknowledgements() -> None:
    for seed in range(50):
        chain, rows = withheld(seed, Withholding)
        assert found(chain) == oracle(rows, FullHistory())
        first, second = chain.workers[:2]
        assert len(second.flows[Stream.S].copies) == 6
        assert all(worker.state is State.PROCESSING for worker in chain.workers)
        assert isinstance(first, Withholding)
        for receiver, message in first.kept:
            chain.network.send(first.name, receiver, message)
        chain.network.run()
        check_empty(chain)


def test_without_the_stamp_late_acknowledgements_make_duplicates() -> None:
    wrong = 0
    for seed in range(20):
        chain, rows = withheld(seed, WithholdingUnstamped)
        wrong += found(chain) != oracle(rows, FullHistory())
    assert wrong > 15


def crashed(seed: int, worker: type[Worker], *, resend: bool = True) -> tuple[Chain, list[Any]]:
    """The middle worker crashes twice, and what was on its way to it is lost."""
    chance = random.Random(seed)
    rows = history(seed, 5, 5)
    network = Network(Shuffled(seed))
    chain = Chain(network, 3, [CROSS], block=ONE_BY_ONE, worker=worker)
    for stream in Stream:
        chain.feed(stream, of(rows, stream))
    chain.end()
    for _ in range(2):
        run(chain, rows, checked=False, steps=chance.randrange(20, 60))
        middle = chain.workers[1]
        network.crash(middle.name, lose_waiting=True)
        if resend:
            chain.restart(middle)
        else:
            network.add(middle)
    network.run()
    return chain, rows


@pytest.mark.parametrize("seeds", [50, pytest.param(2_000, marks=pytest.mark.slow)])
def test_a_crash_between_sending_and_acknowledgement_loses_nothing(seeds: int) -> None:
    for seed in range(seeds):
        chain, rows = crashed(seed, Worker)
        assert found(chain) == oracle(rows, FullHistory()), seed
        check_empty(chain)


def test_the_copies_are_what_makes_up_for_a_crash() -> None:
    lost = 0
    for seed in range(50):
        chain, rows = crashed(seed, Worker, resend=False)
        lost += bool(oracle(rows, FullHistory()) - found(chain))
    assert lost > 25


def test_without_the_stamp_a_crash_makes_duplicates() -> None:
    repeated = 0
    for seed in range(200):
        chain, rows = crashed(seed, Unstamped)
        repeated += bool(found(chain) - oracle(rows, FullHistory()))
    assert repeated > 0


def test_a_mark_reaches_every_worker_without_tuples() -> None:
    chain = chain_of(4)
    chain.intakes[Stream.S].end(chain.network)
    chain.network.run()
    assert all(worker.marks[Stream.S] == END for worker in chain.workers)
    assert {type(each.message) for each in chain.network.log} == {SizeChange}


def test_tuples_come_in_the_order_of_their_marks() -> None:
    chain = Chain(Network(Earliest()), 1, [CROSS], TimeWindow(1, 1))
    with pytest.raises(ValueError, match="comes after mark"):
        chain.feed(Stream.R, [StreamTuple(Stream.R, 0, time=5), StreamTuple(Stream.R, 1, time=4)])


def test_a_block_is_acknowledged_once() -> None:
    chain = chain_of(2, BlockSize(5))
    chain.feed(Stream.R, numbered(Stream.R, 10))
    chain.network.run()
    between = [each.message for each in chain.network.log if each.sender == "w1"]
    assert sum(isinstance(each, AckBlock) for each in between) == 1
    assert sum(isinstance(each.message, TupleBlock) for each in chain.network.log if each.receiver == "w1") == 1
