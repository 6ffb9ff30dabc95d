"""Groups that change on Spark: exact at every moment that was given, after restarts with other slots and kills."""

from __future__ import annotations

import datetime as dt
import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from streamjoin.results.answer import ask
from streamjoin.results.question import Question
from tests.conformance.changes import Asked, check_table, moment_of, replayed
from tests.conformance.groups import Pair, is_close, joined
from tests.conformance.test_distinct import wanted as runs_of

from .command import KILLS_S_MAX, Command
from .jobs import crash, run_to_the_end
from .test_groups import counted, history, in_files, join_file, write
from .test_store_crashes import reader_of

pytestmark = pytest.mark.spark

WITHIN = 20
LEAVING = (
    "SELECT ONLINE a.k, COUNT(*) AS n, SUM(b.x) AS sx FROM a, b WHERE a.k = b.k WITHIN 20 MICROSECONDS GROUP BY a.k "
    "EMIT EVERY 10 MICROSECONDS"
)
STAYING = LEAVING.replace("EMIT", "CUMULATIVE EMIT")


def asked(query: str) -> Asked:
    def values(pairs: Sequence[Pair]) -> list[Any]:
        return list(counted([b for _, b in pairs]))

    def end(pair: Pair) -> int:
        return int(min(part["ts"] for part in pair)) + WITHIN

    return Asked(10, lambda pair: pair[0]["k"], values, None if query == STAYING else end)


def check(rows: Sequence[dict[str, Any]], given: Sequence[pa.RecordBatch], query: str) -> int:
    """Compare all groups with what they are as of each moment that was given; how many moments there are."""
    found = joined(given, lambda a, b: a["k"] == b["k"] is not None, WITHIN)
    table: dict[Any, list[Any]] = {}
    moments = sorted({moment_of(row) for row in rows})
    for moment in moments:
        replayed(table, [row for row in rows if moment_of(row) == moment], 1, is_close)
        check_table(table, asked(query).at(found, moment), is_close)
    last = max(time for time, _ in found)
    assert moments[-1] >= last, "the end of input is not in it"
    return len(moments)


@pytest.mark.soak
@pytest.mark.parametrize("query", [pytest.param(LEAVING, id="leaving"), pytest.param(STAYING, id="cumulative")])
def test_groups_go_on_with_other_slots(query: str, session: SparkSession, tmp_path: Path) -> None:
    given = history(2)
    write(given, tmp_path)
    file = join_file(tmp_path, query)
    crash(session, file, "batch.before_commit:3", 2)
    # The joins' units had come to write their state, and one of the groups' had not.
    (tmp_path / "checkpoint" / "state" / "1" / "0" / "3.json").unlink()
    begun = in_files(tmp_path)
    join_file(tmp_path, query, slots=3)
    run_to_the_end(session, file, 3)
    found = in_files(tmp_path)
    assert 0 < len(begun) < len(found)
    assert check(found, given, query) >= 3
    run_to_the_end(session, file, 1)  # nothing is given twice
    assert len(in_files(tmp_path)) == len(found)


@pytest.mark.soak
def test_a_store_has_the_last_value_of_each_group_and_its_history(session: SparkSession, tmp_path: Path) -> None:
    given = history(4)
    write(given, tmp_path)
    file = join_file(tmp_path, LEAVING, "{store: sqlite, path: results.db, snapshot: {batches: 1}}")
    crash(session, file, "batch.before_commit:3", 2)
    run_to_the_end(session, file, 3)
    reader = reader_of(file)
    assert reader.description.identity == ("k",)

    def asked_for(question: Question) -> list[dict[str, Any]]:
        return [row for batch in ask(reader, question) for row in batch.to_pylist()]

    rows = asked_for(Question(history=True))
    assert check(rows, given, LEAVING) >= 3
    found = joined(given, lambda a, b: a["k"] == b["k"] is not None, WITHIN)
    for moment in [None, *sorted({moment_of(row) for row in rows})]:
        last = {row["k"]: [row["n"], row["sx"]] for row in asked_for(Question(as_of=moment))}
        at = max(moment_of(row) for row in rows) if moment is None else moment
        check_table(last, asked(LEAVING).at(found, at), is_close)
    assert {row["k"] for row in asked_for(Question(key=2))} <= {2}
    middle = sorted({moment_of(row) for row in rows})[1]
    for options, question in (
        ([], Question()),
        (["--as-of", str(middle)], Question(as_of=middle)),
        (["--history"], Question(history=True)),
    ):
        command = [sys.executable, "-m", "streamjoin.cli.commands", "query", str(file), *options, "-o", "ndjson"]
        said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
        lines = [(line["k"], line["n"], line["sx"]) for line in map(json.loads, said.splitlines())]
        assert Counter(lines) == Counter((row["k"], row["n"], row["sx"]) for row in asked_for(question)) and lines


def test_groups_that_change_are_lines_of_a_file_each_once(session: SparkSession, tmp_path: Path) -> None:
    given = history(3)
    write(given, tmp_path)
    file = join_file(tmp_path, LEAVING, "{jsonl: groups.jsonl}")
    crash(session, file, "batch.before_commit:3", 2)
    run_to_the_end(session, file, 3)
    rows = [json.loads(line) for line in (tmp_path / "groups.jsonl").read_text().splitlines()]
    for row in rows:
        row["emit_time"] = dt.datetime.fromisoformat(row["emit_time"])
    assert check(rows, given, LEAVING) >= 3


@pytest.mark.soak
def test_distinct_rows_go_on_with_other_slots(session: SparkSession, tmp_path: Path) -> None:
    given = history(6)
    write(given, tmp_path)
    query = "SELECT DISTINCT ONLINE a.k, b.p FROM a, b WHERE a.k = b.k WITHIN 20 MICROSECONDS"
    file = join_file(tmp_path, query)
    crash(session, file, "batch.before_commit:3", 2)
    begun = len(in_files(tmp_path))
    join_file(tmp_path, query, slots=3)
    run_to_the_end(session, file, 3)
    found = Counter((row["k"], row["p"]) for row in in_files(tmp_path))
    pairs = joined(given, lambda a, b: a["k"] == b["k"] is not None, WITHIN)
    assert found == runs_of(pairs, lambda pair: (pair[0]["k"], pair[1]["p"]))
    assert 0 < begun < found.total()


@pytest.mark.soak
@pytest.mark.kills
@pytest.mark.timeout(KILLS_S_MAX)
@pytest.mark.parametrize("place", ["unit.before_manifest:11"])
def test_a_job_killed_between_the_phases_goes_on_exactly(place: str, session: SparkSession, tmp_path: Path) -> None:
    given = history(5)
    write(given, tmp_path)
    file = join_file(tmp_path, LEAVING)
    name, _, visit = place.partition(":")
    with Command(file, "--until-end", "--quiet", failpoints=f"{name}:kill:{visit}") as command:
        assert command.exit_status() == -signal.SIGKILL, command.output()
    run_to_the_end(session, file, 3)
    assert check(in_files(tmp_path), given, LEAVING) >= 3
