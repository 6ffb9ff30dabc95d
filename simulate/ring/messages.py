"""What nodes of a ring send to each other (PSP, section 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a stream; `order` is its place in the input of all streams, whose times never fall."""

    stream: int
    ts: int
    order: int
    value: int


Parts = tuple[Row | None, ...]
"""By stream, what a partial result has of it; the streams that are there are its schema."""


@dataclass(frozen=True, slots=True)
class Query:
    """A join of some streams.

    Args:
        windows: W of each; a row is in reach of one that is newer by less.
        conditions: the streams that each reads, and whether it holds for their rows.
        orders: by origin, in which order its rows meet the others.
    """

    windows: tuple[int, ...]
    conditions: tuple[tuple[tuple[int, ...], Callable[..., bool]], ...]
    orders: tuple[tuple[int, ...], ...]

    @property
    def rounds(self) -> int:
        """M - 1."""
        return len(self.windows) - 1

    def holds(self, parts: Sequence[Row | None], latest: int) -> bool:
        """Whether every condition holds that can be checked since the stream `latest` is there."""
        for streams, condition in self.conditions:
            rows = [row for stream in streams if (row := parts[stream]) is not None]
            if latest in streams and len(rows) == len(streams) and not condition(*rows):
                return False
        return True


@dataclass(frozen=True, slots=True)
class Input:
    """The next row of the input, for the head."""

    row: Row


@dataclass(frozen=True, slots=True)
class Build:
    """A row that has become too old for the node before."""

    row: Row


@dataclass(frozen=True, slots=True)
class Probe:
    """A row that purges and probes; it comes behind the rows that it purged."""

    row: Row


@dataclass(frozen=True, slots=True)
class Inter:
    """A partial result on its round, or the last one of its schema that the head has made.

    Args:
        origin: the row that it began with; the input's order is its id.
        round: how many streams it has met, from 1.
        birth: the node that made it, where its round ends.
        end: it carries the END flag of its schema.
        null: it has the flag alone, as the head found nothing, or found results.
    """

    parts: Parts
    origin: Row
    round: int
    birth: int
    end: bool = False
    null: bool = False


@dataclass(frozen=True, slots=True)
class Slices:
    """How the ring is cut from now on; it comes between two cycles, and goes from node to node.

    Args:
        nodes: N, not fewer than before.
        bounds: by stream, how many rows each node may keep; the last one keeps what is left.
    """

    nodes: int
    bounds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """The cycle of a row is over."""

    order: int


@dataclass(frozen=True, slots=True)
class Found:
    """Results that a node had at once.

    Args:
        origin: the `order` of the row that made them.
        at: on the network's clock.
        count: how many.
    """

    origin: int
    at: int
    count: int


Message = Input | Build | Probe | Inter | Slices | Done


def nested_loop(rows: Sequence[Row], query: Query) -> list[Parts]:
    """Every combination of rows that meets all conditions, and of which none is out of reach of the newest."""
    found: list[Parts] = []

    def extend(parts: tuple[Row, ...]) -> None:
        stream = len(parts)
        if stream == len(query.windows):
            latest = max(row.ts for row in parts)
            if all(latest - row.ts < query.windows[row.stream] for row in parts):
                found.append(parts)
            return
        for row in rows:
            wider = (*parts, row)
            if row.stream == stream and query.holds((*wider, *(None,) * (len(query.windows) - stream - 1)), stream):
                extend(wider)

    extend(())
    return found
