"""How a query is run in rounds, for people."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from streamjoin.explain.figures import bytes_text
from streamjoin.operators.costs import StreamStatistics
from streamjoin.operators.rounds.views import views_of
from streamjoin.plan.expression import Expression
from streamjoin.plan.rounds import RoundPlan
from streamjoin.plan.stages import Plan

Lines = list[tuple[str, str]]


def round_lines(
    plan: RoundPlan, names: Sequence[str], conditions: Sequence[Expression], selections: Collection[str]
) -> Lines:
    """What `explain` prints of a round.

    Args:
        conditions: what it checks.
        selections: those of them, as text, that intake checks.
    """
    meets = ", ".join(f"{name} with {names[met]}" for name, met in zip(_reached(plan, names), plan.meets, strict=True))
    joined = [str(condition) for condition in conditions if str(condition) not in selections]
    lines = [] if plan.at_once else [("meet", meets)]
    lines += [("where", " AND ".join(joined) or "nothing: all in reach")]
    if not plan.is_first:
        return lines
    asked = "as the join file says" if plan.given_orders else "by equalities first, then any condition, shorter reach"
    for origin, order in enumerate(plan.orders):
        following = ", then ".join(names[stream] for stream in order)
        lines.append(
            ("" if origin else "order", f"{names[origin]} meets {following}" + ("" if origin else f" ({asked})"))
        )
    if plan.operator == "ring":
        lines.append(("in flight", "all rows of a batch, so that PSP's interleaved processing has nothing to add"))
    for stream, words in enumerate(stored_words(plan)):
        lines.append(("" if stream else "index", f"{names[stream]} by {words}"))
    return lines


def stored_words(plan: RoundPlan) -> list[str]:
    """By stream, how what is stored of it is found."""
    return [
        " and by ".join(str(layout) for layout in views_of(plan, stream).layouts) for stream in range(len(plan.orders))
    ]


def _reached(plan: RoundPlan, names: Sequence[str]) -> list[str]:
    """By origin, what its partial results have met before this round."""
    return [
        f"({', '.join(names[one] for one in sorted((origin, *order[: plan.number])))})"
        if plan.number
        else names[origin]
        for origin, order in enumerate(plan.orders)
    ]


def memory_lines(plan: Plan, statistics: Sequence[StreamStatistics] | None) -> Lines:
    """What a ring will store, where the streams could be sampled; nothing of any other plan."""
    if statistics is None or plan.rounds is None or plan.rounds.operator != "ring":
        return []
    size = sum(known.stored * known.tuple_bytes for known in statistics)
    return [("memory", f"about {bytes_text(size)}: each row of a stream once, and nothing of what is found on the way")]
