"""A table of a real Cassandra as a relation: its types, its pages, and who may read it."""

from __future__ import annotations

import datetime
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

pytest.importorskip("cassandra", reason="the driver for Cassandra is not installed")

from cassandra import DriverException
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster as Driver
from cassandra.cluster import NoHostAvailable
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.connection import DefaultEndPoint
from cassandra.policies import HostDistance, SimpleConvictionPolicy
from cassandra.pool import Host

from streamjoin.errors import InputError, RunError
from streamjoin.explain.preview import preview
from streamjoin.plan.schema import left_out
from streamjoin.sources import cassandra_table
from streamjoin.sources.cassandra_table import CassandraTable, Cluster, columns_of
from streamjoin.spec.inputs import open_relation
from streamjoin.spec.joinfile import of_content
from streamjoin.spec.prepare import bind

from .cassandra import CassandraNode
from .process import comes_true

pytestmark = pytest.mark.services

READY_S_MAX = 180.0
ROWS = 12_000
TYPED = (
    "CREATE TABLE shop.typed (k int PRIMARY KEY, a tinyint, b smallint, c bigint, d float, e double, f boolean, "
    "g text, h uuid, i timestamp, j date, l blob, m inet, n decimal, o varint, p list<int>, q time)"
)
FILLED = (
    "INSERT INTO shop.typed (k, a, b, c, d, e, f, g, h, i, j, l, m, n, o, p, q) VALUES (1, -1, 2, 9000000000000000001, "
    "0.5, 0.25, true, 'é', 01234567-89ab-cdef-0123-456789abcdef, '2026-01-02T03:04:05.678Z', '1969-12-31', 0xff00, "
    "'10.0.0.1', 12.30, 123456789012345678901234567890, [1], '08:00:00')"
)


@pytest.fixture(scope="module")
def node() -> Iterator[CassandraNode]:
    with CassandraNode("authenticator: PasswordAuthenticator\nauthorizer: CassandraAuthorizer") as node:
        run(node, "CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            "CREATE ROLE reader WITH LOGIN = true AND PASSWORD = 'canary'", "GRANT SELECT ON KEYSPACE shop TO reader",
            TYPED, FILLED, "INSERT INTO shop.typed (k) VALUES (2)",
            'CREATE TABLE shop."Large" (k bigint PRIMARY KEY, "said so" text)')  # fmt: skip
        yield node


@contextmanager
def owner(node: CassandraNode) -> Iterator[Any]:
    """A session of the first user, who is made a moment after the node answers."""
    sessions: list[Any] = []

    def logged_in() -> bool:
        # One that was refused is of no use any more.
        driver = Driver(["127.0.0.1"], port=node.port, auth_provider=PlainTextAuthProvider("cassandra", "cassandra"))
        try:
            sessions.append(driver.connect())
        except (NoHostAvailable, DriverException):
            driver.shutdown()
            return False
        return True

    assert comes_true(logged_in, READY_S_MAX)
    try:
        yield sessions[0]
    finally:
        sessions[0].cluster.shutdown()


def run(node: CassandraNode, *statements: str) -> None:
    with owner(node) as session:
        for statement in statements:
            session.execute(statement, timeout=60)


def at(node: CassandraNode, password: str | None = "canary", username: str | None = "reader") -> Cluster:
    return Cluster(("127.0.0.1",), node.port, username, password)


def columns(node: CassandraNode, table: str, password: str | None = "canary", keyspace: str = "shop") -> pa.Schema:
    return columns_of(("127.0.0.1",), node.port, "reader", password, keyspace, table)


def test_every_type_has_its_place_or_is_left_out(node: CassandraNode) -> None:
    found = columns(node, "typed")
    assert {field.name: str(field.type) for field in found} == {
        "k": "int32", "a": "int8", "b": "int16", "c": "int64", "d": "float", "e": "double", "f": "bool", "g": "string",
        "h": "string", "i": "timestamp[us, tz=UTC]", "j": "date32[day]", "l": "binary", "m": "string",
    }  # fmt: skip
    assert left_out(found) == {"n": "decimal", "o": "varint", "p": "list<int>", "q": "time"}
    given = pa.schema([*found, pa.field("n", pa.decimal128(10, 3)), pa.field("o", pa.decimal128(38, 0))])
    ((rows, bad),) = CassandraTable("t", given, None, at(node), "shop", "typed").blocks(given.names)
    first, empty = sorted(rows.to_pylist(), key=lambda row: row["k"])
    assert bad == 0 and set(empty.values()) == {2, None}
    assert first == {
        "k": 1, "a": -1, "b": 2, "c": 9000000000000000001, "d": 0.5, "e": 0.25, "f": True, "g": "é",
        "h": "01234567-89ab-cdef-0123-456789abcdef",
        "i": datetime.datetime(2026, 1, 2, 3, 4, 5, 678000, datetime.UTC), "j": datetime.date(1969, 12, 31),
        "l": b"\xff\x00", "m": first["m"], "n": first["n"], "o": first["o"],
    }  # fmt: skip
    assert first["m"].lstrip("/") == "10.0.0.1"
    assert (str(first["n"]), int(first["o"])) == ("12.300", 123456789012345678901234567890)
    narrow = pa.schema([pa.field("n", pa.decimal128(2, 1))])
    with pytest.raises(RunError, match=r'column "n" of table shop\.typed .* cannot be read as decimal\(2,1\)'):
        list(CassandraTable("t", narrow, None, at(node), "shop", "typed").blocks(["n"]))


