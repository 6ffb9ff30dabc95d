"""Conditions on results: bound once per answer, in a process of their own if they are long."""

from __future__ import annotations

import pyarrow as pa

from backend.apart import here_or_apart
from backend.problems import from_engine
from streamjoin.errors import InputError
from streamjoin.plan.expression import Expression
from streamjoin.results.description import Description
from streamjoin.results.sink import RESULTS


def bound_condition(who: str | None, where: str | None, description: Description) -> Expression | None:
    """What a condition on results means; None without one.

    Args:
        who: for whom.
    Raises:
        Problem: it cannot be bound; names the condition, and the place in it if known. Or too many are being bound.
    Cost: a process for a long one, because binding holds Python's lock for up to a second.
    """
    if where is None:
        return None
    try:
        return here_or_apart(who, len(where), _bound, where, description.schema)
    except InputError as wrong:
        raise from_engine(wrong, "/where") from None


def parts_of(bound: Expression | None) -> int:
    """How many parts of a condition are evaluated. A shared part counts each time, because it is evaluated each time.

    Args:
        bound: None for no condition.
    """
    if bound is None:
        return 0
    from streamjoin.query.sizes import Sizes  # here, as `bind_condition`

    return Sizes().of(bound)


def _bound(where: str, stored: pa.Schema) -> Expression:
    from streamjoin.query import bind_condition  # here, since most ask without a condition

    return bind_condition(where, stored, RESULTS)
