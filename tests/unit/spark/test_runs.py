"""What a checkpoint says of runs and of partitions read: the same for every attempt at a batch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.errors import StateError
from streamjoin.operators.biclique import Biclique
from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query
from streamjoin.spark.offsetlog import logged_in, partitions_read
from streamjoin.spark.started import begins
from streamjoin.spec.job import Job


@pytest.fixture
def job(tmp_path: Path) -> Job:
    columns = pa.schema([("t", pa.int64()), ("k", pa.int64())])
    streams = {name: StreamSchema(name, columns, "t") for name in ("r", "s")}
    plan = plan_query("SELECT ONLINE r.k FROM r, s WHERE r.k = s.k WITHIN 1 SECONDS", streams)
    return Job(plan, (Biclique(1, 1),), 1, tmp_path)


def log(job: Job, batch: int, *sources: dict[str, Any] | None) -> None:
    """As Spark does."""
    folder = job.offsets / "offsets"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        "v1",
        json.dumps({"batchTimestampMs": 1}),
        *("-" if source is None else json.dumps(source) for source in sources),
    ]
    (folder / str(batch)).write_text("\n".join(lines))


def test_a_batch_that_began_a_run_does_so_when_a_later_run_repeats_it(job: Job) -> None:
    assert begins(job) == {0}
    assert begins(job) == {0}, "nothing was planned by the first"
    log(job, 0)
    assert begins(job) == {0, 1}
    log(job, 1)
    log(job, 2)
    # Batch 2 was planned by the run that began with batch 1, and stays one of its own if it is repeated.
    assert begins(job) == {3}
    log(job, 3)
    assert begins(job) == begins(job) == {3, 4}


def test_damage_is_said(job: Job) -> None:
    begins(job)
    (job.checkpoint / "runs.json").write_text("{}")
    with pytest.raises(StateError, match=r"runs\.json is damaged"):
        begins(job)


CLOCK = {"clock_us": 7, "streams": {}}


def read(job: Job, batch: int, topics: dict[int, str]) -> set[tuple[int, str]]:
    found = list(partitions_read(logged_in(job.offsets), batch, topics))
    assert all(one.rows == 0 and one.ts_max_us is None and one.clock_us == 0 for one in found)
    assert len({(one.side, one.piece) for one in found}) == len(found)
    return {(one.side, one.router) for one in found}


def test_partitions_whose_offset_moved_were_read(job: Job) -> None:
    log(job, 4, CLOCK, {"orders": {"0": 5, "1": 9}}, {"payments": {"0": 1}})
    log(job, 5, CLOCK, {"orders": {"0": 5, "1": 10, "2": 3}}, {"payments": {"0": 1}})
    assert read(job, 5, {0: "orders", 1: "payments"}) == {(0, "orders/1"), (0, "orders/2")}


def test_both_sides_may_read_one_topic_and_one_side_may_read_files(job: Job) -> None:
    log(job, 4, {"t": {"0": 1}}, {"t": {"0": 1}})
    log(job, 5, {"t": {"0": 1}}, {"t": {"0": 2}})
    assert read(job, 5, {0: "t", 1: "t"}) == {(1, "t/0")}
    log(job, 6, CLOCK, None)
    log(job, 7, CLOCK, {"t": {"0": 2}})
    assert read(job, 7, {1: "t"}) == {(1, "t/0")}
    assert read(job, 7, {}) == read(job, 0, {0: "t"}) == set(), (
        "files tell by their rows, and nothing is before batch 0"
    )
