"""In which order to join three streams and more: every way that is worth a look, what it costs, and what to write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from streamjoin.engine.operator import Operator
from streamjoin.explain.figures import bytes_text, figure
from streamjoin.explain.sampling import FULL_HISTORY_S, Look
from streamjoin.explain.shares import shares
from streamjoin.operators.costs import StreamStatistics
from streamjoin.operators.costs.ring_lengths import RingTerms, ring_terms
from streamjoin.operators.costs.several import (
    TIMES,
    Cost,
    Known,
    Several,
    Share,
    cheapest_order,
    cheapest_trees,
    tree_count,
    ways_to_lose,
)
from streamjoin.operators.ring.ring import Ring
from streamjoin.plan.expression import Expression, streams_of
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.kinds import Join, JoinKind, Tree, streams_in
from streamjoin.plan.ring import as_ring, ring_refusal, tree_plan
from streamjoin.plan.stages import AnyPlan, Cascade, asof_stages, stages_of
from streamjoin.plan.window import CountWindow, FullHistory, reach_us

TREES_SHOWN = 4
"""The cheapest trees; what runs, and a ring, are shown beside them."""
NEAR = 1.5
"""Predictions that differ by less than this say nothing: shares are of a sample, and taken as independent."""
FACTORS = (0.5, 2.0, 0.1, 10.0, 0.01, 100.0)
"""By how much a rate or a share is changed to see whether another tree has the least work then."""
_TABLE = ("way", "memory", "comparisons/s", "looked at/s", "bytes sent/s", "work/s")


@dataclass(frozen=True, slots=True)
class Way:
    """One way to join the streams.

    Args:
        plan: what is joined with what, such as `((a, b), c)`, or `ring`.
        setting: what a join file says under `operator` to have it.
        runs: the join file as it is has it.
    """

    plan: str
    setting: str
    cost: Cost
    runs: bool = False

    def to_json(self) -> dict[str, Any]:
        cost = self.cost
        return {
            "plan": self.plan,
            "setting": self.setting,
            "runs": self.runs,
            "memory_bytes": round(cost.memory_bytes),
            "comparisons_per_s": round(cost.comparisons_per_s),
            "looked_at_per_s": round(cost.looked_at_per_s),
            "sent_per_s": round(cost.sent_per_s, 3),
            "bytes_per_s": round(cost.bytes_per_s),
            "work_s": cost.work_s,
        }

    def cells(self) -> tuple[str, ...]:
        """As a row of the table."""
        cost = self.cost
        return (
            f"{self.plan}{', as it runs' if self.runs else ''}", bytes_text(cost.memory_bytes),
            figure(cost.comparisons_per_s), figure(cost.looked_at_per_s), bytes_text(cost.bytes_per_s),
            work_text(cost.work_s),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ways:
    """All ways to join the streams that are worth a look.

    Args:
        found: with the least work first.
        trees: how many there are, of which the cheapest were taken.
        units: that store a side of a join in a tree.
        shares: conditions as they are written, and which share of combinations fulfils them.
        ring: what PSP's formulas say of a ring; None where there can be none.
        changes: what would have to be otherwise for another tree to have the least work.
    """

    names: tuple[str, ...]
    found: tuple[Way, ...]
    trees: int
    units: int
    shares: tuple[tuple[str, float], ...]
    ring: RingTerms | None
    changes: tuple[str, ...]

    @property
    def advice(self) -> str:
        """What to do, and why."""
        best = self.found[0]
        (runs,) = (way for way in self.found if way.runs)
        times = runs.cost.work_s / best.cost.work_s if best.cost.work_s else 1.0
        if best is runs:
            return f"the way it runs has the least work of {self.trees:,} trees{' and rings' if self.ring else ''}"
        if times < NEAR:
            return f"the way it runs has {times:.2f} times the least work, which is too near to tell"
        return f"operator: {{{best.setting}}} has {1 / times:.0%} of the work of the way it runs"

    def to_json(self) -> dict[str, Any]:
        """For the API."""
        ring = self.ring
        lengths = None if ring is None else dict(zip(self.names, ring.lengths, strict=True))
        return {
            "advice": self.advice,
            "ways": [way.to_json() for way in self.found],
            "trees": self.trees,
            "units": self.units,
            "shares": [{"conditions": text, "share": share} for text, share in self.shares],
            "ring": ring and {**asdict(ring), "lengths": lengths},
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
        side = f"{self.units} unit{'s'[: self.units > 1]} a side"
        lines += ["", f"work is that of one processor in a second of event time; {self.trees:,} trees, {side}"]
        lines += [f"{share:.2g} of the pairs in reach fulfil {text}" for text, share in self.shares]
        lines += self._ring_lines()
        lines += [f"advice: {self.advice}", *self.changes]
        return "\n".join(lines)

    def _ring_lines(self) -> list[str]:
        if self.ring is None:
            return []
        ring = self.ring
        lengths = ", ".join(f"{name} {length}" for name, length in zip(self.names, ring.lengths, strict=True))
        first, second = ring.bounds
        return [
            f"ring: N* is {ring.best} node{'s'[: ring.best > 1]} (N1 {first:.2f}, N2 {second:.2f}), with "
            f"{work_text(ring.latency_s)} until a row has met all; lengths by stream: {lengths}",
            f"ring: a link has to carry {bytes_text(ring.bandwidth_bytes_per_s)}/s so that no node waits for rows; "
            f"a hop is assumed to take {work_text(TIMES.hop)}",
        ]


def work_text(seconds: float) -> str:
    """Seconds in the unit that people read."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:,.3g} {unit}" if seconds < 1000 else f"{seconds:,.0f} s"
    return f"{seconds * 1e6:.3g} us"


