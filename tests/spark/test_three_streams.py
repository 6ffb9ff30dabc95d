"""Joins of three streams on Spark: exact by every operator, after restarts and kills, of topics and of DataFrames."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from streamjoin.engine.operator import Operator
from streamjoin.engine.state import UnitState
from streamjoin.operators.biclique import Biclique, Routing
from streamjoin.operators.ring import Ring
from streamjoin.results.question import Question
from streamjoin.spark import driver, join
from streamjoin.spark.join import Stream, stream_join
from streamjoin.spark.progress import Progress
from streamjoin.spark.run import report, run_job
from streamjoin.spec.joinfile import load
from streamjoin.spec.prepare import bind
from streamjoin.state.store import read_manifests
from tests import duck
from tests.conformance.loops import cut
from tests.conformance.test_three_streams import QUERIES, nested_loop, rows
from tests.servers import KafkaBroker

from . import losing
from .command import KILLS_S_MAX, Command
from .jobs import check_same, crash, result_rows, run_text, run_to_the_end, unique, write_file
from .test_store_crashes import reader_of, rows_of

pytestmark = pytest.mark.spark

NAMES = ("a", "b", "c")
BATCHES = 4
QUERY, CONDITION, WITHIN_US = QUERIES["equalities in a row"]
HASH = "name: biclique, routing: hash, r_units: 3, s_units: 2"
CASES = {
    HASH: "{parquet: results}",
    "name: matrix, rows: 2, columns: 2": "{store: sqlite, path: results.db, snapshot: {batches: 1}}",
    "name: splitjoin, cores: 3, turn_tuples: 5": "{jsonl: results.jsonl}",
    "name: handshake, workers: 2, block: 4": "{parquet: results}",
    "name: ring, nodes: 3, orders: {a: [c, b]}": "{store: sqlite, path: results.db, snapshot: {batches: 1}}",
    "name: coordinated, nodes: 3, segment: 40us": "{parquet: results}",
    "name: aligned, nodes: 3, segment: 40us": "{jsonl: results.jsonl}",
}
"""By operator, where results go."""

History = Sequence[pa.RecordBatch]


def history(seed: int) -> list[pa.RecordBatch]:
    """Rows of a, b and c; enough of them join."""
    return [rows(10 * seed + place) for place in range(len(NAMES))]


def write(given: History, folder: Path, numbers: Iterable[int] = range(BATCHES)) -> None:
    """Every stream as one file a batch."""
    chosen = set(numbers)
    for number, pieces in enumerate(cut(given, BATCHES)):
        if number in chosen:
            for name, parts in zip(NAMES, pieces, strict=True):
                whole = pa.Table.from_batches(parts).combine_chunks().to_batches()
                write_file(folder / name, number, whole[0])


def text(operator: str = HASH, results: str = "{parquet: results}", slots: int = 2, **others: str) -> str:
    """A join file over folders; `others` has the line of a stream that is none."""
    lines = {name: f"{{source: parquet, path: {name}, time: ts, delay: 15us}}" for name in NAMES} | others
    streams = "\n".join(f"  {name}: {line}" for name, line in lines.items())
    return (
        f"streams:\n{streams}\nquery: {QUERY!r}\noperator: {{{operator}}}\nresults: {results}\n"
        f"run: {{checkpoint: checkpoint, files_per_batch: 1, slots: {slots}}}\n"
    )


def write_join_file(folder: Path, content: str) -> Path:
    file = folder / "join.yaml"
    file.write_text(content)
    return file


def want(given: History) -> Counter[Any]:
    found = nested_loop(given, CONDITION, WITHIN_US)
    assert found.total() > 10
    return found


def found_in(folder: Path) -> Counter[Any]:
    """The results, wherever they went."""
    if (folder / "results.jsonl").exists():
        lines = (folder / "results.jsonl").read_text().splitlines()
        return Counter(tuple(json.loads(line)[name] for name in NAMES) for line in lines)
    if (folder / "results.db").exists():
        return rows_of(reader_of(folder / "join.yaml"), Question(select=NAMES))
    return result_rows(folder / "results")


def versions(folder: Path, stage: int) -> dict[int, int]:
    """The newest version of each unit's state."""
    return {
        int(unit.name): max(int(path.stem) for path in unit.glob("*.json"))
        for unit in (folder / "checkpoint" / "state" / str(stage)).iterdir()
    }


