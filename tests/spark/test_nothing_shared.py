"""A join on a cluster whose machines share an object store and no disk is exact, whichever of them is lost."""

from __future__ import annotations

import re
import shutil
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.servers import KafkaBroker, ServerUnavailable, spark_connector_jars
from tests.servers.apart import inside, refusal
from tests.servers.hbase import HbaseServer
from tests.servers.process import ServerProcess
from tests.servers.proxy import Requests
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


SEGMENT = re.compile(r".*/0/(\d+)/[^/]*\.arrow")


def slots_of(paths: Iterable[str]) -> set[int]:
    """The slots of the units whose segments are among these."""
    return {int(found[1]) % WORKERS for path in paths if (found := SEGMENT.fullmatch(path))}


def with_slot(run: Run, slot: int) -> ServerProcess:
    """The worker that has a slot."""
    for executor in run.cluster.executors():
        if slot in slots_of(map(str, inside(executor.pid, run.own / "cache").rglob("*.arrow"))):
            above = {process.pid for process in executor.parents()}
            return next(worker for worker in run.cluster.workers if worker.pid in above)
    raise AssertionError(f"no executor has segments of slot {slot}")


@pytest.mark.soak
@pytest.mark.timeout(KILLS_S_MAX)
def test_what_a_lost_worker_had_is_fetched_again_and_nothing_else(
    s3: S3, hbase: HbaseServer, own: Path, tmp_path: Path
) -> None:
    streams = {name: generated(name) for name in SEEDS}
    with SparkCluster(WORKERS, own, ENVIRONMENT) as cluster, Requests(s3.port) as requests:
        run = Run(tmp_path, cluster, s3, hbase, streams, port=requests.port)
        with run.driver() as driver:
            run.goes_on(driver, 4)
            run.check_apart()
            before = len(requests.asked)
            # While a machine has two slots, the lower one stays there, and the other one goes to the replacement.
            cluster.lose(with_slot(run, WORKERS - 1))
            assert driver.exit_status() == 0, driver.output()
        fetched = slots_of(path for method, path in requests.asked[before:] if method == "GET")
        assert fetched == {WORKERS - 1}
        run.check_exact(generation=1)


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
