"""`streamjoin uploads` and `streamjoin files`: files that streams and relations can read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import cyclopts

from streamjoin.cli.platform.common import HERE, STDIN, Output, Where, note, read_bytes, show
from streamjoin.errors import InputError

app = cyclopts.App(name="uploads", help="Small files that were sent to the platform; streams read them as upload:NAME.")
COLUMNS = ("path", "bytes", "format", "uploaded_at", "read_by")
FILE_COLUMNS = ("path", "kind", "bytes", "format")


@app.command(name=["ls", "list"])
def list_uploads(*, output: Output = "table", where: Where = HERE) -> None:
    """List all uploaded files, by name."""
    with where.client() as client:
        show(list(client.uploads.list()), output, COLUMNS)


@app.command
def add(
    file: Annotated[str, cyclopts.Parameter(allow_leading_hyphen=True)],
    *,
    name: str | None = None,
    output: Output = "yaml",
    where: Where = HERE,
) -> None:
    """Send a file; it is on the platform's disk when this returns. Sent again with the same content, nothing changes.

    Parameters
    ----------
    file
        The file, or - for standard input.
    name
        What it is called there; its own name unless given.
    """
    if name is None and file == STDIN:
        raise InputError("what comes from standard input has no name; give it one with --name")
    with where.client() as client:
        content = read_bytes(file, client.call("GET", "/api/v1/config")["upload_bytes_max"])
        made = client.uploads.add(Path(file).name if name is None else name, content)
        note(f"{made['name']} is uploaded; a stream or relation reads it as path: {made['path']}")
        show(made, output, COLUMNS)


@app.command(name=["rm", "delete"])
def remove(name: str, *, where: Where = HERE) -> None:
    """Remove an uploaded file; refused while a stream, relation or job reads it.

    Parameters
    ----------
    name
        What it is called.
    """
    with where.client() as client:
        client.uploads.delete(name)
        note(f"upload {name} is removed")


def files(folder: str | None = None, *, output: Output = "table", where: Where = HERE) -> None:
    """List files and folders of the platform's machine that streams and relations may read.

    Parameters
    ----------
    folder
        Its path; without one, the folders that may be read from are listed.
    """
    with where.client() as client:
        show(list(client.files(folder)), output, FILE_COLUMNS)
