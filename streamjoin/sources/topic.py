"""The newest records of a Kafka topic, and how fast they came, for a look before anything runs.

Jobs read topics through Spark. A rate is that of the records' own timestamps: how many offsets there are behind the one
that the broker names for a time.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streamjoin.errors import InputError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, TopicPartition

WAIT_S = 5.0
RATE_S = 3.0
"""How long the questions about the rate may take, all together."""
_AGAIN_S = 0.1
SPANS_S = (300, 60, 10, 1)
"""Over how many seconds up to the newest record a rate is, the longest first that the topic is older than."""
_EARLIEST_MS = 315_532_800_000
"""1980: an earlier time is none, or one in seconds that was written as milliseconds."""
_AHEAD_S = 300.0
"""Clocks of producers may differ by so much; a newer record has no time that tells anything."""


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest records of a topic.

    Args:
        values: as binary; a record without a value is null.
        rate_per_s: records a second; None where that was not asked for or cannot be told.
        unknown: why not.
    """

    values: pa.Array
    rate_per_s: float | None = None
    unknown: str = ""


def newest_values(servers: str, topic: str, client: Mapping[str, Any], rows: int) -> pa.Array:
    """The values of the newest `rows` records of each partition; see `newest`."""
    return newest(servers, topic, client, rows).values


def newest(
    servers: str, topic: str, client: Mapping[str, Any], rows: int, *, rate: bool = False, wait_s: float = WAIT_S
) -> Newest:
    """The newest `rows` records of each partition.

    Args:
        rate: also say how many come in a second.
    Raises:
        InputError: the broker does not answer, has no such topic, or the client does not understand its settings;
            `field` is the stream's.
    Cost: `wait_s` seconds at most for what partitions there are, as much for where they end, half of it for the
        records, and `RATE_S` for the rate.
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
        found = consumer.list_topics(topic, timeout=wait_s).topics[topic]
        if found.error is not None:
            raise InputError(f"the broker has no topic {topic}: {found.error.str()}", field="topic")
        ends = []
        ended_s = time.monotonic() + wait_s
        for partition in found.partitions:
            if (left_s := ended_s - time.monotonic()) <= 0:
                raise InputError(
                    f"{servers} did not say within {wait_s:g} s where {len(found.partitions)} partitions end",
                    field="servers",
                )
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=left_s)
            if high > low:
                ends.append((TopicPartition(topic, partition, max(low, high - rows)), low, high))
        values: list[bytes | None] = []
        newest_ms: dict[int, int] = {}
        if ends:
            consumer.assign([start for start, _, _ in ends])
            for message in consumer.consume(rows * len(ends), timeout=wait_s / 2):
                if message.error() is None:
                    values.append(message.value())
                    number = message.partition()
                    assert number is not None  # it came from one
                    newest_ms[number] = max(newest_ms.get(number, -1), message.timestamp()[1])
        known = _rate(consumer, topic, ends, newest_ms) if rate else (None, "")
    except KafkaException as failure:
        raise InputError(f"{servers} does not answer: {failure.args[0].str()}", field="servers") from None
    finally:
        consumer.close()
    return Newest(pa.array(values, pa.binary()), *known)


Ends = Sequence[tuple["TopicPartition", int, int]]
"""By partition that has records: it, the offset of its first record, and the one after its last."""


def _rate(consumer: Consumer, topic: str, ends: Ends, newest_ms: Mapping[int, int]) -> tuple[float | None, str]:
    """Records a second up to the newest one, or why that cannot be told.

    Args:
        newest_ms: by partition, the time of the newest record that was read of it.
    """
    if not ends:
        return None, f"topic {topic} is empty"
    last_ms = max(newest_ms.values(), default=-1)
    if last_ms < _EARLIEST_MS:
        return None, f"the records of topic {topic} have no timestamps, or some of before 1980"
    ahead_s = last_ms / 1e3 - time.time()
    if ahead_s > _AHEAD_S:
        return None, f"the newest record of topic {topic} has a timestamp that is {ahead_s:,.0f} s in the future"
    ended_s = time.monotonic() + RATE_S
    for span_s in SPANS_S:
        since_ms = last_ms - span_s * 1000
        newer = {number for number, at_ms in newest_ms.items() if at_ms >= since_ms}
        begins = _offsets(consumer, [start for start, _, _ in ends], since_ms, newer, ended_s)
        if begins is None:
            return None, f"the broker did not say within {RATE_S:g} s which records of topic {topic} are how old"
        # Where no record is as new, the broker names no offset.
        begins = [high if begin < 0 else begin for begin, (_, _, high) in zip(begins, ends, strict=True)]
        if any(begin > low for begin, (_, low, _) in zip(begins, ends, strict=True)):
            count = sum(high - begin for begin, (_, _, high) in zip(begins, ends, strict=True))
            return count / span_s, ""
    return None, f"all records of topic {topic} are of the same second"


def _offsets(
    consumer: Consumer, partitions: Sequence[TopicPartition], since_ms: int, newer: Collection[int], ended_s: float
) -> list[int] | None:
    """By partition, the offset of the first record since then, or less than 0; None where the broker does not say.

    A broker may name none of records that came just now, although it gave them to whoever reads; it is asked again.

    Args:
        newer: numbers of partitions of which a record as new has been read.
        ended_s: it is asked until then.
    """
    from confluent_kafka import KafkaException, TopicPartition

    asked = [TopicPartition(one.topic, one.partition, since_ms) for one in partitions]
    while (left_s := ended_s - time.monotonic()) > 0:
        try:
            found = {one.partition: one for one in consumer.offsets_for_times(asked, timeout=left_s)}
        except KafkaException:
            return None
        if any(one.error is not None for one in found.values()):
            return None
        if all(found[number].offset >= 0 for number in newer):
            return [found[one.partition].offset for one in partitions]
        time.sleep(_AGAIN_S)
    return None
