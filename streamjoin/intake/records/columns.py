"""Cells to typed columns: one rule per column type, the same for JSON and CSV.

type             JSON                                   CSV (blanks around it are ignored, blank is NULL)
bool             true, false                            true, false in any case, 1, 0
int8 .. int64    number without fraction and exponent   the same; a plus sign may stand before it
float32, 64      number, rounded to the nearest         the same, and nan, inf, infinity in any case
decimal          number or string, never rounded        the same
date, timestamp  string, see `parse_time`               the same
string           string                                 text, blanks and all; empty is NULL, `""` is empty text
binary           string, kept as its UTF-8 bytes        the same
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin.intake.records.assemble import Column
from streamjoin.intake.records.cells import (
    ABSENT,
    ESCAPED,
    FALSE,
    KIND_NAMES,
    LONE_SURROGATE,
    MALFORMED,
    NOT_UTF8,
    NULL,
    NUMBER,
    OUT_OF_RANGE,
    QUOTED,
    STRING,
    TEXT,
    TOO_FINE,
    TRUE,
    WRONG_KIND,
    Bytes,
    FieldCells,
    Flags,
    Longs,
)
from streamjoin.intake.records.parse_number import (
    NAMED,
    check_floats,
    parse_booleans,
    parse_decimals,
    parse_integers,
)
from streamjoin.intake.records.parse_time import parse_dates, parse_timestamps, parse_timestamps_ns
from streamjoin.intake.records.text_copy import copy_text
from streamjoin.kernel import lean_kernel
from streamjoin.plan.schema import type_name


def _word(text: bytes) -> Bytes:
    return np.frombuffer(text, np.uint8)


_TRUE_WORD: Final = _word(b"true")
_FALSE_WORD: Final = _word(b"false")
_FAULTS: Final = {
    WRONG_KIND: "{what} where {name} is expected",
    MALFORMED: "the text is no {name}",
    OUT_OF_RANGE: "out of range for {name}",
    TOO_FINE: "more digits than {name} keeps",
    LONE_SURROGATE: "an escaped surrogate without its pair is not text",
    NOT_UTF8: "not valid UTF-8",
}
_FLOAT_NAMES: Final = (_word(b"nan"), _word(b"inf"), _word(b"infinity"))


def explain(fault: int, kind: int, data_type: pa.DataType) -> str:
    """One cell's fault in words; `kind` is what stood there."""
    name = type_name(data_type)
    if fault == MALFORMED and kind == NUMBER:
        return f"a number with fraction or exponent where {name} is expected"
    if fault == MALFORMED and pa.types.is_temporal(data_type):
        return (
            f"the text is no {name}, such as {'2026-01-31' if pa.types.is_date(data_type) else '2026-01-31T12:00:00Z'}"
        )
    return _FAULTS[fault].format(what=KIND_NAMES[kind], name=name)


def column_of(cells: FieldCells, data_type: pa.DataType) -> Column:
    """The typed column of one field; a cell that is no value of `data_type` is a fault."""
    fault = np.zeros(len(cells.kind), np.uint8)
    if not (pa.types.is_string(data_type) or pa.types.is_binary(data_type)):
        cells = _trimmed(cells)
    _mark_wrong_kinds(cells.kind, _kinds_of(data_type), fault)
    array = _array(cells, data_type, fault)
    return Column(array, fault, lambda row: explain(int(fault[row]), int(cells.kind[row]), data_type))


def nulls(count: int, data_type: pa.DataType) -> Column:
    """A column that no record has anything for."""
    return Column(pa.nulls(count, data_type), np.zeros(count, np.uint8), lambda row: "")


def _kinds_of(data_type: pa.DataType) -> Bytes:
    """Lookup table of shape (256,): 1 for every kind of cell that a column of `data_type` reads."""
    if pa.types.is_boolean(data_type):
        kinds = [TRUE, FALSE, TEXT]
    elif pa.types.is_integer(data_type) or pa.types.is_floating(data_type):
        kinds = [NUMBER, TEXT]
    elif pa.types.is_decimal(data_type):
        kinds = [NUMBER, STRING, ESCAPED, TEXT]
    elif pa.types.is_date(data_type) or pa.types.is_timestamp(data_type):
        kinds = [STRING, ESCAPED, TEXT]
    else:
        kinds = [STRING, ESCAPED, TEXT, QUOTED]
    table = np.zeros(256, np.uint8)
    table[[ABSENT, NULL, *kinds]] = 1
    return table


@lean_kernel
def _mark_wrong_kinds(kind: Bytes, allowed: Bytes, fault: Bytes) -> None:
    for row in range(len(kind)):
        if not allowed[kind[row]]:
            fault[row] = WRONG_KIND


@lean_kernel
def _trim(data: Bytes, kind: Bytes, start: Longs, length: Longs) -> None:
    """Cut blanks and tabs off CSV cells; what is empty then is null."""
    for row in range(len(kind)):
        if kind[row] != TEXT:
            continue
        at = start[row]
        end = at + length[row]
        while at < end and (data[at] == 0x20 or data[at] == 0x09):
            at += 1
        while end > at and (data[end - 1] == 0x20 or data[end - 1] == 0x09):
            end -= 1
        start[row] = at
        length[row] = end - at
        if at == end:
            kind[row] = NULL


