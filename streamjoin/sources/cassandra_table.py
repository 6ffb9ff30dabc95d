"""Tables of Apache Cassandra as relations, read page after page while they come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.errors import InputError, RunError
from streamjoin.plan.schema import SIMPLE_TYPES, type_name, without
from streamjoin.sources.served import ServedTable, quoted

CONNECT_S = 10
"""A cluster that does not answer is given up after so long."""
_PAGE_S = 60
_PAGE_ROWS = 5_000
_BATCH_ROWS = 1 << 16
_AS_IT_IS = "{0}"
_UNIX = "toUnixTimestamp({0})"
_TYPES = {
    "ascii": (_AS_IT_IS, "string"), "text": (_AS_IT_IS, "string"), "varchar": (_AS_IT_IS, "string"),
    "tinyint": (_AS_IT_IS, "int8"), "smallint": (_AS_IT_IS, "int16"), "int": (_AS_IT_IS, "int32"),
    "bigint": (_AS_IT_IS, "int64"), "counter": (_AS_IT_IS, "int64"), "float": (_AS_IT_IS, "float32"),
    "double": (_AS_IT_IS, "float64"), "boolean": (_AS_IT_IS, "bool"), "blob": (_AS_IT_IS, "binary"),
    "uuid": ("CAST({0} AS text)", "string"), "timeuuid": ("CAST({0} AS text)", "string"),
    "inet": ("CAST({0} AS text)", "string"), "timestamp": (_UNIX, "timestamp"), "date": (_UNIX, "date"),
}  # fmt: skip
"""By Cassandra's type, what is asked for and what it is here. Of times and UUIDs, the driver makes objects of Python's,
in which not all of them have a place."""
_WITH_DIGITS = ("decimal", "varint")
"""They have as many digits as each value needs, so only a schema says how many there are here."""


@dataclass(frozen=True, slots=True, repr=False)
class Cluster:
    """Where a table is, and who reads it.

    Args:
        hosts: some nodes of it.
        password: never shown, and no pickled copy has it.
    """

    hosts: tuple[str, ...]
    port: int
    username: str | None = None
    password: str | None = None

    def __str__(self) -> str:
        return f"Cassandra at {', '.join(self.hosts)}"

    def __repr__(self) -> str:
        return f"Cluster({self})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Cluster, (self.hosts, self.port, self.username)


@dataclass(frozen=True, slots=True)
class CassandraTable(ServedTable):
    """A table or materialized view of a cluster.

    Rows that are written while it is read may be among them or not: Cassandra has no view of a table as of one moment.

    Args:
        table: its name there.
    """

    cluster: Cluster
    keyspace: str
    table: str

    @property
    def place(self) -> str:
        """See `ServedTable`."""
        return f"table {self.keyspace}.{self.table} of {self.cluster}"

    def carried(self) -> dict[str, str]:
        """See `Relation`."""
        with _session(self.cluster) as session:
            return _cql_types(session, self.cluster, self.keyspace, self.table)

    def rows(self, schema: pa.Schema, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """See `ServedTable`; node after node."""
        with _session(self.cluster) as session:
            types = _cql_types(session, self.cluster, self.keyspace, self.table)
            if gone := [name for name in schema.names if name not in types]:
                raise RunError(f'{self.place} has no column "{gone[0]}" any more')
            asked = ", ".join(_TYPES.get(types[name], (_AS_IT_IS,))[0].format(quoted(name)) for name in schema.names)
            end = "" if limit is None else f" LIMIT {limit}"
            pages = session.execute(
                _statement(f"SELECT {asked} FROM {quoted(self.keyspace)}.{quoted(self.table)}{end}")
            )
            waiting: list[tuple[Any, ...]] = []
            while True:
                waiting += pages.current_rows or []
                is_last = not pages.has_more_pages
                if waiting and (is_last or len(waiting) >= _BATCH_ROWS):
                    yield self._batch(waiting, types, schema)
                    waiting = []
                if is_last:
                    return
                pages.fetch_next_page()

    def _batch(self, rows: list[tuple[Any, ...]], types: dict[str, str], schema: pa.Schema) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(
            [
                _column(values, types[field.name], field, self.place)
                for field, values in zip(schema, zip(*rows, strict=True), strict=True)
            ],
            schema=schema,
        )


def columns_of(hosts: tuple[str, ...], port: int, username: str | None, password: str | None, keyspace: str,
               table: str) -> pa.Schema:  # fmt: skip
    """The columns of a table; those that no relation can have are left out, and remembered for messages.

    Raises:
        InputError: there is no such cluster or table, or it may not be read.
    """
    cluster = Cluster(hosts, port, username, password)
    with _session(cluster) as session:
        types = _cql_types(session, cluster, keyspace, table)
    fields = [pa.field(name, SIMPLE_TYPES[_TYPES[cql][1]]) for name, cql in types.items() if cql in _TYPES]
    return without(pa.schema(fields), {name: cql for name, cql in types.items() if cql not in _TYPES})


def may_be(cql: str, given: pa.DataType) -> bool:
    """Whether a column of this type of Cassandra's is read as one that a schema gives."""
    return cql in _TYPES or (cql in _WITH_DIGITS and pa.types.is_decimal(given))


