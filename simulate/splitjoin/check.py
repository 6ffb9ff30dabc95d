"""What a run must have kept, each check as a list of complaints that is empty if it did. None asks the actors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from simulate.network import Delivery
from simulate.splitjoin.messages import Arrival, Message, Result, Star
from simulate.stream import Stream

Pair = tuple[int, int]


def exactly_once(pairs: Iterable[Pair], expected: Iterable[Pair]) -> list[str]:
    """Against the oracle's pairs, as multisets."""
    got, wanted = Counter(pairs), Counter(expected)
    lost = [f"{pair} is missing" for pair in sorted((wanted - got).elements())]
    return lost + [f"{pair} is too much" for pair in sorted((got - wanted).elements())]


def outer_order(output: Sequence[Message], tuples_per_star: int = 1) -> list[str]:
    """Results of one origin come in the order of its tuples, or of groups of so many tuples."""
    return [
        f"{stream}{before.newer.number} before {stream}{after.newer.number}"
        for stream in Stream
        for before, after in pairwise(_of(output, stream))
        if before.newer.number // tuples_per_star > after.newer.number // tuples_per_star
    ]


def inner_order(output: Sequence[Message], rows_per_group: int = 1) -> list[str]:
    """Within one tuple's results the partners' age falls, or that of groups of `rows_per_group` ranks does not rise."""
    return [
        f"{stream}{before.newer.number}: partner {before.older.number} before {after.older.number}"
        for stream in Stream
        for before, after in pairwise(_of(output, stream))
        if before.newer.number == after.newer.number
        and (
            before.older.number >= after.older.number
            if rows_per_group == 1
            else before.older.number // rows_per_group > after.older.number // rows_per_group
        )
    ]


def total_order(output: Sequence[Message]) -> list[str]:
    """All results by the newer tuple's position, then by the older one's."""
    results = [message for message in output if isinstance(message, Result)]
    return [
        f"{before.pair} before {after.pair}"
        for before, after in pairwise(results)
        if (before.newer.position, before.older.position) >= (after.newer.position, after.older.position)
    ]


def stars_divide(output: Sequence[Message], processed: dict[Stream, int], tuples_per_star: int = 1) -> list[str]:
    """What stands between an origin's stars belongs to the tuple (or group) in between, and no star is missing."""
    complaints = []
    for stream in Stream:
        group = 0
        for message in output:
            if isinstance(message, Star) and message.flag is stream and message.last:
                group += 1
            elif isinstance(message, Result) and message.newer.stream is stream:
                number = message.newer.number
                if number // tuples_per_star != group:
                    complaints.append(f"a result of {stream}{number} stands in group {group}")
        if group != -(-processed[stream] // tuples_per_star):
            complaints.append(f"{group} stars for {processed[stream]} tuples of {stream}")
    return complaints


def same_sequence(log: Iterable[Delivery], regions: Iterable[str]) -> list[str]:
    """Every region was handed the same tuples in the same order."""
    seen: dict[str, list[int]] = {name: [] for name in regions}
    for delivery in log:
        if delivery.receiver in seen and isinstance(delivery.message, Arrival):
            seen[delivery.receiver].append(delivery.message.position)
    first_name, first = next(iter(seen.items()))
    return [f"{name} was not handed what {first_name} was" for name, each in seen.items() if each != first]


def _of(output: Sequence[Message], stream: Stream) -> list[Result]:
    return [message for message in output if isinstance(message, Result) and message.newer.stream is stream]
