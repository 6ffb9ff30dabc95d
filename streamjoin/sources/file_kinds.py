"""The files of a folder as sources and relations, as the registry has them: Parquet, CSV, JSON lines and Arrow."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa

from streamjoin.errors import InputError
from streamjoin.intake.dialect import PLAIN, Dialect
from streamjoin.settings.setting import Settings, setting
from streamjoin.settings.values import Flag, shown
from streamjoin.sources.filelog import list_files
from streamjoin.sources.guess import first_schema
from streamjoin.sources.kind import Columns, Limits, Resolve, SourceKind

OPENS = "streamjoin.sources.files:FileSource"
_MARKS = {"delimiter": '";"', "quote": '"\'", or "" for none'}


class CsvFile(Settings):
    """`csv:` of a stream or relation: see `Dialect`."""

    delimiter: Annotated[str, setting("one ASCII character")] = ","
    header: Annotated[Flag, setting("whether files begin with a line of column names")] = True
    names: Annotated[
        list[str] | None, setting("the columns' names, in the files' order, in place of those in the files")
    ] = None
    null: Annotated[str, setting("what stands for NULL where it is not in quotes")] = ""
    quote: Annotated[str, setting("one ASCII character, doubled inside a quoted field; empty for none")] = '"'

    def dialect(self) -> Dialect:
        """The dialect."""
        names = None if self.names is None else tuple(self.names)
        return Dialect(self.delimiter, self.quote, self.null, self.header, names)

    def check(self, has_columns: bool) -> None:
        """Refuse a dialect that cannot be read.

        Args:
            has_columns: whether columns are given.
        Raises:
            InputError: with the field.
        """
        for field, mark in (("delimiter", self.delimiter), ("quote", self.quote)):
            if (mark or field == "delimiter") and (len(mark) != 1 or not mark.isascii() or mark in "\r\n\0"):
                raise InputError(f"{shown(mark)} is not one ASCII character, such as {_MARKS[field]}", field=field)
        if self.delimiter == self.quote:
            raise InputError("is the delimiter, too; the two differ", field="quote")
        if any(mark and mark in self.null for mark in (self.delimiter, self.quote, "\r", "\n")):
            raise InputError(f"{shown(self.null)} has a delimiter, a quote or a line break in it", field="null")
        if self.names is not None and (not self.names or len(set(self.names)) < len(self.names)):
            raise InputError("needs a name for each column, each once", field="names")
        if not self.header and self.names is None and not has_columns:
            raise InputError("is missing; without a line of column names give names or a schema", field="names")


class FileSettings(Settings):
    """Files of one format."""

    path: Annotated[str, setting("a file, a folder, or a pattern such as data/**/*.csv")]

    @property
    def dialect(self) -> Dialect:
        """How CSV files are written."""
        return PLAIN


class CsvSettings(FileSettings):
    """CSV files."""

    csv: Annotated[CsvFile, setting("how the files are written")] = CsvFile()

    @property
    def dialect(self) -> Dialect:
        """How they are written."""
        return self.csv.dialect()


def _check(settings: FileSettings, has_columns: bool) -> None:
    if isinstance(settings, CsvSettings):
        try:
            settings.csv.check(has_columns)
        except InputError as wrong:
            raise InputError(wrong.message, field=f"csv.{wrong.field}") from None


def _of_format(format: str, says: str, settings: type[FileSettings] = FileSettings) -> SourceKind:
    def look(given: FileSettings, columns: pa.Schema | None, resolve: Resolve) -> pa.Schema:
        path = resolve(given.path)
        list_files(path)  # although the columns may be given: what is not there cannot be read
        return columns if columns is not None else first_schema(format, path, given.dialect)

    def arguments(given: FileSettings, resolve: Resolve, limits: Limits) -> dict[str, Any]:
        return {"format": format, "path": resolve(given.path), "files_per_batch": limits.files_per_batch,
                "csv": given.dialect, "alone": limits.alone}  # fmt: skip

    def is_bounded(given: FileSettings, resolve: Resolve) -> bool:
        return Path(resolve(given.path)).is_file()

    return SourceKind(
        format, says, settings, Columns.CARRIED, look, OPENS, arguments, _check,
        files=lambda given: {"path": given.path}, is_bounded=is_bounded, no_relation=None,
    )  # fmt: skip


PARQUET = _of_format("parquet", "Parquet files")
CSV = _of_format("csv", "CSV files", CsvSettings)
JSONL = _of_format("jsonl", "files of JSON lines")
ARROW = _of_format("arrow", "Arrow IPC files")
