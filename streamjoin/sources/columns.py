"""Columns as files carry them, as columns of a stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.errors import InputError, RunError
from streamjoin.plan.decimals import to_float64
from streamjoin.plan.functions.times import from_text
from streamjoin.plan.nested import leaves, paths_of
from streamjoin.plan.schema import is_reserved, parse_type, type_name, without
from streamjoin.plan.types import (
    COLUMN_DIGITS_MAX,
    DIGITS_MAX,
    TIMESTAMP,
    TIMESTAMP_NS,
    as_decimal,
    is_instant,
    is_text,
)


def stream_type(kind: pa.DataType) -> pa.DataType | None:
    """The type a stream has for a column of `kind`, or None where it has none, as for lists.

    A UUID and a time of day are text: 36 lower-case characters, and HH:MM:SS.ffffff, or nine digits where there are
    nanoseconds.
    """
    if pa.types.is_dictionary(kind):
        return stream_type(kind.value_type)
    if kind == pa.uuid() or pa.types.is_time(kind):
        return pa.string()
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind):
        return TIMESTAMP_NS if kind.unit == "ns" else TIMESTAMP
    if pa.types.is_date64(kind):
        return pa.date32()
    if pa.types.is_unsigned_integer(kind):
        return pa.decimal128(20, 0) if kind.bit_width == 64 else pa.int64()
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_decimal(kind) and 0 <= kind.scale <= kind.precision <= 38:
        return pa.decimal128(kind.precision, kind.scale)
    try:
        return parse_type(type_name(kind))
    except InputError:
        return None


def stream_schema(carried: pa.Schema) -> pa.Schema:
    """The columns of a file that a stream can have; a field of a struct is a column `struct.field`.

    Lists are left out, and so are names that begin with two underscores, such as pandas' `__index_level_0__`, and
    those that are there twice.

    Where a file has a column of that very name, it is the one.
    """
    type_of = lru_cache(stream_type)  # there are fewer types than columns
    every = [(field, len(path)) for field, path in leaves(carried)]
    own = {field.name for field, depth in every if depth == 1}
    chosen = [field for field, depth in every if depth == 1 or field.name not in own]
    counts = Counter(field.name for field in chosen)
    fields, others = [], {field.name: str(field.type) for field, _ in every if type_of(field.type) is None}
    for field in chosen:
        kind = type_of(field.type)
        if counts[field.name] > 1:
            others[field.name] = "there twice"
        elif is_reserved(field.name):
            others[field.name] = str(field.type)
        elif kind is not None:
            fields.append(pa.field(field.name, kind))
    return without(pa.schema(fields), others)


def widened(first: pa.Schema, other: pa.Schema) -> pa.Schema:
    """The columns of two files of one stream: numbers as wide as both need, dates and times as fine, otherwise as the
    first file has them."""
    fields = list(first)
    counts = Counter(field.name for field in fields)
    places = {field.name: at for at, field in enumerate(fields)}
    for field in other:
        if field.name not in places:
            places[field.name] = len(fields)
            fields.append(field)
        elif counts[field.name] < 2:  # a name that is there twice is refused later
            at = places[field.name]
            fields[at] = field.with_type(_wider(fields[at].type, field.type))
    return pa.schema(fields, first.metadata)


def _wider(first: pa.DataType, other: pa.DataType) -> pa.DataType:
    if pa.types.is_null(first):
        return other
    if is_instant(first) and is_instant(other):
        fits = pa.types.is_date(other) or (pa.types.is_timestamp(first) and other.unit != "ns")
        return first if fits else other
    if first == other or not (_is_number(first) and _is_number(other)):
        return first
    if (
        pa.types.is_decimal(first)
        or pa.types.is_decimal(other)
        or pa.types.is_uint64(first) != pa.types.is_uint64(other)
    ):
        return _exact_or_float(first, other)
    both = [pa.schema([("x", kind)]) for kind in (first, other)]
    try:
        return pa.unify_schemas(both, promote_options="permissive").field("x").type
    except pa.ArrowTypeError:
        return first


def _exact_or_float(first: pa.DataType, other: pa.DataType) -> pa.DataType:
    """A decimal for both, of the most digits there are where more were needed; a float with anything is float64."""
    if pa.types.is_floating(first) or pa.types.is_floating(other):
        return pa.float64()
    kinds = [as_decimal(kind) if not pa.types.is_uint64(kind) else pa.decimal128(20, 0) for kind in (first, other)]
    scale = max(kind.scale for kind in kinds)
    whole = max(kind.precision - kind.scale for kind in kinds)
    return pa.decimal128(min(whole + scale, COLUMN_DIGITS_MAX), scale)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def conform(rows: pa.RecordBatch, schema: pa.Schema, columns: Sequence[str], where: str) -> pa.RecordBatch:
    """`columns` of `rows`, with the types `schema` gives them; one that is not there is NULL.

    Raises:
        RunError: a column holds what its type cannot; `where` names the file.
    """
    arrays = []
    paths = paths_of(rows.schema, columns)
    for name in columns:
        kind = schema.field(name).type
        if name not in paths:
            arrays.append(pa.nulls(rows.num_rows, kind))
            continue
        first, *inside = paths[name]
        values = pc.struct_field(rows.column(first), inside) if inside else rows.column(first)
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if values.type != kind:
            try:
                values = _converted(values, kind)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as cause:
                raise RunError(f'{where}, column "{name}": {cause}') from None
        arrays.append(values)
    return (
        pa.RecordBatch.from_arrays(arrays, schema=pa.schema([schema.field(name) for name in columns]))
        if columns
        else (rows.select([]))
    )


def _converted(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """`values` as `kind`, exactly; of times, what is finer than the type's unit is cut off.

    Raises:
        ValueError: one does not fit, or the types mean different things.
    """
    given = values.type
    if pa.types.is_string_view(given):  # Arrow cannot cast these to timestamps or dates
        return _converted(values.cast(pa.string()), kind)
    if given == pa.uuid():
        return _converted(values.storage, kind)
    if given == pa.binary(16) and pa.types.is_string(kind):
        return _uuid_texts(values)
    if pa.types.is_time(given) and pa.types.is_string(kind):
        return _clock_texts(values, kind)
    if pa.types.is_timestamp(given) and pa.types.is_timestamp(kind):
        return (_nanoseconds if kind.unit == "ns" else _microseconds)(values).view(kind)
    if pa.types.is_timestamp(given) and pa.types.is_date(kind):
        return _days(values)
    is_other = _means(given) != _means(kind) and {_means(given), _means(kind)} & {"truth", "time", "bytes"}
    if is_other and not (is_text(given) or pa.types.is_null(given)):
        is_clock = pa.types.is_integer(given) and pa.types.is_timestamp(kind)
        hint = "; declare it as it is and give time_unit" if is_clock else ""
        raise ValueError(f"it is {type_name(given)} here, and {type_name(kind)} in the schema{hint}")
    if pa.types.is_timestamp(kind):
        return from_text(values, kind)
    if pa.types.is_integer(given) and pa.types.is_decimal(kind):
        values = values.cast(pa.decimal128(20, 0))  # of an integer Arrow asks whether any of its type would fit
    if is_text(given):
        values = readable(values, kind)
    if pa.types.is_decimal(given) and pa.types.is_floating(kind):
        # The nearest, which Arrow's own cast misses for every seventh cent.
        wide = values.cast(pa.decimal128(given.precision, given.scale)) if given.bit_width < 128 else values
        return to_float64(wide).cast(kind)
    found = values.cast(kind)
    if pa.types.is_floating(given) and (pa.types.is_decimal(kind) or kind == pa.float32() != given != pa.float16()):
        # Arrow rounds these without a word.
        back = found.cast(given)
        same = pc.or_(pc.equal(back, values), pc.and_(pc.is_nan(back), pc.is_nan(values)))
        if (wrong := pc.index(same, False).as_py()) >= 0:
            raise ValueError(f"{values[wrong]} does not fit {type_name(kind)} exactly")
    return found


def readable(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Texts in a form that Arrow's cast reads as the numbers that stand there, where `kind` is one of numbers.

    Raises:
        ValueError: one is a hexadecimal number where integers are, or see `_decimals`.
    """
    if pa.types.is_decimal(kind):
        return _decimals(texts.cast(pa.string()), kind)
    if pa.types.is_integer(kind):
        texts = texts.cast(pa.string())
        if (wrong := pc.index(pc.match_substring_regex(texts, "^[+-]?0[xX]"), True).as_py()) >= 0:
            raise ValueError(f"'{texts[wrong].as_py()[:50]}' is no {type_name(kind)}")
    return texts


