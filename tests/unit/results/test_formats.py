"""Formats: what is written is read back as it was, batch by batch, also where there is nothing."""

from __future__ import annotations

import base64
import csv
import datetime as dt
import io
import json
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from streamjoin.results.formats import FORMATS, TABLE_WIDTH_MAX

UTC = dt.UTC
SCHEMA = pa.schema(
    [
        ("ok", pa.bool_()), ("tiny", pa.int8()), ("big", pa.int64()), ("half", pa.float32()), ("real", pa.float64()),
        ("price", pa.decimal128(18, 2)), ("wide", pa.decimal128(38, 10)), ("text", pa.string()), ("raw", pa.binary()),
        ("day", pa.date32()), ("at", pa.timestamp("us", tz="UTC")), ("took", pa.duration("us")),
    ]
)  # fmt: skip
ROWS: list[dict[str, Any]] = [
    {
        "ok": True, "tiny": -128, "big": 2**63 - 1, "half": 0.5, "real": 1 / 3, "price": Decimal("-12.50"),
        "wide": Decimal("9" * 28 + ".0000000001"), "text": "größe \U0001f600", "raw": b"\x00\xff",
        "day": dt.date(2026, 1, 31),
        "at": dt.datetime(2026, 1, 31, 12, 0, 0, 1, tzinfo=UTC), "took": dt.timedelta(microseconds=-5),
    },
    dict.fromkeys(SCHEMA.names),
    {
        "ok": False, "tiny": 0, "big": -(2**63), "half": -0.0, "real": -1e300, "price": Decimal("0.00"),
        "wide": Decimal("-0.0000000001"), "text": '", ;\n\t\'\\', "raw": b"", "day": dt.date(1, 1, 1),
        "at": dt.datetime(1, 1, 1, tzinfo=UTC), "took": dt.timedelta(days=400),
    },
]  # fmt: skip


def batches_of(content: list[dict[str, Any]], schema: pa.Schema = SCHEMA) -> list[pa.RecordBatch]:
    """A batch a row."""
    return [pa.RecordBatch.from_pylist([row], schema=schema) for row in content]


def written(name: str, content: list[dict[str, Any]], schema: pa.Schema = SCHEMA) -> bytes:
    out = io.BytesIO()
    FORMATS[name](schema, batches_of(content, schema), out)
    return out.getvalue()


@pytest.mark.parametrize("content", [ROWS, ROWS[1:2], []], ids=["rows", "nulls", "nothing"])
def test_arrow_and_parquet_come_back_as_they_were(content: list[dict[str, Any]]) -> None:
    wanted = pa.Table.from_batches(batches_of(content), SCHEMA)
    assert pa.ipc.open_stream(written("arrow", content)).read_all().equals(wanted)
    assert pq.read_table(io.BytesIO(written("parquet", content))).equals(wanted)


def as_json(value: Any) -> Any:
    """What a value should be in JSON; decimals and bytes are compared on their own."""
    if isinstance(value, dt.datetime):
        return value.strftime(f"{value.year:04d}-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return value // dt.timedelta(microseconds=1)
    return value


@pytest.mark.parametrize("content", [ROWS, ROWS[1:2], []], ids=["rows", "nulls", "nothing"])
def test_json_and_ndjson_have_every_value(content: list[dict[str, Any]]) -> None:
    def decimals(text: bytes) -> Any:
        return json.loads(text, parse_float=Decimal)

    lines = written("ndjson", content).splitlines()
    found = [decimals(line) for line in lines]
    assert decimals(written("json", content)) == found
    assert len(found) == len(content)
    for row, wanted in zip(found, content, strict=True):
        assert list(row) == SCHEMA.names
        for name, value in wanted.items():
            if isinstance(value, float):
                assert float(row[name]) == value
            elif name != "raw" or value is None:
                assert row[name] == as_json(value)
    if content == ROWS:
        assert [row["raw"] for row in found] == ["\\x00\\xFF", None, ""]


def test_json_has_no_nan_and_no_infinity() -> None:
    schema = pa.schema([("x", pa.float64())])
    content = [{"x": value} for value in (math.nan, math.inf, -math.inf, 1.5)]
    assert json.loads(written("json", content, schema)) == [{"x": None}, {"x": None}, {"x": None}, {"x": 1.5}]


OTHERWISE = {"raw": pa.string(), "took": pa.int64(), "at": pa.string()}
"""What CSV has as something else."""


def test_csv_has_every_value_and_tells_null_from_an_empty_text() -> None:
    text = written("csv", ROWS).decode()
    read = pyarrow.csv.read_csv(
        io.BytesIO(text.encode()),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types={**{field.name: field.type for field in SCHEMA}, **OTHERWISE},
            strings_can_be_null=True, quoted_strings_can_be_null=False,
        ),
    )  # fmt: skip
    assert read.column_names == SCHEMA.names
    for name in set(SCHEMA.names) - {"raw", "took", "at"}:
        assert read[name].to_pylist() == [row[name] for row in ROWS]
    assert read["raw"].to_pylist() == ["00ff", None, ""]
    assert read["took"].to_pylist() == [as_json(row["took"]) for row in ROWS]
    assert read["at"].to_pylist() == [as_json(row["at"]) for row in ROWS]
    assert text.endswith("\n") and "\r" not in text


