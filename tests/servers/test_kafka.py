"""The broker of the tests behaves like one that is not ours, and Spark can read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition
from pyspark.sql import SparkSession

from . import KafkaBroker, spark_connector_jars
from .process import comes_true

pytestmark = pytest.mark.services

CONSUME_S_MAX = 60.0
SPARK_S_MAX = 300.0


def records(broker: KafkaBroker, topic: str, count: int, partition: int = 0) -> list[bytes]:
    """The first `count` values of a partition, oldest first."""
    # Assigned, not subscribed: to form a consumer group takes seconds. The client wants a group's name all the same.
    consumer = Consumer({"bootstrap.servers": broker.servers, "group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    values: list[bytes] = []

    def has_all() -> bool:
        for message in consumer.consume(count - len(values), timeout=0.1):
            if error := message.error():
                raise KafkaException(error)
            values.append(message.value() or b"")
        return len(values) == count

    try:
        assert comes_true(has_all, CONSUME_S_MAX), f"{len(values)} of {count} records of {topic} arrived"
    finally:
        consumer.close()
    return values


def test_records_come_back_in_the_order_they_went_in(broker: KafkaBroker) -> None:
    broker.create_topic("round-trip")
    values = [b"%d" % number for number in range(10_000)]
    broker.produce("round-trip", values)
    assert records(broker, "round-trip", len(values)) == values


def test_records_go_to_the_partition_that_was_asked_for(broker: KafkaBroker) -> None:
    broker.create_topic("two-partitions", partitions=2)
    broker.produce("two-partitions", [b"first", b"second"], partition=1)
    with pytest.raises(KafkaException, match=r"(?i)partition"):
        broker.produce("two-partitions", [b"third"], partition=2)
    assert records(broker, "two-partitions", 2, partition=1) == [b"first", b"second"]


def test_record_that_the_broker_refuses_is_an_error(broker: KafkaBroker) -> None:
    with pytest.raises(KafkaException, match=r"(?i)unknown topic"):
        broker.produce("nobody-created-this", [b"lost"])


@pytest.mark.soak
def test_records_survive_a_crash_of_the_broker(broker: KafkaBroker) -> None:
    broker.create_topic("crash")
    broker.produce("crash", [b"before"])
    servers = broker.servers
    broker.kill()
    assert not broker.process.is_running()
    broker.restart()
    broker.produce("crash", [b"after"])
    assert broker.servers == servers
    assert records(broker, "crash", 2) == [b"before", b"after"]


def test_deleted_topic_is_gone_and_its_name_is_free_again(broker: KafkaBroker) -> None:
    broker.create_topic("deleted")
    broker.produce("deleted", [b"old"])
    broker.delete_topic("deleted")
    assert "deleted" not in broker.admin().list_topics(timeout=10).topics
    broker.create_topic("deleted")
    broker.produce("deleted", [b"new"])
    assert records(broker, "deleted", 1) == [b"new"]


@pytest.mark.soak  # jobs do so in tests/spark/test_kafka.py
def test_spark_reads_each_record_once_over_two_runs(broker: KafkaBroker, session: SparkSession, tmp_path: Path) -> None:
    broker.create_topic("spark", partitions=2)

    def unchanged(blocks: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from blocks

    def run_over_what_is_there() -> set[tuple[bytes, int, int]]:
        stream = (
            session.readStream.format("kafka")
            .option("kafka.bootstrap.servers", broker.servers)
            .option("subscribe", "spark")
            .option("startingOffsets", "earliest")
            .option("includeHeaders", "false")
            .load()
            .select("value", "partition", "offset")
            .mapInArrow(unchanged, "value binary, partition int, offset bigint")
        )
        query = (
            stream.writeStream.format("parquet")
            .option("path", str(tmp_path / "rows"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        try:
            assert query.awaitTermination(int(SPARK_S_MAX)), "Spark did not get through the topic"
        finally:
            query.stop()
        rows = [
            (bytes(row.value), row.partition, row.offset)
            for row in session.read.parquet(str(tmp_path / "rows")).collect()
        ]
        assert len(rows) == len(set(rows))
        return set(rows)

    broker.produce("spark", [b"a", b"b"], partition=0)
    broker.produce("spark", [b"c"], partition=1)
    first = {(b"a", 0, 0), (b"b", 0, 1), (b"c", 1, 0)}
    assert run_over_what_is_there() == first
    broker.produce("spark", [b"d"], partition=1)
    assert run_over_what_is_there() == first | {(b"d", 1, 1)}


def test_jars_for_spark_are_the_four_that_spark_does_not_ship() -> None:
    names = {Path(jar).name.rsplit("-", 1)[0] for jar in spark_connector_jars().split(",")}
    assert names == {
        "commons-pool2",
        "kafka-clients",
        "spark-sql-kafka-0-10_2.13",
        "spark-token-provider-kafka-0-10_2.13",
    }
