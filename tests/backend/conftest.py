"""An app on an empty catalog of its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.app import create_app
from backend.catalog.migrate import migrate
from backend.settings import Settings
from streamjoin.sources import database
from tests.servers.postgres import PostgresServer


@pytest.fixture(autouse=True)
def logs_in_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that runs a part of the platform in this process leaves nothing of it to others."""
    monkeypatch.setattr(database, "_is_url_all", False)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Everybody may do everything; no Redis."""
    return Settings(data=tmp_path / "data", auth="off", redis_url="redis://127.0.0.1:1/0", allowed_paths=(tmp_path,))


@pytest.fixture(scope="session")
def empty_catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated catalog, to be copied: migrating takes longer than most tests."""
    path = tmp_path_factory.mktemp("catalog") / "catalog.db"
    migrate(f"sqlite:///{path}")
    return path


@pytest.fixture
def app(settings: Settings, empty_catalog: Path) -> FastAPI:
    """An app with a migrated catalog."""
    settings.data.mkdir(parents=True)
    shutil.copy(empty_catalog, settings.data / "catalog.db")
    return create_app(settings)


@pytest.fixture
def api(app: FastAPI) -> Iterator[TestClient]:
    """A client of the running app."""
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server; each test has a database of its own."""
    with PostgresServer() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.services)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of a catalog without tables."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'catalog.db'}"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.create_database(f"catalog_{os.urandom(6).hex()}")
