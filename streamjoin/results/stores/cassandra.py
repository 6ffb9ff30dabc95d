"""Results in Apache Cassandra, 4.0 or later.

Blocks are spread by job, bucket and *chapter* (64 batches), records by job and *shelf* (the beginning of the name), so
that no partition grows without end; two small tables list the chapters and shelves there are. The head is changed and
read by lightweight transactions only. Everything else may be written again, and of two writes the later one counts: the
clocks of the clients must agree (NTP) to well within the time between a `drop` and the job's next start.

A node that syncs its commit log periodically, which is the default, may forget the last answered writes when it
crashes. Three copies, or `commitlog_sync: group`, make what was answered durable.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import time
import uuid
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamjoin.results.stores.store import (
    BlockKey,
    Blocks,
    Records,
    StoreDownError,
    StoreError,
    StoreMissingError,
    StoreUncertainError,
)

try:
    from cassandra import (
        AuthenticationFailed,
        ConsistencyLevel,
        DriverException,
        InvalidRequest,
        OperationTimedOut,
        ProtocolVersion,
        RequestValidationException,
        Unauthorized,
        Unavailable,
        UnresolvableContactPoints,
        protocol,
    )
    from cassandra.auth import PlainTextAuthProvider
    from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
    from cassandra.connection import ConnectionBusy, ConnectionException
    from cassandra.policies import DCAwareRoundRobinPolicy, FallthroughRetryPolicy, RetryPolicy, TokenAwarePolicy
    from cassandra.pool import NoConnectionsAvailable
    from cassandra.query import tuple_factory
except ImportError:
    raise StoreError("the driver for Cassandra is not installed; pip install 'streamjoin[cassandra]'") from None

LAYOUT = 1
LARGEST_BYTES = 8 << 20
"""Of a block or record. Cassandra refuses writes of half a commit log segment, 16 MiB unless configured."""

_CHAPTER_BATCHES = 64
_LANES = 16
_SHELF_CUTS = {"s": 20, "b": 14}  # a hundred epochs, a hundred batches
_SHELF_CUT = 16
_SETTLED_US = 600_000_000
"""An entry of a list that nobody has renewed for so long belongs to no write that is still under way."""
_AT_ONCE = 32
_BLOCKS_AT_ONCE = 128
_BLOCKS_A_REQUEST = 16
_BYTES_AT_ONCE = 1 << 20
_BUSY_PAUSE_S = 0.005
_SHELVES_AT_ONCE = 8
_RECORDS_A_PAGE = 32

_TABLES = {
    "heads": "job text PRIMARY KEY, head blob",
    "chapters": "job text, lane int, bucket bigint, chapter bigint, there boolean, "
    "PRIMARY KEY ((job, lane), bucket, chapter)",
    "blocks": "job text, bucket bigint, chapter bigint, batch_id bigint, generation bigint, unit bigint, "
    "number bigint, lowest bigint, content blob, "
    "PRIMARY KEY ((job, bucket, chapter), batch_id, generation, unit, number, lowest)",
    "shelves": "job text, shelf text, there boolean, PRIMARY KEY (job, shelf)",
    "records": "job text, shelf text, name text, content blob, PRIMARY KEY ((job, shelf), name)",
    "layout": "part text PRIMARY KEY, version int",
}
_PLAIN = "compression = {'enabled': false}"
"""Of a table whose content is compressed already."""
_STATEMENTS = {
    "put_chapter": "INSERT INTO chapters (job, lane, bucket, chapter, there) VALUES (?, ?, ?, ?, true)",
    "list_chapters": "SELECT bucket, chapter, writetime(there) FROM chapters WHERE job = ? AND lane = ?",
    "forget_chapter": "DELETE FROM chapters USING TIMESTAMP ? WHERE job = ? AND lane = ? AND bucket = ? "
    "AND chapter = ?",
    "drop_chapters": "DELETE FROM chapters WHERE job = ? AND lane = ?",
    "put_block": "INSERT INTO blocks (job, bucket, chapter, batch_id, generation, unit, number, lowest, content) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    "get_blocks": "SELECT bucket, lowest, generation, batch_id, unit, number, content FROM blocks "
    "WHERE job = ? AND bucket = ? AND chapter = ? AND (batch_id, generation, unit, number, lowest) IN ?",
    "delete_block": "DELETE FROM blocks WHERE job = ? AND bucket = ? AND chapter = ? AND batch_id = ? "
    "AND generation = ? AND unit = ? AND number = ? AND lowest = ?",
    "list_blocks": "SELECT bucket, lowest, generation, batch_id, unit, number FROM blocks "
    "WHERE job = ? AND bucket = ? AND chapter = ?",
    "drop_blocks": "DELETE FROM blocks WHERE job = ? AND bucket = ? AND chapter = ?",
    "put_shelf": "INSERT INTO shelves (job, shelf, there) VALUES (?, ?, true)",
    "list_shelves": "SELECT shelf, writetime(there) FROM shelves WHERE job = ? AND shelf >= ? AND shelf <= ?",
    "all_shelves": "SELECT shelf FROM shelves WHERE job = ?",
    "forget_shelf": "DELETE FROM shelves USING TIMESTAMP ? WHERE job = ? AND shelf = ?",
    "drop_shelves": "DELETE FROM shelves WHERE job = ?",
    "put_record": "INSERT INTO records (job, shelf, name, content) VALUES (?, ?, ?, ?)",
    "get_records": "SELECT name, content FROM records WHERE job = ? AND shelf = ? AND name >= ? AND name <= ?",
    "delete_record": "DELETE FROM records WHERE job = ? AND shelf = ? AND name = ?",
    "drop_records": "DELETE FROM records WHERE job = ? AND shelf = ?",
    "head": "SELECT head FROM heads WHERE job = ?",
    "first_head": "INSERT INTO heads (job, head) VALUES (?, ?) IF NOT EXISTS",
    "swap_head": "UPDATE heads SET head = ? WHERE job = ? IF head = ?",
    "drop_head": "DELETE FROM heads WHERE job = ? IF EXISTS",
    "jobs": "SELECT job FROM heads",
}
_TRANSACTIONS = ("first_head", "swap_head", "drop_head")
_FAILURES = (DriverException, NoHostAvailable, ConnectionException, ConnectionBusy, NoConnectionsAvailable,
             protocol.ErrorMessage)  # fmt: skip
_BROKEN = (OperationTimedOut, NoHostAvailable, ConnectionException, ConnectionBusy, NoConnectionsAvailable)


_Sent = tuple[tuple[Any, ...], Any]
"""The values of a statement, and the future of what it gives."""


@dataclass(frozen=True)
class _Link:
    """A connected session, and the statements prepared in it."""

    cluster: Any
    session: Any
    keyspace: str
    process: int
    patience_s: float
    prepared: dict[str, Any] = field(default_factory=dict)

    def statement(self, name: str) -> Any:
        if name not in self.prepared:
            text = re.sub(r"(FROM|INTO|UPDATE) (\w+)", rf"\1 {self.keyspace}.\2", _STATEMENTS[name], count=1)
            made = self.session.prepare(text)
            made.consistency_level = ConsistencyLevel.LOCAL_QUORUM
            made.serial_consistency_level = ConsistencyLevel.LOCAL_SERIAL
            if name in _TRANSACTIONS:
                made.is_idempotent = False
                made.retry_policy = FallthroughRetryPolicy()
            else:
                made.is_idempotent = True
                made.retry_policy = RetryPolicy()
            if name == "head":
                # Sees, and completes, a swap that is under way.
                made.consistency_level = ConsistencyLevel.LOCAL_SERIAL
            if name == "get_records":
                made.fetch_size = _RECORDS_A_PAGE
            self.prepared[name] = made
        return self.prepared[name]

    def one(self, name: str, *values: Any) -> Any:
        """The result set of a statement."""
        return self.session.execute(self.statement(name), values)

    def result(self, future: Any, name: str, values: tuple[Any, ...]) -> Any:
        """What a statement gave that was sent with these values; one that the driver would not queue is sent again."""
        try:
            return future.result()
        except NoHostAvailable as cause:
            if not _is_busy(cause):
                raise
            return self.many(name, [values])[0]

    def many(self, name: str, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The result set of the statement with each row of values, in their order; the first error is raised."""
        statement = self.statement(name)
        results: list[Any] = [None] * len(rows)
        waiting = deque(range(len(rows)))
        sent: deque[tuple[int, Any]] = deque()
        size = 0
        patience_ends_s = time.monotonic() + self.patience_s
        while waiting or sent:
            while waiting and len(sent) < _AT_ONCE and (size < _BYTES_AT_ONCE or not sent):
                number = waiting.popleft()
                size += _size(rows[number])
                sent.append((number, self.session.execute_async(statement, rows[number])))
            number, future = sent.popleft()
            size -= _size(rows[number])
            try:
                results[number] = future.result()
            except NoHostAvailable as cause:
                # The driver refuses to queue more while the socket's buffer is full; nothing was sent.
                if not _is_busy(cause) or time.monotonic() > patience_ends_s:
                    raise
                waiting.appendleft(number)
                time.sleep(_BUSY_PAUSE_S)
            else:
                patience_ends_s = time.monotonic() + self.patience_s
        return results


