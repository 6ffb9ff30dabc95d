"""`stream_join` over DataFrames and relations: as DuckDB joins them, after restarts, and with new versions."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from streamjoin.engine.operator import Operator
from streamjoin.errors import InputError
from streamjoin.operators.biclique import Biclique, Routing
from streamjoin.operators.lookup import Lookup
from streamjoin.spark.join import Stream, stream_join
from tests import duck

from .jobs import check_same, result_rows, write_file
from .test_stream_join import to_the_end

pytestmark = pytest.mark.spark

ROWS = 30
ENRICHED = """
    SELECT ONLINE a.id AS a, b.id AS b, c.name AS name, d.x AS x
    FROM a JOIN b ON a.k = b.k LEFT JOIN c ON b.id % 11 = c.k JOIN d ON a.k = d.k WITHIN 20 MICROSECONDS
"""
SAID = "SELECT ONLINE a.id, c.said, VERSION(c) AS v FROM a LEFT JOIN c ON a.k = c.k"


def write_rows(folder: Path, numbers: range, streams: str = "a") -> None:
    for name in streams:
        for number in numbers:
            ids = range(number * ROWS, (number + 1) * ROWS)
            keys = [None if one % 13 == 0 else (one * 7 + ord(name)) % 9 for one in ids]
            columns = [pa.array([2 * one for one in ids]), pa.array(ids), pa.array(keys, pa.int64())]
            write_file(folder / name, number, pa.RecordBatch.from_arrays(columns, ["ts", "id", "k"]))


def write_said(folder: Path, version: int) -> None:
    """A relation of which every row says its version, in place of the one that is there."""
    pq.write_table(pa.table({"k": range(0, 9, 2), "said": [version] * 5}), folder / ".c")
    (folder / ".c").rename(folder / "c.parquet")


def joined(
    session: SparkSession, folder: Path, query: str, relations: dict[str, Any], operator: Operator, slots: int = 2
) -> DataFrame:
    streams = {}
    for name in "ab":
        if (folder / name).is_dir():
            reader = session.readStream.schema("ts long, id long, k long").option("maxFilesPerTrigger", 1)
            streams[name] = Stream(reader.parquet(str(folder / name)), "ts", delay_us=2 * ROWS)
    return stream_join(streams, query, operator=operator, checkpoint=folder / "state", slots=slots, relations=relations)


def test_streams_meet_relations_of_files_and_databases_as_in_duckdb(session: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("k,name\n" + "".join(f"{k},n{k}\n" for k in (1, 2, 2, 5, 9)))
    with sqlite3.connect(tmp_path / "d.db") as database:
        database.execute("CREATE TABLE d (k INTEGER, x INTEGER)")
        database.executemany("INSERT INTO d VALUES (?, ?)", [(k % 9, k) for k in range(14)])
    database.close()
    relations = {
        "c": {"source": "csv", "path": str(tmp_path / "c.csv")},
        "d": {"source": "sql", "url": f"sqlite:///{tmp_path / 'd.db'}", "table": "d"},
    }
    for numbers, slots in ((range(2), 2), (range(2, 4), 1), (range(0), 3)):
        write_rows(tmp_path, numbers, "ab")
        rows = joined(session, tmp_path, ENRICHED, relations, Biclique(2, 2, Routing.HASH), slots)
        writer = rows.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "offsets"))
        to_the_end(writer.trigger(availableNow=True).start(str(tmp_path / "results")))
    wanted = Counter(
        duck.rows(f"""
        SELECT a.id, b.id, c.name, d.x
        FROM '{tmp_path}/a/*.parquet' AS a JOIN '{tmp_path}/b/*.parquet' AS b ON a.k = b.k AND ABS(a.ts - b.ts) <= 20
        LEFT JOIN '{tmp_path}/c.csv' AS c ON b.id % 11 = c.k
        JOIN (SELECT k % 9 AS k, k AS x FROM range(14) AS made(k)) AS d ON a.k = d.k
    """)
    )
    assert {row[2] for row in wanted} == {None, "n1", "n2", "n5", "n9"}
    check_same(result_rows(tmp_path / "results"), wanted)


def test_each_batch_joins_one_version_which_it_keeps_when_it_is_repeated(session: SparkSession, tmp_path: Path) -> None:
    kept: dict[int, list[tuple[Any, ...]]] = {}
    relations = {"c": {"source": "parquet", "path": str(tmp_path / "c.parquet")}}

    def rows() -> DataFrame:
        return joined(session, tmp_path, SAID, relations, Lookup(2))

    def keep(frame: DataFrame, batch: int) -> None:
        found = [tuple(row) for row in frame.collect()]
        if batch == 1 and batch not in kept:
            kept[batch] = found
            raise RuntimeError("the sink is full")
        assert kept.setdefault(batch, found) == found
        if batch == 2:
            write_said(tmp_path, 3)
            rows()  # has it read anew, for the query that runs

    def run() -> None:
        writer = rows().writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "offsets"))
        to_the_end(writer.trigger(availableNow=True).start())

    write_rows(tmp_path, range(4))
    write_said(tmp_path, 1)
    with pytest.raises(Exception, match="the sink is full"):
        run()
    write_said(tmp_path, 2)
    run()
    versions = [1, 1, 2, 3]
    assert [{row[2] for row in kept[batch]} for batch in range(4)] == [{version} for version in versions]
    for batch, version in enumerate(versions):
        wanted = duck.rows(f"""
            SELECT id, CASE WHEN k % 2 = 0 THEN {version} END, {version} FROM '{tmp_path}/a/{batch:06d}.parquet'
        """)
        check_same(Counter(kept[batch]), Counter(wanted))


@pytest.mark.parametrize(
    ("entry", "field", "says"),
    [
        ({"refresh": "10min"}, "relations.c.refresh", "call stream_join again with the same checkpoint"),
        ({"pth": "c.parquet"}, "relations.c.pth", "path"),
        ({"time": "ts"}, "relations.c.time", "a relation has no time"),
        ({"path": "nowhere.parquet"}, "relations.c.path", "does not exist"),
    ],
)
def test_what_is_wrong_with_a_relation_is_said_as_for_a_join_file(
    entry: dict[str, str], field: str, says: str, session: SparkSession, tmp_path: Path
) -> None:
    write_rows(tmp_path, range(1))
    write_said(tmp_path, 1)
    given = {"source": "parquet", "path": str(tmp_path / "c.parquet"), **entry}
    with pytest.raises(InputError, match=says) as refused:
        joined(session, tmp_path, SAID, {"c": given}, Lookup(1))
    assert refused.value.field == field and not (tmp_path / "state").exists()


def test_names_and_operators_that_do_not_fit_are_refused(session: SparkSession, tmp_path: Path) -> None:
    write_rows(tmp_path, range(1))
    write_said(tmp_path, 1)
    entry = {"source": "parquet", "path": str(tmp_path / "c.parquet")}
    with pytest.raises(InputError, match='differs from "a" by case only'):
        joined(session, tmp_path, SAID, {"A": entry}, Lookup(1))
    with pytest.raises(InputError, match="a stream is joined with a relation by lookup"):
        joined(session, tmp_path, SAID, {"c": entry}, Biclique(1, 1))
    assert not (tmp_path / "state").exists()
