"""The rules of load shedding in a checkpoint: a batch that may be repeated keeps those it began with."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from streamjoin.errors import StateError
from streamjoin.intake.shedding import ShedRule
from streamjoin.operators.biclique import Biclique
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.window import R
from streamjoin.query import plan_query
from streamjoin.spark.started import shedding
from streamjoin.spec.job import Job

RULE = ShedRule(10, 20, 0.5, "quadratic")


@pytest.fixture
def job(tmp_path: Path) -> Job:
    columns = pa.schema([("t", pa.int64()), ("k", pa.int64())])
    streams = {name: StreamSchema(name, columns, "t") for name in ("r", "s")}
    plan = plan_query("SELECT ONLINE r.k FROM r, s WHERE r.k = s.k WITHIN 1 SECONDS", streams)
    return Job(plan, (Biclique(1, 1),), 1, tmp_path)


def log_batches(job: Job, *numbers: int) -> None:
    folder = job.offsets / "offsets"
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        (folder / str(number)).touch()
        (folder / f".{number}.crc").touch()


def test_a_job_that_never_shed_leaves_no_file(job: Job) -> None:
    log_batches(job, 0, 1)
    assert shedding(job, {}).rule(R, 5) is None
    assert not (job.checkpoint / "shedding.json").exists()


def test_a_new_job_sheds_from_its_first_batch_on(job: Job) -> None:
    assert shedding(job, {R: RULE}).rule(R, 0) == RULE
    log_batches(job, 0, 1, 2)
    assert shedding(job, {R: RULE}).rule(R, 0) == RULE


def test_a_changed_rule_holds_from_the_first_batch_that_is_not_logged(job: Job) -> None:
    log_batches(job, 9, 10)
    assert [shedding(job, {R: RULE}).rule(R, batch) for batch in (10, 11)] == [None, RULE]
    # Nothing was logged since: batch 11 never began, and batch 10 still sheds nothing.
    assert [shedding(job, {}).rule(R, batch) for batch in (10, 11)] == [None, None]
    shedding(job, {R: RULE})
    log_batches(job, 11, 12)
    assert [shedding(job, {}).rule(R, batch) for batch in (12, 13)] == [RULE, None]
    assert [shedding(job, {}).rule(R, batch) for batch in (12, 13)] == [RULE, None]


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"rules": {"0": {"threshold": 9, "capacity": 1}}, "since": 0}'])
def test_a_damaged_file_is_named(job: Job, damage: str) -> None:
    (job.checkpoint / "shedding.json").write_text(damage)
    with pytest.raises(StateError, match=r"shedding\.json is damaged"):
        shedding(job, {})
