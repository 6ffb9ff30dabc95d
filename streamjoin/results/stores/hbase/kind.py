"""hbase, as the registry has it."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from streamjoin.results.stores.kind import StoreKind
from streamjoin.settings.setting import Settings, setting
from streamjoin.settings.values import Port


def _host(hosts: list[str]) -> list[str]:
    if not hosts:
        raise ValueError('is missing; name the host of the store, such as ["127.0.0.1"]')
    if len(hosts) > 1:
        raise ValueError("is one host: that of the Thrift gateway")
    return hosts


class HbaseSettings(Settings):
    """The Thrift gateway of a cluster."""

    hosts: Annotated[list[str], AfterValidator(_host), setting('the host of the Thrift gateway, such as ["127.0.0.1"]')]
    port: Annotated[Port | None, setting("its port", unset="9090")] = None
    table: Annotated[str | None, setting("what the names of its tables begin with", unset="streamjoin")] = None


HBASE = StoreKind(
    "hbase",
    "an Apache HBase cluster, through its Thrift gateway; rows are in order of their keys",
    HbaseSettings,
    lambda settings, resolve: {"host": settings.hosts[0], "port": settings.port, "table": settings.table},
    hosts=lambda settings: tuple(settings.hosts),
)
