"""Bring a catalog to the newest version of its tables: `python -m backend.catalog.migrate [revision]`."""

from __future__ import annotations

import sys

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from backend.catalog.database import Catalog, Lock
from backend.catalog.version import MIGRATIONS
from backend.private import keep_private
from backend.settings import read_settings
from streamjoin.errors import InputError


def migrate(url: str, revision: str = "head") -> None:
    """Upgrade to a revision, creating the catalog where there is none; `base` or an older revision downgrades.

    Raises:
        InputError: the catalog has tables that only a newer version knows.
    """
    catalog = Catalog(url)
    try:
        # One transaction for all revisions, begun before the first look at the catalog: of several processes that
        # migrate at once, each but the first waits and then finds the newest tables. Where Alembic begins
        # transactions itself, SQLite has one for each revision, and another process could come in between.
        with catalog.engine.begin() as connection:
            if not catalog.is_sqlite:
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({Lock.MIGRATING:d})")
            config = Config()
            config.set_main_option("script_location", str(MIGRATIONS))
            config.attributes["connection"] = connection
            _check_known(catalog, connection, config)
            if revision == "base" or revision.startswith("-"):
                command.downgrade(config, revision)
            else:
                command.upgrade(config, revision)
    finally:
        catalog.close()


def _check_known(catalog: Catalog, connection: Connection, config: Config) -> None:
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    there = MigrationContext.configure(connection).get_current_revision()
    if there is not None and there not in known:
        raise InputError(
            f"the catalog {catalog.url.render_as_string(hide_password=True)} is of a newer version of StreamJoin: its "
            f"tables are at {there}, and this version knows them up to {max(known)}; start the newer version again, or "
            "restore a copy of the catalog from before. To go back with what is in it, run `python -m "
            "backend.catalog.migrate -1` of the newer version first"
        )


if __name__ == "__main__":
    keep_private()
    try:
        migrate(read_settings().catalog, sys.argv[1] if len(sys.argv) > 1 else "head")
    except InputError as wrong:
        sys.exit(f"streamjoin: {wrong}")
