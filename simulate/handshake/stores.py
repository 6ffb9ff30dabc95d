"""The three structures a stream's tuples are searched in (ESJ, "Efficient theta-join processing").

One store serves one stream in one instance, that is in one worker for one task. What counts as a comparison: every
candidate handed out, and ceil(log2(n + 1)) for a search among n ordered keys, and 1 for a look-up by hash.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from typing import Protocol

from simulate.handshake.messages import StreamTuple


class Store(Protocol):
    """What the opposite stream's arrivals search."""

    def add(self, item: StreamTuple) -> None:
        """Take a tuple in."""

    def remove(self, item: StreamTuple) -> None:
        """Take a tuple out, and its key if that was the last of it."""

    def candidates(self, low: int | None, high: int | None) -> tuple[Iterable[StreamTuple], int]:
        """Tuples with low <= key <= high (`None` is open), and the comparisons it took before the candidates."""

    def __len__(self) -> int:
        """Tuples in it."""


class Scan:
    """FIFO: the baseline; every tuple is a candidate, so the predicate is tested on each."""

    def __init__(self) -> None:
        self._tuples: dict[int, StreamTuple] = {}

    def add(self, item: StreamTuple) -> None:
        """See `Store`."""
        self._tuples[item.number] = item

    def remove(self, item: StreamTuple) -> None:
        """See `Store`."""
        del self._tuples[item.number]

    def candidates(self, low: int | None, high: int | None) -> tuple[Iterable[StreamTuple], int]:
        """See `Store`."""
        return self._tuples.values(), 0

    def __len__(self) -> int:
        return len(self._tuples)


class OrderedMap:
    """Keys in order, each with all its tuples, for inequalities; a sorted list, which is a tree that is in balance."""

    def __init__(self) -> None:
        self.keys: list[int] = []
        self._tuples: dict[int, dict[int, StreamTuple]] = {}

    def add(self, item: StreamTuple) -> None:
        """See `Store`."""
        if item.key not in self._tuples:
            insort(self.keys, item.key)
            self._tuples[item.key] = {}
        self._tuples[item.key][item.number] = item

    def remove(self, item: StreamTuple) -> None:
        """See `Store`."""
        of_key = self._tuples[item.key]
        del of_key[item.number]
        if not of_key:
            del self._tuples[item.key]
            del self.keys[bisect_left(self.keys, item.key)]

    def candidates(self, low: int | None, high: int | None) -> tuple[Iterable[StreamTuple], int]:
        """See `Store`."""
        start = 0 if low is None else bisect_left(self.keys, low)
        stop = len(self.keys) if high is None else bisect_right(self.keys, high)
        found = (item for key in self.keys[start:stop] for item in self._tuples[key].values())
        return found, len(self.keys).bit_length()

    def __len__(self) -> int:
        return sum(map(len, self._tuples.values()))


class HashMap:
    """Each key with all its tuples, for equality."""

    def __init__(self) -> None:
        self._tuples: dict[int, dict[int, StreamTuple]] = {}

    def add(self, item: StreamTuple) -> None:
        """See `Store`."""
        self._tuples.setdefault(item.key, {})[item.number] = item

    def remove(self, item: StreamTuple) -> None:
        """See `Store`."""
        of_key = self._tuples[item.key]
        del of_key[item.number]
        if not of_key:
            del self._tuples[item.key]

    def candidates(self, low: int | None, high: int | None) -> tuple[Iterable[StreamTuple], int]:
        """See `Store`."""
        if low is None or low != high:
            raise ValueError("a hash map finds one key, not a range of keys")
        return self._tuples.get(low, {}).values(), 1

    @property
    def keys(self) -> list[int]:
        """The keys that have tuples."""
        return list(self._tuples)

    def __len__(self) -> int:
        return sum(map(len, self._tuples.values()))


STORES: dict[str, type[Scan] | type[OrderedMap] | type[HashMap]] = {"scan": Scan, "bst": OrderedMap, "hash": HashMap}
