"""Tables of databases as relations: SQLite in a file, and what is said of wrong ones."""

from __future__ import annotations

import json
import pickle
import re
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.errors import InputError, RunError
from streamjoin.explain.relations import relation_summary
from streamjoin.relations.versions import Versions
from streamjoin.sources.database import Database
from streamjoin.spark.checkpoint import opened
from streamjoin.spark.refresh import Refreshing
from streamjoin.spark.source import pack
from streamjoin.spec.inputs import open_relation
from streamjoin.spec.job import Job
from streamjoin.spec.joinfile import JoinFile, of_content
from streamjoin.spec.prepare import bind
from streamjoin.spec.relations import read_relations, refreshed

SECRET = "s3cr%2Ft"  # s3cr/t
QUERY = "SELECT ONLINE a.k, rates.name, VERSION(rates) FROM a LEFT JOIN rates ON a.k = rates.k"


@pytest.fixture
def database(tmp_path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(tmp_path / "some #1.db")
    connection.execute('CREATE TABLE rates (k INTEGER, name TEXT, "odd ""name" REAL, data BLOB)')
    connection.executemany("INSERT INTO rates VALUES (?, ?, ?, ?)", [(n, f"n{n}", n / 2, b"x") for n in range(5)])
    connection.execute("CREATE VIEW few AS SELECT * FROM rates WHERE k < 2")
    connection.commit()
    return connection


def join(folder: Path, **entry: Any) -> JoinFile:
    relation: Mapping[str, Any] = {"source": "sql", "url": "sqlite:///some%20%231.db", "table": "rates", **entry}
    (folder / "a").mkdir(exist_ok=True)
    return of_content(
        {
            "streams": {"a": {"source": "parquet", "path": "a", "time": "ts", "schema": {"ts": "int64", "k": "int64"}}},
            "relations": {"rates": {key: value for key, value in relation.items() if value is not None}},
            "query": QUERY,
            "run": {"checkpoint": "checkpoint"},
        },
        base=folder,
    )


@pytest.mark.usefixtures("database")
def test_a_table_and_a_view_are_read_as_columns(tmp_path: Path) -> None:
    relation = open_relation(join(tmp_path), "rates")
    assert relation.columns.names == ["k", "name", 'odd "name', "data"]
    assert relation.columns.types == [pa.int64(), pa.string(), pa.float64(), pa.binary()]
    ((rows, bad),) = relation.blocks(["name", 'odd "name'])
    assert rows.to_pylist()[3] == {"name": "n3", 'odd "name': 1.5} and bad == 0
    assert relation.first_rows(2)[0].num_rows == 2
    assert "some%20%231.db" in relation_summary(relation) or "some #1.db" in relation_summary(relation)
    view = open_relation(join(tmp_path, table="few", schema={"k": "int32"}), "rates")
    assert [rows.to_pylist() for rows, _ in view.blocks(["k"])] == [[{"k": 0}, {"k": 1}]]
    assert view.columns == pa.schema([("k", pa.int32())])


def test_a_refresh_reads_it_anew_and_a_database_that_goes_leaves_the_old_version(
    database: sqlite3.Connection, tmp_path: Path
) -> None:
    job = bind(join(tmp_path, refresh="1h")).job()
    versions, known = Versions(job.tables, "rates"), {"rates": {}}
    assert read_relations(job)["rates"].rows == 5
    assert read_relations(job)["rates"].number == 1, "it is not an hour old"
    database.execute("INSERT INTO rates VALUES (9, 'nine', 1, NULL)")
    database.commit()
    looking = Refreshing(job, known)
    looking.refresh("rates")
    assert known["rates"]["version"] == 2 and versions.load(2).rows == 6
    database.execute("ALTER TABLE rates RENAME COLUMN name TO title")
    looking.refresh("rates")
    assert 'no column "name" any more; it has k, title' in known["rates"]["problem"]
    database.execute("DROP VIEW few")
    database.execute("DROP TABLE rates")
    looking.refresh("rates")
    assert "no such table: rates" in known["rates"]["problem"]
    (tmp_path / "some #1.db").unlink()
    looking.refresh("rates")
    assert "does not exist" in known["rates"]["problem"] and known["rates"]["refresh_failures"] == 3
    assert versions.newest() == 2


def test_without_refresh_every_start_reads_it(database: sqlite3.Connection, tmp_path: Path) -> None:
    job = bind(join(tmp_path)).job()
    assert [read_relations(job)["rates"].number for _ in range(2)] == [1, 2]


def test_a_value_that_has_no_place_in_its_type_is_named(database: sqlite3.Connection, tmp_path: Path) -> None:
    database.execute("UPDATE rates SET name = 'seven'")
    database.commit()
    relation = open_relation(join(tmp_path, schema={"name": "int64"}), "rates")
    with pytest.raises(RunError, match='column "name" of table rates cannot be read as int64'):
        list(relation.blocks(["name"]))


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("0x10", "int64", "'0x10' is no int64"),
        ("1e-9999999", "decimal(10, 2)", "'1e-9999999' does not fit decimal(10,2)"),
    ],
)
def test_a_text_that_is_no_such_number_is_refused(
    text: str, kind: str, said: str, database: sqlite3.Connection, tmp_path: Path
) -> None:
    database.execute("UPDATE rates SET name = ?", [text])
    database.commit()
    relation = open_relation(join(tmp_path, schema={"name": kind}), "rates")
    with pytest.raises(RunError, match=re.escape(said)):
        list(relation.blocks(["name"]))