class CassandraStore:
    """A store in a keyspace of a Cassandra cluster.

    Args:
        hosts: some of the nodes; the driver finds the others.
        replication: copies in a keyspace that this store makes: a number (one data centre), or a number for each data
            centre by name. An existing keyspace stays as it is.
        datacenter: the one to work with; that of the first host that answers if it is not given.
        timeout_s: for one statement, and for connecting to one host.
    """

    kind = "cassandra"
    block_bytes = 1 << 16

    def __init__(
        self,
        hosts: Sequence[str] | str,
        port: int = 9042,
        keyspace: str = "streamjoin",
        username: str | None = None,
        password: str | None = None,
        replication: Mapping[str, int] | Sequence[tuple[str, int]] | int = 1,
        datacenter: str | None = None,
        timeout_s: float = 10.0,
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
        self._link: _Link | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_link": None}

    def prepare(self) -> None:
        """Make the keyspace and the tables."""
        with self._using(make=True) as link:
            version = self._layout(link.session)
            if version is None:
                self._make(link)
                version = self._layout(link.session)
        self._check_layout(version)

    def put_blocks(self, job: str, blocks: Blocks) -> None:
        """See `Store`."""
        for key, content in blocks:
            self._check_size(f"block {key} of job {job}", content)
        chapters = sorted({(key.bucket, _chapter(key)) for key, _ in blocks})
        with self._using() as link:
            # Renewed with every write, for that keeps the entries from being forgotten meanwhile.
            link.many("put_chapter", [(job, bucket % _LANES, bucket, chapter) for bucket, chapter in chapters])
            link.many("put_block", [(*_place(job, key), content) for key, content in blocks])

    def get_blocks(self, job: str, keys: Sequence[BlockKey]) -> Iterator[tuple[BlockKey, bytes]]:
        """See `Store`. The first requests leave at the call, so that what came before can be decoded meanwhile."""
        groups = [keys[start : start + _BLOCKS_AT_ONCE] for start in range(0, len(keys), _BLOCKS_AT_ONCE)]
        sent: list[_Sent] = []
        with contextlib.suppress(StoreError):  # whoever iterates tries once more, and is told
            sent = self._send_requests(job, groups[0]) if groups else []
        return self._blocks(job, groups, sent)

    def _blocks(
        self, job: str, groups: Sequence[Sequence[BlockKey]], sent: Sequence[_Sent]
    ) -> Iterator[tuple[BlockKey, bytes]]:
        for number, group in enumerate(groups):
            if not sent:
                sent = self._send_requests(job, group)
            found: dict[BlockKey, bytes] = {}
            for values, future in sent:
                with self._using() as link:
                    rows = link.result(future, "get_blocks", values)
                found.update((BlockKey(*place), content) for *place, content in rows)
            coming = groups[number + 1 : number + 2]
            sent = self._send_requests(job, coming[0]) if coming else []
            yield from ((key, found[key]) for key in dict.fromkeys(group) if key in found)

    def _send_requests(self, job: str, keys: Sequence[BlockKey]) -> list[_Sent]:
        """Ask for a few blocks at a time, each time of one partition: a request for each block costs more."""
        partitions: dict[tuple[int, int], list[BlockKey]] = {}
        for key in keys:
            partitions.setdefault((key.bucket, _chapter(key)), []).append(key)
        requests = [
            (job, *partition, [_place(job, key)[3:] for key in among[first : first + _BLOCKS_A_REQUEST]])
            for partition, among in partitions.items()
            for first in range(0, len(among), _BLOCKS_A_REQUEST)
        ]
        with self._using() as link:
            statement = link.statement("get_blocks")
            return [(values, link.session.execute_async(statement, values)) for values in requests]

    def delete_blocks(self, job: str, keys: Sequence[BlockKey]) -> None:
        """See `Store`."""
        with self._using() as link:
            link.many("delete_block", [_place(job, key) for key in keys])

    def list_blocks(self, job: str) -> Iterator[BlockKey]:
        """See `Store`. Chapters long empty are taken off the list on the way."""
        old = _now_us() - _SETTLED_US
        for lane in range(_LANES):
            chapters = self._rows("list_chapters", job, lane)
            full = set()
            places = [(job, bucket, chapter) for bucket, chapter, _ in chapters]
            for number, rows in self._pages("list_blocks", places, _AT_ONCE):
                if rows:
                    full.add(number)
                for row in rows:
                    yield BlockKey(*row)
            self._forget(
                "forget_chapter",
                [
                    (written, job, lane, bucket, chapter)
                    for number, (bucket, chapter, written) in enumerate(chapters)
                    if number not in full and written < old
                ],
            )

    def put_records(self, job: str, records: Records) -> None:
        """See `Store`."""
        for name, content in records:
            self._check_size(f"record {name} of job {job}", content)
        shelves = sorted({shelf_of(name) for name, _ in records})
        with self._using() as link:
            link.many("put_shelf", [(job, shelf) for shelf in shelves])
            link.many("put_record", [(job, shelf_of(name), name, content) for name, content in records])

    def get_records(self, job: str, first: str, last: str) -> Iterator[tuple[str, bytes]]:
        """See `Store`. Shelves long empty are taken off the list on the way."""
        lowest, highest = shelf_of(first), shelf_of(last)
        old = _now_us() - _SETTLED_US
        shelves = [(lowest, old)] if lowest == highest else self._rows("list_shelves", job, lowest, highest)
        full = {number for number, (shelf, _) in enumerate(shelves) if shelf in (lowest, highest)}  # not read to an end
        places = [(job, shelf, first, last) for shelf, _ in shelves]
        for number, rows in self._pages("get_records", places, _SHELVES_AT_ONCE):
            if rows:
                full.add(number)
            yield from rows
        self._forget(
            "forget_shelf",
            [
                (written, job, shelf)
                for number, (shelf, written) in enumerate(shelves)
                if number not in full and written < old
            ],
        )

    def delete_records(self, job: str, names: Sequence[str]) -> None:
        """See `Store`."""
        with self._using() as link:
            link.many("delete_record", [(job, shelf_of(name), name) for name in names])

    def head(self, job: str) -> bytes | None:
        """See `Store`."""
        with self._using() as link:
            found = link.one("head", job).one()
        return None if found is None else found[0]

    def swap_head(self, job: str, expected: bytes | None, new: bytes) -> bool:
        """See `Store`."""
        self._check_size(f"the head of job {job}", new)
        name, values = ("first_head", (job, new)) if expected is None else ("swap_head", (new, job, expected))
        with self._using() as link:
            link.statement(name)  # what fails so far has changed nothing
        with self._using(swapping=True) as link:
            return bool(link.one(name, *values).was_applied)

    def jobs(self) -> list[str]:
        """See `Store`."""
        return sorted(job for (job,) in self._rows("jobs"))

    def drop(self, job: str) -> None:
        """See `Store`."""
        with self._using() as link:
            link.one("drop_head", job)
        # The lists go last, so that a drop which failed half-way can be repeated.
        for lane in range(_LANES):
            chapters = self._rows("list_chapters", job, lane)
            with self._using() as link:
                link.many("drop_blocks", [(job, bucket, chapter) for bucket, chapter, _ in chapters])
                link.one("drop_chapters", job, lane)
        shelves = self._rows("all_shelves", job)
        with self._using() as link:
            link.many("drop_records", [(job, shelf) for (shelf,) in shelves])
            link.one("drop_shelves", job)

    def close(self) -> None:
        """See `Store`."""
        link, self._link = self._link, None
        # Another process's link is left alone: its connections are in use there.
        if link is not None and link.process == os.getpid():
            link.cluster.shutdown()

    def _rows(self, name: str, *values: Any) -> list[Any]:
        return [row for _, rows in self._pages(name, [values], 1) for row in rows]

    def _pages(self, name: str, places: Sequence[tuple[Any, ...]], at_once: int) -> Iterator[tuple[int, list[Any]]]:
        """Pages of the results of a statement with each row of values, in their order, with the row's number."""
        for start in range(0, len(places), at_once):
            with self._using() as link:
                results = link.many(name, places[start : start + at_once])
            for number, result in enumerate(results, start):
                yield number, result.current_rows
                while result.has_more_pages:
                    with self._using():
                        result.fetch_next_page()
                    yield number, result.current_rows

    def _forget(self, name: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Take entries off a list, up to the time they were written: one that was renewed since stays.

        Whether it succeeds is of no matter; a reader may not be allowed to.
        """
        if rows:
            with contextlib.suppress(StoreError), self._using() as link:
                link.many(name, rows)

    def _check_size(self, what: str, content: bytes) -> None:
        if len(content) > LARGEST_BYTES:
            raise StoreError(
                f"{what} has {len(content):,} bytes, and {self._name()} takes {LARGEST_BYTES:,} at most; "
                "make blocks smaller or commit more often"
            )

    def _name(self) -> str:
        return f"Cassandra at {', '.join(f'{host}:{self.port}' for host in self.hosts)}"

    @contextlib.contextmanager
    def _using(self, *, make: bool = False, swapping: bool = False) -> Iterator[_Link]:
        """The link, made at its first use in this process; the driver's errors become ours."""
        link = self._linked(make)
        try:
            yield link
        except _FAILURES as cause:
            if isinstance(cause, _BROKEN):
                # Connecting anew is faster than to wait until the driver tries again a node that it holds for dead,
                # or finds out that one which gives no answers is.
                self.close()
            raise self._error(cause, swapping) from cause

    def _linked(self, make: bool) -> _Link:
        link = self._link
        if link is not None and link.process == os.getpid():
            return link
        self._link = None
        try:
            link = self._connect()
        except _FAILURES as cause:
            raise self._error(cause) from cause
        try:
            if not make:
                self._check_layout(self._layout(link.session))
        except _FAILURES as cause:
            link.cluster.shutdown()
            raise self._error(cause) from cause
        except StoreError:
            link.cluster.shutdown()
            raise
        self._link = link
        return link

    def _connect(self) -> _Link:
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
            return _Link(cluster, session, self.keyspace, os.getpid(), self.timeout_s)
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
                f"there is no result store in keyspace {self.keyspace} of {self._name()}; `streamjoin run` makes it"
            )
        if version != LAYOUT:
            raise StoreError(
                f"keyspace {self.keyspace} of {self._name()} has layout {version}, and this version reads layout "
                f"{LAYOUT}; use the version that wrote it, or another keyspace"
            )

    def _make(self, link: _Link) -> None:
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
        for table, columns in _TABLES.items():
            # The same id whoever makes it: two nodes that make a table at the same time would not agree otherwise.
            id = uuid.uuid5(uuid.NAMESPACE_URL, f"streamjoin/{self.keyspace}/{table}/{LAYOUT}")
            also = f" AND {_PLAIN}" if table == "blocks" else ""
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
                    return StoreError(f"{self._name()} asks who we are; give username and password")
                return StoreError(f'{self._name()} refuses user "{self.username}"; check username and password')
            if isinstance(each, Unauthorized):
                return StoreError(
                    f'{self._name()} does not allow user "{self.username}" what is needed in keyspace '
                    f"{self.keyspace} ({_reason(each)}); grant it"
                )
            if isinstance(each, (RequestValidationException, protocol.RequestValidationException)):
                return StoreError(
                    f"{self._name()} refuses what is asked of keyspace {self.keyspace} ({_reason(each)}); "
                    "check its tables, or name another keyspace"
                )
        if isinstance(cause, Unavailable):
            return StoreDownError(f"{self._name()} has too few nodes that live for a quorum; start them")
        if isinstance(cause, (NoHostAvailable, UnresolvableContactPoints)):
            return StoreDownError(f"{self._name()} cannot be reached; check host and port, and look whether it runs")
        if swapping:
            return StoreUncertainError(f"{self._name()} did not say whether a commit was done ({_reason(cause)})")
        return StoreDownError(f"{self._name()} gave no good answer ({_reason(cause)}); look at its log")


def shelf_of(name: str) -> str:
    """The partition of a record. Shelves sort as their names do."""
    return name[: _SHELF_CUTS.get(name[:1], _SHELF_CUT)]


def _chapter(key: BlockKey) -> int:
    return key.batch // _CHAPTER_BATCHES


def _place(job: str, key: BlockKey) -> tuple[Any, ...]:
    return job, key.bucket, _chapter(key), key.batch, key.generation, key.unit, key.number, key.lowest


def _size(row: tuple[Any, ...]) -> int:
    return sum(len(value) for value in row if isinstance(value, bytes))


def _is_busy(cause: NoHostAvailable) -> bool:
    errors = cause.errors.values() if isinstance(cause.errors, Mapping) else ()
    return any(isinstance(each, (ConnectionBusy, NoConnectionsAvailable)) for each in errors)


def _now_us() -> int:
    return time.time_ns() // 1000


def _reason(cause: Exception) -> str:
    """In one line: what the server said, or what the driver noticed."""
    text = " ".join(str(cause).split())
    said = re.search(r'message="(.*)"', text)
    return (said[1] if said else text)[:200].rstrip(".") or type(cause).__name__


def _quiet() -> None:
    # The driver warns of each lost connection; who asks gets it as an error.
    logger = logging.getLogger("cassandra")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL)
