"""A stream as numbered files."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq
import pytest

from streamjoin.errors import InputError
from streamjoin.generate import GENERATORS, files, generator
from streamjoin.generate.files import Format, write_files
from streamjoin.generate.stream import Request

READERS: dict[Format, Callable[[Path, pa.Schema], pa.Table]] = {
    "parquet": lambda path, schema: pq.read_table(path),
    "arrow": lambda path, schema: pa.ipc.open_file(path).read_all(),
    "csv": lambda path, schema: pa_csv.read_csv(
        path, convert_options=pa_csv.ConvertOptions(column_types=dict(zip(schema.names, schema.types, strict=True)))
    ),
    "jsonl": lambda path, schema: read_json(path, schema),
}


def read_json(path: Path, schema: pa.Schema) -> pa.Table:
    # Arrow reads dates from numbers only, though it casts them from text.
    readable = pa.schema([field.with_type(pa.string()) if field.type == pa.date32() else field for field in schema])
    return pa_json.read_json(path, parse_options=pa_json.ParseOptions(explicit_schema=readable)).cast(schema)


def write(kind: str, out: Path, rows: int, rows_per_file: int = 100, format: Format = "parquet") -> list[Path]:
    return write_files(kind, out, rows=rows, seed=4, rate=30.0, rows_per_file=rows_per_file, format=format)


@pytest.mark.usefixtures("tpch_cache")
@pytest.mark.parametrize("kind", ["band.r", "band.s", "nexmark.auction", "tpch.orders"])
@pytest.mark.parametrize("format", READERS)
def test_files_read_back_as_the_rows(kind: str, format: Format, tmp_path: Path) -> None:
    paths = write(kind, tmp_path / "new" / "folder", rows=250, format=format)
    assert [path.name for path in paths] == [f"00000.{format}", f"00001.{format}", f"00002.{format}"]
    schema = generator(kind).schema
    tables = [READERS[format](path, schema) for path in paths]
    assert [table.num_rows for table in tables] == [100, 100, 50]
    expected = pa.Table.from_batches([generator(kind).rows(0, 250, seed=4, rate=30.0)])
    assert pa.concat_tables(tables).combine_chunks().equals(expected)


def test_json_times_are_iso_8601_with_microseconds(tmp_path: Path) -> None:
    (path,) = write("uniform.r", tmp_path, rows=2, format="jsonl")
    times = [json.loads(line)["ts"] for line in path.read_text().splitlines()]
    assert times == ["2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:00.033333Z"]


def test_options_reach_the_stream(tmp_path: Path) -> None:
    (path,) = write_files("zipf.r", tmp_path, rows=50, seed=1, rate=1.0, rows_per_file=50, options={"keys": 1})
    assert pq.read_table(path)["k"].to_pylist() == [0] * 50


def test_memory_holds_one_batch_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []

    def columns(request: Request) -> list[pa.Array]:
        asked.append((request.start, request.stop))
        return list(generator("uniform.s").columns(request))

    monkeypatch.setattr(files, "ROWS_PER_BATCH", 40)
    monkeypatch.setitem(GENERATORS, "uniform.r", replace(generator("uniform.r"), columns=columns))
    (path,) = write("uniform.r", tmp_path, rows=100)
    assert asked == [(0, 40), (40, 80), (80, 100)]
    assert pq.read_table(path)["id"].to_pylist() == list(range(100))
    assert pq.read_metadata(path).num_row_groups == 3


def test_interrupted_file_never_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def columns(request: Request) -> list[pa.Array]:
        if request.start >= 140:
            assert any(path.name.startswith(".00001") for path in tmp_path.iterdir())
            raise KeyboardInterrupt
        return list(generator("uniform.s").columns(request))

    monkeypatch.setattr(files, "ROWS_PER_BATCH", 40)
    monkeypatch.setitem(GENERATORS, "uniform.r", replace(generator("uniform.r"), columns=columns))
    with pytest.raises(KeyboardInterrupt):
        write("uniform.r", tmp_path, rows=300)
    assert [path.name for path in tmp_path.iterdir()] == ["00000.parquet"]


def test_written_again_the_files_are_replaced(tmp_path: Path) -> None:
    write("band.r", tmp_path, rows=30)
    (path,) = write("band.r", tmp_path, rows=20)
    assert pq.read_metadata(path).num_rows == 20


def test_no_rows_make_no_files(tmp_path: Path) -> None:
    assert write("band.r", tmp_path, rows=0) == []


def test_unknown_format_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match='"orc" is not a file format; formats are parquet, csv, jsonl, arrow'):
        write("band.r", tmp_path, rows=1, format="orc")  # type: ignore[arg-type]


@pytest.mark.parametrize(("rows", "rows_per_file"), [(-1, 10), (10, 0), (100_001, 1)])
def test_counts_that_cannot_be_are_refused(rows: int, rows_per_file: int, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="to a file"):
        write("band.r", tmp_path, rows=rows, rows_per_file=rows_per_file)


@pytest.mark.usefixtures("tpch_cache")
def test_more_rows_than_the_stream_has_are_refused_before_any_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"tpch\.orders has 15000 rows"):
        write("tpch.orders", tmp_path, rows=15_001, rows_per_file=10_000)
    assert list(tmp_path.iterdir()) == []