@pytest.mark.parametrize(
    "operator",
    [pytest.param(name, marks=[] if name == HASH else [pytest.mark.soak]) for name in CASES],
)
def test_every_operator_joins_them_exactly_and_goes_on_with_other_slots(
    operator: str, session: SparkSession, tmp_path: Path
) -> None:
    given = history(2)
    content = text(operator, CASES[operator])
    file = write_join_file(tmp_path, content)
    write(given, tmp_path, range(2))
    run_to_the_end(session, file, 2)
    begun = found_in(tmp_path)
    assert 0 < begun.total() < want(given).total()
    write(given, tmp_path, range(2, BATCHES))
    run_to_the_end(session, file, 3)
    check_same(found_in(tmp_path), want(given))
    assert run_text(session, content, tmp_path).batches == 0


def test_a_stage_that_is_repeated_after_the_next_one_has_begun_sends_the_same(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, notes = history(6), tmp_path / "notes"
    write(given, tmp_path)
    notes.mkdir()
    monkeypatch.setattr(join, "feeding_rows", partial(losing.feeding_rows, notes))
    monkeypatch.setattr(driver, "unit_reports", partial(losing.unit_reports, notes))
    # More slots than cores: some tasks of the second stage begin when others have read what was sent at first.
    assert run_text(session, text(slots=4), tmp_path).reconnects == 0
    sent = losing.sent(notes)
    repeated = {place: attempts for place, attempts in sent.items() if len(attempts) > 1}
    assert {batch for batch, _ in repeated} == {losing.LOST_BATCH} and any(
        attempts[0] for attempts in repeated.values()
    )
    assert all(again == first for first, *others in repeated.values() for again in others)
    check_same(found_in(tmp_path), want(given))


def test_a_driver_that_dies_between_goes_on_exactly(session: SparkSession, tmp_path: Path) -> None:
    given = history(3)
    write(given, tmp_path)
    file = write_join_file(tmp_path, text())
    crash(session, file, "batch.before_commit:2", 2)
    # Units of the second stage that had not come to write their state, while the first stage's had.
    newest = versions(tmp_path, 0)
    assert set(newest.values()) == {2} == set(versions(tmp_path, 1).values())
    for unit in (0, 2):
        (tmp_path / "checkpoint" / "state" / "1" / str(unit) / "2.json").unlink()
    crash(session, file, "batch.mid_commit:1", 3)
    crash(session, file, "batch.after_commit:2", 1)
    run_to_the_end(session, file, 4)
    check_same(found_in(tmp_path), want(given))


@pytest.mark.soak
@pytest.mark.kills
@pytest.mark.timeout(KILLS_S_MAX)
@pytest.mark.parametrize("place", ["unit.mid_results:3", "unit.before_manifest:7"])
def test_a_job_killed_in_a_stage_goes_on_exactly(place: str, session: SparkSession, tmp_path: Path) -> None:
    given = history(4)
    write(given, tmp_path)
    file = write_join_file(tmp_path, text())
    name, _, visit = place.partition(":")
    with Command(file, "--until-end", "--quiet", failpoints=f"{name}:kill:{visit}") as command:
        assert command.exit_status() == -signal.SIGKILL, command.output()
    assert found_in(tmp_path).total() < want(given).total()
    run_to_the_end(session, file, 3)
    check_same(found_in(tmp_path), want(given))


@pytest.mark.soak
def test_a_chain_of_each_stage_becomes_longer_and_shorter(session: SparkSession, tmp_path: Path) -> None:
    given = history(5)

    def of(workers: int) -> str:
        return text(f"name: handshake, workers: {workers}, block: 4", slots=workers)

    write(given, tmp_path, range(2))
    crash(session, write_join_file(tmp_path, of(2)), "batch.before_commit:3")  # the first of those that drain
    run_text(session, of(4), tmp_path)
    write(given, tmp_path, range(2, BATCHES))
    progress = run_text(session, of(1), tmp_path)
    check_same(found_in(tmp_path), want(given))
    assert sorted(unit["label"] for unit in progress.units.values()) == ["1.worker 0", "2.worker 0"]
    recorded = json.loads((tmp_path / "checkpoint" / "job.json").read_text())
    assert (recorded["units"], recorded["resizes"]) == ([1, 1], 4)


@pytest.mark.soak
@pytest.mark.parametrize("operator", [Biclique(2, 2, Routing.HASH), Ring(3, {"b": 2}, {"a": ["c", "b"]})], ids=str)
def test_dataframes_are_joined(operator: Operator, session: SparkSession, tmp_path: Path) -> None:
    given = history(6)
    write(given, tmp_path)
    streams = {}
    for name in NAMES:
        reader = session.readStream.schema("ts long, id long, k long, x long").option("maxFilesPerTrigger", 1)
        streams[name] = Stream(reader.parquet(str(tmp_path / name)), "ts", delay_us=15)
    joined: DataFrame = stream_join(streams, QUERY, operator=operator, checkpoint=tmp_path / "state", slots=2)
    assert joined.isStreaming and joined.columns == list(NAMES)
    name = unique("three").replace("-", "_")
    writer = joined.writeStream.format("memory").queryName(name).option("checkpointLocation", str(tmp_path / "query"))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(300)
    check_same(Counter(tuple(row) for row in session.table(name).collect()), want(given))


@pytest.mark.services
@pytest.mark.soak
def test_a_topic_enters_at_the_second_stage(broker: KafkaBroker, session: SparkSession, tmp_path: Path) -> None:
    given = history(7)
    topic = unique("rows-c")
    broker.create_topic(topic, 2)
    line = (
        f"{{source: kafka, servers: '{broker.servers}', topic: {topic}, format: json, "
        "schema: {ts: int64, id: int64, k: int64, x: int64}, time: ts, delay: 1ms}"
    )
    of_two = text(c=line).replace("files_per_batch: 1", "files_per_batch: 2")
    arrived = 0
    for half in (range(2), range(2, BATCHES)):
        write(given, tmp_path, half)
        pieces = [rows for number, streams in enumerate(cut(given, BATCHES)) if number in half for rows in streams[2]]
        for partition, piece in enumerate(pieces):
            broker.produce(topic, [json.dumps(row).encode() for row in piece.to_pylist()], partition % 2)
        progress = run_text(session, of_two.replace("slots: 2", f"slots: {2 + half.start // 2}"), tmp_path)
        assert progress.late == [0, 0, 0]
        arrived += progress.tuples_in[2]
    assert arrived == given[2].num_rows
    check_same(found_in(tmp_path), want(given))


def silent(given: History, folder: Path, content: str, session: SparkSession) -> list[UnitState]:
    """The first stage's units after a run of 12 batches, of which the first two alone bring rows of c."""
    for number, pieces in enumerate(cut(given, 12)):
        for name, parts in zip(NAMES, pieces, strict=True):
            if parts[0].num_rows and (name != "c" or number < 2):
                write_file(folder / name, number, pa.Table.from_batches(parts).combine_chunks().to_batches()[0])
    progress = run_text(session, content, folder)
    assert progress.batches == 12 and progress.late == [0, 0, 0]
    return [state for _, state in read_manifests(folder / "checkpoint" / "state", 0)]


@pytest.mark.soak
def test_a_stream_that_is_silent_in_the_second_stage_holds_back_the_first_no_longer(
    session: SparkSession, tmp_path: Path
) -> None:
    given = [rows(90 + place, 600) for place in range(3)]
    kept = {}
    for name, idle in (("idle", ", idle: 1s"), ("never", "")):
        content = text().replace("path: c,", f"path: c{idle},")
        states = silent(given, tmp_path / name, content, session)
        clocks = [(*state.clocks, *state.elsewhere.values()) for state in states]
        marks = {tuple(clock.mark_us for clock in found) for found in clocks}
        assert len(marks) == 1, "all units have decided the same"
        if idle:
            a, b, c = marks.pop()
            assert c == min(a, b) > 3_000
        second = [state for _, state in read_manifests(tmp_path / name / "checkpoint" / "state", 1)]
        kept[name] = sum(info.rows for state in second for info in state.tuples())
    assert kept["idle"] < kept["never"] / 5


@pytest.mark.services
def test_a_silent_topic_of_the_second_stage_is_heard_of_in_the_first(
    broker: KafkaBroker, session: SparkSession, tmp_path: Path
) -> None:
    given = [rows(70 + place, 600) for place in range(3)]
    topic = unique("rows-c")
    broker.create_topic(topic, 2)
    line = (
        f"{{source: kafka, servers: '{broker.servers}', topic: {topic}, format: json, idle: 1s, "
        "schema: {ts: int64, id: int64, k: int64, x: int64}, time: ts, delay: 1ms}"
    )
    for number, streams in enumerate(cut(given, 12)):
        for partition, piece in enumerate(streams[2] if number < 2 else []):
            broker.produce(topic, [json.dumps(row).encode() for row in piece.to_pylist()], partition % 2)
    states = silent([*given[:2], given[2].slice(0, 0)], tmp_path, text(c=line), session)
    marks = {tuple(clock.mark_us for clock in (*state.clocks, *state.elsewhere.values())) for state in states}
    ((a, b, c),) = marks
    assert c == min(a, b) > 3_000
    in_time = [*given[:2], pa.concat_batches([rows for streams in list(cut(given, 12))[:2] for rows in streams[2]])]
    check_same(found_in(tmp_path), nested_loop(in_time, CONDITION, WITHIN_US))


def told(session: SparkSession, file: Path) -> tuple[dict[str, Any], Progress]:
    """The report of a run to the end."""
    bound = bind(load(file))
    job = bound.job(heartbeat=False)
    progress = run_job(session, bound, job, bound.sinks(), until_end=True)
    return report(bound, job, progress, 1.0, 0), progress


@pytest.mark.soak
def test_the_third_stream_sheds_and_the_report_says_so_by_its_name(session: SparkSession, tmp_path: Path) -> None:
    given = [rows(80 + place, 200) for place in range(3)]
    write(given, tmp_path)
    content = text().replace("path: c,", "path: c, shed: {threshold: 1, capacity: 12, base: 0.2},")
    found, progress = told(session, write_join_file(tmp_path, content))
    assert found["shed"]["a"] == found["shed"]["b"] == 0 < found["shed"]["c"] < 200
    assert found["approximate"] is True
    clocks = {state.clocks[1].shed for _, state in read_manifests(tmp_path / "checkpoint" / "state", 1)}
    assert clocks == {found["shed"]["c"]}
    got, exact = found_in(tmp_path), want(given)
    assert got and not got - exact and got.total() < exact.total()
    assert progress.counts[2]["shed"] == found["shed"]["c"]


def test_the_report_is_by_stream_and_by_stage(session: SparkSession, tmp_path: Path) -> None:
    given = history(9)
    write(given, tmp_path)
    # One row of c comes when its partners are gone.
    far = pa.RecordBatch.from_pylist([{"ts": 0, "id": 999, "k": 0, "x": 0}], schema=given[2].schema)
    write_file(tmp_path / "c", BATCHES, far)
    found, _ = told(session, write_join_file(tmp_path, text()))
    nulls = {name: part.column("k").null_count for name, part in zip(NAMES, given, strict=True)}
    assert found["null_keys"] == nulls and min(nulls.values()) > 0
    assert found["tuples_in"] == {"a": 60, "b": 60, "c": 61}
    assert found["late"] == {"a": 0, "b": 0, "c": 1}
    assert found["results"] == found_in(tmp_path).total() == want(given).total()
    labels = [unit["label"] for unit in found["units"]]
    assert labels == [f"{stage}.{unit}" for stage in (1, 2) for unit in ("R0", "R1", "R2", "S0", "S1")]
    second = found["units"][5:]
    assert sum(unit["results"] for unit in second) == found["results"]
    # What the first stage found is received by the second one, beside c.
    ((pairs,),) = duck.rows(
        f"SELECT count(*) FROM '{tmp_path}/a/*.parquet' a, '{tmp_path}/b/*.parquet' b "
        f"WHERE a.k = b.k AND abs(a.ts - b.ts) <= {WITHIN_US}"
    )
    assert sum(unit["results"] for unit in found["units"][:5]) == pairs
