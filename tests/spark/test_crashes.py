"""kill -9 at every named place and at random times, then on with other slots: nothing lost, nothing twice."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import time
from collections import Counter
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from streamjoin.errors import InputError, StreamJoinError
from streamjoin.failpoints import NAMES
from streamjoin.intake import rejected
from streamjoin.plan.ordering import Ordering
from streamjoin.spark import checkpoint
from streamjoin.spec.joinfile import parse
from streamjoin.spec.prepare import bind
from streamjoin.state.store import StateStore, read_manifests
from tests.conformance.check import expected, plan
from tests.conformance.histories import History, history
from tests.conformance.test_ordering import falls, sequence
from tests.conformance.test_places_in_tasks import PLACES

from .command import KILLS_S_MAX, RUN_S_MAX, Command
from .jobs import (
    BEGIN_S,
    check_same,
    crash,
    join_text,
    pairs_in_name_order,
    query,
    result_rows,
    run_text,
    run_to_the_end,
    write_history,
)

pytestmark = pytest.mark.spark

BATCHES = 20
SLOTS = (2, 4, 1)


@dataclass(frozen=True)
class Case:
    """A join, and the places where its driver dies.

    Args:
        fails: failpoints of the driver, with the visit at which it fails before the first kill.
        kills: failpoints with the visit at which they kill; "" for a random moment.
        soak: the same for `make soak`, which also kills at those of the driver.
    """

    condition: str
    window: str
    operator: str
    fails: tuple[str, ...]
    kills: tuple[str, ...]
    soak: tuple[str, ...]


# Places in tasks are counted by each worker for itself, and there several units meet them in a batch. A kill costs a
# start of Spark, so one operator has one, at a random moment, and the driver fails at its own places in three;
# `make soak` kills in all five, and at every place. At those in tasks a batch fails without Spark
# (`test_places_in_tasks`).
CASES = {
    "biclique by hash": Case(
        "equality",
        "20 us",
        "name: biclique, routing: hash, r_units: 3, s_units: 2",
        ("batch.before_commit:2",),
        ("",),
        (
            "batch.before_commit:2",
            "",
            "unit.before_manifest:3",
            "router.before_punctuation:2",
            "",
            "unit.mid_results:2",
        ),
    ),
    "biclique by random, on a band": Case(
        "band",
        "only after",
        "name: biclique, routing: random, r_units: 2, s_units: 3",
        (),
        (),
        ("unit.after_segments:3", "", "batch.mid_commit:2", "unit.before_probe:4", "", "state.before_collect:3"),
    ),
    "matrix 2x2": Case(
        "two bands",
        "20 us",
        "name: matrix, rows: 2, columns: 2",
        (),
        (),
        ("unit.after_manifest:4", "", "unit.before_segments:3", "batch.after_commit:2", "", "batch.mid_commit:3"),
    ),
    "biclique by contrand": Case(
        "text equality",
        "full history",
        "name: biclique, routing: contrand, r_units: 4, s_units: 3, r_groups: 2, s_groups: 3",
        ("batch.mid_commit:1",),
        (),
        ("unit.mid_results:4", "", "unit.before_manifest:5", "batch.mid_commit:1", "", "router.before_punctuation:3"),
    ),
    "splitjoin in order, a count window": Case(
        "band",
        "7 rows",
        "name: splitjoin, cores: 3, turn_tuples: 2, ordering: total",
        ("batch.after_commit:1",),
        (),
        ("batch.after_commit:1", "", "unit.after_segments:2", "state.before_collect:2", "", "unit.after_manifest:2"),
    ),
}


def test_each_place_is_reached_once_and_jobs_are_killed_at_each_in_the_soak() -> None:
    of_engine = {
        name
        for name in NAMES
        if not name.startswith(("store.", "ledger.", "rejected.", "relation.", "generation.", "requery."))
    }
    # others: test_store_crashes, test_refresh, test_object_store, tests/conformance/test_starting_queries, and below
    reached = Counter(kill.partition(":")[0] for case in CASES.values() for kill in (*case.fails, *case.kills))
    assert reached == {**dict.fromkeys(of_engine - set(PLACES), 1), "": 1}
    assert {fail.partition(".")[0] for case in CASES.values() for fail in case.fails} == {"batch"}
    soak = [kill.partition(":")[0] for case in CASES.values() for kill in case.soak]
    assert len(soak) == 30 and set(soak) == {*of_engine, ""}


@pytest.mark.kills
@pytest.mark.timeout(KILLS_S_MAX)
@pytest.mark.parametrize(
    ("name", "fails", "kills"),
    [
        *(pytest.param(name, case.fails, case.kills, id=name) for name, case in CASES.items() if case.fails),
        *(
            pytest.param(name, (), case.soak, id=f"{name}, soak", marks=pytest.mark.soak)
            for name, case in CASES.items()
        ),
    ],
)
def test_killed_jobs_go_on_exactly(
    name: str, fails: tuple[str, ...], kills: tuple[str, ...], session: SparkSession, tmp_path: Path
) -> None:
    case = CASES[name]
    number = list(CASES).index(name)
    rng = np.random.default_rng(number)
    given = history(number, r=10 * BATCHES, s=9 * BATCHES, time_shape="disordered", delay_us=15)
    write_history(given, tmp_path, BATCHES)
    file = write_join_file(tmp_path, case)
    slots = cycle(SLOTS)
    for place in fails:
        crash(session, file, place, next(slots))
    for kill in kills:
        before = committed(tmp_path)
        status = run_and_kill(file, kill, next(slots), rng)
        assert status == -signal.SIGKILL, f"{kill or 'random'}: {(tmp_path / 'join.log').read_text()[-2000:]}"
        assert committed(tmp_path) >= before
        assert committed(tmp_path) < BATCHES, f"{kill or 'random'} came after the last batch"
    run_to_the_end(session, file, next(slots))
    check_results(tmp_path, given, case)
    check_state(tmp_path)


def write_join_file(folder: Path, case: Case, results: str = "{parquet: results}") -> Path:
    file = folder / "join.yaml"
    file.write_text(join_text(query(case.condition, case.window), case.operator, delay_us=15, results=results))
    return file


def run_and_kill(file: Path, kill: str, slots: int, rng: np.random.Generator) -> int:
    """One run that does not reach its end; its exit status."""
    arguments = ("--until-end", "--quiet", "--set", f"run.slots={slots}")
    if kill:
        place, _, visit = kill.partition(":")
        with Command(file, *arguments, failpoints=f"{place}:kill:{visit}") as command:
            return command.exit_status()
    begun = planned(file.parent)
    with Command(file, *arguments) as command:
        command.wait_until(lambda: planned(file.parent) > begun, "begins no batch", RUN_S_MAX)
        time.sleep(rng.uniform(0, 0.8))  # the random moment itself
        return command.crash()


def planned(folder: Path) -> int:
    """Batches whose offsets are logged."""
    return _logged(folder, "offsets")


def committed(folder: Path) -> int:
    """Batches that are done."""
    return _logged(folder, "commits")


def _logged(folder: Path, log: str) -> int:
    numbers = [int(path.name) for path in (folder / "checkpoint" / "offsets" / log).glob("[0-9]*")]
    return max(numbers, default=-1) + 1


def check_results(folder: Path, given: History, case: Case) -> None:
    want = Counter(expected(given, case.condition, plan(given, case.condition, case.window), BATCHES))
    assert want.total() > BATCHES
    check_same(result_rows(folder / "results"), want)
    assert not list((folder / "results" / ".staged").iterdir()), "an attempt with more slots left something behind"
    if "ordering: total" in case.operator:
        places = sequence(given, case.window.endswith("rows"), BATCHES)
        assert falls(Ordering.TOTAL, pairs_in_name_order(folder / "results"), places) == []


def check_state(folder: Path) -> None:
    """All units have come equally far, and no file is there that no manifest names."""
    state = folder / "checkpoint" / "state"
    assert {found.version for _, found in read_manifests(state)} == {BATCHES}
    assert StateStore(state).sweep() == 0


@pytest.mark.soak
def test_each_line_stands_once_in_a_file_of_json_lines(session: SparkSession, tmp_path: Path) -> None:
    case, batches = CASES["biclique by hash"], 8
    given = history(20, r=10 * batches, s=9 * batches, time_shape="disordered", delay_us=15)
    write_history(given, tmp_path, batches)
    file = write_join_file(tmp_path, case, results="{jsonl: results.jsonl}")
    # Between the parts of a batch, and with all of it in the file but not in the log of commits.
    for place, slots in (("batch.mid_commit:2", 2), ("batch.after_commit:2", 4), ("batch.mid_commit:3", 4)):
        crash(session, file, place, slots)
    run_to_the_end(session, file, 1)
    lines = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    want = Counter(expected(given, case.condition, plan(given, case.condition, case.window), batches))
    check_same(Counter((line["r_id"], line["s_id"]) for line in lines), want)


@pytest.mark.soak
def test_rows_put_aside_are_there_and_counted_once(session: SparkSession, tmp_path: Path) -> None:
    case, batches = CASES["biclique by hash"], 4
    given = history(23, r=10 * batches, s=10 * batches)
    write_history(given, tmp_path, batches)
    without_time, null_keys = set(), Counter[str]()
    for stream, column in (("r", "ts"), ("s", "k")):
        for number, path in enumerate(sorted((tmp_path / stream).glob("*.parquet"))):
            table = pq.read_table(path)
            # A row of each row group, which more slots read apart.
            at = table.schema.get_field_index(column)
            holes = pa.array([row % 3 == 0 for row in range(table.num_rows)])
            table = table.set_column(at, table.schema.field(at), pc.if_else(holes, None, table.column(at)))
            path.unlink()
            pq.write_table(table, path, row_group_size=3)
            os.utime(path, (BEGIN_S + number, BEGIN_S + number))
            for position, row in enumerate(table.to_pylist()):
                if row["ts"] is None:
                    without_time.add((stream, path.name, position))
                elif row["k"] is None:
                    null_keys[stream] += 1
    assert len(without_time) > 10 and null_keys["s"] > 10
    file = write_join_file(tmp_path, case)
    for place, slots in (("batch.after_commit:1", 1), ("rejected.before_head:2", 4), ("rejected.after_head:1", 1)):
        crash(session, file, place, slots)
    run_to_the_end(session, file, 4)
    folder = tmp_path / "checkpoint" / "dead-letters"
    rows, _ = rejected.page(folder, 1_000)
    check_same(Counter((row["stream"], row["source"], row["position"]) for row in rows), Counter(without_time))
    counts = {(row["stream"], row["reason"]): row["rows"] for row in rejected.as_rows(rejected.read_head(folder))}
    assert counts == {("r", "no_time"): len(without_time), **{(name, "null_key"): n for name, n in null_keys.items()}}


def test_arrival_times_outlive_the_driver(session: SparkSession, tmp_path: Path) -> None:
    write_history(history(21, r=80, s=80, key_shape="one hot"), tmp_path, 4)
    within = query("equality", "20 us").replace("20 MICROSECONDS", "5 SECONDS")
    operator = "name: biclique, routing: random, r_units: 2, s_units: 2"
    file = tmp_path / "join.yaml"
    file.write_text(join_text(within, operator).replace("time: ts", "time: arrival"))
    crash(session, file, "batch.before_commit:3")
    staged = tmp_path / "results" / ".staged"
    first = rows_of(staged, "batch-000000002-*")
    assert committed(tmp_path) == 2 and first
    run_to_the_end(session, file, 4)
    # Stamped anew after the restart, the batch would be far from the ones before it.
    check_same(rows_of(tmp_path / "results", "batch-000000002-*"), first)


def rows_of(folder: Path, pattern: str) -> Counter[Any]:
    return Counter(
        tuple(row.values()) for file in sorted(folder.glob(pattern)) for row in pq.read_table(file).to_pylist()
    )


def join_to_the_end(session: SparkSession, folder: Path) -> Path:
    """A join in a folder comes to the end of its streams."""
    write_history(history(22, r=60, s=60), folder, 4, range(3))
    run_text(session, write_join_file(folder, CASES["biclique by hash"]).read_text(), folder)
    return folder


@pytest.fixture(scope="module")
def done(session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a join that has come to its end; no test changes it."""
    return join_to_the_end(session, tmp_path_factory.mktemp("done"))


