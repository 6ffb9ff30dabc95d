"""Whether a catalog has the newest tables, without what it takes to make them: Alembic costs a tenth of a start."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from backend.catalog.database import Catalog

MIGRATIONS = Path(__file__).resolve().parents[2] / "migrations"


def newest() -> str:
    """The newest revision; each file of one begins with its number."""
    return max(file.name for file in (MIGRATIONS / "versions").glob("*.py")).split("_")[0]


def is_newest(url: str) -> bool:
    """Whether a catalog is there, and at the newest revision. One that cannot be asked is not: migrating says why."""
    catalog = Catalog(url)
    try:
        with catalog.engine.connect() as connection:
            return connection.scalar(text("SELECT version_num FROM alembic_version")) == newest()
    except DBAPIError:
        return False
    finally:
        catalog.close()
