"""Connections to the catalog."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event, func, select
from sqlalchemy.engine import make_url
from sqlalchemy.orm import Session, sessionmaker

BUSY_MS = 10_000


class Catalog:
    """One process's way to the catalog. Safe for threads; each transaction has a connection of its own."""

    def __init__(self, url: str) -> None:
        self.url = make_url(url)
        options: dict[str, Any] = {"pool_pre_ping": True}
        if self.is_sqlite:
            if self.url.database:
                Path(self.url.database).parent.mkdir(parents=True, exist_ok=True)
        else:
            options |= {"pool_size": 10, "max_overflow": 20, "pool_timeout": 5}
            options["connect_args"] = {"connect_timeout": 5}
        self.engine: Engine = create_engine(self.url, **options)
        if self.is_sqlite:
            event.listen(self.engine, "connect", _set_up_sqlite)
            event.listen(self.engine, "begin", _begin_immediate)
        self._sessions = sessionmaker(self.engine, expire_on_commit=False)

    @property
    def is_sqlite(self) -> bool:
        """Whether it is the embedded one."""
        return self.url.get_backend_name() == "sqlite"

    @contextmanager
    def begin(self) -> Iterator[Session]:
        """A transaction that may write; committed unless the block fails."""
        with self._sessions.begin() as session:
            yield session

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A transaction that only reads; on SQLite it waits for no writer."""
        with self._sessions() as session:
            session.connection(execution_options={"streamjoin_read": True})
            yield session

    def close(self) -> None:
        """Give the connections back."""
        self.engine.dispose()


class Lock(IntEnum):
    """What one transaction at a time does, by PostgreSQL's number for it; nobody else's on that server."""

    MIGRATING = 7310571482
    NAMING = 7310571483
    """Takes a name that queries use."""
    READING_UPLOADS = 7310571484
    """Removes an upload, or comes to read one."""
    STARTING = 7310571485
    """Takes more of what runs jobs."""
    ADDING = 7310571486
    """Adds something of which there may be only so many: a stream, a relation, a job or a saved query."""


def hold(session: Session, lock: Lock) -> None:
    """Nobody else holds this lock until this transaction, which may write, ends."""
    if session.get_bind().dialect.name == "postgresql":  # SQLite lets one transaction write at a time anyway
        session.execute(select(func.pg_advisory_xact_lock(lock)))


def _set_up_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions begin where SQLAlchemy says so, not at the first write
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _begin_immediate(connection: Any) -> None:
    # A transaction that reads first and writes later could fail with "database is locked" without waiting.
    read_only = connection.get_execution_options().get("streamjoin_read")
    connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")
