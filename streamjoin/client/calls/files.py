"""Files: those that users send, and those that streams may read."""

from __future__ import annotations

from streamjoin.client.calls.asking import API, ask, given_only, pages, path_of
from streamjoin.client.retry import Patience, send
from streamjoin.client.shapes import FileEntry, Upload
from streamjoin.client.steps import Exchange, Flow, Request


def list_uploads(patience: Patience) -> Flow[Upload]:
    """All uploaded files, by name."""
    yield from pages(patience, f"{API}/uploads", key="name")


def add_upload(patience: Patience, name: str, content: bytes) -> Exchange[Upload]:
    """Send a small file, which streams and relations read as `upload:NAME`; it is on disk when this returns.

    Sent again with the same content, nothing changes.
    """
    request = Request(
        "POST", f"{API}/uploads", params={"name": name}, content=content,
        headers={"Content-Type": "application/octet-stream"}, repeatable=True,
    )  # fmt: skip
    return (yield from ask(patience, request))


def delete_upload(patience: Patience, name: str) -> Exchange[None]:
    """Remove an uploaded file; refused while something reads it."""
    yield from send(Request("DELETE", path_of("uploads", name)), patience)


def list_files(patience: Patience, folder: str | None = None) -> Flow[FileEntry]:
    """Files and folders that streams may read, folders first.

    Args:
        folder: its path; without one, the folders that may be read from are listed.
    """
    yield from pages(patience, f"{API}/files", given_only(path=folder), key="name")
