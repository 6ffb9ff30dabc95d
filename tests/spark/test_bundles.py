"""Queries of several kinds in one job on Spark: each gives what it gives alone, also when the driver dies."""

from __future__ import annotations

import json
import threading
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamjoin import failpoints
from streamjoin.spark import driver, join
from streamjoin.spark.run import report, run_job
from streamjoin.spec.joinfile import load
from streamjoin.spec.prepare import bind
from tests.conformance import test_time_in_bundles as timed
from tests.conformance.alone import run_alone
from tests.conformance.test_bundles import FILED, file_of, rows_in, streams, write
from tests.conformance.test_starting_queries import BASE, NEW, alone, batch_of, job_of, since
from tests.failing import failing_at

from . import losing
from .jobs import crash, run_to_the_end

pytestmark = pytest.mark.spark


def check(folder: Path) -> None:
    """What each query left, against the same query in a job of its own, without Spark."""
    for name in FILED:
        place = name.replace(" ", "-")
        run_alone(bind(load(file_of(folder, place, [name]))))
        alone = rows_in(folder / place)
        assert alone and rows_in(folder / "together" / place) == alone, name


@pytest.mark.soak
def test_each_query_gives_what_it_gives_alone(session: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, streams(61))
    bound = bind(load(file_of(tmp_path, "together", FILED)))
    job = bound.job(heartbeat=False)
    progress = run_job(session, bound, job, bound.sinks(), until_end=True)
    check(tmp_path)
    told = report(bound, job, progress, 1.0, 0)
    assert told["tuples_in"] == {"a": 90, "b": 90, "c": 90}
    assert told["results"] == sum(counts["results"] for counts in told["queries"].values()) > 0


@pytest.mark.soak
def test_a_floor_whose_output_is_lost_is_repeated_exactly(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some queries are answered on a floor that others go on from: their parts are written once more."""
    write(tmp_path, streams(63))
    notes = tmp_path / "notes"
    notes.mkdir()
    monkeypatch.setattr(join, "feeding_rows", partial(losing.feeding_rows, notes))
    monkeypatch.setattr(driver, "unit_reports", partial(losing.unit_reports, notes))
    file = file_of(tmp_path, "together", FILED)
    # More slots than cores: some tasks of the last floor begin when others have read what was sent at first.
    file.write_text(file.read_text().replace("slots: 2", "slots: 4"))
    bound = bind(load(file))
    progress = run_job(session, bound, bound.job(heartbeat=False), bound.sinks(), until_end=True)
    assert progress.reconnects == 0
    repeated = [attempts for attempts in losing.sent(notes).values() if len(attempts) > 1]
    assert any(attempts[0] for attempts in repeated)
    assert all(again == first for first, *others in repeated for again in others)
    check(tmp_path)


@pytest.mark.soak
def test_a_driver_that_dies_goes_on_exactly(session: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, streams(62))
    file = file_of(tmp_path, "together", FILED)
    for place in ("batch.mid_commit:5", "batch.before_commit:2"):
        crash(session, file, place)
    run_to_the_end(session, file, 3)
    check(tmp_path)


def test_queries_start_and_end_in_a_job_that_goes_on(session: SparkSession, tmp_path: Path) -> None:
    """The last batch of the driver that died is done for the queries that it began with."""
    write(tmp_path, streams(64))
    crash(session, job_of(tmp_path, BASE), "batch.before_commit:3")
    queries = BASE | {name: NEW[name] for name in ("left", "three", "semi")}
    with failing_at("requery.after_note"), pytest.raises(failpoints.FailpointError):
        run_to_the_end(session, job_of(tmp_path, queries, ["bc"]), 2)
    run_to_the_end(session, job_of(tmp_path, queries, ["bc"]), 1)
    for name in ("left", "three", "semi"):
        wanted = since(alone(tmp_path, f"{name}-alone", NEW[name]), 3)
        assert wanted and rows_in(tmp_path / "job" / name) == wanted, name
    bc = alone(tmp_path, "bc-alone", BASE["bc"])
    ended = {row: n for row, n in bc.items() if max(map(batch_of, row[:2])) < 3}
    assert rows_in(tmp_path / "job" / "bc") == ended and ended
    assert rows_in(tmp_path / "job" / "ab") == alone(tmp_path, "ab-alone", BASE["ab"])


@pytest.mark.soak
def test_a_stop_is_no_silence_of_a_stream_whose_query_gets_no_row_in_the_first_batch(
    session: SparkSession, tmp_path: Path
) -> None:
    first, *steps = [times for _, _, times in timed.STOPPED]
    file = timed.file_of(tmp_path, idle_s=1800)
    timed.bring(tmp_path, 0, first)
    run_to_the_end(session, file, 1)
    for path in (tmp_path / "checkpoint" / "state").rglob("*.json"):
        state = json.loads(path.read_text())
        for clock in state["clocks"]:
            clock["now_us"], clock["seen_us"] = (clock[name] - timed.HOUR for name in ("now_us", "seen_us"))
            clock["routers"] = {name: [latest, at - timed.HOUR] for name, (latest, at) in clock["routers"].items()}
        path.write_text(json.dumps(state))
    stop, brought = threading.Event(), iter(enumerate(steps, 1))

    def bring_more(*given: object) -> None:
        if (step := next(brought, None)) is None:
            stop.set()
        else:
            timed.bring(tmp_path, *step)

    bring_more()
    bound = bind(load(file))
    job = bound.job(heartbeat=False)
    progress = driver.Driver(session, job, bound.sinks(), on_batch=bring_more).run(until_end=False, stop=stop)
    assert progress.batches == len(steps)
    assert rows_in(tmp_path / "left") == {(row, row): 1 for row in (100, 200, 210, 300)}