REALS = {0.1 + 0.2: "0.30000000000000004", 1e15 + 0.3: "1000000000000000.2", 0.1: "0.1", 2.0: "2.0", 1e300: "1.0e+300"}
"""Some, and how they are written among texts."""


@pytest.mark.parametrize("other", ["a text", b"bytes"], ids=["texts", "bytes"])
def test_reals_of_sqlite_among_texts_keep_their_digits(
    other: str | bytes, database: sqlite3.Connection, tmp_path: Path
) -> None:
    database.execute("CREATE TABLE mixed (k, v)")
    values = [*REALS, 2**53 + 1, None, other]
    database.executemany("INSERT INTO mixed VALUES (?, ?)", enumerate(values))
    database.commit()
    relation = open_relation(join(tmp_path, table="mixed"), "rates")
    ((rows, _),) = relation.blocks(["k", "v"])
    assert rows["k"].to_pylist() == list(range(len(values)))
    *reals, whole, nothing, last = (one.decode() if isinstance(one, bytes) else one for one in rows["v"].to_pylist())
    assert [float(one) for one in reals] == list(REALS)
    # Where 15 digits do not do, the 17th may be another one that means the same real.
    assert reals[2:] == list(REALS.values())[2:] and reals[0] == REALS[0.1 + 0.2]
    assert (whole, nothing, last) == (str(2**53 + 1), None, other.decode() if isinstance(other, bytes) else other)
    database.execute("UPDATE mixed SET v = '5' WHERE typeof(v) IN ('text', 'blob')")
    database.commit()
    numbers = open_relation(join(tmp_path, table="mixed", schema={"v": "float64"}), "rates")
    ((rows, _),) = numbers.blocks(["v"])
    assert rows["v"].to_pylist() == [*REALS, 2.0**53, None, 5.0]


EVERY = QUERY.replace("rates.name", 'rates.name, rates.data, rates."odd ""name"')
TYPES = {"k": "int64", "name": "string", "data": "binary", 'odd "name': "decimal(12, 4)"}


@pytest.mark.parametrize("schema", [None, TYPES], ids=["as it is", "with a schema"])
@pytest.mark.parametrize(
    "change",
    ["DELETE FROM rates", 'UPDATE rates SET name = NULL, data = NULL, "odd ""name" = NULL'],
    ids=["emptied", "without values"],
)
def test_columns_of_sqlite_without_values_keep_the_types_that_they_had(
    change: str, schema: dict[str, str] | None, database: sqlite3.Connection, tmp_path: Path
) -> None:
    def job() -> Job:
        return bind(join(tmp_path, schema=schema).model_copy(update={"query": EVERY})).job()

    first = job()
    with opened(first):
        types = first.relations["rates"].columns.types
        record = Versions(first.tables, "rates").folder / "1" / "version.json"
        assert read_relations(first)["rates"].rows == 5
    # Versions of before have types.
    kinds = {"k": "int64", "name": "string", "data": "binary", 'odd "name': "double"}
    record.write_text(json.dumps(json.loads(record.read_text()) | {"columns": kinds}))
    database.execute(change)
    database.commit()
    left = 0 if "DELETE" in change else 5
    version = refreshed(first, first.relations["rates"])
    assert version is not None and (version.number, version.rows) == (2, left)
    again = job()
    with opened(again):
        assert again.relations["rates"].columns.types == types
        assert read_relations(again)["rates"].rows == left
    database.execute("INSERT INTO rates VALUES (9, 'nine', 0.5, x'00')")
    database.commit()
    with opened(job()):
        version = refreshed(again, again.relations["rates"])
        assert version is not None and version.rows == left + 1
    database.execute("UPDATE rates SET k = 'nine'")
    database.commit()
    with pytest.raises(RunError, match=r'column "k" of table rates cannot be read as int64: .*; give it values of'):
        refreshed(again, again.relations["rates"])


