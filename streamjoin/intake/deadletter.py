"""Dead letters: the records that could not be read, kept with the reason, one JSON object a line.

    {"stream": "orders", "source": "kafka:orders/3", "position": 1207, "reason": "...", "record": "{\\"id\\":"}

`record` is the record as text; where it is not UTF-8, `record_base64` stands instead. A record longer than 64 KiB is
cut there and marked `"truncated": true`. A tombstone has `"record": null`.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

RECORD_BYTES_MAX: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One record that was put aside.

    Args:
        stream: the stream it belongs to.
        source: where it was read, such as a topic and partition.
        position: its place in that source, such as the Kafka offset.
        reason: why it could not be read, one line.
        record: its bytes; None for a tombstone.
    """

    stream: str
    source: str
    position: int
    reason: str
    record: bytes | None


def write_dead_letters(path: Path, letters: Sequence[DeadLetter]) -> None:
    """Write `letters` to the file `path` in order, all of them or none.

    The file is written under another name, synced and renamed: a reader never sees half of it, and a replay of the
    same block puts the same bytes in its place. The folder is made when it is missing.

    Raises:
        OSError: the disk is full or the folder cannot be written; `path` is as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # A name of its own for every writer: a retried task may still run beside its successor.
    temporary = path.parent / f".{path.name}.{secrets.token_hex(8)}.tmp"
    try:
        with open(temporary, "x", encoding="utf-8", newline="\n") as file:
            for letter in letters:
                file.write(json.dumps(_as_json(letter), ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _as_json(letter: DeadLetter) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "stream": letter.stream,
        "source": letter.source,
        "position": letter.position,
        "reason": letter.reason,
    }
    if letter.record is None:
        return shown | {"record": None}
    is_cut = len(letter.record) > RECORD_BYTES_MAX
    try:
        shown["record"] = _cut_text(letter.record) if is_cut else letter.record.decode()
    except UnicodeDecodeError:
        shown["record_base64"] = base64.b64encode(letter.record[:RECORD_BYTES_MAX]).decode("ascii")
    if is_cut:
        shown["truncated"] = True
    return shown


def _cut_text(record: bytes) -> str:
    """The first 64 KiB of a record as text, without the character that the cut goes through."""
    head = record[:RECORD_BYTES_MAX]
    try:
        return head.decode()
    except UnicodeDecodeError as error:
        # A character has four bytes at most, so an error further in is one of the record itself.
        if error.reason != "unexpected end of data" or error.start < RECORD_BYTES_MAX - 3:
            raise
        return head[: error.start].decode()


def _sync_folder(folder: Path) -> None:
    """Make the rename durable: a rename is an entry of the folder, not of the file."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
