"""Columns as files carry them, as columns of a stream."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from streamjoin.errors import InputError, RunError
from streamjoin.schema import parse_type, type_name


def stream_type(kind: pa.DataType) -> pa.DataType | None:
    """The type a stream has for a column of `kind`, or None where it has none, as for lists and structs."""
    if pa.types.is_dictionary(kind):
        return stream_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz="UTC")
    if pa.types.is_date64(kind):
        return pa.date32()
    if pa.types.is_unsigned_integer(kind):
        return pa.decimal128(20, 0) if kind.bit_width == 64 else pa.int64()
    if pa.types.is_float16(kind):
        return pa.float32()
    try:
        return parse_type(type_name(kind))
    except InputError:
        return None


def stream_schema(carried: pa.Schema) -> pa.Schema:
    """The columns of a file that a stream can have; nested ones are left out, and queries cannot name them."""
    fields = [(field.name, stream_type(field.type)) for field in carried]
    return pa.schema([pa.field(name, kind) for name, kind in fields if kind is not None])


def conform(rows: pa.RecordBatch, schema: pa.Schema, columns: Sequence[str], where: str) -> pa.RecordBatch:
    """`columns` of `rows`, with the types `schema` gives them.

    Raises:
        RunError: a column is missing or holds what its type cannot; `where` names the file.
    """
    arrays = []
    for name in columns:
        kind = schema.field(name).type
        if name not in rows.schema.names:
            raise RunError(f'{where} has no column "{name}"; it has {", ".join(rows.schema.names)}')
        values = rows.column(name)
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if values.type != kind:
            try:
                # Nanoseconds are cut to microseconds; everything else must fit exactly.
                values = values.cast(
                    kind, safe=not (pa.types.is_timestamp(kind) and pa.types.is_timestamp(values.type))
                )
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as cause:
                raise RunError(f'{where}, column "{name}": {cause}') from None
        arrays.append(values)
    return (
        pa.RecordBatch.from_arrays(arrays, schema=pa.schema([schema.field(name) for name in columns]))
        if columns
        else (rows.select([]))
    )
