"""Streams: register, look at, change and remove them, and push rows into one."""

from __future__ import annotations

import hashlib
from contextlib import nullcontext
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field, WithJsonSchema
from sqlalchemy import select

from backend.apart import bounded
from backend.api.filters import OfSource, Owner, Since, narrowed, of_source
from backend.api.registered import SECRETS_MAX, STREAMS, RegisteredOut, Seen, opened, seen, shown
from backend.api.shapes import Body, IfMatch, Limit, Page, StartingAfter, etag, with_example
from backend.auth.actor import Actor, Operator, Viewer, may_change, owned
from backend.auth.audit import audit_of
from backend.auth.hosts import check_client, check_place
from backend.catalog.ids import new_id, now_us
from backend.catalog.models import Stream
from backend.context import Context, InContext
from backend.entries import NAME_MAX, check_name, check_size, pointing_into_spec
from backend.given import at_most
from backend.idempotency import HEADER, done_once
from backend.problems import Place, Problem
from backend.shares import spool_space
from backend.streams import spool
from backend.streams.entry import (
    check_given_columns,
    make_folder,
    one_stream,
    opened_schema,
    shown_entry,
    stored_entry,
)
from backend.streams.pushed import PUSH, is_push
from backend.streams.sample import look_at
from backend.streams.times import TimeColumn
from backend.streams.widened import Widened
from backend.uploads.names import called_by_names, check_wildcards, resolved
from streamjoin.plan.schema import ARRIVAL
from streamjoin.sources.credentials import split
from streamjoin.sources.registry import SOURCES
from streamjoin.spec.schema import fields_of_all, schema_of_stream

router = APIRouter(prefix="/api/v1/streams", tags=["streams"])

_SPEC_SCHEMA = {
    "type": "object",
    "title": "StreamSpec",
    "description": "An entry of `streams:` of a join file; `source` may also be `push`, for rows that are posted.",
    "required": ["source", "time"],
    "properties": fields_of_all(map(schema_of_stream, SOURCES))
    | {"source": {"type": "string", "enum": [*SOURCES, PUSH]}},
}  # fmt: skip
Spec = Annotated[dict[str, Any], WithJsonSchema(_SPEC_SCHEMA)]
Secrets = Annotated[
    dict[str, str] | None,
    Field(max_length=SECRETS_MAX, description="Kafka client settings that are encrypted and never shown again."),
    at_most(SECRETS_MAX),
]
_EXAMPLE = {
    "name": "bids",
    "spec": {"source": "generator", "kind": "nexmark.bid", "rate": "1000/s", "time": "ts", "delay": "2s"},
}


class StreamIn(Body):
    """A stream to register."""

    name: str = Field(json_schema_extra={"maxLength": NAME_MAX})
    spec: Spec
    secrets: Secrets = None
    model_config = with_example(_EXAMPLE)


class StreamChange(Body):
    """What is to change; a job takes it over when the job itself is changed with `refresh_streams`."""

    spec: Spec | None = None
    secrets: Secrets = None


class StreamTest(Body):
    """A stream to look at, which need not be registered."""

    spec: Spec
    secrets: Secrets = None
    model_config = with_example({"spec": _EXAMPLE["spec"]})


class StreamOut(RegisteredOut):
    """A registered stream."""

    has_secrets: bool


class SampleOut(Seen):
    """A look at a stream: also columns that may be its event time, and those that a few values made text."""

    rate_per_s: float | None
    times: list[TimeColumn]
    widened: list[Widened]


class Pushed(BaseModel):
    """What became of posted rows."""

    rows: int
    duplicate: bool


@router.get("")
def list_streams(
    context: InContext, actor: Viewer, request: Request, response: Response, limit: Limit = 50,
    starting_after: StartingAfter = None, source: OfSource = None, owner: Owner = None, since: Since = None,
) -> Page[StreamOut]:  # fmt: skip
    """All streams, newest first."""
    rows = of_source(narrowed(select(Stream), Stream, actor, owner, since), Stream, source)
    return STREAMS.page(context, request, response, limit, starting_after, _shape, rows)


@router.post("", status_code=201)
@done_once
def create_stream(context: InContext, actor: Operator, body: StreamIn, response: Response) -> StreamOut:
    """Register a stream. Its source is not asked for anything yet; `test` does that."""
    check_name(body.name)
    id = new_id("str")
    spec = _checked(context, id, body.spec)
    stream = Stream(
        id=id, name=body.name, owner_id=actor.id, spec=spec, version=1,
        secrets=STREAMS.sealed(context.settings, spec, body.secrets), created_at_us=now_us(), updated_at_us=now_us(),
    )  # fmt: skip
    STREAMS.add(context, actor, stream, response)
    return _shape(stream)


@router.post("/test")
def test_stream(context: InContext, actor: Operator, body: StreamTest) -> SampleOut:
    """Look at a stream without registering it: columns, first rows, and how skewed values are.

    Its `time` may be missing: then `times` are the columns that may be it.
    """
    id = new_id("str")
    spec = body.spec if body.spec.get("time") is not None else {**body.spec, "time": ARRIVAL}
    entry = _checked(context, id, spec, is_look=True)
    make_folder(context.settings, id, entry)
    try:
        return _sample(context, actor, entry, body.secrets)
    finally:
        spool.remove(spool.folder_of(context.settings.data, id))


@router.get("/{id}")
def get_stream(context: InContext, actor: Viewer, id: str, response: Response) -> StreamOut:
    """One stream, by id or name."""
    stream = STREAMS.get(context, id)
    response.headers["ETag"] = etag(stream)
    return _shape(stream)


