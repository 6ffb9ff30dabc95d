"""Which store a job's results are in, and how it is opened: the one place that knows all systems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamjoin.results.stores.store import Store, StoreError


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """How to open a store, as plain data that travels to tasks.

    Args:
        kind: memory, redis, sqlite, cassandra or hbase.
        settings: the arguments of its class, by name.
    """

    kind: str
    settings: tuple[tuple[str, Any], ...]

    def open(self) -> Store:
        """The store; nothing is connected before it is used."""
        settings = dict(self.settings)
        match self.kind:
            case "memory":
                from streamjoin.results.stores.memory import MemoryStore

                return MemoryStore.named(**settings)
            case "redis":
                from streamjoin.results.stores.redis import RedisStore

                return RedisStore(**settings)
            case "sqlite":
                from streamjoin.results.stores.sqlite import SqliteStore

                return SqliteStore(**settings)
            case "cassandra":
                from streamjoin.results.stores.cassandra.store import CassandraStore

                return CassandraStore(**settings)
            case "hbase":
                from streamjoin.results.stores.hbase.store import HbaseStore

                return HbaseStore(**settings)
        raise StoreError(f'there is no result store "{self.kind}"; there are memory, sqlite, cassandra and hbase')
