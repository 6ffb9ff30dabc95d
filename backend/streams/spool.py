"""Rows that are posted to the API, as files that a file stream reads.

A file appears complete or not at all, and its name rises with the time it came, so the order of arrival is the order of
reading. Rows under a name of the caller's own are kept once, however often they are posted.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from pathlib import Path

from backend.catalog.ids import new_id
from backend.problems import Problem
from streamjoin.durable import sync_folder, write_durably
from streamjoin.sources.texts import not_plain

SEEN = ".seen"
_BEGIN_BYTES = 64
_ID = re.compile(r"str_[0-9a-z]{26}")


def all_of(data: Path) -> Path:
    """Where the rows of all streams are kept."""
    return data.absolute() / "spool"


def folder_of(data: Path, stream_id: str) -> Path:
    """Where the rows of a stream are kept. It follows from the id alone, whatever the stream's entry says.

    Raises:
        ValueError: this is not an id that the platform made.
    """
    if not _ID.fullmatch(stream_id):
        raise ValueError(f"{stream_id!r} is not the id of a stream")
    return all_of(data) / stream_id


def has(spool: Path, body: bytes, batch_id: str | None) -> bool:
    """Whether these rows are kept already, under this name; see `add`."""
    if batch_id is None:
        return False
    try:
        known, name = (spool / SEEN / batch_id).read_text().split()
    except FileNotFoundError:
        return False
    return known == hashlib.sha256(body).hexdigest() and (spool / name).exists()


def add(spool: Path, body: bytes, batch_id: str | None) -> tuple[int, bool]:
    """Keep posted rows durably.

    Args:
        spool: the stream's folder, see `folder_of`.
        body: JSON lines.
        batch_id: the caller's own name of them, or None.
    Returns:
        How many rows, and whether they are new.
    Raises:
        Problem: there are none, they are packed or in another encoding, the same name was given to others, or the
            folder is a link to another place.
    """
    if what := not_plain(body[:_BEGIN_BYTES]):
        raise Problem("invalid.not_plain", f"the body is {what}; post JSON lines in UTF-8, one object a line")
    rows = sum(1 for line in body.split(b"\n") if line.strip())
    if rows == 0:
        raise Problem("invalid.no_rows", "there are no rows; post JSON lines, one object a line")
    if (spool / SEEN).resolve() != spool.parent.resolve() / spool.name / SEEN:
        raise Problem(
            "conflict.link_in_data", "the folder of this stream's rows is a link to another place; remove the link"
        )
    (spool / SEEN).mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(body).hexdigest()
    name = f"{new_id('rows')}.jsonl"
    unfinished = spool / f".{name}"
    write_durably(unfinished, body if body.endswith(b"\n") else body + b"\n")
    if batch_id is None:
        os.rename(unfinished, spool / name)
        sync_folder(spool)
        return rows, True
    # The mark names the file before the file shows: whoever finds the mark can finish what a crash left undone.
    mark = spool / SEEN / batch_id
    draft = spool / SEEN / f".{name}"
    write_durably(draft, f"{digest} {name}".encode())
    try:
        os.link(draft, mark)
        fresh = True
    except FileExistsError:
        fresh = False
    draft.unlink()
    if not fresh:
        known, name = mark.read_text().split()
        if known != digest:
            unfinished.unlink()
            raise Problem(
                "key_reused.rows_differ",
                f'other rows were posted as "{batch_id}" before; give these a name of their own',
            )
        if (spool / name).exists():
            unfinished.unlink()
            return rows, False
    sync_folder(spool / SEEN)
    os.rename(unfinished, spool / name)
    sync_folder(spool)
    return rows, fresh


def remove(spool: Path) -> None:
    """Forget all rows, if there are any. A folder that is a link stays, and so does what it leads to."""
    shutil.rmtree(spool, ignore_errors=True)