def refusal(plan: AnyPlan) -> str | None:
    """Why there is one way alone to join the streams of a plan; None where there are several."""
    if not isinstance(plan, Cascade) or len(plan.streams) < 3:
        return "there is one way to join two streams"
    if plan.relations:
        return "relations are joined where a condition leads to them"
    if asof_stages(plan):
        return "an as-of join stands where it is written"
    joins = [stage.plan for stage in stages_of(tree_plan(plan)) if isinstance(stage.plan, JoinPlan)]
    if any(join.kind is not JoinKind.INNER for join in joins):
        return "outer, semi and anti joins are joined as they are written"
    return None


def ways(
    plan: AnyPlan, look: Look, statistics: Sequence[StreamStatistics] | None, stages: Sequence[Operator | None],
    slots: int,
) -> Ways | None:  # fmt: skip
    """The ways to join three streams and more; None where there is one alone, or nothing is known of the streams.

    Args:
        plan: as it runs.
        stages: the operators of its stages.
    """
    if statistics is None or refusal(plan) is not None:
        return None
    assert isinstance(plan, Cascade)
    tree = tree_plan(plan)
    assert isinstance(tree, Cascade) and tree.tree is not None
    conditions = tree.where
    known = Several(
        tuple(_known(plan, number, one) for number, one in enumerate(statistics)), shares(tree, look, conditions)
    )
    units = _units(stages[0]) if plan.ring is None else max(slots, 1)
    trees = cheapest_trees(known, units, TREES_SHOWN)
    written = _ordered(tree.tree)
    named = {_shape(one, plan.names): one for one, _ in trees}
    named.setdefault(_shape(written, plan.names), written)
    runs, name = (None, "name: biclique, ") if plan.ring else (_shape(written, plan.names), "")
    found = [
        Way(shape, f"{name}tree: {_shape(one, plan.names, '[]')}", known.tree(one, units), shape == runs)
        for shape, one in named.items()
    ]
    found += (rings := _rings(plan, known, stages, slots))
    return Ways(
        plan.names,
        tuple(sorted(found, key=lambda way: way.cost.work_s)),
        tree_count(len(plan.streams)),
        units,
        _shares(plan, known.shares, conditions),
        ring_terms(known, _orders(plan), max(slots, 1)) if rings else None,
        _changes(plan, known, named, units),
    )


