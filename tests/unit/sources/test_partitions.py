"""Folders called column=value, and patterns: which files are read, and the columns that stand in their names."""

from __future__ import annotations

import datetime
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin.errors import InputError, RunError
from streamjoin.plan.schema import parse_schema
from streamjoin.sources.filelog import DEPTH_MAX, list_files, would_read
from streamjoin.sources.files import FORMATS, FileSource

FILES = {
    "day=2024-01-01/country=DE/part-0": 1,
    "day=2024-01-01/country=__HIVE_DEFAULT_PARTITION__/part-0": 2,
    "day=2024-01-02/country=C%C3%B4te%20d%2FIvoire/part-0": 3,
}
ROWS = [
    {"k": 1, "day": datetime.date(2024, 1, 1), "country": "DE"},
    {"k": 2, "day": datetime.date(2024, 1, 1), "country": None},
    {"k": 3, "day": datetime.date(2024, 1, 2), "country": "Côte d/Ivoire"},
]


def put(path: Path, format: str, rows: dict[str, list[Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(rows)
    if format == "parquet":
        pq.write_table(table, path)
    elif format == "arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    elif format == "csv":
        lines = [",".join(map(str, row.values())) for row in table.to_pylist()]
        path.write_text("\n".join([",".join(rows), *lines]) + "\n")
    else:
        path.write_text(
            "".join("{" + ",".join(f'"{k}":{v}' for k, v in row.items()) + "}\n" for row in table.to_pylist())
        )


@pytest.fixture(params=FORMATS)
def format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def hive(tmp_path: Path, format: str) -> Path:
    for name, k in FILES.items():
        put(tmp_path / "data" / f"{name}.{format}", format, {"k": [k]})
    return tmp_path / "data"


def read(
    format: str, path: Path, schema: pa.Schema | None = None, columns: list[str] | None = None
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as logs:
        found = FileSource("orders", format, path, Path(logs) / "log.jsonl", schema=schema)
        found.freeze(0)
        for part in found.reads(found.initial(), found.latest(found.initial(), 0), 2):
            for batch, letters in part.rows(columns or found.schema.names):
                batch.validate(full=True)
                assert not letters
                rows += batch.to_pylist()
    return sorted(rows, key=lambda row: row.get("k", 0))


def test_names_of_folders_are_columns_of_every_format(hive: Path, format: str) -> None:
    assert read(format, hive) == ROWS
    countries = [row["country"] for row in read(format, hive, columns=["country"])]
    assert sorted(countries, key=str) == sorted((row["country"] for row in ROWS), key=str)


@pytest.mark.parametrize("pattern", ["day=*", "**/*.*", "day=*/country=*/*", "day=2024-01-0[12]/*/part-?.*"])
def test_patterns_read_what_matches_with_the_same_columns(hive: Path, format: str, pattern: str) -> None:
    assert read(format, hive / pattern) == ROWS


def test_pattern_leaves_out_what_does_not_match_and_what_is_not_finished(hive: Path, format: str) -> None:
    put(hive / "day=2024-01-01" / "country=FR" / "_part-1.tmp", format, {"k": [7]})
    put(hive / ".hidden" / "country=FR" / "part-1", format, {"k": [8]})
    assert read(format, hive / "day=2024-01-01" / "**" / "*") == [
        {"k": row["k"], "country": row["country"]} for row in ROWS[:2]
    ]
    assert read(format, hive / "**" / "*") == ROWS


def test_declared_type_of_a_folder_is_kept_and_a_column_that_is_not_declared_is_none(hive: Path, format: str) -> None:
    schema = parse_schema({"day": "timestamp", "k": "int64"})
    assert read(format, hive, schema)[0] == {"day": datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), "k": 1}
    with pytest.raises(RunError, match=r"day=2024-01-01, which is no int64; give the column another type"):
        read(format, hive, parse_schema({"day": "int64"}))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "02", "-3"], "int64"), (["1", "x"], "string"), (["2024-01-01", "2024-13-01"], "string"),
        (["2024-02-29"], "date32[day]"), (["__HIVE_DEFAULT_PARTITION__", "4"], "int64"), (["9" * 19], "string"),
        (["__HIVE_DEFAULT_PARTITION__"], "string"), ([""], "string"), (["1.5"], "string"),
    ],
)  # fmt: skip
def test_type_of_a_folder_is_guessed_from_all_its_values(values: list[str], kind: str, tmp_path: Path) -> None:
    for value in values:
        put(tmp_path / "data" / f"p={value}" / "1.csv", "csv", {"k": [1]})
    found = FileSource("orders", "csv", tmp_path / "data", tmp_path / "log")
    assert str(found.schema.field("p").type) == kind


