"""Bring a catalog to the newest version of its tables: `python -m backend.catalog.migrate [revision]`."""

from __future__ import annotations

import sys

from alembic import command
from alembic.config import Config

from backend.catalog.database import Catalog
from backend.catalog.version import MIGRATIONS
from backend.private import keep_private
from backend.settings import read_settings


def migrate(url: str, revision: str = "head") -> None:
    """Upgrade to a revision, creating the catalog where there is none; `base` or an older revision downgrades."""
    catalog = Catalog(url)
    try:
        # One transaction for all revisions, begun before the first look at the catalog: of several processes that
        # migrate at once, each but the first waits and then finds the newest tables. Where Alembic begins
        # transactions itself, SQLite has one for each revision, and another process could come in between.
        with catalog.engine.begin() as connection:
            if not catalog.is_sqlite:
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7310571482)")
            config = Config()
            config.set_main_option("script_location", str(MIGRATIONS))
            config.attributes["connection"] = connection
            if revision == "base" or revision.startswith("-"):
                command.downgrade(config, revision)
            else:
                command.upgrade(config, revision)
    finally:
        catalog.close()


if __name__ == "__main__":
    keep_private()
    migrate(read_settings().catalog, sys.argv[1] if len(sys.argv) > 1 else "head")