def test_csv_without_rows_is_a_header() -> None:
    assert written("csv", []).decode() == ",".join(f'"{name}"' for name in SCHEMA.names) + "\n"


@pytest.mark.parametrize("name", ['a "b"', "a,b", "größe", "back\\slash", "two\nlines"])
@pytest.mark.parametrize("format", [each for each in FORMATS if each != "table"])
def test_any_column_name_comes_back(format: str, name: str) -> None:
    schema = pa.schema([(name, pa.int64()), ("other", pa.int64())])
    content = [{name: 1, "other": 2}]
    text = written(format, content, schema)
    match format:
        case "csv":
            assert list(csv.reader(io.StringIO(text.decode()))) == [[name, "other"], ["1", "2"]]
        case "arrow":
            assert pa.ipc.open_stream(text).read_all().to_pylist() == content
        case "parquet":
            assert pq.read_table(io.BytesIO(text)).to_pylist() == content
        case _:
            found = json.loads(text)
            assert (found if isinstance(found, list) else [found]) == content


# ---- tables -----------------------------------------------------------------------------------------------------


def test_a_table_is_aligned() -> None:
    schema = pa.schema([("n", pa.int64()), ("name", pa.string()), ("x", pa.float64())])
    batch = pa.RecordBatch.from_pylist(
        [
            {"n": 1, "name": "first", "x": 0.5},
            {"n": 1000, "name": None, "x": None},
            {"n": None, "name": "ö", "x": -2.0},
        ],
        schema=schema,
    )
    out = io.BytesIO()
    FORMATS["table"](schema, [batch], out)
    assert out.getvalue().decode().split("\n") == [
        "   n  name      x",
        "   1  first   0.5",
        "1000",
        "      ö      -2.0",
        "",
    ]


def test_a_table_without_rows_is_its_header() -> None:
    assert written("table", []).decode().split() == SCHEMA.names
    assert written("table", []).count(b"\n") == 1


def test_a_table_has_a_line_a_row_whatever_stands_in_it() -> None:
    schema = pa.schema([("text", pa.string()), ("raw", pa.binary()), ("number", pa.int64())])
    bad = ["\x1b[31mred", "two\nlines", "\r", "\x07", "\x00", "\u202e", "\x9b", "tab\t"]
    content = [{"text": text, "raw": text.encode(), "number": place} for place, text in enumerate(bad)]
    text = written("table", content, schema).decode()
    lines = text.split("\n")
    assert len(lines) == len(bad) + 2 and lines[-1] == ""
    assert all(letter.isprintable() for line in lines for letter in line)
    assert "\N{REPLACEMENT CHARACTER}[31mred" in lines[1] and "1b5b33316d726564" in lines[1]
    assert [line.split()[-1] for line in lines[1:-1]] == [str(place) for place in range(len(bad))]


def test_the_header_of_a_table_is_one_line_too() -> None:
    schema = pa.schema([("two\nlines\x1b[0m", pa.int64()), ("x" * 50, pa.int64())])
    lines = written("table", [{schema.names[0]: 1, schema.names[1]: 2}], schema).decode().splitlines()
    assert len(lines) == 2 and all(letter.isprintable() for line in lines for letter in line)
    assert lines[0].endswith("x…") and len(lines[0]) == len(lines[1])


def test_a_table_cuts_long_values() -> None:
    schema = pa.schema([("text", pa.string()), ("n", pa.int64())])
    content = [{"text": "x" * 41, "n": 1}, {"text": "x" * 40, "n": 2}]
    lines = written("table", content, schema).decode().splitlines()
    assert lines[1] == "x" * (TABLE_WIDTH_MAX - 1) + "…  1"
    assert lines[2] == "x" * TABLE_WIDTH_MAX + "  2"


@pytest.mark.parametrize("name", FORMATS)
def test_a_batch_leaves_before_the_next_is_asked_for(name: str) -> None:
    out = io.BytesIO()
    sizes: list[int] = []
    schema = pa.schema([("text", pa.string())])

    def batches() -> Iterator[pa.RecordBatch]:
        for seed in range(4):
            sizes.append(out.tell())
            text = base64.b64encode(bytes((seed * 7 + place) % 251 for place in range(3000))).decode()
            yield pa.RecordBatch.from_pylist([{"text": text}] * 3, schema=schema)

    FORMATS[name](schema, batches(), out)
    assert sizes == sorted(set(sizes)) and out.tell() > sizes[-1]


@pytest.mark.parametrize("name", ["table", "json", "ndjson", "csv"])
def test_times_of_any_year_are_written_with_all_its_digits(name: str) -> None:
    schema = pa.schema([("at", pa.timestamp("us", "UTC")), ("day", pa.date32())])
    at = pa.array([2**63 - 1, -(2**63)], pa.int64()).cast(schema.field("at").type)
    day = pa.array([2**31 - 1, -(2**31)], pa.int32()).cast(pa.date32())
    out = io.BytesIO()
    FORMATS[name](schema, [pa.RecordBatch.from_arrays([at, day], schema=schema)], out)
    text = out.getvalue().decode()
    for wanted in (
        "294247-01-10T04:00:54.775807Z",
        "-290308-12-21T19:59:05.224192Z",
        "5881580-07-11",
        "-5877641-06-23",
    ):
        assert wanted in text
