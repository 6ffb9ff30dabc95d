"""Connecting to a keyspace, making its tables, and the driver's errors as ours."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from streamjoin.results.stores.cassandra.driver import (
    BROKEN,
    EXEC_PROFILE_DEFAULT,
    FAILURES,
    AuthenticationFailed,
    Cluster,
    ConsistencyLevel,
    DCAwareRoundRobinPolicy,
    ExecutionProfile,
    InvalidRequest,
    NoHostAvailable,
    PlainTextAuthProvider,
    ProtocolVersion,
    RequestValidationException,
    TokenAwarePolicy,
    Unauthorized,
    Unavailable,
    UnresolvableContactPoints,
    protocol,
    reason,
    tuple_factory,
)
from streamjoin.results.stores.cassandra.link import Link
from streamjoin.results.stores.cassandra.tables import LAYOUT, PLAIN, TABLES
from streamjoin.results.stores.store import StoreDownError, StoreError, StoreMissingError, StoreUncertainError


class Keyspace:
    """A keyspace of a cluster, connected at its first use in each process; see `CassandraStore` for the arguments."""

    def __init__(
        self,
        hosts: Sequence[str] | str,
        port: int,
        keyspace: str,
        username: str | None,
        password: str | None,
        replication: Mapping[str, int] | Sequence[tuple[str, int]] | int,
        datacenter: str | None,
        timeout_s: float,
    ) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,47}", keyspace):
            raise StoreError(
                f'"{keyspace[:60]}" cannot be a keyspace; name one with 1 to 48 small letters, digits and _, '
                "beginning with a letter"
            )
        self.hosts = [hosts] if isinstance(hosts, str) else list(hosts)
        self.port = port
        self.keyspace = keyspace
        self.username = username
        self.password = password
        self.replication = replication
        self.datacenter = datacenter
        self.timeout_s = timeout_s
        self._link: Link | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_link": None}

    def prepare(self) -> None:
        """Make the keyspace and the tables."""
        with self.using(make=True) as link:
            version = self._layout(link.session)
            if version is None:
                self._make(link)
                version = self._layout(link.session)
        self._check_layout(version)

    def close(self) -> None:
        """Hang up; it connects again when it is used."""
        link, self._link = self._link, None
        # Another process's link is left alone: its connections are in use there.
        if link is not None and link.process == os.getpid():
            link.cluster.shutdown()

    @property
    def name(self) -> str:
        """Where it is, for people."""
        return f"Cassandra at {', '.join(f'{host}:{self.port}' for host in self.hosts)}"

    @contextlib.contextmanager
    def using(self, *, make: bool = False, swapping: bool = False) -> Iterator[Link]:
        """The link, made at its first use in this process; the driver's errors become ours."""
        link = self._linked(make)
        try:
            yield link
        except FAILURES as cause:
            if isinstance(cause, BROKEN):
                # Connecting anew is faster than to wait until the driver tries again a node that it holds for dead,
                # or finds out that one which gives no answers is.
                self.close()
            raise self._error(cause, swapping) from cause

    def _linked(self, make: bool) -> Link:
        link = self._link
        if link is not None and link.process == os.getpid():
            return link
        self._link = None
        try:
            link = self._connect()
        except FAILURES as cause:
            raise self._error(cause) from cause
        try:
            if not make:
                self._check_layout(self._layout(link.session))
        except FAILURES as cause:
            link.cluster.shutdown()
            raise self._error(cause) from cause
        except StoreError:
            link.cluster.shutdown()
            raise
        self._link = link
        return link

    def _connect(self) -> Link:
        _quiet()
        profile = ExecutionProfile(
            load_balancing_policy=TokenAwarePolicy(DCAwareRoundRobinPolicy(self.datacenter or "")),
            consistency_level=ConsistencyLevel.LOCAL_QUORUM,
            serial_consistency_level=ConsistencyLevel.LOCAL_SERIAL,
            request_timeout=self.timeout_s,
            row_factory=tuple_factory,
        )
        login = self.username is not None
        cluster = Cluster(
            self.hosts,
            self.port,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            auth_provider=PlainTextAuthProvider(self.username, self.password or "") if login else None,
            # Fixed: finding the version out would take a connection for each that the server does not speak.
            protocol_version=ProtocolVersion.V4,
            connect_timeout=self.timeout_s,
            control_connection_timeout=self.timeout_s,
            monitor_reporting_enabled=False,
        )
        try:
            session = cluster.connect()
            session._default_timeout = self.timeout_s  # of preparing statements; there is no public way to it
            return Link(cluster, session, self.keyspace, os.getpid(), self.timeout_s)
        except BaseException:
            cluster.shutdown()
            raise

    def _layout(self, session: Any) -> int | None:
        try:
            found = session.execute(f"SELECT version FROM {self.keyspace}.layout WHERE part = 'results'").one()
        except InvalidRequest:  # no such keyspace, or no such table
            return None
        return None if found is None else found[0]

    def _check_layout(self, version: int | None) -> None:
        if version is None:
            raise StoreMissingError(
                f"there is no result store in keyspace {self.keyspace} of {self.name}; `streamjoin run` makes it"
            )
        if version != LAYOUT:
            raise StoreError(
                f"keyspace {self.keyspace} of {self.name} has layout {version}, and this version reads layout "
                f"{LAYOUT}; use the version that wrote it, or another keyspace"
            )

    def _make(self, link: Link) -> None:
        # Whoever may use the keyspace need not be allowed to make one.
        link.cluster.refresh_schema_metadata()
        if self.keyspace not in link.cluster.metadata.keyspaces:
            copies = self.replication
            options: dict[str, str | int]
            if isinstance(copies, int):
                options = {"class": "SimpleStrategy", "replication_factor": copies}
            else:
                options = {"class": "NetworkTopologyStrategy", **dict(copies)}
            link.session.execute(f"CREATE KEYSPACE IF NOT EXISTS {self.keyspace} WITH replication = {options}")
        for table, columns in TABLES.items():
            # The same id whoever makes it: two nodes that make a table at the same time would not agree otherwise.
            id = uuid.uuid5(uuid.NAMESPACE_URL, f"streamjoin/{self.keyspace}/{table}/{LAYOUT}")
            also = f" AND {PLAIN}" if table == "blocks" else ""
            link.session.execute(f"CREATE TABLE IF NOT EXISTS {self.keyspace}.{table} ({columns}) WITH id = {id}{also}")
        # Last: who finds it finds all tables.
        link.session.execute(
            f"INSERT INTO {self.keyspace}.layout (part, version) VALUES ('results', {LAYOUT}) IF NOT EXISTS"
        )

    def _error(self, cause: Exception, swapping: bool = False) -> StoreError:
        causes = [cause]
        if isinstance(cause, NoHostAvailable) and isinstance(cause.errors, Mapping):
            causes += [each for each in cause.errors.values() if isinstance(each, Exception)]
        for each in causes:
            if isinstance(each, AuthenticationFailed):
                if self.username is None:
                    return StoreError(f"{self.name} asks who we are; give username and password")
                return StoreError(f'{self.name} refuses user "{self.username}"; check username and password')
            if isinstance(each, Unauthorized):
                return StoreError(
                    f'{self.name} does not allow user "{self.username}" what is needed in keyspace '
                    f"{self.keyspace} ({reason(each)}); grant it"
                )
            if isinstance(each, (RequestValidationException, protocol.RequestValidationException)):
                return StoreError(
                    f"{self.name} refuses what is asked of keyspace {self.keyspace} ({reason(each)}); "
                    "check its tables, or name another keyspace"
                )
        if isinstance(cause, Unavailable):
            return StoreDownError(f"{self.name} has too few nodes that live for a quorum; start them")
        if isinstance(cause, (NoHostAvailable, UnresolvableContactPoints)):
            return StoreDownError(f"{self.name} cannot be reached; check host and port, and look whether it runs")
        if swapping:
            return StoreUncertainError(f"{self.name} did not say whether a commit was done ({reason(cause)})")
        return StoreDownError(f"{self.name} gave no good answer ({reason(cause)}); look at its log")


def _quiet() -> None:
    # The driver warns of each lost connection; who asks gets it as an error.
    logger = logging.getLogger("cassandra")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL)
