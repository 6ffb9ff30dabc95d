"""From a query over streams to rounds (PSP): all of its streams in one state, and an order for each.

The joins of a round are planned as those of a tree are, one tree for each origin: (((origin, first), second), third).
So a condition is checked in the first round in which all its streams are there, and the rule of times in `plan.stages`
holds, which gives the same rows in every order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from streamjoin.errors import InputError, UnsupportedError
from streamjoin.plan.expression import TRUE, Call, Expression, conjuncts, streams_of
from streamjoin.plan.join import JoinPlan, ResultKey
from streamjoin.plan.kinds import Join, JoinKind, Tree
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.reordering import written_key
from streamjoin.plan.rounds import RoundPlan
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import Cascade, Flow, Plan, Stage, asof_stages
from streamjoin.plan.tree import cascade
from streamjoin.plan.window import CountWindow, FullHistory, Reaches, TimeWindow, Window, reach_us

NamedOrders = Mapping[str, Sequence[str]]
"""By stream, the other streams in the order in which its tuples meet them, as the query calls them."""


@dataclass(frozen=True, slots=True)
class System:
    """An operator that joins all streams at once, as sentences about plans name it.

    Args:
        operator: its name.
        subject: what it is called.
        pieces: what it keeps of a window.
        at_once: a node has all that its partial results meet, so all rounds are one stage.
    """

    operator: str
    subject: str
    pieces: str
    at_once: bool = False


RING = System("ring", "a ring", "slices")
ALIGNED = System("aligned", "aligned tuple routing", "segments", at_once=True)
COORDINATED = System("coordinated", "coordinated tuple routing", "segments")


def tree_plan(plan: Plan) -> Plan:
    """The same query as joins of two; a plan that is one stays as it is."""
    return plan.as_tree if isinstance(plan, Cascade) and plan.as_tree is not None else plan


def rounds_refusal(plan: Plan, system: System = RING) -> str | None:
    """Why an operator cannot run a plan in rounds; None where it can."""
    subject = system.subject
    if plan.shared is not None:
        return f"{subject} runs one query a job; run each of these as a job of its own, with query:"
    if asof_stages(plan):
        return f"{subject} gives every match, and ASOF JOIN gives each row one partner at most; leave operator.name out"
    if plan.ordering is not Ordering.NONE:
        return f"results of {subject} leave in no order; leave operator.ordering out"
    if plan.main is not None:
        return f"each round of {subject} has a main condition of its own; leave operator.main out"
    if plan.relations:
        return f"{subject} is of streams alone; leave operator.name out for a query with relations"
    for stage in tree_plan(plan).stages:
        if (kind := stage.plan.queries[0].kind) is not JoinKind.INNER:
            return (
                f"{subject} joins all streams at once and has no {kind} JOIN; choose biclique, matrix or splitjoin, "
                "which join two at a time"
            )
    if isinstance(plan.window, FullHistory):
        return (
            f"{subject} keeps {system.pieces} of a window, and this query has none; add WITHIN, such as WITHIN 10 "
            "MINUTES, or choose biclique, matrix or splitjoin"
        )
    if isinstance(plan.window, CountWindow):
        return (
            f"{system.pieces} of {subject} are spans of time, and this is a window of rows; write WITHIN 10 SECONDS, "
            "or choose another operator"
        )
    if len(plan.streams) < 2:
        return f"{subject} joins two streams or more"
    return None


def in_rounds(plan: Plan, system: System = RING, orders: NamedOrders | None = None) -> Cascade:
    """A plan of joins as rounds, and its groups behind them.

    Args:
        orders: for some of the streams or for all; others have the default order.
    Raises:
        InputError: an order is none.
        UnsupportedError: what `rounds_refusal` says.
    """
    plan = tree_plan(plan)
    if reason := rounds_refusal(plan, system):
        raise UnsupportedError(reason, field="operator.name")
    assert isinstance(plan, JoinPlan | Cascade)
    names = plan.names
    groups = plan.groups
    keyed = groups is None and plan.queries[0].keyed
    conditions = _conditions(plan)
    reaches = _reaches(plan.window, names)
    numbered = _numbered(orders or {}, names)
    every = tuple(
        numbered.get(origin) or default_order(origin, names, conditions, reaches.spans_us)
        for origin in range(len(names))
    )
    common = partial(
        JoinPlan, index=plan.index, archive_period_us=plan.archive_period_us, predicates=plan.predicates,
        text=plan.queries[0].text,
    )  # fmt: skip
    key = written_key(plan) if keyed else None
    select = _select(plan)
    steps = tuple(
        _steps(plan.streams, names, conditions, select, key, reaches, common, (origin, *order))
        for origin, order in enumerate(every)
    )
    found = RoundPlan(0, every, steps, reaches.spans_us, bool(numbered), system.operator)
    found = found.answering(keyed=keyed, feeds=groups is not None)
    stages = _stages(found, names, conditions, system.at_once)
    if groups is not None:
        flow = replace(groups.streams[0], columns=found.output)
        stages.append(Stage(len(stages), (Flow(len(stages) - 1),), replace(groups, streams=(flow,))))
    window = reaches if len(set(reaches.spans_us)) > 1 else TimeWindow(reaches.spans_us[0], reaches.spans_us[0])
    return Cascade(
        plan.streams, names, tuple(stages), window, plan.queries[0].text, select, _left_deep(range(len(names))),
        conditions, inputs=names, as_tree=plan,
    )  # fmt: skip


def _stages(first: RoundPlan, names: Sequence[str], conditions: Sequence[Expression], at_once: bool) -> list[Stage]:
    """A stage for each round, or one for all of them."""
    streams = tuple(range(len(names)))
    if at_once:
        return [Stage(0, streams, replace(first, at_once=True), tuple(conditions))]
    return [
        Stage(
            number,
            (Flow(number - 1),) if number else streams,
            replace(first, number=number),
            _checked(number, first.orders, names, conditions),
            keeps=0 if number else None,
        )
        for number in range(len(names) - 1)
    ]


def default_order(
    origin: int, names: Sequence[str], conditions: Sequence[Expression], reaches_us: Sequence[int]
) -> tuple[int, ...]:
    """In which order tuples of a stream meet the others: first what an equality leads to, then what any condition does.

    Among equals the one with the shorter reach comes first, of which less is stored, and then as in FROM. The paper
    takes the order from elsewhere (section 2); rates and selectivities are not known before a job runs.
    """
    order = [origin]
    left = [number for number in range(len(names)) if number != origin]
    while left:
        there = {names[number] for number in order}
        following = min(left, key=lambda number: (_lead(names[number], there, conditions), reaches_us[number], number))
        left.remove(following)
        order.append(following)
    return tuple(order[1:])


def _lead(name: str, there: set[str], conditions: Sequence[Expression]) -> int:
    """How a stream is found from those that are there: 0 by an equality, 1 by any condition, 2 by none."""
    reads = [(one, streams_of(one)) for one in conditions]
    leading = [one for one, read in reads if name in read and len(read) > 1 and read <= there | {name}]
    if any(_is_equality(one, name) for one in leading):
        return 0
    return 1 if leading else 2


def _is_equality(condition: Expression, name: str) -> bool:
    if not isinstance(condition, Call) or condition.function not in ("eq", "same"):
        return False
    sides = [streams_of(arg) for arg in condition.args[:2]]
    return {name} in sides and any(name not in side for side in sides)


def _checked(
    number: int, orders: Sequence[Sequence[int]], names: Sequence[str], conditions: Sequence[Expression]
) -> tuple[Expression, ...]:
    """The conditions that a round checks for one origin at least; the first one, also those of a stream alone."""
    found = set()
    for origin, order in enumerate(orders):
        before, there = ({names[one] for one in (origin, *order[:met])} for met in (number, number + 1))
        found |= {
            place
            for place, read in enumerate(map(streams_of, conditions))
            if read <= there and (number == 0 or not read <= before)
        }
    return tuple(condition for place, condition in enumerate(conditions) if place in found)


def _steps(
    streams: Sequence[StreamSchema],
    names: Sequence[str],
    conditions: Sequence[Expression],
    select: Sequence[tuple[str, Expression]],
    key: ResultKey | None,
    reaches: Reaches,
    common: partial[JoinPlan],
    order: Sequence[int],
) -> tuple[JoinPlan, ...]:
    """The joins of an origin's rounds."""
    plan = cascade(streams, names, conditions, select, reaches, common, tree=_left_deep(order), key=key)
    joins = [stage.plan for stage in plan.stages]
    assert all(isinstance(join, JoinPlan) for join in joins)
    return tuple(join for join in joins if isinstance(join, JoinPlan))


