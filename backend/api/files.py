"""Files of this machine that streams and relations may read, to choose from."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel

from backend.api.shapes import LIMIT_MAX, Limit, link_next
from backend.auth.actor import Operator
from backend.auth.folders import Folders
from backend.context import InContext
from backend.files.browse import Kind, after, allowed_folders, listed
from backend.files.format import Format

router = APIRouter(prefix="/api/v1/files", tags=["files"])
_PATH_MAX = 4096


class FileOut(BaseModel):
    """A file or folder: `path` is what a `spec` says, `format` is guessed from the name, `bytes` are of a file."""

    name: str
    path: str
    kind: Kind
    format: Format | None
    bytes: int | None


class Files(BaseModel):
    """A part of a folder, folders first. `is_cut` says that it has more than are ever listed.

    `path` is null for the list of the allowed folders themselves, and `parent` in one of them.
    """

    path: str | None
    parent: str | None
    data: list[FileOut]
    has_more: bool
    is_cut: bool


@router.get("")
def list_files(
    context: InContext, actor: Operator, request: Request, response: Response,
    path: Annotated[
        str | None, Query(max_length=_PATH_MAX, description="Of a folder; without one the allowed folders are listed.")
    ] = None,
    limit: Limit = LIMIT_MAX,
    starting_after: Annotated[
        str | None, Query(max_length=_PATH_MAX, description="The last name of the page before.")
    ] = None,
) -> Files:  # fmt: skip
    """Folders and files that streams and relations may read; nothing hidden."""
    folders = Folders(context.settings)
    listing = allowed_folders(folders) if path is None else listed(folders, path)
    rest = listing.entries if starting_after is None else after(listing.entries, starting_after)
    data = [FileOut(name=entry.name, path=entry.path, kind=entry.kind, format=entry.format, bytes=entry.bytes)
            for entry in rest[:limit]]  # fmt: skip
    found = Files(path=listing.path, parent=listing.parent, data=data, has_more=len(rest) > limit,
                  is_cut=listing.is_cut)  # fmt: skip
    link_next(request, response, found.has_more, [entry.name for entry in data])
    return found