def contents(folder: Path) -> dict[str, str]:
    """Every file that matters with the digest of its bytes; which batch begins a run is noted by each start."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix not in (".log", ".crc") and path.name not in ("lock", "runs.json")
    }


def test_a_start_after_the_end_does_nothing_and_changes_nothing(done: Path, session: SparkSession) -> None:
    before = contents(done)
    progress = run_text(session, (done / "join.yaml").read_text(), done)
    assert progress.batches == 0 and progress.results == 0
    assert contents(done) == before


@pytest.mark.parametrize(
    ("old", "new", "differs"),
    [
        ("r.k = s.k", "r.k = s.k + 1", "query"),
        ("delay: 15us", "delay: 16us", "streams"),
        ("r_units: 3", "r_units: 4", "operator"),
    ],
)
def test_the_checkpoint_of_another_join_is_refused(
    old: str, new: str, differs: str, done: Path, session: SparkSession
) -> None:
    before = contents(done)
    text = (done / "join.yaml").read_text()
    assert old in text
    with pytest.raises(
        InputError, match=rf"run.checkpoint: .* belongs to another join, with other {differs}( \(.*\))?;"
    ):
        run_text(session, text.replace(old, new), done)
    assert contents(done) == before


def test_a_checkpoint_in_use_is_refused_with_the_process_that_holds_it(done: Path, session: SparkSession) -> None:
    text = (done / "join.yaml").read_text()
    holder = bind(parse(text, base=done)).job()
    with checkpoint.opened(holder), pytest.raises(InputError, match=f"is in use by process {os.getpid()};"):
        run_text(session, text, done)
    assert run_text(session, text, done).batches == 0


@pytest.mark.parametrize(
    "damage",
    [
        "a lost segment",
        *(pytest.param(f"a {how}", marks=pytest.mark.soak) for how in ("cut manifest", "cut segment", "lost manifest")),
    ],
)
def test_damaged_state_is_an_error_that_names_the_file(damage: str, session: SparkSession, tmp_path: Path) -> None:
    done = join_to_the_end(session, tmp_path)
    write_history(history(22, r=60, s=60), done, 4, [3])
    results = result_rows(done / "results")
    state = done / "checkpoint" / "state"
    unit, file = next((unit, info.file) for unit, found in read_manifests(state) for info in found.tuples())
    named = state / "0" / str(unit) / (file if "segment" in damage else "3.json")
    if "lost" in damage:
        named.unlink()
    else:
        named.write_bytes(named.read_bytes()[:100])
    if damage == "a cut manifest":  # the command says it in one line, as it says all errors
        with Command(done / "join.yaml", "--until-end") as command:
            status, said = command.exit_status(), command.output()
        assert status == 1, said
        assert len(said.splitlines()) == 1 and said.startswith("streamjoin: ")
    else:
        with pytest.raises(StreamJoinError) as failed:
            run_text(session, (done / "join.yaml").read_text(), done)
        said = str(failed.value)
    assert (f"unit {unit} has no state of version 3" if damage == "a lost manifest" else named.name) in said
    assert result_rows(done / "results") == results
