"""What the Avro machine read, as typed columns. Which Avro type may fill which column is one table.

column           written as
bool             boolean
int8 .. int64    int, long with any logical type; a number that does not fit is bad
float32          float
float64          float, double; int and long rounded to the nearest
decimal          decimal on bytes or fixed of the same or a smaller scale
date             date
timestamp, _ns   timestamp-millis, -micros, -nanos, and their local forms, read as UTC
string           string, enum; bytes that are UTF-8
binary           bytes, fixed, string
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin.errors import InputError
from streamjoin.intake.records.assemble import Column
from streamjoin.intake.records.avro_program import Leaf
from streamjoin.intake.records.cells import MALFORMED, NULL, OUT_OF_RANGE, TEXT, Bytes, FieldCells, Longs
from streamjoin.intake.records.columns import explain, fixed_array, integer_limits, text_array
from streamjoin.intake.records.int128 import (
    ZERO,
    Limbs,
    below,
    limbs_of,
    negated,
    times_256_plus,
    times_ten_plus,
    words,
)
from streamjoin.intake.records.text_copy import copy_text
from streamjoin.intake.records.utf8 import mark_invalid_utf8
from streamjoin.kernel import lean_kernel
from streamjoin.plan.schema import type_name

_UNIT_NS: Final = {
    f"{local}timestamp-{unit}": size
    for local in ("", "local-")
    for unit, size in (("millis", 1_000_000), ("micros", 1_000), ("nanos", 1))
}
_INTEGERS: Final = ("int", "long")
_ONES: Final = (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF)


def check_column(name: str, leaf: Leaf, data_type: pa.DataType) -> None:
    """Raise `InputError` when a column of `data_type` cannot be filled from `leaf`."""
    if leaf.type == "null" or _fits(leaf, data_type):
        return
    raise InputError(f'column "{name}": Avro {leaf} cannot be read as {type_name(data_type)}')


def _fits(leaf: Leaf, data_type: pa.DataType) -> bool:
    if pa.types.is_boolean(data_type):
        return leaf.type == "boolean"
    if pa.types.is_integer(data_type):
        return leaf.type in _INTEGERS
    if pa.types.is_float32(data_type):
        return leaf.type == "float"
    if pa.types.is_float64(data_type):
        return leaf.type in ("float", "double", *_INTEGERS)
    if pa.types.is_decimal(data_type):
        is_decimal = leaf.type in ("bytes", "fixed") and leaf.logical == "decimal"
        return is_decimal and 0 <= leaf.scale <= data_type.scale
    if pa.types.is_date(data_type):
        return leaf.type == "int" and leaf.logical == "date"
    if pa.types.is_timestamp(data_type):
        return leaf.type == "long" and leaf.logical in _UNIT_NS
    if pa.types.is_string(data_type):
        return leaf.type in ("string", "bytes", "enum")
    return leaf.type in ("bytes", "fixed", "string")


def avro_column(cells: FieldCells, leaf: Leaf, data_type: pa.DataType) -> Column:
    """The typed column of one field that passed `check_column`."""
    fault = np.zeros(len(cells.kind), np.uint8)
    if leaf.type == "null":
        array = pa.nulls(len(fault), data_type)
    elif pa.types.is_string(data_type) or pa.types.is_binary(data_type):
        array = _enum(cells, leaf) if leaf.type == "enum" else _text(cells, data_type, fault)
    elif pa.types.is_decimal(data_type):
        array = _decimals(cells, leaf, data_type, fault)
    else:
        array = fixed_array(_numbers(cells.start, leaf, data_type, fault), cells.kind == TEXT, data_type)
    return Column(array, fault, lambda row: explain(int(fault[row]), TEXT, data_type))


def _numbers(raw: Longs, leaf: Leaf, data_type: pa.DataType, fault: Bytes) -> npt.NDArray[np.generic]:
    """The values of a column of fixed width; `raw` is 0 where the record has none."""
    if leaf.type == "float":
        return raw.astype(np.uint32).view(np.float32).astype(data_type.to_pandas_dtype())
    if leaf.type == "double":
        return raw.view(np.float64)
    if pa.types.is_integer(data_type):
        low, high = integer_limits(data_type)
        fault[(raw < low) | (raw > high)] = OUT_OF_RANGE
        return raw.astype(data_type.to_pandas_dtype())
    if pa.types.is_timestamp(data_type):
        steps, rest = divmod(_UNIT_NS[leaf.logical], 1 if data_type.unit == "ns" else 1_000)
        if rest:  # what is finer than a microsecond is cut off
            return raw // 1_000
        limit = (2**63 - 1) // steps
        fault[(raw < -limit) | (raw > limit)] = OUT_OF_RANGE
        return raw * steps
    if pa.types.is_date(data_type):
        return raw.astype(np.int32)
    return raw.astype(np.bool_ if pa.types.is_boolean(data_type) else np.float64)


def _enum(cells: FieldCells, leaf: Leaf) -> pa.Array:
    index = pa.array(cells.start, pa.int64(), mask=cells.kind != TEXT)
    return pa.array(leaf.symbols, pa.string()).take(index)


def _text(cells: FieldCells, data_type: pa.DataType, fault: Bytes) -> pa.Array:
    if pa.types.is_string(data_type):
        mark_invalid_utf8(cells.data, cells.start, cells.length, fault)
    out = np.empty(int(cells.length.sum()), np.uint8)
    offsets = np.empty(len(fault) + 1, np.int64)
    copy_text(cells.data, cells.kind, cells.start, cells.length, out, offsets, fault)
    return text_array(out[: offsets[-1]], offsets, cells.kind > NULL, data_type)


def _decimals(cells: FieldCells, leaf: Leaf, data_type: pa.DataType, fault: Bytes) -> pa.Array:
    shift = data_type.scale - leaf.scale
    limit = limbs_of(10 ** max(0, data_type.precision - shift))
    pairs = np.zeros((len(fault), 2), np.int64)
    _read_decimals(cells.data, cells.kind, cells.start, cells.length, shift, limit, pairs, fault)
    return fixed_array(pairs, cells.kind == TEXT, data_type)


@lean_kernel
def _read_decimals(
    data: Bytes, kind: Bytes, start: Longs, length: Longs, shift: int, limit: Limbs, out: Longs, fault: Bytes
) -> None:
    """Big-endian two's complement of 1 to 16 bytes, times 10**shift; `out` is of shape (n, 2), low word first."""
    for row in range(len(start)):
        if kind[row] != TEXT:
            continue
        size = length[row]
        if size == 0:
            fault[row] = MALFORMED
            continue
        if size > 16:
            fault[row] = OUT_OF_RANGE
            continue
        is_negative = data[start[row]] >= 0x80
        magnitude = _ONES if is_negative else ZERO
        for at in range(start[row], start[row] + size):
            magnitude = times_256_plus(magnitude, int(data[at]))
        if is_negative:
            magnitude = negated(magnitude)
        if not below(magnitude, limit):
            fault[row] = OUT_OF_RANGE
            continue
        for _ in range(shift):
            magnitude = times_ten_plus(magnitude, 0)
        out[row, 0], out[row, 1] = words(negated(magnitude) if is_negative else magnitude)
