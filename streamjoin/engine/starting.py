"""What a query that starts over stored tuples can take over from the queries that they are stored for.

Tuples of an earlier query that asks for no more include all of the new one's, and where its index has the same cells or
keys they need not be computed again: the columns that they are computed from are often not stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streamjoin.index.layout import IndexLayout, layout_of
from streamjoin.plan.expression import Expression, columns_of, conjuncts
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.predicate import keys_of
from streamjoin.plan.sharing import SharedJoin, renamed


@dataclass(frozen=True, slots=True)
class Start:
    """How a query starts on one side.

    Args:
        base: the number of an earlier query that is for all of its tuples; None where no query is.
        selection: the conjuncts that these must still fulfil.
        keys: the keys of which none may be NULL.
        cells, order: the number of an earlier query whose index has the same cells, and the same keys; None where they
            are computed, or where there are none.
        reads: the columns that all this reads.
    """

    base: int | None
    selection: tuple[Expression, ...]
    keys: tuple[Expression, ...]
    cells: int | None
    order: int | None
    reads: frozenset[str]


def start_of(query: JoinPlan, earlier: SharedJoin, side: int) -> Start:
    """How `query` starts over the tuples of a side that `earlier` stores."""
    called = [{one.names[side]: query.names[side]} for one in earlier.queries]
    asked = asked_of(query, side).keys()
    wider = {
        number: known
        for number, one in enumerate(earlier.queries)
        if (known := {(what, renamed(part, called[number])) for what, part in asked_of(one, side)}) <= asked
    }
    base = max(wider, key=lambda number: len(wider[number]), default=None)
    known = wider[base] if base is not None else set()
    rest = [(what, part) for what, part in asked_of(query, side) if (what, part) not in known]
    selection = tuple(part for what, part in rest if what == _TRUE)
    keys = tuple(part for what, part in rest if what == _THERE)
    computed = [*selection, *keys]
    donors: list[int | None] = []
    for parts_of in (_cells, _order):
        parts = parts_of(layout_of(query, side), {query.names[side]: query.names[side]})
        donor = None
        if parts:
            same = (one for one in wider if parts_of(layout_of(earlier.queries[one], side), called[one]) == parts)
            donor = next(same, None)
            computed += parts[1] if donor is None else ()
        donors.append(donor)
    reads = frozenset(name for expression in computed for _, name in columns_of(expression))
    return Start(base, selection, keys, donors[0], donors[1], reads)


_TRUE, _THERE = "is true", "is not NULL"

Asked = tuple[str, Expression]
"""What is asked of an expression, that it is true or that it is not NULL, and the expression."""


def asked_of(query: JoinPlan, side: int) -> dict[Asked, None]:
    """What must be true of a tuple of a side for the query, and what must not be NULL; each once, in order."""
    conditions = (query.predicate.selections[side], query.predicate.eligible[side])
    parts = [(_TRUE, part) for condition in conditions for part in conjuncts(condition)]
    return dict.fromkeys([*parts, *((_THERE, key) for key in keys_of(query.predicate, side))])


Parts = tuple[object, tuple[Expression, ...]]
"""By which two layouts have the same cells or keys, and what these are computed from."""


def _cells(layout: IndexLayout, called: Mapping[str, str]) -> Parts | None:
    if layout.equal:
        return "hash", tuple(renamed(stored, called) for stored, _ in layout.equal)
    return (layout.grid.width, (renamed(layout.grid.band.keys[0], called),)) if layout.grid else None


def _order(layout: IndexLayout, called: Mapping[str, str]) -> Parts | None:
    return ("key", (renamed(layout.key.keys[0], called),)) if layout.key else None
