"""A job from its first request to its removal, on the servers of a cluster: PostgreSQL, Kafka, Cassandra and Redis."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from sqlalchemy import func, select

from backend.catalog.database import Catalog
from backend.catalog.models import Job
from backend.settings import Settings
from streamjoin.client import Answer, Client, Conflict, News, NotFound
from streamjoin.errors import InputError
from streamjoin.results.snapshot import SnapshotId
from streamjoin.spark.java import find_java
from tests.servers import KafkaBroker, ServerUnavailable, spark_connector_jars
from tests.servers.cassandra import CassandraNode
from tests.servers.kafka import DELIVERY_S_MAX, PRODUCER
from tests.servers.postgres import PostgresServer
from tests.servers.process import comes_true
from tests.spark.command import JAVA_OPTIONS
from worker import processes

from .jobs import events_of, job_of
from .platform import Workers
from .test_up import Up, running

pytest.importorskip("cassandra", reason="the driver for Cassandra is not installed")

from cassandra.cluster import Cluster

from streamjoin.results.stores.cassandra.store import CassandraStore

pytestmark = [pytest.mark.services, pytest.mark.spark, pytest.mark.slow]

Row = tuple[Any, ...]

ROWS = 20_000
"""Of each stream."""
PARTITIONS = 2
CHUNK_ROWS = 1_000
STEP_US = 5_000
JITTER_US = 500_000
WINDOW_S = 2
DELAY_S = 10
"""More than the jitter and a chunk together: a batch may meet one partition before the next one has its rows."""
KEYS = 400
PLACES = ("Zürich", "São Paulo", "東京", 'with "quotes"', "")
BEGIN_US = 1_700_000_000_000_000

QUERY = (
    "SELECT ONLINE orders.id AS order_id, payments.id AS payment_id, orders.k AS k, orders.place AS place, "
    f"payments.amount AS amount FROM orders, payments WHERE orders.k = payments.k WITHIN {WINDOW_S} SECONDS"
)
SCHEMAS = {
    "orders": {"id": "int64", "k": "int64", "place": "string", "ts": "int64"},
    "payments": {"id": "int64", "k": "int64", "amount": "float64", "ts": "int64"},
}
JOB = "paid"

READY_S_MAX = 300.0
RESULTS_S_MAX = 180.0
LOOK_S = 0.5
"""The API takes 600 requests a minute."""


@dataclass(frozen=True)
class Servers:
    """What a platform needs of others."""

    postgres: PostgresServer
    kafka: KafkaBroker
    cassandra: CassandraNode

    def variables(self) -> dict[str, str]:
        """That tell a platform where they are."""
        return {
            "STREAMJOIN_CATALOG_URL": self.postgres.url,
            "STREAMJOIN_RESULT_STORE": "cassandra",
            "STREAMJOIN_CASSANDRA_HOSTS": "127.0.0.1",
            "STREAMJOIN_CASSANDRA_PORT": str(self.cassandra.port),
            "STREAMJOIN_SPARK_JARS": spark_connector_jars(),
            "STREAMJOIN_DRIVER_MEMORY_MIB": "512",
            # A busy machine may keep a driver from its lease for longer than the usual few seconds of these tests.
            "STREAMJOIN_LEASE_S": "20",
            "JAVA_TOOL_OPTIONS": JAVA_OPTIONS,
        }

    def blocks(self) -> int:
        """Rows of Cassandra's table of blocks, by its own driver."""
        with Cluster(["127.0.0.1"], self.cassandra.port, protocol_version=4) as cluster:
            return int(cluster.connect().execute("SELECT count(*) FROM streamjoin.blocks").one()[0])


@pytest.fixture
def servers(broker: KafkaBroker) -> Iterator[Servers]:
    """All of them; PostgreSQL and Cassandra are empty."""
    with ExitStack() as stack:
        try:
            find_java()
            postgres = stack.enter_context(PostgresServer())
            cassandra = stack.enter_context(CassandraNode())
        except (InputError, ServerUnavailable) as reason:
            pytest.skip(str(reason))
        yield Servers(postgres, broker, cassandra)


