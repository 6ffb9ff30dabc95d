"""Errors as RFC 9457 problem documents: a stable code, one sentence, and where in the request the mistake is."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from sqlalchemy.exc import InterfaceError, OperationalError, TimeoutError
from starlette.exceptions import HTTPException
from starlette.types import Message, Scope, Send

from backend.subcodes import SUBCODES
from streamjoin.errors import InputError, QueryError, StreamJoinError

MEDIA_TYPE = "application/problem+json"
STATE: Final = "problem"
"""Where in a request's state the problem is kept that it was answered with."""
TYPES = "/api/v1/problems/"
"""Where a problem's type is explained, on the same server: its code follows."""

CATALOG_IS_AWAY: Final = (OperationalError, InterfaceError, TimeoutError)
"""What a catalog raises that does not answer."""

_log = logging.getLogger("streamjoin.backend")


Param = str | int | float | bool


class Place(BaseModel):
    """One mistake in a request.

    Args:
        pointer: JSON pointer into the body, or the name of a parameter or header.
        span: where in a query text: `line`, `column`, `end_line`, `end_column`, as `streamjoin.errors.Span`.
    """

    pointer: str | None = None
    detail: str
    span: dict[str, int] | None = None


class ProblemDocument(BaseModel):
    """The body of every error.

    Args:
        code: stable, one for each kind of failure.
        subcode: stable and finer; the code itself where there is nothing finer.
        params: what the sentence in `detail` is about, for programs.
        can_retry: whether the same request may succeed later, unchanged.
    """

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None
    code: str
    subcode: str = ""
    params: dict[str, Param] = {}
    can_retry: bool = False
    request_id: str | None = None
    hint: str | None = None
    errors: list[Place] = []


TITLES = {
    "bad_request": (400, "The request cannot be understood"),
    "unauthenticated": (401, "Not signed in"),
    "forbidden": (403, "This is not allowed"),
    "not_found": (404, "This was not found"),
    "method_not_allowed": (405, "The resource has no such method"),
    "conflict": (409, "This cannot be done now"),
    "still_running": (409, "The same request is still being worked on"),
    "changed_meanwhile": (412, "The resource was changed meanwhile"),
    "too_large": (413, "The request is too large"),
    "unsupported_media_type": (415, "This content type is not understood"),
    "invalid": (422, "The request is wrong"),
    "invalid_query": (422, "The query is wrong"),
    "key_reused": (422, "The idempotency key belongs to another request"),
    "precondition_required": (428, "The request must say which version it changes"),
    "rate_limited": (429, "Too many requests"),
    "internal": (500, "This failed, and it is not your mistake"),
    "unavailable": (503, "Something that is needed does not answer"),
}
"""Every code there is, with its HTTP status and title."""
PASSES: Final = frozenset({"still_running", "rate_limited", "internal", "unavailable"})
"""Codes of what passes by itself, so that the same request may succeed later."""


class Problem(Exception):
    """An error that a client is told.

    Args:
        code: a key of `TITLES`, and where there is a finer one a key of `SUBCODES` after a dot.
        detail: one sentence that names the thing and the way out.
        params: what the sentence is about, by name.
    """

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        hint: str | None = None,
        params: Mapping[str, Param] | None = None,
        errors: Sequence[Place] = (),
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.code, _, finer = code.partition(".")
        assert not finer or finer in SUBCODES, finer
        self.subcode = finer or self.code
        self.params = dict(params or {})
        self.detail = detail
        self.hint = hint
        self.errors = list(errors)
        self.headers = headers

    @property
    def status(self) -> int:
        """HTTP's."""
        return TITLES[self.code][0]

    @property
    def can_retry(self) -> bool:
        """Whether the same request may succeed later, unchanged."""
        return self.code in PASSES

    def document(self, instance: str | None = None, request_id: str | None = None, root: str = "") -> dict[str, Any]:
        """The body; also what a websocket's `error` frame carries.

        Args:
            root: the `root_path` that clients know the platform below.
        """
        status, title = TITLES[self.code]
        return ProblemDocument(
            type=root + TYPES + self.code, title=title, status=status, detail=self.detail, instance=instance,
            code=self.code, subcode=self.subcode, params=self.params, can_retry=self.can_retry,
            request_id=request_id, hint=self.hint,
            errors=self.errors,
        ).model_dump(exclude_none=True)  # fmt: skip


def from_engine(error: StreamJoinError, pointer: str = "") -> Problem:
    """An error of the engine's about a request as a problem, with the place it names."""
    if isinstance(error, QueryError):
        return Problem("invalid_query", error.message, errors=[place_of(error, pointer or _pointer(error.place))])
    if isinstance(error, InputError):
        return Problem("invalid", str(error), errors=[place_of(error, pointer)])
    return Problem("unavailable", str(error))


