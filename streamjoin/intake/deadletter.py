"""Dead letters: the records that could not be joined, kept with the reason, one JSON object a line.

    {"reason": "bad_value", "stream": "orders", "batch": 7, "at_us": 1767225600000000, "source": "orders/3",
     "position": 1207, "unit": "offset", "detail": "field \\"id\\": ...", "record": "{\\"id\\":"}

`record` is the record as text; where it is not UTF-8, `record_base64` stands instead. A record longer than 64 KiB is
cut there and marked `"truncated": true`. A tombstone has `"record": null`. A line begins with `reason` and `stream`, so
that readers can pass over others without decoding them (`streamjoin.intake.rejected`).
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from streamjoin.durable import have_folder, replacing, sync_folder

RECORD_BYTES_MAX: Final = 64 * 1024
LETTER_BYTES: Final = 512
"""What a letter takes in memory beside its record, about."""

_ESCAPED: Final = {
    code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A))
}
"""Beside what JSON escapes: what terminals obey, what some take for a line break, and what turns text around."""

MALFORMED: Final = "malformed"
BAD_VALUE: Final = "bad_value"
TOMBSTONE: Final = "tombstone"
NO_TIME: Final = "no_time"
TIME_OUT_OF_RANGE: Final = "time_out_of_range"
REASONS: Final = {
    MALFORMED: "the record cannot be taken apart",
    BAD_VALUE: "a value does not fit its column",
    TOMBSTONE: "a Kafka record without a value",
    NO_TIME: "the event time is NULL",
    TIME_OUT_OF_RANGE: "the event time is further than 2^62 microseconds from 1970",
}


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One record that was put aside.

    Args:
        stream: the stream it belongs to.
        source: where it was read: a file, or a topic and partition.
        position: its place in that source, in `unit`s.
        reason: a key of `REASONS`.
        detail: why it could not be joined, one line.
        record: its bytes; None for a tombstone.
        unit: `offset` in Kafka; `row` from 0; in a text file `record` from 0 as it is read, and `line` from 1 as it
            is kept.
    """

    stream: str
    source: str
    position: int
    reason: str
    detail: str
    record: bytes | None
    unit: str = "row"

    @property
    def kept_bytes(self) -> int:
        """What it takes to keep it."""
        return LETTER_BYTES + min(len(self.record or b""), RECORD_BYTES_MAX)

    def cut(self) -> DeadLetter:
        """The same with no more of its record than is written."""
        if self.record is None or len(self.record) <= RECORD_BYTES_MAX:
            return self
        # One byte more, by which the writer sees that it is cut.
        return replace(self, record=self.record[: RECORD_BYTES_MAX + 1])


def line_start(reason: str, stream: str) -> bytes:
    """How lines with this reason and stream begin, and no others."""
    return json.dumps({"reason": reason, "stream": stream}, ensure_ascii=False)[:-1].encode() + b", "


def write_dead_letters(path: Path, letters: Sequence[DeadLetter], batch: int, at_us: int) -> None:
    """Write `letters` of a batch that began at `at_us` to the file `path` in order, all of them or none.

    The file is written under another name, synced and renamed: a reader never sees half of it, and a replay of the
    same block puts the same bytes in its place. The folder is made when it is missing.

    Raises:
        OSError: the disk is full or the folder cannot be written; `path` is as it was.
    """
    have_folder(path.parent)
    # A name of its own for every writer: a retried task may still run beside its successor.
    with replacing(path) as temporary, open(temporary, "x", encoding="utf-8", newline="\n") as file:
        for letter in letters:
            line = json.dumps(_as_json(letter, batch, at_us), ensure_ascii=False)
            file.write(line.translate(_ESCAPED) + "\n")
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)


def _as_json(letter: DeadLetter, batch: int, at_us: int) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "reason": letter.reason,
        "stream": letter.stream,
        "batch": batch,
        "at_us": at_us,
        # A file's name may be any bytes, which Python reads as lone surrogates.
        "source": letter.source.encode("utf-8", "backslashreplace").decode(),
        "position": letter.position,
        "unit": letter.unit,
        "detail": letter.detail,
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
