"""Reading one file, some row groups of one, or several small files together: rows in blocks, and dead letters."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from streamjoin.errors import RunError
from streamjoin.intake.deadletter import DeadLetter
from streamjoin.intake.dialect import PLAIN, Dialect
from streamjoin.intake.intake import BLOCK_ROWS
from streamjoin.intake.records import text_decoder
from streamjoin.plan.nested import paths_of
from streamjoin.sources.columns import conform
from streamjoin.sources.lines import lines_of, other_delimiter, read_header, records_of
from streamjoin.sources.mapped import mapped, parquet_footer
from streamjoin.sources.partitions import partitions_of, with_partitions
from streamjoin.sources.source import Read
from streamjoin.sources.texts import TEXT_FORMATS


@dataclass(frozen=True, slots=True)
class FileRead:
    """A file, or some row groups of a Parquet file.

    Args:
        number: its place in the log.
        schema: the stream's columns.
        root: what lies below it of the file's folders may have columns in its names.
        csv: how CSV files are written.
        groups: which row groups; None for all.
        position: of the first row.
        bytes_max: of text, for a look at its beginning; None for all.
        bad: which records of a text file could not be read, as far as it was.
    """

    stream: str
    format: str
    path: str
    number: int
    schema: pa.Schema
    root: str
    csv: Dialect = PLAIN
    groups: tuple[int, ...] | None = None
    position: int = 0
    bytes_max: int | None = None
    bad: list[int] = field(default_factory=list, compare=False)

    @property
    def name(self) -> str:
        """File number and first row."""
        return f"{self.number:09d}:{self.position:012d}"

    @property
    def router(self) -> str:
        """All files of a stream: they follow each other."""
        return "files"

    @property
    def identity(self) -> str:
        """The file's place in the log and its name."""
        return f"{self.number}:{os.path.basename(self.path)}"

    @property
    def file(self) -> int | None:
        """Its number."""
        return self.number

    @property
    def shown_path(self) -> str:
        """The file as dead letters name it: with the folders below the stream's."""
        return os.path.relpath(self.path, self.root)

    def place(self, position: int) -> tuple[str, int, str]:
        """See `Read.place`."""
        if self.format not in TEXT_FORMATS:
            return self.shown_path, position, "row"
        # The position counts good rows only: the bad ones before are as many as fit in front of it.
        before = bisect_right(range(len(self.bad)), position, key=lambda at: self.bad[at] - at)
        return self.shown_path, position + before, "record"

    def located(self, letters: Sequence[DeadLetter]) -> list[DeadLetter]:
        """See `Read.located`. Cost: reads a text file again, up to the last of its bad records."""
        records = sorted({letter.position for letter in letters if letter.unit == "record"})
        if not records:
            return list(letters)
        lines = lines_of(self.path, self._dialect, records)
        return [
            replace(letter, position=lines[letter.position], unit="line") if letter.unit == "record" else letter
            for letter in letters
        ]

    @property
    def _dialect(self) -> Dialect | None:
        return self.csv if self.format == "csv" else None

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, Sequence[DeadLetter]]]:
        """The file's rows. Broken records of text files come as dead letters; a broken binary file is an error.

        Raises:
            RunError: the file cannot be read. It is not skipped, because its good rows would be lost.
        """
        named = partitions_of(self.path, self.root)
        if not named.keys() & set(columns):
            yield from self._carried(columns)
            return
        schema = self._columns(columns)
        for rows, letters in self._carried([name for name in columns if name not in named]):
            yield with_partitions(rows, named, schema, self.path), letters

    def _carried(self, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, Sequence[DeadLetter]]]:
        match self.format:
            case "parquet":
                yield from ((rows, ()) for rows in self._parquet(columns))
            case "arrow":
                yield from ((rows, ()) for rows in self._arrow(columns))
            case _:
                yield from self._text(columns)

    def _parquet(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with (
            _opened(self.path, lambda: mapped(self.path)) as content,
            _opened(self.path, lambda: pq.ParquetFile(content)) as file,
        ):
            paths = paths_of(file.schema_arrow, self.schema.names)
            self._check_known(paths or file.schema_arrow.names)
            carried = [".".join(paths[name]) for name in columns if name in paths]
            batches = file.iter_batches(BLOCK_ROWS, row_groups=self.groups, columns=carried, use_threads=False)
            for rows in _guarded(self.path, batches):
                yield conform(rows, self.schema, columns, self.path)

    def _arrow(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with _opened(self.path, lambda: mapped(self.path)) as content:
            file = _opened(self.path, lambda: pa.ipc.open_file(content))
            self._check_known(paths_of(file.schema, self.schema.names) or file.schema.names)
            for batch in _guarded(self.path, (file.get_batch(i) for i in range(file.num_record_batches))):
                rows = conform(batch, self.schema, columns, self.path)
                for first in range(0, rows.num_rows, BLOCK_ROWS):
                    yield rows.slice(first, BLOCK_ROWS)

    def _check_known(self, carried: Collection[str]) -> None:
        """A file may lack columns, as one from before there were any, but a stream's file does not lack all of them.

        Raises:
            RunError: none of the stream's columns is in the file.
        """
        own = [name for name in self.schema.names if name not in partitions_of(self.path, self.root)]
        if own and not set(carried) & set(own):
            is_csv, is_first = self.format == "csv", self.number == 0
            hint = other_delimiter([*carried], self.csv, is_first=is_first) if is_csv else None
            raise RunError(
                f"{self.path} has none of the columns {', '.join(own[:20])}; it has "
                f"{', '.join(list(carried)[:20]) or 'none'}{f'; {hint}' if hint else ''}"
            )

    def _header(self) -> list[str]:
        if self.csv.header or self.csv.names is not None:
            return read_header(self.path, self.csv)
        named = partitions_of(self.path, self.root)
        return [name for name in self.schema.names if name not in named]

    def _columns(self, names: Sequence[str]) -> pa.Schema:
        return pa.schema([self.schema.field(name) for name in names])

    def _text(self, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, Sequence[DeadLetter]]]:
        if self.format == "csv":
            header = self._header()
            if not header:  # an empty file, as Spark writes them, has no rows
                return
            self._check_known(header)
            if twice := [name for name in columns if header.count(name) > 1]:
                raise RunError(f'{self.path} has the column "{twice[0]}" twice')
            wanted = [name for name in columns if name in header]
            decode = text_decoder(self._columns(wanted), header, self.csv).decode
        else:
            decode = text_decoder(self._columns(columns)).decode
        self.bad.clear()
        for first, records in records_of(self.path, self._dialect, self.bytes_max):
            decoded = decode(records)
            letters = [
                DeadLetter(
                    self.stream, self.shown_path, first + bad.position, bad.reason, _with_way_out(bad.detail),
                    records[bad.position].as_py(), "record",
                )
                for bad in decoded.bad
            ]  # fmt: skip
            self.bad.extend(letter.position for letter in letters)
            rows = conform(decoded.rows, self.schema, columns, self.path)
            yield rows.slice(0, BLOCK_ROWS), letters
            for start in range(BLOCK_ROWS, rows.num_rows, BLOCK_ROWS):
                yield rows.slice(start, BLOCK_ROWS), ()


@dataclass(frozen=True, slots=True)
class GroupRead:
    """Small files that follow each other, as one: a block of rows costs as much to route as a hundred small ones.

    Args:
        files: two or more.
        firsts: the position of each file's first row, as far as they were read.
    """

    files: tuple[FileRead, ...]
    firsts: list[int] = field(default_factory=list, compare=False)
    position: int = 0

    @property
    def name(self) -> str:
        """That of the first file."""
        return self.files[0].name

    @property
    def router(self) -> str:
        """As of its files."""
        return self.files[0].router

    @property
    def identity(self) -> str:
        """The places of the first and the last file in the log."""
        return f"{self.files[0].number}-{self.files[-1].number}"

    @property
    def file(self) -> int | None:
        """The last one's number."""
        return self.files[-1].number

    def place(self, position: int) -> tuple[str, int, str]:
        """See `Read.place`: the file that the row is of, and its place in it."""
        file = bisect_right(self.firsts, position) - 1
        return self.files[file].place(position - self.firsts[file])

    def located(self, letters: Sequence[DeadLetter]) -> list[DeadLetter]:
        """See `Read.located`: the files' letters, file after file."""
        by_file: dict[str, list[DeadLetter]] = {}
        for letter in letters:
            by_file.setdefault(letter.source, []).append(letter)
        return [letter for file in self.files if (own := by_file.get(file.shown_path)) for letter in file.located(own)]

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, Sequence[DeadLetter]]]:
        """The rows of all files, in blocks. Errors are those of `FileRead.rows`."""
        self.firsts.clear()
        reached = 0
        parts: list[pa.RecordBatch] = []
        letters: list[DeadLetter] = []
        for file in self.files:
            self.firsts.append(reached)
            for rows, bad in file.rows(columns):
                reached += rows.num_rows
                parts.append(rows)
                letters += bad
                # Batches without columns cannot be put together.
                if not columns or sum(part.num_rows for part in parts) >= BLOCK_ROWS:
                    yield from _together(parts, letters)
                    parts, letters = [], []
        yield from _together(parts, letters)


