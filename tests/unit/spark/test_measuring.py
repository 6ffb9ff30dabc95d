"""The driver's log of what steps of a ring take: once for a batch, and what tasks find of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.errors import StateError
from streamjoin.operators import registry
from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query
from streamjoin.spark.measuring import Measuring, measured_before
from streamjoin.spec.job import Job
from streamjoin.spec.measured import MEASURED_FILE, MeasuredLog
from streamjoin.state.generation import Generation
from streamjoin.state.restored import restore
from tests.servers.objects import folder_root

COLUMNS = pa.schema([("ts", pa.int64()), ("k", pa.int64())])
STREAMS = {name: StreamSchema(name, COLUMNS, "ts", "us", 0) for name in "abc"}
QUERY = "SELECT ONLINE a.ts FROM a, b, c WHERE a.k = b.k AND b.k = c.k WITHIN 1 SECOND"


def job(folder: Path, operator: str = "ring", **knobs: Any) -> Job:
    plan = registry.planned(operator, knobs, plan_query(QUERY, STREAMS), 2)
    return Job(plan, registry.build_all(operator, knobs, plan, 2), 2, folder)


def watched(one: Job) -> Measuring:
    found = Measuring.of(one)
    assert found is not None
    return found


def slots(pair_s: float, hop_s: float = 0.02, rows: int = 10) -> list[dict[str, Any]]:
    """Reports of a batch of two rounds, by two slots each."""
    node = {"compared": [pair_s * 1000, 1000, 0.0], "received": [0.0, 10, 0.0], "handed": [0.0, 0, 0]}
    return [
        {
            "slot": slot, "stage": stage, "units": [{"spent": node}],
            "intake": [] if stage else [{"counts": {"rows": rows}}],
            "at_s": {"received": 100.0 + 5 * stage + slot, "done": 105.0 - hop_s + slot - 1},
        }
        for stage in range(2)
        for slot in range(2)
    ]  # fmt: skip


def test_what_was_measured_is_logged_before_the_batch_that_knows_it(tmp_path: Path) -> None:
    one = job(tmp_path)
    measuring = watched(one)
    for batch in range(8):
        measuring.log(batch)
        assert ("join" in measured_before(one, batch)) == (batch >= 5)
        measuring.add(slots(2e-6))
    assert measured_before(one, 4) == {}
    found = measured_before(one, 7)
    # From the last slot that has sent all to the first one that has all, by the batch's twenty rows.
    assert found == {"join": pytest.approx(2e-6), "hop": pytest.approx(0.02 / 20)}
    origins = {told["name"]: told["origin"] for told in measuring.to_json()}
    assert origins == {
        "join": "measured",
        "hop": "measured",
        "send": "assumed",
        "insert": "assumed",
        "purge": "assumed",
    }
    assert {told["name"]: told["us"] for told in measuring.to_json()}["join"] == pytest.approx(2.0)


def test_a_batch_that_is_repeated_after_its_times_were_noted_knows_what_it_knew(tmp_path: Path) -> None:
    one = job(tmp_path)
    measuring = watched(one)
    for batch in range(5):
        measuring.log(batch)
        measuring.add(slots(2e-6))
    measuring.log(4)  # Spark did not take the commit
    assert measured_before(one, 4) == {} and not (tmp_path / MEASURED_FILE).exists()
    measuring.log(5)
    known = measured_before(one, 5)
    # A start after a kill, with units that take other times now.
    again = watched(one)
    for _ in range(9):
        again.add(slots(9e-6))
    again.log(5)
    assert measured_before(one, 5) == known
    again.log(6)
    assert measured_before(one, 5) == known and measured_before(one, 6)["join"] == pytest.approx(9e-6)


def test_a_start_goes_on_with_what_was_measured_and_a_damaged_log_stops_it(tmp_path: Path) -> None:
    one = job(tmp_path, adaptive=True, pair_us=3.0)
    (tmp_path / MEASURED_FILE).write_text(MeasuredLog().with_batch(3, {"join": 1e-6, "send": 2e-6}).to_text())
    told = {found["name"]: (found["us"], found["origin"]) for found in watched(one).to_json()}
    assert told["join"] == (pytest.approx(3.0), "set") and told["send"] == (pytest.approx(2.0), "measured")
    measuring = watched(one)
    for batch in range(7, 13):
        measuring.log(batch)
        measuring.add(slots(5e-6))
    # What has not been measured anew stays beside what has.
    assert measured_before(one, 12) == {
        "join": pytest.approx(5e-6), "send": 2e-6, "hop": pytest.approx(1e-3),
    }  # fmt: skip
    (tmp_path / MEASURED_FILE).write_text("{")
    with pytest.raises(StateError, match=MEASURED_FILE):
        watched(one)


def test_other_operators_measure_nothing(tmp_path: Path) -> None:
    assert Measuring.of(job(tmp_path, "biclique")) is None
    assert Measuring.of(replace(job(tmp_path))) is not None


def test_tasks_of_other_machines_and_another_host_know_what_was_logged(tmp_path: Path) -> None:
    place = folder_root(tmp_path / "store", tmp_path / "cache")
    (checkpoint := tmp_path / "one").mkdir()
    one = replace(job(checkpoint), states=place)
    made = Generation(place, checkpoint, 2, 0)
    elsewhere = replace(one, checkpoint=tmp_path / "no disk of the driver", states=made.root)
    assert measured_before(elsewhere, 0) == {}
    measuring = watched(one)
    for batch in range(7):
        measuring.log(batch)
        made.put(batch)
        measuring.add(slots(2e-6))
    known = measured_before(elsewhere, 6)
    assert known["join"] == pytest.approx(2e-6) and measured_before(elsewhere, 4) == {}
    # Another host takes over, and does batch 6 again; its units take other times.
    moved = tmp_path / "two"
    assert restore(place, moved)
    other = replace(one, checkpoint=moved)
    took_over = Generation(place, moved, 2, 6)
    again = watched(other)
    for batch in range(6, 16):
        again.log(batch)
        took_over.put(batch)
        now = measured_before(replace(elsewhere, states=took_over.root), batch)
        assert (now == known) == (batch < 11), batch
        again.add(slots(9e-6))
    assert now["join"] == pytest.approx(9e-6)