@pytest.mark.soak
def test_a_large_table_comes_in_parts_and_whole(node: CassandraNode, monkeypatch: pytest.MonkeyPatch) -> None:
    with owner(node) as session:
        insert = session.prepare('INSERT INTO shop."Large" (k, "said so") VALUES (?, ?)')
        execute_concurrent_with_args(session, insert, [(k, f"row {k}") for k in range(ROWS)])
    monkeypatch.setattr(cassandra_table, "_PAGE_ROWS", 500)
    monkeypatch.setattr(cassandra_table, "_BATCH_ROWS", 2_000)
    table = CassandraTable("t", columns(node, "Large"), None, at(node), "shop", "Large")
    blocks = [rows for rows, _ in table.blocks(["said so", "k"])]
    assert len(blocks) == ROWS // 2_000 and max(rows.num_rows for rows in blocks) == 2_000
    whole = pa.Table.from_batches(blocks).sort_by("k")
    assert whole["k"].to_pylist() == list(range(ROWS)) and whole["said so"][7].as_py() == "row 7"
    assert table.first_rows(5)[0].num_rows == 5
    assert table.carried() == {"k": "bigint", "said so": "text"}


@pytest.mark.parametrize(
    ("table", "keyspace", "password", "field", "says"),
    [
        ("typed", "shop", "wrong", "hosts", "it refuses the username and password"),
        ("nothing", "shop", "canary", "table", "has no table nothing; it has Large, typed"),
        ("typed", "nowhere", "canary", "keyspace", "has no keyspace nowhere"),
    ],
)
def test_what_is_not_there_or_not_allowed_is_said_by_its_field(
    node: CassandraNode, table: str, keyspace: str, password: str, field: str, says: str
) -> None:
    with pytest.raises(InputError, match=says) as refused:
        columns(node, table, password, keyspace)
    assert refused.value.field == field and "canary" not in str(refused.value)


def test_one_that_may_not_be_read_is_refused(node: CassandraNode) -> None:
    run(node, "CREATE ROLE nobody WITH LOGIN = true AND PASSWORD = 'canary'")
    schema = pa.schema({"k": pa.int32()})
    table = CassandraTable("t", schema, None, at(node, username="nobody"), "shop", "typed")
    with pytest.raises(InputError, match="no SELECT permission") as refused:
        list(table.blocks(["k"]))
    assert "canary" not in str(refused.value)


def test_a_cluster_that_is_not_there_is_given_up() -> None:
    with pytest.raises(InputError, match=r"Cassandra at 127\.0\.0\.1 cannot be read: no node of it answers"):
        columns_of(("127.0.0.1",), 1, None, None, "shop", "typed")


def test_attack_a_cluster_that_names_other_nodes_sends_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}

    def driver(hosts: list[str], **settings: Any) -> Any:
        given.update(settings, hosts=hosts)
        raise NoHostAvailable("nobody was asked", {})

    monkeypatch.setattr("cassandra.cluster.Cluster", driver)
    with pytest.raises(InputError, match="no node of it answers"):
        columns_of(("127.0.0.1",), 9042, "reader", "canary", "shop", "typed")
    (profile,) = given["execution_profiles"].values()
    named, told = (
        Host(DefaultEndPoint(address), SimpleConvictionPolicy, host_id=uuid4()) for address in ("127.0.0.1", "10.9.8.7")
    )
    assert given["hosts"] == ["127.0.0.1"]
    assert profile.load_balancing_policy.distance(named) == HostDistance.LOCAL
    assert profile.load_balancing_policy.distance(told) == HostDistance.IGNORED


def test_a_join_file_names_it_and_a_stream_is_joined_with_it(node: CassandraNode) -> None:
    content: dict[str, Any] = {
        "streams": {"b": {"source": "generator", "kind": "nexmark.bid", "time": "ts"}},
        "relations": {
            "t": {
                "source": "cassandra", "hosts": ["127.0.0.1"], "port": node.port, "keyspace": "shop", "table": "typed",
                "username": "reader", "password": "canary",
            }
        },
        "query": "SELECT ONLINE b.price, t.k FROM b LEFT JOIN t ON b.price = t.k",
        "results": {"discard": True},
    }  # fmt: skip
    bound = bind(of_content(content))
    assert b"canary" not in pickle.dumps(bound.job(heartbeat=False))
    assert "canary" not in repr(open_relation(bound.file, "t"))
    (found,) = preview(bound).queries
    assert found.rows.num_rows > 0 and {row["k"] for row in found.rows.to_pylist()} <= {1, 2, None}
    content["relations"]["t"]["schema"] = {"p": "string"}
    with pytest.raises(InputError, match="is list<int> in typed, which no relation can have"):
        bind(of_content(content))
