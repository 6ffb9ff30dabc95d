"""Slots stay on the machine that they ran on, go to those that come, and survive those that are lost."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (its usual name)

from streamjoin.plan.ordering import Ordering
from streamjoin.spark import driver
from streamjoin.spark.join import fed, in_order
from streamjoin.spark.staying import KEY, Staying, staying
from streamjoin.spark.wire import ROUTED_SCHEMA
from streamjoin.spec.joinfile import parse
from streamjoin.spec.prepare import bind
from tests.conformance.histories import history
from tests.conformance.test_ordering import BATCHES
from tests.servers.process import ServerProcess
from tests.servers.spark import SparkCluster

from . import test_three_streams as three_streams
from .command import KILLS_S_MAX, RUN_S_MAX
from .jobs import check_same, crash, join_text, pairs_in_name_order, query, run_text, run_to_the_end, write_history
from .test_ordering import check

pytestmark = pytest.mark.spark


def slots_and_partitions(anchored: Staying, session: SparkSession, slots: int) -> set[tuple[int, int]]:
    rows = session.range(0, 200, 1, 3).selectExpr(f"CAST(id % {slots} AS int) AS slot", "'' AS meta", "X'00' AS block")
    assert rows.schema.simpleString() == f"struct<{ROUTED_SCHEMA.replace(' ', ':').replace(',:', ',')}>"
    found = anchored.partitioned(rows).select("*", F.spark_partition_id().alias("partition"))
    return {(row.slot, row.partition) for row in found.collect()}


@pytest.fixture
def one_executor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Spark without a cluster has none on its list after a test in which it lost what a stage had sent."""
    monkeypatch.setattr("streamjoin.spark.staying.executors_at", lambda session: frozenset(["localhost:1"]))


@pytest.mark.usefixtures("one_executor")
@pytest.mark.parametrize("slots", [pytest.param(1, marks=pytest.mark.soak), pytest.param(2, marks=pytest.mark.soak), 7])
def test_blocks_come_to_the_partition_of_their_slot(session: SparkSession, slots: int) -> None:
    anchored = Staying(session, slots)
    anchored.look()
    assert anchored._anchors is not None and anchored._anchors.rdd.getNumPartitions() == slots
    assert slots_and_partitions(anchored, session, slots) == {(slot, slot) for slot in range(slots)}
    before = anchored._anchors
    anchored.look()
    assert anchored._anchors is before, "nobody has come"
    anchored.close()
    assert not before.is_cached


MADE = "anchor.made."
"""Before a slot's number, the name of what Java knows once a task has made the slot's anchor."""


def made_now(session: SparkSession, slots: int) -> list[int]:
    """Slots whose anchors were made since this was asked last."""
    jvm: Any = session.sparkContext._jvm
    return [slot for slot in range(slots) if jvm.java.lang.System.clearProperty(f"{MADE}{slot}") is not None]