def _left_deep(order: Sequence[int]) -> Tree:
    tree: Tree = order[0]
    for number in order[1:]:
        tree = Join(tree, number)
    return tree


def _conditions(plan: Plan) -> tuple[Expression, ...]:
    if isinstance(plan, Cascade):
        if plan.where:
            return plan.where
        # Of two streams with groups, what the only join checks; of more, nothing is checked at all.
        return tuple(condition for stage in plan.stages for condition in stage.conditions)
    predicate = plan.predicate
    parts = (*predicate.selections, predicate.whole)
    return tuple(part for whole in parts if whole != TRUE for part in conjuncts(whole))


def _select(plan: Plan) -> tuple[tuple[str, Expression], ...]:
    if isinstance(plan, Cascade):
        return plan.select
    (query,) = plan.queries
    return query.select


def _reaches(window: Window | Reaches, names: Sequence[str]) -> Reaches:
    """The reach of every stream."""
    assert not isinstance(window, CountWindow | FullHistory)
    if isinstance(window, Reaches):
        return window
    if len(names) == 2:
        return Reaches(tuple(names), (window.after_us, window.before_us))
    return Reaches(tuple(names), tuple(reach_us(window, number) for number in range(len(names))))


def _numbered(orders: NamedOrders, names: Sequence[str]) -> dict[int, tuple[int, ...]]:
    """Orders by the numbers of their streams.

    Raises:
        InputError: a stream is unknown, missing or there twice.
    """
    known = {name.lower(): number for number, name in enumerate(names)}

    def number_of(name: str, field: str) -> int:
        if name.lower() not in known:
            raise InputError(f"the query has no stream {name}; it reads {', '.join(names)}", field=field)
        return known[name.lower()]

    numbered: dict[int, tuple[int, ...]] = {}
    for name, order in orders.items():
        field = f"operator.orders.{name}"
        origin = number_of(name, field)
        found = tuple(number_of(one, field) for one in order)
        others = [number for number in range(len(names)) if number != origin]
        if origin in numbered or sorted(found) != others:
            wanted = ", ".join(names[number] for number in others)
            raise InputError(
                f"an order for {names[origin]} has each other stream once, such as [{wanted}]; this is "
                f"[{', '.join(order)}]",
                field=field,
            )
        numbered[origin] = found
    return numbered
