"""What travels along the chain: the tuples of both streams, their punctuations, and MP-2PF's five messages.

R enters the chain at its left end and moves right, S enters at the right end and moves left.
"""

from __future__ import annotations

from dataclasses import dataclass

from simulate.stream import Stream

NEVER = -1
"""The mark before anything came."""
END = 1 << 62
"""The mark after the last tuple: the stream has ended."""


@dataclass(frozen=True, slots=True)
class StreamTuple:
    """One tuple.

    Args:
        number: its place in its stream, from 0: with `stream` its identity.
        key: of the main predicate.
        time: event time, us.
        opposite: tuples of the other stream that had come in before it, stamped at the intake (count windows).
        value: what a secondary predicate reads.
    """

    stream: Stream
    number: int
    key: int = 0
    time: int = 0
    opposite: int = 0
    value: int = 0


@dataclass(frozen=True, slots=True)
class Punctuation:
    """A mark in the content of a stream; the punctuations of both streams with the same number are a pair.

    Args:
        after: tuples of its stream that came before it.
    """

    stream: Stream
    number: int
    after: int = 0


Item = StreamTuple | Punctuation


@dataclass(frozen=True, slots=True)
class TupleMessage:
    """TUPLE: one tuple moves to the successor.

    Args:
        sequence: of the message among those of its stream on this link, from 1.
        mark: the newest mark of the stream that flows the way this message goes.
        opposite_received: the last message of the other stream that the sender had taken from the receiver when it
            first sent this one. It matters only to a message that is sent again after a crash.
    """

    stream: Stream
    sender: str
    sequence: int
    item: Item
    mark: int = NEVER
    opposite_received: int = 0

    @property
    def items(self) -> tuple[Item, ...]:
        """The one item, as a block has them."""
        return (self.item,)


@dataclass(frozen=True, slots=True)
class TupleBlock:
    """TUPLE_BLK: the oldest tuples, in their order; the other fields are those of `TupleMessage`."""

    stream: Stream
    sender: str
    sequence: int
    items: tuple[Item, ...]
    mark: int = NEVER
    opposite_received: int = 0


@dataclass(frozen=True, slots=True)
class Ack:
    """ACK: the tuple with this sequence has been joined and inserted."""

    stream: Stream
    sender: str
    sequence: int
    mark: int = NEVER


@dataclass(frozen=True, slots=True)
class AckBlock:
    """ACK_BLK: the whole block with this sequence has been joined and inserted."""

    stream: Stream
    sender: str
    sequence: int
    mark: int = NEVER


@dataclass(frozen=True, slots=True)
class SizeChange:
    """SIZE_CHG: to the predecessor of a stream, how many of its tuples are here.

    Args:
        sequence: the last message of the stream that `load` counts.
        load: stored tuples and unacknowledged copies.
    """

    stream: Stream
    sender: str
    sequence: int
    load: int
    mark: int = NEVER


Message = TupleMessage | TupleBlock | Ack | AckBlock | SizeChange


def direction(message: Message) -> Stream:
    """The stream that flows the way the message goes: tuples move along it, ACK and SIZE_CHG against it."""
    return message.stream if isinstance(message, TupleMessage | TupleBlock) else message.stream.opposite
