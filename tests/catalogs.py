"""Catalogs with all their tables and nothing in them, as fast as a copy: migrating one takes longer than most tests."""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from pathlib import Path

from backend.catalog.migrate import migrate
from backend.settings import Settings


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Of this process; it is removed as the process ends."""
    folder = tempfile.TemporaryDirectory(prefix="streamjoin-catalog-", ignore_cleanup_errors=True)
    migrate(f"sqlite:///{folder.name}/catalog.db")
    return folder


def empty() -> Path:
    """A migrated catalog, to be copied."""
    return Path(_folder().name) / "catalog.db"


def migrated(settings: Settings) -> None:
    """What `migrate` makes of a catalog in a data folder where there is none."""
    settings.data.mkdir(parents=True, exist_ok=True)
    shutil.copy(empty(), settings.data / "catalog.db")
