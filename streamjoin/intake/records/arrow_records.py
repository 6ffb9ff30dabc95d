"""The decoder of Arrow IPC records: each record is a stream or file of batches, and nothing in it is trusted.

    column           from an Arrow column
    bool             bool
    int8 .. int64    any integer that fits
    float32, 64      any float; an integer that the float holds exactly
    decimal          any decimal of scale 0 .. precision that fits without rounding
    date             date32, date64 of whole days
    timestamp        any timestamp of whole microseconds; without a zone it is UTC
    string, binary   string and binary of every layout, dictionaries of them; a string must be UTF-8

A column of type null is null, one that is missing too. A column `a.b` is the field `b` of the struct `a`, unless there
is one of that very name. A record is good or bad as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.intake import deadletter
from streamjoin.intake.records.arrow_bounds import BYTES_MAX, ROWS_MAX, TooLargeError, check_bounds
from streamjoin.intake.records.assemble import TOMBSTONE
from streamjoin.intake.records.contract import BadRecord, Decoded
from streamjoin.intake.records.record_bytes import BYTES_MAX as BLOCK_BYTES_MAX
from streamjoin.intake.records.record_bytes import RecordBytes
from streamjoin.plan.nested import paths_of
from streamjoin.plan.schema import type_name

_FILE_MAGIC: Final = b"ARROW1"
_FILE_HEAD: Final = 8  # The magic, padded.
_EXTENSION_KEY: Final = b"ARROW:extension:name"


class _BadRecordError(Exception):
    """The record at hand is bad; the message says why."""

    reason = deadletter.MALFORMED


class _BadValueError(_BadRecordError):
    reason = deadletter.BAD_VALUE


class ArrowDecoder:
    """See `Decoder`. Cost: about a tenth of a millisecond per record, so a record should hold many rows."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def decode(self, values: pa.Array) -> Decoded:
        """See `Decoder.decode`; `ValueError` also when the rows of all records take 2 GiB."""
        records = RecordBytes.of(values)
        batches: list[pa.RecordBatch] = []
        positions: list[int] = []
        bad: list[BadRecord] = []
        size = 0
        for position in range(len(records)):
            if not records.valid[position]:
                bad.append(BadRecord(position, TOMBSTONE, deadletter.TOMBSTONE))
                continue
            try:
                found = self._read(records.data[records.starts[position] : records.ends[position]].tobytes())
            except (_BadRecordError, TooLargeError) as error:
                bad.append(BadRecord(position, str(error), getattr(error, "reason", deadletter.MALFORMED)))
                continue
            batches += found
            positions += [position] * len(found)
            size += sum(batch.nbytes for batch in found)
            if size > BLOCK_BYTES_MAX:
                raise ValueError("the records of one block hold 2 GiB or more of rows; split the block")
        empty = pa.RecordBatch.from_arrays([pa.nulls(0, kind) for kind in self._schema.types], schema=self._schema)
        counts = [batch.num_rows for batch in batches]
        return Decoded(pa.concat_batches([empty, *batches]), np.repeat(np.array(positions, np.int64), counts), bad)

    def _read(self, record: bytes) -> list[pa.RecordBatch]:
        """The batches of one record in the decoder's schema."""
        if not record:
            raise _BadRecordError("empty record")
        stream = _stream_in(record)
        try:
            check_bounds(stream)
            batches, paths = self._batches(stream)
            return [self._converted(batch, paths) for batch in batches]
        except (_BadRecordError, TooLargeError):
            raise
        except Exception as error:
            # Damaged metadata surfaces as many types: Arrow's own, KeyError, UnicodeDecodeError, MemoryError.
            raise _BadRecordError(f"not an Arrow IPC stream: {_first_line(error)}") from None

    def _batches(self, stream: pa.Buffer) -> tuple[list[pa.RecordBatch], Mapping[str, Sequence[str]]]:
        """Batches as they were written, of the wanted columns only, each checked to its last offset.

        And where the decoder's columns are in them, see `paths_of`.
        """
        with pa.ipc.open_stream(stream) as reader:
            names = reader.schema.names
            paths = paths_of(reader.schema, self._schema.names)
        first = {path[0] for path in paths.values()}
        wanted = [index for index, name in enumerate(names) if name in first]
        if len(first) < len(wanted):
            twice = next(names[index] for index in wanted if names.count(names[index]) > 1)
            raise _BadRecordError(f'field "{twice}" is given twice')
        # Columns nobody asked for are not decoded: what is wrong in them costs nothing. Where none is asked for,
        # Arrow reads all, and none is looked at.
        options = pa.ipc.IpcReadOptions(included_fields=wanted, use_threads=False)
        with pa.ipc.open_stream(stream, options=options) as reader:
            batches = list(reader)
        for batch in batches:
            for index in wanted:
                batch.column(names[index]).validate(full=True)
        return batches, paths

    def _converted(self, batch: pa.RecordBatch, paths: Mapping[str, Sequence[str]]) -> pa.RecordBatch:
        width = sum(kind.bit_width if _has_width(kind) else 32 for kind in self._schema.types)
        if batch.num_rows > ROWS_MAX or batch.num_rows * width > 8 * BYTES_MAX:
            raise TooLargeError(f"more than {BYTES_MAX >> 20} MiB in one record")
        arrays = [self._column(batch, field, paths.get(field.name, ())) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _column(self, batch: pa.RecordBatch, field: pa.Field, path: Sequence[str]) -> pa.Array:
        if not path:
            return pa.nulls(batch.num_rows, field.type)
        sources = _on_the_way(batch.schema, path)
        source = sources[-1]
        is_extension = isinstance(source.type, pa.BaseExtensionType) or any(
            _EXTENSION_KEY in (one.metadata or {}) for one in sources
        )
        if is_extension or not _fits(source.type, field.type):
            name = "an extension type" if is_extension else str(source.type)
            raise _BadValueError(f'field "{field.name}": Arrow {name} where {type_name(field.type)} is expected')
        array = batch.column(path[0])
        if len(path) > 1:
            array = pc.struct_field(array, path[1:])
        if array.type == field.type:
            return array
        if _text_bytes(array) > BYTES_MAX:
            raise TooLargeError(f'field "{field.name}": more than {BYTES_MAX >> 20} MiB in one record')
        try:
            converted = _cast(array, field.type)
        except pa.ArrowException as error:
            raise _BadValueError(f'field "{field.name}": {_first_line(error)}') from None
        # Arrow lets a double that float32 cannot hold become infinite, even in a safe cast.
        if pa.types.is_float32(field.type) and pc.any(pc.xor(pc.is_inf(converted), pc.is_inf(array))).as_py():
            raise _BadValueError(f'field "{field.name}": out of range for float32')
        return converted


def _on_the_way(schema: pa.Schema, path: Sequence[str]) -> list[pa.Field]:
    """The field at a path and the structs above it, from the outermost."""
    found = [schema.field(path[0])]
    for name in path[1:]:
        place = found[-1].type.get_field_index(name)
        if place < 0:
            raise _BadRecordError(f'field "{name}" of "{found[-1].name}" is given twice')
        found.append(found[-1].type.field(place))
    return found


def _stream_in(record: bytes) -> pa.Buffer:
    """The IPC stream of a record. A file is a stream between two marks and before a footer, which is not needed."""
    # Arrow's buffers are 8-byte aligned inside a message; a copy makes the start of the message so too.
    memory = pa.allocate_buffer(len(record))
    np.frombuffer(memory, np.uint8)[:] = np.frombuffer(record, np.uint8)
    if not record.startswith(_FILE_MAGIC):
        return memory
    if len(record) < _FILE_HEAD + len(_FILE_MAGIC) or not record.endswith(_FILE_MAGIC):
        raise _BadRecordError("not an Arrow IPC file: the mark at its end is missing")
    return memory.slice(_FILE_HEAD)


def _first_line(error: Exception) -> str:
    # A damaged name may bring line breaks or kilobytes into the message.
    lines = str(error).splitlines()
    return lines[0][:200] if lines else type(error).__name__


def _has_width(kind: pa.DataType) -> bool:
    return not (pa.types.is_string(kind) or pa.types.is_binary(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
        or pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )  # fmt: skip


def _fits(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether values of `source` are read as `target`; single values may still be out of range."""
    types = pa.types
    if types.is_null(source):
        return True
    if types.is_string(target) or types.is_binary(target):
        return _is_text(source.value_type) if types.is_dictionary(source) else _is_text(source)
    if types.is_floating(target) and types.is_integer(source):
        return True
    # Arrow rescales with a table of powers of ten and does not look whether the scale is inside it.
    if types.is_decimal(source) and not 0 <= source.scale <= source.precision:
        return False
    families = (
        types.is_boolean,
        types.is_integer,
        types.is_floating,
        types.is_decimal,
        types.is_date,
        types.is_timestamp,
    )
    return any(is_family(source) and is_family(target) for is_family in families)


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def _views(array: pa.Array) -> npt.NDArray[np.int32]:
    """The views of a string or binary view array: of shape (n, 4), the first number is the length."""
    last = array.offset + len(array)
    # The buffer of a damaged record may be longer than its views.
    return np.frombuffer(array.buffers()[1], np.int32, count=4 * last).reshape(-1, 4)[array.offset :]


def _cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    """`array` as `target`, or `pa.ArrowException` when a value does not fit."""
    if pa.types.is_dictionary(array.type):
        return _cast(array.dictionary, target).take(array.indices)
    return _without_null_views(array).cast(target)


def _without_null_views(array: pa.Array) -> pa.Array:
    """`array` with the views of its nulls emptied: Arrow's cast follows them, its validation does not."""
    if not _is_view(array.type) or not array.null_count:
        return array
    views = _views(array).copy()
    is_valid = array.is_valid().to_numpy(zero_copy_only=False)
    views[~is_valid] = 0
    buffers = [pa.py_buffer(np.packbits(is_valid, bitorder="little")), pa.py_buffer(views), *array.buffers()[2:]]
    return pa.Array.from_buffers(array.type, len(array), buffers)


def _text_bytes(array: pa.Array) -> int:
    """Bytes of text when every value is written out: a dictionary or a view may repeat one long value at no cost."""
    if pa.types.is_dictionary(array.type):
        lengths = _lengths(array.dictionary).take(array.indices)
    elif _is_view(array.type):
        lengths = _lengths(array)
    else:
        return 0
    return int(pc.sum(lengths.cast(pa.int64())).as_py() or 0)


def _lengths(array: pa.Array) -> pa.Array:
    if not _is_view(array.type):
        return pc.binary_length(array)
    is_valid = array.is_valid().to_numpy(zero_copy_only=False)
    return pa.array(np.where(is_valid, _views(array)[:, 0], 0))
