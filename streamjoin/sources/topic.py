"""The newest records of a Kafka topic, for a look before anything runs; jobs read topics through Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from streamjoin.errors import InputError

WAIT_S = 5.0


def newest_values(servers: str, topic: str, client: Mapping[str, Any], rows: int) -> pa.Array:
    """The values of the newest `rows` records of each partition, as binary; a record without a value is null.

    Raises:
        InputError: the broker does not answer, has no such topic, or the client does not understand its settings;
            `field` is the stream's.
    Cost: `WAIT_S` seconds at most for each question to the broker, and half of it for the records.
    """
    try:
        from confluent_kafka import Consumer, KafkaException, TopicPartition
    except ImportError:
        raise InputError("a look at a topic needs confluent-kafka; install it with pip") from None

    settings = {
        **client,
        "bootstrap.servers": servers, "group.id": "streamjoin-sample", "enable.auto.commit": False,
        "socket.timeout.ms": int(WAIT_S * 1000), "isolation.level": "read_committed", "log_level": 0,
    }  # fmt: skip
    try:
        consumer = Consumer(settings)
    except KafkaException:  # whose text may have a setting's value, and that may be a password
        named = ", ".join(client)
        raise InputError(f"Kafka's client does not understand one of {named}, or its value", field="client") from None
    try:
        found = consumer.list_topics(topic, timeout=WAIT_S).topics[topic]
        if found.error is not None:
            raise InputError(f"the broker has no topic {topic}: {found.error.str()}", field="topic")
        wanted = []
        for partition in found.partitions:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=WAIT_S)
            if high > low:
                wanted.append(TopicPartition(topic, partition, max(low, high - rows)))
        values: list[bytes | None] = []
        if wanted:
            consumer.assign(wanted)
            values = [
                message.value()
                for message in consumer.consume(rows * len(wanted), timeout=WAIT_S / 2)
                if message.error() is None
            ]
    except KafkaException as failure:
        raise InputError(f"{servers} does not answer: {failure.args[0].str()}", field="servers") from None
    finally:
        consumer.close()
    return pa.array(values, pa.binary())
