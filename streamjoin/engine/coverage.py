"""Whether what a job stores is all that a query asks for which is to be started over it.

Stored is what the job's queries so far select, with the columns that they keep, for as long as the longest of them asks
for. What was never kept cannot be found again, so a query that asks for more is refused by name. It may ask for more
than others select if nothing was left out: then all that came is stored.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamjoin.engine.operator import Operator
from streamjoin.engine.starting import start_of
from streamjoin.errors import QueriesStayError
from streamjoin.flow.punctuation import StreamClock
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.sharing import SharedJoin, key_text, named
from streamjoin.plan.window import CountWindow, FullHistory, R, S, TimeWindow, Window

_WAY_OUT = (
    "run it as a job of its own, or let the job begin anew: "
    "with start_anew on the platform, with another run.checkpoint in a join file"
)


def all_stored(kept: tuple[bool, bool], clocks: Sequence[StreamClock] | None) -> tuple[bool, bool] | None:
    """Whether all tuples of R and of S so far are stored, as long as the window asks for them; None where none came.

    Args:
        kept: see `Recorded`.
        clocks: R's and S's; None before the first batch.
    """
    if clocks is None or not any(clock.rows for clock in clocks):
        return None
    r, s = (kept[side] and clock.rows == clock.routed + clock.shed for side, clock in enumerate(clocks))
    return r, s


def check_starts(
    plan: SharedJoin, earlier: SharedJoin, operator: Operator, all_stored: tuple[bool, bool] | None
) -> None:
    """Make sure that queries can be started over the tuples that a job stores.

    Args:
        plan: the queries from now on.
        earlier: those so far, with what lasts of the job.
        all_stored: see the function of this name.
    Raises:
        QueriesStayError: one cannot; `field` is that query.
    """
    for name, query in zip(plan.names_of_queries, plan.queries, strict=True):
        if name not in earlier.names_of_queries and (reason := _refusal(query, earlier, operator, all_stored)):
            raise QueriesStayError(f"{reason}; {_WAY_OUT}", field=f"queries.{name}.query")


def _refusal(
    query: JoinPlan, earlier: SharedJoin, operator: Operator, all_stored: tuple[bool, bool] | None
) -> str | None:
    equalities = {key_text(named(earlier.names, query, found)) for found in query.predicate.equalities}
    for text in earlier.lasting.equalities if earlier.lasting else ():
        if text not in equalities:
            return f"the job routes its tuples by {text}, which is not an equality of this query"
    if all_stored is None:
        return None
    if not _reaches(query.window, earlier.window):
        return f"this is {query.window}, and tuples are stored for {earlier.window}"
    for side in (R, S):
        stream = query.streams[side].name
        kept = operator.stored_columns(earlier, side)
        start = start_of(query, earlier, side)
        if missing := sorted({*start.reads, *operator.stored_columns(query, side)} - set(kept)):
            have = ", ".join(kept) or "no column"
            return f"this reads {', '.join(missing)} of {stream}, and of stored tuples there is {have}"
        if start.base is None and not all_stored[side]:
            return (
                f"this may ask for tuples of {stream} that no query so far can match anything of, and so are not stored"
            )
    return None


def _reaches(window: Window, kept: Window) -> bool:
    match window, kept:
        case TimeWindow(), TimeWindow():
            return all(window.keeps_us(side) <= kept.keeps_us(side) for side in (R, S))
        case CountWindow(rows), CountWindow(most):
            return rows <= most
        case _, FullHistory():
            return not isinstance(window, CountWindow)
    return False
