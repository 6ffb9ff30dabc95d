"""A job of the platform whose tasks run on a real standalone cluster."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from pydantic import SecretStr

from backend.catalog.database import Catalog
from backend.settings import Settings
from streamjoin.errors import InputError
from streamjoin.spark.java import find_java
from tests.servers.process import comes_true
from tests.servers.spark import SparkCluster
from tests.spark.command import JAVA_OPTIONS
from worker import launch

from .jobs import SPEC, add_job, expected, job_of, results, streams
from .platform import workers

pytestmark = [pytest.mark.spark, pytest.mark.services, pytest.mark.slow]
START_S_MAX = 240.0


def test_a_job_says_where_its_tasks_run_and_is_exact(
    settings: Settings, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        find_java()
    except InputError as reason:
        pytest.skip(str(reason))
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", JAVA_OPTIONS)
    with SparkCluster(1) as cluster:
        asked = SecretStr(json.dumps(cluster.settings))
        chosen = settings.model_copy(
            update={
                "lease_s": 20.0, "driver_memory_mib": 512, "spark_master": cluster.master, "spark_shared": True,
                "spark_executors": "{min: 1, max: 1, memory: 512m}", "spark_settings": asked,
            }
        )  # fmt: skip
        with workers(chosen, catalog, None) as platform:
            given = streams(20)
            spec = replace(SPEC, run={"slots": 2, "until_end": True})
            job = add_job(catalog, wanted="running", streams=given, spec=spec)
            assert launch.launch(chosen, catalog, job, 1, chosen.machine)
            said = set()

            def has_ended() -> bool:
                seen = job_of(catalog, job)
                said.add(seen.reason)
                return seen.observed in ("stopped", "failed")

            assert comes_true(has_ended, START_S_MAX), platform.tails(job)
            assert job_of(catalog, job).reason == "reached the end", platform.tails(job)
            assert f"tasks run on {cluster.master}" in said
            assert results(chosen, job_of(catalog, job)) == expected(given)
            assert list((cluster.home / "worker-0").glob("app-*/0/streamjoin-package")), "nothing ran there"
