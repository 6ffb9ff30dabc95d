"""A join on a cluster whose machines share an object store and no disk is exact, whichever of them is lost."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.servers import KafkaBroker, ServerUnavailable, spark_connector_jars
from tests.servers.apart import refusal
from tests.servers.hbase import HbaseServer
from tests.servers.s3 import ENVIRONMENT, S3
from tests.servers.spark import SparkCluster

from .command import KILLS_S_MAX
from .jobs import crash
from .nothing_shared import SEEDS, WORKERS, Run, generated, of_files, of_topic

pytestmark = [pytest.mark.spark, pytest.mark.services, pytest.mark.slow]


@pytest.fixture(scope="module")
def hbase() -> Iterator[HbaseServer]:
    try:
        with HbaseServer() as server:
            yield server
    except ServerUnavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """What every machine calls its own folder."""
    if (reason := refusal()) is not None:
        pytest.skip(reason)
    (folder := tmp_path / "own").mkdir()
    return folder


@pytest.mark.timeout(KILLS_S_MAX)
def test_a_cluster_goes_on_with_what_another_machine_left_in_the_store_and_loses_a_worker_with_its_disk(
    session: SparkSession, s3: S3, hbase: HbaseServer, own: Path, tmp_path: Path
) -> None:
    with SparkCluster(WORKERS, own, ENVIRONMENT) as cluster:
        run = Run(tmp_path, cluster, s3, hbase, {name: generated(name) for name in SEEDS})
        (other := tmp_path / "other machine").mkdir()
        crash(session, run.join_file(other, other), "batch.before_commit:3")
        shutil.rmtree(other)
        with run.driver() as driver:
            run.goes_on(driver, 4)
            run.check_apart()
            cluster.lose(cluster.workers[0])
            assert driver.exit_status() == 0, driver.output()
        run.check_exact(generation=2)


@pytest.mark.soak
@pytest.mark.timeout(KILLS_S_MAX)
def test_workers_and_drivers_are_lost_with_their_disks(
    s3: S3, hbase: HbaseServer, broker: KafkaBroker, own: Path, tmp_path: Path
) -> None:
    streams = {"r": of_topic(broker, "r"), "s": of_files(tmp_path, "s")}
    with SparkCluster(WORKERS, own, ENVIRONMENT) as cluster:
        run = Run(tmp_path, cluster, s3, hbase, streams, is_read=True, jars=spark_connector_jars())
        for lost in cluster.workers[:]:
            with run.driver() as driver:
                run.goes_on(driver, 1)
                run.check_apart()
                cluster.lose(lost)
                run.goes_on(driver, 1)
                assert driver.crash() == -signal.SIGKILL
        with run.driver() as last:
            assert last.exit_status() == 0, last.output()
        run.check_exact(generation=WORKERS + 1)
