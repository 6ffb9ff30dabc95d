"""Two machines with data folders of their own, over PostgreSQL, Redis, Cassandra and S3: one of them dies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest
from pyarrow import fs

from backend.catalog.database import Catalog
from backend.catalog.migrate import migrate
from backend.catalog.models import Job
from backend.settings import Settings
from streamjoin.errors import InputError
from streamjoin.spark.java import find_java
from tests.servers import ServerUnavailable
from tests.servers.cassandra import CassandraNode
from tests.servers.postgres import PostgresServer
from tests.servers.process import comes_true
from tests.servers.redis import RedisServer
from tests.servers.s3 import BUCKET, S3
from tests.spark.command import JAVA_OPTIONS
from worker.checks import check_state

from .jobs import SPEC, add_job, expected, job_of, lease_of, reports_of, results, streams, want
from .platform import Workers

pytest.importorskip("cassandra", reason="the driver for Cassandra is not installed")
pytestmark = [pytest.mark.services, pytest.mark.spark, pytest.mark.slow, pytest.mark.soak]

NAMES = ("left", "right")
START_S_MAX = 240.0


@pytest.fixture
def machines(tmp_path: Path, s3: S3, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Catalog, dict[str, Workers]]]:
    """The catalog, and by name the machines; nothing runs on them yet."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", JAVA_OPTIONS)
    with ExitStack() as stack:
        try:
            find_java()
            postgres = stack.enter_context(PostgresServer())
            redis = stack.enter_context(RedisServer(by_password=True))
            cassandra = stack.enter_context(CassandraNode())
        except (InputError, ServerUnavailable) as reason:
            pytest.skip(str(reason))
        migrate(postgres.url)
        catalog = stack.enter_context(closing(Catalog(postgres.url)))
        made = {}
        for name in NAMES:
            (data := tmp_path / name).mkdir()
            settings = Settings(
                data=data, auth="off", worker_name=name, catalog_url=postgres.url, redis_url=redis.url,
                state=s3.uri(f"{BUCKET}/two-machines"), result_store="cassandra", cassandra_hosts=("127.0.0.1",),
                cassandra_port=cassandra.port, driver_memory_mib=512, lease_s=10, reconcile_s=0.2, warm_drivers=0,
            )  # fmt: skip
            made[name] = Workers(settings, catalog, None)
            stack.callback(made[name].close)
        yield catalog, made


def objects_of(s3: S3, job: str) -> list[str]:
    """What there is of a job in the store, by a client of its own."""
    everything = s3.filesystem().get_file_info(fs.FileSelector(BUCKET, recursive=True))
    return [info.path for info in everything if info.is_file and job in info.path]


def is_removed(catalog: Catalog, job: str) -> bool:
    """Whether the catalog has the job no more."""
    with catalog.read() as session:
        return session.get(Job, job) is None


@pytest.mark.timeout(900)
def test_a_machine_dies_and_its_job_goes_on_exactly_on_the_other(
    machines: tuple[Catalog, dict[str, Workers]], s3: S3
) -> None:
    catalog, made = machines
    (found,) = check_state(made["left"].settings)
    assert found.verdict == "ok", found
    for machine in made.values():
        machine.worker()
        machine.reconciler()
    given = streams(40)
    job = add_job(
        catalog, wanted="running", streams=given,
        spec=replace(SPEC, run={"slots": 2}).with_store("cassandra"),
    )  # fmt: skip
    look = made["left"]
    look.wait_observed(job, "running", within_s=START_S_MAX)
    assert comes_true(lambda: results(look.settings, job_of(catalog, job)).total() > 0, 120), look.tails(job)
    first = lease_of(catalog, job)
    assert first is not None and first.folder is None
    dead, alive = made[first.host], next(made[name] for name in NAMES if name != first.host)
    dead.close()  # with SIGKILL, all there is of it
    alive.wait_observed(job, "running", generation=2, within_s=START_S_MAX)
    second = lease_of(catalog, job)
    assert second is not None and second.host == alive.settings.machine
    wanted = expected(given)
    assert wanted.total() > 1000
    assert comes_true(lambda: results(alive.settings, job_of(catalog, job)).total() >= wanted.total(), 120), (
        alive.tails(job)
    )
    assert results(alive.settings, job_of(catalog, job)) == wanted
    assert reports_of(catalog, job)[-1].body["totals"]["state_traffic"]["put_bytes"] > 0
    assert objects_of(s3, job)
    want(catalog, job, "deleted")
    if not comes_true(lambda: is_removed(catalog, job), 60):
        left = job_of(catalog, job)
        raise AssertionError(f"{left.observed=} {left.reason=}\n{alive.tails(job)}")
    assert not objects_of(s3, job)
    assert comes_true(lambda: not alive.settings.job_folder(job).exists(), 30)