def unexpected() -> Problem:
    """Of a failure that nobody foresaw; its cause goes into the log, as it may name what clients should not see."""
    return Problem("internal", "an unexpected failure; the log has its cause")


def place_of(error: InputError, pointer: str = "") -> Place:
    """Where the mistake is."""
    if isinstance(error, QueryError) and error.span is not None:
        return Place(pointer=pointer or None, detail=error.message, span=asdict(error.span))
    if error.field:
        return Place(pointer=pointer + _pointer(error.field), detail=error.message)
    return Place(pointer=pointer or None, detail=error.message)


def _pointer(field: str) -> str:
    return f"/{field.replace('.', '/')}"


def install(app: FastAPI) -> None:
    """Every error of the app becomes a problem document."""

    def reply(request: Request, problem: Problem) -> JSONResponse:
        request_id = getattr(request.state, "request_id", None)
        request.scope.setdefault("state", {})[STATE] = problem
        root = request.scope.get("root_path", "")
        return JSONResponse(
            problem.document(request.url.path, request_id, root), problem.status, problem.headers, media_type=MEDIA_TYPE
        )

    @app.exception_handler(Problem)
    async def on_problem(request: Request, problem: Problem) -> JSONResponse:
        return reply(request, problem)

    @app.exception_handler(StreamJoinError)
    async def on_engine(request: Request, error: StreamJoinError) -> JSONResponse:
        return reply(request, from_engine(error))

    @app.exception_handler(RequestValidationError)
    async def on_validation(request: Request, error: RequestValidationError) -> JSONResponse:
        return reply(request, from_validation(error.errors()))

    @app.exception_handler(HTTPException)
    async def on_http(request: Request, error: HTTPException) -> JSONResponse:
        if isinstance(error.__cause__, Problem):  # FastAPI takes whatever ends the reading of a body for a bad one
            return reply(request, error.__cause__)
        code = next((code for code, (status, _) in TITLES.items() if status == error.status_code), "bad_request")
        detail = f"there is no {request.url.path}" if error.status_code == 404 else str(error.detail)
        return reply(request, Problem(code, detail, headers=dict(error.headers or {})))

    async def on_catalog(request: Request, error: Exception) -> JSONResponse:
        return reply(request, catalog_away(error))

    for away in CATALOG_IS_AWAY:
        app.add_exception_handler(away, on_catalog)

    @app.exception_handler(Exception)
    async def on_bug(request: Request, error: Exception) -> JSONResponse:
        _log.error("unexpected failure of %s %s", request.method, request.url.path, exc_info=error)
        return reply(request, Problem("internal", "an unexpected failure; the log has its cause under this request id"))


def catalog_away(failure: Exception) -> Problem:
    """What is answered while the catalog does not; the log has the cause, which may show more than clients may see."""
    _log.warning("the catalog does not answer: %s", getattr(failure, "orig", None) or failure)
    detail = "the catalog does not answer; try again in a moment"
    return Problem("unavailable.catalog_away", detail, headers={"Retry-After": "2"})


async def send_problem(scope: Scope, problem: Problem, send: Send) -> None:
    """Answer a request with a problem from outside of the routes."""
    request_id = scope.get("state", {}).get("request_id")
    scope.setdefault("state", {})[STATE] = problem
    root = scope.get("root_path", "")
    await JSONResponse(
        problem.document(scope["path"], request_id, root), problem.status, problem.headers, media_type=MEDIA_TYPE
    )(scope, _no_more, send)


async def _no_more() -> Message:
    return {"type": "http.disconnect"}


def from_validation(errors: Sequence[Any]) -> Problem:
    """Pydantic's errors as one problem."""
    places = [
        Place(pointer="/" + "/".join(map(str, error["loc"][1:])) if error["loc"][0] == "body"
              else str(error["loc"][-1]), detail=_sentence(error))
        for error in errors[:20]
    ]  # fmt: skip
    code = "bad_request" if errors and errors[0]["type"] == "json_invalid" else "invalid"
    first = places[0]
    # A text that is too long is named in its sentence already.
    says_place = errors[0]["type"] == _TOO_LONG and len(errors[0]["loc"]) <= 2
    detail = f"{first.pointer}: {first.detail}" if first.pointer and not says_place else first.detail
    return Problem(code, detail, errors=places)


_TOO_LONG = "string_too_long"


def _sentence(error: Any) -> str:
    if error["type"] == _TOO_LONG:
        what = "the query" if error["loc"][-1] == "query" else f"`{error['loc'][-1]}`"
        most = error["ctx"]["max_length"]
        if "input" not in error:  # frames of a websocket are not kept
            return f"{what} has more than {most:,} characters"
        return f"{what} has {len(error['input']):,} characters, and {most:,} is the most"
    message = str(error["msg"]).removeprefix("Value error, ")
    return message[:1].lower() + message[1:300]
