"""The columns of one text file, CSV or JSON lines, whose schema nobody gave, by a look at its beginning."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

from streamjoin.errors import InputError
from streamjoin.intake.dialect import PLAIN, Dialect
from streamjoin.plan.functions.times import cut_fractions
from streamjoin.plan.schema import COLUMNS_MAX
from streamjoin.plan.types import TIMESTAMP, TIMESTAMP_NS
from streamjoin.sources.agreeing import agreeing
from streamjoin.sources.columns import widened
from streamjoin.sources.lines import ends_of
from streamjoin.sources.nesting import DEPTH_MAX, depth_of
from streamjoin.sources.texts import HEAD_BYTES, head_of, is_plain
from streamjoin.sources.widths import Fields, as_texts, own_names, wide_names

_PIECE_BYTES = 1 << 18
WIDE_INTEGER = pa.decimal128(38, 0)
"""What integers beyond int64 are guessed to be; as floats two of them may be equal that are not."""


def infer_schema(path: Path, format: str, dialect: Dialect | None = None) -> pa.Schema:
    """The columns of a CSV or JSON lines file: from its first megabyte, and numbers from its middle and end, too.

    All are texts where there are more than a stream may have.

    Raises:
        InputError: it is empty, or its beginning is not of that format.
        RunError: it cannot be read, or its many names are no text.
    """
    dialect = dialect or PLAIN
    head, is_cut = head_of(path, HEAD_BYTES)
    if is_cut and (ends := ends_of(head, dialect if format == "csv" else None, False)).size:
        head = head[: int(ends[-1]) + 1]
    if not head.strip():
        raise InputError(f"{path} is empty, so its columns are unknown; give a schema")
    try:
        if format == "csv":
            found = _csv_columns(head, dialect, path)
            later = replace(dialect, names=tuple(found.names), header=False)
            columns: Callable[[bytes], pa.Schema] = functools.partial(_csv_columns, dialect=later, path=path)
            # Where quotes protect line breaks nobody can tell where in the file a record begins.
            pieces = [] if _protects(head, dialect) else list(_pieces(path))
        else:
            columns, pieces = _json_columns, list(_pieces(path))
            found = columns(head)
    except UnicodeDecodeError as cause:
        raise InputError(f"{path} is not UTF-8 text from byte {cause.start + 1} on; save it as UTF-8") from None
    except pa.ArrowInvalid as cause:
        raise InputError(f"{path} does not begin as {format}: {cause}; give a schema") from None
    for piece in pieces:
        with contextlib.suppress(pa.ArrowInvalid, UnicodeDecodeError):  # a bad record costs itself only
            found = widened(found, columns(piece))
    # A time of day is no type of a stream's column; its text is.
    return pa.schema([field.with_type(pa.string()) if pa.types.is_time(field.type) else field for field in found])


def _pieces(path: Path) -> Iterator[bytes]:
    """Whole lines from the middle and the end of a long text; none of what has to be read from its beginning."""
    size = path.stat().st_size
    if size <= 2 * HEAD_BYTES or not is_plain(path):
        return
    with open(path, "rb") as file:
        for at in (size // 2, size - _PIECE_BYTES):
            file.seek(at)
            lines = file.read(_PIECE_BYTES).split(b"\n")[1:-1]
            if lines:
                yield b"\n".join(lines) + b"\n"


def _protects(head: bytes, dialect: Dialect) -> bool:
    return ends_of(head, dialect, True).size != head.count(b"\n")


def _json_columns(head: bytes) -> pa.Schema:
    # Lines that do not even begin as objects are left out: Arrow's reader ends the process where the first is null.
    fields = Fields(b"\n".join(_OBJECTS.findall(head)))
    if len(names := fields.columns()) > COLUMNS_MAX:
        return as_texts(names)
    lines = fields.lines()
    table = _read_json(lines, depth_of(head))
    found = [field.with_type(_with_times(table[field.name])) for field in table.schema]
    if any(_is_doubtful(field.type) or pa.types.is_struct(field.type) for field in found):
        rows = list(_objects(lines))
        found = [field.with_type(_exact(field.type, [row.get(field.name) for row in rows])) for field in found]
    return pa.schema(found)


def _objects(lines: bytes) -> Iterator[dict[str, Any]]:
    """Each line that is an object; None in it stands for fractions, too, and integers have all their digits."""
    for line in lines.split(b"\n"):
        with contextlib.suppress(ValueError, RecursionError):
            if isinstance(row := json.loads(line, parse_float=_Fraction), dict):
                yield row


class _Fraction(str):
    """A number that is no integer."""


def _exact(kind: pa.DataType, values: list[Any]) -> pa.DataType:
    """A column's type, whose integers Arrow guesses to be floats where one is beyond int64, and some texts times."""
    if pa.types.is_struct(kind):
        rows = [value for value in values if isinstance(value, dict)]
        return pa.struct([field.with_type(_exact(field.type, [row.get(field.name) for row in rows])) for field in kind])
    if pa.types.is_timestamp(kind):
        return (
            pa.string() if any(isinstance(value, str) and re.search(_NOT_DECODED, value) for value in values) else kind
        )
    numbers = [value for value in values if isinstance(value, int | _Fraction) and not isinstance(value, bool)]
    is_whole = bool(numbers) and all(isinstance(number, int) for number in numbers)
    return WIDE_INTEGER if pa.types.is_floating(kind) and is_whole else kind


