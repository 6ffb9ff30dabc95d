"""A relation has the types and the dialect that a job has read it with, or is read anew, or refused."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin.errors import InputError
from streamjoin.relations.versions import Versions
from streamjoin.spark.checkpoint import opened
from streamjoin.spec.job import IDENTITY_FILE, RELATION_COLUMNS
from streamjoin.spec.joinfile import JoinFile, parse
from streamjoin.spec.prepare import bind
from streamjoin.spec.relations import read_relations, refreshed

RETYPED = """
streams:
  a: {source: generator, kind: band.r, time: ts, rows: 10}
relations:
  c: {source: SOURCE, path: c}
query: "SELECT ONLINE a.x, c.n FROM a JOIN c ON a.x = c.id"
"""


def retyped(folder: Path, source: str) -> JoinFile:
    (folder / "c").mkdir(exist_ok=True)
    return parse(RETYPED.replace("SOURCE", source), base=folder)


def test_a_relation_whose_types_are_guessed_keeps_those_that_it_was_joined_by(tmp_path: Path) -> None:
    file = retyped(tmp_path, "csv")
    (tmp_path / "c" / "1.csv").write_text("id,n\n1,a\n")
    with opened(bind(file).job()) as _:
        before = read_relations(bind(file).job())["c"]
    (tmp_path / "c" / "1.csv").write_text("id,n\n1,a\n1.5,b\n")
    job = bind(file).job()
    with opened(job):
        version = read_relations(job)["c"]
    assert (before.rows, version.number, version.rows, version.bad) == (1, 2, 1, 1)
    anew = bind(file, anew=True).plan.relations[0].columns
    assert anew.field("id").type == pa.float64()


def test_a_refresh_while_the_job_runs_reads_by_the_types_of_its_start(tmp_path: Path) -> None:
    file = retyped(tmp_path, "csv")
    (tmp_path / "c" / "1.csv").write_text("id,n\n1,a\n")
    job = bind(file).job()
    with opened(job):
        read_relations(job)
        (tmp_path / "c" / "1.csv").write_text("id,n\n2.5,b\n2,c\n")
        version = refreshed(job, job.relations["c"])
        assert version is not None and (version.number, version.rows, version.bad) == (2, 1, 1)
    again = bind(file).job()
    with opened(again):
        assert read_relations(again)["c"].number == 2, "and the next start has them, too"


def test_a_relation_that_has_other_types_than_it_was_joined_by_is_refused(tmp_path: Path) -> None:
    file = retyped(tmp_path, "parquet")
    pq.write_table(pa.table({"id": [1], "n": ["a"], "o": [1]}), tmp_path / "c" / "1.parquet")
    with opened(bind(file).job()):
        pass
    pq.write_table(pa.table({"id": [1], "n": ["a"], "o": [1.5]}), tmp_path / "c" / "1.parquet")
    with opened(bind(file).job()):  # nothing reads "o"
        pass
    recorded = json.loads((file.checkpoint / IDENTITY_FILE).read_text())
    del recorded[RELATION_COLUMNS]  # as checkpoints were written once
    (file.checkpoint / IDENTITY_FILE).write_text(json.dumps(recorded))
    with opened(bind(file).job()):
        pass
    pq.write_table(pa.table({"id": [1.0], "n": ["a"]}), tmp_path / "c" / "1.parquet")
    said = 'column "id" of relation c was int64 and is double now'
    with pytest.raises(InputError, match=said), opened(bind(file).job()):
        pass


def test_a_relation_that_is_to_be_read_otherwise_is_read_anew(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "1.csv").write_text("id;n\n1;a\n")

    def read(dialect: str, kind: str = "int64") -> tuple[int, int, int]:
        text = f"csv, path: c, schema: {{id: {kind}, n: string}}, csv: {{delimiter: ';', {dialect}}}"
        job = bind(parse(RETYPED.replace("SOURCE, path: c", text), base=tmp_path), anew=True).job()
        version = read_relations(job)["c"]
        return version.number, version.rows, version.bad

    assert read("header: false") == (1, 1, 1)
    assert read("header: true") == read("header: true") == (2, 1, 0)
    assert read("header: true", "float64") == (3, 1, 0)
    assert read("header: true, 'null': a", "float64") == (4, 1, 0)


def test_a_table_that_is_to_be_read_with_other_types_is_read_before_its_time(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "c.db") as database:
        database.execute("CREATE TABLE c (id INTEGER, n TEXT)")
        database.execute("INSERT INTO c VALUES (1, 'a')")

    def read(kind: str) -> int:
        entry = f'sql, url: "sqlite:///c.db", table: c, refresh: 1h, schema: {{id: {kind}, n: string}}'
        job = bind(parse(RETYPED.replace("SOURCE, path: c", entry), base=tmp_path), anew=True).job()
        return read_relations(job)["c"].number

    assert [read("int64"), read("int64"), read("float64"), read("float64")] == [1, 1, 2, 2]


def test_a_start_whose_files_are_gone_is_refused_and_the_first_one_is_not(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    file = parse(RETYPED.replace("SOURCE, path: c", "csv, path: c, schema: {id: int64, n: string}"), base=tmp_path)
    job = bind(file).job()
    assert [read_relations(job)["c"].number for _ in range(2)] == [1, 1]
    (tmp_path / "c" / "1.csv").write_text("id,n\n1,a\n")
    assert read_relations(bind(file).job())["c"].rows == 1
    (tmp_path / "c" / "1.csv").unlink()
    with pytest.raises(InputError, match="c has no files any more; put them back, or one without rows"):
        read_relations(bind(file).job())
    assert Versions(job.tables, "c").newest() == 2
    (tmp_path / "c" / "2.csv").write_text("id,n\n")
    assert read_relations(bind(file).job())["c"].rows == 0
