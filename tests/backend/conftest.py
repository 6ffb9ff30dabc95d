"""An app on an empty catalog of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.routing import BaseRoute

from backend.api import routers
from backend.app import create_app
from backend.settings import Settings
from streamjoin.sources import database
from tests.catalogs import empty, migrated
from tests.servers.postgres import PostgresServer


@pytest.fixture(autouse=True)
def logs_in_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that runs a part of the platform in this process leaves nothing of it to others."""
    monkeypatch.setattr(database, "_is_url_all", False)


@pytest.fixture(scope="session", autouse=True)
def routes_are_read_once() -> Iterator[None]:
    """All apps of a process have the same routes; FastAPI reads the functions behind them as the first request comes,
    which takes as long as several requests."""
    include_all = routers.include_all
    first: list[BaseRoute] = []
    last: list[BaseRoute] = []

    def include(app: FastAPI) -> None:
        own = list(app.router.routes)
        if not last:
            include_all(app)
            at = app.router.routes.index(own[0])
            first[:], last[:] = app.router.routes[:at], app.router.routes[at + len(own) :]
        app.router.routes[:] = [*first, *own, *last]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(routers, "include_all", include)
        yield


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Everybody may do everything; no Redis."""
    return Settings(data=tmp_path / "data", auth="off", redis_url="redis://127.0.0.1:1/0", allowed_paths=(tmp_path,))


@pytest.fixture(scope="session")
def empty_catalog() -> Path:
    """A migrated catalog, to be copied."""
    return empty()


@pytest.fixture
def app(settings: Settings) -> FastAPI:
    """An app with a migrated catalog."""
    migrated(settings)
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
