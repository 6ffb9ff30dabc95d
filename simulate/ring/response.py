"""When a ring on a timed network answers, and what it sends for a row, by kinds of messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean

from simulate.ring.messages import Build, Input, Inter, Message, Probe, Query, Row
from simulate.ring.sizes import bytes_of
from simulate.ring.system import Played, is_local, play_on
from simulate.timed import Timed, UnitCosts


@dataclass(slots=True)
class Heard:
    """What nodes were sent, and when they were through with a row.

    Args:
        rounds: M - 1; END number M - 1 is the last that a node hears of a row.
        sent: rows that probe (`rows`), partial results (`partials`), END flags that come alone (`ends`), and rows that
            have become too old for the node before (`builds`).
        through: by a row's `order`, when the last END of its cycle came to each node.
    """

    rounds: int
    sent: Counter[str] = field(default_factory=Counter)
    through: dict[int, list[int]] = field(default_factory=dict)

    def __call__(self, at: int, receiver: str, message: Message) -> None:
        """Called by the network with each message."""
        match message:
            case Input() | Probe():
                self.sent["rows"] += 1
            case Build():
                self.sent["builds"] += 1
            case Inter(null=null):
                self.sent["ends" if null else "partials"] += 1
                if message.end and message.round == self.rounds:
                    self.through.setdefault(message.origin.order, []).append(at)


@dataclass(frozen=True, slots=True)
class Response:
    """Times of a run, in the network's unit.

    Args:
        result: the mean from when the newest row of a result came until the result.
        result_p95: the shortest such time that 95 % of results took at most; 0 where there are none.
        through: the mean over rows and nodes, from when the head read a row until the node was through with it.
        cycle: the mean from when the head read a row until it may read the next.
        busiest: the share of its time that the busiest node works; 0 where nothing takes time.
        busy: how long each actor works.
    """

    result: float
    result_p95: int
    through: float
    cycle: float
    busiest: float
    busy: dict[str, int]
    results: int
    sent: Counter[str]
    played: Played

    @property
    def held_twice(self) -> int:
        """See `Played.held_twice_max`."""
        return self.played.held_twice_max


def respond(
    costs: UnitCosts,
    tuple_bytes: int,
    rows: Sequence[Row],
    query: Query,
    lengths: Sequence[int],
    *,
    stored: Sequence[Row] = (),
    in_flight: int = 1,
    paced: bool = False,
) -> Response:
    """Run rows through a ring; see `play_on`.

    Args:
        tuple_bytes: of a row; a partial result carries its rows whole.
        paced: a row comes at its time; else when the head reads it.
    """
    heard = Heard(query.rounds)
    network = Timed(costs, partial(bytes_of, tuple_bytes=tuple_bytes), is_local, heard)
    played = play_on(network, rows, query, lengths, stored=stored, in_flight=in_flight, paced=paced)
    return summary(network, played, heard, {row.order: row.ts for row in rows} if paced else played.source.read)


def summary(network: Timed, played: Played, heard: Heard, came: Mapping[int, int]) -> Response:
    """Of a run.

    Args:
        came: by a row's `order`, when it came.
    """
    read, done = played.source.read, played.source.done
    found = [one for node in played.nodes for one in node.found]
    results = sum(one.count for one in found)
    took = sorted((one.at - came[one.origin], one.count) for one in found)
    lasted = max(done.values()) - min(read.values())
    return Response(
        result=sum(time * count for time, count in took) / results if results else 0.0,
        result_p95=_quantile(took, 0.95),
        through=fmean(at - read[order] for order, every in heard.through.items() for at in every),
        cycle=fmean(done[order] - read[order] for order in done),
        busiest=max(network.busy_ns[node.name] for node in played.nodes) / lasted if lasted else 0.0,
        busy=dict(network.busy_ns),
        results=results,
        sent=heard.sent,
        played=played,
    )


def _quantile(took: Sequence[tuple[int, int]], share: float) -> int:
    """The first time by which a share of results was there.

    Args:
        took: times and how many results took each, the shortest first.
    """
    wanted, so_far = share * sum(count for _, count in took), 0
    for time, count in took:
        so_far += count
        if so_far >= wanted:
            return time
    return 0