def _known(plan: Cascade, number: int, one: StreamStatistics) -> Known:
    if isinstance(plan.window, FullHistory):
        return Known(one.rate_per_s, one.tuple_bytes, FULL_HISTORY_S, FULL_HISTORY_S)
    assert not isinstance(plan.window, CountWindow)  # which is of two streams
    reach_s = reach_us(plan.window, number) / 1e6
    kept_s = one.stored / one.rate_per_s if one.rate_per_s else reach_s
    return Known(one.rate_per_s, one.tuple_bytes, reach_s, max(kept_s, reach_s))


def _units(operator: Operator | None) -> int:
    """How many units store the second side of a join."""
    if operator is None:
        return 1
    return max(1, sum(1 in unit.stores for unit in operator.units))


def _orders(plan: Cascade) -> tuple[tuple[int, ...], ...]:
    ring = plan.ring or as_ring(plan).ring
    assert ring is not None
    return ring.orders


def _rings(plan: Cascade, known: Several, stages: Sequence[Operator | None], slots: int) -> list[Way]:
    """A ring with the orders that it has, and one with those that the sample tells, where that is another."""
    if plan.ring is None and ring_refusal(plan) is not None:
        return []
    first = stages[0]
    nodes, lengths = slots, (slots,) * len(plan.streams)
    if isinstance(first, Ring):
        nodes, lengths = first.nodes, first.lengths_by_stream
    orders = _orders(plan)
    found = [Way(f"ring of {nodes}", "name: ring", known.ring(orders, lengths), plan.ring is not None)]
    best = tuple(cheapest_order(known, origin) for origin in range(len(plan.streams)))
    if best != orders and (cost := known.ring(best, lengths)).work_s < found[0].cost.work_s:
        words = ", ".join(
            f"{name}: [{', '.join(plan.names[one] for one in order)}]"
            for name, order, default in zip(plan.names, best, orders, strict=True)
            if order != default
        )
        found.append(Way(f"ring of {nodes}, other orders", f"name: ring, orders: {{{words}}}", cost))
    return found


def _shares(plan: Cascade, found: Sequence[Share], conditions: Sequence[Expression]) -> tuple[tuple[str, float], ...]:
    names = [frozenset(plan.names[stream] for stream in share.streams) for share in found]
    return tuple(
        (" AND ".join(str(condition) for condition in conditions if streams_of(condition) == streams), share.matching)
        for streams, share in zip(names, found, strict=True)
    )


def _changes(plan: Cascade, known: Several, named: dict[str, Tree], units: int) -> tuple[str, ...]:
    """In words; of each other tree the smallest change."""
    least: dict[str, tuple[float, str]] = {}
    for stream, share, factor, other in ways_to_lose(known, named, units, FACTORS):
        size = max(factor, 1 / factor)
        what = f"rows of {plan.names[stream]} came" if stream is not None else ""
        if share is not None:
            streams = " and ".join(plan.names[one] for one in sorted(known.shares[share].streams))
            what = f"conditions on {streams} held"
        times = f"{size:g} times as often" if factor > 1 else f"{size:g} times less often"
        if other not in least or size < least[other][0]:
            least[other] = (size, f"{other} would have the least work of trees if {what} {times}")
    return tuple(words for _, words in least.values())


def _ordered(tree: Tree) -> Tree:
    """The same with the side on the left that has the stream which FROM names first."""
    if isinstance(tree, int):
        return tree
    left, right = _ordered(tree.left), _ordered(tree.right)
    return Join(left, right) if min(streams_in(left)) < min(streams_in(right)) else Join(right, left)


def _shape(tree: Tree, names: Sequence[str], brackets: str = "()") -> str:
    if isinstance(tree, int):
        return names[tree]
    left, right = (_shape(part, names, brackets) for part in (tree.left, tree.right))
    return f"{brackets[0]}{left}, {right}{brackets[1]}"
