"""Blocks of records to decode, each with the columns that are wanted from it."""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa

from streamjoin.plan.schema import parse_schema

BEGIN = datetime(2024, 5, 31, 12, 0, tzinfo=UTC)
WIDE_FIELDS = 40
SCHEMA_ID = 7

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Input:
    """Records of one shape.

    Args:
        values: binary.
        schema: the wanted columns.
        avro: writer schema of Avro records, as `decoder` takes it; None for JSON.
    """

    name: str
    values: pa.Array
    schema: pa.Schema
    avro: Mapping[str, Any] | None = None


FLAT = {"id": "int64", "user": "string", "price": "float64", "quantity": "int32", "paid": "bool"}
KAFKA = {"ts": "int64", "key": "int64", "val": "float64"}
TIMES = {"id": "int64", "at": "timestamp", "due": "date", "amount": "decimal(18,2)", "fee": "decimal(18,4)"}
NESTED = {"id": "int64", "customer.name": "string", "customer.address.city": "string", "item.price": "float64"}
WIDE = {"f3": "int64", "f17": "string", "f38": "float64"}


def _flat(row: int) -> Row:
    return {"id": row, "user": f"user{row}", "price": row % 977 + 0.25, "quantity": row % 7, "paid": row % 3 == 0}


def _kafka(row: int) -> Row:
    return {"ts": 1_700_000_000_000 + row, "key": row * 7919 % 262_144, "val": (row * 7919 % 1_000_003) / 1_000_003}


def _nested(row: int) -> Row:
    address = {"street": f"{row} Long Street", "city": f"town {row % 100}", "zip": f"{row:05}"}
    return {
        "id": row,
        "customer": {"name": f"user{row}", "address": address, "tags": ["a", "b"]},
        "item": {"price": row % 977 + 0.25, "sizes": [1, 2, 3]},
    }


def _wide(row: int) -> Row:
    makers: tuple[Callable[[int], Any], ...] = (
        lambda n: f"text {row} {n}",
        lambda n: row % 89 + 0.5,
        lambda n: row + n,
    )
    wanted: Row = {"f3": row, "f17": f"user{row}", "f38": row % 977 + 0.25}
    return {name: wanted.get(name, makers[n % 3](n)) for n, name in enumerate(f"f{n}" for n in range(WIDE_FIELDS))}


def _times_json(row: int) -> bytes:
    at = BEGIN + timedelta(seconds=row, microseconds=row % 1_000_000)
    return (
        f'{{"id":{row},"at":"{at:%Y-%m-%dT%H:%M:%S.%f}Z","due":"{at.date()}",'
        f'"amount":{row % 99_991}.{row % 100:02},"fee":"{row % 997}.{row % 10_000:04}"}}'
    ).encode()


def _compact(row: Row) -> bytes:
    return json.dumps(row, separators=(",", ":")).encode()


