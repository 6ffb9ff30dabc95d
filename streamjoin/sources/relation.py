"""Relations: finite tables on disk that streams are joined with. They have no event time and no delay.

Source: SSBJ (DAPD 2019), sections 2.2 and 3: R is on disk, is read in one pass after the other and needs no index.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import TypeAlias, TypeVar

import pyarrow as pa

from streamjoin.errors import InputError
from streamjoin.intake.deadletter import DeadLetter
from streamjoin.intake.dialect import PLAIN, Dialect
from streamjoin.sources.filelog import list_files
from streamjoin.sources.fileread import FileRead
from streamjoin.sources.files import SAMPLED_BYTES
from streamjoin.sources.guess import first_schema
from streamjoin.sources.lines import records_of
from streamjoin.sources.mapped import mapped, parquet_footer
from streamjoin.sources.served import ServedTable
from streamjoin.sources.texts import TEXT_FORMATS, is_plain

Figure = TypeVar("Figure")
FILES_LOOKED_AT = 8
LOOKED_AT_BYTES = 1 << 18
"""Of each of these, for how long a row of text is."""
FILES_OPENED_MAX = 1_000
"""A look at a relation opens no more; the footer of one takes about a millisecond."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A table of files.

    Args:
        name: what queries call it.
        format: one of `sources.files.FORMATS`.
        files: all of them, in name order, as they were when it was opened.
        columns: what each of them has.
        root: see `filelog.root_of`.
        csv: how CSV files are written.
        path: the folder, file or pattern that they are of.
        refresh_us: how often it is looked at while a job runs; None for never.
    """

    name: str
    format: str
    files: tuple[Path, ...]
    columns: pa.Schema
    root: Path
    csv: Dialect = PLAIN
    path: Path = Path()
    refresh_us: int | None = None

    @property
    def is_listed(self) -> bool:
        """Whether `origin` says that it has changed."""
        return True

    @property
    def file_count(self) -> int:
        """How many files there are."""
        return len(self.files)

    @property
    def place(self) -> str:
        """Where it is, for people."""
        return str(self.path)

    def listed_again(self) -> Relation:
        """The same with the files that there are now.

        Raises:
            InputError: the path is gone.
        """
        return replace(self, files=tuple(list_files(self.path)))

    @property
    def guesses_types(self) -> bool:
        """Whether its files are texts, from which a later guess may take a column for something else."""
        return self.format in TEXT_FORMATS

    def origin(self) -> str:
        """What changes when its files do, or how they are read: a hash of names, sizes and times of change.

        Names are those below its root: files that were moved with their folder are the same.

        Raises:
            InputError: one is gone.
        """
        return self._hash(lambda file: os.path.relpath(file, self.root))

    def has_origin(self, origin: str) -> bool:
        """Whether it is still what it was; origins of earlier versions are of whole paths.

        Raises:
            InputError: a file is gone.
        """
        return origin == self.origin() or origin == self._hash(str)

    def _hash(self, name_of: Callable[[Path], str]) -> str:
        found = hashlib.sha256(f"{self.format}\0{self.columns}\0{self.csv}\0".encode())
        for file in self.files:
            about = self._of(file, lambda file: file.stat())
            found.update(f"{name_of(file)}\0{about.st_size}\0{about.st_mtime_ns}\0".encode("utf-8", "surrogateescape"))
        return found.hexdigest()

    def blocks(self, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, int]]:
        """All rows, file after file, with how many records before and among them could not be read.

        Raises:
            RunError: a file is gone, damaged or misses all columns.
        """
        for read in self._reads(None):
            for rows, letters in read.rows(columns):
                yield rows, len(letters)

    def _reads(self, bytes_max: int | None) -> Iterator[FileRead]:
        for number, file in enumerate(self.files):
            yield FileRead(
                self.name, self.format, str(file), number, self.columns, str(self.root), self.csv, bytes_max=bytes_max
            )

    def carried(self) -> dict[str, str]:
        """The columns that its first file has, with their types where files of that format have types.

        Empty for JSON lines, whose records need not have every column.

        Raises:
            InputError: it cannot be read.
        """
        if self.format == "jsonl" or not self.files or not self._of(self.files[0], lambda file: file.stat().st_size):
            return {}
        schema = first_schema(self.format, self.path, self.csv)
        return {one.name: "" if self.format == "csv" else str(one.type) for one in schema}

    def bytes(self) -> int:
        """The size of all files.

        Raises:
            InputError: one is gone.
        """
        return sum(self._of(file, lambda file: file.stat().st_size) for file in self.files)

    def row_count(self) -> int | None:
        """How many rows there are; None where only reading them all would tell, or there are too many files to ask.

        Raises:
            InputError: a file is gone or damaged.
        Cost: reads the footers of Parquet and Arrow files, and no rows.
        """
        count = _ROWS_OF.get(self.format)
        if not self.files:
            return 0
        if count is None or len(self.files) > FILES_OPENED_MAX:
            return None
        return sum(self._of(file, count) for file in self.files)

    def unpacked_bytes(self, columns: Sequence[str]) -> int:
        """What `columns` of all rows take in memory, as far as footers tell.

        Values that have no width of their own count as they are in Parquet files before they are compressed, so those
        that a dictionary has count once; those of other files count as the files.

        Raises:
            InputError: a file is gone or damaged.
        Cost: reads the footers of Parquet and Arrow files, and no rows.
        """
        widths = {name: _width(self.columns.field(name).type) for name in columns}
        others = {name for name, width in widths.items() if width is None}
        fixed = math.ceil((self.row_count() or 0) * sum(width or 0 for width in widths.values()) / 8)
        if not others:
            return fixed
        if self.format != "parquet":
            return fixed + self.bytes()
        return fixed + sum(self._of(file, lambda file: _unpacked(file, others)) for file in self.files)

    def about_rows(self) -> int | None:
        """How many rows there are; of text, or of too many files, about as many: by their bytes and what a row has.

        Of text a row has what those at the beginning of a few files have. None of files that are packed or not UTF-8,
        whose bytes on disk are not those of their rows.

        Raises:
            InputError: a file is gone.
            RunError: a file cannot be read.
        Cost: reads the beginning of `FILES_LOOKED_AT` files.
        """
        if (count := self.row_count()) is not None:
            return count
        measure = _ROWS_OF.get(self.format)
        rows = size = 0
        for file in self.files[:: max(1, len(self.files) // FILES_LOOKED_AT)][:FILES_LOOKED_AT]:
            whole = self._of(file, lambda file: file.stat().st_size)
            if measure is not None:
                rows, size = rows + self._of(file, measure), size + whole
            elif is_plain(file):
                dialect = self.csv if self.format == "csv" else None
                rows += sum(len(records) for _, records in records_of(str(file), dialect, LOOKED_AT_BYTES))
                size += min(whole, LOOKED_AT_BYTES)
            else:
                return None
        return round(self.bytes() * rows / size) if size else 0

    def first_rows(self, limit: int) -> tuple[pa.RecordBatch, list[DeadLetter]]:
        """Up to `limit` rows, file after file, and the records before and among them that could not be read.

        Raises:
            RunError: a file is gone, damaged or misses a column.
        Cost: opens as many files as it takes, and `FILES_OPENED_MAX` at most.
        """
        names = self.columns.names
        reads = islice(self._reads(SAMPLED_BYTES), FILES_OPENED_MAX)
        parts = [pa.RecordBatch.from_pylist([], schema=self.columns)]
        letters: list[DeadLetter] = []
        left = limit
        for rows, bad in chain.from_iterable(read.rows(names) for read in reads):
            parts.append(rows.slice(0, left))
            letters += bad
            left -= parts[-1].num_rows
            if left == 0 or len(letters) >= limit:
                break
        return pa.concat_batches(parts), letters

    def _of(self, file: Path, figure: Callable[[Path], Figure]) -> Figure:
        with _readable(file, self.format):
            return figure(file)


def _arrow_rows(file: Path) -> int:
    with mapped(file) as content:
        rows: int = pa.ipc.open_file(content).count_rows()
    return rows


def _parquet_rows(file: Path) -> int:
    rows: int = parquet_footer(file).num_rows
    return rows


def _width(kind: pa.DataType) -> int | None:
    """The bits of a value; None where each has its own."""
    try:
        width: int = kind.bit_width
    except ValueError:
        return None
    return width


def _unpacked(file: Path, columns: Collection[str]) -> int:
    """What a Parquet file's footer says of columns, before they are compressed."""
    footer = parquet_footer(file)
    named = [at for at in range(footer.num_columns) if footer.schema.column(at).path in columns]
    groups = map(footer.row_group, range(footer.num_row_groups))
    return sum(max(group.column(at).total_uncompressed_size, 0) for group in groups for at in named)


_ROWS_OF = {"parquet": _parquet_rows, "arrow": _arrow_rows}


@contextmanager
def _readable(file: Path, format: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowInvalid, OSError) as cause:
        raise InputError(f"{file} cannot be read as {format}: {cause}") from None


AnyRelation: TypeAlias = "Relation | ServedTable"