def _together(
    parts: Sequence[pa.RecordBatch], letters: Sequence[DeadLetter]
) -> Iterator[tuple[pa.RecordBatch, Sequence[DeadLetter]]]:
    """Parts of less than two blocks as blocks."""
    if not parts:
        return
    rows = parts[0] if len(parts) == 1 else pa.concat_batches(parts)
    yield rows.slice(0, BLOCK_ROWS), letters
    if rows.num_rows > BLOCK_ROWS:
        yield rows.slice(BLOCK_ROWS), ()


def _with_way_out(detail: str) -> str:
    """The type of a column may have been guessed from rows that were all narrower."""
    if detail.startswith('field "') and ("expected" in detail or "the text is no" in detail or "range" in detail):
        return f"{detail}; where this is no mistake give the column another type in the stream's schema"
    return detail


def _opened(path: str, open_it: Any) -> Any:
    try:
        return open_it()
    except (pa.ArrowInvalid, OSError) as cause:
        raise RunError(f"{path} cannot be read: {cause}") from None


def _guarded(path: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    try:
        yield from batches
    except (pa.ArrowInvalid, OSError) as cause:
        raise RunError(f"{path} is damaged: {cause}") from None


def row_groups(whole: FileRead, parts: int) -> list[Read]:
    metadata = _opened(whole.path, lambda: parquet_footer(whole.path))
    groups = list(range(metadata.num_row_groups))
    size = -(-len(groups) // parts)
    reads: list[Read] = []
    position = 0
    for first in range(0, len(groups), max(size, 1)):
        chosen = tuple(groups[first : first + size])
        reads.append(replace(whole, groups=chosen, position=position))
        position += sum(metadata.row_group(group).num_rows for group in chosen)
    return reads or [whole]
