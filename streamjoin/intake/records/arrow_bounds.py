"""How much memory an Arrow IPC record asks for, read from its headers before anything is decoded.

A compressed body of a kilobyte may claim to hold terabytes, and a batch of nulls has any number of rows for free.
Arrow believes both, so they are bounded here first. Source: Message.fbs of the Arrow columnar format.
"""

from __future__ import annotations

import struct
from typing import Final

import pyarrow as pa

ROWS_MAX: Final = 1 << 24
BYTES_MAX: Final = 1 << 28

# Places of the members in their flatbuffer tables.
_MESSAGE_HEADER: Final = 2
_DICTIONARY_DATA: Final = 1
_BATCH_LENGTH: Final = 0
_BATCH_BUFFERS: Final = 2
_BATCH_COMPRESSION: Final = 3


class TooLargeError(Exception):
    """The record asks for more than `ROWS_MAX` rows or `BYTES_MAX` bytes; the message is a reason for people."""


def check_bounds(stream: pa.Buffer) -> None:
    """Refuse an IPC stream that would decode to too much.

    Raises:
        TooLargeError: see there.
        pa.ArrowException, OSError, struct.error: the stream is damaged.
    """
    rows = size = 0
    reader = pa.ipc.MessageReader.open_stream(stream)
    while True:
        try:
            message = reader.read_next_message()
        except StopIteration:
            return
        if message.type not in ("record batch", "dictionary"):
            continue
        metadata = message.metadata.to_pybytes()
        table = _table_at(metadata, 0)
        batch = _table_in(metadata, table, _MESSAGE_HEADER)
        if message.type == "dictionary":
            batch = _table_in(metadata, batch, _DICTIONARY_DATA)
        rows += _batch_rows(metadata, batch)
        size += _decoded_bytes(metadata, batch, message.body)
        if rows > ROWS_MAX:
            raise TooLargeError(f"more than {ROWS_MAX} rows in one record")
        if size > BYTES_MAX:
            raise TooLargeError(f"more than {BYTES_MAX >> 20} MiB in one record")


def _batch_rows(metadata: bytes, batch: int) -> int:
    member = _member(metadata, batch, _BATCH_LENGTH)
    rows: int = struct.unpack_from("<q", metadata, member)[0] if member else 0
    if rows < 0:
        raise pa.ArrowInvalid("negative number of rows")
    return rows


def _decoded_bytes(metadata: bytes, batch: int, body: pa.Buffer | None) -> int:
    if body is None:
        return 0
    if not _member(metadata, batch, _BATCH_COMPRESSION):
        return int(body.size)
    member = _member(metadata, batch, _BATCH_BUFFERS)
    if not member:
        return 0
    vector = member + struct.unpack_from("<I", metadata, member)[0]
    count = struct.unpack_from("<I", metadata, vector)[0]
    size = 0
    for place in range(vector + 4, vector + 4 + 16 * count, 16):
        offset, length = struct.unpack_from("<qq", metadata, place)
        if length == 0:
            continue
        if offset < 0:
            raise pa.ArrowInvalid("negative buffer offset")
        # The decoded size stands before the compressed bytes; -1 says that this buffer is not compressed.
        decoded = struct.unpack_from("<q", body, offset)[0]
        if decoded < -1:
            raise pa.ArrowInvalid("negative buffer size")
        size += length if decoded == -1 else decoded
    return size


def _table_at(metadata: bytes, place: int) -> int:
    """The flatbuffer table that the reference at `place` points to."""
    return place + int(struct.unpack_from("<I", metadata, place)[0])


def _member(metadata: bytes, table: int, index: int) -> int:
    """Where member `index` of a table stands, 0 when it is left out."""
    vtable = table - struct.unpack_from("<i", metadata, table)[0]
    if vtable < 0:
        raise pa.ArrowInvalid("damaged metadata")
    if 4 + 2 * index >= struct.unpack_from("<H", metadata, vtable)[0]:
        return 0
    offset: int = struct.unpack_from("<H", metadata, vtable + 4 + 2 * index)[0]
    return table + offset if offset else 0


def _table_in(metadata: bytes, table: int, index: int) -> int:
    member = _member(metadata, table, index)
    if not member:
        raise pa.ArrowInvalid("damaged metadata")
    return _table_at(metadata, member)
