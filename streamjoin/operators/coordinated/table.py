"""The routing table of CTR: which hosts have each segment of each stream, and how much (PSP, sections 7 and 8.1).

The table of batch b is what the states of version b say, all nodes together: the tables of a node are named by stream
and segment. So it names a segment from the batch after the one that brought it, with all hosts that have it, and
forgets it with its last tuple. Whoever looks, router or node, in this attempt of the batch or another, finds the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from streamjoin.engine.state import Table, UnitState
from streamjoin.index.segment import SegmentInfo

Infos = tuple[SegmentInfo, ...]
Key = tuple[int, int]
"""A stream, and the number of a segment of it."""
_NEW = "new"


@dataclass(frozen=True, slots=True)
class HostState:
    """A node's part of its state: by stream and segment, what it had before the last batch, and what that brought."""

    at_rest: Mapping[Key, Infos] = field(default_factory=dict)
    new: Mapping[Key, Infos] = field(default_factory=dict)

    @staticmethod
    def of(state: UnitState) -> HostState:
        """The view of a node's state; its tables are called such as `0 segment 12` and `0 segment 12 new`."""
        found = HostState({}, {})
        for name, table in state.tables.items():
            stream, _, number, *new = name.split()
            whose = found.new if new else found.at_rest
            assert isinstance(whose, dict)
            whose[int(stream), int(number)] = table.segments
        return found

    @property
    def tables(self) -> dict[str, Table]:
        """The tables of the state that this is a view of."""
        named = [(key, "", infos) for key, infos in self.at_rest.items()]
        named += [(key, f" {_NEW}", infos) for key, infos in self.new.items()]
        return {f"{key[0]} segment {key[1]}{new}": Table(key[0], infos) for key, new, infos in named if infos}

    def settled(self) -> dict[Key, Infos]:
        """What it has of each segment at the beginning of the next batch."""
        keys = dict.fromkeys([*self.at_rest, *self.new])
        return {key: (*self.at_rest.get(key, ()), *self.new.get(key, ())) for key in sorted(keys)}


@dataclass(frozen=True, slots=True)
class RoutingTable:
    """Segments and hosts.

    Args:
        hosts: by stream and segment, by rising number; all of them have the same tuples of it.
        load: by host, the tuples that it has.
    """

    hosts: Mapping[Key, tuple[int, ...]]
    load: tuple[int, ...]

    @staticmethod
    def empty(nodes: int) -> RoutingTable:
        """Before the first batch."""
        return RoutingTable({}, (0,) * nodes)

    @staticmethod
    def of(states: Iterable[UnitState]) -> RoutingTable:
        """The table of the batch that begins with these states, of all nodes by number."""
        hosts: dict[Key, list[int]] = {}
        load: list[int] = []
        for node, state in enumerate(states):
            segments = HostState.of(state).settled()
            load.append(sum(info.rows for infos in segments.values() for info in infos))
            for key in segments:
                hosts.setdefault(key, []).append(node)
        return RoutingTable({key: tuple(found) for key, found in sorted(hosts.items())}, tuple(load))

    def of_stream(self, stream: int) -> dict[int, tuple[int, ...]]:
        """The hosts of each segment of a stream."""
        return {number: hosts for (of, number), hosts in self.hosts.items() if of == stream}
