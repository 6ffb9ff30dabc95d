"""The record formats by name."""

from __future__ import annotations

from collections.abc import Mapping
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
            is_nested = any("." in name for name in schema.names)
            return TextDecoder(schema, NestedScanner(schema.names) if is_nested else JsonScanner(schema.names))
        case "csv":
            return TextDecoder(schema, CsvScanner(schema, csv))
        case "arrow":
            return ArrowDecoder(schema)
        case "avro":
            if avro_schema is None:
                raise InputError("Avro records cannot be read without the schema they were written with")
            return AvroDecoder(schema, avro_schema)
    raise InputError(f'"{format}" is not a record format; formats are {", ".join(FORMATS)}')


def _check_type(field: pa.Field) -> None:
    try:
        known = parse_type(type_name(field.type))
    except InputError:
        known = None
    if known != field.type:
        raise InputError(f'column "{field.name}": no record format carries {field.type}')
    if not field.nullable:
        raise InputError(f'column "{field.name}": columns are nullable, because any record may lack a field')
