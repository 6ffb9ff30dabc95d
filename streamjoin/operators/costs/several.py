"""What joins of three streams and more cost: trees of joins of two, and rings.

Of a set A of streams there are, per second of event time,

    found(A) = S(A) x sum over n in A of lambda_n x product over the others l of lambda_l W_l

results: each has a newest part n, and every other part is older by its stream's reach at most. PSP counts partial
results so, for one origin (EDBT 2009, section 4.3 and equation 1); here all streams are summed up. S(A) is the product
of the shares of combinations that fulfil each condition within A. An equality that others imply counts once. The rest
is taken as independent, as in the paper, so skewed keys find more than is said here.

A tree stores what its inner joins find, and sends it once more (BiStream, SIGMOD 2015: every tuple to the unit that
stores it, and to those that may have partners). A ring stores tuples of streams alone and finds partial results anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import nsmallest
from math import prod

from streamjoin.operators.costs.psp import Met, StepTimes, kept_s, latency_of_lengths_s, partials
from streamjoin.plan.kinds import Join, Tree, streams_in

TIMES = StepTimes(join=0.016e-6, send=0.14e-6, hop=1e-3, insert=0.14e-6, probe=0.14e-6)
"""Between what `python -m benchmarks.step_times` measures on an idle machine, 0.27 us a row and 0.009 us a pair, and on
a busy one, 1.1 us and 0.024 us: ways are compared with one another. A step of a row is a quarter of it, T_n is assumed.
"""


@dataclass(frozen=True, slots=True)
class Known:
    """A stream, as it was sampled.

    Args:
        rate_per_s: lambda, tuples that conditions on the stream alone let through.
        tuple_bytes: of a stored one.
        reach_s: W, how much newer than a tuple its partners may be.
        kept_s: how long it is stored; longer than `reach_s`, as whole segments are dropped.
    """

    rate_per_s: float
    tuple_bytes: float
    reach_s: float
    kept_s: float


@dataclass(frozen=True, slots=True)
class Share:
    """The conditions over the same streams.

    Args:
        streams: by number, two or more.
        matching: the share of combinations that fulfil them.
        looked_at: the share of them that an index leaves to be looked at; 1 where none helps.
        by_hash: equal keys can be sent to one unit.
        keys: both keys, where one equality is all there is: it may follow from others.
    """

    streams: frozenset[int]
    matching: float
    looked_at: float = 1.0
    by_hash: bool = False
    keys: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """What is done per second of event time, and what is stored.

    Args:
        memory_bytes: stored by all units.
        comparisons_per_s: pairs that a nested loop compares.
        looked_at_per_s: pairs that an index leaves to be looked at.
        sent_per_s, bytes_per_s: tuples, and their bytes, from routers to units; what leaves the last join is not in it.
        work_s: seconds that one processor is busy.
        response_s: from when a tuple comes in until it has met all, the mean over tuples, of one that waits for no
            other; not per second.
    """

    memory_bytes: float = 0.0
    comparisons_per_s: float = 0.0
    looked_at_per_s: float = 0.0
    sent_per_s: float = 0.0
    bytes_per_s: float = 0.0
    work_s: float = 0.0
    response_s: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.memory_bytes + other.memory_bytes,
            self.comparisons_per_s + other.comparisons_per_s,
            self.looked_at_per_s + other.looked_at_per_s,
            self.sent_per_s + other.sent_per_s,
            self.bytes_per_s + other.bytes_per_s,
            self.work_s + other.work_s,
            self.response_s + other.response_s,
        )


@dataclass(frozen=True)
class Several:
    """Streams, the conditions between them, and what single steps take."""

    streams: tuple[Known, ...]
    shares: tuple[Share, ...]
    times: StepTimes = TIMES

    @cached_property
    def _found(self) -> dict[frozenset[int], float]:
        return {}

    @cached_property
    def _matching(self) -> dict[frozenset[int], float]:
        return {}

    def matching(self, of: frozenset[int]) -> float:
        """S(A): the share of combinations that fulfil all conditions within a set of streams."""
        if of not in self._matching:
            self._matching[of] = prod(share.matching for share in _not_implied(self.shares, of))
        return self._matching[of]

    def found_per_s(self, of: frozenset[int]) -> float:
        """How many results of a set of streams there are; of one stream, its tuples."""
        if of not in self._found:
            newest = sum(
                self.streams[newest].rate_per_s
                * prod(self.streams[other].rate_per_s * self.streams[other].reach_s for other in of if other != newest)
                for newest in of
            )
            self._found[of] = self.matching(of) * newest
        return self._found[of]

    def stored(self, of: frozenset[int]) -> float:
        """How many of them are stored where they wait for others: as long as the part with the longest reach."""
        return self.found_per_s(of) * max(self.streams[one].kept_s for one in of)

    def tuple_bytes(self, of: frozenset[int]) -> float:
        """Of one of them, where all columns are carried along."""
        return sum(self.streams[one].tuple_bytes for one in of)

    def between(self, one: frozenset[int], other: frozenset[int]) -> tuple[float, float, bool]:
        """Where two sets meet: the shares that match and that are looked at, and whether equal keys find each other."""
        both = one | other
        checked = [share for share in self.shares if share.streams <= both
                   and not share.streams <= one and not share.streams <= other]  # fmt: skip
        matching = self.matching(both) / (self.matching(one) * self.matching(other))
        by_hash = [share.looked_at for share in checked if share.by_hash]
        looked_at = prod(by_hash) if by_hash else min((share.looked_at for share in checked), default=1.0)
        return matching, max(looked_at, matching), bool(by_hash)

    def stage(self, one: frozenset[int], other: frozenset[int], units: int) -> Cost:
        """A join of what two sets of streams give.

        Args:
            units: that store a side; without an equality a tuple meets all of the other side.
        """
        matching, looked_share, by_hash = self.between(one, other)
        sides = (one, other)
        rates = [self.found_per_s(side) for side in sides]
        stored = [self.stored(side) for side in sides]
        copies = 2.0 if by_hash else 1.0 + units
        looked_at = self.found_per_s(one | other) / matching * looked_share
        incoming = sum(rates)
        work_s = incoming * (kept_s(self.times) + copies * self.times.send + (copies - 1.0) * self.times.probe)
        work_s += looked_at * self.times.join
        return Cost(
            sum(count * self.tuple_bytes(side) for count, side in zip(stored, sides, strict=True)),
            rates[0] * stored[1] + rates[1] * stored[0],
            looked_at,
            incoming * copies,
            copies * sum(rate * self.tuple_bytes(side) for rate, side in zip(rates, sides, strict=True)),
            work_s,
            self._of_a_row(sum(self.streams[stream].rate_per_s for stream in one | other) * self.times.hop
                           + work_s / (1.0 if by_hash else units)),
        )  # fmt: skip

    @property
    def rate_per_s(self) -> float:
        """Tuples of all streams."""
        return sum(one.rate_per_s for one in self.streams)

    def _of_a_row(self, seconds: float) -> float:
        """What is spent in a second, for one of the tuples that come in it."""
        return seconds / self.rate_per_s if self.rate_per_s else 0.0

    def alone(self, cost: Cost, hops: float, hosts: float) -> float:
        """Until a tuple has met all, by so many hops, where its work is shared by so many hosts."""
        return hops * self.times.hop + self._of_a_row(cost.work_s) / hosts

    def tree(self, tree: Tree, units: int) -> Cost:
        """A tree of joins of two."""
        if isinstance(tree, int):
            return Cost()
        own = self.stage(streams_in(tree.left), streams_in(tree.right), units)
        return own + self.tree(tree.left, units) + self.tree(tree.right, units)

    def met(self, origin: int, order: Sequence[int]) -> tuple[Met, ...]:
        """What partial results of an origin meet, as PSP's formulas take it: what an index leaves, one tuple at least.

        lambda W S is that of the streams; where an index helps, fewer are compared, and S is of these.
        """
        found, there = [], frozenset([origin])
        for stream in order:
            known = self.streams[stream]
            matching, looked_share, _ = self.between(there, frozenset([stream]))
            in_reach = known.rate_per_s * known.reach_s
            looked_at = max(in_reach * looked_share, min(in_reach, 1.0))
            found.append(Met(looked_at, in_reach * matching / looked_at if looked_at else 0.0))
            there |= {stream}
        return tuple(found)

    def ring(self, orders: Sequence[Sequence[int]], lengths: Sequence[int]) -> Cost:
        """A ring in which each stream is kept by the first so many nodes (PSP, equation 1, for every origin)."""
        cost = Cost()
        for origin, order in enumerate(orders):
            rate, there = self.streams[origin].rate_per_s, frozenset([origin])
            met = self.met(origin, order)
            for stream, one, sent in zip(order, met, partials(met), strict=True):
                nodes, known = lengths[stream], self.streams[stream]
                received = max(nodes, lengths[origin]) if len(there) == 1 else nodes
                cost += Cost(
                    0.0,
                    rate * sent * known.rate_per_s * known.kept_s,
                    rate * sent * one.stored,
                    rate * sent * received,
                    rate * sent * received * self.tuple_bytes(there),
                    rate
                    * sent
                    * (received * self.times.send + nodes * self.times.probe + one.stored * self.times.join),
                )
                there |= {stream}
            size = self.stored(frozenset([origin])) * self.streams[origin].tuple_bytes
            met_by, own = [lengths[stream] for stream in order], lengths[origin]
            latency_s = latency_of_lengths_s(met, met_by, max(lengths), self.times, own)
            work_s = rate * kept_s(self.times, own)
            cost += Cost(memory_bytes=size, work_s=work_s, response_s=self._of_a_row(rate * latency_s))
        return cost

    def scaled(self, *, stream: int | None = None, share: int | None = None, factor: float = 1.0) -> Several:
        """The same with the rate of a stream, or the shares of some conditions, so many times as large."""
        streams, shares = list(self.streams), list(self.shares)
        if stream is not None:
            streams[stream] = replace(streams[stream], rate_per_s=streams[stream].rate_per_s * factor)
        if share is not None:
            one = shares[share]
            shares[share] = replace(
                one, matching=min(one.matching * factor, 1.0), looked_at=min(one.looked_at * factor, 1.0)
            )
        return Several(tuple(streams), tuple(shares), self.times)


def _not_implied(shares: Sequence[Share], of: frozenset[int]) -> Iterator[Share]:
    """The conditions within a set, without equalities that follow from the ones before them."""
    same: dict[str, str] = {}

    def root(key: str) -> str:
        while key in same:
            key = same[key]
        return key

    for share in shares:
        if not share.streams <= of:
            continue
        if share.keys is not None:
            one, other = map(root, share.keys)
            if one == other:
                continue
            same[one] = other
        yield share


def cheapest_trees(known: Several, units: int, count: int) -> list[tuple[Tree, Cost]]:
    """The trees with the least work, cheapest first: exactly these, of all there are.

    A join's cost depends on the sets of streams on its sides alone, so the cheapest trees are made of cheap ones. The
    side with the stream that FROM names first is on the left.

    Cost: 3^M / 2 pairs of sets, times `count` squared; 9 streams have 9,330 of them. Of all these only work is added
    up; trees and costs are made of the cheapest.
    """
    best: dict[frozenset[int], list[tuple[Tree, Cost]]] = {
        frozenset([stream]): [(stream, Cost())] for stream in range(len(known.streams))
    }
    for of in _sets(len(known.streams)):
        found: list[tuple[float, Cost, tuple[Tree, Cost], tuple[Tree, Cost]]] = []
        for left in _halves(of):
            right = of - left
            own = known.stage(left, right, units)
            found += [
                (own.work_s + one[1].work_s + other[1].work_s, own, one, other)
                for one in best[left]
                for other in best[right]
            ]
        best[of] = [
            (Join(one, other), own + cost + more)
            for _, own, (one, cost), (other, more) in nsmallest(count, found, key=lambda each: each[0])
        ]
    return best[frozenset(range(len(known.streams)))]


def tree_count(streams: int) -> int:
    """How many trees there are of so many streams, whichever side is which."""
    return prod(range(1, 2 * streams - 2, 2))


def cheapest_order(known: Several, origin: int) -> tuple[int, ...]:
    """An order for a ring: next comes the stream that leaves the fewest partial results (lambda W S)."""
    order: list[int] = []
    left = [stream for stream in range(len(known.streams)) if stream != origin]
    while left:
        there = frozenset([origin, *order])

        def leaves(stream: int, there: frozenset[int] = there) -> float:
            one = known.streams[stream]
            return one.rate_per_s * one.reach_s * known.between(there, frozenset([stream]))[0]

        following = min(left, key=leaves)
        left.remove(following)
        order.append(following)
    return tuple(order)


def _sets(streams: int) -> list[frozenset[int]]:
    """All sets of two streams and more, small ones first."""
    sets = [frozenset(one for one in range(streams) if bits >> one & 1) for bits in range(1 << streams)]
    return sorted((of for of in sets if len(of) > 1), key=len)


def _halves(of: frozenset[int]) -> Iterator[frozenset[int]]:
    """Every part of a set that has its first stream, and not all of it."""
    first, *others = sorted(of)
    for bits in range((1 << len(others)) - 1):
        yield frozenset([first, *(one for place, one in enumerate(others) if bits >> place & 1)])


def ways_to_lose(
    known: Several, candidates: Mapping[str, Tree], units: int, factors: Sequence[float]
) -> Iterator[tuple[int | None, int | None, float, str]]:
    """What would have to change for another candidate to have the least work: (stream, share, factor, candidate)."""
    if len(candidates) < 2:
        return

    def least(changed: Several) -> str:
        return min(candidates, key=lambda name: changed.tree(candidates[name], units).work_s)

    winner = least(known)
    ways = [(stream, None) for stream in range(len(known.streams))]
    for stream, share in [*ways, *((None, share) for share in range(len(known.shares)))]:
        for factor in factors:
            if (other := least(known.scaled(stream=stream, share=share, factor=factor))) != winner:
                yield stream, share, factor, other
                break
