"""Wall clocks that are set while a job runs: what is logged of its batches, without Spark's Java."""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql.streaming.datasource import ReadAllAvailable

from streamjoin.engine.state import UnitState
from streamjoin.engine.unit import UnitReport
from streamjoin.flow.moment import Moment
from streamjoin.flow.punctuation import StreamClock
from streamjoin.generate import generator
from streamjoin.operators.biclique import Biclique
from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query
from streamjoin.sources.spec import SourceSpec
from streamjoin.spark.batchreport import batch_report
from streamjoin.spark.offsetlog import HEARTBEAT, began, logged_in
from streamjoin.spark.source import StreamJoinReader, pack
from streamjoin.spec.job import Job, state_folder
from streamjoin.state.store import StateStore

SECOND, HOUR = 1_000_000, 3_600_000_000
NOON = 1_700_000_000 * SECOND


@dataclass
class Machine:
    """Its clocks, and a job on it that reads topics."""

    job: Job
    monkeypatch: pytest.MonkeyPatch
    wall_us: int = NOON
    steady_us: int = 0
    offset: dict[str, Any] = field(default_factory=dict)
    batches: int = 0

    def start(self) -> None:
        """The job starts, or starts again."""
        self.monkeypatch.setattr("streamjoin.spark.source._clocks", lambda: (self.wall_us, self.steady_us))
        self.reader = StreamJoinReader(pack(self.job))
        self.offset = self.offset or self.reader.initialOffset()

    def passes(self, us: int) -> None:
        """Time passes."""
        self.wall_us, self.steady_us = self.wall_us + us, self.steady_us + us

    def look(self, *, arrives: bool, slow_us: int = 3_000, meanwhile_us: int = 0) -> Moment | None:
        """As Spark does to plan a batch; when that begins, if there is one.

        Args:
            arrives: a topic has records.
            slow_us: so long does the topic's broker take.
            meanwhile_us: by so much the wall clock is set then.
        """
        found = json.loads(json.dumps(self.reader.latestOffset(self.offset, ReadAllAvailable())))
        self.passes(slow_us)
        self.wall_us += meanwhile_us
        if found == self.offset and not arrives:
            return None
        self.offset = found
        lines = ["v1", json.dumps({"batchTimestampMs": self.wall_us // 1000}), json.dumps(found)]
        lines.append(json.dumps({"t": {"0": self.batches}}))
        log = self.job.offsets / "offsets"
        log.mkdir(parents=True, exist_ok=True)
        (log / str(self.batches)).write_text("\n".join(lines))
        self.batches += 1
        return began(logged_in(self.job.offsets), self.batches - 1, self.job)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    columns = pa.schema([("k", pa.int64())])
    plan = plan_query(
        "SELECT ONLINE r.k FROM r, s WHERE r.k = s.k WITHIN 1 SECONDS",
        {name: StreamSchema(name, columns, "arrival") for name in "rs"},
    )
    job = Job(plan, (Biclique(1, 1),), 1, tmp_path, heartbeat_us=SECOND, topics={0: "t", 1: "t"})
    clocks = (StreamClock(1, 0, {"t": (0, NOON)}), StreamClock())
    store = StateStore(job.state, sync=False)
    store.writer(0, 1).finish()
    store.commit(0, UnitState(1, clocks=clocks), UnitReport(0, "R0"))
    made = Machine(job, monkeypatch)
    made.start()
    return made


@pytest.mark.parametrize("step_us", [HOUR, -HOUR, 20_000, -20_000])
def test_batches_of_topics_know_of_a_step_although_spark_says_when_they_begin(step_us: int, machine: Machine) -> None:
    first = machine.look(arrives=True)
    machine.passes(200_000)
    before = machine.look(arrives=True)
    assert first and before and before.clock_us - first.clock_us == 203_000
    assert machine.look(arrives=False) is None, "no heartbeat is due"
    machine.passes(200_000)
    machine.wall_us += step_us
    stepped = machine.look(arrives=False)
    assert stepped and stepped.wall_us // 1000 == machine.wall_us // 1000
    assert stepped.clock_us - before.clock_us == 206_000
    assert stepped.arrival_us == stepped.wall_us if step_us > 0 else stepped.arrival_us > before.arrival_us
    machine.passes(200_000)
    after = machine.look(arrives=True)
    assert after and after.clock_us - stepped.clock_us == 203_000
    # It has caught up with a small one meanwhile.
    half_us = stepped.arrival_us + 101_500
    assert after.arrival_us == (after.wall_us if step_us > 0 else max(half_us, after.wall_us))
    assert machine.look(arrives=False) is None, "it is noticed once"


def test_a_step_between_the_two_looks_is_at_most_the_time_in_which_a_job_that_rests_has_a_heartbeat(
    machine: Machine,
) -> None:
    machine.look(arrives=True)
    machine.passes(200_000)
    hit = machine.look(arrives=True, meanwhile_us=HOUR)
    assert hit and hit.clock_us - NOON <= 31 * SECOND and hit.arrival_us == hit.wall_us
    machine.passes(200_000)
    after = machine.look(arrives=True)
    assert after and after.clock_us < NOON + SECOND, "the time of units does not go back, and waits for half a minute"


@pytest.mark.parametrize(("planned_us", "again_us"), [(SECOND, 0), (0, SECOND), (SECOND, HOUR)])
def test_a_batch_that_is_done_again_with_another_heartbeat_sees_the_same_time(
    planned_us: int, again_us: int, machine: Machine
) -> None:
    def went_on(heartbeat_us: int) -> None:
        machine.job = replace(machine.job, heartbeat_us=heartbeat_us)
        machine.start()

    machine.look(arrives=True)
    for first_us, then_us in ((planned_us, again_us), (again_us, planned_us)):
        went_on(first_us)
        machine.look(arrives=True, slow_us=0)
        machine.passes(0 if first_us else 10 * SECOND)  # without a heartbeat the offset of ours stays as it is
        batch = machine.look(arrives=True, meanwhile_us=HOUR)
        done_again = began(
            logged_in(machine.job.offsets), machine.batches - 1, replace(machine.job, heartbeat_us=then_us)
        )
        assert batch and done_again == batch
        # Nor is there another time where one that did not end goes on.
        went_on(then_us)
        assert machine.reader._look(machine.offset).clock_us >= batch.clock_us


def test_a_run_without_a_heartbeat_plans_no_batch_by_the_heartbeat_of_the_run_before(machine: Machine) -> None:
    before = machine.look(arrives=True)
    machine.job = replace(machine.job, heartbeat_us=0)
    machine.start()
    machine.passes(HOUR)
    batch = machine.look(arrives=True)
    assert before and batch and batch.clock_us - before.clock_us == HOUR + 3_000
    machine.passes(HOUR)
    later = machine.look(arrives=True)
    assert later and later.clock_us - batch.clock_us == HOUR + 3_000
    assert machine.look(arrives=False) is None, "without a heartbeat that is the only batch without input"


def test_batches_that_an_earlier_version_logged_have_the_heartbeat_of_the_run(machine: Machine) -> None:
    machine.look(arrives=True)
    batch = machine.look(arrives=True, meanwhile_us=HOUR)
    logged = machine.job.offsets / "offsets" / str(machine.batches - 1)
    version, metadata, own, topics = logged.read_text().splitlines()
    old = json.dumps({name: value for name, value in json.loads(own).items() if name != HEARTBEAT})
    logged.write_text("\n".join([version, metadata, old, topics]))
    assert batch == began(logged_in(machine.job.offsets), machine.batches - 1, machine.job)
    machine.offset = json.loads(old)
    machine.start()
    assert machine.look(arrives=False) is not None, "the heartbeat of the run is logged from then on"


def test_time_of_a_job_that_rests_is_exact(machine: Machine) -> None:
    shutil.rmtree(state_folder(machine.job.checkpoint))  # nothing has come
    first = machine.look(arrives=False)
    for seconds in (2, 20):
        machine.passes(seconds * SECOND)
        assert machine.look(arrives=False, slow_us=0) is None
        batch = machine.look(arrives=True)
    assert first and batch and batch.clock_us - first.clock_us == 22_006_000


@pytest.mark.parametrize("seed", range(40))
def test_logged_time_is_that_which_passed_and_no_row_arrives_before_an_earlier_one(seed: int, machine: Machine) -> None:
    chosen = random.Random(seed)
    began_at: list[Moment] = []
    offsets_us: set[int] = set()  # of logged time from the steady clock, in the run
    for _ in range(150):
        machine.passes(chosen.choice([50_000, 200_000, 2 * SECOND]))
        if chosen.random() < 0.1:
            machine.wall_us += chosen.choice([HOUR, -HOUR, 5 * SECOND, -5 * SECOND, 50_000, -50_000])
        if chosen.random() < 0.05:
            machine.wall_us += chosen.choice([0, HOUR])
            machine.start()
            offsets_us.clear()
        steady_us = machine.steady_us
        if batch := machine.look(arrives=chosen.random() < 0.8):
            began_at.append(batch)
            # Spark has looked up to 3 ms later than we, and knows of whole milliseconds.
            offsets_us.add(batch.clock_us - steady_us)
            assert max(offsets_us) - min(offsets_us) <= 3_000 + 10_000
    arrived = [batch.arrival_us for batch in began_at]
    assert arrived == sorted(arrived) and len(set(arrived)) == len(arrived) > 50
    clocks = [batch.clock_us for batch in began_at]
    assert clocks == sorted(clocks)


def test_a_generator_that_is_live_keeps_its_pace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = generator("zipf.r").schema
    settings = {"kind": "zipf.r", "rate_per_s": 10, "rows": None, "seed": 1, "rows_per_batch": 9999}
    streams = {name: StreamSchema(name, columns, "ts") for name in "rs"}
    plan = plan_query("SELECT ONLINE r.id FROM r, s WHERE r.id = s.id WITHIN 1 SECONDS", streams)
    sources = {side: SourceSpec("streamjoin.sources.generated:open_generator", settings) for side in (0, 1)}
    machine = Machine(Job(plan, (Biclique(1, 1),), 1, tmp_path, sources), monkeypatch)
    machine.start()
    rows = []
    for step_us in (0, 0, HOUR, 0, -2 * HOUR, 0):
        machine.wall_us += step_us
        machine.passes(SECOND)
        machine.offset = machine.reader.latestOffset(machine.offset, ReadAllAvailable())
        rows.append(machine.offset["streams"]["0"]["rows"])
    assert rows == [1, 11, 21, 31, 41, 51]


def test_people_are_told_the_wall_clocks_time_of_what_units_decide() -> None:
    told = {"plan": 1, "at_us": 7, "decisions": [{"plan": 2, "at_us": 7}]}
    units: list[dict[str, Any]] = [{"adapting": told}, {"adapting": {}}]
    slot = {"slot": 0, "units": units, "intake": [], "seconds": {"all": 0.0, "receive": 0.0}}
    in_time = {"plan": 1, "at_us": 1000, "decisions": [{"plan": 2, "at_us": 1000}]}
    assert batch_report(0, Moment(7, 1000, 1000), [slot], 0, []).units == [{"adapting": in_time}, units[1]]
