"""A task is one query over the pair of streams; its instance is what one worker keeps for it: two stores."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from simulate.handshake.messages import StreamTuple
from simulate.handshake.results import Results
from simulate.handshake.stores import STORES, Store
from simulate.handshake.windows import Window
from simulate.stream import Stream

Condition = Callable[[StreamTuple, StreamTuple], bool]


@dataclass(frozen=True, slots=True)
class Task:
    """One query.

    The main predicate is low <= s.key - r.key <= high, `None` is open: 0 and 0 is equality.

    Args:
        index: "scan", "bst" or "hash", the structure the main predicate is searched in.
        secondary: the other predicates, tested on the main one's candidates in the same pass.

    Raises:
        ValueError: a hash map cannot serve an inequality, or no structure has this name.
    """

    name: str
    low: int | None = 0
    high: int | None = 0
    index: str = "scan"
    secondary: tuple[Condition, ...] = ()

    def __post_init__(self) -> None:
        if self.index not in STORES:
            raise ValueError(f"no index is called {self.index!r}; there are {', '.join(STORES)}")
        if self.index == "hash" and (self.low is None or self.low != self.high):
            raise ValueError("a hash index serves equality only; take bst or scan for an inequality")

    def keys(self, probe: StreamTuple) -> tuple[int | None, int | None]:
        """The range of the opposite stream's keys that the main predicate allows."""
        low, high = (None if bound is None else bound for bound in (self.low, self.high))
        if probe.stream is Stream.S:
            low, high = (None if high is None else -high), (None if low is None else -low)
        return (None if low is None else probe.key + low), (None if high is None else probe.key + high)

    def matches(self, r: StreamTuple, s: StreamTuple) -> bool:
        """All predicates."""
        difference = s.key - r.key
        return (
            (self.low is None or self.low <= difference)
            and (self.high is None or difference <= self.high)
            and all(holds(r, s) for holds in self.secondary)
        )


class Instance:
    """(task, worker): the indexes of one task in one worker. The tuples are the worker's, shared by its instances."""

    def __init__(self, task: Task, window: Window, results: Results) -> None:
        self.task = task
        self.stores: dict[Stream, Store] = {stream: STORES[task.index]() for stream in Stream}
        self._window = window
        self._results = results

    def join(self, probe: StreamTuple, skip: Collection[StreamTuple] = ()) -> None:
        """Record the pairs of a tuple with what the opposite store has."""
        for r, s in self._pairs(probe, skip):
            if self.task.matches(r, s) and self._window.holds(r, s):
                self._results.add(self.task.name, r, s)

    def _pairs(self, probe: StreamTuple, skip: Collection[StreamTuple]) -> Iterator[tuple[StreamTuple, StreamTuple]]:
        found, comparisons = self.stores[probe.stream.opposite].candidates(*self.task.keys(probe))
        for candidate in found:
            if candidate in skip:
                continue
            comparisons += 1
            yield (probe, candidate) if probe.stream is Stream.R else (candidate, probe)
        self._results.comparisons[self.task.name] += comparisons