class Follower(threading.Thread):
    """Follows the job from its oldest snapshot until it is deleted."""

    def __init__(self, host: str) -> None:
        super().__init__(daemon=True)
        self.host = host
        self.news: list[News] = []
        self.failure: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            with Client(self.host) as client:
                for news in client.tail(JOB, after="oldest"):
                    self.news.append(news)
        except Exception as failure:
            self.failure = failure

    def rows(self) -> Counter[Row]:
        return Counter(tuple(row) for news in list(self.news) for row in news.rows)

    def check(self, wanted: Counter[Row]) -> None:
        """It has ended, and gave each snapshot once, in order, with all rows."""
        self.join(30)
        assert not self.is_alive()
        assert self.failure is None, self.failure
        ids = [SnapshotId.parse(news.snapshot) for news in self.news]
        assert ids == sorted(set(ids))
        assert not any(news.dropped for news in self.news)
        assert self.rows() == wanted


def made_streams() -> dict[str, pa.Table]:
    """Rows of both streams, a little out of order."""
    random = np.random.default_rng(11)
    tables = {}
    for name in SCHEMAS:
        jitter_us = random.integers(-JITTER_US, JITTER_US, ROWS)
        columns: dict[str, Any] = {
            "id": np.arange(ROWS),
            "k": random.integers(0, KEYS, ROWS),
            "ts": BEGIN_US + np.arange(ROWS) * STEP_US + jitter_us,
        }
        if name == "orders":
            columns["place"] = [PLACES[number] for number in random.integers(0, len(PLACES), ROWS)]
        else:
            columns["amount"] = random.integers(0, 100_000, ROWS) / 100
        tables[name] = pa.table(columns)
    return tables


def expected(tables: dict[str, pa.Table], condition: str = "true") -> Counter[Row]:
    """What the join of all rows is, by another database; `at_us` of a condition is the results' time."""
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        found = connection.execute(
            "SELECT order_id, payment_id, k, place, amount FROM (SELECT orders.id AS order_id, "
            "payments.id AS payment_id, orders.k, place, amount, greatest(orders.ts, payments.ts) AS at_us "
            "FROM orders JOIN payments ON orders.k = payments.k "
            f"AND abs(orders.ts - payments.ts) <= {WINDOW_S * 1_000_000}) WHERE {condition}"
        ).fetchall()
    return Counter(found)


def produce(kafka: KafkaBroker, tables: dict[str, pa.Table], part: int) -> None:
    """Bring the first or the second half of both streams, in small chunks, every second row to the other partition."""
    # One for all of them: each takes half a second to connect.
    producer = Producer({**PRODUCER, "bootstrap.servers": kafka.servers, "linger.ms": 5, "on_delivery": raise_failure})
    half = ROWS // 2
    for start in range(part * half, (part + 1) * half, CHUNK_ROWS):
        for name, table in tables.items():
            for number, row in enumerate(table.slice(start, CHUNK_ROWS).to_pylist()):
                producer.produce(name, json.dumps(row).encode(), partition=number % PARTITIONS)
            assert producer.flush(DELIVERY_S_MAX) == 0


def raise_failure(error: KafkaError | None, _: Message) -> None:
    """Of a record that was not delivered."""
    if error is not None:
        raise KafkaException(error)


def create_job(client: Client, kafka: KafkaBroker) -> str:
    """Register the streams and make a job of them; its id."""
    for name, schema in SCHEMAS.items():
        kafka.create_topic(name, PARTITIONS)
        spec = {"source": "kafka", "servers": kafka.servers, "topic": name, "format": "json", "schema": schema}
        client.streams.create(name, {**spec, "time": "ts", "delay": f"{DELAY_S}s"})
    run = {"slots": 2, "offsets_per_batch": 2_000}
    operator = {"name": "biclique", "routing": "hash", "r_units": 2, "s_units": 2}
    checked = client.jobs.validate(QUERY, operator=operator, run=run)
    assert checked["valid"], checked
    assert [column["name"] for column in checked["columns"]] == ["order_id", "payment_id", "k", "place", "amount"]
    return client.jobs.create(JOB, QUERY, operator=operator, run=run)["id"]


