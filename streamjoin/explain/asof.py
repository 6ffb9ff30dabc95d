"""What an as-of join gives and how, for people."""

from __future__ import annotations

from streamjoin.plan.expression import TRUE
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.window import S, TimeWindow, format_us


def asof_words(plan: JoinPlan) -> str:
    """What an as-of join gives."""
    left, right = plan.names
    assert plan.asof is not None
    words = f"each row of {left} with the latest row of {right} that is {'older' if plan.asof.older else 'not newer'}"
    if isinstance(plan.window, TimeWindow):
        words += (
            f", and by {format_us(plan.window.before_us)} at most"
            if plan.asof.older
            else (f", and at most {format_us(plan.window.before_us)} older")
        )
    return f"{words}, or with none" if plan.asof.keeps else words


def ends_words(plan: JoinPlan) -> str:
    """What rows of S that end their key do."""
    left, right = plan.names
    stream = plan.streams[S]
    return (
        f"a row of {right} with nothing but {', '.join(stream.key)} and {stream.time} ends that key: rows of {left} "
        f"after it get none, until {right} has another of the key"
    )


def asof_lines(plan: JoinPlan, output: tuple[str, str], kept: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What `explain` says of it, with what it gives and what intake lets through."""
    left, right = plan.names
    keys = " AND ".join(str(equality.source) for equality in plan.predicate.equalities)
    wait = f"rows of {left} wait until the watermark of {right} has passed them"
    lines = [("join", asof_words(plan)), output, *kept, ("keys", keys), ("wait", wait)]
    if plan.asof is not None and plan.asof.values:
        lines.append(("ends", ends_words(plan)))
    return [*lines, ("then check", str(plan.filter))] if plan.filter != TRUE else lines
