"""What all resources of the API have in common: times, pages, versions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, Protocol, TypeVar
from urllib.parse import quote, urlencode

from fastapi import Header, Query, Request, Response
from pydantic import BaseModel, ConfigDict
from sqlalchemy import Select
from sqlalchemy.orm import InstrumentedAttribute, Session

from backend.given import Given
from backend.paths import path_of
from backend.problems import Problem

T = TypeVar("T")
LIMIT_MAX = 200
TRIES = 5
"""How often a change is made anew because somebody else changed the same thing first."""


class Body(Given):
    """A request's body."""


def with_example(example: dict[str, Any]) -> ConfigDict:
    """The configuration of a body whose documentation shows this example; tests send it."""
    return ConfigDict(json_schema_extra={"examples": [example]})


class Page(BaseModel, Generic[T]):
    """A part of a list, newest first. `has_more` tells whether to ask again with `starting_after` the last id."""

    data: list[T]
    has_more: bool


Limit = Annotated[int, Query(ge=1, le=LIMIT_MAX, description="How many at most.")]
StartingAfter = Annotated[
    str | None, Query(max_length=100, description="The last id of the page before; none for the first page.")
]
IfMatch = Annotated[
    str | None, Header(description="The version that is to be changed, as its ETag said, or its number in quotes.")
]


def iso(us: int | None) -> str | None:
    """A time of the catalog as ISO 8601 in UTC."""
    if us is None:
        return None
    return datetime.fromtimestamp(us / 1e6, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def page_of(
    session: Session,
    rows: Select[Any],
    id: InstrumentedAttribute[str],
    limit: int,
    starting_after: str | None,
    shape: Callable[[Any], T],
) -> Page[T]:
    """One page of `rows`, newest first; ids sort by when they were made.

    Cost: one index range.
    """
    if starting_after is not None:
        rows = rows.where(id < starting_after)
    found = session.scalars(rows.order_by(id.desc()).limit(limit + 1)).all()
    return Page(data=[shape(row) for row in found[:limit]], has_more=len(found) > limit)


def link_next(request: Request, response: Response, has_more: bool, ids: Sequence[str]) -> None:
    """Name the next page in a Link header."""
    if has_more and ids:
        asked = [pair for pair in request.query_params.multi_items() if pair[0] != "starting_after"]
        path = quote(request.scope.get("root_path", "") + path_of(request.scope), safe="/:")
        query = urlencode([*asked, ("starting_after", ids[-1])])
        response.headers["Link"] = f'<{path}?{query}>; rel="next"'


class Versioned(Protocol):
    """A resource whose version rises with every change."""

    id: Any
    version: Any


def changes_always(row: Versioned, what: str) -> Problem:
    """The problem when others were faster `TRIES` times in a row."""
    detail = f"{what} is changed again and again meanwhile; read it, and change it once others are done"
    return Problem("changed_meanwhile.version_differs", detail, params={"version": row.version})


def check_version_if_given(if_match: str | None, row: Versioned, what: str) -> None:
    """What is removed, started or stopped may say which version it was seen at.

    Raises:
        Problem: it says another.
    """
    if if_match is not None:
        check_version(if_match, row, what)


def etag(row: Versioned) -> str:
    """The ETag of a version, which is nothing else's: another resource may get the same name, and has such versions."""
    return f'"{row.id}-{row.version}"'


def check_version(if_match: str | None, row: Versioned, what: str) -> None:
    """A change must name the version that it changes: by its ETag, or by its number alone.

    Raises:
        Problem: it names none, or another.
    """
    if if_match is None:
        raise Problem(
            "precondition_required.version_missing",
            f"say which version of {what} you change: send If-Match with its ETag, which is now {etag(row)}",
            params={"version": row.version},
        )
    if if_match.strip() not in ("*", etag(row), f'"{row.version}"'):
        raise Problem(
            "changed_meanwhile.version_differs",
            f"{what} is now at version {row.version}, and {if_match} was to be changed; read it again",
            params={"version": row.version},
            headers={"ETag": etag(row)},
        )
