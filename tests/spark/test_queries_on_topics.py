"""Queries that start and end over topics: Spark knows these by their order alone, and goes on in each where it was."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.conformance.test_bundles import DISORDER_US, rows_in, streams, write
from tests.conformance.test_starting_queries import Found, alone
from tests.servers import KafkaBroker

from .jobs import run_to_the_end, unique

pytestmark = [pytest.mark.spark, pytest.mark.services]

TURN = 30
"""Rows that each topic gets between two starts."""
SCHEMA = "{id: int64, ts: int64, k: int64, x: int64}"
CA = "SELECT ONLINE c.id AS c, c.x AS cx, a.id AS a, a.x AS ax FROM c, a WHERE c.k = a.k WITHIN 40 MICROSECONDS"
QUERIES = {
    "ab": "SELECT ONLINE a.id AS a, b.id AS b FROM a, b WHERE a.k = b.k WITHIN 20 MICROSECONDS",
    "ca": CA,
    "near": CA.replace("c.k = a.k", "c.k = a.k AND c.x < a.x").replace("40", "15"),
}


def ids_of(found: Found) -> Found:
    """Without the columns of values."""
    return Found({tuple(value for at, value in enumerate(row) if at % 2 == 0): n for row, n in found.items()})


def topics_of(broker: KafkaBroker, called: str, names: Iterable[str]) -> dict[str, str]:
    """A new topic for each stream."""
    topics = {name: unique(f"{called}-{name}") for name in names}
    for topic in topics.values():
        broker.create_topic(topic, 1)
    return topics


def bring(broker: KafkaBroker, topics: Mapping[str, str], given: Mapping[str, pa.RecordBatch], turn: int) -> None:
    """Bring a turn's rows of each stream."""
    for name, rows in given.items():
        part = rows.slice(TURN * turn, TURN).to_pylist()
        broker.produce(topics[name], [json.dumps(row).encode() for row in part], 0)


def stream_line(broker: KafkaBroker, name: str, topic: str, more: str = "") -> str:
    """A stream in a join file."""
    return (
        f"  {name}: {{source: kafka, servers: '{broker.servers}', topic: {topic}, format: json, schema: {SCHEMA}, "
        f"time: ts, time_unit: us, delay: {DISORDER_US}us{more}}}"
    )


@pytest.mark.soak
def test_a_topic_that_no_query_reads_any_more_keeps_its_place_among_the_others(
    broker: KafkaBroker, session: SparkSession, tmp_path: Path
) -> None:
    given = dict(zip("abc", streams(95), strict=True))
    write(tmp_path, list(given.values()))
    topics = topics_of(broker, "starts", given)

    def start(turn: int, names: str, stopped: str = "") -> None:
        """Bring a turn's rows, and join what is there by these queries."""
        bring(broker, topics, given, turn)
        lines = [stream_line(broker, name, topic) for name, topic in topics.items()]
        queries = [
            f"  {name}: {{query: {json.dumps(QUERIES[name])}, results: {{parquet: job/{name}}}"
            f"{', stopped: true' if name in stopped.split() else ''}}}"
            for name in names.split()
        ]
        file = tmp_path / "job.yaml"
        file.write_text("\n".join(["streams:", *lines, "queries:", *queries, "run: {checkpoint: job-checkpoint}"]))
        run_to_the_end(session, file, 2)

    start(0, "ab ca")
    start(1, "ab ca near", "ab")  # a was known as ab's first, and is ca's second now
    start(2, "ab ca near", "ab")

    def turn_of(id: int) -> int:
        return id % 1000 // TURN

    assert rows_in(tmp_path / "job" / "ca") == alone(tmp_path, "ca-alone", CA)
    near = ids_of(alone(tmp_path, "near-alone", QUERIES["near"]))
    wanted = Found({row: n for row, n in near.items() if max(map(turn_of, row)) >= 1})
    assert ids_of(rows_in(tmp_path / "job" / "near")) == wanted and wanted
    ab = alone(tmp_path, "ab-alone", QUERIES["ab"])
    assert rows_in(tmp_path / "job" / "ab") == Found({row: n for row, n in ab.items() if max(map(turn_of, row)) < 1})


@pytest.mark.soak
def test_topics_keep_their_order_where_a_stream_gets_idle_later(
    broker: KafkaBroker, session: SparkSession, tmp_path: Path
) -> None:
    """Whoever has to hear of a silent stream does so before the first stage, and Spark knows topics by their order."""
    given = dict(zip("abc", streams(96), strict=True))
    write(tmp_path, list(given.values()))
    topics = topics_of(broker, "idle", given)
    query = (
        "SELECT ONLINE a.id AS a, b.id AS b, c.id AS c FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k "
        "WITHIN 20 MICROSECONDS"
    )
    for turn, idle in enumerate(("", ", idle: 3600s", "")):
        bring(broker, topics, given, turn)
        lines = [stream_line(broker, name, topic, idle if name == "c" else "") for name, topic in topics.items()]
        file = tmp_path / "three.yaml"
        file.write_text(
            "\n".join(
                [
                    "streams:", *lines, f"query: {json.dumps(query)}", "operator: {name: biclique}",
                    "results: {parquet: three/out}", "run: {checkpoint: three-checkpoint}",
                ]
            )
        )  # fmt: skip
        run_to_the_end(session, file, 2)
    assert rows_in(tmp_path / "three" / "out") == alone(tmp_path, "three-alone", query)
