"""The choice of a decoder: what is refused before any record is read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from streamjoin.errors import InputError
from streamjoin.intake.records import FORMATS, decoder
from streamjoin.plan.schema import parse_schema

A = parse_schema({"a": "int64"})
AVRO = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_has_a_decoder(format: str) -> None:
    made = decoder(format, A, avro_schema=AVRO if format == "avro" else None)
    decoded = made.decode(pa.array([None, None], pa.binary()))
    assert decoded.rows.schema == A
    assert [each.detail for each in decoded.bad] == ["empty record (tombstone)"] * 2


@pytest.mark.parametrize(
    ("format", "schema", "avro_schema", "message"),
    [
        ("parquet", A, None, "formats are json, csv, avro, arrow"),
        ("avro", A, None, "without the schema"),
        ("json", A, AVRO, "the records are json"),
        ("json", pa.schema([("a", pa.list_(pa.int64()))]), None, 'column "a": no record format carries list'),
        ("csv", pa.schema([("a", pa.uint8())]), None, "uint8"),
        ("arrow", pa.schema([("a", pa.timestamp("ms", "UTC"))]), None, "timestamp"),
        ("json", pa.schema([("a", pa.timestamp("us"))]), None, "timestamp"),
        ("json", pa.schema([("a", pa.decimal256(50, 2))]), None, "decimal256"),
        ("json", pa.schema([pa.field("a", pa.int64(), nullable=False)]), None, "nullable"),
        ("json", pa.schema([]), None, "at least one column"),
    ],
)
def test_what_cannot_be_decoded_is_refused(format: str, schema: pa.Schema, avro_schema: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        decoder(format, schema, avro_schema=avro_schema)