@pytest.mark.parametrize(
    ("entry", "field", "message"),
    [
        ({"url": None}, "url", "is missing"),
        ({"url": "mysql://host/db"}, "url", "begins with postgresql:// or sqlite://"),
        ({"url": "nothing"}, "url", "begins with postgresql:// or sqlite://"),
        ({"url": "postgresql:///db"}, "url", "does not name one server"),
        ({"url": "postgresql://a,b/db"}, "url", "does not name one server"),
        ({"url": "postgresql://a:x/db"}, "url", "is not a URL"),
        ({"url": "sqlite://host/db"}, "url", "names no file"),
        ({"url": "sqlite:///gone.db"}, "url", "gone.db does not exist"),
        ({"table": "nothing"}, "table", "no such table: nothing"),
        ({"table": "a.b.c"}, "table", "is a table's name"),
        ({"table": "rates; DROP TABLE rates"}, "table", "no such table"),
        ({"table": ""}, "table", "is a table's name"),
        ({"schema": {"colour": "string"}}, "table", 'has no column "colour"; it has k, name'),
        ({"path": "x"}, "path", "no such field"),
        ({"time": "ts"}, "time", "a relation has no time"),
    ],
)
@pytest.mark.usefixtures("database")
def test_what_a_table_cannot_be_is_refused_by_name(
    entry: dict[str, Any], field: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as refused:
        open_relation(join(tmp_path, **entry), "rates")
    assert message in refused.value.message and refused.value.field == f"relations.rates.{field}"


def test_a_server_that_is_not_there_is_said_without_the_password(tmp_path: Path) -> None:
    url = f"postgresql://me:{SECRET}@127.0.0.1:1/db?sslpassword=other"
    with pytest.raises(InputError, match=r"cannot be read: .*Connection refused") as refused:
        open_relation(join(tmp_path, url=url), "rates")
    assert "postgresql://me:***@127.0.0.1:1/db?sslpassword=***" in refused.value.message
    assert not any(secret in str(refused.value) for secret in (SECRET, "s3cr/t", "other"))


def test_no_copy_of_a_job_has_the_password(tmp_path: Path, database: sqlite3.Connection) -> None:
    there = Database(f"postgresql+psycopg://me:{SECRET}@host/db?sslmode=require&password=pass")
    for text in (str(there), repr(there), str(pickle.loads(pickle.dumps(there)).url)):
        assert SECRET not in text and "=pass" not in text and "me:***@host/db" in text
    assert there.without_secrets("it was s3cr/t, s3cr%2Ft and pass") == "it was ***, *** and ***"
    assert there.for_libpq.startswith(
        f"postgresql://me:{SECRET}@host/db?sslmode=require&password=pass&connect_timeout="
    )
    assert there.settings == ["sslmode", "password"]
    job = bind(join(tmp_path)).job()
    assert pack(job)


def test_a_stream_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a table of a database ends, so write it under relations"):
        of_content({"streams": {"a": {"source": "sql", "url": "sqlite:///x", "table": "t"}}, "query": QUERY})


def test_a_file_from_the_root_stays_there_in_messages_and_in_tasks() -> None:
    there = Database("sqlite:////srv/rates.db")
    assert (str(there), pickle.loads(pickle.dumps(there)).file) == ("sqlite:////srv/rates.db", "/srv/rates.db")
