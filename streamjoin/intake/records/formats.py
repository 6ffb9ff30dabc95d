"""The record formats by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from streamjoin.errors import InputError
from streamjoin.intake.dialect import Dialect
from streamjoin.intake.records.arrow_records import ArrowDecoder
from streamjoin.intake.records.avro_records import AvroDecoder
from streamjoin.intake.records.contract import Decoder
from streamjoin.intake.records.scan_csv import CsvScanner
from streamjoin.intake.records.scan_json import JsonScanner
from streamjoin.intake.records.scan_nested import NestedScanner
from streamjoin.intake.records.text_records import TextDecoder
from streamjoin.plan.schema import check_schema, parse_type, type_name

FORMATS: Final = ("json", "csv", "avro", "arrow")


def decoder(
    format: str,
    schema: pa.Schema,
    *,
    avro_schema: str | Mapping[str, Any] | None = None,
    csv: Dialect | None = None,
) -> Decoder:
    """The decoder of one record format into the columns of `schema`.

    Args:
        format: one of `FORMATS`.
        schema: every type a stream may have; `columns`, `avro_columns` and `arrow_records` say what fills which.
        avro_schema: the writer schema of Avro records, see `AvroDecoder`; None for every other format.
        csv: how CSV records are written; of `header` and `names` they know nothing.
    Raises:
        InputError: there is no such format, `schema` is no schema of a stream, the Avro schema is missing or wrong,
            or one of its types cannot fill its column.
    """
    check_schema(schema)
    for field in schema:
        _check_type(field)
    if avro_schema is not None and format != "avro":
        raise InputError(f"an Avro schema is given, but the records are {format}")
    match format:
        case "json":
            return text_decoder(schema)
        case "csv":
            return text_decoder(schema, schema.names, csv)
        case "arrow":
            return ArrowDecoder(schema)
        case "avro":
            if avro_schema is None:
                raise InputError("Avro records cannot be read without the schema they were written with")
            return AvroDecoder(schema, avro_schema)
    raise InputError(f'"{format}" is not a record format; formats are {", ".join(FORMATS)}')


def text_decoder(wanted: pa.Schema, fields: Sequence[str] | None = None, csv: Dialect | None = None) -> TextDecoder:
    """The decoder of records of a text file into the columns that are wanted.

    Where none is, there is one of nulls, with a row for each record that can be read: no value in it makes it bad.

    Args:
        wanted: see `decoder`; no column or some.
        fields: what the fields of a CSV record are called, whatever that is, with each column of `wanted`; of those
            that are there twice the first counts. None for JSON.
        csv: see `decoder`.
    """
    schema = wanted if wanted.names else _NOTHING
    if fields is not None:
        places = [fields.index(name) if name in wanted.names else None for name in schema.names]
        return TextDecoder(schema, CsvScanner(fields, csv), len(fields), places)
    is_nested = any("." in name for name in wanted.names)
    scanner = NestedScanner(wanted.names) if is_nested else JsonScanner(wanted.names)
    return TextDecoder(schema, scanner, len(wanted.names), range(len(wanted.names)) if wanted.names else [None])


_NOTHING: Final = pa.schema([("", pa.null())])


def _check_type(field: pa.Field) -> None:
    try:
        known = parse_type(type_name(field.type))
    except InputError:
        known = None
    if known != field.type:
        raise InputError(f'column "{field.name}": no record format carries {field.type}')
    if not field.nullable:
        raise InputError(f'column "{field.name}": columns are nullable, because any record may lack a field')
