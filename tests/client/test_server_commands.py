"""The commands for whoever runs the platform: what they find, and that no secret leaves with it."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

import worker.platform
import worker.up
from backend.catalog.migrate import migrate
from backend.catalog.version import newest
from backend.settings import Settings, read_settings
from streamjoin.cli.platform import server
from streamjoin.cli.platform.bundle import end_of, find_logs
from streamjoin.cli.platform.masked import MASK, masked_settings, masked_text, secrets_of
from streamjoin.client import Client
from streamjoin.errors import InputError
from tests.client.conftest import Command, Said
from tests.client.serve import Server
from tests.servers.process import ServerProcess, free_ports
from tests.servers.redis import RedisServer
from worker import checks

SECRETS = {
    "STREAMJOIN_SECRET_KEY": "canary-key-5f0c",
    "STREAMJOIN_ADMIN_PASSWORD": "canary-admin-77",
    "STREAMJOIN_CASSANDRA_PASSWORD": "canary-cassandra-9",
    "STREAMJOIN_CATALOG_URL": "postgresql+psycopg://join:canary-database@127.0.0.1:1/catalog",
    "STREAMJOIN_REDIS_URL": "redis://:canary-redis@127.0.0.1:1/0",
}


@pytest.fixture
def settings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Settings]:
    """Settings from an environment that has nothing else."""
    for name in [name for name in os.environ if name.startswith("STREAMJOIN_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state-of-home"))  # what other platforms left behind is not ours

    def read(**values: str) -> Settings:
        for name, value in values.items():
            monkeypatch.setenv(f"STREAMJOIN_{name.upper()}", value)
        return read_settings()

    return read


def verdicts(found: Said) -> dict[str, str]:
    return {check["what"]: check["verdict"] for check in json.loads(found.out)}


def test_doctor_finds_a_machine_right(settings: Callable[..., Settings], command: Command) -> None:
    (port,) = free_ports(1)
    settings(port=str(port), secret_key="k" * 32, driver_memory_mib="480")
    found = command("doctor", "-o", "json")
    assert set(verdicts(found)) == {
        "python", "java", "settings", "secrets", "memory", "disk", "port", "redis", "catalog",
    }  # fmt: skip
    assert found.status == (1 if "wrong" in verdicts(found).values() else 0)
    assert {verdicts(found)[what] for what in ("python", "settings", "secrets", "disk", "port", "catalog")} == {"ok"}
    assert "ok    port" in command("doctor").out


@pytest.mark.parametrize(
    ("driver_mib", "verdict", "said"),
    [(1_000, "ok", "so 2 fit at once"), (2_000, "note", "so 1 fit at once"), (4_000, "wrong", "so 0 fit at once")],
)
def test_doctor_says_how_many_jobs_fit(
    driver_mib: int, verdict: str, said: str, settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "memory_limit_bytes", lambda: 4_300 << 20)
    found = checks.check_memory(settings(driver_memory_mib=str(driver_mib), job_slots="64"))
    assert (found.verdict, said in found.detail) == (verdict, True), found


@pytest.mark.parametrize(
    "variables",
    [{}, {"AUTH": "on"}, {"AUTH": "off"}, {"HOST": "localhost"}, {"HOST": "0.0.0.0"}, {"DATA": "elsewhere"}],
)
def test_doctor_and_up_agree_on_the_folder_and_on_who_logs_in(
    variables: dict[str, str], settings: Callable[..., Settings], command: Command, folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    last = folder / "before" / "streamjoin-data"
    (last.parent / "state" / "streamjoin").mkdir(parents=True)
    (last.parent / "state" / "streamjoin" / "data-folder").write_text(str(last))
    last.mkdir()
    (last / "catalog.db").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(last.parent / "state"))
    settings(port=str(*free_ports(1)), **variables)
    used: list[Settings] = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    monkeypatch.setattr(worker.up, "HeadStart", lambda command: SimpleNamespace(give_up=lambda: None))
    monkeypatch.setattr(worker.up, "keep_private", lambda: None)
    monkeypatch.setattr(worker.platform, "run", lambda settings, *_: used.append(settings))
    try:
        command("up")
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    (check,) = (check for check in json.loads(command("doctor", "-o", "json").out) if check["what"] == "settings")
    assert check["detail"] == f"data in {used[0].data.absolute()}, auth {used[0].auth}"
    assert used[0].data.absolute() == folder / variables.get("DATA", "streamjoin-data")
    # Both say that there is another folder, by the same words, where none is set.
    assert (str(last) in check["todo"]) is ("DATA" not in variables)
    assert not used[0].data.exists(), "looking makes nothing"


def test_doctor_says_what_is_wrong_and_what_to_do(
    settings: Callable[..., Settings], command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setenv("PATH", "/nowhere")
    (cassandra,) = free_ports(1)
    settings(**{name.removeprefix("STREAMJOIN_").lower(): value for name, value in SECRETS.items()},
             driver_memory_mib="100000000", result_store="cassandra", cassandra_hosts="127.0.0.1",
             cassandra_port=str(cassandra))  # fmt: skip
    found = command("doctor", "-o", "json")
    assert found.status == 1
    wrong = {what for what, verdict in verdicts(found).items() if verdict == "wrong"}
    assert wrong == {"java", "memory", "redis", "catalog", "cassandra"}
    assert all(check["todo"] for check in json.loads(found.out) if check["verdict"] == "wrong")
    assert "canary" not in found.out + found.err


def test_doctor_looks_on_where_settings_are_wrong(
    settings: Callable[..., Settings], command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMJOIN_PORT", "99999")
    found = command("doctor", "-o", "json")
    assert found.status == 1
    assert verdicts(found)["settings"] == "wrong" and verdicts(found)["python"] == "ok"
    assert "STREAMJOIN_PORT" in found.out


def test_doctor_knows_a_platform_that_runs_from_a_stranger_on_its_port(
    settings: Callable[..., Settings], platform: Server, tmp_path: Path
) -> None:
    assert checks.check_port(settings(port=str(platform.port))).detail == (
        f"a platform answers on port {platform.port} already"
    )
    (port,) = free_ports(1)
    stranger = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"]
    with ServerProcess("a stranger", stranger, tmp_path / "log") as process:
        process.wait_until(
            lambda: checks.check_port(settings(port=str(port))).verdict == "wrong", "does not listen", 20
        )
        assert "STREAMJOIN_PORT" in checks.check_port(settings(port=str(port))).todo


def test_doctor_tells_the_catalogs_version(settings: Callable[..., Settings], folder: Path) -> None:
    found = checks.check_catalog(settings(data=str(folder / "data")))
    assert found.verdict == "ok" and not (folder / "data").exists(), "looking makes nothing"
    migrate(settings().catalog)
    assert checks.check_catalog(settings()).detail.endswith(f"at version {newest()}")
    (folder / "data" / "catalog.db").write_bytes(b"this is no database, whatever its name says" * 100)
    assert checks.check_catalog(settings()).verdict == "wrong"


@pytest.mark.services
@pytest.mark.parametrize(("by_password", "place"), [(False, "/redis/redis.sock"), (True, " on 127.0.0.1:")])
def test_doctor_finds_a_redis_that_runs(
    settings: Callable[..., Settings], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_password: bool, place: str
) -> None:
    with RedisServer(by_password=by_password) as server:
        found = checks.check_redis(settings(redis_url=server.url))
        assert found.verdict == "ok" and place in found.detail, found
        monkeypatch.delenv("STREAMJOIN_REDIS_URL")
        (tmp_path / "url").write_text(server.url)
        monkeypatch.setenv("STREAMJOIN_REDIS_URL_FILE", str(tmp_path / "url"))
        assert place in checks.check_redis(read_settings()).detail
        monkeypatch.delenv("STREAMJOIN_REDIS_URL_FILE")
    assert checks.check_redis(settings(redis_url=server.url)).verdict == "wrong"


def test_settings_are_shown_with_secrets_masked(
    settings: Callable[..., Settings], command: Command, folder: Path
) -> None:
    (folder / "key").write_text(SECRETS["STREAMJOIN_SECRET_KEY"])
    given = {name: value for name, value in SECRETS.items() if name != "STREAMJOIN_SECRET_KEY"}
    read = settings(**{name.removeprefix("STREAMJOIN_").lower(): value for name, value in given.items()},
                    secret_key_file=str(folder / "key"))  # fmt: skip
    for output in ("table", "json", "yaml", "csv"):
        shown = command("config", "show", "-o", output)
        assert shown.status == 0
        assert "canary" not in shown.out + shown.err
    shown_json = command("config", "show", "-o", "json").json()
    assert set(shown_json) == {f"STREAMJOIN_{name.upper()}" for name in Settings.model_fields}
    assert shown_json["STREAMJOIN_SECRET_KEY"] == MASK
    assert shown_json["STREAMJOIN_CATALOG_URL"] == f"postgresql+psycopg://join:{MASK}@127.0.0.1:1/catalog"
    sources = {row["setting"]: row["source"] for row in masked_settings(read)}
    assert (sources["STREAMJOIN_SECRET_KEY"], sources["STREAMJOIN_PORT"]) == ("file", "default")
    assert set(secrets_of(read)) == {
        "canary-key-5f0c", "canary-admin-77", "canary-cassandra-9", "canary-database", "canary-redis",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("s3://id:canary/a@b@bucket/x", f"s3://id:{MASK}@bucket/x"),
        ("abfss://c@a.dfs.core.windows.net/x?client_id=7&client_secret=canary%2F1&sas_token=canary",
         f"abfss://c@a.dfs.core.windows.net/x?client_id={MASK}&client_secret={MASK}&sas_token={MASK}"),
        ("s3://id:canary?1@bucket/x", MASK),
        ("s3://bucket/x?secret_key=can@ary", MASK),
        ("s3://bucket/x", "s3://bucket/x"),
    ],
)  # fmt: skip
def test_attack_no_option_of_a_place_is_shown(
    settings: Callable[..., Settings], command: Command, address: str, shown: str
) -> None:
    read = settings(
        state=address, result_store="cassandra", cassandra_hosts="h", redis_url="redis://h/?password=canary"
    )
    found = command("config", "show", "-o", "json").json()
    assert found["STREAMJOIN_STATE"] == shown
    assert found["STREAMJOIN_REDIS_URL"] == f"redis://h/?password={MASK}"
    log = masked_text(f"opened {address} and redis://h/?password=canary, access_key=canary", secrets_of(read))
    assert "canary" not in log


def test_a_bundle_has_logs_events_and_versions_and_no_secret(
    settings: Callable[..., Settings], platform: Server, command: Command, folder: Path
) -> None:
    settings(**{name.removeprefix("STREAMJOIN_").lower(): value for name, value in SECRETS.items()}, data="data")
    (folder / "data" / "logs").mkdir(parents=True)
    (folder / "data" / "jobs" / "job_1").mkdir(parents=True)
    (folder / "data" / "logs" / "api.log").write_text(
        "opened with canary-key-5f0c\nuser admin was made, with the password first-canary"
        "\nredis://:other-canary@h:1\nAuthorization: Bearer sj_" + "canary" * 8
        + "\npassword=canary-in-a-log sasl.jaas.config='password=\"canary\"'\nfine\n"
    )  # fmt: skip
    (folder / "data" / "jobs" / "job_1" / "driver.log").write_text("batch 1 took 20 ms\n")
    (folder / "data" / "logs" / "link.log").symlink_to("/etc/passwd")
    with Client(platform.host) as client:
        client.streams.create("bundled", {"source": "generator", "kind": "nexmark.bid", "time": "ts"})
    done = command("support-bundle", "bundle.zip", "--host", platform.host)
    assert (done.status, done.out, done.err) == (0, "bundle.zip\n", "")
    assert stat.S_IMODE(Path("bundle.zip").stat().st_mode) == 0o600
    with zipfile.ZipFile("bundle.zip") as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert {"logs/logs/api.log", "logs/jobs/job_1/driver.log", "events.json", "settings.json", "versions.json",
            "doctor.json", "jobs.json", "ready.json", "parts.json"} == texts.keys()  # fmt: skip
    assert "canary" not in "".join(texts.values())
    assert "fine" in texts["logs/logs/api.log"]
    assert "stream bundled was registered" in texts["events.json"]
    assert "pyspark" in json.loads(texts["versions.json"])["packages"]
    again = command("support-bundle", "bundle.zip")
    assert again.status == 2 and "there already" in again.err


def test_a_bundle_is_written_also_where_nothing_answers(
    settings: Callable[..., Settings], command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMJOIN_PORT", "99999")
    done = command("support-bundle", "--host", "127.0.0.1:1")
    assert done.status == 0
    with zipfile.ZipFile(done.out.strip()) as archive:
        assert "does not answer" in archive.read("platform.txt").decode()
        assert "STREAMJOIN_PORT" in archive.read("parts.json").decode()
        assert "settings.json" not in archive.namelist()


def test_only_the_end_of_long_logs_is_taken(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "api.log"
    log.write_bytes(b"x" * (3 << 20) + b"end\xff")
    assert find_logs(tmp_path) == [log]
    assert len(end_of(log)) == 1 << 20 and end_of(log).endswith("end\N{REPLACEMENT CHARACTER}")


@pytest.mark.parametrize(
    "text",
    [
        'password: "canary"', "sasl.password=canary,x=1", "{'api_key': 'canary'}", "https://me:canary@host/x",
        "token=canary", "Authorization: Bearer canary", "key sj_canarycanarycanarycanary opens",
    ],
)  # fmt: skip
def test_what_looks_like_a_secret_is_masked(text: str) -> None:
    assert "canary" not in masked_text(text)


def test_what_is_no_secret_stays() -> None:
    text = "job_01 batch 7: 1,000 tokens, key = 4711, took 20 ms at 12:00:00; see http://127.0.0.1:8000/api/v1/jobs"
    assert masked_text(text) == text


def test_without_the_platform_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "worker.commands", None)
    for run in (server.up, server.doctor, server.config_show, server.config_rotate_key, server.support_bundle):
        with pytest.raises(InputError, match=r"install streamjoin\[platform\]"):
            run()
