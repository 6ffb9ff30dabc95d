"""Settings of the cluster on which jobs run: what a job's join file gets of them, and what is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from backend.catalog.jobspec import JobSpec
from backend.catalog.models import Job
from backend.jobs import service
from backend.jobs.inputs import Inputs
from backend.jobs.joinfile import draft_file, join_file
from backend.jobs.runs import run_of
from backend.settings import Settings, read_settings, without_secrets
from backend.streams.pushed import PUSH
from streamjoin.cli.platform.masked import masked_settings
from streamjoin.errors import InputError
from streamjoin.spec.reach import places
from tests.servers.process import free_ports
from worker.checks import check_cluster, check_store

Set = Callable[..., Settings]
STORE = "s3://key:secret@bucket/states?region=x"


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Set:
    """Settings from an environment that says these of Spark."""

    def read(**variables: str) -> Settings:
        for name, value in variables.items():
            monkeypatch.setenv(f"STREAMJOIN_SPARK_{name.upper()}", value)
        return read_settings()

    return read


def test_a_job_runs_on_the_cluster_that_is_set_and_changes_nothing_of_that(given: Set) -> None:
    settings = given(
        master="spark://there:7077", shared="true", driver_host="10.0.0.5", jars="kafka.jar",
        executors="{min: 2, max: 20, cores: 4, memory: 4g}", settings="{spark.pyspark.python: /opt/bin/python}",
    )  # fmt: skip
    run = run_of(settings, {"slots": 3, "until_end": True})
    assert run == {
        "slots": 3, "driver_memory": 1024, "master": "spark://there:7077", "shared": True, "driver_host": "10.0.0.5",
        "executors": {"min": 2, "max": 20, "cores": 4, "memory": "4g"},
        "spark": {"spark.pyspark.python": "/opt/bin/python", "spark.jars": "kafka.jar"},
    }  # fmt: skip
    assert (
        run_of(settings, {"master": "local", "shared": False, "spark": {"spark.jars": "mine.jar"}}).items()
        >= {name: run[name] for name in ("master", "shared", "spark")}.items()
    ), "whatever else a job asked for"
    text = "SELECT ONLINE a.x FROM a, b WHERE a.x = b.x WITHIN 1 SECONDS"
    streams = {name: {"source": "csv", "path": f"/{name}.csv", "time": "ts"} for name in "ab"}
    file = draft_file(settings, JobSpec(query=text, run={"slots": 3}), Inputs(streams, {}), {})
    assert file.cluster is not None and file.cluster.master == "spark://there:7077" and file.run.shared
    for field in ("master", "executors", "shared", "driver_host", "spark"):
        with pytest.raises(InputError, match="is set by the platform") as wrong:
            draft_file(settings, JobSpec(query=text, run={field: "local"}), Inputs(streams, {}), {})
        assert wrong.value.field == f"run.{field}"
    again = Settings(**{name.removeprefix("STREAMJOIN_").lower(): value for name, value in
                        settings.environment().items() if "SPARK" in name})  # fmt: skip
    assert run_of(again, {}) == run_of(settings, {})
    shown = {row["setting"]: row["value"] for row in masked_settings(settings)}
    assert shown["STREAMJOIN_SPARK_MASTER"] == "spark://there:7077" and "opt" not in shown["STREAMJOIN_SPARK_SETTINGS"]
    assert "STREAMJOIN_SPARK_SETTINGS" not in without_secrets(settings.environment()), "it may hold a cluster's secret"


@pytest.mark.parametrize(
    ("executors", "slots"),
    [(None, 2), ("{cores: 4}", 2), ("{max: 3, cores: 4}", 12), ("{max: 20, cores: 4}", 64), ("{max: 1}", 1)],
)
def test_a_job_that_names_no_slots_has_those_of_all_executors(given: Set, executors: str | None, slots: int) -> None:
    said = {} if executors is None else {"executors": executors}
    settings = given(master="spark://there:7077", shared="true", **said)
    assert run_of(settings, {})["slots"] == slots
    assert run_of(settings, {"slots": 3})["slots"] == 3
    assert run_of(settings.model_copy(update={"job_slots_max": 5}), {})["slots"] == min(slots, 5)


def test_doctor_asks_the_cluster(given: Set) -> None:
    assert list(check_cluster(given())) == []
    (port,) = free_ports(1)
    (found,) = check_cluster(given(master=f"spark://127.0.0.1:{port}", shared="true"))
    assert found.verdict == "wrong" and f"nobody answers at 127.0.0.1:{port}" in found.detail
    assert "STREAMJOIN_SPARK_MASTER" in found.todo


def test_doctor_warns_of_sqlite_on_a_cluster_alone(given: Set, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(check_store(given())) == []
    (found,) = check_store(given(master="spark://there:7077", shared="true"))
    assert (found.what, found.verdict) == ("store", "note") and "SQLite" in found.detail
    assert "STREAMJOIN_RESULT_STORE" in found.todo
    (port,) = free_ports(1)
    for name, value in {"RESULT_STORE": "hbase", "HBASE_HOST": "127.0.0.1", "HBASE_PORT": str(port)}.items():
        monkeypatch.setenv(f"STREAMJOIN_{name}", value)
    assert [check.what for check in check_store(given())] == ["hbase"]


def test_a_job_may_not_choose_sqlite_where_a_cluster_would_write_it_and_there_is_another_store(given: Set) -> None:
    pytest.importorskip("pyspark")
    from worker import driver

    there = given(master="spark://there:7077", shared="true")
    hbase = there.model_copy(update={"result_store": "hbase", "hbase_host": "127.0.0.1"})
    text = "SELECT ONLINE a.x FROM a, b WHERE a.x = b.x WITHIN 1 SECONDS"
    job = Job(id="job_1", spec=JobSpec(query=text).with_store("sqlite"), streams={}, relations={}, incarnation=0)

    def draft(settings: Settings) -> None:
        service.bound_draft(settings, job.spec, Inputs({}, {}), {})

    def made(settings: Settings) -> None:
        service.bound_job(settings, job, {})

    def launched(settings: Settings) -> None:
        driver.run(settings, MagicMock(), MagicMock(), job, MagicMock(), ExitStack())

    for start in (draft, made, launched):
        with pytest.raises(InputError, match=r"machines of spark://there:7077 .* write hbase") as wrong:
            start(hbase)
        assert wrong.value.field == "results.store"
        for other in (there, hbase.model_copy(update={"spark_master": None})):
            with pytest.raises(InputError) as wrong:  # of its streams: it has none
                start(other)
            assert wrong.value.field != "results.store"
    job.streams = {name: {"source": "csv", "path": f"/{name}.csv", "time": "ts"} for name in "ab"}
    assert join_file(hbase, job, {}).results.store == "sqlite", "its earlier results can still be read"


@pytest.fixture
def without_a_shared_folder(given: Set, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A cluster that has nothing of the data folder; states are in a store, and results in a server."""
    for name, value in {"STATE": STORE, "RESULT_STORE": "hbase", "HBASE_HOST": "127.0.0.1"}.items():
        monkeypatch.setenv(f"STREAMJOIN_{name}", value)
    return given(master="spark://there:7077")


