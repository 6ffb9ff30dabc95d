"""Rows that are missing from a job's results: how many, why, and as far as they are kept each one.

    dead-letters/
        batches/                   what the tasks of a batch wrote, a file per piece
        kept.json                  the head: all counts, and which bytes of which segments are valid
        000000001.jsonl, ...       segments: the lines of committed batches, oldest first

The driver adds a batch when it commits it: the lines go to the end of the last segment, then the head is replaced. A
batch that is done again is known by its number, so counts and lines are there once, whatever dies in between. Readers
see nothing that the head does not name.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from streamjoin.counts import add_counts
from streamjoin.durable import have_folder, put_durably, replacing
from streamjoin.errors import StateError
from streamjoin.failpoints import failpoint
from streamjoin.intake.deadletter import REASONS, line_start

HEAD: Final = "kept.json"
SEGMENT_BYTES: Final = 16 << 20
"""A segment that has so many bytes is followed by another."""
KEPT_BYTES_MAX: Final = 1 << 30
"""The oldest segments are dropped where all have more; their rows stay counted."""
PAGE_BYTES_MAX: Final = 1 << 20
PIECE_BYTES: Final = 256 << 10
"""Segments are read in pieces of about so many bytes."""

LATE: Final = "late"
SHED: Final = "shed"
NULL_KEY: Final = "null_key"
ALL_REASONS: Final[Mapping[str, str]] = {
    **REASONS,
    LATE: "older than the stream's watermark; joined with what was still stored",
    SHED: "dropped under overload",
    NULL_KEY: "a join key is NULL",
}
"""Each reason in words. Rows of the last three are counted only."""

Counts = dict[str, dict[str, int]]
"""Rows by stream and reason."""


@dataclass(slots=True)
class Segment:
    """A file of lines.

    Args:
        size: how many of its bytes are valid.
        rows: its lines, by stream and reason.
    """

    number: int
    size: int = 0
    rows: Counts = field(default_factory=dict)


@dataclass(slots=True)
class Head:
    """What is known of a checkpoint's missing rows.

    Args:
        batch: the last one that is counted; None before any.
        counts: rows so far.
        segments: those that are kept, oldest first.
    """

    batch: int | None = None
    counts: Counts = field(default_factory=dict)
    segments: list[Segment] = field(default_factory=list)

    @property
    def kept(self) -> Counts:
        """Rows that can be looked at."""
        found: Counts = {}
        for segment in self.segments:
            _add(found, segment.rows)
        return found


@dataclass(frozen=True, slots=True)
class Taken:
    """What a piece of a batch put aside.

    Args:
        file: see `file_of`.
        rows: the lines in it, by stream and reason.
    """

    file: Path
    rows: Counts


def file_of(folder: Path, batch: int, piece: str) -> Path:
    """Where the task that reads a piece leaves its dead letters."""
    return folder / "batches" / f"{batch:09d}-{piece.replace('/', '_').replace(':', '_')}.jsonl"


def read_head(folder: Path) -> Head:
    """What is kept in a `dead-letters` folder; nothing where there is none.

    Raises:
        StateError: the head is damaged.
    """
    path = folder / HEAD
    try:
        found = json.loads(path.read_text())
        return Head(found["batch"], found["counts"], [Segment(**segment) for segment in found["segments"]])
    except FileNotFoundError:
        return Head()
    except (ValueError, KeyError, TypeError):
        raise StateError(
            f"{path} is damaged; remove the folder {folder} to go on without the rows put aside so far"
        ) from None


def as_rows(head: Head, stream: str | None = None, reason: str | None = None) -> list[dict[str, Any]]:
    """Counts as a list, by stream and then by reason: how many rows, how many of them are kept, and what it means."""
    kept = head.kept
    return [
        {
            "stream": name,
            "reason": why,
            "rows": rows,
            "kept": kept.get(name, {}).get(why, 0),
            "meaning": ALL_REASONS.get(why, why),
        }
        for name, by_reason in sorted(head.counts.items())
        for why, rows in sorted(by_reason.items())
        if stream in (None, name) and reason in (None, why)
    ]


def add(folder: Path, batch: int, counts: Counts, taken: Iterable[Taken], *, sync: bool = True) -> None:
    """Count a batch and keep its rows; once only, however often the batch is done.

    Args:
        counts: rows that are missing from the batch, the kept ones among them.
    Raises:
        StateError: a piece's file is gone, or the head is damaged.
    Cost: nothing where nothing is missing; else the batch's own lines are copied, and one small file is replaced.
    """
    if not any(rows for by_reason in counts.values() for rows in by_reason.values()):
        return
    head = read_head(folder)
    if head.batch is None or batch > head.batch:
        have_folder(folder)
        for piece in taken:
            _append(folder, head, piece, sync)
        failpoint("rejected.before_head")
        dropped = _shortened(head)
        head.batch = batch
        _add(head.counts, counts)
        _write(folder / HEAD, head, sync)
        failpoint("rejected.after_head")
        for segment in dropped:
            _path(folder, segment.number).unlink(missing_ok=True)
    _sweep(folder, head, batch)


def page(
    folder: Path, limit: int, *, stream: str | None = None, reason: str | None = None, before: str | None = None
) -> tuple[list[dict[str, Any]], bool]:
    """Up to `limit` kept rows, newest first, each with an `id`; and whether there are more.

    Args:
        before: the id of the last row that was seen.
    Raises:
        ValueError: `before` is no id.
        StateError: what is kept is damaged.
    Cost: reads from the newest row, or from `before`, until the page is full, and only segments that have such rows.
    """
    last = None if before is None else _parse(before)
    rows: list[dict[str, Any]] = []
    size = 0
    for segment in reversed(read_head(folder).segments):
        if last is not None and segment.number > last[0]:
            continue
        end = last[1] if last is not None and segment.number == last[0] else segment.size
        starts = _starts(segment, stream, reason)
        for begin, line in _backwards(folder, segment, end) if starts else ():
            if line.startswith(starts):
                size += len(line)
                if len(rows) == limit or (rows and size > PAGE_BYTES_MAX):
                    return rows, True
                rows.append({"id": f"{segment.number}-{begin}", **_parsed(folder, segment, line)})
    return rows, False


def lines(folder: Path, *, stream: str | None = None, reason: str | None = None) -> Iterator[bytes]:
    """All kept rows, oldest first, as whole JSON lines, many at a time.

    Raises:
        StateError: the head is damaged.
    """
    for segment in read_head(folder).segments:
        if starts := _starts(segment, stream, reason):
            is_all = len(starts) == sum(map(len, segment.rows.values()))
            for found in _forwards(folder, segment):
                if wanted := found if is_all else [line for line in found if line.startswith(starts)]:
                    yield b"".join(wanted)


def _starts(segment: Segment, stream: str | None, reason: str | None) -> tuple[bytes, ...]:
    """How the wanted lines of a segment begin."""
    return tuple(
        line_start(why, name)
        for name, by_reason in segment.rows.items()
        for why in by_reason
        if stream in (None, name) and reason in (None, why)
    )


def _append(folder: Path, head: Head, piece: Taken, sync: bool) -> None:
    if not head.segments or head.segments[-1].size >= SEGMENT_BYTES:
        head.segments.append(Segment(head.segments[-1].number + 1 if head.segments else 1))
    segment = head.segments[-1]
    path = _path(folder, segment.number)
    try:
        with open(piece.file, "rb") as lines, open(path, "r+b" if path.exists() else "x+b") as file:
            # Over what a driver left that died before it replaced the head.
            file.seek(segment.size)
            shutil.copyfileobj(lines, file, 1 << 20)
            segment.size = file.tell()
            file.flush()
            if sync:
                os.fsync(file.fileno())
    except FileNotFoundError:
        raise StateError(f"{piece.file} is gone; it had rows that this batch put aside") from None
    _add(segment.rows, piece.rows)


def _shortened(head: Head) -> list[Segment]:
    """Take segments off a head that keeps too much; the newest stays."""
    dropped = []
    while len(head.segments) > 1 and sum(segment.size for segment in head.segments) > KEPT_BYTES_MAX:
        dropped.append(head.segments.pop(0))
    return dropped


def _sweep(folder: Path, head: Head, batch: int) -> None:
    """Remove files of tasks whose rows are kept by now, and segments that a dying driver dropped or had begun."""
    # Also the temporary files of tasks that were killed.
    for path in (folder / "batches").glob("*.jsonl*"):
        if int(path.name.removeprefix(".").split("-", 1)[0]) <= batch:
            path.unlink(missing_ok=True)
    named = {_path(folder, segment.number) for segment in head.segments}
    for path in folder.glob("*.jsonl"):
        if path.stem.isdigit() and path not in named:
            path.unlink(missing_ok=True)


def _write(path: Path, head: Head, sync: bool) -> None:
    content = json.dumps(asdict(head)).encode()
    if sync:
        put_durably(path, content)
        return
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def _forwards(folder: Path, segment: Segment) -> Iterator[list[bytes]]:
    """The lines of a segment, first to last, a piece at a time."""
    with suppress(FileNotFoundError), open(_path(folder, segment.number), "rb") as file:  # it may be dropped by now
        left = segment.size
        while left > 0 and (found := file.readlines(min(left, PIECE_BYTES))):
            # A driver that is at work, or that died, may have written more than the head knows of.
            while left < sum(map(len, found)):
                found.pop()
            left -= sum(map(len, found))
            yield found


def _backwards(folder: Path, segment: Segment, end: int) -> Iterator[tuple[int, bytes]]:
    """The lines of a segment before the place `end`, last to first, each with its own place.

    Raises:
        ValueError: no line begins or ends at `end`.
    """
    with suppress(FileNotFoundError), open(_path(folder, segment.number), "rb") as file:
        file.seek(min(max(end - 1, 0), segment.size))
        if end > segment.size or (end > 0 and file.read(1) != b"\n"):
            raise ValueError(f'"{segment.number}-{end}" is not a stored row; begin again without it')
        rest = b""
        while end > 0:
            begin = max(end - PIECE_BYTES, 0)
            file.seek(begin)
            data = file.read(end - begin) + rest
            whole = data.find(b"\n") + 1 if begin else 0  # what comes before may be the end of a line
            stop = len(data)
            while stop > whole:
                start = data.rfind(b"\n", whole, stop - 1) + 1 or whole
                yield begin + start, data[start:stop]
                stop = start
            rest, end = data[:whole], begin


def _parsed(folder: Path, segment: Segment, line: bytes) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(line)
        return found
    except ValueError:
        raise StateError(f"{_path(folder, segment.number)} is damaged: a line of it is no JSON") from None


def _path(folder: Path, number: int) -> Path:
    return folder / f"{number:09d}.jsonl"


def _parse(id: str) -> tuple[int, int]:
    number, _, begin = id.partition("-")
    if not (number.isascii() and number.isdigit() and begin.isascii() and begin.isdigit()):
        raise ValueError(f'"{id[:40]}" is not a row id; copy the `id` of a row')
    return int(number), int(begin)


def _add(counts: Counts, more: Counts) -> None:
    for stream, by_reason in more.items():
        add_counts(counts.setdefault(stream, {}), by_reason)