_FAR = r"[0-9]{39}|[eE][+-]?0*([1-9][0-9]{2,}|39|[4-9][0-9])"


def _decimals(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Numbers as wide decimals of this type's digits after the point.

    Arrow gives other numbers where digits do not fit, and ends the process at 1e-9999999.

    Raises:
        ValueError: one has more digits, or a larger exponent, than any decimal.
    """
    if (wrong := pc.index(pc.match_substring_regex(texts, _FAR), True).as_py()) >= 0:
        raise ValueError(f"'{texts[wrong].as_py()[:50]}' does not fit {type_name(kind)}")
    return texts.cast(pa.decimal256(DIGITS_MAX, kind.scale))


def _days(times: pa.Array) -> pa.Array:
    """Midnights, UTC, as dates.

    Raises:
        ValueError: one has a time of day.
    """
    local = times.cast(pa.timestamp(times.type.unit, "UTC")).cast(pa.timestamp(times.type.unit))
    found = local.cast(pa.date32())
    if (wrong := pc.index(pc.equal(found.cast(local.type), local), False).as_py()) >= 0:
        raise ValueError(f"{local[wrong]} has a time of day, and a date has none; declare it as a timestamp")
    return found


_UUID_GROUPS = (8, 12, 16, 20)
"""Where hyphens stand, in hexadecimal digits."""


def _uuid_texts(values: pa.Array) -> pa.Array:
    """16 bytes each as the text of a UUID."""
    raw = np.frombuffer(values.buffers()[1], np.uint8).reshape(-1, 16)[values.offset : values.offset + len(values)]
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    texts = np.insert(digits[np.stack([raw >> 4, raw & 15], axis=2).reshape(-1, 32)], _UUID_GROUPS, ord("-"), axis=1)
    offsets = np.arange(len(values) + 1, dtype=np.int32) * texts.shape[1]
    found = pa.Array.from_buffers(
        pa.string(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(texts))]
    )
    return pc.if_else(values.is_valid(), found, None)


def _clock_texts(times: pa.Array, kind: pa.DataType) -> pa.Array:
    """Times of day as texts in their order; nanoseconds follow where there are any, so that no two share a text."""
    texts = times.cast(pa.time64("us"), safe=False).cast(kind)
    if times.type.unit != "ns":
        return texts
    raw = times.view(pa.int64())
    rest = pc.subtract(raw, pc.multiply(pc.divide(raw, 1_000), 1_000))
    digits = pc.utf8_lpad(rest.cast(kind), 3, "0")
    return pc.if_else(pc.equal(rest, 0), texts, pc.binary_join_element_wise(texts, digits, ""))


def _means(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "truth"
    if pa.types.is_temporal(kind):
        return "time"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return "bytes"
    return "text or number"


def _nanoseconds(times: pa.Array) -> pa.Array:
    """int64.

    Raises:
        ArrowInvalid: a time is before 1677 or after 2262.
    """
    return times.cast(pa.timestamp("ns", times.type.tz)).view(pa.int64())


_US = {"s": 1_000_000, "ms": 1_000, "us": 1}
_INT64_MAX = 2**63 - 1


def _microseconds(times: pa.Array) -> pa.Array:
    """int64; earlier and later times than int64 holds become its ends, which intake refuses as event times."""
    raw = np.asarray(times.view(pa.int64()).fill_null(0).to_numpy())
    if times.type.unit == "ns":
        us = raw // 1_000
    else:
        factor = _US[times.type.unit]
        limit = _INT64_MAX // factor
        us = np.where(raw > limit, _INT64_MAX, np.where(raw < -limit, -_INT64_MAX, raw * np.int64(factor)))
    return pa.array(us, mask=times.is_null().to_numpy(zero_copy_only=False))
