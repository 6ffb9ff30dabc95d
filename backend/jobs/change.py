"""What a change of a job means for what it has joined so far."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from streamjoin.errors import QueryError
from streamjoin.operators.registry import AUTO
from streamjoin.spec.changes import keeps_state

KEEPS: Final = "keeps_state"
"""The job restarts at a batch boundary and goes on where it was."""
ANEW: Final = "starts_anew"
"""The state, or the results kept so far, belong to another join: the job begins again without them."""

_PUNCTUATE = re.compile(r"streams\.\w+\.punctuate(\..*)?")
_BY_PERIOD = "results.snapshot.punctuation"
_OPERATOR, _NAME = "operator.", "operator.name"
_ORDERING, _UNORDERED = "operator.ordering", "none"
_QUOTES = "'\"`$"


@dataclass(frozen=True, slots=True)
class Change:
    """One field that differs; `before` or `after` is None where the field is only in one of the two.

    `reason` says why it begins anew, where the same change of another job would keep its state.
    """

    field: str
    before: Any
    after: Any
    effect: str
    reason: str | None = None


def diff(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """What differs between two definitions of a job, by field.

    Args:
        before, after: `{query, queries, streams, relations, operator, results, run}`.
    """
    old, new = ({_NAME: AUTO, **dict(_fields(definition))} for definition in (before, after))
    # A value that is not a name is refused when the definition is bound.
    operator = new[_NAME] if isinstance(new[_NAME], str) else AUTO
    # What is kept by period stays so, and by periods of one kind and length.
    by_period = bool(old.get(_BY_PERIOD)) or bool(new.get(_BY_PERIOD))
    changes = []
    for field in sorted(old.keys() | new.keys()):
        if old.get(field) != new.get(field):
            keeps = (keeps_state(field, operator) and not (by_period and _PUNCTUATE.fullmatch(field))) or _alike(
                field, old.get(field), new.get(field)
            )
            changes.append(Change(field, old.get(field), new.get(field), KEEPS if keeps else ANEW))
    return changes


def starts_anew(changes: list[Change]) -> bool:
    """Whether any of them does."""
    return any(change.effect == ANEW for change in changes)


def queries_anew(changes: list[Change], reason: str) -> list[Change]:
    """The same changes for a job that stores too little for a query that starts, and so begins anew with it."""
    return _anew(changes, reason, "queries.")


def all_anew(changes: list[Change], reason: str, *, by_operator: bool) -> list[Change]:
    """The same changes for a job whose checkpoint does not fit it, and which begins anew with any of them.

    Args:
        by_operator: the operator is all that does not fit, so if it is changed, only that is the reason.
    """
    is_changed = any(change.field.startswith(_OPERATOR) for change in changes)
    return _anew(changes, reason, _OPERATOR if by_operator and is_changed else "")


def _anew(changes: list[Change], reason: str, section: str) -> list[Change]:
    return [
        replace(change, effect=ANEW, reason=reason) if change.field.startswith(section) else change
        for change in changes
    ]


def _fields(value: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, Any]]:
    for name, inner in value.items():
        field = f"{place}.{name}" if place else str(name)
        if isinstance(inner, Mapping) and inner:
            yield from _fields(inner, field)
        elif inner is not None and inner != {}:
            yield field, inner


def _alike(field: str, before: Any, after: Any) -> bool:
    """Whether two values ask the same of the state."""
    further = field.startswith("queries.")
    if field == "query" or further:
        if before is None:
            return further
        # A checkpoint compares the text with its comments, but takes runs of blanks for one, even inside of quotes.
        return all(read(str(before)) == read(str(after)) for read in (_words, str.split))
    if field == _BY_PERIOD:
        return bool(before) == bool(after)
    # Stored tuples have their sequence numbers or have them not; what the order is may change.
    return field == _ORDERING and _UNORDERED not in (before or _UNORDERED, after or _UNORDERED)


def _words(text: str) -> list[str]:
    """A query's words as written, without comments and what is between them; one that cannot be read is one word."""
    from streamjoin.query.tokens import read_words  # the parser takes its time to load

    try:
        read = read_words(text)
    except QueryError:
        return [text]
    # Some keywords are one token with blanks in it, such as GROUP BY; those in quotes are the query's own.
    written = (read.text(token) for token in read.tokens)
    return [word if word[-1] in _QUOTES else " ".join(word.split()) for word in written]
