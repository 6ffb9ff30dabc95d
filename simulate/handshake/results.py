"""What the chain has put out, in the order in which it came; the workers write here and read nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from simulate.handshake.messages import Punctuation, StreamTuple
from simulate.stream import Stream


@dataclass(slots=True)
class Commit:
    """A snapshot's end: the pair of punctuations with this number, and how many results there were by then."""

    number: int
    results: int


@dataclass(slots=True)
class Results:
    """Results are collected append-only; snapshots end where a pair of punctuations was joined and has left.

    The meeting of two punctuations alone does not prove that every earlier pair is out: behind a slow link, an r that
    is ahead of its punctuation may still be on its way to an s that has gone past. When both punctuations have left
    the chain, all that was ahead of them has left it too.

    Args:
        pairs: (task, number of r, number of s).
        left: tuples of each stream that have left the chain.
        met: commits as they would be if the meeting were enough.
        commits: in order.
    """

    pairs: list[tuple[str, int, int]] = field(default_factory=list)
    comparisons: Counter[str] = field(default_factory=Counter)
    left: Counter[Stream] = field(default_factory=Counter)
    met: list[Commit] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    _out: dict[int, set[Stream]] = field(default_factory=dict)

    def add(self, task: str, r: StreamTuple, s: StreamTuple) -> None:
        """A pair was joined."""
        self.pairs.append((task, r.number, s.number))

    def meet(self, number: int) -> None:
        """A pair of punctuations was joined."""
        self.met.append(Commit(number, len(self.pairs)))

    def leave(self, item: StreamTuple | Punctuation) -> None:
        """An item left the chain at the far end of its stream."""
        if isinstance(item, StreamTuple):
            self.left[item.stream] += 1
            return
        out = self._out.setdefault(item.number, set())
        out.add(item.stream)
        if len(out) == len(Stream) and any(each.number == item.number for each in self.met):
            self.commits.append(Commit(item.number, len(self.pairs)))

    def processing_efficiency(self, task: str) -> float:
        """rho, outputs / comparisons (ESJ, first displayed equation); 0 before the first comparison."""
        outputs = sum(name == task for name, _, _ in self.pairs)
        return outputs / self.comparisons[task] if self.comparisons[task] else 0.0
