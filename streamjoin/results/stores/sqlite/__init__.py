"""Results in one SQLite file, for one machine."""

from streamjoin.results.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