def test_a_store_of_states_takes_the_place_of_a_shared_folder(without_a_shared_folder: Settings) -> None:
    settings = without_a_shared_folder
    spec = JobSpec(query="SELECT ONLINE a.id AS a, b.id AS b FROM a, b WHERE a.k = b.k WITHIN 1 SECONDS")
    inputs = Inputs(
        {
            "a": {"source": "generator", "kind": "uniform.r", "time": "ts"},
            "b": {"source": "generator", "kind": "uniform.s", "time": "ts"},
        },
        {},
    )
    bound = service.bound_draft(settings, spec, inputs, {})
    assert bound.file.run.state == "s3://key:secret@bucket/states/draft/0?region=x" and bound.file.cluster is not None
    job = Job(id="job_1", spec=spec.with_store("hbase"), streams=inputs.streams, relations={}, incarnation=2)
    file = service.bound_job(settings, job, {}).file
    assert file.run.state == "s3://key:secret@bucket/states/job_1/2?region=x" and not file.run.shared
    assert [place.what for place in places(file) if place.of_executors and place.is_local] == []
    assert file.run.cache is None or file.run.cache.path is None, "each machine's own, which is not in our folder"
    alone = settings.model_copy(update={"spark_master": None})
    cache = service.bound_job(alone, job, {}).file.run.cache
    assert cache is not None and cache.path == str(alone.data.absolute() / "cache")


