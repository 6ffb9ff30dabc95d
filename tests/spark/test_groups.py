"""GROUP BY with a window on Spark: exact over joins and over one stream, after restarts and kills."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from streamjoin.operators.biclique import Biclique, Routing
from streamjoin.results.answer import ask
from streamjoin.results.question import Question
from streamjoin.spark.join import Stream, stream_join
from streamjoin.spark.run import report, run_job
from streamjoin.spec.joinfile import load
from streamjoin.spec.prepare import bind
from tests.conformance.groups import Windowed, joined, rows, windowed
from tests.conformance.loops import cut

from .command import KILLS_S_MAX, Command
from .jobs import crash, run_to_the_end, write_file
from .test_store_crashes import reader_of

pytestmark = pytest.mark.spark

NAMES = ("a", "b")
BATCHES = 4
PAIRS = (
    "SELECT ONLINE a.t, WINDOW_START() AS since, COUNT(*) AS n, SUM(b.x) AS sx, SUM(b.f) AS sf, MAX(b.d) AS md "
    "FROM a, b WHERE a.k = b.k WITHIN 20 MICROSECONDS GROUP BY a.t, TUMBLE(40 MICROSECONDS)"
)
ONE = (
    "SELECT ONLINE k, WINDOW_START() AS since, COUNT(*) AS n, SUM(x) AS sx FROM a GROUP BY k, "
    "HOP(20 MICROSECONDS, 60 MICROSECONDS)"
)

History = Sequence[pa.RecordBatch]


def history(seed: int) -> list[pa.RecordBatch]:
    return [rows(10 * seed + place, 80) for place in range(len(NAMES))]


def write(given: History, folder: Path, numbers: Iterable[int] = range(BATCHES)) -> None:
    """Every stream as one file a batch."""
    chosen = set(numbers)
    for number, pieces in enumerate(cut(given, BATCHES, 1)):
        if number in chosen:
            for name, (part,) in zip(NAMES, pieces, strict=True):
                write_file(folder / name, number, part)


def join_file(folder: Path, query: str = PAIRS, results: str = "{parquet: results}", slots: int = 2) -> Path:
    streams = "\n".join(f"  {name}: {{source: parquet, path: {name}, time: ts, delay: 15us}}" for name in NAMES)
    file = folder / "join.yaml"
    file.write_text(
        f"streams:\n{streams}\nquery: {query!r}\nresults: {results}\n"
        f"run: {{checkpoint: checkpoint, files_per_batch: 1, slots: {slots}}}\n"
    )
    return file


def want(given: History) -> dict[Any, Any]:
    """By (key, start), (count, sum of x)."""
    pairs = joined(given, lambda a, b: a["k"] == b["k"] is not None, 20)
    groups = windowed(pairs, Windowed(40, 40, lambda pair: pair[0]["t"]))
    return {(key, start): counted([b for _, b in of]) for (start, key), of in groups.items()}


def want_of_one(given: History) -> dict[Any, Any]:
    groups = windowed(joined(given[:1], lambda row: True), Windowed(20, 60, lambda pair: pair[0]["k"]))
    return {(key, start): counted([row for (row,) in of]) for (start, key), of in groups.items()}


def counted(of: list[dict[str, Any]]) -> tuple[int, int | None]:
    values = [row["x"] for row in of if row["x"] is not None]
    return len(of), sum(values) if values else None


def by_group(found: Iterable[dict[str, Any]]) -> dict[Any, Any]:
    out: dict[Any, Any] = {}
    for row in found:
        key, since, n, sx, *_ = row.values()
        at = key, round(since.timestamp() * 1e6)
        assert at not in out, f"{at} was given twice"
        out[at] = n, sx
    return out


def in_files(folder: Path) -> list[dict[str, Any]]:
    return ds.dataset(folder / "results").to_table().to_pylist()


@pytest.mark.soak
def test_windows_of_a_join_go_on_with_other_slots(session: SparkSession, tmp_path: Path) -> None:
    given = history(2)
    write(given, tmp_path)
    file = join_file(tmp_path)
    crash(session, file, "batch.before_commit:3", 2)
    begun = by_group(in_files(tmp_path))
    join_file(tmp_path, slots=3)
    run_to_the_end(session, file, 3)
    found = by_group(in_files(tmp_path))
    assert 0 < len(begun) < len(found)
    assert found == want(given)
    run_to_the_end(session, file, 1)  # nothing is given twice, and the end was told
    assert by_group(in_files(tmp_path)) == found


def test_what_comes_after_the_end_is_of_later_windows_or_late(session: SparkSession, tmp_path: Path) -> None:
    given = history(3)
    write(given, tmp_path, range(2))
    file = join_file(tmp_path, ONE)
    run_to_the_end(session, file, 2)
    first = by_group(in_files(tmp_path))
    write(given, tmp_path, range(2, BATCHES))
    bound = bind(load(file))
    job = bound.job(heartbeat=False)
    told = report(bound, job, run_job(session, bound, job, bound.sinks(), until_end=True), 1.0, 0)
    found, wanted = by_group(in_files(tmp_path)), want_of_one(given)
    assert first.items() <= found.items()
    end = max(start for _, start in first)
    assert {at: value for at, value in found.items() if at[1] > end} == {
        at: value for at, value in wanted.items() if at[1] > end
    }
    assert told["groups"]["late"] == told["late"]["a"] > 0
    assert told["groups"]["views"] > 0 and told["groups"]["tuples"] == given[0].num_rows // 2
    assert told["operator"] == "aggregate" and told["results"] == len(found) - len(first)


def test_groups_in_a_store_are_found_by_time_and_key(session: SparkSession, tmp_path: Path) -> None:
    given = history(4)
    write(given, tmp_path)
    file = join_file(tmp_path, ONE, "{store: sqlite, path: results.db, snapshot: {batches: 1}}")
    run_to_the_end(session, file, 2)
    wanted = want_of_one(given)
    reader = reader_of(file)

    def asked(question: Question) -> dict[Any, Any]:
        return by_group(row for batch in ask(reader, question) for row in batch.to_pylist())

    assert asked(Question()) == wanted
    assert asked(Question(key=2)) == {at: value for at, value in wanted.items() if at[0] == 2}
    # A group's time is its window's last microsecond.
    some = asked(Question(from_us=100, to_us=179))
    assert some == {at: value for at, value in wanted.items() if 100 <= at[1] + 59 <= 179} != {}


@pytest.mark.soak
@pytest.mark.kills
@pytest.mark.timeout(KILLS_S_MAX)
@pytest.mark.parametrize("place", ["unit.before_manifest:11", "unit.before_manifest:6", "unit.mid_results:4"])
def test_a_job_killed_between_the_phases_goes_on_exactly(place: str, session: SparkSession, tmp_path: Path) -> None:
    given = history(5)
    write(given, tmp_path)
    file = join_file(tmp_path)
    name, _, visit = place.partition(":")
    with Command(file, "--until-end", "--quiet", failpoints=f"{name}:kill:{visit}") as command:
        assert command.exit_status() == -signal.SIGKILL, command.output()
    run_to_the_end(session, file, 3)
    assert by_group(in_files(tmp_path)) == want(given)


def test_the_views_of_the_second_phase_may_be_lost_before_they_are_committed(
    session: SparkSession, tmp_path: Path
) -> None:
    given = history(6)
    write(given, tmp_path)
    file = join_file(tmp_path)
    crash(session, file, "batch.before_commit:2", 2)
    # The joins' units had come to write their state, and one of the groups' had not.
    (tmp_path / "checkpoint" / "state" / "1" / "0" / "2.json").unlink()
    run_to_the_end(session, file, 4)
    assert by_group(in_files(tmp_path)) == want(given)


def found_of_dataframes(session: SparkSession, folder: Path, query: str, slots: int) -> list[dict[str, Any]]:
    """Join DataFrames of what is there; all rows that have been given by now."""
    streams = {}
    for path in sorted(folder.glob("?")):
        reader = session.readStream.schema("ts long, id long, k long, x long, f double, t string, d decimal(20,2)")
        streams[path.name] = Stream(reader.option("maxFilesPerTrigger", 1).parquet(str(path)), "ts", delay_us=15)
    operator = Biclique(2, 2, Routing.HASH)
    found = stream_join(streams, query, operator=operator, checkpoint=folder / "state", slots=slots)
    writer = found.writeStream.format("parquet").option("checkpointLocation", str(folder / "offsets"))
    assert writer.trigger(availableNow=True).start(str(folder / "results")).awaitTermination(300)
    return in_files(folder)


@pytest.mark.soak
def test_groups_of_dataframes(session: SparkSession, tmp_path: Path) -> None:
    given = history(7)
    for numbers, slots in ((range(2), 2), (range(2, 3), 1), (range(3, BATCHES), 3)):
        write(given, tmp_path, numbers)
        mine = by_group(found_of_dataframes(session, tmp_path, PAIRS, slots))
    # Open windows wait: a DataFrame's source does not say that it has ended.
    wanted = want(given)
    assert len(mine) > 10 and mine.items() <= wanted.items()
    reached = min(max(part.column("ts").to_pylist()) for part in given) - 15
    assert {at for at in wanted if at[1] + 40 <= reached} == mine.keys()


@pytest.mark.soak
def test_the_command_line_says_what_it_gave(tmp_path: Path) -> None:
    given = history(8)
    write(given, tmp_path)
    file = join_file(tmp_path, ONE)
    with Command(file, "--until-end", "--report", str(tmp_path / "report.json")) as command:
        assert command.exit_status() == 0, command.output()
    told = json.loads((tmp_path / "report.json").read_text())
    assert told["results"] == len(want_of_one(given))


@pytest.mark.soak
def test_rows_without_partner_are_in_the_groups_at_the_end(session: SparkSession, tmp_path: Path) -> None:
    given = history(9)
    write(given, tmp_path)
    query = PAIRS.replace("FROM a, b WHERE a.k = b.k", "FROM a LEFT JOIN b ON a.k = b.k").replace(
        "a.t, WIN", "a.k, WIN"
    )
    run_to_the_end(session, join_file(tmp_path, query.replace("GROUP BY a.t", "GROUP BY a.k")), 2)
    pairs = joined(given, lambda a, b: a["k"] == b["k"] is not None, 20)
    met = {pair[0]["id"] for _, pair in pairs}
    alone = [(row["ts"], (row, {"x": None})) for row in given[0].to_pylist() if row["id"] not in met]
    groups = windowed([*pairs, *alone], Windowed(40, 40, lambda pair: pair[0]["k"]))
    assert len(alone) > 10
    assert by_group(in_files(tmp_path)) == {
        (k, start): counted([b for _, b in of]) for (start, k), of in groups.items()
    }
