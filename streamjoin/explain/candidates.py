"""The ways to join three streams and more that are worth a look: the cheapest trees, the one that is written, rings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from streamjoin.engine.operator import Operator
from streamjoin.explain.figures import bytes_text, figure
from streamjoin.explain.sampling import FULL_HISTORY_S, Look
from streamjoin.explain.shares import shares
from streamjoin.operators import registry
from streamjoin.operators.costs import StreamStatistics
from streamjoin.operators.costs.several import Cost, Known, Several, Share, cheapest_order, cheapest_trees
from streamjoin.operators.ring.adaptive import AdaptiveRing
from streamjoin.operators.ring.ring import Ring
from streamjoin.plan.expression import Expression
from streamjoin.plan.in_rounds import in_rounds, rounds_refusal, tree_plan
from streamjoin.plan.kinds import Join, Tree, streams_in
from streamjoin.plan.stages import Plan
from streamjoin.plan.window import CountWindow, FullHistory, reach_us
from streamjoin.settings.trees import NamedTree


@dataclass(frozen=True, slots=True)
class Way:
    """One way to join the streams.

    Args:
        plan: what is joined with what, such as `((a, b), c)`, or `ring`.
        cost: what is predicted of it.
        rate_per_s: rows of all streams that it can take, with all its processors always busy.
        runs: the join has it.
        operator: what a join file says under `operator` to have it: `tree`, or `name` and `orders` of a ring.
        numbered: the tree by the numbers of its streams; None where all are joined at once.
        is_written: it is the order of FROM.
        is_baseline: it is there to be compared with, and is not advised.
    """

    plan: str
    cost: Cost
    runs: bool = False
    operator: Mapping[str, Any] = field(default_factory=dict)
    numbered: Tree | None = None
    is_written: bool = False
    is_baseline: bool = False
    rate_per_s: float = 0.0

    @property
    def setting(self) -> str:
        """What a join file says under `operator`, as text."""
        return ", ".join(f"{name}: {_as_yaml(value)}" for name, value in self.operator.items())

    def to_json(self) -> dict[str, Any]:
        cost = self.cost
        return {
            "plan": self.plan,
            "setting": self.setting,
            "operator": self.operator,
            "runs": self.runs,
            "memory_bytes": round(cost.memory_bytes),
            "comparisons_per_s": round(cost.comparisons_per_s),
            "looked_at_per_s": round(cost.looked_at_per_s),
            "sent_per_s": round(cost.sent_per_s, 3),
            "bytes_per_s": round(cost.bytes_per_s),
            "work_s": cost.work_s,
            "rate_per_s": float(f"{self.rate_per_s:.6g}"),
            "response_s": cost.response_s,
        }

    def cells(self) -> tuple[str, ...]:
        """As a row of the table."""
        cost = self.cost
        return (
            f"{self.plan}{', as it runs' if self.runs else ''}", bytes_text(cost.memory_bytes),
            figure(cost.comparisons_per_s), figure(cost.looked_at_per_s), bytes_text(cost.bytes_per_s),
            work_text(cost.work_s), figure(self.rate_per_s), work_text(cost.response_s),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Baseline:
    """An operator that joins all streams at once, to compare trees and rings with.

    Args:
        name: with its nodes.
        operator: its name alone.
        cost: what it costs.
        nodes: that can be busy at the same time.
    """

    name: str
    operator: str
    cost: Callable[[Several], Cost]
    nodes: int = 1


@dataclass(frozen=True, slots=True)
class Candidates:
    """What ways are made from.

    Args:
        names: of the streams.
        known: what was sampled of them, and of their conditions.
        units: that store a side of a join in a tree.
        orders: of a ring, unless others are asked for.
        lengths: by stream, how many nodes of a ring keep it; None where there can be no ring.
        nodes: of a ring; `nodes_most` at most, of one that may have more.
        conditions: all that a result must fulfil.
        baselines: other operators that join all streams at once.
        slots: what can be busy at the same time.
        written: the tree that FROM says, where brackets say another one than its order.
    """

    names: tuple[str, ...]
    known: Several
    units: int
    orders: tuple[tuple[int, ...], ...] = ()
    lengths: tuple[int, ...] | None = None
    nodes: int = 1
    nodes_most: int = 1
    conditions: tuple[Expression, ...] = ()
    baselines: tuple[Baseline, ...] = ()
    written: Tree | None = None
    slots: int = 1

    def running(self, plan: Plan) -> str:
        """The name of the way that a plan has."""
        tree = tree_plan(plan).tree
        assert tree is not None
        if plan.rounds is None:
            return shape(sides_in_order(tree), self.names)
        operator = plan.rounds.operator
        return next((one.name for one in self.baselines if one.operator == operator), self.ring_name)

    @property
    def ring_name(self) -> str:
        """What a ring with its default orders is called."""
        return f"ring of {self.nodes}"

    def ways(self, trees: int, runs: str, tree: Tree | None = None) -> list[Way]:
        """The cheapest trees, the one that is written and rings, with the least work first.

        Args:
            trees: how many of them, beside the one that is written.
            runs: the name of the way that the join has.
            tree: one that is shown in any case.
        """
        written = left_deep(len(self.names)) if self.written is None else self.written
        found = [one for one, _ in cheapest_trees(self.known, self.units, trees)]
        named = {shape(one, self.names): one for one in [*found, written, *([] if tree is None else [tree])]}
        name = {} if not runs or runs.startswith("(") else {"name": "biclique"}
        every = [
            Way(words, self.known.tree(one, self.units), words == runs, {**name, "tree": named_tree(one, self.names)},
                one, one == written)
            for words, one in named.items()
        ]  # fmt: skip
        every += [
            Way(one.name, one.cost(self.known), one.name == runs, {"name": one.operator}, is_baseline=True)
            for one in self.baselines
        ]
        every = [replace(way, rate_per_s=self._rate_per_s(way)) for way in every + self._rings(runs)]
        return sorted(every, key=lambda way: way.cost.work_s)

    def _rate_per_s(self, way: Way) -> float:
        """Rows of all streams whose work keeps its processors busy; their event times are as sampled."""
        nodes = {one.name: one.nodes for one in self.baselines}.get(way.plan, self.nodes)
        busy = self.slots if way.numbered is not None else min(nodes, self.slots)
        return busy * self.known.rate_per_s / way.cost.work_s if way.cost.work_s else 0.0

    def _rings(self, runs: str) -> list[Way]:
        """A ring with the orders that it has, and one with those that the sample tells, where that is another."""
        if self.lengths is None:
            return []
        own = Way(self.ring_name, self.known.ring(self.orders, self.lengths), runs == self.ring_name, {"name": "ring"})
        best = tuple(cheapest_order(self.known, origin) for origin in range(len(self.names)))
        if best == self.orders or (cost := self.known.ring(best, self.lengths)).work_s >= own.cost.work_s:
            return [own]
        orders = {name: [self.names[one] for one in order] for name, order in zip(self.names, best, strict=True)}
        words = f"{self.ring_name}, other orders"
        return [own, Way(words, cost, runs == words, {"name": "ring", "orders": orders})]

    def in_orders(self, orders: Mapping[str, Sequence[str]]) -> Candidates:
        """The same with other orders of a ring, of all streams."""
        numbered = (tuple(map(self.names.index, orders[name])) for name in self.names)
        return replace(self, orders=tuple(numbered)) if orders else self

    def at_rates(self, rates_per_s: Mapping[str, float]) -> Candidates:
        """The same with streams that bring so many tuples a second; of others what was sampled."""
        streams = [
            replace(one, rate_per_s=rates_per_s.get(name, one.rate_per_s))
            for name, one in zip(self.names, self.known.streams, strict=True)
        ]
        return replace(self, known=Several(tuple(streams), self.known.shares, self.known.times))

    @property
    def rates(self) -> str:
        """What the streams bring, in words."""
        every = zip(self.names, self.known.streams, strict=True)
        return ", ".join(f"{figure(one.rate_per_s)} {name}/s" for name, one in every)

    def to_json(self) -> dict[str, Any]:
        """All that predictions are made of; `from_json` reads it back."""
        return {
            "names": self.names,
            "streams": [asdict(one) for one in self.known.streams],
            "shares": [{**asdict(share), "streams": sorted(share.streams)} for share in self.known.shares],
            "units": self.units,
            "orders": self.orders,
            "lengths": self.lengths,
            "nodes": self.nodes,
            "slots": self.slots,
        }

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> Candidates:
        """The inverse of `to_json`."""
        known = Several(
            tuple(Known(**one) for one in found["streams"]),
            tuple(
                Share(**{**one, "streams": frozenset(one["streams"]), "keys": one["keys"] and tuple(one["keys"])})
                for one in found["shares"]
            ),
        )
        lengths = None if found["lengths"] is None else tuple(found["lengths"])
        orders = tuple(map(tuple, found["orders"]))
        slots = found.get("slots", 1)  # of checkpoints from before
        return Candidates(tuple(found["names"]), known, found["units"], orders, lengths, found["nodes"], slots=slots)


def candidates(
    plan: Plan, look: Look, statistics: Sequence[StreamStatistics], stages: Sequence[Operator | None], slots: int
) -> Candidates:
    """What a plan, which has several ways, and samples of its streams tell.

    Args:
        stages: the operators of its stages.
    """
    tree = tree_plan(plan)
    known = Several(
        tuple(_known(plan, number, one) for number, one in enumerate(statistics)), shares(tree, look, tree.where)
    )
    units = _units(stages[0]) if plan.rounds is None else max(slots, 1)
    first, most = stages[0], max(slots, 1)
    if isinstance(first, AdaptiveRing):
        known, most = replace(known, times=first.limits.times), first.limits.most
    found = Candidates(
        plan.names, known, units, nodes=slots, nodes_most=most, conditions=tree.where, slots=max(slots, 1)
    )
    if plan.rounds is None and rounds_refusal(plan) is not None:
        return found
    ring = plan.rounds or in_rounds(plan).rounds
    assert ring is not None
    nodes, lengths = slots, (slots,) * len(plan.streams)
    if isinstance(first, Ring):
        nodes, lengths = first.nodes, first.lengths_by_stream
    baselines = tuple(_baselines(plan, tree, stages, slots))
    return replace(found, orders=ring.orders, lengths=lengths, nodes=nodes, baselines=baselines)


def _baselines(plan: Plan, tree: Plan, stages: Sequence[Operator | None], slots: int) -> Iterator[Baseline]:
    """With the knobs that the plan's own has, or its own defaults."""
    for kind in registry.KINDS:
        if kind.several is None:
            continue
        if plan.rounds is not None and plan.rounds.operator == kind.name and stages[0] is not None:
            operator = stages[0]
        else:
            planned = registry.planned(kind.name, {}, tree, slots)
            operator = registry.build_all(kind.name, {}, planned, slots)[0]
        name = f"{kind.name} on {len(operator.units)}"
        yield Baseline(name, kind.name, partial(kind.several, operator), len(operator.units))