_OBJECTS = re.compile(rb"(?m)^[ \t\r]*\{.*")


def _read_json(lines: bytes, depth: int) -> pa.Table:
    """Lines that agree, where others do not; `depth` is that of all, also of those that are no objects."""
    try:
        if depth > DEPTH_MAX:
            raise pa.ArrowInvalid(f"values are nested more than {DEPTH_MAX} deep")
        if not lines:
            raise pa.ArrowInvalid("no line is an object")
        return pyarrow.json.read_json(io.BytesIO(lines))
    except pa.ArrowInvalid:
        if not (lines := agreeing(lines)):
            raise
        return pyarrow.json.read_json(io.BytesIO(lines))


def _csv_columns(head: bytes, dialect: Dialect, path: Path) -> pa.Schema:
    # A record that is no UTF-8 is a bad one; it makes no column binary, and Arrow cannot even leave it out. Where there
    # are zeros as well it is no text at all.
    head = head.decode("utf-8", "strict" if b"\0" in head else "replace").encode()
    names = wide_names(path, head, dialect)
    chosen = own_names(names)
    if names and not 0 < len(chosen) <= COLUMNS_MAX:
        return as_texts(names)
    table = _read_csv(head, dialect, chosen)
    # Arrow takes times of day in text for nanoseconds or nothing, and no year after 2262 is one.
    found = [field.with_type(_with_times(table.column(at))) for at, field in enumerate(table.schema)]
    counts = Counter(field.name for field in found)
    doubtful = {field.name for field in found if _is_doubtful(field.type) and counts[field.name] == 1}
    if doubtful:
        texts = _read_csv(head, dialect, chosen, dict.fromkeys(doubtful, pa.string()))
        found = [
            field.with_type(_as_decoded(field.type, texts[field.name])) if field.name in doubtful else field
            for field in found
        ]
    if names:
        guessed = {field.name: field for field in found}
        found = [guessed.get(name, pa.field(name, pa.string())) for name in names]
    return pa.schema(found)


def _is_doubtful(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_timestamp(kind))


_NOT_DECODED = r"^\s*0[xX]|^\s*\d{4}-\d\d-\d\d[T ]\d\d(Z|[+-]\d\d(:?\d\d)?)?\s*$"
"""What Arrow takes for a number or a time, and a stream for a text: hexadecimal digits, and hours without minutes."""


def _as_decoded(kind: pa.DataType, texts: pa.ChunkedArray) -> pa.DataType:
    """The type of a column that Arrow takes for one of `kind`, by its texts."""
    if pc.any(pc.match_substring_regex(texts, _NOT_DECODED)).as_py():
        return pa.string()
    return WIDE_INTEGER if pa.types.is_floating(kind) and _are_integers(texts) else kind


def _are_integers(texts: pa.ChunkedArray) -> bool:
    """Whether all numbers are integers: then one is beyond int64, or they would not have been guessed to be floats."""
    texts = pc.utf8_trim_whitespace(texts)
    return bool(pc.all(pc.match_substring_regex(texts, r"^[+-]?\d+$"), min_count=1).as_py())


def _read_csv(
    head: bytes, dialect: Dialect, chosen: list[str], types: Mapping[str, pa.DataType] | None = None
) -> pa.Table:
    """As the decoder reads it, but that bad lines are left out and types that are not given are guessed.

    Args:
        chosen: these columns only, if any.
    """
    return pyarrow.csv.read_csv(
        io.BytesIO(head),
        read_options=pyarrow.csv.ReadOptions(
            column_names=dialect.names, skip_rows=1 if dialect.header and dialect.names is not None else 0,
            autogenerate_column_names=False,
        ),
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=dialect.delimiter, quote_char=dialect.quote or False, newlines_in_values=True,
            invalid_row_handler=lambda row: "skip",
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            null_values=["", dialect.null], strings_can_be_null=True, quoted_strings_can_be_null=False,
            column_types=types, include_columns=chosen, include_missing_columns=True,
        ),
    )  # fmt: skip


def _with_times(values: pa.ChunkedArray) -> pa.DataType:
    """A column's type, in which texts are times if all of them are; so are fields of structs."""
    kind = values.type
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_with_times(pc.struct_field(values, [at]))) for at, field in enumerate(kind)])
    return _time_type(values) or kind


_MOMENT = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?"
_ZONES = {"UTC": r"(Z|[+-]\d\d(:?\d\d)?)$", None: "$"}
"""The zone that a type has -> how texts of it end."""


def _time_type(texts: pa.ChunkedArray) -> pa.DataType | None:
    """The type of texts that all are ISO 8601 date and time; None where one is something else.

    It has nanoseconds if a text has, unless one is of a year that nanoseconds do not reach.
    """
    if not pa.types.is_string(texts.type) or texts.null_count == len(texts):
        return None
    zones = [zone for zone, end in _ZONES.items() if pc.all(pc.match_substring_regex(texts, _MOMENT + end)).as_py()]
    if not zones:
        return None
    (zone,) = zones
    try:
        cut_fractions(texts).cast(pa.timestamp("us", zone))
    except pa.ArrowInvalid:
        return None
    if pc.any(pc.match_substring_regex(texts, r"\.\d{6}\d*[1-9]")).as_py():
        with contextlib.suppress(pa.ArrowInvalid):
            cut_fractions(texts, 9).cast(pa.timestamp("ns", zone))
            return TIMESTAMP_NS
    return TIMESTAMP
