"""A migrated catalog of its own for each test, and jobs in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.catalog.database import Catalog
from backend.settings import Settings
from tests.catalogs import migrated


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Of a platform in a temporary folder, whose leases are short."""
    settings = Settings(data=tmp_path / "data", auth="off", lease_s=4, reconcile_s=0.2, stop_grace_s=2, starts_max=4)
    migrated(settings)
    return settings


@pytest.fixture
def catalog(settings: Settings) -> Iterator[Catalog]:
    """That platform's."""
    catalog = Catalog(settings.catalog)
    yield catalog
    catalog.close()