def count(client: Client) -> int:
    """How many results there are so far."""
    try:
        (row,) = client.query(JOB, aggregate="count")
    except Conflict:
        return 0  # it has not begun
    return int(row["count"])


def rows_of(answer: Answer) -> Counter[Row]:
    """All rows of an answer that is complete."""
    assert answer.is_complete, answer.stopped_by
    return Counter(tuple(row.values()) for row in answer)


def in_time(condition: Callable[[], bool], within_s: float) -> bool:
    """Look every now and then until it is so."""
    pause = threading.Event()
    return comes_true(lambda: condition() or pause.wait(LOOK_S), within_s)


@pytest.mark.timeout(900)
def test_a_job_on_real_servers_from_its_first_request_to_its_removal(servers: Servers, tmp_path: Path) -> None:
    settings = Settings(data=tmp_path / "data", auth="off")
    tables = made_streams()
    with (
        running(settings, **servers.variables()) as up,
        Client(f"http://127.0.0.1:{up.port}") as client,
        closing(Catalog(servers.postgres.url)) as catalog,
        closing(CassandraStore("127.0.0.1", servers.cassandra.port)) as store,
    ):
        job = create_job(client, servers.kafka)
        look = Workers(settings, catalog, None)
        check_there_is_nothing_yet(up)
        early = Follower(client.host)

        client.jobs.start(JOB, wait_s=READY_S_MAX)
        produce(servers.kafka, tables, 0)
        assert in_time(lambda: count(client) > 0, RESULTS_S_MAX), look.tails(job)
        (driver,) = processes.leaders(settings.data)
        os.kill(driver, signal.SIGKILL)
        produce(servers.kafka, tables, 1)
        wanted = expected(tables)
        assert in_time(lambda: count(client) >= wanted.total(), RESULTS_S_MAX), look.tails(job)
        assert client.jobs.get(JOB)["generation"] == 2
        late = Follower(client.host)

        check_answers(client, tables)
        assert job_of(catalog, job).name == JOB
        assert "job.failed" in events_of(catalog, job)
        assert not list(settings.data.glob("*.db"))
        assert servers.blocks() > 0
        assert list(store.list_blocks(job))
        assert in_time(lambda: min(one.rows().total() for one in (early, late)) >= wanted.total(), 60)

        client.jobs.delete(JOB, wait_s=60)
        for follower in (early, late):
            follower.check(wanted)
        check_it_is_gone(client, settings, catalog, store, job)
        assert servers.blocks() == 0
        up.end()
        assert up.process.returncode == 0, up.output()


def check_there_is_nothing_yet(up: Up) -> None:
    """A job that never ran has no results, which is no failure of the store that nobody has written to."""
    with (
        Client(f"http://127.0.0.1:{up.port}", deadline_s=30) as client,
        pytest.raises(Conflict, match="no results yet"),
    ):
        client.query(JOB)


def check_answers(client: Client, tables: dict[str, pa.Table]) -> None:
    """Everything, one key, and a span of time."""
    everything = client.query(JOB)
    assert everything.to_arrow().column_names == ["order_id", "payment_id", "k", "place", "amount"]
    assert rows_of(everything) == expected(tables)
    for key in (0, KEYS // 2):
        by_key = expected(tables, f"k = {key}")
        assert by_key
        assert rows_of(client.query(JOB, key=key)) == by_key
    first_us, last_us = (BEGIN_US + number * STEP_US for number in (ROWS // 4, ROWS * 3 // 4))
    by_time = expected(tables, f"at_us BETWEEN {first_us} AND {last_us}")
    assert by_time
    assert rows_of(client.query(JOB, from_=first_us, to=last_us)) == by_time


def check_it_is_gone(client: Client, settings: Settings, catalog: Catalog, store: CassandraStore, job: str) -> None:
    """Nobody knows the job any more, and nothing is left of it."""
    with pytest.raises(NotFound):
        client.jobs.get(JOB)
    with catalog.read() as session:
        assert session.scalar(select(func.count()).select_from(Job)) == 0
    assert list(store.list_blocks(job)) == []
    assert store.jobs() == []
    assert not settings.job_folder(job).exists()
    assert comes_true(lambda: not processes.members(settings.data, job), 30)
