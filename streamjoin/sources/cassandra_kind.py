"""A table of Apache Cassandra as a relation, as the registry has it."""

from __future__ import annotations

import re
from typing import Annotated

import pyarrow as pa
from pydantic import AfterValidator

from streamjoin.errors import InputError
from streamjoin.plan.schema import left_out
from streamjoin.settings.setting import Settings, setting
from streamjoin.settings.values import Port
from streamjoin.sources.asked import asked
from streamjoin.sources.cassandra_table import CassandraTable, Cluster, columns_of, may_be
from streamjoin.sources.kind import Columns, Resolve, SourceKind

_NAME = re.compile(r"[A-Za-z0-9_]{1,48}")
_PORT = 9042


def _hosts(hosts: list[str]) -> list[str]:
    if not hosts or not all(hosts):
        raise ValueError('names no host; write some nodes of the cluster, such as ["127.0.0.1"]')
    return hosts


class CassandraSettings(Settings):
    """One table."""

    hosts: Annotated[list[str], AfterValidator(_hosts), setting('some nodes of the cluster, such as ["127.0.0.1"]')]
    keyspace: Annotated[str, setting("the keyspace that the table is in")]
    table: Annotated[str, setting("a table or materialized view, as it is written there")]
    port: Annotated[Port | None, setting("its port", unset="9042")] = None
    username: Annotated[str | None, setting("who logs in", unset="nobody")] = None
    password: Annotated[str | None, setting("the password of that user; it is never shown", unset="none")] = None

    def cluster(self) -> Cluster:
        """Where it is."""
        return Cluster(tuple(self.hosts), self.port or _PORT, self.username, self.password)


def _check(settings: CassandraSettings, has_columns: bool) -> None:
    for field in ("keyspace", "table"):
        if not _NAME.fullmatch(getattr(settings, field)):
            raise InputError("is a name of up to 48 letters, digits and _", field=field)
    if settings.password is not None and settings.username is None:
        raise InputError("is missing beside a password", field="username")


def _look(settings: CassandraSettings, columns: pa.Schema | None, resolve: Resolve) -> pa.Schema:
    cluster = settings.cluster()
    found = asked(columns_of, cluster.hosts, cluster.port, cluster.username, cluster.password, settings.keyspace,
                  settings.table)  # fmt: skip
    if columns is None:
        return found
    others = left_out(found)
    for field in columns:
        if field.name not in found.names and field.name not in others:
            there = ", ".join(found.names[:20])
            raise InputError(f'{settings.table} has no column "{field.name}"; it has {there}', field="table")
        if field.name in others and not may_be(others[field.name], field.type):
            raise InputError(
                f"is {others[field.name]} in {settings.table}, which no relation can have", field=f"schema.{field.name}"
            )
    return columns


CASSANDRA = SourceKind(
    "cassandra",
    "a table of Apache Cassandra",
    CassandraSettings,
    Columns.CARRIED,
    _look,
    check=_check,
    hosts=lambda given: ",".join(given.hosts),
    table=lambda name, given, columns, refresh_us, resolve: CassandraTable(
        name, columns, refresh_us, given.cluster(), given.keyspace, given.table
    ),
    no_relation=None,
)
"""Of relations alone: whose rows end."""
