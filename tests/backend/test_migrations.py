"""Migrations go up, down and up again with rows in every table, on both databases, and agree with the models."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Boolean, Column, Connection, Integer, LargeBinary, String, Table, column, inspect, select, text
from sqlalchemy import table as lightweight

from backend.catalog import migrate as migrate_module
from backend.catalog.database import Catalog
from backend.catalog.jobspec import JobSpec, JobSpecColumn
from backend.catalog.migrate import MIGRATIONS, migrate
from backend.catalog.models import Base
from backend.catalog.version import is_newest, newest
from streamjoin.errors import InputError
from tests.servers.postgres import PostgresServer
from tests.servers.process import comes_true

ROOT = Path(__file__).resolve().parents[2]
AT_ONCE = 4
PROCESS_S_MAX = 60.0


def value_of(column: Column[Any]) -> Any:
    """Something that fits the column, and the primary key `1` or `"1"` wherever a key refers to one."""
    kind = column.type
    if isinstance(kind, Boolean):
        return True
    if isinstance(kind, Integer):  # BigInteger is one
        return 1 if column.primary_key or column.foreign_keys else 2**31 - 1
    if isinstance(kind, LargeBinary):
        return b"\x00\xff"
    if isinstance(kind, String):  # Text is one
        return "1" if column.primary_key or column.foreign_keys else "x" * min(kind.length or 50, 50)
    if isinstance(kind, JobSpecColumn):
        return JobSpec("ü", run={"a": [1, None]})
    return {"a": [1, "ü", None]}


def fill(url: str) -> None:
    """One row in each table, with a value in each column."""
    catalog = Catalog(url)
    with catalog.engine.begin() as connection:
        for table, columns in there(connection):
            # Without the models' own defaults, which would fill columns that are not there.
            plain = lightweight(table.name, *(column(known.name, known.type) for known in columns))
            connection.execute(plain.insert(), {known.name: value_of(known) for known in columns})
    catalog.close()


def rows(url: str) -> dict[str, list[dict[str, Any]]]:
    """Of every table of the models that is there."""
    catalog = Catalog(url)
    with catalog.engine.connect() as connection:
        found = {
            table.name: [dict(row._mapping) for row in connection.execute(select(*columns))]
            for table, columns in there(connection)
        }
    catalog.close()
    return found


def there(connection: Connection) -> list[tuple[Table, list[Column[Any]]]]:
    """The models' tables and columns that the catalog has; an earlier version has fewer."""
    found = inspect(connection)
    tables = [table for table in Base.metadata.sorted_tables if found.has_table(table.name)]
    names = {table.name: {column["name"] for column in found.get_columns(table.name)} for table in tables}
    return [(table, [column for column in table.columns if column.name in names[table.name]]) for table in tables]


def tables(url: str) -> set[str]:
    catalog = Catalog(url)
    with catalog.engine.connect() as connection:
        found = set(inspect(connection).get_table_names())
    catalog.close()
    return found - {"alembic_version"}


def version(url: str) -> str | None:
    catalog = Catalog(url)
    with catalog.engine.connect() as connection:
        found = MigrationContext.configure(connection).get_current_revision()
    catalog.close()
    return found


