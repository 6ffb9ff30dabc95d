"""cassandra, as the registry has it."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from streamjoin.results.stores.kind import StoreKind
from streamjoin.settings.setting import Settings, setting
from streamjoin.settings.values import Port

CASSANDRA_BUCKETS = 8


def _hosts(hosts: list[str]) -> list[str]:
    if not hosts:
        raise ValueError('is missing; name the hosts of the store, such as ["127.0.0.1"]')
    return hosts


class CassandraSettings(Settings):
    """A cluster, and a keyspace in it."""

    hosts: Annotated[list[str], AfterValidator(_hosts), setting('the hosts of the store, such as ["127.0.0.1"]')]
    port: Annotated[Port | None, setting("its port", unset="9042")] = None
    keyspace: Annotated[str | None, setting("the keyspace of its tables", unset="streamjoin")] = None
    username: Annotated[str | None, setting("who logs in", unset="nobody")] = None
    password: Annotated[str | None, setting("the password of that user", unset="none")] = None


CASSANDRA = StoreKind(
    "cassandra",
    "an Apache Cassandra cluster; rows are spread by join key",
    CassandraSettings,
    lambda settings, resolve: {
        "hosts": ",".join(settings.hosts), "port": settings.port, "keyspace": settings.keyspace,
        "username": settings.username, "password": settings.password,
    },
    hosts=lambda settings: tuple(settings.hosts),
    buckets=CASSANDRA_BUCKETS,
)  # fmt: skip
