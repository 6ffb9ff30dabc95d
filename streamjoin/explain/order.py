"""The order in which `auto` joins three streams and more: chosen by what samples predict, before the first start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from streamjoin.errors import InputError
from streamjoin.explain.candidates import Candidates, Way, candidates, named_tree, sides_in_order
from streamjoin.explain.sampling import Look, look
from streamjoin.explain.several import refusal
from streamjoin.operators import registry
from streamjoin.operators.ordering import Candidate, Chosen, Known, choice
from streamjoin.spec.changed import in_order
from streamjoin.spec.job import is_used
from streamjoin.spec.order import Order, fits, is_left_open
from streamjoin.spec.prepare import Bound

TREES_TRIED = 4
"""The cheapest trees, among which one is that all knobs are for."""


def ordered(bound: Bound, looked: Look | None = None) -> Bound:
    """The join in the order in which it is to run.

    Of a job that was started before, that is what its checkpoint says, and `bind` has done it.

    Args:
        looked: the first rows of its streams, if they are there already.
    """
    if not chooses(bound):
        return bound
    assert bound.plan.tree is not None
    written = sides_in_order(bound.plan.tree)
    looked = looked or look(bound)
    statistics = looked.statistics()
    of = None
    if statistics is not None:
        of = candidates(bound.plan, looked, statistics, bound.job().operators, bound.file.slots)
        of = replace(of, written=written)
    ready = dict(_ready(bound, of)) if of is not None else {}
    tried = [_candidate(number, way) for number, (way, _) in ready.items()]
    known = Known(of.rates if of else "", tried, "" if of else looked.unknown_words)
    found = choice(known)
    number = found.number
    if number is None:
        number = next((number for number, (way, _) in ready.items() if way.is_written), None)
    if number is None:
        return in_order(bound, Order(bound.operator, named_tree(written, bound.plan.names), found.reason))
    way, order = ready[number]
    return in_order(bound, _because(order, way, found, of))


def chooses(bound: Bound) -> bool:
    """Whether `auto` chooses the order now: it is left open, there are several, and no checkpoint has one."""
    return (
        is_left_open(bound.file)
        and bound.order is None
        and not registry.is_sparks(bound.operator)
        and fits(bound.plan)
        and not is_used(bound.file.checkpoint)
    )


def _ready(bound: Bound, of: Candidates) -> Iterator[tuple[int, tuple[Way, Order]]]:
    """The ways that can run with the knobs of the join file."""
    for number, way in enumerate(of.ways(TREES_TRIED, "")):
        name = way.operator.get("name", bound.operator)
        if way.is_baseline:
            continue  # where one node has all the work at a time, less work is no faster
        if way.numbered is None and (bound.file.operator.knobs or bound.file.operator.index != "auto"):
            continue  # which are said of joins of two
        order = Order(name, way.operator.get("tree"), "", way.operator.get("orders", {}))
        try:
            in_order(bound, order)
        except InputError:
            continue  # such as an index that not every join of this tree can have
        yield number, (way, order)


def _candidate(number: int, way: Way) -> Candidate:
    return Candidate(number, way.plan, way.cost.work_s, way.is_written, way.numbered is not None)


def _because(order: Order, way: Way, found: Chosen, of: Candidates | None) -> Order:
    costs = None
    if of is not None:
        of = of.in_orders(order.orders)
        costs = {**of.to_json(), "chosen": of.ring_name if way.numbered is None else way.plan}
    return Order(order.operator, order.tree, found.reason, order.orders, costs)


def order_words(bound: Bound) -> str:
    """Who says in which order three streams and more are joined, and why."""
    plan = bound.plan
    if len(plan.streams) < 3:
        return ""
    if bound.order is not None:
        return f"{plan.shape if plan.rounds is None else 'a ring'}, chosen by auto: {bound.order.reason}"
    if (reason := refusal(plan)) is not None:
        return f"as it is written: {reason}"
    if is_left_open(bound.file):
        return "that of FROM, with which the checkpoint was begun"
    return (
        "as the join file says" if bound.file.operator.tree or plan.rounds else "that of FROM, as the operator is named"
    )