def _trimmed(cells: FieldCells) -> FieldCells:
    """Cells of a column that is not text: CSV cells trimmed in place, escaped JSON strings resolved into a copy."""
    _trim(cells.data, cells.kind, cells.start, cells.length)
    if not (cells.kind == ESCAPED).any():
        return cells
    # Some writers escape the plus sign of a time zone.
    kind = np.where(cells.kind == NUMBER, TEXT, cells.kind).astype(np.uint8)
    unreadable = np.zeros(len(kind), np.uint8)
    text, offsets = _text(FieldCells(cells.data, kind, cells.start, cells.length), unreadable)
    text.flags.writeable = False
    return FieldCells(text, cells.kind, offsets[:-1].copy(), np.diff(offsets))


def _text(cells: FieldCells, fault: Bytes) -> tuple[Bytes, Longs]:
    """The text of every cell, one after the other, and its n + 1 offsets."""
    is_text = cells.kind >= STRING
    out = np.empty(int(cells.length.sum(where=is_text)), np.uint8)
    offsets = np.empty(len(cells.kind) + 1, np.int64)
    copy_text(cells.data, cells.kind, cells.start, cells.length, out, offsets, fault)
    return out[: offsets[-1]], offsets


def text_array(text: Bytes, offsets: Longs, filled: Flags, data_type: pa.DataType) -> pa.Array:
    """A string or binary array over `text`, null where not `filled`."""
    buffers = [_bitmap(filled), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(text)]
    return pa.Array.from_buffers(data_type, len(filled), buffers)


def fixed_array(numbers: npt.NDArray[np.generic], filled: Flags, data_type: pa.DataType) -> pa.Array:
    """An array of a type of fixed width over `numbers`, null where not `filled`; a bool column takes one byte each."""
    if pa.types.is_boolean(data_type):
        packed = np.packbits(numbers.astype(np.bool_), bitorder="little")
        return pa.Array.from_buffers(data_type, len(filled), [_bitmap(filled), pa.py_buffer(packed)])
    return pa.Array.from_buffers(data_type, len(filled), [_bitmap(filled), pa.py_buffer(numbers)])


def _bitmap(filled: Flags) -> pa.Buffer | None:
    return None if filled.all() else pa.py_buffer(np.packbits(filled, bitorder="little"))


def integer_limits(data_type: pa.DataType) -> tuple[int, int]:
    """Least and greatest value of a signed integer type."""
    limits = np.iinfo(data_type.to_pandas_dtype())
    return int(limits.min), int(limits.max)


def _array(cells: FieldCells, data_type: pa.DataType, fault: Bytes) -> pa.Array:
    filled = cells.kind > NULL
    place = (cells.data, cells.start, cells.length, filled)
    count = len(filled)
    if pa.types.is_string(data_type) or pa.types.is_binary(data_type):
        return text_array(*_text(cells, fault), filled, data_type)
    if pa.types.is_boolean(data_type):
        flags = (cells.kind == TRUE).astype(np.uint8)
        parse_booleans(cells.data, cells.start, cells.length, cells.kind == TEXT, _TRUE_WORD, _FALSE_WORD, flags, fault)
        return fixed_array(flags, filled, data_type)
    if pa.types.is_floating(data_type):
        return _floats(cells, filled, data_type, fault)
    if pa.types.is_decimal(data_type):
        pairs = np.zeros((count, 2), np.int64)
        parse_decimals(*place, data_type.precision, data_type.scale, pairs, fault)
        return fixed_array(pairs, filled, data_type)
    numbers = np.zeros(count, np.int64)
    if pa.types.is_timestamp(data_type):
        (parse_timestamps_ns if data_type.unit == "ns" else parse_timestamps)(*place, numbers, fault)
    elif pa.types.is_date(data_type):
        parse_dates(*place, numbers, fault)
        numbers = numbers.astype(np.int32)
    else:
        parse_integers(*place, *integer_limits(data_type), numbers, fault)
        numbers = numbers.astype(data_type.to_pandas_dtype())
    return fixed_array(numbers, filled, data_type)


def _floats(cells: FieldCells, filled: Flags, data_type: pa.DataType, fault: Bytes) -> pa.Array:
    check_floats(cells.data, cells.start, cells.length, filled, _FLOAT_NAMES, fault)
    is_named = fault == NAMED
    fault[is_named & (cells.kind == NUMBER)] = MALFORMED
    fault[is_named] = 0
    is_readable = filled & (fault == 0)
    kind = np.where(is_readable, TEXT, NULL).astype(np.uint8)
    text, offsets = _text(FieldCells(cells.data, kind, cells.start, cells.length), fault)
    # Arrow rounds to the nearest float, which is work of its own to do right.
    numbers = text_array(text, offsets, is_readable, pa.string()).cast(data_type)
    is_infinite = np.isinf(numbers.fill_null(0).to_numpy(zero_copy_only=False))
    fault[is_infinite & ~is_named] = OUT_OF_RANGE
    return numbers