def _damaged(records: list[bytes], damages: tuple[Callable[[bytes], bytes], ...], every: int) -> list[bytes]:
    """Every so many records damaged, in each of these ways in turn."""
    done = list(records)
    for number, place in enumerate(range(every // 2, len(done), every)):
        done[place] = damages[number % len(damages)](done[place])
    return done


_JSON_DAMAGES: tuple[Callable[[bytes], bytes], ...] = (
    lambda record: record[: len(record) // 2],
    lambda record: record.replace(b'"user":"', b'"user":"\xff'),
    lambda record: record.replace(b'"quantity":', b'"quantity":3000000000'),
    lambda record: record.replace(b'"paid"', b'"id"'),
    lambda record: record.replace(b'"price":', b'"price":"x","p":'),
)
_AVRO_DAMAGES: tuple[Callable[[bytes], bytes], ...] = (
    lambda record: record[: len(record) // 2],
    lambda record: record + b"\0",
    lambda record: record[:-10],
)


def json_inputs(count: int) -> list[Input]:
    """The JSON blocks of `count` records each."""
    flat = [_compact(_flat(row)) for row in range(count)]
    return [
        _json("flat, 5 fields", flat, FLAT),
        _json("as in kafka_json, 3 fields", [_compact(_kafka(row)) for row in range(count)], KAFKA),
        _json("wide, 3 of 40 fields", [_compact(_wide(row)) for row in range(count)], WIDE),
        _json("times and decimals", [_times_json(row) for row in range(count)], TIMES),
        _json("nested", [_compact(_nested(row)) for row in range(count)], NESTED),
        _json("flat, null in every third", [_compact(_flat(row) | _gap(row)) for row in range(count)], FLAT),
        _json("flat, 1 % bad", _damaged(flat, _JSON_DAMAGES, 100), FLAT),
        _json("flat, all bad", _damaged(flat, _JSON_DAMAGES, 1), FLAT),
    ]


def _gap(row: int) -> Row:
    return {"price": None} if row % 3 == 0 else {}


def _json(name: str, records: list[bytes], fields: Mapping[str, str]) -> Input:
    return Input(name, pa.array(records, pa.binary()), parse_schema(fields))


def _record_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "Row", "fields": [{"name": name, "type": kind} for name, kind in fields.items()]}


_FLAT_AVRO = {"id": "long", "user": "string", "price": "double", "quantity": "int", "paid": "boolean"}
_TIMES_AVRO = {
    "id": "long",
    "at": {"type": "long", "logicalType": "timestamp-micros"},
    "due": {"type": "int", "logicalType": "date"},
    "amount": {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 2},
    "fee": {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 4},
}


def _times(row: int) -> Row:
    at = BEGIN + timedelta(seconds=row, microseconds=row % 1_000_000)
    amount, fee = Decimal(row % 99_991) + Decimal(row % 100) / 100, Decimal(row % 997) + Decimal(row % 10_000) / 10_000
    return {"id": row, "at": at, "due": at.date(), "amount": amount, "fee": fee}


def avro_inputs(count: int) -> list[Input]:
    """The Avro blocks of `count` records each."""
    flat = _record_of(_FLAT_AVRO)
    flat_records = _written(flat, _flat, count)
    nullable = _record_of({name: ["null", kind] for name, kind in _FLAT_AVRO.items()})
    times = _record_of(_TIMES_AVRO)
    kinds = {str: "string", float: "double", int: "long"}
    wide = _record_of({name: kinds[type(value)] for name, value in _wide(0).items()})
    prefix = b"\0" + SCHEMA_ID.to_bytes(4, "big")
    with_prefix = {"confluent": True, "schema": flat, "schema_id": SCHEMA_ID}
    return [
        _avro("flat, 5 fields", flat_records, FLAT, flat),
        _avro("wide, 3 of 40 fields", _written(wide, _wide, count), WIDE, wide),
        _avro("unions with null", _written(nullable, lambda row: _flat(row) | _gap(row), count), FLAT, nullable),
        _avro("times and decimals", _written(times, _times, count), TIMES, times),
        _avro("flat, with schema ids", [prefix + record for record in flat_records], FLAT, with_prefix),
        _avro("flat, 1 % bad", _damaged(flat_records, _AVRO_DAMAGES, 100), FLAT, flat),
        _avro("flat, all bad", _damaged(flat_records, _AVRO_DAMAGES, 1), FLAT, flat),
    ]


def _avro(name: str, records: list[bytes], fields: Mapping[str, str], avro: Mapping[str, Any]) -> Input:
    return Input(name, pa.array(records, pa.binary()), parse_schema(fields), avro)


def _written(avro: dict[str, Any], row_of: Callable[[int], Row], count: int) -> list[bytes]:
    parsed = fastavro.parse_schema(copy.deepcopy(avro))
    records = []
    for row in range(count):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, row_of(row))
        records.append(out.getvalue())
    return records