@router.patch("/{id}")
@owned
def change_stream(
    context: InContext, actor: Operator, id: str, body: StreamChange, response: Response, if_match: IfMatch = None
) -> StreamOut:
    """Change a stream. Jobs that are there keep the entry they were made with until they are changed themselves."""

    def checked(stream: Stream) -> dict[str, Any] | None:
        return None if body.spec is None else _checked(context, stream.id, body.spec, shown_entry(stream.spec))

    return _shape(STREAMS.change(context, actor, id, if_match, response, checked, body.secrets))


@router.delete("/{id}", status_code=204)
@owned
def delete_stream(context: InContext, actor: Operator, id: str, if_match: IfMatch = None) -> None:
    """Remove a stream; refused while a job uses it. Rows that were pushed into it are removed, too."""
    stream = STREAMS.remove(context, actor, id, if_match)
    spool.remove(spool.folder_of(context.settings.data, stream.id))  # it may have been a push stream earlier


@router.post("/{id}/sample")
def sample_stream(context: InContext, actor: Viewer, id: str) -> SampleOut:
    """Look at a registered stream."""
    stream = STREAMS.get(context, id)
    return _sample(context, actor, stream.spec, opened(context.settings, stream))


_ROWS = {
    "required": True,
    "content": {"application/x-ndjson": {"schema": {"type": "string"}, "example": '{"id": 1, "price": 2.5}\n'}},
}


@router.post("/{id}/rows", status_code=202, openapi_extra={"requestBody": _ROWS})
@owned
@done_once
async def push_rows(
    context: InContext, actor: Operator, id: str, request: Request,
    batch_id: Annotated[str | None, Query(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,79}$", description=(
        "The caller's own name of these rows: posting them again under it changes nothing."))] = None,
) -> Pushed:  # fmt: skip
    """Push rows into a stream of source `push`: JSON lines, one object a row. They are on disk when this answers."""
    from anyio.to_thread import run_sync

    body = await request.body()
    key = request.headers.get(HEADER)
    if batch_id is None and key is not None:
        # The rows have the key's name themselves: whoever takes over from a process that was thought dead doubles none.
        batch_id = "key-" + hashlib.sha256(f"{actor.id}\n{key}".encode()).hexdigest()[:40]
    return await run_sync(_push, context, actor, id, body, batch_id)


def _push(context: Context, actor: Actor, id: str, body: bytes, batch_id: str | None) -> Pushed:
    stream = STREAMS.get(context, id)
    may_change(actor, stream.owner_id)
    if not is_push(stream.spec):
        raise Problem(
            "conflict.not_a_push_stream",
            f"stream {stream.name} reads {stream.spec['source']}; rows are pushed into push streams",
        )
    folder = spool.folder_of(context.settings.data, stream.id)
    size = 0 if spool.has(folder, body, batch_id) else len(body)  # a repetition takes no space, and needs none
    with spool_space(context, stream.owner_id).taking(size) if size else nullcontext():
        rows, fresh = spool.add(folder, body, batch_id)
    if fresh:
        audit_of(context).pushed(rows, who=actor.id, name=actor.name, stream_id=stream.id, stream=stream.name)
    return Pushed(rows=rows, duplicate=not fresh)


def _checked(
    context: Context, id: str, spec: dict[str, Any], earlier: dict[str, Any] | None = None, *, is_look: bool = False
) -> dict[str, Any]:
    """The entry as it is kept, or a problem that points into `spec`.

    Args:
        earlier: what it was before, as clients see it; None for a new one.
        is_look: its columns are looked at anyway, and what is wrong with them is told by an example then.
    """
    check_size(spec, earlier)
    with pointing_into_spec():
        check_wildcards(spec.get("path"))
        entry = stored_entry(context.settings, id, spec)
        file, stream = one_stream(entry)
        if stream.source == "generator":  # which can be told at once
            opened_schema(file, stream)
        elif not is_look:
            check_given_columns(stream)
    _check_places(context, entry)
    _refuse_shown_secrets(entry)
    return entry


def _check_places(context: Context, entry: dict[str, Any], secrets: dict[str, str] | None = None) -> None:
    """Refuse places that may not be read, and settings of the Kafka client that reach further than the topic."""
    check_place(context.settings, entry)
    check_client(context.settings, entry.get("client") or {}, "/spec/client")
    check_client(context.settings, secrets or {})


def _refuse_shown_secrets(entry: dict[str, Any]) -> None:
    """A spec is shown to everybody who may look."""
    _, secrets = split(entry)
    if secrets:
        detail = "is a secret, and a spec is shown to everybody; give it in `secrets`, which are encrypted"
        places = [Place(pointer=f"/spec/client/{name}", detail=detail) for name in sorted(secrets)]
        raise Problem("invalid.secret_in_spec", f"spec.client: {', '.join(sorted(secrets))} {detail}", errors=places)


def _sample(context: Context, actor: Actor, entry: dict[str, Any], secrets: dict[str, str] | None) -> SampleOut:
    _check_places(context, entry, secrets)  # also of a registered stream: names and links move
    with pointing_into_spec(), called_by_names(context.settings):
        return bounded(actor.id, _looked_at, resolved(context.settings, entry), secrets)


def _looked_at(entry: dict[str, Any], secrets: dict[str, str] | None) -> SampleOut:
    found = look_at(entry, secrets)
    return SampleOut(**seen(found.schema, found.rows, found.bad), rate_per_s=found.rate_per_s,
                     times=found.times, widened=found.widened)  # fmt: skip


def _shape(stream: Stream) -> StreamOut:
    return StreamOut(**shown(stream), spec=shown_entry(stream.spec), has_secrets=stream.secrets is not None)
