"""As-of joins on Spark: exact after restarts, kills and with other slots; by DataFrame; in a store."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from streamjoin.errors import InputError
from streamjoin.operators.asof import AsOfJoin
from streamjoin.operators.biclique import Biclique, Routing
from streamjoin.results.question import Question
from streamjoin.spark.join import Stream, stream_join
from tests.conformance import test_asof_deletes as asof_deletes
from tests.conformance import test_asof_stages as stages
from tests.conformance.test_asof import DISORDER_US, cut, nested_loop, rows, text
from tests.conformance.test_asof_deletes import changes

from .command import KILLS_S_MAX, Command
from .jobs import check_same, crash, result_rows, run_text, run_to_the_end, unique, write_file
from .test_store_crashes import reader_of, rows_of

pytestmark = pytest.mark.spark

BATCHES = 5
QUERY = text("two", "not older than 25", keeps=True, older=False)

History = Sequence[pa.RecordBatch]


def history(seed: int) -> list[pa.RecordBatch]:
    return [rows(10 * seed), rows(10 * seed + 1)]


def write(given: History, folder: Path, numbers: Iterable[int] = range(BATCHES)) -> None:
    chosen = set(numbers)
    for number, pieces in enumerate(cut(given, BATCHES, 1)):
        if number in chosen:
            for name, (mine,) in zip("tqc", pieces, strict=False):
                write_file(folder / name, number, pa.Table.from_batches([mine]).combine_chunks().to_batches()[0])


def join_file(
    folder: Path, results: str = "{parquet: results}", query: str = QUERY, ends: str = "", names: str = "tq"
) -> Path:
    """`ends` says more of the stream q."""
    streams = "\n".join(
        f"  {name}: {{source: parquet, path: {name}, time: ts, delay: {DISORDER_US}us{ends if name == 'q' else ''}}}"
        for name in names
    )
    operator = "operator: {units: 3}\n" if len(names) == 2 else ""
    file = folder / "join.yaml"
    file.write_text(
        f"streams:\n{streams}\nquery: {query!r}\n{operator}results: {results}\n"
        "run: {checkpoint: checkpoint, files_per_batch: 1, slots: 2}\n"
    )
    return file


def want(given: History) -> Counter[Any]:
    return nested_loop(given[0], given[1], ("k", "sym"), 25, keeps=True, older=False)


def test_each_row_is_given_once_with_what_it_gets(session: SparkSession, tmp_path: Path) -> None:
    given = history(2)
    file = join_file(tmp_path)
    write(given, tmp_path)
    crash(session, file, "batch.before_commit:2", 2)
    crash(session, file, "batch.mid_commit:1", 3)
    run_to_the_end(session, file, 4)
    check_same(result_rows(tmp_path / "results"), want(given))
    assert run_text(session, file.read_text(), tmp_path).batches == 0


@pytest.mark.soak
def test_rows_that_end_their_key_do_so_after_a_restart(session: SparkSession, tmp_path: Path) -> None:
    given = [rows(60), changes(61, ("k", "sym"))]
    query = asof_deletes.text("two", "any age", keeps=True, older=False)
    file = join_file(tmp_path, query=query, ends=", key: [k, sym], deletes: true")
    write(given, tmp_path)
    crash(session, file, "batch.before_commit:2", 2)
    run_to_the_end(session, file, 4)
    wanted = asof_deletes.nested_loop(*given, ("k", "sym"), None, keeps=True, older=False)
    check_same(result_rows(tmp_path / "results"), wanted)
    assert sum(n for row, n in wanted.items() if row[3] is None) > 20
    join_file(tmp_path, query=query)  # without deletes, where the state is of some
    with pytest.raises(InputError, match="belongs to another join, with other streams"):
        run_to_the_end(session, file, 2)


@pytest.mark.soak
@pytest.mark.parametrize("asked", ["as-of first", "pairs enriched"])
def test_beside_a_window_join_it_is_a_stage_that_goes_on_too(asked: str, session: SparkSession, tmp_path: Path) -> None:
    given = [rows(70 + number, 90) for number in range(3)]
    (joined, oracle), (span, reaches_us) = stages.QUERIES[asked], stages.WITHIN["one each"]
    file = join_file(tmp_path, query=f"{stages.SELECT} {joined} {span}", names="tqc")
    write(given, tmp_path)
    crash(session, file, "batch.before_commit:3", 2)
    run_to_the_end(session, file, 3)
    o = stages.of(given, reaches_us)
    check_same(result_rows(tmp_path / "results"), o.given(oracle(o)))


@pytest.mark.soak
@pytest.mark.kills
@pytest.mark.timeout(KILLS_S_MAX)
@pytest.mark.parametrize("place", ["unit.mid_results:2", "unit.before_manifest:5"])
def test_a_job_that_is_killed_goes_on_exactly(place: str, session: SparkSession, tmp_path: Path) -> None:
    given = history(3)
    write(given, tmp_path)
    file = join_file(tmp_path)
    name, _, visit = place.partition(":")
    with Command(file, "--until-end", "--quiet", failpoints=f"{name}:kill:{visit}") as command:
        assert command.exit_status() == -signal.SIGKILL, command.output()
    run_to_the_end(session, file, 3)
    check_same(result_rows(tmp_path / "results"), want(given))


def test_a_store_has_rows_without_a_partner_too(session: SparkSession, tmp_path: Path) -> None:
    given = history(4)
    write(given, tmp_path)
    file = join_file(tmp_path, "{store: sqlite, path: results.db, snapshot: {batches: 1}}")
    run_to_the_end(session, file, 2)
    found = rows_of(reader_of(file), Question(select=("t", "q", "x")))
    check_same(found, want(given))
    assert any(row[1] is None for row in found)


@pytest.mark.soak
def test_dataframes_are_joined(session: SparkSession, tmp_path: Path) -> None:
    given = history(5)
    write(given, tmp_path)
    streams = {}
    for name in "tq":
        reader = session.readStream.schema("ts long, id long, k long, sym string, x decimal(9,2)")
        rows_of_stream = reader.option("maxFilesPerTrigger", 1).parquet(str(tmp_path / name))
        streams[name] = Stream(rows_of_stream, "ts", delay_us=DISORDER_US)
    joined = stream_join(streams, QUERY, operator=AsOfJoin(2), checkpoint=tmp_path / "state", slots=2)
    name = unique("asof").replace("-", "_")
    writer = joined.writeStream.format("memory").queryName(name).option("checkpointLocation", str(tmp_path / "query"))
    assert writer.trigger(availableNow=True).start().awaitTermination(300)
    found = Counter(tuple(row) for row in session.table(name).collect())
    # A DataFrame has no end: the rows that the right stream's watermark has not passed wait for more.
    ends_us = max(given[1].column("ts").to_pylist()) - DISORDER_US
    ready = {row["id"] for row in given[0].to_pylist() if row["ts"] < ends_us}
    check_same(found, Counter({row: n for row, n in want(given).items() if row[0] in ready}))


@pytest.mark.soak
def test_dataframes_are_joined_beside_others_and_their_keys_end(session: SparkSession, tmp_path: Path) -> None:
    given = [rows(80, 90), changes(81, ("k",), 90), rows(82, 90)]
    write(given, tmp_path)
    (asked, oracle), (span, reaches_us) = stages.QUERIES["as-of first"], stages.WITHIN["one each"]
    streams = {}
    for name in "tqc":
        reader = session.readStream.schema("ts long, id long, k long, sym string, x decimal(9,2)")
        rows_of_stream = reader.option("maxFilesPerTrigger", 1).parquet(str(tmp_path / name))
        key = ("k",) if name == "q" else ()
        streams[name] = Stream(rows_of_stream, "ts", delay_us=DISORDER_US, key=key)
    query = f"{stages.SELECT} {asked} {span}"
    operator = Biclique(2, 2, Routing.HASH)
    found = stream_join(streams, query, operator=operator, checkpoint=tmp_path / "state", slots=2)
    name = unique("asof").replace("-", "_")
    writer = found.writeStream.format("memory").queryName(name).option("checkpointLocation", str(tmp_path / "query"))
    assert writer.trigger(availableNow=True).start().awaitTermination(300)
    ends_us = max(given[1].column("ts").to_pylist()) - DISORDER_US
    ready = {row["id"] for row in given[0].to_pylist() if row["ts"] < ends_us}
    o = stages.of(given, reaches_us)
    wanted = Counter({row: n for row, n in o.given(oracle(o)).items() if row[0] in ready})
    check_same(Counter(tuple(row) for row in session.table(name).collect()), wanted)
