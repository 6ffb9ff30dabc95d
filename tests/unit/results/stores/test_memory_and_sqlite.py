"""The embedded stores keep the contract, and SQLite says what is wrong with its file."""

from __future__ import annotations

import contextlib
import pickle
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamjoin.results.stores.memory import MemoryStore
from streamjoin.results.stores.spec import StoreSpec
from streamjoin.results.stores.sqlite import SqliteStore
from streamjoin.results.stores.sqlite import store as sqlite
from streamjoin.results.stores.store import StoreDownError, StoreError, StoreMissingError

from .contract import StoreContract, key

HOLD_THE_LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""


class TestMemory(StoreContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()

    @pytest.fixture
    def another(self, store: MemoryStore) -> MemoryStore:
        return store  # what a second opener of the same name gets

    def test_a_name_is_one_store(self) -> None:
        assert StoreSpec("memory", (("name", "a"),)).open() is MemoryStore.named("a")
        assert MemoryStore.named("a") is not MemoryStore.named("b")


class TestSqlite(StoreContract):
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "folder" / "results #1?.db"

    @pytest.fixture
    def store(self, path: Path) -> Iterator[SqliteStore]:
        store = SqliteStore(path)
        store.prepare()
        yield store
        store.close()

    @pytest.fixture
    def another(self, store: SqliteStore) -> Iterator[SqliteStore]:
        another = StoreSpec("sqlite", (("path", str(store.path)),)).open()
        assert isinstance(another, SqliteStore)
        yield another
        another.close()

    def test_it_travels_to_another_process(self, path: Path, job: str) -> None:
        store = SqliteStore(path)
        copy = pickle.loads(pickle.dumps(store))
        copy.prepare()
        copy.put_blocks(job, [(key(), b"x")])
        copy.close()
        assert list(store.get_blocks(job, [key()])) == [(key(), b"x")]
        store.close()

    def test_a_lock_held_by_another_process_is_waited_for_and_named(
        self, store: SqliteStore, another: SqliteStore, job: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sqlite, "_BUSY_S", 0.1)
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLD_THE_LOCK, str(store.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert holder.stdout is not None and holder.stdout.readline() == b"locked\n"
        store.close()
        for act in (
            lambda: store.put_blocks(job, [(key(), b"x")]),
            lambda: store.swap_head(job, None, b"x"),
            store.prepare,
        ):
            with pytest.raises(StoreDownError, match="is locked by another process") as told:
                act()
            is_one_sentence_about(store.path, told.value)
        assert store.head(job) is None  # readers do not wait
        holder.communicate()
        assert store.swap_head(job, None, b"x")


def is_one_sentence_about(path: Path, error: StoreError) -> None:
    text = str(error)
    assert str(path) in text
    assert "\n" not in text and not text.endswith(".")


def both_ways(path: Path) -> Iterator[StoreError]:
    """The errors of preparing a store and of reading it."""
    for act in (SqliteStore.prepare, SqliteStore.jobs):
        store = SqliteStore(path)
        with pytest.raises(StoreError) as told:
            act(store)
        store.close()
        is_one_sentence_about(path, told.value)
        assert not isinstance(told.value, StoreDownError)
        yield told.value


def test_a_file_that_is_no_database_is_named_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but somebody's notes\n" * 100)
    for error in both_ways(path):
        assert "file is not a database" in str(error)
    assert path.read_text().startswith("not a database")


def test_a_database_of_something_else_is_named_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "else.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE mine (id INTEGER)")
    connection.close()
    preparing, _ = both_ways(path)
    assert "is a database of something else; name another file" in str(preparing)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == [("mine",)]
    connection.close()


def test_a_file_that_is_just_being_made_is_a_store_that_is_not_there_yet(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    reader = SqliteStore(path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as maker:
        maker.execute("PRAGMA journal_mode = WAL")
        with pytest.raises(StoreMissingError):
            reader.jobs()
        maker.execute("BEGIN IMMEDIATE")
        maker.execute("CREATE TABLE heads (job)")
        with pytest.raises(StoreMissingError):
            reader.jobs()
        maker.execute("ROLLBACK")
    SqliteStore(path).prepare()
    assert reader.jobs() == []


def test_a_newer_layout_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "newer.db"
    store = SqliteStore(path)
    store.prepare()
    assert store.swap_head("job", None, b"x")
    store.close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {sqlite.LAYOUT + 1}")
    connection.close()
    for error in both_ways(path):
        assert f"has layout {sqlite.LAYOUT + 1}, and this version reads layout {sqlite.LAYOUT}" in str(error)
        assert "use the version that wrote it, or another file" in str(error)


def test_a_missing_file_is_not_made_by_reading(tmp_path: Path) -> None:
    path = tmp_path / "missing.db"
    with pytest.raises(StoreError, match="there is no result store") as told:
        SqliteStore(path).head("job")
    is_one_sentence_about(path, told.value)
    assert not path.exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "results.db"
    with pytest.raises(StoreError, match="cannot be made") as told:
        SqliteStore(path).prepare()
    is_one_sentence_about(path, told.value)


def test_a_folder_in_place_of_the_file_is_named(tmp_path: Path) -> None:
    list(both_ways(tmp_path))


def test_an_unknown_kind_of_store_is_named() -> None:
    with pytest.raises(StoreError, match='there is no result store "paper"'):
        StoreSpec("paper", ()).open()