def test_folder_says_more_than_the_file(tmp_path: Path, format: str) -> None:
    put(tmp_path / "data" / "k=5" / "1", format, {"k": [1], "v": [2]})
    assert read(format, tmp_path / "data") == [{"k": 5, "v": 2}]


def test_dead_letters_name_the_file_with_its_folders(tmp_path: Path) -> None:
    for day in ("1", "2"):
        put(tmp_path / "data" / f"day={day}" / "part-0.csv", "csv", {"k": ["1", "x"]})
    found = FileSource("orders", "csv", tmp_path / "data", tmp_path / "log", schema=parse_schema({"k": "int64"}))
    found.freeze(0)
    [part] = found.reads(found.initial(), found.latest(found.initial(), 0), 2)
    assert [letter.source for _, letters in part.rows(["k"]) for letter in letters] == [
        "day=1/part-0.csv", "day=2/part-0.csv"
    ]  # fmt: skip


def test_new_folders_are_picked_up(tmp_path: Path) -> None:
    put(tmp_path / "data" / "day=1" / "1.csv", "csv", {"k": [1]})
    found = FileSource("orders", "csv", tmp_path / "data", tmp_path / "log")
    first = found.latest(found.initial(), 0)
    put(tmp_path / "data" / "day=2" / "1.csv", "csv", {"k": [2]})
    second = found.latest(first, 0)
    assert (first["files"], second["files"]) == (1, 2)
    [part] = found.reads(first, second, 1)
    assert [rows.to_pylist() for rows, _ in part.rows(["k", "day"])] == [[{"k": 2, "day": 2}]]


def test_other_folders_are_not_looked_into_and_the_message_says_how(tmp_path: Path) -> None:
    put(tmp_path / "data" / "january" / "1.csv", "csv", {"k": [1]})
    with pytest.raises(InputError, match=r"for files in its folders, such as january, write path: .*/data/\*\*/\*"):
        FileSource("orders", "csv", tmp_path / "data", tmp_path / "log")
    assert read("csv", tmp_path / "data" / "**" / "*") == [{"k": 1}]


def test_wrong_paths_are_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none does not exist, so no file matches .*none/\*"):
        list_files(tmp_path / "none" / "*")
    with pytest.raises(InputError, match=r"has \.\. behind a wildcard"):
        list_files(tmp_path / "*" / ".." / "x")
    assert list_files(tmp_path / "*.csv") == []
    (tmp_path / "again=1").symlink_to(tmp_path)
    with pytest.raises(InputError, match=f"more than {DEPTH_MAX} folders of partitions; does a link lead back"):
        list_files(tmp_path)


def test_name_with_a_wildcard_that_exists_is_itself(tmp_path: Path) -> None:
    put(tmp_path / "a[1]" / "1.csv", "csv", {"k": [1]})
    put(tmp_path / "a1" / "2.csv", "csv", {"k": [2]})
    assert read("csv", tmp_path / "a[1]") == [{"k": 1}]


@pytest.mark.parametrize(
    ("path", "file", "expected"),
    [
        ("data", "data/1", True), ("data", "data/out/1", False), ("data", "data/day=1/1", True),
        ("data/1", "data/1", True), ("data/1", "data/2", False), ("data", "dat/1", False),
        ("data/*.csv", "data/1.csv", True), ("data/*.csv", "data/out/1.csv", False), ("data/*", "data/out/1.csv", True),
        ("data/**/*.csv", "data/a/b/1.csv", True), ("data/**/*.csv", "data/a/b/1.parquet", False),
        ("data/*", "data/day=1/h=2/1.csv", True),
    ],
)  # fmt: skip
def test_results_would_be_read_again_where_the_path_leads_to_them(path: str, file: str, expected: bool) -> None:
    assert would_read(Path("/none") / path, Path("/none") / file) is expected
