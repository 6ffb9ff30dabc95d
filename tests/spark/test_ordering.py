"""Ordered results on a real Spark: files read by name, lines of a file, rows of a DataFrame, rows of a store."""

from __future__ import annotations

import json
import threading
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamjoin.errors import InputError, UnsupportedError
from streamjoin.operators.splitjoin import SplitJoin
from streamjoin.plan.ordering import Ordering
from streamjoin.results.follow import follow
from streamjoin.results.question import Question
from streamjoin.results.reader import Reader
from streamjoin.results.snapshot import FIRST
from streamjoin.spark.join import Stream, stream_join
from streamjoin.spec.joinfile import parse
from streamjoin.spec.outputs import store_job, store_spec
from streamjoin.spec.prepare import bind
from streamjoin.state.store import read_manifests
from tests.conformance.check import expected, plan
from tests.conformance.histories import History, history
from tests.conformance.test_ordering import BATCHES, Pair, falls, sequence

from .jobs import STREAMS, join_text, pairs_in_name_order, query, run_text, write_history
from .test_stream_join import COLUMN_TYPES, to_the_end

pytestmark = pytest.mark.spark

CONDITION = "band"


@pytest.fixture
def given() -> History:
    return history(3, r=120, s=110, time_shape="disordered", delay_us=15)


def check(pairs: list[Pair], given: History, window: str, ordering: Ordering) -> None:
    """All pairs, each once, in the promised order."""
    wanted = plan(given, CONDITION, window)
    assert Counter(pairs) == Counter(expected(given, CONDITION, wanted, BATCHES))
    assert falls(ordering, pairs, sequence(given, counted=window.endswith("rows"))) == []


@pytest.mark.parametrize(
    ("operator", "window", "ordering", "slots"),
    [
        pytest.param("name: splitjoin, cores: 3", "20 us", Ordering.OUTER, 2, marks=pytest.mark.soak),
        pytest.param("name: splitjoin, cores: 2, turn_tuples: 4", "7 rows", Ordering.INNER, 4, marks=pytest.mark.soak),
        pytest.param(
            "name: biclique, r_units: 2, s_units: 3", "full history", Ordering.TOTAL, 2, marks=pytest.mark.soak
        ),
        pytest.param("name: matrix, rows: 2, columns: 2", "7 rows", Ordering.TOTAL, 1, marks=pytest.mark.soak),
        ("name: handshake, workers: 3, block: 7", "20 us", Ordering.TOTAL, 2),
        pytest.param("name: handshake, workers: 4", "7 rows", Ordering.OUTER, 3, marks=pytest.mark.soak),
    ],
)
def test_files_in_name_order_are_in_order(
    operator: str, window: str, ordering: Ordering, slots: int, given: History, session: SparkSession, tmp_path: Path
) -> None:
    write_history(given, tmp_path, BATCHES)
    text = join_text(query(CONDITION, window), f"{operator}, ordering: {ordering}", delay_us=15, run=f"slots: {slots}")
    progress = run_text(session, text, tmp_path)
    check(pairs_in_name_order(tmp_path / "results"), given, window, ordering)
    assert progress.results == len(pairs_in_name_order(tmp_path / "results"))


@pytest.mark.soak
def test_a_restart_may_change_order_and_slots_and_cores(given: History, session: SparkSession, tmp_path: Path) -> None:
    starts = (("outer", 2, 3, range(2)), ("total", 3, 5, range(2, 4)), ("inner", 2, 2, range(4, BATCHES)))
    for ordering, slots, cores, numbers in starts:
        write_history(given, tmp_path, BATCHES, numbers=numbers)
        operator = f"name: splitjoin, cores: {cores}, turn_tuples: {slots}, ordering: {ordering}"
        text = join_text(
            query(CONDITION, "7 rows"), operator, delay_us=15, results="{jsonl: out.jsonl}", run=f"slots: {slots}"
        )
        run_text(session, text, tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    check([(row["r_id"], row["s_id"]) for row in rows], given, "7 rows", Ordering.OUTER)
    with pytest.raises(InputError, match="ordered results"):
        run_text(session, text.replace("ordering: inner", "ordering: none"), tmp_path)
    assert [unit for unit, _ in read_manifests(tmp_path / "checkpoint" / "state")] == [0, 1]


@pytest.mark.soak
def test_a_dataframe_is_in_order_batch_by_batch(given: History, session: SparkSession, tmp_path: Path) -> None:
    write_history(given, tmp_path, BATCHES)
    streams = {}
    for stream in STREAMS:
        reader = session.readStream.schema(COLUMN_TYPES).option("maxFilesPerTrigger", 1)
        streams[stream] = Stream(reader.parquet(str(tmp_path / stream)), "ts", delay_us=15)
    rows = stream_join(
        streams, query(CONDITION, "20 us"), operator=SplitJoin(2), checkpoint=tmp_path / "state", slots=2,
        ordering=Ordering.TOTAL,
    )  # fmt: skip
    pairs: list[Pair] = []
    written = rows.writeStream.foreachBatch(
        lambda frame, batch: pairs.extend((row.r_id, row.s_id) for row in frame.collect())
    )
    to_the_end(written.option("checkpointLocation", str(tmp_path / "query")).trigger(availableNow=True).start())
    check(pairs, given, "20 us", Ordering.TOTAL)


def test_followers_of_a_store_get_results_in_order(given: History, session: SparkSession, tmp_path: Path) -> None:
    write_history(given, tmp_path, BATCHES)
    text = join_text(
        query(CONDITION, "7 rows"), "name: splitjoin, cores: 3, ordering: total", delay_us=15,
        results="{store: sqlite, path: results.db, select: [s_id, r_id], "
        "snapshot: {batches: 2, threshold_rows: 20, immediate: true}}",
    )  # fmt: skip
    run_text(session, text, tmp_path)
    join = parse(text, base=tmp_path)
    reader = Reader(store_spec(join).open(), store_job(join))
    stop = threading.Event()
    pairs: list[Pair] = []
    for news in follow(reader, after=FIRST, question=Question(), stop=stop):
        pairs += [(row["r_id"], row["s_id"]) for batch in news.rows for row in batch.to_pylist()]
        if news.snapshot.id == reader.refresh().state.last:
            stop.set()
    assert len(reader.snapshots()) == 5, "the threshold closes a snapshot after each batch"
    check(pairs, given, "7 rows", Ordering.TOTAL)
    with pytest.raises(UnsupportedError, match="by event time"):
        bind(
            parse(
                text.replace("batches: 2, threshold_rows: 20, immediate: true", "punctuation: true").replace(
                    "delay: 15us", "delay: 15us, punctuate: {every: 1s}"
                ),
                base=tmp_path,
            )
        )


@pytest.mark.parametrize(
    ("operator", "message"),
    [
        ("name: spark, ordering: outer", "in no order"),
        ("name: splitjoin, ordering: sorted", "is not a valid ordering; use none, outer, inner, total"),
        ("name: splitjoin, cores: 0", "is not a whole number"),
        ("name: splitjoin, turn_tuples: two", "is not a whole number"),
        ("name: splitjoin, workers: 2", "its knobs are cores, turn_tuples"),
    ],
)
def test_orders_and_knobs_that_cannot_be_are_named(operator: str, message: str, tmp_path: Path) -> None:
    write_history(history(3, r=5, s=5), tmp_path, 1)
    with pytest.raises((InputError, UnsupportedError), match=message):
        bind(parse(join_text(query("equality", "20 us"), operator), base=tmp_path))
