"""One worker of the chain under MP-2PF (ESJ, "Message passing").

A tuple that arrives is joined with what the worker has of the other stream, inserted, acknowledged, and then the
forwarding condition is tested. A forwarded tuple stays behind as a copy until its acknowledgement. Of two tuples that
cross in the links, the copy of the s answers the r, and the copy of the r answers nothing: so they meet, and once.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from simulate.handshake.blocks import BlockSize
from simulate.handshake.messages import (
    END,
    NEVER,
    Ack,
    AckBlock,
    Item,
    Message,
    Punctuation,
    SizeChange,
    StreamTuple,
    TupleBlock,
    TupleMessage,
    direction,
)
from simulate.handshake.results import Results
from simulate.handshake.states import Event, State, after
from simulate.handshake.tasks import Instance, Task
from simulate.handshake.windows import Window
from simulate.network import Network
from simulate.stream import Stream


@dataclass(frozen=True, slots=True)
class Copy:
    """What stays behind of a message until it is acknowledged; `opposite_received` as in `TupleMessage`."""

    items: tuple[Item, ...]
    opposite_received: int


@dataclass(slots=True)
class Flow:
    """One stream in one worker, and its links to the predecessor and the successor of this stream.

    Args:
        successor: `None` at the far end.
        stored: oldest first; what can still be sent.
        live: tuples in `stored`.
        copies: forwarded and not acknowledged, by sequence.
        sent, received: last sequence to the successor, and from the predecessor.
        successor_load: as last reported; `None` before the first report of a new neighbour.
        unreported: tuples in messages that this report does not count, by sequence.
        told: (sequence, load, mark) of the last report to the predecessor.
    """

    predecessor: str = ""
    successor: str | None = None
    stored: deque[Item] = field(default_factory=deque)
    live: int = 0
    copies: dict[int, Copy] = field(default_factory=dict)
    sent: int = 0
    received: int = 0
    successor_load: int | None = 0
    unreported: dict[int, int] = field(default_factory=dict)
    told: tuple[int, int, int] | None = (0, 0, NEVER)

    @property
    def copied(self) -> int:
        """Tuples in `copies`."""
        return sum(tuples_in(copy.items) for copy in self.copies.values())

    def push(self, items: Sequence[Item]) -> None:
        """Store items behind the others."""
        self.stored.extend(items)
        self.live += tuples_in(items)

    def pop(self, count: int) -> tuple[Item, ...]:
        """The oldest items, which are stored no more."""
        items = tuple(self.stored.popleft() for _ in range(count))
        self.live -= tuples_in(items)
        return items


def tuples_in(items: Sequence[Item]) -> int:
    """How many are tuples; punctuations are no load."""
    return sum(isinstance(item, StreamTuple) for item in items)


class Worker:
    """A place in the chain that holds one share of R and one of S, and an instance of every task.

    Args:
        threshold: the forwarding condition: own load exceeds the successor's by more than this many tuples.
    """

    def __init__(
        self, name: str, tasks: Sequence[Task], window: Window, results: Results, block: BlockSize, threshold: int = 0
    ) -> None:
        self.name = name
        self.state = State.PROCESSING
        self.visits: Counter[State] = Counter()
        self.flows = {stream: Flow() for stream in Stream}
        self.marks = dict.fromkeys(Stream, NEVER)
        self.instances = [Instance(task, window, results) for task in tasks]
        self.punctuations: dict[Stream, set[int]] = {stream: set() for stream in Stream}
        self.departed: dict[Stream, set[int]] = {stream: set() for stream in Stream}
        self.last_punctuation = dict.fromkeys(Stream, -1)
        self.block = block
        self.paused = False
        self._window = window
        self._results = results
        self._threshold = threshold

    def receive(self, sender: str, message: Any, network: Network) -> None:
        """See `Actor`."""
        self.take([message], network)

    def wake(self, tag: Any, network: Network) -> None:
        """See `Actor`; a worker asks for no time."""

    def take(self, messages: Sequence[Message], network: Network) -> None:
        """Handle what was found together: acknowledgements next to each other are one visit to Deleting."""
        acknowledged: list[Ack | AckBlock] = []
        for message in messages:
            self._note_mark(direction(message), message.mark)
            if isinstance(message, Ack | AckBlock):
                acknowledged.append(message)
                continue
            self._delete(acknowledged)
            acknowledged = []
            if isinstance(message, SizeChange):
                self._note_load(message)
            else:
                self.process(message, network)
        self._delete(acknowledged)
        self.settle(network)

    def process(self, message: TupleMessage | TupleBlock, network: Network) -> None:
        """Join all of it, insert it, acknowledge it. What was taken before is only acknowledged again."""
        self._go(Event.TUPLE)
        flow = self.flows[message.stream]
        if message.sequence > flow.received:
            flow.received = message.sequence
            self._join(message)
            self._insert(message)
        self._acknowledge(message, network)

    def settle(self, network: Network) -> None:
        """What follows every event: sweep what leaves, test the forwarding condition, report what changed."""
        if not self.paused:
            for stream in Stream:
                self.sweep(stream, network)
                self.balance(stream, network)
        for stream in Stream:
            self._report(stream, network)

    def load(self, stream: Stream) -> int:
        """What is reported: stored tuples and unacknowledged copies of this stream."""
        return self.flows[stream].live + self.flows[stream].copied

    def surplus(self, stream: Stream) -> int:
        """Tuples that can still be sent, less the successor's: its last report and what that does not count yet."""
        flow = self.flows[stream]
        assert flow.successor_load is not None
        return flow.live - flow.successor_load - sum(flow.unreported.values())

    def answers(self, stream: Stream) -> bool:
        """Whether this stream's copies answer probes (two-phase forwarding; the text does not say which do)."""
        return stream is Stream.S

    def balance(self, stream: Stream, network: Network) -> None:
        """The forwarding condition: one full block goes if own load exceeds the successor's."""
        flow = self.flows[stream]
        if flow.successor is None or flow.successor_load is None:
            return
        surplus = self.surplus(stream)
        size = self.block.of(surplus)
        if surplus > self._threshold and flow.live >= size:
            self.forward(stream, self._oldest(flow, size), network)

    def sweep(self, stream: Stream, network: Network) -> None:
        """Send on what can meet nothing that is still to come, whatever the loads; at the far end it leaves.

        It is joined on its way with all that is still ahead of it. A punctuation with nothing ahead of it goes too.
        """
        flow = self.flows[stream]
        while count := self._leaving(flow, stream):
            if flow.successor is None:
                self.drop(stream, count)
            else:
                self.forward(stream, count, network)

    def forward(self, stream: Stream, count: int, network: Network) -> None:
        """The state Forwarding: the oldest items go to the successor, a copy stays."""
        self._go(Event.CONDITION_MET)
        flow = self.flows[stream]
        items = flow.pop(count)
        flow.sent += 1
        flow.copies[flow.sent] = Copy(items, self.flows[stream.opposite].received)
        flow.unreported[flow.sent] = tuples_in(items)
        if not self.answers(stream):
            self.hide(items)
        self._send_copy(stream, flow.sent, network)
        self._go(Event.SENT)

    def drop(self, stream: Stream, count: int) -> None:
        """The oldest items leave the chain.

        A punctuation can leave before the other of its pair has come in; that one comes in here, and is to find it.
        """
        items = self.flows[stream].pop(count)
        self.hide(items)
        for item in items:
            if isinstance(item, Punctuation) and item.number > self.last_punctuation[stream.opposite]:
                self.departed[stream].add(item.number)
            self._results.leave(item)

    def show(self, items: Sequence[Item]) -> None:
        """Let the other stream's probes find these."""
        for item in items:
            if isinstance(item, Punctuation):
                self.punctuations[item.stream].add(item.number)
            else:
                for instance in self.instances:
                    instance.stores[item.stream].add(item)

    def hide(self, items: Sequence[Item]) -> None:
        """Take them out of the indexes."""
        for item in items:
            if isinstance(item, Punctuation):
                self.punctuations[item.stream].discard(item.number)
            else:
                for instance in self.instances:
                    instance.stores[item.stream].remove(item)

    def probe(self, item: Item, skip: Sequence[Item] = ()) -> None:
        """Join one item with what is shown of the other stream."""
        if isinstance(item, Punctuation):
            departed = self.departed[item.stream.opposite]
            if item.number in self.punctuations[item.stream.opposite] | departed:
                self._results.meet(item.number)
            departed.discard(item.number)
            self.last_punctuation[item.stream] = item.number
            return
        others = [other for other in skip if isinstance(other, StreamTuple)]
        for instance in self.instances:
            instance.join(item, others)

    def connect(self, stream: Stream, predecessor: str, successor: str | None) -> None:
        """Be told the neighbours of a stream, at a barrier. A link to a new neighbour starts from nothing."""
        flow = self.flows[stream]
        if flow.predecessor != predecessor:
            flow.predecessor, flow.received, flow.told = predecessor, 0, None
        if flow.successor != successor:
            flow.successor, flow.sent, flow.successor_load = successor, 0, None
            flow.unreported.clear()

    def resend(self, neighbour: str, network: Network) -> None:
        """The neighbour is back after a crash: send it again what it has not acknowledged, and the load."""
        for stream, flow in self.flows.items():
            if flow.successor == neighbour:
                for sequence in flow.copies:
                    self._send_copy(stream, sequence, network)
            if flow.predecessor == neighbour:
                flow.told = None
                self._report(stream, network)

    def absorb(self, other: Worker, *, from_left: bool) -> None:
        """Take over a neighbour that is removed, at a barrier.

        The R of the left one and the S of the right one are all that have not met: of every other pair the two have
        been in one worker, or have crossed.
        """
        left, right = (other, self) if from_left else (self, other)
        self.join_across(left, right)
        for stream, behind in ((Stream.R, left), (Stream.S, right)):
            ahead = right if behind is left else left
            items = (*ahead.flows[stream].stored, *behind.flows[stream].stored)
            self.show(other.flows[stream].stored)
            flow = self.flows[stream]
            flow.stored.clear()
            flow.live = 0
            flow.push(items)
            self.departed[stream] |= other.departed[stream]
            self.last_punctuation[stream] = max(self.last_punctuation[stream], other.last_punctuation[stream])
            self._note_mark(stream, other.marks[stream])

    def join_across(self, left: Worker, right: Worker) -> None:
        """The join that the removal of one of two neighbours needs: R of the left with S of the right."""
        for item in left.flows[Stream.R].stored:
            right.probe(item)

    def _go(self, event: Event) -> None:
        self.state = after(self.state, event)
        if event not in (Event.SENT, Event.DELETED):
            self.visits[self.state] += 1

    def _join(self, message: TupleMessage | TupleBlock) -> None:
        """With all that is shown; copies that the sender had taken before it first sent this have met it there."""
        opposite = self.flows[message.stream.opposite]
        met = [
            item
            for sequence, copy in opposite.copies.items()
            if sequence <= message.opposite_received
            for item in copy.items
        ]
        for item in message.items:
            self.probe(item, met)

    def _insert(self, message: TupleMessage | TupleBlock) -> None:
        self.flows[message.stream].push(message.items)
        self.show(message.items)

    def _acknowledge(self, message: TupleMessage | TupleBlock, network: Network) -> None:
        kind = Ack if isinstance(message, TupleMessage) else AckBlock
        self.post(
            message.sender,
            kind(message.stream, self.name, message.sequence, self.marks[message.stream.opposite]),
            network,
        )

    def _delete(self, acknowledged: Sequence[Ack | AckBlock]) -> None:
        """The state Deleting: exactly the acknowledged copies go; an acknowledgement that is not known changes nothing.

        The new load is told to the predecessor with the report that ends the event.
        """
        if not acknowledged:
            return
        self._go(Event.ACK)
        for message in acknowledged:
            copy = self.flows[message.stream].copies.pop(message.sequence, None)
            if copy is not None and self.answers(message.stream):
                self.hide(copy.items)
        self._go(Event.DELETED)

    def _note_load(self, message: SizeChange) -> None:
        self._go(Event.SIZE_CHG)
        flow = self.flows[message.stream]
        flow.successor_load = message.load
        flow.unreported = {number: size for number, size in flow.unreported.items() if number > message.sequence}

    def _note_mark(self, stream: Stream, mark: int) -> None:
        self.marks[stream] = max(self.marks[stream], mark)

    def _report(self, stream: Stream, network: Network) -> None:
        flow = self.flows[stream]
        state = (flow.received, self.load(stream), self.marks[stream.opposite])
        if state != flow.told:
            flow.told = state
            self.post(flow.predecessor, SizeChange(stream, self.name, *state), network)

    def _send_copy(self, stream: Stream, sequence: int, network: Network) -> None:
        flow = self.flows[stream]
        assert flow.successor is not None
        copy = flow.copies[sequence]
        mark = self.marks[stream]
        message: Message
        if self.block.one_by_one:
            message = TupleMessage(stream, self.name, sequence, copy.items[0], mark, copy.opposite_received)
        else:
            message = TupleBlock(stream, self.name, sequence, copy.items, mark, copy.opposite_received)
        self.post(flow.successor, message, network)

    def post(self, receiver: str, message: Message, network: Network) -> None:
        """Send to a neighbour, in the one channel there is to it."""
        network.send(self.name, receiver, message)

    def _oldest(self, flow: Flow, size: int) -> int:
        """How many items the oldest `size` tuples are, with the punctuations among them and just behind them."""
        if self.block.one_by_one:
            return 1
        tuples = 0
        for count, item in enumerate(flow.stored):
            if isinstance(item, StreamTuple):
                if tuples == size:
                    return count
                tuples += 1
        return len(flow.stored)

    def _leaving(self, flow: Flow, stream: Stream) -> int:
        """How many of the items at the front leave, up to a block of them."""
        mark = self.marks[stream.opposite]
        count = tuples = 0
        for item in islice(flow.stored, None if not self.block.one_by_one else 1):
            if isinstance(item, StreamTuple):
                if tuples == self.block.tuples or not (mark == END or self._window.passed(item, mark)):
                    break
                tuples += 1
            count += 1
        return count
