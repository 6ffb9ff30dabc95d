"""Uploads: small files that people send, for streams and relations to read as `path: upload:NAME`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from threading import Lock
from typing import Annotated, Final

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel
from starlette.requests import ClientDisconnect

from backend.api.room import check_room_of_uploads
from backend.api.shapes import Limit, Page, iso, link_next
from backend.auth.actor import Actor, Operator, Viewer, may_change, owned
from backend.catalog.events import record
from backend.context import Context, InContext
from backend.files.format import Format, format_of
from backend.problems import Problem
from backend.shares import uploads_space
from backend.uploads import store
from backend.uploads.names import NAME_BYTES_MAX, PREFIX, check_name, folder_of
from backend.uploads.readers import Readers, hold

router = APIRouter(prefix="/api/v1/uploads", tags=["uploads"])

_MAKING: Final = Lock()
"""Making a file takes a processor and memory, so one is made at a time, however many ask."""


class UploadOut(BaseModel):
    """An uploaded file: `path` is what a stream's or relation's `spec` says, `format` is guessed from the name."""

    name: str
    path: str
    bytes: int
    format: Format | None
    owner_id: str | None
    uploaded_at: str | None
    read_by: list[str]


_BYTES = {
    "required": True,
    "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
}


@router.get("")
def list_uploads(
    context: InContext, actor: Viewer, request: Request, response: Response, limit: Limit = 50,
    starting_after: Annotated[
        str | None, Query(max_length=NAME_BYTES_MAX, description="The last name of the page before.")
    ] = None,
) -> Page[UploadOut]:  # fmt: skip
    """All uploaded files, by name."""
    found = [upload for upload in store.all_of(folder_of(context.settings)) if upload.name > (starting_after or "")]
    with context.catalog.read() as session:
        readers = Readers(session)
    shown = [_shape(upload, readers) for upload in found[:limit]]
    page = Page[UploadOut](data=shown, has_more=len(found) > limit)
    link_next(request, response, page.has_more, [upload.name for upload in page.data])
    return page


@router.post("", status_code=201, openapi_extra={"requestBody": _BYTES})
async def add_upload(
    context: InContext, actor: Operator, request: Request, response: Response,
    name: Annotated[str, Query(max_length=4 * NAME_BYTES_MAX, description="The file's name, without folders.")],
) -> UploadOut:  # fmt: skip
    """Keep a small file: its bytes are the body. It is on disk when this answers.

    The same bytes may be sent under one name again, which changes nothing; others are refused.
    """
    if request.headers.get("content-type", "").startswith("multipart/"):
        raise Problem(
            "unsupported_media_type.form_not_file",
            "the body is the file itself, without a form around it; send it as application/octet-stream, as "
            "curl --data-binary @FILE does",
        )
    name = check_name(name)
    draft = await run_sync(_begun, context, actor, name)
    try:
        async for piece in request.stream():
            await run_sync(draft.write, piece)
        is_new = await run_sync(draft.keep)
    except ClientDisconnect:
        detail = "the request ended before its body did; send the file again"
        raise Problem("bad_request.body_ended", detail) from None
    finally:
        draft.end()
    response.status_code = 201 if is_new else 200
    return await run_sync(_added, context, name, actor.id, is_new)


def keep_made(context: Context, actor: Actor, name: str, made: Callable[[], bytes]) -> None:
    """Keep a file that the platform makes itself; one that is there under its name is taken as it is.

    Raises:
        Problem: all uploads together, or those of this actor, would take more space than they may, or be too many.
    """
    with _MAKING:
        if store.find(folder_of(context.settings), name) is not None:
            return
        draft = _begun(context, actor, name)
        try:
            draft.write(made())
            is_new = draft.keep()
        finally:
            draft.end()
    _added(context, name, actor.id, is_new)


def is_as_made(context: Context, actor: Actor, name: str, made: Callable[[], bytes]) -> bool:
    """Whether a file is there with the content the platform would make, rather than what somebody sent by that name.

    Raises:
        Problem: it is there, and the actor may not remove it.
    Cost: the file is made once in the life of this process.
    """
    folder = folder_of(context.settings)
    upload = store.find(folder, name)
    if upload is None:
        return False
    may_change(actor, upload.owner_id)
    with _MAKING:
        content = _content(made)
    return store.has(folder, name, content)


@lru_cache(maxsize=8)
def _content(made: Callable[[], bytes]) -> store.Content:
    return store.content_of(made())


@router.delete("/{name}", status_code=204)
@owned
def delete_upload(context: InContext, actor: Operator, name: str) -> None:
    """Remove an uploaded file; refused while a stream, relation or job reads it."""
    folder = folder_of(context.settings)
    name = check_name(name)
    upload = store.find(folder, name)
    if upload is None:
        raise Problem("not_found.no_upload", f'there is no upload "{name}"')
    may_change(actor, upload.owner_id)
    with context.catalog.begin() as session:
        hold(session)
        if users := Readers(session).of(name):
            more = f" and {len(users) - 5} more" if len(users) > 5 else ""
            raise Problem("conflict.in_use", f"{name} is read by {', '.join(users[:5])}{more}; delete those first",
                          params={"users": ", ".join(users[:5])})  # fmt: skip
        store.remove(folder, name)
        record(session, "upload.deleted", f"upload {name} was removed", actor_id=actor.id)


def _begun(context: Context, actor: Actor, name: str) -> store.Draft:
    check_room_of_uploads(context, actor, name)
    draft = store.Draft(folder_of(context.settings), uploads_space(context, actor.id), name, actor.id)
    draft.begin()
    return draft


def _added(context: Context, name: str, actor_id: str | None, is_new: bool) -> UploadOut:
    upload = store.find(folder_of(context.settings), name)
    if upload is None:
        raise Problem("not_found.no_upload", f'upload "{name}" was removed meanwhile')
    if is_new:
        with context.catalog.begin() as session:
            record(session, "upload.added", f"upload {name} was added: {upload.bytes:,} bytes", actor_id=actor_id)
    with context.catalog.read() as session:
        return _shape(upload, Readers(session))


def _shape(upload: store.Upload, readers: Readers) -> UploadOut:
    return UploadOut(
        name=upload.name, path=f"{PREFIX}{upload.name}", bytes=upload.bytes, format=format_of(upload.name),
        owner_id=upload.owner_id, uploaded_at=iso(upload.at_us), read_by=readers.of(upload.name),
    )  # fmt: skip
