"""In which order to join three streams and more: every way that is worth a look, what it costs, and what to write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from streamjoin.engine.operator import Operator
from streamjoin.explain.candidates import Candidates, Way, candidates, sides_in_order, work_text
from streamjoin.explain.figures import bytes_text, figure
from streamjoin.explain.sampling import Look
from streamjoin.operators.costs import StreamStatistics
from streamjoin.operators.costs.ring_lengths import RingTerms, RingTraffic, ring_terms, ring_traffic
from streamjoin.operators.costs.several import Several, Share, tree_count, ways_to_lose
from streamjoin.operators.costs.watched import ASSUMED, MEASURED, SET, Term, resolved, terms
from streamjoin.operators.ordering import CLEAR as NEAR
from streamjoin.operators.ring.ring import Ring
from streamjoin.plan.expression import Expression, streams_of
from streamjoin.plan.in_rounds import tree_plan
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.kinds import JoinKind, Tree
from streamjoin.plan.stages import Plan, asof_stages

TREES_SHOWN = 4
"""The cheapest trees; what runs, and a ring, are shown beside them."""
FACTORS = (0.5, 2.0, 0.1, 10.0, 0.01, 100.0)
"""By how much a rate or a share is changed to see whether another tree has the least work then."""
_TABLE = ("way", "memory", "comparisons/s", "looked at/s", "bytes sent/s", "work/s", "rows/s", "response")


@dataclass(frozen=True, slots=True)
class Ways:
    """All ways to join the streams that are worth a look.

    Args:
        of: what they were made from.
        found: with the least work first.
        trees: how many there are, of which the cheapest were taken.
        shares: conditions as they are written, and which share of combinations fulfils them.
        ring: what PSP's formulas say of a ring; None where there can be none.
        times: what they were given of single steps; empty where there is no ring.
        traffic: what it sends; None where there can be no ring.
        runs_ring: the join has a ring, so that what is wrong with it is worth a warning.
        objective: what the number of its nodes is chosen for; nothing where it is given.
        changes: what would have to be otherwise for another tree to have the least work.
    """

    of: Candidates
    found: tuple[Way, ...]
    trees: int
    shares: tuple[tuple[str, float], ...]
    ring: RingTerms | None
    changes: tuple[str, ...]
    times: tuple[Term, ...] = ()
    traffic: RingTraffic | None = None
    runs_ring: bool = False
    objective: str = ""

    @property
    def advice(self) -> str:
        """What to do, and why."""
        best = next(way for way in self.found if not way.is_baseline)
        (runs,) = (way for way in self.found if way.runs)
        times = runs.cost.work_s / best.cost.work_s if best.cost.work_s else 1.0
        if best is runs:
            return f"the way it runs has the least work of {self.trees:,} trees{' and rings' if self.ring else ''}"
        if times < NEAR and runs.is_baseline:
            return f"the way it runs is a baseline; operator: {{{best.setting}}} has {1 / times:.0%} of its work"
        if times < NEAR:
            return f"the way it runs has {times:.2f} times the least work, which is too near to tell"
        return f"operator: {{{best.setting}}} has {1 / times:.0%} of the work of the way it runs"

    def to_json(self) -> dict[str, Any]:
        """For the API."""
        ring = self.ring
        lengths = None if ring is None else dict(zip(self.of.names, ring.lengths, strict=True))
        return {
            "advice": self.advice,
            "ways": [way.to_json() for way in self.found],
            "trees": self.trees,
            "units": self.of.units,
            "shares": [{"conditions": text, "share": share} for text, share in self.shares],
            "ring": ring and {**asdict(ring), "lengths": lengths, "times": [asdict(one) for one in self.times],
                              "traffic": self.traffic and asdict(self.traffic)},
            "changes": list(self.changes),
        }  # fmt: skip

    def __str__(self) -> str:
        rows = [_TABLE, *(way.cells() for way in self.found)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            f"{way:<{widths[0]}}  "
            + "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True))
            for way, *cells in rows
        ]
        side = f"{self.of.units} unit{'s'[: self.of.units > 1]} a side"
        lines += ["", f"work is that of one processor in a second of event time; {self.trees:,} trees, {side}"]
        lines += [self._assumed]
        lines += [f"{share:.2g} of the pairs in reach fulfil {text}" for text, share in self.shares]
        lines += self._ring_lines()
        lines += [f"advice: {self.advice}", *self.changes]
        return "\n".join(lines)

    @property
    def _assumed(self) -> str:
        """What rates and response times are of."""
        slots = f"{self.of.slots} slot{'s'[: self.of.slots > 1]}"
        return (
            f"rows/s are what {slots} can take of all streams, always busy and evenly; response is the mean until a "
            f"row that waits for no other has met all, with {work_text(self.of.known.times.hop)} from one machine to "
            "the next; a batch adds its own length"
        )

    def _ring_lines(self) -> list[str]:
        if self.ring is None:
            return []
        ring = self.ring
        lengths = ", ".join(f"{name} {length}" for name, length in zip(self.of.names, ring.lengths, strict=True))
        first, second = ring.bounds
        return [
            f"ring: N* is {ring.best} node{'s'[: ring.best > 1]} (N1 {first:.2f}, N2 {second:.2f}), with "
            f"{work_text(ring.latency_s)} until a row has met all; lengths by stream: {lengths}",
            f"ring: a link has to carry {bytes_text(ring.bandwidth_bytes_per_s)}/s so that no node waits for rows",
            *(f"ring: {words}" for words in self._traffic_words()),
            f"ring: {'; '.join(self._times_words())}",
        ]

    def _traffic_words(self) -> Iterator[str]:
        """What it can take, what the number of nodes is for, and whether nodes send more than they give."""
        if (traffic := self.traffic) is None:
            return
        nodes = f"{traffic.nodes} node{'s'[: traffic.nodes > 1]}"
        takes = figure(traffic.rate_per_s)
        yield f"with {nodes} on as many processors, always busy, it takes {takes} rows/s of all streams (equation 4)"
        if self.objective:
            wanted = "output rate, so all of them" if self.objective == "rate" else "latency, so N* of them"
            yield f"as many nodes as are best for {wanted}, of {self.of.nodes_most} at most"
        if self.runs_ring and traffic.dominates:
            yield (
                f"warning: nodes are sent {figure(traffic.sent)} rows and partial results for each row that comes in, "
                f"which has {figure(traffic.found)} results: extra traffic dominates, as a row or a partial result "
                f"matches {figure(traffic.matching)} rows of the next stream on average, and there are {nodes}"
            )

    def _times_words(self) -> Iterator[str]:
        """What steps take, by who says so."""
        for origin, words in ((MEASURED, "measured"), (SET, "set"), (ASSUMED, "assumed")):
            if found := [one for one in self.times if one.origin == origin]:
                yield f"{words}: " + ", ".join(f"{one.symbol} {work_text(one.us / 1e6)}" for one in found)


def refusal(plan: Plan) -> str | None:
    """Why there is one way alone to join the streams of a plan; None where there are several."""
    if len(plan.streams) < 3:
        return "there is one way to join two streams"
    if plan.relations:
        return "relations are joined where a condition leads to them"
    if asof_stages(plan):
        return "an as-of join stands where it is written"
    joins = [stage.plan for stage in tree_plan(plan).stages if isinstance(stage.plan, JoinPlan)]
    if any(join.kind is not JoinKind.INNER for join in joins):
        return "outer, semi and anti joins are joined as they are written"
    return None


def ways(
    plan: Plan, look: Look, statistics: Sequence[StreamStatistics] | None, stages: Sequence[Operator | None],
    slots: int, measured: Mapping[str, float] | None = None,
) -> Ways | None:  # fmt: skip
    """The ways to join three streams and more; None where there is one alone, or nothing is known of the streams.

    Args:
        plan: as it runs.
        stages: the operators of its stages.
        measured: what single steps of its ring took, in seconds by name, where it has run.
    """
    if statistics is None or refusal(plan) is not None:
        return None
    found = candidates(plan, look, statistics, stages, slots)
    known, units, tree = found.known, found.units, tree_plan(plan).tree
    assert tree is not None
    shown = found.ways(TREES_SHOWN, found.running(plan), sides_in_order(tree))
    runs = stages[0] if isinstance(stages[0], Ring) else None
    given = runs.times_known if runs is not None else (known.times, frozenset[str]())
    has_ring = found.lengths is not None
    is_even = found.lengths is not None and len(set(found.lengths)) == 1  # equation 4 has one N for all streams
    taken = resolved(*given, measured or {})
    objective = runs.objective if runs is not None else ""
    nodes = found.nodes_most if objective == "rate" else found.nodes
    named = {way.plan: way.numbered for way in shown if way.numbered is not None}
    return Ways(
        found,
        tuple(shown),
        tree_count(len(found.names)),
        _shares(found.names, known.shares, found.conditions),
        ring_terms(known, found.orders, found.nodes_most, taken) if has_ring else None,
        _changes(found.names, known, named, units),
        tuple(terms(*given, measured or {})) if has_ring else (),
        ring_traffic(known, found.orders, nodes, taken) if is_even else None,
        runs is not None,
        objective,
    )


def _shares(
    of: Sequence[str], found: Sequence[Share], conditions: Sequence[Expression]
) -> tuple[tuple[str, float], ...]:
    names = [frozenset(of[stream] for stream in share.streams) for share in found]
    return tuple(
        (" AND ".join(str(condition) for condition in conditions if streams_of(condition) == streams), share.matching)
        for streams, share in zip(names, found, strict=True)
    )


def _changes(names: Sequence[str], known: Several, named: dict[str, Tree], units: int) -> tuple[str, ...]:
    """In words; of each other tree the smallest change."""
    least: dict[str, tuple[float, str]] = {}
    for stream, share, factor, other in ways_to_lose(known, named, units, FACTORS):
        size = max(factor, 1 / factor)
        what = f"rows of {names[stream]} came" if stream is not None else ""
        if share is not None:
            streams = " and ".join(names[one] for one in sorted(known.shares[share].streams))
            what = f"conditions on {streams} held"
        times = f"{size:g} times as often" if factor > 1 else f"{size:g} times less often"
        if other not in least or size < least[other][0]:
            least[other] = (size, f"{other} would have the least work of trees if {what} {times}")
    return tuple(words for _, words in least.values())