def test_what_executors_would_look_for_in_the_data_folder_is_refused_with_the_setting(
    without_a_shared_folder: Settings, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("ts,x\n2026-01-01T00:00:00Z,1\n")
    settings = without_a_shared_folder.model_copy(update={"allowed_paths": (tmp_path,), "data": tmp_path / "data"})
    (settings.data / "uploads").mkdir(parents=True)
    shutil.copy(tmp_path / "a.csv", settings.data / "uploads")
    text = "SELECT ONLINE a.x FROM a, b WHERE a.x = b.x WITHIN 1 SECONDS"
    entry = {"source": "csv", "path": str(tmp_path / "a.csv"), "time": "ts"}
    pushed = {**entry, "source": "jsonl", PUSH: True}
    uploaded = {**entry, "path": "upload:a.csv"}
    for streams, relations, field, says in (
        ({"a": entry, "b": pushed}, {}, "streams.b", "reads pushed rows, which executors of spark://there:7077"),
        ({"a": uploaded, "b": entry}, {}, "streams.a", "reads upload:a.csv, which executors of spark://there:7077"),
        ({"a": entry}, {"b": entry}, "relations.b", "reads a relation, which executors of spark://there:7077"),
        ({"a": entry, "b": entry}, {}, "streams.a.path", "a folder of this machine alone"),
    ):
        with pytest.raises(InputError) as wrong:
            service.bound_draft(settings, JobSpec(query=text), Inputs(streams, relations), {})
        assert wrong.value.field == field and says in wrong.value.message
        assert "STREAMJOIN_SPARK_SHARED=true" in wrong.value.message
    shared = settings.model_copy(update={"spark_shared": True})
    assert service.bound_draft(shared, JobSpec(query=text), Inputs({"a": entry, "b": entry}, {}), {}).file.run.state


@pytest.mark.parametrize("master", [None, "", "local"])
def test_jobs_run_on_this_machine_unless_a_cluster_is_set(given: Set, master: str | None) -> None:
    settings = given() if master is None else given(master=master)
    assert not settings.is_on_cluster
    assert run_of(settings, {}).keys() == {"slots", "driver_memory"}


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        (
            {"master": "spark://there"},
            'STREAMJOIN_SPARK_MASTER: "spark://there" is not a master; write local, spark://',
        ),
        ({"master": "spark://me:hunter2@there:7077"}, "STREAMJOIN_SPARK_MASTER: has @ or ? in it"),
        ({"master": "yarn"}, "set STREAMJOIN_SPARK_SHARED=true, or keep states in an object store, which STREAMJOIN"),
        ({"executors": "{min: 2}"}, "STREAMJOIN_SPARK_EXECUTORS is for a cluster; set STREAMJOIN_SPARK_MASTER"),
        ({"driver_host": "me"}, "STREAMJOIN_SPARK_DRIVER_HOST is for a cluster"),
        ({"settings": "{spark.x: y}"}, "STREAMJOIN_SPARK_SETTINGS is for a cluster"),
        ({"executors": "4"}, "STREAMJOIN_SPARK_EXECUTORS: is not a mapping"),
        ({"executors": "{mim: 2}"}, "STREAMJOIN_SPARK_EXECUTORS: executors.mim: there is no such field"),
        ({"executors": "{min: 3, max: 2}", "master": "yarn"}, "run.executors.min: is 3, and max is 2"),
        ({"settings": "{spark.master: yarn}", "master": "yarn"}, "run.spark.spark.master: has a field of its own"),
        ({"settings": "spark.x", "master": "yarn"}, "STREAMJOIN_SPARK_SETTINGS: is not a mapping"),
        ({"driver_host": "me:1", "master": "yarn"}, "STREAMJOIN_SPARK_DRIVER_HOST: "),
        ({"master": "k8s://there", "shared": "true"}, "spark.kubernetes.container.image"),
    ],
)
def test_what_is_wrong_with_a_cluster_is_said_with_its_setting(
    given: Set, variables: dict[str, str], says: str
) -> None:
    with pytest.raises(InputError) as wrong:
        given(**variables)
    assert says in str(wrong.value) and "hunter2" not in str(wrong.value)
