"""Relations: how many rows there are without reading them, and the first ones over all files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from streamjoin.errors import InputError, RunError
from streamjoin.sources import relation as relation_module
from streamjoin.sources.filelog import list_files
from streamjoin.sources.relation import Relation

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])
FORMATS = ("parquet", "arrow", "csv", "jsonl")


def part(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"n{id}" for id in ids]}, COLUMNS)


def written(folder: Path, format: str, *parts: pa.Table) -> Relation:
    """A relation of a file a part."""
    folder.mkdir(exist_ok=True)
    for number, table in enumerate(parts):
        path = folder / f"{number}.{format}"
        if format == "parquet":
            pq.write_table(table, path, row_group_size=2)
        elif format == "arrow":
            with pa.ipc.new_file(path, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
                writer.write_table(table, max_chunksize=2)
        elif format == "csv":
            pyarrow.csv.write_csv(table, path)
        else:
            path.write_text("".join(f'{{"id": {row["id"]}, "name": "{row["name"]}"}}\n' for row in table.to_pylist()))
    return Relation("customers", format, tuple(list_files(folder)), COLUMNS, folder)


@pytest.mark.parametrize("format", FORMATS)
def test_rows_are_known_where_files_say_how_many_they_have(format: str, tmp_path: Path) -> None:
    relation = written(tmp_path / "r", format, part(1, 2, 3), part(), part(4, 5))
    assert relation.row_count() == (5 if format in ("parquet", "arrow") else None)
    assert relation.bytes() == sum(file.stat().st_size for file in (tmp_path / "r").iterdir())


@pytest.mark.parametrize("format", FORMATS)
def test_a_relation_without_files_has_no_rows(format: str, tmp_path: Path) -> None:
    relation = written(tmp_path / "r", format)
    assert (relation.row_count(), relation.bytes()) == (0, 0)
    rows, letters = relation.first_rows(10)
    assert (rows.num_rows, rows.schema, letters) == (0, COLUMNS, [])


@pytest.mark.parametrize("format", FORMATS)
def test_first_rows_go_over_the_ends_of_files(format: str, tmp_path: Path) -> None:
    relation = written(tmp_path / "r", format, part(), part(1, 2, 3), part(4), part(5, 6))
    for limit in (1, 3, 4, 5, 100):
        rows, _ = relation.first_rows(limit)
        assert rows.schema == COLUMNS
        assert rows.column("id").to_pylist() == [1, 2, 3, 4, 5, 6][:limit]


def test_records_that_cannot_be_read_are_told_and_cost_themselves_only(tmp_path: Path) -> None:
    relation = written(tmp_path / "r", "csv", part(1), part(2))
    (tmp_path / "r" / "0.csv").write_text("id,name\nx,n\n1,n1\n")
    rows, letters = relation.first_rows(10)
    assert rows.column("id").to_pylist() == [1, 2]
    assert [(letter.stream, letter.source, letter.position) for letter in letters] == [("customers", "0.csv", 0)]


def test_nothing_but_bad_records_does_not_read_on_for_ever(tmp_path: Path) -> None:
    relation = written(tmp_path / "r", "csv", *(part() for _ in range(50)))
    for file in relation.files:
        file.write_text("id,name\n" + "x,n\n" * 10)
    assert len(relation.first_rows(20)[1]) == 20


def test_too_many_files_are_not_all_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    relation = written(tmp_path / "r", "parquet", part(1), part(2), part(3))
    monkeypatch.setattr(relation_module, "FILES_OPENED_MAX", 2)
    assert relation.row_count() is None
    assert relation.first_rows(10)[0].column("id").to_pylist() == [1, 2]


def test_damaged_files_are_named(tmp_path: Path) -> None:
    relation = written(tmp_path / "r", "parquet", part(1), part(2))
    relation.files[1].write_bytes(b"PAR1 no more PAR1")
    with pytest.raises(InputError, match=r"1\.parquet cannot be read as parquet"):
        relation.row_count()
    with pytest.raises(RunError, match=r"1\.parquet cannot be read"):
        relation.first_rows(10)
    relation.files[1].unlink()
    with pytest.raises(InputError, match=r"1\.parquet cannot be read"):
        relation.bytes()


def test_files_with_other_columns_are_named(tmp_path: Path) -> None:
    relation = written(tmp_path / "r", "parquet", part(1), pa.table({"key": [2]}))
    with pytest.raises(RunError, match=r"1\.parquet has none of the columns id, name"):
        relation.first_rows(10)


def test_files_that_are_what_they_were_are_hashed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    relation = written(tmp_path / "r", "csv", part(1), part(2))
    origin, hashed, by_name = relation.origin(), [], Relation._hash

    def counted(self: Relation, name_of: Callable[[Path], str]) -> str:
        hashed.append(name_of)
        return by_name(self, name_of)

    monkeypatch.setattr(Relation, "_hash", counted)
    assert relation.has_origin(origin) and len(hashed) == 1
    assert relation.has_origin(by_name(relation, str)), "of an earlier version"
    assert not relation.has_origin("other")