def _known(plan: Plan, number: int, one: StreamStatistics) -> Known:
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


def left_deep(streams: int) -> Tree:
    """Each stream joined with what the ones before it have become: the order of FROM."""
    tree: Tree = 0
    for number in range(1, streams):
        tree = Join(tree, number)
    return tree


def sides_in_order(tree: Tree) -> Tree:
    """The same with the side on the left that has the stream which FROM names first."""
    if isinstance(tree, int):
        return tree
    left, right = sides_in_order(tree.left), sides_in_order(tree.right)
    return Join(left, right) if min(streams_in(left)) < min(streams_in(right)) else Join(right, left)


def named_tree(tree: Tree, names: Sequence[str]) -> NamedTree:
    """A tree by the names of its streams."""
    if isinstance(tree, int):
        return names[tree]
    return named_tree(tree.left, names), named_tree(tree.right, names)


def shape(tree: Tree, names: Sequence[str]) -> str:
    """A tree as people read it, such as `((a, b), c)`."""
    if isinstance(tree, int):
        return names[tree]
    return f"({shape(tree.left, names)}, {shape(tree.right, names)})"


def work_text(seconds: float) -> str:
    """Seconds in the unit that people read."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:,.3g} {unit}" if seconds < 1000 else f"{seconds:,.0f} s"
    return f"{seconds * 1e6:.3g} us"


def _as_yaml(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {_as_yaml(inner)}' for name, inner in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_as_yaml, value))}]"
    return str(value)
