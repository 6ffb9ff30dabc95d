"""One-time questions to the results of a job."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ValidationError
from starlette.types import Receive, Scope, Send

from backend.api.reads import ReadRoute
from backend.auth.actor import Viewer
from backend.auth.gate import free
from backend.columns import Column
from backend.context import InContext
from backend.problems import ProblemDocument
from backend.results.answers import Running, headers_of
from backend.results.patience import patient
from backend.results.question import JOB_MAX, Format, QueryIn
from backend.results.service import Service, service_of
from backend.results.writers import WRITERS

router = APIRouter(prefix="/api/v1", tags=["queries"])

LOOK_S = 0.5
"""How often it is looked whether the client is still there, while nothing has been found yet."""
NOBODY = 499


class AnswerLimits(BaseModel):
    """What the answer keeps to."""

    rows: int
    bytes: int
    seconds: float


class AnswerOut(BaseModel):
    """A JSON answer; it leaves as it is found, in this order.

    Args:
        results: tells these results from those that the job had before it began anew.
        last_snapshot: the newest it covers; a subscription from it, of these results, goes on without gap or overlap.
        time: what a row's time is.
        key: what a row's key is; null for a join without one.
        groups: of groups that change, the columns that tell them apart.
        rows: arrays in the order of `schema`; integers and decimals beyond 2^53 are texts.
        cursor: asks for what follows, with the same question otherwise.
        truncated: there may be more than is here; `stopped_by` says what ended it: limit, rows, bytes, time or error.
        not_finite: how many NaN and infinities became null.
        error: what ended the answer half-way.
    """

    job: str
    job_name: str
    results: str
    last_snapshot: str
    time: str
    key: Column | None
    groups: list[str] = []
    schema_: list[Column]
    rows: list[list[Any]]
    rows_given: int
    cursor: str | None
    truncated: bool
    stopped_by: str | None
    limits: AnswerLimits
    not_finite: int
    blocks_read: int = 0
    blocks_wanted: int = 0
    blocks_stored: int = 0
    rows_read: int = 0
    snapshots: int = 0
    error: ProblemDocument | None = None

    model_config = {"json_schema_extra": lambda schema: _rename(schema)}


def _rename(schema: dict[str, Any]) -> None:
    # "schema" is a method of pydantic's models.
    schema["properties"] = {name.rstrip("_"): value for name, value in schema["properties"].items()}
    schema["required"] = [name.rstrip("_") for name in schema["required"]]


_BINARY = {"schema": {"type": "string", "format": "binary"}}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "model": AnswerOut,
        "description": "The answer, as a stream. Streamjoin-Last-Snapshot, Streamjoin-Results and Streamjoin-Limits "
        "are among the headers; Streamjoin-Rows and Streamjoin-Cursor too if the whole answer was there when "
        "they left.",
        "content": {
            WRITERS["ndjson"].media_type: {"schema": {"type": "string"}},
            "text/csv": {"schema": {"type": "string"}},
            WRITERS["arrow"].media_type: _BINARY,
            WRITERS["parquet"].media_type: _BINARY,
        },
    }
}
_ACCEPTED: dict[str, Format] = {
    "application/json": "json", "application/x-ndjson": "ndjson", "application/jsonl": "ndjson", "text/csv": "csv",
    "application/vnd.apache.arrow.stream": "arrow", "application/vnd.apache.parquet": "parquet",
}  # fmt: skip


@router.post("/queries", response_class=Response, responses=_RESPONSES)
@free
async def query_results(context: InContext, actor: Viewer, request: Request, asked: QueryIn) -> Response:
    """Ask for results by time, by key, with a filter; or for aggregates of them."""
    return await _reply(service_of(context), request, asked, actor.id)


_TEXTS = ("to", "key", "key_from", "key_to", "where", "cursor", "after", "upto", "as_of", "aggregate")
_COLUMNS = ("select", "by")
_PARAMETERS: dict[str, dict[str, Any]] = {
    "from": {"type": "string", "description": "ISO 8601, or microseconds since 1970."},
    **{name: {"type": "string"} for name in _TEXTS},
    **{name: {"type": "string", "description": "Columns, separated by commas."} for name in _COLUMNS},
    "history": {"type": "boolean"},
    "limit": {"type": "integer"},
    "format": {"type": "string", "enum": list(WRITERS), "description": "As the Accept header says unless set."},
    "timeout_s": {"type": "number"},
}
"""Described here and checked with the question: to declare them one by one costs more than to answer."""


@free
async def get_results(
    context: InContext, actor: Viewer, request: Request, id: Annotated[str, Path(max_length=JOB_MAX)]
) -> Response:
    """The same as POST /queries, for the command line; conditions end up in logs of URLs."""
    given = request.query_params
    values: dict[str, Any] = {name: given[name] for name in _PARAMETERS if name in given}
    values |= {name: _names(values[name]) for name in _COLUMNS if name in values}
    values |= {"job": id, "format": values.get("format") or _accepted(request.headers.get("accept", ""))}
    try:
        asked = QueryIn.model_validate(values)
    except ValidationError as wrong:
        raise RequestValidationError(wrong.errors()) from None
    return await _reply(service_of(context), request, asked, actor.id)


router.add_api_route(
    "/jobs/{id}/results",
    get_results,
    methods=["GET"],
    response_class=Response,
    responses=_RESPONSES,
    openapi_extra={
        "parameters": [
            {"name": name, "in": "query", "required": False, "schema": schema} for name, schema in _PARAMETERS.items()
        ]
    },
    route_class_override=ReadRoute,
)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _accepted(header: str) -> Format:
    for part in header.split(","):
        if (found := _ACCEPTED.get(part.partition(";")[0].strip().lower())) is not None:
            return found
    return "json"


async def _reply(service: Service, request: Request, asked: QueryIn, actor: str | None) -> Response:
    if (at_once := service.answerer.at_once(asked, actor)) is not None:
        return _response(service, *at_once)
    running = service.answerer.answer(asked, actor=actor)
    try:
        first = await _first(service, request, running)
    except BaseException:
        service.let_go(running)
        raise
    if first is None:
        service.let_go(running)
        return Response(status_code=NOBODY)
    return _response(service, running, first)


def _response(service: Service, running: Running, first: bytes) -> Response:
    headers, kind = dict(headers_of(running)), running.writer.media_type
    if running.end is not None:
        return Response(first, headers=headers, media_type=kind)
    return _Pieces(service, running, first, headers, kind)


async def _first(service: Service, request: Request, running: Running) -> bytes | None:
    """The first piece; None when the client has left."""
    step = asyncio.ensure_future(service.step(running))
    while True:
        done, _ = await asyncio.wait({step}, timeout=LOOK_S)
        if done:
            return step.result()
        if await request.is_disconnected():
            step.add_done_callback(lambda done: done.cancelled() or done.exception())
            return None


class _Pieces(StreamingResponse):
    """An answer in pieces; its reader is given back however the response ends."""

    def __init__(self, service: Service, running: Running, first: bytes, headers: dict[str, str], kind: str) -> None:
        super().__init__(_pieces(service, running, first), headers=headers, media_type=kind)
        self._running = (service, running)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI's."""
        service, running = self._running
        try:
            with suppress(TimeoutError):
                await super().__call__(scope, receive, patient(send, service.limits.send_s))
        finally:
            service.let_go(running)


async def _pieces(service: Service, running: Running, first: bytes) -> AsyncIterator[bytes]:
    piece = first
    while piece:
        yield piece
        piece = await service.step(running)
