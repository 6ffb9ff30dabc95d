"""What a registered stream is: an entry of `streams:` of a join file, or `push` for rows that are posted to the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backend.entries import relative_to
from backend.settings import Settings
from backend.streams import spool
from backend.streams.pushed import PUSH, is_push
from streamjoin.errors import InputError
from streamjoin.plan.schema import StreamSchema
from streamjoin.sources.credentials import masked
from streamjoin.spec.inputs import open_schema
from streamjoin.spec.joinfile import JoinFile, of_content
from streamjoin.spec.sections import StreamFile

_STREAM = "stream"
_PLACE = f"streams.{_STREAM}"


def stored_entry(settings: Settings, stream_id: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry as it is kept: pushed rows get their spool folder, and a mark that no client can set.

    Raises:
        InputError: a pushed stream without columns, or with a place of its own; or an entry with the mark.
    """
    if PUSH in entry:
        raise InputError('is not a field of a stream; for rows that are posted, set "source": "push"', field=PUSH)
    if entry.get("source") != PUSH:
        return dict(entry)
    if not entry.get("schema"):
        raise InputError("is missing; pushed rows do not carry one", field="schema")
    for field in ("path", "servers", "topic", "format", "kind"):
        if field in entry:
            raise InputError("is not for pushed streams; rows are posted to /streams/{id}/rows", field=field)
    return {**entry, "source": "jsonl", "path": str(spool.folder_of(settings.data, stream_id)), PUSH: True}


def make_folder(settings: Settings, stream_id: str, entry: Mapping[str, Any]) -> None:
    """Make the spool folder of a push stream: a job may be made before the first row is pushed."""
    if is_push(entry):
        spool.folder_of(settings.data, stream_id).mkdir(parents=True, exist_ok=True)


def shown_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry as clients see it; secrets that earlier versions let into it are masked."""
    if not is_push(entry):
        return masked(entry)
    return {name: value for name, value in entry.items() if name not in (PUSH, "path")} | {"source": PUSH}


def one_stream(entry: Mapping[str, Any]) -> tuple[JoinFile, StreamFile]:
    """A join file with nothing but this stream, whose rules it must keep.

    Raises:
        InputError: the entry is wrong; its field is relative to the entry.
    """
    own = {field: value for field, value in entry.items() if field != PUSH}
    with relative_to(_PLACE):
        file = of_content({"streams": {_STREAM: own}, "query": "SELECT ONLINE"})
    return file, file.streams[_STREAM]


def opened_schema(file: JoinFile, stream: StreamFile) -> StreamSchema:
    """The columns of `one_stream`, from its first file where they are not given.

    Raises:
        InputError: it cannot be opened; its field is relative to the entry.
    """
    with relative_to(_PLACE):
        return open_schema(file, _STREAM, stream)


def check_given_columns(stream: StreamFile) -> None:
    """Refuse a stream whose given columns cannot be its columns, such as a `time` that is none; reads no file.

    Raises:
        InputError: its field is relative to the entry.
    """
    if (columns := stream.arrow_schema()) is not None:
        with relative_to(_PLACE):
            StreamSchema(_STREAM, columns, stream.time, stream.time_unit, stream.delay, stream.idle)
