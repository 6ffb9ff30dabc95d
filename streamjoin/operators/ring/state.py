"""What a node keeps between two batches, as a view of its tables, by the numbers of the streams.

    l            tuples at rest
    l new        tuples that came with the last batch; in it, those of later streams alone have met them
    l to n       tuples on their way to node n, which takes them in during the next batch

A slice moves by the names of its files. In batch b the rounds after the first read version b + 1, which the first has
written: until the batch is over, a node answers for what it sends on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streamjoin.engine.state import Table, UnitState
from streamjoin.index.segment import SegmentInfo

Infos = tuple[SegmentInfo, ...]


@dataclass(frozen=True, slots=True)
class NodeState:
    """A node's own part of its state.

    Args:
        at_rest, new: by stream, oldest first.
        sent: by stream and node.
    """

    at_rest: Mapping[int, Infos] = field(default_factory=dict)
    new: Mapping[int, Infos] = field(default_factory=dict)
    sent: Mapping[tuple[int, int], Infos] = field(default_factory=dict)

    @staticmethod
    def of(state: UnitState) -> NodeState:
        """The view of a node's state."""
        at_rest: dict[int, Infos] = {}
        new: dict[int, Infos] = {}
        sent: dict[tuple[int, int], Infos] = {}
        for name, table in state.tables.items():
            stream, *what = name.split()
            if not what:
                at_rest[int(stream)] = table.segments
            elif what == ["new"]:
                new[int(stream)] = table.segments
            else:
                sent[int(stream), int(what[-1])] = table.segments
        return NodeState(at_rest, new, sent)

    @property
    def tables(self) -> dict[str, Table]:
        """The tables of the state that this is a view of."""
        named = [(f"{stream}", stream, infos) for stream, infos in self.at_rest.items()]
        named += [(f"{stream} new", stream, infos) for stream, infos in self.new.items()]
        named += [(f"{stream} to {node}", stream, infos) for (stream, node), infos in self.sent.items()]
        return {name: Table(stream, infos) for name, stream, infos in named if infos}

    def settled(self, stream: int) -> Infos:
        """What of a stream a node has at the beginning of the next batch, oldest first."""
        return (*self.at_rest.get(stream, ()), *self.new.get(stream, ()))

    def answered(self, stream: int, *, with_new: bool) -> Infos:
        """What of a stream a node answers for in the batch that made this state."""
        leaving = (info for (of, _), infos in self.sent.items() if of == stream for info in infos)
        return (*self.at_rest.get(stream, ()), *leaving, *(self.new.get(stream, ()) if with_new else ()))

    def sent_on(self, stream: int) -> int:
        """How many tuples of a stream are on their way."""
        return sum(info.rows for (of, _), infos in self.sent.items() if of == stream for info in infos)
