"""Who gets which secret: the API all, what runs jobs what a job needs, and what a driver starts none."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from backend.auth.secrets import seal
from backend.catalog.database import Catalog
from backend.catalog.jobspec import JobSpec
from backend.catalog.models import Relation, Stream
from backend.settings import SECRETS, Settings, forget_secrets, read_settings, without_secrets
from streamjoin.errors import InputError
from streamjoin.sources.sql import columns_of
from streamjoin.spark.java import find_java
from tests.servers.postgres import PostgresServer
from tests.servers.process import comes_true
from tests.spark.command import JAVA_OPTIONS
from worker import launch, processes
from worker.joining import read_job
from worker.platform import MIGRATION, Platform, needs

from .jobs import add_job, by_duckdb, job_of, results, streams
from .platform import Workers, workers

PASSWORD = "canary :/@%#?&=é 1"
ODD_MAX = 4001
CANARIES = {name: f"canary-of-{name.replace('_', '-')}" for name in ("admin_password", "secret_key")}


def test_an_environment_keeps_the_secrets_that_are_named_and_no_file_of_others() -> None:
    given = {f"STREAMJOIN_{name.upper()}{end}": "x" for name in SECRETS for end in ("", "_FILE")} | {"PATH": "/bin"}
    assert without_secrets(given) == {"PATH": "/bin"}
    assert set(without_secrets(given, ("secret_key",))) == {
        "PATH", "STREAMJOIN_SECRET_KEY", "STREAMJOIN_SECRET_KEY_FILE",
    }  # fmt: skip


def test_every_secret_of_the_settings_is_one_that_can_be_kept_back() -> None:
    of_type = {name for name, field in Settings.model_fields.items() if "SecretStr" in str(field.annotation)}
    assert of_type <= set(SECRETS)


def test_each_part_gets_what_it_needs() -> None:
    assert set(needs("api")) == set(needs("api-2")) == set(SECRETS)
    assert needs("redis") == ()
    assert "admin_password" not in needs("worker") and "secret_key" in needs("reconciler")


def test_what_is_forgotten_is_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMJOIN_SECRET_KEY", "canary")
    monkeypatch.setenv("STREAMJOIN_REDIS_URL_FILE", "/run/secrets/redis_url")
    forgotten = forget_secrets()
    assert forgotten["STREAMJOIN_SECRET_KEY"] == "canary" and "STREAMJOIN_REDIS_URL_FILE" in forgotten
    assert not forgotten.keys() & os.environ.keys()
    for name, value in forgotten.items():
        monkeypatch.setenv(name, value)


def test_attack_a_secret_from_a_file_is_in_no_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"secret_key": "canary-key", "admin_password": "canary-admin"}.items():
        (tmp_path / name).write_text(value)
        monkeypatch.setenv(f"STREAMJOIN_{name.upper()}_FILE", str(tmp_path / name))
    monkeypatch.setenv("STREAMJOIN_DATA", str(tmp_path / "data"))
    settings = read_settings()
    assert settings.secret_key is not None and settings.secret_key.get_secret_value() == "canary-key"
    given: list[dict[str, str]] = []

    class NotStarted:
        pid = 1

        def __init__(self, *_: Any, env: dict[str, str], **__: Any) -> None:
            given.append(env)

        def poll(self) -> int:
            return 0

    monkeypatch.setattr(subprocess, "Popen", NotStarted)
    whole = Platform(settings, tmp_path / "pipe", print)
    whole.aside(MIGRATION, ["true"])
    for name in ("api", "worker"):
        whole.child(name, ["true"], lambda _: True)
    launch.start(settings, "job_" + "0" * 26, 1, "a key")
    assert len(given) == 4 and not any("canary" in value for env in given for value in env.values())
    files = [{name for name in env if name.startswith("STREAMJOIN_") and name.endswith("_FILE")} for env in given]
    both = {"STREAMJOIN_SECRET_KEY_FILE", "STREAMJOIN_ADMIN_PASSWORD_FILE"}
    assert files == [set(), both, {"STREAMJOIN_SECRET_KEY_FILE"}, {"STREAMJOIN_SECRET_KEY_FILE"}]


def test_a_migration_has_the_catalogs_address_and_no_other_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert needs(MIGRATION) == ("catalog_url",)
    secret = {name: SecretStr("canary") for name in ("admin_password", "secret_key", "cassandra_password")}
    settings = Settings(data=tmp_path, catalog_url="sqlite:///there.db").model_copy(update=secret)
    monkeypatch.setenv("STREAMJOIN_SECRET_KEY", "canary")
    told = tmp_path / "told"
    whole = Platform(settings, tmp_path / "pipe", print)
    whole.aside(MIGRATION, ["sh", "-c", f"env > {told}"])
    assert whole.asides[0].wait(30) == 0
    assert "canary" not in told.read_text() and "STREAMJOIN_CATALOG_URL=sqlite:///there.db" in told.read_text()


def test_a_job_whose_secrets_another_key_sealed_is_wrong_itself_and_says_so(
    settings: Settings, catalog: Catalog
) -> None:
    before, now = (
        settings.model_copy(update={"secret_key": SecretStr(f"the {when} key of this test")}) for when in ("old", "new")
    )
    given = streams(1)
    with catalog.begin() as session:
        sealed = seal(before, {"sasl.password": PASSWORD})
        session.add(Stream(id="str_bid", name="bid", owner_id=None, spec=given["bid"], secrets=sealed))
    job = job_of(catalog, add_job(catalog, streams=given))
    with pytest.raises(InputError, match="encrypted with another key; set STREAMJOIN_SECRET_KEY"):
        read_job(now, catalog, job)
    with pytest.raises(InputError, match="STREAMJOIN_SECRET_KEY"):
        read_job(settings, catalog, job)


@pytest.fixture
def platform(settings: Settings, catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    """Starts drivers as a worker does, with secrets."""
    try:
        find_java()
    except InputError as reason:
        pytest.skip(str(reason))
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", JAVA_OPTIONS)
    for name, canary in CANARIES.items():
        monkeypatch.setenv(f"STREAMJOIN_{name.upper()}", canary)
    secret = {name: SecretStr(canary) for name, canary in CANARIES.items()}
    with workers(settings.model_copy(update={"driver_memory_mib": 512, **secret}), catalog, None) as made:
        yield made


@pytest.mark.spark
@pytest.mark.slow
def test_attack_java_and_python_workers_have_no_secret_to_tell(platform: Workers) -> None:
    job = add_job(platform.catalog, wanted="running", streams=streams(60))
    assert launch.launch(platform.settings, platform.catalog, job, 1, platform.settings.machine)
    platform.wait_observed(job, "running", within_s=120)
    data = platform.settings.data
    assert comes_true(lambda: len(processes.members(data, job)) >= 3, 60)  # a driver, Java, Python workers
    (driver,) = platform.drivers()
    told = {pid: environment_of(pid) for pid in processes.members(data, job)}
    assert CANARIES["secret_key"] in told[driver] and CANARIES["admin_password"] not in told[driver]
    assert [pid for pid, text in told.items() if pid != driver and "canary" in text] == []


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.services
@pytest.mark.slow
def test_a_job_reads_a_table_behind_a_password_and_writes_that_down_nowhere(platform: Workers) -> None:
    given = {"bid": streams(20)["bid"]}
    want = by_duckdb(given, f"SELECT bidder FROM bid WHERE bidder % 2 = 1 AND bidder <= {ODD_MAX}")
    assert want.total() > 100
    with PostgresServer() as server:
        url = server.guard("odd", PASSWORD, query=f"SELECT g::bigint AS k FROM generate_series(1, {ODD_MAX}, 2) g")
        spec = {"source": "sql", "url": url, "table": "odd"}
        sealed = seal(platform.settings, {"password": PASSWORD})
        with platform.catalog.begin() as session:
            session.add(Relation(id="rel_odd", name="odd", spec=spec, secrets=sealed))
        query = "SELECT ONLINE bid.bidder AS bidder FROM bid JOIN odd ON bid.bidder = odd.k"
        job = add_job(platform.catalog, wanted="running", streams=given, relations={"odd": spec},
                      spec=JobSpec(query, run={"slots": 2, "until_end": True}))  # fmt: skip
        assert launch.launch(platform.settings, platform.catalog, job, 1, platform.settings.machine)
        platform.wait_observed(job, "stopped", within_s=120)
    seen = job_of(platform.catalog, job)
    assert seen.reason == "reached the end"
    assert results(platform.settings, seen) == want
    assert comes_true(lambda: processes.members(platform.settings.data, job) == [], 30)
    written = [path for path in platform.settings.data.rglob("*") if path.is_file()]
    assert written and [path for path in written if PASSWORD.encode() in path.read_bytes()] == []


@pytest.mark.services
def test_attack_a_job_does_not_log_in_with_what_the_platforms_own_user_has(
    settings: Settings, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "pgpass").write_text("*:*:*:*:canary\n")
    (tmp_path / "pgpass").chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pgpass"))
    monkeypatch.setenv("PGPASSWORD", "canary")
    with PostgresServer() as server, workers(settings, catalog, None) as made:
        spec = {"source": "sql", "url": server.guard("odd", "canary", query="SELECT 1::bigint AS k"), "table": "odd"}
        assert columns_of(spec["url"], "odd").names == ["k"], "on the command line they are a person's own"
        with catalog.begin() as session:
            session.add(Relation(id="rel_odd", name="odd", spec=spec))
        query = "SELECT ONLINE bid.bidder AS bidder FROM bid JOIN odd ON bid.bidder = odd.k"
        job = add_job(catalog, wanted="running", streams={"bid": streams(1)["bid"]}, relations={"odd": spec},
                      spec=JobSpec(query))  # fmt: skip
        assert launch.launch(settings, catalog, job, 1, settings.machine)
        made.wait_observed(job, "failed", within_s=120)
    assert "no password supplied" in (reason := job_of(catalog, job).reason or "") and "canary" not in reason


def environment_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/environ").read_text(errors="replace")
    except OSError:
        return ""
