"""A migrated catalog of its own for each test, and jobs in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.catalog.database import Catalog
from backend.catalog.migrate import migrate
from backend.settings import Settings


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """An empty catalog as a file: migrating takes longer than copying."""
    path = tmp_path_factory.mktemp("catalog") / "catalog.db"
    migrate(f"sqlite:///{path}")
    return path.read_bytes()


@pytest.fixture
def settings(tmp_path: Path, template: bytes) -> Settings:
    """Of a platform in a temporary folder, whose leases are short."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "catalog.db").write_bytes(template)
    return Settings(data=data, auth="off", lease_s=4, reconcile_s=0.2, stop_grace_s=2, starts_max=4)


@pytest.fixture
def catalog(settings: Settings) -> Iterator[Catalog]:
    """That platform's."""
    catalog = Catalog(settings.catalog)
    yield catalog
    catalog.close()
