"""Streams: registering them, looking at them, pushing rows."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from streamjoin.client.calls.asking import API, ask, given_only, if_given, if_match, pages, path_of
from streamjoin.client.retry import Patience, keyed, send
from streamjoin.client.shapes import Pushed, Sample, Stream
from streamjoin.client.steps import Exchange, Flow, Request
from streamjoin.errors import InputError

_MARK = uuid.uuid4().hex
"""In front of decimals, while a row is written."""
_MARKED = re.compile(f'"{_MARK}([^"]*)"')


def list_streams(
    patience: Patience, *, source: str | None = None, owner: str | None = None, since: str | None = None
) -> Flow[Stream]:
    """All streams, newest first.

    Args:
        source: only those with it, such as `csv`.
        owner: only those of this user: an id, or "me".
        since: only those that were made at this time (ISO 8601) or later.
    """
    yield from pages(patience, f"{API}/streams", given_only(source=source, owner=owner, since=since))


def get_stream(patience: Patience, stream: str) -> Exchange[Stream]:
    """One stream."""
    return (yield from ask(patience, Request("GET", path_of("streams", stream), repeatable=True)))


def create_stream(
    patience: Patience, name: str, spec: Mapping[str, Any], *, secrets: Mapping[str, str] | None = None
) -> Exchange[Stream]:
    """Register a stream.

    Args:
        spec: an entry of `streams:` of a join file.
        secrets: what connects to it; never shown again.
    """
    body = given_only(name=name, spec=dict(spec), secrets=dict(secrets) if secrets else None)
    return (yield from ask(patience, keyed(Request("POST", f"{API}/streams", json=body))))


def change_stream(
    patience: Patience,
    stream: str,
    *,
    spec: Mapping[str, Any] | None = None,
    secrets: Mapping[str, str] | None = None,
    version: int | None = None,
) -> Exchange[Stream]:
    """Change a stream.

    Args:
        version: which one is changed; refused if it is not the newest. Whatever is there, if not given.
    """
    body = given_only(spec=spec, secrets=secrets)
    return (
        yield from ask(patience, Request("PATCH", path_of("streams", stream), json=body, headers=if_match(version)))
    )


def delete_stream(patience: Patience, stream: str, *, version: int | None = None) -> Exchange[None]:
    """Remove a stream; for `version` see `change`."""
    yield from send(Request("DELETE", path_of("streams", stream), headers=if_given(version)), patience)


def look_at_stream(
    patience: Patience, spec: Mapping[str, Any], *, secrets: Mapping[str, str] | None = None
) -> Exchange[Sample]:
    """Look at a stream without registering it."""
    body = given_only(spec=dict(spec), secrets=dict(secrets) if secrets else None)
    return (yield from ask(patience, Request("POST", f"{API}/streams/test", json=body, repeatable=True)))


def sample_stream(patience: Patience, stream: str) -> Exchange[Sample]:
    """Look at a registered stream."""
    return (yield from ask(patience, Request("POST", path_of("streams", stream, "sample"), repeatable=True)))


def push_rows(
    patience: Patience, stream: str, rows: Iterable[Mapping[str, Any] | str | bytes], *, batch_id: str | None = None
) -> Exchange[Pushed]:
    """Push rows into a stream of source `push`; they are on disk when this returns.

    Args:
        rows: mappings, or lines of JSON, which are sent as they are. A `Decimal` is a number with all its digits.
        batch_id: your own name of these rows. Given one, rows that get lost on the way are sent again, and are there
            once; without one they are sent once.
    """
    if isinstance(rows, str | bytes):
        raise InputError("rows are given one by one: push a list of them, such as text.splitlines()")
    content = b"".join(_line_of(row) + b"\n" for row in rows)
    request = Request(
        "POST", path_of("streams", stream, "rows"), params=given_only(batch_id=batch_id), content=content,
        headers={"Content-Type": "application/x-ndjson"}, repeatable=batch_id is not None,
    )  # fmt: skip
    return (yield from ask(patience, request))


def _line_of(row: Mapping[str, Any] | str | bytes) -> bytes:
    """A row as a line of JSON."""
    if isinstance(row, str | bytes):
        line = (row.encode() if isinstance(row, str) else row).rstrip(b"\r\n")
        if b"\n" in line:
            raise InputError("a row that is given as JSON must be one line")
        return line
    return _MARKED.sub(r"\1", json.dumps(row, default=_marked)).encode()


def _marked(value: object) -> str:
    """A decimal as a text that is known again: `json` itself writes no other number than a float or an int."""
    if not isinstance(value, Decimal):
        raise InputError(f"a row has a value of type {type(value).__name__}, which JSON has not; push it as a text")
    if not value.is_finite():
        raise InputError(f"there is no number in JSON for {value}, a decimal of a row; push None instead")
    return f"{_MARK}{value:f}"
