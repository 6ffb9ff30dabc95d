"""A job of the platform whose tasks run on a real standalone cluster, which sees the data folder, or not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs
from pydantic import SecretStr

from backend.catalog.database import Catalog
from backend.settings import Settings
from streamjoin.errors import InputError
from streamjoin.spark.java import find_java
from tests.servers import ServerUnavailable
from tests.servers.apart import inside, refusal
from tests.servers.hbase import HbaseServer
from tests.servers.process import comes_true
from tests.servers.s3 import BUCKET, ENVIRONMENT, S3
from tests.servers.spark import SparkCluster
from tests.spark.command import JAVA_OPTIONS
from worker import launch

from .jobs import SPEC, add_job, expected, job_of, results, streams
from .platform import workers

pytestmark = [pytest.mark.spark, pytest.mark.services, pytest.mark.slow]
START_S_MAX = 240.0


@contextmanager
def cluster_of(monkeypatch: pytest.MonkeyPatch, own: Path | None = None) -> Iterator[SparkCluster]:
    """A cluster of one worker; see `SparkCluster`."""
    try:
        find_java()
    except InputError as reason:
        pytest.skip(str(reason))
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", JAVA_OPTIONS)
    with SparkCluster(1, own, ENVIRONMENT if own else None) as cluster:
        yield cluster


@contextmanager
def hbase_or_skip() -> Iterator[HbaseServer]:
    """A store that executors reach over the network."""
    try:
        with HbaseServer() as server:
            yield server
    except ServerUnavailable as reason:
        pytest.skip(str(reason))


def on(cluster: SparkCluster, settings: Settings, **more: Any) -> Settings:
    """Settings by which jobs run there."""
    asked = SecretStr(json.dumps(cluster.settings))
    here = {"lease_s": 20.0, "driver_memory_mib": 512, "spark_master": cluster.master, "spark_settings": asked}
    return settings.model_copy(update={**here, "spark_executors": "{min: 1, max: 1, memory: 512m}", **more})


def runs_exactly(settings: Settings, catalog: Catalog) -> str:
    """Start a job that reads all there is, and see it end with the rows that DuckDB joins; its id."""
    with workers(settings, catalog, None) as platform:
        given = streams(20)
        spec = replace(SPEC, run={"slots": 2, "until_end": True})
        job = add_job(catalog, wanted="running", streams=given, spec=spec)
        assert launch.launch(settings, catalog, job, 1, settings.machine)
        said = set()

        def has_ended() -> bool:
            seen = job_of(catalog, job)
            said.add(seen.reason)
            return seen.observed in ("stopped", "failed")

        assert comes_true(has_ended, START_S_MAX), platform.tails(job)
        assert job_of(catalog, job).reason == "reached the end", platform.tails(job)
        assert f"tasks run on {settings.spark_master}" in said
        assert results(settings, job_of(catalog, job)) == expected(given)
    return job


@pytest.mark.soak
def test_a_job_says_where_its_tasks_run_and_is_exact(
    settings: Settings, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cluster_of(monkeypatch) as cluster:
        runs_exactly(on(cluster, settings, spark_shared=True), catalog)
        assert list((cluster.home / "worker-0").glob("app-*/0/streamjoin-package")), "nothing ran there"


@pytest.mark.soak
def test_a_job_is_exact_where_executors_have_an_object_store_and_no_folder_of_the_platform(
    settings: Settings, catalog: Catalog, s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (reason := refusal()) is not None:
        pytest.skip(reason)
    (own := tmp_path / "own").mkdir()
    place = f"{BUCKET}/{tmp_path.name}"
    with hbase_or_skip() as hbase, cluster_of(monkeypatch, own) as cluster:
        results = {"result_store": "hbase", "hbase_host": "127.0.0.1", "hbase_port": hbase.port}
        job = runs_exactly(on(cluster, settings, state=s3.uri(place), **results), catalog)
        kept = s3.filesystem().get_file_info(fs.FileSelector(f"{place}/{job}", recursive=True))
        assert any(info.extension == "arrow" for info in kept)
        assert not list(settings.data.rglob("*.arrow")), "state was written where executors could not"
        (worker,) = cluster.workers
        assert list(inside(worker.pid, own / "worker-0").glob("app-*/0/streamjoin-package")), "nothing ran there"
