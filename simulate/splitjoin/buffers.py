"""An actor with a buffer for each input, who waits while a buffer that it writes to is full.

The simulated channels have no bound. A bound of n is modelled by grants: a sender may have n messages in a channel
and its buffer together, and each message that the receiver takes out gives the right to send another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from simulate.network import Network
from simulate.splitjoin.messages import Closed, Grant, Message

Sending = list[tuple[str, Message]]
"""Messages to different receivers; each leaves as soon as its receiver has room."""

Step = int | Sending
"""What a piece of work does next: take so much time (us), or send."""


class Node:
    """Takes one message at a time, and the next one when all that the last one caused has been sent.

    Args:
        inputs, outputs: names of the actors that it reads from and writes to.
        buffer: messages that fit between two actors; None is without a bound.
    """

    def __init__(self, name: str, inputs: Sequence[str], outputs: Sequence[str], buffer: int | None = None) -> None:
        self.name = name
        self.outputs = list(outputs)
        self.queues: dict[str, deque[Message]] = {each: deque() for each in inputs}
        self.depth_max = 0
        """The most messages that stood in one of its buffers."""
        self.blocked_us = 0
        """How long it waited for room."""
        self._buffer = buffer
        self._room = dict.fromkeys(outputs, buffer or 0)
        self._work: Iterator[Step] = iter(())
        self._unsent: Sending = []
        self._unsent_since_us = 0
        self._busy = False

    def readable(self) -> str | None:
        """The input to read from; by default any that has a message."""
        return next((port for port, queue in self.queues.items() if queue), None)

    def take(self, port: str, message: Message, network: Network) -> Iterator[Step]:
        """What a message causes."""
        raise NotImplementedError

    def next_work(self, network: Network) -> Iterator[Step] | None:
        """What to do now; None if there is nothing."""
        port = self.readable()
        return None if port is None else self.take(port, self.pop(port, network), network)

    def pop(self, port: str, network: Network) -> Message:
        """Take the first message out of a buffer."""
        message = self.queues[port].popleft()
        if self._buffer is not None and not isinstance(message, Closed):
            network.send(self.name, port, Grant())
        return message

    def receive(self, sender: str, message: Any, network: Network) -> None:
        """See `Actor`."""
        if isinstance(message, Grant):
            self._room[sender] += 1
        elif sender in self.queues:
            self.queues[sender].append(message)
            self.depth_max = max(self.depth_max, len(self.queues[sender]))
        else:
            self.outputs.remove(sender)
        self.go_on(network)

    def wake(self, tag: Any, network: Network) -> None:
        """See `Actor`."""
        self._busy = False
        self.go_on(network)

    def go_on(self, network: Network) -> None:
        """Work until something is missing: time, room, or a message."""
        while not self._busy:
            self._send(network)
            if self._unsent:
                return
            step = next(self._work, None)
            if step is None:
                work = self.next_work(network)
                if work is None:
                    return
                self._work = work
            elif isinstance(step, int):
                if step > 0:
                    self._busy = True
                    network.wake_at(self.name, network.now_us + step)
            else:
                self._unsent, self._unsent_since_us = step, network.now_us

    def _send(self, network: Network) -> None:
        if not self._unsent:
            return
        self._unsent = [each for each in self._unsent if each[0] in self.outputs]
        waiting: Sending = []
        for receiver, message in self._unsent:
            if self._buffer is None or self._room[receiver] > 0:
                self._room[receiver] -= 1
                network.send(self.name, receiver, message)
            else:
                waiting.append((receiver, message))
        self._unsent = waiting
        if not waiting:
            self.blocked_us += network.now_us - self._unsent_since_us