def _cql_types(session: Any, cluster: Cluster, keyspace: str, table: str) -> dict[str, str]:
    """The columns of a table with Cassandra's types, in the table's order."""
    spaces = session.cluster.metadata.keyspaces
    if keyspace not in spaces:
        raise InputError(f"{cluster} has no keyspace {keyspace}", field="keyspace")
    found = spaces[keyspace].tables.get(table) or spaces[keyspace].views.get(table)
    if found is None:
        there = ", ".join(sorted(spaces[keyspace].tables)[:20]) or "no table"
        raise InputError(f"keyspace {keyspace} has no table {table}; it has {there}", field="table")
    return {name: column.cql_type for name, column in found.columns.items()}


def _column(values: Sequence[Any], cql: str, field: pa.Field, place: str) -> pa.Array:
    try:
        if _TYPES.get(cql, ("",))[0] == _UNIX:
            made = pc.cast(pa.array(values, pa.int64()), pa.timestamp("ms", "UTC"))
        elif cql in _TYPES:
            made = pa.array(values, SIMPLE_TYPES[_TYPES[cql][1]])
        else:
            made = pa.array(values, field.type)
        return made if made.type == field.type else pc.cast(made, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as cause:
        raise RunError(
            f'column "{field.name}" of {place} cannot be read as {type_name(field.type)}: {str(cause)[:200]}'
        ) from None


def _statement(text: str) -> Any:
    from cassandra import ConsistencyLevel
    from cassandra.query import SimpleStatement

    return SimpleStatement(
        text, fetch_size=_PAGE_ROWS, consistency_level=ConsistencyLevel.LOCAL_QUORUM, is_idempotent=True
    )


@contextmanager
def _session(cluster: Cluster) -> Iterator[Any]:
    """A session whose rows are tuples.

    Raises:
        InputError: the cluster cannot be reached, or refuses.
    """
    try:
        from cassandra import AuthenticationFailed, DriverException, ProtocolVersion, UnresolvableContactPoints
        from cassandra.auth import PlainTextAuthProvider
        from cassandra.cluster import EXEC_PROFILE_DEFAULT, ExecutionProfile, NoHostAvailable
        from cassandra.cluster import Cluster as Driver
        from cassandra.connection import ConnectionException
        from cassandra.policies import WhiteListRoundRobinPolicy
        from cassandra.query import tuple_factory
    except ImportError:
        raise InputError(
            "tables of Cassandra are read with its driver; install streamjoin[cassandra]", field="hosts"
        ) from None
    who = None if cluster.username is None else PlainTextAuthProvider(cluster.username, cluster.password or "")
    # Where other nodes are is for the cluster to say, and it may say anything: passwords go to these hosts alone.
    these = WhiteListRoundRobinPolicy(list(cluster.hosts))
    profile = ExecutionProfile(these, row_factory=tuple_factory, request_timeout=_PAGE_S)
    driver = None
    try:
        driver = Driver(
            list(cluster.hosts), port=cluster.port, auth_provider=who, connect_timeout=CONNECT_S,
            control_connection_timeout=CONNECT_S, execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            protocol_version=ProtocolVersion.V4, monitor_reporting_enabled=False, executor_threads=2,
        )  # fmt: skip
        yield driver.connect()
    except AuthenticationFailed:
        raise _refused(cluster, "it refuses the username and password") from None
    except UnresolvableContactPoints:
        raise _refused(cluster, "no such host is known") from None
    except NoHostAvailable as cause:
        errors = cause.errors.values() if isinstance(cause.errors, dict) else []
        is_refused = any(isinstance(one, AuthenticationFailed) for one in errors)
        said = "it refuses the username and password" if is_refused else "no node of it answers"
        raise _refused(cluster, said) from None
    except (DriverException, ConnectionException, OSError) as cause:
        raise _refused(cluster, " ".join(str(cause).split())[:200]) from None
    finally:
        if driver is not None:
            driver.shutdown()


def _refused(cluster: Cluster, said: str) -> InputError:
    return InputError(f"{cluster} cannot be read: {said}", field="hosts")
