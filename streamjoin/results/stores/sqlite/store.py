"""Results in one SQLite file: the embedded default.

Write-ahead logging lets any number of processes read while one writes. Blocks are written without waiting for the
disk; the head's compare-and-set waits, and the log being one file in order, everything before it is durable then too.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from streamjoin.durable import make_folder
from streamjoin.results.stores.store import BlockKey, Blocks, Records, StoreDownError, StoreError, StoreMissingError

LAYOUT = 1
_BUSY_S = 30.0
_KEYS_A_QUERY = 150  # six values a key, and SQLite takes 999 in every build
_TABLES = """
CREATE TABLE heads (job TEXT PRIMARY KEY, head BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE records (job TEXT, name TEXT, content BLOB NOT NULL, PRIMARY KEY (job, name));
CREATE TABLE blocks (
  job TEXT, batch INTEGER, unit INTEGER, number INTEGER, generation INTEGER, bucket INTEGER, lowest INTEGER,
  content BLOB NOT NULL, PRIMARY KEY (job, batch, unit, number, generation, bucket, lowest)
);
"""
_KEY = "batch, unit, number, generation, bucket, lowest"


class SqliteStore:
    """A store in the file `path`, which is made with its folder if it is not there."""

    kind = "sqlite"
    block_bytes = 1 << 17

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._connection: sqlite3.Connection | None = None
        self._process = 0

    def prepare(self) -> None:
        """Make the tables."""
        try:
            make_folder(self.path.parent)
        except OSError as cause:
            raise StoreError(f"{self.path} cannot be made: {cause.strerror or cause}") from None
        with self._using(make=True) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")
            layout = connection.execute("PRAGMA user_version").fetchone()[0]
            if layout == 0:
                if connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
                    connection.execute("ROLLBACK")
                    raise StoreError(f"{self.path} is a database of something else; name another file")
                for statement in _TABLES.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {LAYOUT}")
            connection.execute("COMMIT")
            self._check_layout(connection)

    def put_blocks(self, job: str, blocks: Blocks) -> None:
        """See `Store`."""
        rows = [
            (job, key.batch, key.unit, key.number, key.generation, key.bucket, key.lowest, content)
            for key, content in blocks
        ]
        with self._using() as connection, _transaction(connection):
            connection.executemany("INSERT OR REPLACE INTO blocks VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def get_blocks(self, job: str, keys: Sequence[BlockKey]) -> Iterator[tuple[BlockKey, bytes]]:
        """See `Store`."""
        for start in range(0, len(keys), _KEYS_A_QUERY):
            some = keys[start : start + _KEYS_A_QUERY]
            marks = ", ".join(["(?, ?, ?, ?, ?, ?)"] * len(some))
            values = [value for key in some for value in _values(key)]
            with self._using() as connection:
                found = connection.execute(
                    f"SELECT {_KEY}, content FROM blocks WHERE job = ? AND ({_KEY}) IN (VALUES {marks})", [job, *values]
                ).fetchall()
            for *key, content in found:
                yield _key(key), content

    def delete_blocks(self, job: str, keys: Sequence[BlockKey]) -> None:
        """See `Store`."""
        with self._using() as connection, _transaction(connection):
            connection.executemany(
                "DELETE FROM blocks WHERE job = ? AND batch = ? AND unit = ? AND number = ? AND generation = ? "
                "AND bucket = ? AND lowest = ?",
                [(job, *_values(key)) for key in keys],
            )

    def list_blocks(self, job: str) -> Iterator[BlockKey]:
        """See `Store`."""
        with self._using() as connection:
            found = connection.execute(f"SELECT {_KEY} FROM blocks WHERE job = ?", [job]).fetchall()
        yield from (_key(key) for key in found)

    def put_records(self, job: str, records: Records) -> None:
        """See `Store`."""
        with self._using() as connection, _transaction(connection):
            connection.executemany(
                "INSERT OR REPLACE INTO records VALUES (?, ?, ?)", [(job, name, content) for name, content in records]
            )

    def get_records(self, job: str, first: str, last: str) -> Iterator[tuple[str, bytes]]:
        """See `Store`."""
        with self._using() as connection:
            found = connection.execute(
                "SELECT name, content FROM records WHERE job = ? AND name BETWEEN ? AND ? ORDER BY name",
                [job, first, last],
            ).fetchall()
        yield from found

    def delete_records(self, job: str, names: Sequence[str]) -> None:
        """See `Store`."""
        with self._using() as connection, _transaction(connection):
            connection.executemany("DELETE FROM records WHERE job = ? AND name = ?", [(job, name) for name in names])

    def head(self, job: str) -> bytes | None:
        """See `Store`."""
        with self._using() as connection:
            found = connection.execute("SELECT head FROM heads WHERE job = ?", [job]).fetchone()
        return None if found is None else bytes(found[0])

    def swap_head(self, job: str, expected: bytes | None, new: bytes) -> bool:
        """See `Store`."""
        with self._using() as connection:
            connection.execute("PRAGMA synchronous = FULL")
            try:
                with _transaction(connection):
                    if expected is None:
                        done = connection.execute("INSERT OR IGNORE INTO heads VALUES (?, ?)", [job, new])
                    else:
                        done = connection.execute(
                            "UPDATE heads SET head = ? WHERE job = ? AND head = ?", [new, job, expected]
                        )
            finally:
                connection.execute("PRAGMA synchronous = NORMAL")
            return done.rowcount == 1

    def jobs(self) -> list[str]:
        """See `Store`."""
        with self._using() as connection:
            return [job for (job,) in connection.execute("SELECT job FROM heads ORDER BY job").fetchall()]

    def drop(self, job: str) -> None:
        """See `Store`."""
        with self._using() as connection, _transaction(connection):
            for table in ("heads", "records", "blocks"):
                connection.execute(f"DELETE FROM {table} WHERE job = ?", [job])

    def close(self) -> None:
        """See `Store`."""
        if self._connection is not None and self._process == os.getpid():
            self._connection.close()
        self._connection = None

    @contextlib.contextmanager
    def _using(self, make: bool = False) -> Iterator[sqlite3.Connection]:
        """The connection, opened at its first use in this process; SQLite's errors become ours."""
        try:
            if self._connection is None or self._process != os.getpid():
                self._connection = self._open(make)
                self._process = os.getpid()
            yield self._connection
        except sqlite3.Error as cause:
            self._raise(cause)

    def _open(self, make: bool) -> sqlite3.Connection:
        mode = "rwc" if make else "rw"
        if not make and not self.path.exists():
            raise StoreMissingError(f"there is no result store {self.path}; `streamjoin run` makes it")
        connection = sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode={mode}", uri=True, timeout=_BUSY_S, isolation_level=None,
            check_same_thread=False,
        )  # fmt: skip
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA mmap_size = 1073741824")
        if not make:
            try:
                self._check_made(connection)
                self._check_layout(connection)
            except BaseException:
                connection.close()
                raise
        return connection

    def _check_made(self, connection: sqlite3.Connection) -> None:
        """Whoever makes the file writes tables and layout at once, but the file is there a moment before."""
        if not connection.execute("SELECT EXISTS (SELECT 1 FROM sqlite_master)").fetchone()[0]:
            raise StoreMissingError(f"there is nothing in the result store {self.path} yet; `streamjoin run` makes it")

    def _check_layout(self, connection: sqlite3.Connection) -> None:
        layout = connection.execute("PRAGMA user_version").fetchone()[0]
        if layout != LAYOUT:
            raise StoreError(
                f"{self.path} has layout {layout}, and this version reads layout {LAYOUT}; "
                "use the version that wrote it, or another file"
            )

    def _raise(self, cause: sqlite3.Error) -> NoReturn:
        name = getattr(cause, "sqlite_errorname", "")
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise StoreDownError(f"{self.path} is locked by another process for {_BUSY_S:.0f} s; look who holds it")
        if name.startswith("SQLITE_FULL"):
            raise StoreDownError(f"the disk of {self.path} is full; make room")
        raise StoreError(f"{self.path} cannot be used: {cause}")


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    # IMMEDIATE: a transaction that begins by reading could not wait for another writer.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _values(key: BlockKey) -> tuple[int, ...]:
    return key.batch, key.unit, key.number, key.generation, key.bucket, key.lowest


def _key(values: Sequence[int]) -> BlockKey:
    batch, unit, number, generation, bucket, lowest = values
    return BlockKey(bucket, lowest, generation, batch, unit, number)


open_store = SqliteStore