def test_anchors_are_as_small_after_many_executors_have_come(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Spark's own list of what is kept is empty after a test in which it lost what a stage had sent.
    note = f"concat('is ', coalesce(java_method('java.lang.System', 'setProperty', concat('{MADE}', slot), ''), ''))"
    monkeypatch.setattr("streamjoin.spark.staying._holding", lambda seconds: f"length({note}) > 0")
    sizes = []
    with closing(Staying(session, 3)) as anchored:
        for number in range(4):
            monkeypatch.setattr(
                "streamjoin.spark.staying.executors_at", lambda session, at=number: frozenset([f"h:{at}"])
            )
            before = anchored._anchors
            anchored.look()
            assert anchored._anchors is not None and anchored._anchors is not before
            assert [before is None or not before.is_cached, anchored._anchors.is_cached] == [True, True]
            assert session.sparkContext._jsc.getPersistentRDDs().size() == 1, "no others are kept"
            assert made_now(session, 3) == [0, 1, 2]
            assert len(anchored._anchors.collect()) == 3 and made_now(session, 3) == [], (
                "all are kept, so none is made again"
            )
            java = anchored._anchors._jdf
            plan = java.queryExecution().logical().treeString()
            sizes.append((plan.count("\n"), java.rdd().toDebugString().count("\n")))
        assert len(set(sizes)) == 1, "what is sent with each task does not grow"
        assert slots_and_partitions(anchored, session, 3) == {(slot, slot) for slot in range(3)}


@pytest.mark.usefixtures("one_executor")
def test_a_spark_that_does_not_zip_unions_does_without(
    session: SparkSession, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def keyed(staying: Staying, rows: DataFrame) -> DataFrame:
        return rows.withColumn(KEY, F.lit(0)).repartitionById(staying.slots, F.col("slot"))

    monkeypatch.setattr(Staying, "_keyed", keyed)
    anchored = Staying(session, 3)
    with caplog.at_level(logging.WARNING):
        anchored.look()
    assert "slots move among machines" in caplog.text
    assert slots_and_partitions(anchored, session, 3) == {(slot, slot) for slot in range(3)}
    caplog.clear()
    anchored.look()
    assert not caplog.text, "it is said once"


def test_on_one_machine_nothing_is_anchored(session: SparkSession) -> None:
    assert staying(session, 2) is None


@pytest.fixture
def anchored_jobs(monkeypatch: pytest.MonkeyPatch, session: SparkSession) -> Iterator[None]:
    """Jobs run as on a cluster."""
    monkeypatch.setattr(driver, "staying", Staying)
    yield
    assert session.sparkContext._jsc.getPersistentRDDs().isEmpty(), "nothing is left behind"


@pytest.mark.soak
@pytest.mark.usefixtures("anchored_jobs")
def test_three_streams_are_joined_exactly_over_anchors_too(session: SparkSession, tmp_path: Path) -> None:
    given = three_streams.history(12)
    three_streams.write(given, tmp_path, range(2))
    file = three_streams.write_join_file(tmp_path, three_streams.text())
    crash(session, file, "batch.before_commit:2")
    # Without and with them Spark has the same sources, so a job may go to a cluster and come back.
    three_streams.write(given, tmp_path, range(2, three_streams.BATCHES))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "staying", staying)
        crash(session, file, "batch.after_commit:2")
    run_to_the_end(session, file, 3)
    check_same(three_streams.found_in(tmp_path), three_streams.want(given))


@pytest.mark.usefixtures("anchored_jobs")
def test_results_over_anchors_are_in_order(session: SparkSession, tmp_path: Path) -> None:
    given = history(3, r=120, s=110, time_shape="disordered", delay_us=15)
    write_history(given, tmp_path, BATCHES)
    text = join_text(query("band", "20 us"), "name: splitjoin, cores: 3, ordering: total", delay_us=15)
    run_text(session, text, tmp_path)
    check(pairs_in_name_order(tmp_path / "results"), given, "20 us", Ordering.TOTAL)


@pytest.mark.parametrize(("idle", "order"), [("", [0, 1, 2]), (", idle: 1s", [2, 0, 1])])
def test_topics_are_in_the_order_in_which_spark_logs_them(
    idle: str, order: list[int], session: SparkSession, tmp_path: Path
) -> None:
    three_streams.write(three_streams.history(1), tmp_path)
    content = three_streams.text().replace("path: c,", f"path: c{idle},")
    job = bind(parse(content, base=tmp_path)).job()
    columns = "0 AS slot", "'' AS meta", "X'00' AS block"
    frames = {number: session.range(number, number + 1).selectExpr(*columns) for number in range(3)}
    plan = fed(job, [], frames)._jdf.queryExecution().logical().toString()
    assert in_order(job, frames) == order == [int(first) for first in re.findall(r"Range \((\d+)", plan)]
    assert in_order(job, [1, 2]) == [number for number in order if number]


class Batches(ServerProcess):
    """`stays`, whose batches are looked at."""

    def __init__(self, cluster: SparkCluster, folder: Path) -> None:
        command = [sys.executable, "-m", "tests.spark.stays", cluster.master, json.dumps(cluster.settings)]
        super().__init__("stays", command, folder / "stays.log")

    def all(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.output().splitlines() if line.startswith('{"places"')]

    def after(self, count: int) -> list[list[str]]:
        """So many batches more; where slots ran in each."""
        known = len(self.all())
        self.wait_until(lambda: len(self.all()) >= known + count, f"comes to no {count} batches", RUN_S_MAX)
        return [batch["places"] for batch in self.all()[known:]]

    def spread(self) -> list[str]:
        """Wait until slots run at two places, then a while; where they are."""
        self.wait_until(lambda: len(set(self.all()[-1]["places"])) == 2, "uses one executor", RUN_S_MAX)
        batches = self.after(8)
        assert [batch for batch in batches if batch != batches[0]] == [], "slots move about"
        return batches[0]


@pytest.mark.soak
@pytest.mark.services
@pytest.mark.slow
@pytest.mark.timeout(KILLS_S_MAX)
def test_slots_stay_and_go_to_executors_that_come(tmp_path: Path) -> None:
    with SparkCluster(1) as cluster, Batches(cluster, tmp_path) as batches:
        batches.wait_until(lambda: len(batches.all()) >= 2, "begins not", RUN_S_MAX)
        (only,) = set(batches.after(1)[0])
        cluster.start_worker()
        first = batches.spread()
        assert only in first, "one of the slots had no reason to go"
        victim = next(one for one in cluster.executors() if one.cwd() == first[1])
        assert isinstance(victim, psutil.Process)
        os.kill(victim.pid, signal.SIGKILL)
        batches.wait_until(lambda: first[1] not in batches.all()[-1]["places"], "does not go on", RUN_S_MAX)
        then = batches.spread()
        assert set(then) & set(first) == {first[0]}, "the one that is left still has a slot"
        assert all(batch["slots"] == [[0], [1]] for batch in batches.all()), "each gets what is for it, wherever it is"
