"""What an as-of join gives and how, for people."""

from __future__ import annotations

from collections.abc import Sequence

from streamjoin.plan.expression import TRUE, Expression
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.window import S, TimeWindow, format_us

Lines = list[tuple[str, str]]


def asof_words(plan: JoinPlan, names: Sequence[str] = ()) -> str:
    """What an as-of join gives.

    Args:
        names: what people call its inputs; as the plan does unless given.
    """
    left, right = names or plan.names
    assert plan.asof is not None
    words = f"each row of {left} with the latest row of {right} that is {'older' if plan.asof.older else 'not newer'}"
    if isinstance(plan.window, TimeWindow):
        words += (
            f", and by {format_us(plan.window.before_us)} at most"
            if plan.asof.older
            else (f", and at most {format_us(plan.window.before_us)} older")
        )
    words += "" if plan.asof.at is None else f", by the time of {plan.asof.at.name.rpartition('.')[0]}"
    return f"{words}, or with none" if plan.asof.keeps else words


def _kept_lines(plan: JoinPlan, names: Sequence[str]) -> Lines:
    """When rows come out, and what rows of S do that may end their key."""
    left, right = names
    lines = [("wait", f"rows of {left} wait until the watermark of {right} has passed them")]
    if plan.asof is not None and plan.asof.values:
        stream = plan.streams[S]
        ends = f"a row of {right} with nothing but {', '.join(stream.key)} and {stream.time} ends that key"
        lines.append(("ends", f"{ends}: rows of {left} after it get none, until {right} has another of the key"))
    return lines


def asof_lines(plan: JoinPlan, output: tuple[str, str], kept: Lines) -> Lines:
    """What `explain` says of it, with what it gives and what intake lets through."""
    keys = " AND ".join(str(equality.source) for equality in plan.predicate.equalities)
    lines = [("join", asof_words(plan)), output, *kept, ("keys", keys), *_kept_lines(plan, plan.names)]
    return [*lines, ("then check", str(plan.filter))] if plan.filter != TRUE else lines


def stage_as_of(
    plan: JoinPlan, names: Sequence[str], keys: Sequence[Expression], filtered: Sequence[Expression]
) -> Lines:
    """What `explain` says of a stage, by the names that people know its inputs by.

    Args:
        keys, filtered: the equalities, and what rows that come out must fulfil, in the names of the query.
    """
    lines = [("gives", asof_words(plan, names)), ("keys", " AND ".join(map(str, keys))), *_kept_lines(plan, names)]
    return [*lines, ("then keep", " AND ".join(map(str, filtered)))] if filtered else lines
