"""Kafka topics as streams: Spark reads and keeps the offsets, our intake decodes the records."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from streamjoin.errors import InputError
from streamjoin.intake.deadletter import DeadLetter
from streamjoin.intake.records import Decoder, decoder
from streamjoin.spark.offsetlog import router_of
from streamjoin.spark.tasks import Decode, SourceRows

_PLACE_BITS = 20
"""Of a row's position: its place in its record, where a record has several."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A Kafka topic.

    Args:
        servers: host:port, several separated by commas.
        format: json, csv, avro or arrow.
        starting: earliest or latest; only for the first batch ever.
        offsets_per_batch: at most so many records a batch.
        client: settings of the Kafka client, such as security.protocol.
    """

    servers: str
    topic: str
    format: str
    starting: str
    offsets_per_batch: int
    avro_schema: Mapping[str, Any] | str | None = None
    client: Mapping[str, str] = field(default_factory=dict)


def read_topic(session: SparkSession, topic: Topic, slots: int) -> DataFrame:
    """The topic's records: value, partition, offset.

    Raises:
        InputError: Spark's Kafka connector is not there.
    """
    reader = (
        session.readStream.format("kafka")
        .options(**{f"kafka.{name}": value for name, value in topic.client.items()})
        .option("kafka.bootstrap.servers", topic.servers)
        .option("subscribe", topic.topic)
        .option("startingOffsets", topic.starting)
        .option("maxOffsetsPerTrigger", topic.offsets_per_batch)
        # A topic with fewer partitions than slots is read by several tasks each.
        .option("minPartitions", slots)
        # Records that vanished before they were read are an error with their offsets named, never a silent gap.
        .option("failOnDataLoss", "true")
        .option("kafka.isolation.level", "read_committed")
    )
    try:
        frame = reader.load()
    except Exception as cause:
        if "kafka" in str(cause).lower() and "data source" in str(cause).lower():
            raise InputError(
                "Spark has no Kafka connector; name it under run.spark, such as "
                'spark.jars.packages: "org.apache.spark:spark-sql-kafka-0-10_2.13:<the version of Spark>", or give the '
                "jar files in spark.jars"
            ) from None
        raise
    return frame.select("value", F.col("partition").cast("int").alias("partition"), F.col("offset").alias("offset"))


def decode_records(stream: str, topic: Topic, schema: pa.Schema) -> Decode:
    """How a task turns (value, partition, offset, clock) into rows of the stream."""

    def decode(batch: pa.RecordBatch) -> Iterator[SourceRows]:
        partitions = batch.column("partition")
        for partition in pc.unique(partitions).to_pylist():
            chosen = batch if len(pc.unique(partitions)) == 1 else batch.filter(pc.equal(partitions, partition))
            offsets = chosen.column("offset").to_numpy()
            decoded = _decoder(topic.format, schema, topic.avro_schema).decode(chosen.column("value"))
            source = router_of(topic.topic, partition)
            bad = [
                DeadLetter(
                    stream,
                    source,
                    int(offsets[item.position]),
                    item.reason,
                    item.detail,
                    chosen.column("value")[item.position].as_py(),
                    "offset",
                )
                for item in decoded.bad
            ]
            positions = offsets[decoded.positions]
            place = functools.partial(_place, source, 0)
            if topic.format == "arrow":  # many rows share a record's offset: their places in it tell them apart
                places = np.arange(positions.size) - np.searchsorted(positions, positions)
                positions = (positions << _PLACE_BITS) + places
                place = functools.partial(_place, source, _PLACE_BITS)
            # The first offset names the piece: pieces of a partition then sort in its order. A task reads one range.
            yield SourceRows(
                source, _piece_name(source, partition, offsets), source, decoded.rows, positions, bad, place
            )

    return decode


def _place(source: str, bits: int, position: int) -> tuple[str, int, str]:
    return source, position >> bits, "offset"


_first_offsets: dict[tuple[int, str], int] = {}


def _piece_name(source: str, partition: int, offsets: np.ndarray) -> str:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    key = (context.taskAttemptId(), source)
    if key not in _first_offsets:
        for old in [old for old in _first_offsets if old[0] != key[0]]:
            del _first_offsets[old]
        _first_offsets[key] = int(offsets[0])
    return f"{partition:06d}@{_first_offsets[key]:018d}"


_decoders: dict[str, Decoder] = {}


def _decoder(format: str, schema: pa.Schema, avro_schema: Mapping[str, Any] | str | None) -> Decoder:
    key = json.dumps([format, str(schema), avro_schema], default=str)
    if key not in _decoders:
        _decoders[key] = decoder(format, schema, avro_schema=avro_schema)
    return _decoders[key]