def revisions() -> list[str]:
    """All of them, the newest first."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]


ALL = {table.name for table in Base.metadata.sorted_tables}


def test_the_values_fill_every_kind_of_column() -> None:
    filled: list[Table] = Base.metadata.sorted_tables
    assert len(filled) >= 10
    assert all(value_of(column) is not None for table in filled for column in table.columns)


def test_models_and_migrations_agree(url: str) -> None:
    migrate(url)
    catalog = Catalog(url)
    with catalog.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
    catalog.close()


def test_a_catalog_goes_up_and_down_and_up_again_with_rows_in_every_table(url: str) -> None:
    migrate(url)
    assert tables(url) == ALL
    fill(url)
    before = rows(url)
    assert all(len(found) == 1 for found in before.values())

    migrate(url)
    assert rows(url) == before

    for _ in revisions():
        migrate(url, "-1")
    assert (tables(url), version(url)) == (set(), None)

    migrate(url)
    assert rows(url) == {name: [] for name in ALL}
    fill(url)
    assert rows(url) == before


def test_rows_of_every_earlier_version_stay_on_the_way_up_and_down(url: str) -> None:
    _, *earlier = revisions()
    assert earlier
    for steps, revision in enumerate(earlier, 1):
        migrate(url, revision)
        fill(url)
        before = rows(url)
        assert before and all(len(found) == 1 for found in before.values())
        migrate(url)
        after = rows(url)
        for name, (row,) in before.items():
            assert [found.items() >= row.items() for found in after[name]] == [True], name
        for _ in range(steps):
            migrate(url, "-1")
        assert (version(url), rows(url)) == (revision, before)
        migrate(url, "base")


def test_jobs_from_before_there_were_relations_have_none(url: str) -> None:
    migrate(url, "0001")
    fill(url)
    migrate(url)
    found = rows(url)
    assert [row["relations"] for row in found["jobs"] + found["job_revisions"]] == [{}, {}]
    assert found["relations"] == []


def test_a_catalog_is_at_the_newest_revision_or_has_to_be_migrated(url: str) -> None:
    assert newest() == revisions()[0]
    assert not is_newest(url)
    migrate(url, revisions()[1])
    assert not is_newest(url)
    migrate(url)
    assert is_newest(url)


def test_a_catalog_goes_to_its_base_in_one_step(url: str) -> None:
    migrate(url)
    fill(url)
    migrate(url, "base")
    assert tables(url) == set()


def test_deleting_a_job_takes_what_belongs_to_it(url: str) -> None:
    migrate(url)
    fill(url)
    catalog = Catalog(url)
    with catalog.engine.begin() as connection:
        connection.execute(Base.metadata.tables["jobs"].delete())
    catalog.close()
    left = rows(url)
    assert [name for name in ("job_revisions", "leases", "reports", "events", "jobs") if left[name]] == []
    assert left["streams"] and left["users"]


@pytest.mark.slow
def test_processes_that_migrate_at_once_do_not_fail(url: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "backend.catalog.migrate"]
    environment = os.environ | {"STREAMJOIN_CATALOG_URL": url, "STREAMJOIN_DATA": str(tmp_path)}
    running = [
        subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) for _ in range(AT_ONCE)
    ]
    ended = [(process.communicate(timeout=PROCESS_S_MAX)[1], process.returncode) for process in running]
    assert [status for _, status in ended] == [0] * AT_ONCE, ended
    assert tables(url) == ALL
    assert version(url) == revisions()[0]


def as_of_a_newer_version(url: str) -> None:
    migrate(url)
    catalog = Catalog(url)
    with catalog.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    catalog.close()


@pytest.mark.parametrize("revision", ["head", "-1", "base"])
def test_a_catalog_of_a_newer_version_is_left_alone(url: str, revision: str) -> None:
    as_of_a_newer_version(url)
    fill(url)
    before = rows(url)
    with pytest.raises(InputError, match="of a newer version of StreamJoin: its tables are at 9999"):
        migrate(url, revision)
    assert (version(url), rows(url)) == ("9999", before)


@pytest.mark.slow
@pytest.mark.parametrize("module", ["backend", pytest.param("backend.catalog.migrate", marks=pytest.mark.soak)])
def test_whoever_starts_on_a_catalog_of_a_newer_version_is_told_the_way_out(
    url: str, tmp_path: Path, module: str
) -> None:
    as_of_a_newer_version(url)
    environment = os.environ | {"STREAMJOIN_CATALOG_URL": url, "STREAMJOIN_DATA": str(tmp_path)}
    told = subprocess.run(
        [sys.executable, "-m", module], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PROCESS_S_MAX
    )
    assert told.returncode == 1
    line = told.stderr.strip().splitlines()[-1]
    assert line.startswith("streamjoin: the catalog ") and "start the newer version again" in line
    assert "Traceback" not in told.stderr


BROKEN = '''
"""Fails after it has changed something."""
import sqlalchemy as sa
from alembic import op

revision = "9999"
down_revision = "{head}"


def upgrade():
    op.create_table("half", sa.Column("id", sa.Integer(), primary_key=True))
    with op.batch_alter_table("jobs") as batch_op:
        batch_op.add_column(sa.Column("half", sa.Integer(), nullable=True))
    {then}


def downgrade():
    op.drop_table("half")
'''


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Adds one more revision to a copy of the migrations; called with its last statement."""

    def add(then: str) -> None:
        folder = tmp_path / "migrations"
        (folder / "versions").mkdir(parents=True)
        for name in ("env.py", "script.py.mako"):
            (folder / name).write_text((MIGRATIONS / name).read_text())
        for file in (MIGRATIONS / "versions").glob("*.py"):
            (folder / "versions" / file.name).write_text(file.read_text())
        (folder / "versions" / "9999_half.py").write_text(BROKEN.format(head=revisions()[0], then=then))
        monkeypatch.setattr(migrate_module, "MIGRATIONS", folder)

    return add


def test_a_migration_that_fails_half_way_leaves_the_catalog_as_it_was(url: str, broken: Any) -> None:
    migrate(url)
    fill(url)
    before = rows(url)
    head = version(url)
    broken('raise RuntimeError("half way")')
    with pytest.raises(RuntimeError, match="half way"):
        migrate(url)
    assert version(url) == head
    assert tables(url) == ALL
    assert rows(url) == before

    catalog = Catalog(url)
    with catalog.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
    catalog.close()


def test_all_revisions_are_one_transaction_so_that_no_other_process_comes_between_two(url: str, broken: Any) -> None:
    broken('raise RuntimeError("half way")')
    with pytest.raises(RuntimeError, match="half way"):
        migrate(url)
    assert tables(url) == set()


@pytest.mark.slow
def test_a_migration_that_is_killed_half_way_leaves_the_catalog_as_it_was(
    url: str, broken: Any, tmp_path: Path
) -> None:
    migrate(url)
    fill(url)
    before = rows(url)
    mark = tmp_path / "half-way"
    broken(f'__import__("pathlib").Path({str(mark)!r}).touch(); __import__("time").sleep(60)')
    program = textwrap.dedent(f"""
        from pathlib import Path
        from backend.catalog import migrate
        migrate.MIGRATIONS = Path({str(migrate_module.MIGRATIONS)!r})
        migrate.migrate({url!r})
    """)
    process = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT)
    assert comes_true(mark.exists, PROCESS_S_MAX)
    process.kill()
    process.wait()
    assert tables(url) == ALL
    assert rows(url) == before


@pytest.mark.services
@pytest.mark.slow
def test_a_catalog_on_postgresql_survives_a_crash_of_the_server(postgres: PostgresServer) -> None:
    url = postgres.create_database(f"catalog_{os.urandom(6).hex()}")
    migrate(url)
    fill(url)
    before = rows(url)
    catalog = Catalog(url)
    with catalog.read() as session:
        session.connection()
    postgres.restart()
    with catalog.read() as session:  # a pooled connection that died is replaced, not handed out
        jobs = session.execute(select(Base.metadata.tables["jobs"]))
        assert [dict(row._mapping) for row in jobs] == before["jobs"]
    catalog.close()
