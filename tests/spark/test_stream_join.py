"""`stream_join` over DataFrames: exact in every sink, and after a restart."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from streamjoin.engine.operator import Operator
from streamjoin.errors import InputError
from streamjoin.operators.biclique import Biclique, Routing
from streamjoin.operators.matrix import Matrix
from streamjoin.spark.join import Stream, stream_join
from tests.conformance.check import expected, plan
from tests.conformance.histories import COLUMNS, History, history

from .jobs import STREAMS, check_same, query, result_rows, write_history

pytestmark = pytest.mark.spark

BATCHES = 4
END_S_MAX = 300
CONDITION, WINDOW = "equality, then band", "20 us"
COLUMN_TYPES = "id long, ts timestamp, k long, f double, x long, y double, n string, p decimal(9, 2)"


@pytest.fixture
def given() -> History:
    return history(3, r=120, s=110, time_shape="disordered", delay_us=15)


def joined(session: SparkSession, folder: Path, operator: Operator, slots: int = 2) -> DataFrame:
    """The join of the folders r and s, one file a batch."""
    streams = {}
    for stream in STREAMS:
        reader = session.readStream.schema(COLUMN_TYPES).option("maxFilesPerTrigger", 1)
        streams[stream] = Stream(reader.parquet(str(folder / stream)), "ts", delay_us=15)
    text = query(CONDITION, WINDOW)
    return stream_join(streams, text, operator=operator, checkpoint=folder / "state", slots=slots)


def reference(given: History) -> Counter[tuple[Any, ...]]:
    return Counter(expected(given, CONDITION, plan(given, CONDITION, WINDOW), BATCHES))


def to_the_end(query: StreamingQuery) -> None:
    try:
        assert query.awaitTermination(END_S_MAX), "the query does not end"
    finally:
        query.stop()


def test_the_types_above_are_those_of_the_histories() -> None:
    assert [part.split()[0] for part in COLUMN_TYPES.replace("(9, 2)", "").split(", ")] == COLUMNS.names


def test_results_go_into_memory(given: History, session: SparkSession, tmp_path: Path) -> None:
    write_history(given, tmp_path, BATCHES)
    rows = joined(session, tmp_path, Biclique(2, 2, Routing.HASH))
    assert rows.isStreaming and rows.columns == ["r_id", "s_id"]
    to_the_end(rows.writeStream.format("memory").queryName("joined").trigger(availableNow=True).start())
    check_same(Counter(tuple(row) for row in session.table("joined").collect()), reference(given))


def test_results_go_into_foreach_batch_and_can_be_transformed(
    given: History, session: SparkSession, tmp_path: Path
) -> None:
    write_history(given, tmp_path, BATCHES)
    rows = joined(session, tmp_path, Matrix(2, 1)).where("r_id % 2 = 0").selectExpr("s_id", "r_id")
    batches: list[list[tuple[Any, ...]]] = []

    def keep(frame: DataFrame, batch: int) -> None:
        batches.append([tuple(row) for row in frame.collect()])

    writer = rows.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "offsets"))
    to_the_end(writer.trigger(availableNow=True).start())
    assert len(batches) == BATCHES
    want = Counter({(s, r): count for (r, s), count in reference(given).items() if r % 2 == 0})
    check_same(Counter(pair for batch in batches for pair in batch), want)


@pytest.mark.soak
def test_a_restart_with_other_slots_goes_on_in_a_parquet_sink(
    given: History, session: SparkSession, tmp_path: Path
) -> None:
    for numbers, slots in ((range(2), 2), (range(2, BATCHES), 1), (range(0), 4)):
        write_history(given, tmp_path, BATCHES, numbers)
        rows = joined(session, tmp_path, Biclique(2, 3, Routing.HASH), slots)
        writer = rows.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "offsets"))
        to_the_end(writer.trigger(availableNow=True).start(str(tmp_path / "results")))
    check_same(result_rows(tmp_path / "results"), reference(given))


def test_a_batch_that_failed_in_the_sink_is_repeated_exactly(
    given: History, session: SparkSession, tmp_path: Path
) -> None:
    write_history(given, tmp_path, BATCHES)
    kept: dict[int, list[tuple[Any, ...]]] = {}
    failed: list[int] = []

    def keep(frame: DataFrame, batch: int) -> None:
        rows = [tuple(row) for row in frame.collect()]
        if batch == 2 and not failed:
            failed.append(batch)
            raise RuntimeError("the sink is full")
        assert batch not in kept
        kept[batch] = rows

    def start() -> StreamingQuery:
        rows = joined(session, tmp_path, Biclique(2, 2))
        writer = rows.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "offsets"))
        return writer.trigger(availableNow=True).start()

    with pytest.raises(Exception, match="the sink is full"):
        to_the_end(start())
    to_the_end(start())
    assert failed == [2] and sorted(kept) == list(range(BATCHES))
    check_same(Counter(pair for rows in kept.values() for pair in rows), reference(given))


def test_a_wrong_query_is_refused_before_anything_starts(given: History, session: SparkSession, tmp_path: Path) -> None:
    write_history(given, tmp_path, BATCHES)
    streams = {
        stream: Stream(session.readStream.schema(COLUMN_TYPES).parquet(str(tmp_path / stream)), "ts")
        for stream in STREAMS
    }
    with pytest.raises(InputError, match="nowhere"):
        stream_join(
            streams,
            "SELECT ONLINE r.id FROM r, s WHERE r.nowhere = s.k",
            operator=Biclique(1, 1),
            checkpoint=tmp_path / "state",
            slots=1,
        )
    assert not (tmp_path / "state").exists()
