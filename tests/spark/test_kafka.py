"""Kafka topics as streams: every format, restarts, bad records, vanished records, arrival times."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from confluent_kafka import Producer, TopicPartition
from pyspark.sql import SparkSession

from streamjoin.errors import RunError
from streamjoin.flow.punctuation import IDLE_TIMEOUT_US
from streamjoin.results.answer import ask
from streamjoin.results.parts import BatchDone, ParquetSink
from streamjoin.results.question import Question
from streamjoin.results.reader import Reader
from streamjoin.spark.run import run_job
from streamjoin.spec.joinfile import parse
from streamjoin.spec.outputs import store_job, store_spec
from streamjoin.spec.prepare import bind
from streamjoin.state.store import KEPT_VERSIONS, StateStore
from tests.conformance.check import expected, plan
from tests.conformance.histories import History, Row, cut, history
from tests.servers import KafkaBroker

from .jobs import STREAMS, check_same, query, result_rows, run_text, unique, write_history

pytestmark = [pytest.mark.spark, pytest.mark.services]

CONDITION, WINDOW = "equality, then band", "20 us"
FIELDS = ("id", "ts", "k", "x")
SCHEMA = "{id: int64, ts: int64, k: int64, x: int64}"
AVRO = {
    "type": "record",
    "name": "row",
    "fields": [{"name": name, "type": ["null", "long"] if name == "k" else "long"} for name in FIELDS],
}
ADMIN_S_MAX = 20.0
PARTITIONS = 2


def json_records(rows: Sequence[Row]) -> list[bytes]:
    return [json.dumps({name: row[name] for name in FIELDS}).encode() for row in rows]


def csv_records(rows: Sequence[Row]) -> list[bytes]:
    return [",".join("" if row[name] is None else str(row[name]) for name in FIELDS).encode() for row in rows]


def avro_records(rows: Sequence[Row]) -> list[bytes]:
    records = []
    for row in rows:
        record = io.BytesIO()
        fastavro.schemaless_writer(record, AVRO, {name: row[name] for name in FIELDS})
        records.append(record.getvalue())
    return records


def arrow_records(rows: Sequence[Row]) -> list[bytes]:
    """Several rows a record."""
    records = []
    for part in cut(rows, max(len(rows) // 7, 1)):
        columns = {name: pa.array([row[name] for row in part], pa.int64()) for name in FIELDS}
        sink = pa.BufferOutputStream()
        batch = pa.RecordBatch.from_pydict(columns)
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        records.append(sink.getvalue().to_pybytes())
    return records


ENCODERS: dict[str, Callable[[Sequence[Row]], list[bytes]]] = {
    "json": json_records,
    "csv": csv_records,
    "avro": avro_records,
    "arrow": arrow_records,
}


@dataclass
class Streams:
    """Both streams of a test: topics, or one of them a folder of files.

    Args:
        formats: format of each stream; `parquet` for files.
    """

    broker: KafkaBroker
    folder: Path
    formats: tuple[str, str]
    time: str = "ts"

    def __post_init__(self) -> None:
        self.topics = {stream: unique(f"rows-{stream}") for stream in STREAMS}
        for stream, format in zip(STREAMS, self.formats, strict=True):
            if format != "parquet":
                self.broker.create_topic(self.topics[stream], PARTITIONS)

    def feed(self, given: History, turn: int, turns: int) -> None:
        """Bring the part `turn` of `turns` of a history, every second row to the other partition."""
        write_history(given, self.folder, turns, [turn])
        for stream, rows, format in zip(STREAMS, (given.r, given.s), self.formats, strict=True):
            if format == "parquet":
                continue
            part = cut(rows, turns)[turn]
            for partition in range(PARTITIONS):
                records = ENCODERS[format](part[partition::PARTITIONS])
                self.broker.produce(self.topics[stream], records, partition)

    def text(self, operator: str = "name: biclique, routing: hash, r_units: 2, s_units: 2", run: str = "") -> str:
        lines = [self._stream(stream, format) for stream, format in zip(STREAMS, self.formats, strict=True)]
        return (
            "streams:\n" + "\n".join(lines) + f"\nquery: {query(CONDITION, WINDOW)!r}\noperator: {{{operator}}}\n"
            "results: {parquet: results}\n"
            f"run: {{checkpoint: checkpoint, offsets_per_batch: 40, files_per_batch: 1, slots: 2{run}}}\n"
        )

    def _stream(self, stream: str, format: str) -> str:
        if format == "parquet":
            return f"  {stream}: {{source: parquet, path: {stream}, time: {self.time}, delay: 1ms}}"
        given = f", avro_schema: '{json.dumps(AVRO)}'" if format == "avro" else ""
        return (
            f"  {stream}: {{source: kafka, servers: '{self.broker.servers}', topic: {self.topics[stream]}, "
            f"format: {format}, schema: {SCHEMA}, time: {self.time}, delay: 1ms{given}}}"
        )


def reference(given: History) -> Counter[tuple[Any, ...]]:
    return Counter(expected(given, CONDITION, plan(given, CONDITION, WINDOW), 1))


@pytest.mark.parametrize(
    "formats",
    [
        ("json", "csv"),
        pytest.param(("avro", "arrow"), marks=pytest.mark.soak),
        pytest.param(("arrow", "json"), marks=pytest.mark.soak),
        pytest.param(("parquet", "csv"), marks=pytest.mark.soak),
    ],
)
def test_topics_join_exactly_and_go_on_after_a_restart(
    formats: tuple[str, str], broker: KafkaBroker, session: SparkSession, tmp_path: Path
) -> None:
    given = history(5, r=150, s=140, time_shape="disordered", delay_us=15)
    streams = Streams(broker, tmp_path, formats)
    streams.feed(given, 0, 2)
    first = run_text(session, streams.text(), tmp_path)
    assert first.tuples_in == [75, 70] and first.results > 0
    streams.feed(given, 1, 2)
    second = run_text(session, streams.text().replace("slots: 2", "slots: 3"), tmp_path)
    assert second.tuples_in == [75, 70] and second.late == [0, 0]
    check_same(result_rows(tmp_path / "results"), reference(given))


@pytest.mark.soak
def test_topics_go_on_with_another_heartbeat_and_without_one(
    broker: KafkaBroker, session: SparkSession, tmp_path: Path
) -> None:
    """Spark goes on only with the sources whose offsets it has logged, and one of ours is for heartbeats."""
    given = history(6, r=150, s=140, time_shape="disordered", delay_us=15)
    streams = Streams(broker, tmp_path, ("json", "csv"))
    tuples = [0, 0]
    for turn, heartbeat in enumerate((False, True, False)):
        streams.feed(given, turn, 3)
        bound = bind(parse(streams.text(), base=tmp_path))
        job = bound.job(heartbeat=heartbeat)
        progress = run_job(session, bound, job, bound.sinks(), until_end=True)
        tuples = [one + more for one, more in zip(tuples, progress.tuples_in, strict=True)]
    assert tuples == [150, 140]
    check_same(result_rows(tmp_path / "results"), reference(given))


def test_marker_rows_of_a_topic_end_periods_with_those_of_another_or_with_files(
    broker: KafkaBroker, session: SparkSession, tmp_path: Path
) -> None:
    given = history(6, r=150, s=140, time_shape="disordered", delay_us=15)
    streams = Streams(broker, tmp_path, ("json", "parquet"))
    text = streams.text().replace("delay: 1ms", "delay: 100us, punctuate: {RULE}")
    text = text.replace("RULE", "column: x, value: 12", 1).replace("RULE", "per: file", 1)
    text = text.replace("{parquet: results}", "{store: sqlite, path: results.db, snapshot: {punctuation: true}}")
    turns = 8
    for turn in range(turns):
        streams.feed(given, turn, turns)
        if turn % 4 == 3:  # a restart in between
            assert run_text(session, text, tmp_path).late == [0, 0]
    marked = sorted(row["ts"] + 1 for row in given.r if row["x"] == 12)
    files = accumulate((max(row["ts"] for row in rows) + 1 for rows in cut(given.s, turns)), max)
    ends = list(accumulate(map(max, zip(marked, files, strict=False)), max))
    file = parse(text, base=tmp_path)
    reader = Reader(store_spec(file).open(), store_job(file))
    ended_us = reader.refresh().state.ended_us
    assert ended_us in ends and ended_us > ends[0], "several periods are closed"
    times = [{row["id"]: row["ts"] for row in rows} for rows in (given.r, given.s)]
    got = Counter(tuple(row.values()) for batch in ask(reader, Question()) for row in batch.to_pylist())
    whole = reference(given)
    early = {pair for pair in whole if max(side[id] for side, id in zip(times, pair, strict=True)) < ended_us}
    check_same(got, Counter({pair: whole[pair] for pair in early}))


LONG_STOP_US = 3 * IDLE_TIMEOUT_US // 2


def as_if_stopped_long_ago(folder: Path) -> None:
    """Set the clocks in the state back."""
    found = list((folder / "checkpoint" / "state").rglob("*.json"))
    for path in found:
        state = json.loads(path.read_text())
        for clock in state["clocks"]:
            clock["now_us"] -= LONG_STOP_US
            clock["routers"] = {
                name: [latest, seen - LONG_STOP_US] for name, (latest, seen) in clock["routers"].items()
            }
        path.write_text(json.dumps(state))
    assert found


@pytest.mark.soak
def test_a_partition_that_is_read_later_than_the_other_after_a_stop_loses_nothing(
    broker: KafkaBroker, session: SparkSession, tmp_path: Path
) -> None:
    given = history(10, r=120, s=120)
    streams = Streams(broker, tmp_path, ("json", "json"))
    text = streams.text().replace("delay: 1ms", "delay: 0s")
    for turn, partitions in ((0, (0, 1)), (1, (0,)), (1, (1,))):
        for stream, rows in zip(STREAMS, (given.r, given.s), strict=True):
            for partition in partitions:
                part = cut(rows, 2)[turn][partition::PARTITIONS]
                broker.produce(streams.topics[stream], json_records(part), partition)
        progress = run_text(session, text, tmp_path)
        assert progress.late == [0, 0]
        as_if_stopped_long_ago(tmp_path)
    check_same(result_rows(tmp_path / "results"), reference(given))


def abort_records(broker: KafkaBroker, topic: str, partition: int, count: int) -> int:
    """Write records that nobody ever sees; how many offsets they take."""
    producer = Producer({"bootstrap.servers": broker.servers, "transactional.id": topic})
    producer.init_transactions(ADMIN_S_MAX)
    producer.begin_transaction()
    for _ in range(count):
        producer.produce(topic, b"never seen", partition=partition)
    producer.flush(ADMIN_S_MAX)
    producer.abort_transaction(ADMIN_S_MAX)
    return count + 1  # the end of a transaction has one


@pytest.mark.soak
def test_a_partition_is_silent_only_while_it_has_nothing_unread_although_no_row_comes_of_it(
    broker: KafkaBroker, session: SparkSession, tmp_path: Path
) -> None:
    """What the time-out rests on: each batch reads of every partition with unread records, however few it may read."""
    given = history(11, r=400, s=20)
    streams = Streams(broker, tmp_path, ("csv", "csv"))
    topic = streams.topics["r"]
    slow, busy = (f"{topic}/{partition}" for partition in (1, 0))
    broker.produce(topic, csv_records(given.r[:1]), partition=1)
    few = 1 + abort_records(broker, topic, 1, 4)
    broker.produce(topic, csv_records(given.r[1:]), partition=0)
    broker.produce(streams.topics["s"], csv_records(given.s), partition=0)
    progress = run_text(session, streams.text(), tmp_path)
    assert progress.tuples_in == [400, 20] and progress.batches > few + 2
    store = StateStore(tmp_path / "checkpoint" / "state")
    for batch in range(max(progress.batches - KEPT_VERSIONS, 0) + 1, progress.batches):
        clock = store.load(0, batch + 1).clocks[0]
        heard = {router for router, (_, seen_us) in clock.routers.items() if seen_us == clock.now_us}
        assert heard == ({slow, busy} if batch < few else {busy}), batch


def test_bad_records_are_kept_with_their_offsets_and_cost_no_other_record(
    broker: KafkaBroker, session: SparkSession, tmp_path: Path
) -> None:
    given = history(6, r=60, s=60)
    streams = Streams(broker, tmp_path, ("json", "csv"))
    bad = {"r": [b'{"id": 1, "ts"', b"\xff\xfe", b'{"id": "x", "ts": 1, "k": 1, "x": 1}'], "s": [b"1,2,3", b"a,1,1,1"]}
    for stream, records in bad.items():
        broker.produce(streams.topics[stream], records[:1], partition=0)
    streams.feed(given, 0, 1)
    for stream, records in bad.items():
        broker.produce(streams.topics[stream], records[1:], partition=0)
    progress = run_text(session, streams.text(), tmp_path)
    assert progress.tuples_in == [60, 60]
    assert [counts["dead_letters"] for counts in progress.counts] == [3, 2]
    check_same(result_rows(tmp_path / "results"), reference(given))
    letters = dead_letters(tmp_path)
    assert {(letter["stream"], letter["source"], letter["position"]) for letter in letters} == {
        *(("r", f"{streams.topics['r']}/0", offset) for offset in (0, 31, 32)),
        *(("s", f"{streams.topics['s']}/0", offset) for offset in (0, 31)),
    }
    assert len(letters) == 5 and all(letter["reason"] for letter in letters)


@pytest.mark.soak
def test_a_strict_job_stops_at_a_bad_record_and_names_it(
    broker: KafkaBroker, session: SparkSession, tmp_path: Path
) -> None:
    streams = Streams(broker, tmp_path, ("json", "json"))
    streams.feed(history(6, r=10, s=10), 0, 1)
    broker.produce(streams.topics["s"], [b"nonsense"], partition=1)
    with pytest.raises(RunError, match=rf"stream s, {streams.topics['s']}/1, offset 5: .*strict"):
        run_text(session, streams.text(run=", strict: true"), tmp_path)
    assert not result_rows(tmp_path / "results")


def test_records_that_vanished_before_they_were_read_are_an_error(
    broker: KafkaBroker, session: SparkSession, tmp_path: Path
) -> None:
    given = history(7, r=80, s=80)
    streams = Streams(broker, tmp_path, ("json", "json"))
    streams.feed(given, 0, 2)
    run_text(session, streams.text(), tmp_path)
    before = result_rows(tmp_path / "results")
    streams.feed(given, 1, 2)
    # What retention does: of the 20 records to come in partition 1, the first ten go.
    cut_off = TopicPartition(streams.topics["r"], 1, 30)
    admin = broker.admin()  # a client that goes out of sight answers nobody
    admin.delete_records([cut_off])[cut_off].result(ADMIN_S_MAX)
    with pytest.raises(RunError, match=rf"offset=20.*{streams.topics['r']}-1") as failure:
        run_text(session, streams.text(), tmp_path)
    assert "\n" not in str(failure.value)
    # Nothing was joined across the gap.
    assert result_rows(tmp_path / "results") == before


@dataclass(frozen=True)
class FailingSink(ParquetSink):
    """Fails where a driver that crashes before its commit would."""

    fails_at: int = 0

    def commit(self, batch: BatchDone, parts: Sequence[dict[str, Any]]) -> None:
        if batch.number == self.fails_at:
            raise RunError("crashed before the commit")
        super().commit(batch, parts)


@pytest.mark.parametrize("formats", [pytest.param(("json", "csv"), marks=pytest.mark.soak), ("json", "parquet")])
def test_arrival_times_are_those_of_the_first_attempt_when_a_batch_is_repeated(
    formats: tuple[str, str], broker: KafkaBroker, session: SparkSession, tmp_path: Path
) -> None:
    given = history(8, r=120, s=120, key_shape="one hot")
    streams = Streams(broker, tmp_path, formats, time="arrival")
    for turn in range(3):
        streams.feed(given, turn, 3)
    text = streams.text().replace(query(CONDITION, WINDOW), ARRIVALS)
    bound = bind(parse(text, base=tmp_path))
    sink = FailingSink(tmp_path / "results", fails_at=2)
    with pytest.raises(RunError, match="crashed before the commit"):
        run_job(session, bound, bound.job(heartbeat=False), [sink], until_end=True)
    first = staged_rows(sink, 2)
    assert first
    run_text(session, text.replace("slots: 2", "slots: 1"), tmp_path)
    # Stamped anew, the batch would be too far from the one before it.
    assert Counter(read_rows(sorted((tmp_path / "results").glob("batch-000000002-*.parquet")))) == first


@pytest.mark.soak
@pytest.mark.parametrize(("formats", "records"), [(("json", "csv"), 40), (("arrow", "parquet"), 8)])
def test_a_repeated_batch_sheds_the_same_tuples_by_other_slots_and_another_rule(
    formats: tuple[str, str], records: int, broker: KafkaBroker, session: SparkSession, tmp_path: Path
) -> None:
    given = history(9, r=240, s=240, key_shape="one hot")
    streams = Streams(broker, tmp_path, formats)
    for turn in range(3):
        streams.feed(given, turn, 3)
    without = streams.text().replace("offsets_per_batch: 40", f"offsets_per_batch: {records}")
    text = without.replace("delay: 1ms", "delay: 1ms, shed: {threshold: 1, capacity: 90, base: 0.3}")
    bound = bind(parse(text, base=tmp_path))
    sink = FailingSink(tmp_path / "results", fails_at=2)
    with pytest.raises(RunError, match="crashed before the commit"):
        run_job(session, bound, bound.job(heartbeat=False), [sink], until_end=True)
    first = staged_rows(sink, 2)
    again = run_text(session, without.replace("slots: 2", "slots: 3"), tmp_path)
    assert Counter(read_rows(sorted((tmp_path / "results").glob("batch-000000002-*.parquet")))) == first
    # Batch 2 is the only one of the second run that began under the rule.
    assert all(counts.get("shed", 0) > 0 for counts in again.counts)
    assert first and not first - reference(given)


ARRIVALS = "SELECT ONLINE r.id AS r_id, s.id AS s_id FROM r, s WHERE r.k = s.k WITHIN 2 SECONDS"


def staged_rows(sink: ParquetSink, batch: int) -> Counter[tuple[Any, ...]]:
    return Counter(read_rows(sorted(sink.staging.glob(f"batch-{batch:09d}-*"))))


def read_rows(files: Sequence[Path]) -> list[tuple[Any, ...]]:
    import pyarrow.parquet as pq

    return [tuple(row.values()) for file in files for row in pq.read_table(file).to_pylist()]


def dead_letters(folder: Path) -> list[dict[str, Any]]:
    files = sorted((folder / "checkpoint" / "dead-letters").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]
