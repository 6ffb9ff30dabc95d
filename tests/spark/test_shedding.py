"""Load shedding on a real Spark: a repeated batch sheds the same tuples, and what it sheds is said."""

from __future__ import annotations

import json
import re
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from streamjoin.intake.shedding import ShedRule
from streamjoin.operators.biclique import Biclique, Routing
from streamjoin.spark.join import Stream, stream_join
from streamjoin.spark.run import report, run_job
from streamjoin.spec.joinfile import load, parse
from streamjoin.spec.prepare import bind
from streamjoin.state.store import read_manifests
from tests.conformance.check import expected, plan
from tests.conformance.histories import History, history

from .command import Command
from .jobs import check_same, crash, join_text, query, result_rows, run_text, unique, write_history

pytestmark = pytest.mark.spark

BATCHES = 10
OPERATOR = "name: biclique, routing: hash, r_units: 3, s_units: 2"
SHED = "shed: {threshold: 2, capacity: 14, base: 0.2}"


def overload() -> History:
    return history(30, r=600, s=600, time_shape="disordered", delay_us=15)


def write_join_file(folder: Path, shed: str = SHED) -> Path:
    """A join of `overload`; its R sheds."""
    write_history(overload(), folder, BATCHES)
    text = join_text(query("equality", "20 us"), OPERATOR, delay_us=15)
    file = folder / "join.yaml"
    file.write_text(text.replace("path: r,", f"path: r, {shed},"))
    return file


def all_pairs() -> Counter[Any]:
    found = plan(overload(), "equality", "20 us")
    return Counter(expected(overload(), "equality", found, BATCHES))


def shed_rows(state: Path) -> tuple[int, int]:
    """Tuples of R and of S that were shed; every unit must know the same of it."""
    [shed] = {(found.clocks[0].shed, found.clocks[1].shed) for _, found in read_manifests(state)}
    return shed


@pytest.mark.soak
def test_a_killed_job_sheds_the_same_tuples_as_one_that_was_not(session: SparkSession, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    run_text(session, write_join_file(whole).read_text(), whole)
    want, shed = result_rows(whole / "results"), shed_rows(whole / "checkpoint" / "state")
    assert 100 < shed[0] < 500 and shed[1] == 0
    assert want and not want - all_pairs() and want.total() < all_pairs().total()

    killed = tmp_path / "killed"
    file = write_join_file(killed)
    # Between two units' manifests, and with all results of a batch out.
    with Command(file, "--until-end", failpoints="unit.before_manifest:kill:6") as command:
        assert command.exit_status() == -signal.SIGKILL, command.output()
    crash(session, file, "batch.after_commit:2", 4)
    bound = bind(load(file, {"run.slots": "1"}))
    job = bound.job(heartbeat=False)
    told = report(bound, job, run_job(session, bound, job, bound.sinks(), until_end=True), 1.0, 0)
    check_same(result_rows(killed / "results"), want)
    assert shed_rows(killed / "checkpoint" / "state") == shed
    assert told["approximate"] is True
    assert 0 < told["shed"]["r"] < shed[0] and told["shed"]["s"] == 0


def test_a_batch_that_is_repeated_under_another_rule_sheds_by_the_one_it_began_with(
    session: SparkSession, tmp_path: Path
) -> None:
    file = write_join_file(tmp_path)
    crash(session, file, "batch.after_commit:5")
    pattern = "batch-000000004-*"
    before = {path.name: path.read_bytes() for path in (tmp_path / "results").glob(pattern)}
    run_text(session, file.read_text().replace(SHED + ", ", ""), tmp_path)
    assert before and before == {path.name: path.read_bytes() for path in (tmp_path / "results").glob(pattern)}
    progress = json.loads((tmp_path / "checkpoint" / "shedding.json").read_text())
    assert progress["rules"] == {} and progress["since"] == 5 and progress["before"]["0"]["threshold"] == 2
    # From batch 5 on R keeps every tuple again: it holds what an exact join would hold.
    assert result_rows(tmp_path / "results").total() > sum(before_rows(tmp_path, 5))


@pytest.mark.soak
def test_groups_of_streams_that_shed_are_said_to_be_approximate(session: SparkSession, tmp_path: Path) -> None:
    file = write_join_file(tmp_path)
    text = re.sub(
        "query: .*", "query: SELECT ONLINE COUNT(*) AS n FROM r, s WHERE r.x = s.x WITHIN 20 MICROSECONDS "
        "GROUP BY TUMBLE(1 SECOND)", file.read_text(),
    )  # fmt: skip
    for shed, is_shed in (("", False), (SHED + ", ", True)):
        own = {"run.checkpoint": f"state-{is_shed}", "results": f"{{parquet: results-{is_shed}}}"}
        bound = bind(parse(text.replace(SHED + ", ", shed), base=tmp_path, overrides=own))
        job = bound.job(heartbeat=False)
        told = report(bound, job, run_job(session, bound, job, bound.sinks(), until_end=True), 1.0, 0)
        assert told["approximate"] is is_shed and (told["shed"]["r"] > 100) is is_shed


def before_rows(folder: Path, batch: int) -> list[int]:
    import pyarrow.parquet as pq

    files = (folder / "results").glob("*.parquet")
    return [pq.read_metadata(path).num_rows for path in files if int(path.name.split("-")[1]) < batch]


@pytest.mark.soak
def test_streams_of_a_dataframe_join_shed_too(session: SparkSession, tmp_path: Path) -> None:
    write_history(overload(), tmp_path, BATCHES)

    def frame(name: str) -> DataFrame:
        folder = str(tmp_path / name)
        schema = session.read.parquet(folder).schema
        return session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)

    joined = stream_join(
        {"r": Stream(frame("r"), "ts", delay_us=15, shed=ShedRule(2, 14, 0.2)), "s": Stream(frame("s"), "ts", 15)},
        query("equality", "20 us"),
        operator=Biclique(3, 2, Routing.HASH),
        checkpoint=tmp_path / "state",
        slots=2,
    )
    name = unique("shed").replace("-", "_")
    writer = joined.writeStream.format("memory").queryName(name).option("checkpointLocation", str(tmp_path / "query"))
    writer.trigger(availableNow=True).start().awaitTermination()
    got = Counter(tuple(row) for row in session.table(name).collect())
    shed = shed_rows(tmp_path / "state" / "state")
    assert shed[0] > 100 and shed[1] == 0
    assert got and not got - all_pairs() and got.total() < all_pairs().total()
