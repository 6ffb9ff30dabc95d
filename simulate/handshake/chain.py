"""The chain: workers in a line, an intake at each end, and workers that come and go at barriers (ESJ, "Architecture").

Names and neighbours are all that the chain hands out. No message goes through it, and it decides nothing of the loads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simulate.handshake.blocks import BlockSize
from simulate.handshake.messages import (
    END,
    NEVER,
    Item,
    Message,
    SizeChange,
    StreamTuple,
    TupleBlock,
    TupleMessage,
)
from simulate.handshake.results import Results
from simulate.handshake.tasks import Task
from simulate.handshake.windows import FullHistory, Window
from simulate.handshake.worker import Worker
from simulate.network import Network
from simulate.stream import Stream


class Intake:
    """Where a stream comes in: the predecessor of the first worker of its way. It keeps no copies.

    Args:
        load: what the head last reported; the input of load shedding.
    """

    def __init__(self, stream: Stream, window: Window, block: BlockSize) -> None:
        self.name = f"in-{stream}"
        self.stream = stream
        self.head = ""
        self.block = block
        self.load = 0
        self.mark = NEVER
        self.sent = 0
        self.acknowledged = 0
        self._window = window

    def feed(self, items: Sequence[Item], network: Network) -> None:
        """Send items to the head, in messages of the chain's kind; the last block may be short."""
        size = self.block.tuples
        for start in range(0, len(items), size):
            part = tuple(items[start : start + size])
            for item in part:
                if isinstance(item, StreamTuple):
                    mark = self._window.mark(item)
                    if mark < self.mark:
                        raise ValueError(f"{item} comes after mark {self.mark}")
                    self.mark = mark
            self.sent += 1
            message: Message
            if self.block.one_by_one:
                message = TupleMessage(self.stream, self.name, self.sent, part[0], self.mark)
            else:
                message = TupleBlock(self.stream, self.name, self.sent, part, self.mark)
            network.send(self.name, self.head, message)

    def tell_mark(self, mark: int, network: Network) -> None:
        """Without a tuple: the stream has come this far. It goes the way SIZE_CHG of the other stream goes."""
        self.mark = max(self.mark, mark)
        network.send(self.name, self.head, SizeChange(self.stream.opposite, self.name, 0, 0, self.mark))

    def end(self, network: Network) -> None:
        """The stream has ended: what the chain has of the other one is swept out."""
        self.tell_mark(END, network)

    def receive(self, sender: str, message: Any, network: Network) -> None:
        """See `Actor`."""
        if isinstance(message, SizeChange):
            self.load = message.load
        else:
            self.acknowledged = max(self.acknowledged, message.sequence)

    def wake(self, tag: Any, network: Network) -> None:
        """See `Actor`: time has come for these items, or for a mark."""
        if isinstance(tag, int):
            self.tell_mark(tag, network)
        else:
            self.feed(tag, network)


class Chain:
    """Workers from left to right and the two intakes, in one network.

    Args:
        worker: the class of the workers.
    """

    def __init__(
        self,
        network: Network,
        workers: int,
        tasks: Sequence[Task],
        window: Window | None = None,
        block: BlockSize | None = None,
        threshold: int = 0,
        worker: type[Worker] = Worker,
    ) -> None:
        self.results = Results()
        self.network = network
        self._tasks = tuple(tasks)
        self._window = window or FullHistory()
        self._block = block or BlockSize()
        self._threshold = threshold
        self._worker = worker
        self._named = 0
        self.intakes = {stream: Intake(stream, self._window, self._block) for stream in Stream}
        self.workers = [self._new() for _ in range(workers)]
        for intake in self.intakes.values():
            network.add(intake)
        self._wire()
        for each in self.workers:
            for flow in each.flows.values():
                flow.successor_load, flow.told = 0, (0, 0, NEVER)

    def feed(self, stream: Stream, items: Sequence[Item]) -> None:
        """Put items into the channel to the stream's head."""
        self.intakes[stream].feed(items, self.network)

    def end(self) -> None:
        """Both streams end."""
        for intake in self.intakes.values():
            intake.end(self.network)

    def pause(self) -> None:
        """Begin a barrier: nobody forwards any more, so that the links run empty."""
        for worker in self.workers:
            worker.paused = True

    def resume(self) -> None:
        """End a barrier; a new head is told how far its stream has come."""
        for intake in self.intakes.values():
            if intake.mark != NEVER and not intake.sent:
                intake.tell_mark(intake.mark, self.network)
        for worker in self.workers:
            worker.paused = False
            worker.settle(self.network)

    def add(self, place: int) -> Worker:
        """A new worker at this place, 0 is the left end; it starts empty and the forwarding condition fills it.

        Raises:
            RuntimeError: there is no barrier.
        """
        self._check_barrier()
        worker = self._new()
        worker.paused = True
        self.workers.insert(place, worker)
        self._wire()
        return worker

    def remove(self, place: int) -> None:
        """A worker leaves; its right neighbour takes over what it has, the left one if it is the last.

        Raises:
            RuntimeError: there is no barrier, or it is the only worker.
        """
        self._check_barrier()
        if len(self.workers) == 1:
            raise RuntimeError("the last worker cannot be removed")
        gone = self.workers.pop(place)
        from_left = place < len(self.workers)
        heir = self.workers[place if from_left else place - 1]
        heir.absorb(gone, from_left=from_left)
        self._wire()

    def restart(self, worker: Worker) -> None:
        """A worker that crashed is back with the state it had; what was on its way to it is sent again."""
        self.network.add(worker)
        place = self.workers.index(worker)
        for neighbour in self.workers[max(place - 1, 0) : place] + self.workers[place + 1 : place + 2]:
            neighbour.resend(worker.name, self.network)
            worker.resend(neighbour.name, self.network)

    def loads(self, stream: Stream) -> list[int]:
        """Stored tuples of a stream, without copies, from left to right; for the one who looks on."""
        return [worker.flows[stream].live for worker in self.workers]

    def _new(self) -> Worker:
        name = f"w{self._named}"
        self._named += 1
        worker = self._worker(name, self._tasks, self._window, self.results, self._block, self._threshold)
        self.network.add(worker)
        return worker

    def _wire(self) -> None:
        """Tell every worker its neighbours, and each intake its head."""
        for stream in Stream:
            intake = self.intakes[stream]
            line = self.workers if stream is Stream.R else self.workers[::-1]
            if intake.head != line[0].name:
                intake.head, intake.sent = line[0].name, 0
            for before, worker, behind in zip([None, *line], line, [*line[1:], None], strict=False):
                worker.connect(stream, before.name if before else intake.name, behind.name if behind else None)

    def _check_barrier(self) -> None:
        if self.network.waiting() or not all(worker.paused for worker in self.workers):
            raise RuntimeError("workers come and go at a barrier: pause, and let the links run empty")
