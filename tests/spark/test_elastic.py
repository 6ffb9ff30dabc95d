"""Bicliques and rings whose units come and go on Spark, killed around changes: exact, and by the same decisions."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from streamjoin.spark.progress import Progress
from streamjoin.spark.run import run_job
from streamjoin.spec.job import Job
from streamjoin.spec.joinfile import parse
from streamjoin.spec.prepare import Bound, bind
from streamjoin.state.places import newest_states
from streamjoin.state.root import ObjectRoot
from streamjoin.state.store import StateStore
from tests.conformance.check import expected, plan
from tests.conformance.histories import History, make_rows, to_batch
from tests.conformance.test_ring import COLUMNS as THREE
from tests.conformance.test_ring import equal, nested_loop
from tests.servers.s3 import BUCKET, S3

from .jobs import check_same, crash, join_text, query, result_rows, write_file

pytestmark = pytest.mark.spark

SIZES = [60] * 3 + [180] * 4 + [30] * 8
"""Rows of each stream, by batch."""
KNOBS: dict[str, Any] = {"adaptive": True, "routing": "hash", "r_units": 2, "s_units": 2, "capacity": 0.01,
                         "check_every": "0s", "confirmations": 1, "max_units": 8}  # fmt: skip


def streams() -> History:
    """More rows for a while, then few."""
    rng = np.random.default_rng(5)
    times = [at for batch, size in enumerate(SIZES) for at in np.sort(rng.integers(10 * batch, 10 * batch + 10, size))]
    r, s = (make_rows(rng, times, rng.integers(0, 40, len(times))) for _ in "rs")
    return History(r, s)


def cuts(given: History) -> list[tuple[Any, Any]]:
    ends = np.cumsum([0, *SIZES])
    return [(to_batch(given.r[begin:end]), to_batch(given.s[begin:end])) for begin, end in pairwise(ends)]


def decided(state: Path, version: int) -> list[dict[str, Any]]:
    """The decisions that the state of a version remembers, oldest first."""
    found: list[dict[str, Any]] = StateStore(state).load(0, version).values["units"]["decisions"]
    return found


def written(given: History, folder: Path, run: str = "slots: 2") -> Path:
    """The join file, with streams in files beside it."""
    for number, (r, s) in enumerate(cuts(given)):
        write_file(folder / "r", number, r)
        write_file(folder / "s", number, s)
    knobs = ", ".join(f"{name}: {json.dumps(value)}" for name, value in KNOBS.items())
    (file := folder / "join.yaml").write_text(
        join_text(query("equality", "20 us"), f"name: biclique, {knobs}", run=run)
    )
    return file


def started(file: Path) -> tuple[Bound, Job, list[Any]]:
    bound = bind(parse(file.read_text(), base=file.parent))
    return bound, bound.job(heartbeat=False), bound.sinks()


def wanted(given: History) -> Counter[Any]:
    return Counter(expected(given, "equality", plan(given, "equality", "20 us"), len(SIZES)))


def test_killed_around_a_change_of_units(session: SparkSession, tmp_path: Path) -> None:
    given = streams()
    file = written(given, tmp_path)
    state, attempted = tmp_path / "checkpoint" / "state", []
    # Units come and go by the state of these batches, which are done twice: the second time by other slots.
    for place, slots, version in (("batch.before_commit:7", 2, 7), ("batch.before_commit:5", 1, 11)):
        crash(session, file, place, slots)
        attempted.append(decided(state, version))
    progress = run_job(session, *started(file), until_end=True)
    check_same(result_rows(tmp_path / "results"), wanted(given))
    told = decided(state, len(SIZES))
    for earlier in attempted:
        assert earlier and earlier == told[: len(earlier)]
    assert {name for one in told for name in ("added", "drained", "left") if one[name]} == {"added", "drained", "left"}
    assert len(attempted[0]) < len(attempted[1]) < len(told)
    # The last run did the batch before 11 again, and all that came after it.
    of_run = [one for one in told if one["batch"] >= 11]
    # People are told when it was by the wall clock, and units know logged time.
    for one, said in zip(of_run, progress.adapting.decisions, strict=True):
        assert said == {"stage": 1, **one, "at_us": said["at_us"]} and abs(said["at_us"] - one["at_us"]) < 60_000_000
    assert progress.adapting.units[0]["units"] == {"R": 3, "S": 3}


@pytest.mark.soak
@pytest.mark.services
def test_units_come_and_go_in_a_store_of_a_job_that_dies_and_moves(
    s3: S3, session: SparkSession, tmp_path: Path
) -> None:
    given = streams()
    root = ObjectRoot(s3.uri(f"{BUCKET}/{tmp_path.name}"), tmp_path / "elsewhere")
    file = written(given, tmp_path, f'slots: 2, state: "{root.uri}", cache: {{path: cache}}')
    # The batch is done, and not committed: units of its state are those of another batch.
    crash(session, file, "batch.before_commit:7", slots=2)
    before = decided_now(root)
    progress = moved(session, file)
    check_same(result_rows(tmp_path / "results"), wanted(given))
    told = decided_now(root)
    assert before and before == told[: len(before)] and len(before) < len(told)
    assert {name for one in told for name in ("added", "drained", "left") if one[name]} == {"added", "drained", "left"}
    last = progress.adapting.units[-1]
    there = dict(newest_states(root, 0))
    assert len(there) == sum(last["units"].values()) + sum(last["draining"].values())
    assert sum(info.rows for state in there.values() for info in state.tuples()) == sum(progress.stored_rows)


def moved(session: SparkSession, file: Path) -> Progress:
    """Run to the end, on a host that has nothing of the job but its file and streams."""
    shutil.rmtree(file.parent / "cache")
    shutil.rmtree(file.parent / "checkpoint")
    return run_job(session, *started(file), until_end=True)


def decided_now(root: ObjectRoot) -> list[dict[str, Any]]:
    """As `decided`, by the newest state that is in a store."""
    found: list[dict[str, Any]] = dict(newest_states(root, 0))[0].values["units"]["decisions"]
    return found


RING = (
    "name: ring, nodes: 2, adaptive: true, max_nodes: 4, check_every: 0s, confirmations: 1, smoothing: 1.0, "
    "pair_us: 1000000000, send_us: 0.0"
)
"""A pair takes so long that any are too many, whatever the time between two batches."""
ROWS, PAIRING, RING_BATCHES = 12, 8, 22
"""Of each stream in a batch of 10 us; of the first batches they have few keys, then each has its own."""


def three_streams() -> list[list[pa.RecordBatch]]:
    """By batch, rows of a, b and c."""
    rng = np.random.default_rng(3)
    found = []
    for batch in range(RING_BATCHES):
        ids = [range(batch * ROWS, (batch + 1) * ROWS)] * 3
        keys = [rng.integers(0, 4, ROWS) if batch < PAIRING else np.array(one) * 3 + place + 9
                for place, one in enumerate(ids)]  # fmt: skip
        times = [np.sort(rng.integers(10 * batch, 10 * batch + 10, ROWS)) for _ in ids]
        found.append(
            [
                pa.RecordBatch.from_pydict({"ts": ts, "id": list(one), "k": k, "x": np.zeros(ROWS, np.int64)}, THREE)
                for ts, one, k in zip(times, ids, keys, strict=True)
            ]
        )
    return found


def ring_written(given: list[list[pa.RecordBatch]], folder: Path, run: str = "slots: 2") -> Path:
    """The join file, with streams in files beside it."""
    for number, pieces in enumerate(given):
        for name, rows in zip("abc", pieces, strict=True):
            write_file(folder / name, number, rows)
    streams = "".join(f"  {name}: {{source: parquet, path: {name}, time: ts}}\n" for name in "abc")
    (file := folder / "join.yaml").write_text(
        f"streams:\n{streams}query: SELECT ONLINE a.id AS a, b.id AS b, c.id AS c FROM a, b, c WHERE a.k = b.k "
        "AND b.k = c.k WITHIN 20 MICROSECONDS FOR a, 10 MICROSECONDS FOR b, 20 MICROSECONDS FOR c\n"
        f"operator: {{{RING}}}\nresults: {{parquet: results}}\n"
        f"run: {{checkpoint: checkpoint, files_per_batch: 1, {run}}}\n"
    )
    return file


def ring_wanted(given: list[list[pa.RecordBatch]]) -> Counter[Any]:
    every = [[row for pieces in given for row in pieces[place].to_pylist()] for place in range(3)]
    return Counter(nested_loop(every, [equal("a", "b"), equal("b", "c")], (20, 10, 20)))


RING_DECIDES = [("aggressive", 2, 0), ("passive", 0, 3)]
"""In which way, how many come and how many go, but for those that leave."""


def ring_decided(told: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
    return [(one["way"], len(one["added"]), len(one["drained"])) for one in told if not one["left"]]


@pytest.mark.soak
def test_nodes_of_a_ring_come_and_go_and_it_is_killed_around_both(session: SparkSession, tmp_path: Path) -> None:
    given = three_streams()
    file, state, attempted = ring_written(given, tmp_path), tmp_path / "checkpoint" / "state", []
    plans: list[Any] = []
    # Batch 2 has nodes that are new, batch 10 has some that drain; both are done twice, by other slots.
    for place, slots, version in (("batch.before_commit:3", 2, 3), ("batch.before_commit:9", 1, 11)):
        crash(session, file, place, slots)
        attempted.append(decided(state, version))
        plans.append(StateStore(state).load(0, 3).values)
    # What was measured before batch 2 is what its second attempt knew, which took other times.
    assert plans[0] == plans[1]
    progress = run_job(session, *started(file), until_end=True)
    check_same(result_rows(tmp_path / "results"), ring_wanted(given))
    origins = {one["symbol"]: one["origin"] for one in progress.step_times}
    assert (origins["T_j"], origins["T_s"], origins["T_n"]) == ("set", "set", "measured")
    told = decided(state, RING_BATCHES)
    for earlier in attempted:
        assert earlier and earlier == told[: len(earlier)]
    assert ring_decided(told) == RING_DECIDES
    assert [one["batch"] for one in told[:2]] == [2, 10] and [len(one) for one in attempted] == [1, 2]
    assert {number for one in told for number in one["left"]} == {1, 2, 3}
    assert progress.adapting.units[-1]["units"] == {"ring": 1}
    # Of nodes that left versions stay for a while, in each round.
    for stage in "01":
        assert {path.name for path in (state / stage).iterdir()} == {"0", "1", "2", "3"}


@pytest.mark.soak
@pytest.mark.services
def test_nodes_come_and_go_in_a_store_of_a_ring_that_dies_and_moves(
    s3: S3, session: SparkSession, tmp_path: Path
) -> None:
    given = three_streams()
    root = ObjectRoot(s3.uri(f"{BUCKET}/{tmp_path.name}"), tmp_path / "elsewhere")
    file = ring_written(given, tmp_path, f'slots: 2, state: "{root.uri}", cache: {{path: cache}}')
    crash(session, file, "batch.before_commit:3", slots=1)
    before = decided_now(root)
    moved(session, file)
    check_same(result_rows(tmp_path / "results"), ring_wanted(given))
    told = decided_now(root)
    assert len(before) == 1 and before == told[:1] and ring_decided(told) == RING_DECIDES
    for stage in range(2):
        assert dict(newest_states(root, stage)).keys() == {0}
