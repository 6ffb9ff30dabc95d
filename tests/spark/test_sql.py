"""A stream joined with a table of a real PostgreSQL server, which changes, and goes, while the job runs."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from streamjoin.errors import InputError
from streamjoin.relations.history import History
from streamjoin.relations.versions import Versions
from streamjoin.sources.database import Database
from streamjoin.sources.sql import SqlTable, columns_of
from streamjoin.spec.joinfile import parse
from streamjoin.spec.prepare import bind
from streamjoin.spec.relations import read_relations, refreshed
from tests.servers.postgres import PostgresServer

from .command import RUN_S_MAX, Command
from .test_refresh import LEFT, live, rows_in, text, write_rows

pytestmark = [pytest.mark.spark, pytest.mark.services]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


def url_of(server: PostgresServer) -> str:
    return server.url.replace("+psycopg", "")


def run(server: PostgresServer, *commands: str) -> None:
    with psycopg.connect(url_of(server), autocommit=True) as connection:
        for command in commands:
            connection.execute(command.encode())


def test_a_table_is_joined_in_versions_and_a_server_that_goes_leaves_the_last_one(
    session: SparkSession, tmp_path: Path, server: PostgresServer
) -> None:
    run(
        server,
        "CREATE SCHEMA sales",
        "CREATE TABLE sales.rates AS SELECT g::bigint AS k, 1::bigint AS said, '{}'::jsonb AS more "
        "FROM generate_series(0, 5) g",
    )
    file = tmp_path / "join.yaml"
    relation = f'{{source: sql, url: "{url_of(server)}", table: sales.rates, refresh: 1s}}'
    file.write_text(text(LEFT).replace("{source: parquet, path: rates, refresh: 1s}", relation))
    write_rows(tmp_path, 0)
    history = History(tmp_path / "checkpoint" / "relations", "rates")
    joined: dict[int, int] = {}

    def said() -> dict[int, int]:
        return {id: version for id, said, version in rows_in(tmp_path)}

    with live(session, file) as job:
        job.until(lambda: len(rows_in(tmp_path)) == 40)
        run(server, "UPDATE sales.rates SET said = 2")
        run(server, "UPDATE sales.rates SET said = 3 WHERE k < 0")
        read = len(history.uses())
        job.until(lambda: len(history.uses()) >= read + 2)  # the next one may have been begun before the update
        write_rows(tmp_path, 1)
        job.until(lambda: len(rows_in(tmp_path)) == 80)
        server.kill()
        problems: list[str | None] = []

        def fails() -> bool:
            problems.append(history.look().problem)
            return problems[-1] is not None

        job.until(fails)
        write_rows(tmp_path, 2)
        job.until(lambda: len(rows_in(tmp_path)) == 120)
        server.restart()
    joined = said()
    rows = Counter((id, said) for id, said, _ in rows_in(tmp_path))
    assert rows == Counter((id, (1 if id < 40 else 2) if id % 12 < 6 else None) for id in range(120))
    assert len({joined[id] for id in range(40)}) == 1 and len({joined[id] for id in range(40, 80)}) == 1
    assert joined[40] > joined[0] and joined[80] >= joined[40]
    assert "cannot be read" in str(problems[-1])


SLOWLY = (
    "CREATE OR REPLACE VIEW slow AS SELECT g::bigint AS k, {}::bigint AS said FROM generate_series(0, 3000000) g "
    "WHERE g % {} > 0 OR pg_sleep(0.1) IS NOT NULL"
)
"""Which version it is, and how many rows come in a tenth of a second."""


@pytest.mark.soak
@pytest.mark.parametrize("when", ["as the job starts", "anew"])
def test_a_signal_while_a_table_is_read_ends_the_command_without_a_stack(
    when: str, tmp_path: Path, server: PostgresServer
) -> None:
    """The terminal's Ctrl-C, which goes to every process of the group; a read would go on for half a minute."""
    many, few = 10_000_000, 10_000
    run(server, SLOWLY.format(1, few if when == "as the job starts" else many))
    file = tmp_path / "join.yaml"
    relation = f'{{source: sql, url: "{url_of(server)}", table: slow}}'
    file.write_text(text(LEFT).replace("{source: parquet, path: rates, refresh: 1s}", relation))
    write_rows(tmp_path, 0)
    history = History(tmp_path / "checkpoint" / "relations", "rates")
    before: list[object] = []
    with Command(file) as command:
        if when == "anew":
            command.wait_until(lambda: len(rows_in(tmp_path)) == 40, "joins nothing", RUN_S_MAX)
            before.extend(rows_in(tmp_path))
            run(server, SLOWLY.format(2, few))
            history.ask()
        command.wait_until(lambda: history.reading(time.time_ns() // 1_000) is not None, "reads nothing", RUN_S_MAX)
        os.killpg(command.pid, signal.SIGINT)
        assert command.exit_status() == 0, command.output()
        said = command.output()
    # The version that was being read is given up, and nothing says so.
    assert Versions(tmp_path / "checkpoint" / "relations", "rates").newest() == (1 if before else 0)
    assert history.reading(time.time_ns() // 1_000) is None
    stopping, summary = said.splitlines()
    assert stopping == "stopping after the current batch; once more to stop at once"
    assert summary.startswith(f"{len(before)} results from a {len(before)} tuples"), said
    # Nothing is left that a later start would trip over.
    run(server, SLOWLY.format(3, many))
    with Command(file, "--until-end") as command:
        assert command.exit_status() == 0, command.output()
    assert len(rows_in(tmp_path)) == 40


def test_types_of_postgresql_and_what_is_refused(server: PostgresServer) -> None:
    run(
        server,
        "CREATE TABLE typed AS SELECT 1::smallint AS a, 2::int AS b, 1.5::numeric(6, 2) AS c, 2.25::numeric AS d, "
        "now()::timestamp AS e, now() AS f, current_date AS g, true AS h, gen_random_uuid() AS i, "
        "'x'::varchar(3) AS j, "
        "'{}'::jsonb AS k, 1::real AS l, '\\x01'::bytea AS m, ARRAY[1] AS n",
    )
    database = Database(url_of(server))
    columns = columns_of(database.url, "typed")
    assert {field.name: str(field.type) for field in columns} == {
        "a": "int16", "b": "int32", "c": "decimal128(6, 2)", "e": "timestamp[us, tz=UTC]",
        "f": "timestamp[us, tz=UTC]", "g": "date32[day]", "h": "bool", "i": "string", "j": "string", "k": "string",
        "l": "float", "m": "binary",
    }  # fmt: skip
    given = columns.append(pa.field("d", pa.decimal128(10, 3)))
    ((rows, _),) = SqlTable("t", given, None, database, "typed").blocks(given.names)
    (row,) = rows.to_pylist()
    assert (row["a"], row["b"], str(row["c"]), str(row["d"]), row["k"]) == (1, 2, "1.50", "2.250", "{}")
    assert len(row["i"]) == 36
    with pytest.raises(InputError, match='relation "nothing" does not exist') as refused:
        columns_of(database.url, "nothing")
    assert refused.value.field == "table"


NUMERIC = """
streams: {{a: {{source: generator, kind: band.r, time: ts, rows: 10}}}}
relations: {{rates: {{source: sql, url: "{url}", table: exact, schema: {{k: int64, rate: "decimal(12, 4)"}}}}}}
query: "SELECT ONLINE a.x, rates.rate FROM a JOIN rates ON a.x = rates.k"
"""


def test_a_numeric_without_digits_that_has_a_schema_is_read_anew(server: PostgresServer, tmp_path: Path) -> None:
    run(server, "CREATE TABLE exact AS SELECT 1::bigint AS k, 1.5::numeric AS rate")
    job = bind(parse(NUMERIC.format(url=url_of(server)), base=tmp_path)).job()
    assert dict(read_relations(job)["rates"].columns) == {"k": "int64", "rate": "numeric"}
    run(server, "INSERT INTO exact VALUES (2, 2.25)")
    version = refreshed(job, job.relations["rates"])
    assert version is not None and (version.number, version.rows) == (2, 2)
    for change, said in (
        ("ALTER TABLE exact ALTER rate TYPE double precision", 'its column "rate" is double now, and was numeric'),
        ("ALTER TABLE exact DROP rate", 'it has no column "rate" any more; it has k'),
    ):
        run(server, change)
        with pytest.raises(InputError, match=said):
            refreshed(job, job.relations["rates"])


def test_a_wrong_password_is_said_and_never_shown(server: PostgresServer) -> None:
    rules = server.data / "pg_hba.conf"
    rules.write_text("host all guarded 127.0.0.1/32 scram-sha-256\n" + rules.read_text())
    run(server, "CREATE ROLE guarded LOGIN PASSWORD 'open sesame'", "SELECT pg_reload_conf()",
        "CREATE TABLE open AS SELECT 1::bigint AS k", "GRANT SELECT ON open TO guarded",
        "CREATE TABLE closed AS SELECT 1::bigint AS k")  # fmt: skip
    right, wrong = (
        Database(url_of(server).replace("postgres@", f"guarded:{password}@"))
        for password in ("open%20sesame", "canary")
    )
    assert columns_of(right.url, "open").names == ["k"]
    for database, table, said in ((wrong, "open", "password authentication failed"), (right, "closed", "denied")):
        with pytest.raises(InputError, match=said) as refused:
            columns_of(database.url, table)
        assert "guarded:***@" in str(refused.value)
        assert not any(secret in str(refused.value) for secret in ("canary", "sesame"))


def test_a_large_table_is_read_in_parts(server: PostgresServer) -> None:
    run(server, "CREATE TABLE large AS SELECT g AS k, repeat('x', 200) AS t FROM generate_series(1, 400000) g")
    table = SqlTable("t", pa.schema([("k", pa.int64()), ("t", pa.string())]), None, Database(url_of(server)), "large")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sizes = [rows.nbytes for rows, _ in table.blocks(["k", "t"])]
    assert sum(sizes) > 80_000_000 and max(sizes) < 12_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000  # KiB


def test_a_row_that_is_not_there_when_reading_begins_is_in_the_next_version(server: PostgresServer) -> None:
    run(server, "CREATE TABLE moving AS SELECT g AS k, repeat('x', 200) AS t FROM generate_series(1, 200000) g")
    table = SqlTable("t", pa.schema([("k", pa.int64()), ("t", pa.string())]), None, Database(url_of(server)), "moving")
    blocks = table.blocks(["k", "t"])
    rows = next(blocks)[0].num_rows
    run(server, "DELETE FROM moving WHERE k % 2 = 0", "INSERT INTO moving VALUES (0, '')")
    assert rows + sum(block.num_rows for block, _ in blocks) == 200_000
    assert sum(block.num_rows for block, _ in table.blocks(["k"])) == 100_001
