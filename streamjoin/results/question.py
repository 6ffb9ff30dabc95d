"""One-time questions to the results of a job: by time, by key, with a filter, a limit and a cursor."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from streamjoin.errors import InputError
from streamjoin.plan.expression import Expression

LIMIT_MAX = 10_000_000


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. Ranges include both ends; None leaves an end open.

    Args:
        from_us, to_us: the result's time: the latest event time among its tuples.
        key, key_from, key_to: the result's key: R's side of the main predicate.
        select: columns, in order; None for all.
        where: a condition over the result columns.
        limit: rows at most.
        cursor: where an earlier answer with the same question ended.
        after, upto: only snapshots with after < id <= upto.
        as_of: of groups that change, what they were: a snapshot's id, or a time, in us.
        history: every row of groups that change, and not the last one of each, as with `after`.
        bound: what `where` means, where whoever asks has bound it already.
    """

    from_us: int | None = None
    to_us: int | None = None
    key: Any = None
    key_from: Any = None
    key_to: Any = None
    select: tuple[str, ...] | None = None
    where: str | None = None
    limit: int | None = None
    cursor: str | None = None
    after: str | None = None
    upto: str | None = None
    as_of: str | int | None = None
    history: bool = False
    bound: Expression | None = field(default=None, compare=False, repr=False)


def check(question: Question) -> None:
    if question.key is not None and (question.key_from is not None or question.key_to is not None):
        raise InputError("ask for a key or for a range of keys, not for both")
    if question.from_us is not None and question.to_us is not None and question.from_us > question.to_us:
        raise InputError("the time range is empty: it ends before it begins; swap the two")
    if question.as_of is not None and (question.history or question.after or question.upto):
        raise InputError("ask for groups as of a moment, or for the history of their changes, not for both")
    if question.limit is not None and not 1 <= question.limit <= LIMIT_MAX:
        raise InputError(f"a limit is between 1 and {LIMIT_MAX:,}")
