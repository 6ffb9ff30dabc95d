"""Streams of files: Parquet, Arrow, JSON lines and CSV, read in the order of the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from streamjoin.intake.dialect import PLAIN, Dialect
from streamjoin.sources.filelog import FileLog, LoggedFile, list_files, root_of
from streamjoin.sources.fileread import FileRead, GroupRead, row_groups
from streamjoin.sources.guess import first_schema
from streamjoin.sources.source import Read

FORMATS = ("parquet", "arrow", "jsonl", "csv")

BATCH_BYTES = 16 << 20
"""A batch takes files of about so many bytes, and one at least."""

FILE_BYTES_MIN = 4 << 10
"""A smaller file counts as one of this size: opening it takes as long as reading so much."""

GROUP_BYTES = 1 << 20
"""Small files that follow each other are read together up to this size."""

GROUPING = "grouping"
"""In an offset: by which rule its files were grouped; without it each file is read alone, as it always was at first.

What a batch reads must not change after its offset was logged, so another rule, or another of the two numbers above,
needs another number here, and the old rule for the old one."""
_GROUPING_NOW = 1


class FileSource:
    """A folder of files, or one file.

    Args:
        stream: the stream's name, for messages.
        format: one of FORMATS.
        path: the folder, file or pattern.
        log: where the file log is kept.
        files_per_batch: at most so many files a batch; None for files of about BATCH_BYTES.
        schema: given columns; None to take what the first file carries.
        csv: how CSV files are written.
        alone: no two files are read as one, because the end of each says something.
    """

    def __init__(
        self,
        stream: str,
        format: str,
        path: Path,
        log: Path,
        files_per_batch: int | None = None,
        schema: pa.Schema | None = None,
        csv: Dialect | None = None,
        alone: bool = False,
    ) -> None:
        self.stream = stream
        self.format = format
        self.path = path.absolute()
        self.files_per_batch = files_per_batch
        self.log = FileLog(self.path, log)
        self.root = root_of(self.path)
        self.csv = csv or PLAIN
        self.alone = alone
        self.schema = schema if schema is not None else first_schema(format, self.path, self.csv)
        self._end: int | None = None

    def initial(self) -> dict[str, Any]:
        """No file."""
        return {"files": 0}

    def freeze(self, now_us: int) -> None:
        """Offer only the files there are now."""
        self.log.refresh()
        self._end = len(self.log.files)

    def latest(self, start: dict[str, Any], now_us: int) -> dict[str, Any]:
        """The next files."""
        if self._end is None:
            self.log.refresh()
        known = len(self.log.files) if self._end is None else self._end
        begin = int(start["files"])
        stop = begin + (self.files_per_batch or _count(self.log.files[begin:known], BATCH_BYTES))
        if begin >= known:
            return start
        return {"files": min(stop, known), **({} if self.alone else {GROUPING: _GROUPING_NOW})}

    def sample(self, rows: int) -> Read | None:
        """The first file, or the first small ones."""
        files = list_files(self.path)
        first = [LoggedFile(number, str(path), path.stat().st_size) for number, path in enumerate(files[:_SAMPLED_MAX])]
        return self._read(first[: _count(first, GROUP_BYTES)], is_sample=True) if first else None

    def backlog(self, start: dict[str, Any]) -> int | None:
        """Files not yet read."""
        return len(self.log.files) - int(start["files"])

    def reads(self, start: dict[str, Any], end: dict[str, Any], tasks: int) -> list[Read]:
        """A read of each file, of several small ones together, or several of a large Parquet file."""
        files = self.log.between(start["files"], end["files"])
        groups = list(_groups(files)) if GROUPING in end else [[file] for file in files]
        parts = -(-tasks // max(len(groups), 1))
        reads: list[Read] = []
        for group in groups:
            whole = self._read(group)
            if self.format == "parquet" and parts > 1 and isinstance(whole, FileRead):
                reads += row_groups(whole, parts)
            else:
                reads.append(whole)
        return reads

    def _read(self, files: Sequence[LoggedFile], *, is_sample: bool = False) -> FileRead | GroupRead:
        alone = [
            FileRead(self.stream, self.format, file.path, file.number, self.schema, str(self.root), self.csv)
            for file in files
        ]
        if is_sample:  # of small files together no archive may unpack to much
            size = SAMPLED_BYTES if len(files) == 1 else SAMPLED_BYTES // 64
            alone = [
                replace(read, bytes_max=max(size, 2 * file.bytes if len(files) > 1 else 0))
                for read, file in zip(alone, files, strict=True)
            ]
        return alone[0] if len(alone) == 1 else GroupRead(tuple(alone))


SAMPLED_BYTES = 4 << 20
"""A look at a text reads so much of it: its first rows may be far behind bad records, and an archive may unpack to
anything."""
_SAMPLED_MAX = GROUP_BYTES // FILE_BYTES_MIN


def _count(files: Sequence[LoggedFile], limit: int) -> int:
    """How many of the first files have about `limit` bytes together; one at least."""
    size = 0
    for count, file in enumerate(files):
        size += max(file.bytes, FILE_BYTES_MIN)
        if size > limit:
            return max(count, 1)
    return max(len(files), 1)


def _groups(files: Sequence[LoggedFile]) -> Iterator[Sequence[LoggedFile]]:
    """The files in order, small ones together. What is together depends on the files alone, and not on the tasks."""
    while files:
        count = _count(files, GROUP_BYTES)
        yield files[:count]
        files = files[count:]
