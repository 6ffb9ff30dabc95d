"""What streams may be read from, and what they may not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from backend.auth.hosts import check_client, check_place
from backend.problems import Problem
from backend.settings import Settings

JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="kim" password="a\\"b";'


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """One folder is allowed."""
    (tmp_path / "allowed").mkdir()
    return Settings(data=tmp_path / "data", allowed_paths=(tmp_path / "allowed",), allowed_hosts=("kafka", "10.0.0.1"))


def refusal(settings: Settings, spec: dict[str, Any]) -> str:
    with pytest.raises(Problem) as refused:
        check_place(settings, spec)
    assert refused.value.code == "invalid"
    assert refused.value.errors[0].pointer and refused.value.errors[0].pointer.startswith("/spec/")
    return refused.value.detail


def test_allowed_folders_can_be_read(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "allowed" / "rows.csv").touch()
    for path in ("allowed", "allowed/", "allowed/rows.csv", "allowed/not-there-yet", "allowed/a/../b"):
        check_place(settings, {"source": "csv", "path": f"{tmp_path}/{path}"})
    check_place(settings, {"source": "generator", "kind": "zipf"})


def test_everything_else_cannot(settings: Settings, tmp_path: Path) -> None:
    for path in ("/etc", "/etc/passwd", "/", "/proc/self/environ", "/dev/zero", f"{tmp_path}", f"{tmp_path}/data/jobs",
                 f"{tmp_path}/allowed-not", f"{tmp_path}/allowed/../data/catalog.db",
                 f"{tmp_path}/data/spool/../catalog.db"):  # fmt: skip
        assert "STREAMJOIN_ALLOWED_PATHS" in refusal(settings, {"path": path}), path
    for no_path in ("", "rows.csv", "~/rows.csv", "~root", "file:///etc/passwd", "../x", "/a\0b", 1, ["/etc"], {}):
        assert "absolute" in refusal(settings, {"path": no_path})
    assert "cannot be looked at" in refusal(settings, {"path": f"{tmp_path}/allowed/" + "x" * 5000})


def test_links_lead_nowhere_else(settings: Settings, tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    (allowed / "inside").mkdir()
    (allowed / "out").symlink_to("/etc")
    assert "ALLOWED_PATHS" in refusal(settings, {"path": str(allowed / "out")})
    assert "ALLOWED_PATHS" in refusal(settings, {"path": str(allowed / "out" / "passwd")})
    assert str(allowed / "out") in refusal(settings, {"path": str(allowed)})  # its folder would read through it
    (allowed / "inside" / "again").symlink_to(allowed / "inside" / "rows.csv")
    check_place(settings, {"path": str(allowed / "inside")})
    (allowed / "circle").symlink_to(allowed / "circle")
    refusal(settings, {"path": str(allowed / "circle")})


def test_links_in_folders_of_partitions_and_behind_patterns_lead_nowhere_else(
    settings: Settings, tmp_path: Path
) -> None:
    allowed = tmp_path / "allowed"
    (allowed / "data" / "day=1").mkdir(parents=True)
    (allowed / "data" / "day=1" / "rows.csv").write_text("k\n1\n")
    for path in ("data", "data/*", "data/**/*.csv", "*/day=1"):
        check_place(settings, {"path": str(allowed / path)})
    assert "does not exist" in refusal(settings, {"path": str(allowed / "none" / "*.csv")})
    assert "STREAMJOIN_ALLOWED_PATHS" in refusal(settings, {"path": f"{tmp_path}/allowed/*/../../data/*"})
    assert "STREAMJOIN_ALLOWED_PATHS" in refusal(settings, {"path": f"{tmp_path}/*/*.db"})
    (allowed / "other").mkdir()
    (allowed / "data" / "day=2").symlink_to(allowed / "other")
    check_place(settings, {"path": str(allowed / "data")})
    (allowed / "other" / "passwd").symlink_to("/etc/passwd")
    for path in ("data", "data/*", "data/day=2/*", "data/**/*"):
        assert "STREAMJOIN_ALLOWED_PATHS" in refusal(settings, {"path": str(allowed / path)}), path
    (allowed / "other" / "passwd").unlink()
    (allowed / "other" / "again=1").symlink_to(allowed / "other")
    assert "STREAMJOIN_ALLOWED_PATHS" in refusal(settings, {"path": str(allowed / "data")})


@pytest.fixture
def at_home(tmp_path: Path) -> Settings:
    """As of a plain `streamjoin up` in a folder of somebody's home."""
    for folder in ("home/project/streamjoin-data/jobs", "home/project/streamjoin-data/spool", "home/.ssh", "home/d"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("home/d/a.csv", "home/.ssh/id_rsa", "home/d/.token", "home/project/streamjoin-data/catalog.db"):
        (tmp_path / file).write_text("k\n1\n")
    home = tmp_path / "home"
    return Settings(data=home / "project" / "streamjoin-data", auth="off", own_paths=(home / "project", home))


def test_of_a_home_folder_all_can_be_read_but_what_is_hidden(at_home: Settings, tmp_path: Path) -> None:
    home = tmp_path / "home"
    for path in ("d", "d/a.csv", "d/*.csv", "project", "", "*/*.csv", "project/new.csv"):
        check_place(at_home, {"path": f"{home}/{path}"})
    (home / "keys").symlink_to(home / ".ssh")
    for path in (".ssh/id_rsa", ".ssh", "d/.token", "keys", "keys/id_rsa", "d/../.ssh/id_rsa", ".ssh/*", "keys/*"):
        detail = refusal(at_home, {"path": f"{home}/{path}"})
        assert "is hidden" in detail and "STREAMJOIN_ALLOWED_PATHS" in detail, (path, detail)
    outside = refusal(at_home, {"path": "/etc/passwd"})
    assert f"may be read from: {home / 'project'}, {home}; " in outside and "STREAMJOIN_ALLOWED_PATHS" in outside
    named = at_home.model_copy(update={"allowed_paths": (home / ".ssh",)})
    check_place(named, {"path": f"{home}/.ssh/id_rsa"})


def test_attack_no_way_through_the_home_folder_leads_into_the_data_folder(at_home: Settings, tmp_path: Path) -> None:
    home, data = tmp_path / "home", at_home.data
    (home / "link").symlink_to(data)
    (home / "d" / "in").mkdir()
    (home / "d" / "in" / "rows.csv").symlink_to(data / "catalog.db")
    (home / "p").mkdir()
    (home / "p" / "day=1").symlink_to(data)
    for path in (data, data / "catalog.db", data / "jobs", home / "link" / "catalog.db", home / "d" / "in",
                 home / "d" / "in" / "rows.csv", home / "d" / "*" / "*.csv", home / "p", home / "p" / "day=*",
                 home / "*" / "*.db", home / "**" / "*.db", home / "project" / "*" / "catalog*",
                 f"{home}/d/../project/streamjoin-data/catalog.db", f"{data}/spool/../catalog.db"):  # fmt: skip
        detail = refusal(at_home, {"path": str(path)})
        assert "the platform's own data folder" in detail, (path, detail)
    partition = at_home.model_copy(update={"data": home / "p" / "day=2"})
    (home / "p" / "day=1").unlink()
    (home / "p" / "day=2").mkdir()
    assert "own data folder" in refusal(partition, {"path": str(home / "p")})
    for everything in (data, home):
        opened = Settings(data=data, allowed_paths=(everything,))
        assert "own data folder" in refusal(opened, {"path": str(data / "catalog.db")})


@pytest.mark.parametrize("elsewhere", [False, True], ids=["in the data folder", "on another disk"])
def test_attack_pushed_rows_are_read_by_their_own_stream_alone(
    settings: Settings, tmp_path: Path, elsewhere: bool
) -> None:
    spool, own = settings.data / "spool", f"str_{'0' * 26}"
    if elsewhere:
        settings.data.mkdir()
        (tmp_path / "allowed" / "disk").mkdir()
        spool.symlink_to(tmp_path / "allowed" / "disk")
    (spool / own).mkdir(parents=True)
    (spool / own / "rows_1.jsonl").write_text("{}\n")
    (tmp_path / "allowed" / "link").symlink_to(spool / own)
    for folder in {spool, spool.resolve()}:
        for path in (folder, folder / own, folder / own / "rows_1.jsonl", folder / "*" / "*.jsonl", folder / own / "*",
                     folder / "str_1", tmp_path / "allowed" / "link"):  # fmt: skip
            assert "own data folder" in refusal(settings, {"source": "jsonl", "path": str(path)}), path
    check_place(settings, {"source": "jsonl", "path": str(spool / own), "push": True})
    check_place(settings, {"source": "jsonl", "path": f"{spool}/str_{'1' * 26}", "push": True})  # none was pushed yet
    for path in (spool, spool / "*", spool / own / "..", settings.data / own, tmp_path / "allowed" / "link"):
        assert "own data folder" in refusal(settings, {"source": "jsonl", "path": str(path), "push": True}), path
    (spool / own / "more.jsonl").symlink_to("/etc/passwd")
    assert "ALLOWED_PATHS" in refusal(settings, {"source": "jsonl", "path": str(spool / own), "push": True})
    (spool / f"str_{'1' * 26}").symlink_to(spool / own)
    refusal(settings, {"source": "jsonl", "path": f"{spool}/str_{'1' * 26}", "push": True})


def test_attack_uploads_on_another_disk_are_read_by_their_names_alone(settings: Settings, tmp_path: Path) -> None:
    settings.data.mkdir()
    (tmp_path / "allowed" / "disk").mkdir()
    (tmp_path / "allowed" / "disk" / "a.csv").write_text("k\n1\n")
    (settings.data / "uploads").symlink_to(tmp_path / "allowed" / "disk")
    check_place(settings, {"source": "csv", "path": "upload:a.csv"})
    for path in ("allowed/disk", "allowed/disk/a.csv", "allowed/*/*.csv", "data/uploads/a.csv"):
        assert "own data folder" in refusal(settings, {"source": "csv", "path": f"{tmp_path}/{path}"}), path


def test_attack_a_pattern_that_takes_long_to_match_is_refused(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "allowed" / "a").mkdir()
    check_place(settings, {"path": f"{tmp_path}/allowed/{'**/' * 100}*.csv"})
    assert "more than 4 of **" in refusal(settings, {"path": f"{tmp_path}/allowed/{'**/*/' * 5}*.csv"})


def test_pipes_and_devices_are_not_read(settings: Settings, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "allowed" / "pipe")
    assert "neither a file nor a folder" in refusal(settings, {"path": str(tmp_path / "allowed" / "pipe")})


def test_an_avro_schema_is_no_way_to_a_file(settings: Settings, tmp_path: Path) -> None:
    assert "ALLOWED_PATHS" in refusal(settings, {"avro_schema": "/etc/passwd"})
    assert "absolute" in refusal(settings, {"avro_schema": "schema.avsc"})
    for schema in (' {"type": "record"}', {"type": "record"}, f"{tmp_path}/allowed/schema.avsc", None):
        check_place(settings, {"avro_schema": schema})


def test_only_allowed_hosts_are_reached(settings: Settings) -> None:
    for servers in ("kafka:9092", "KAFKA.:9092", "kafka:9092, 10.0.0.1:9093"):
        check_place(settings, {"servers": servers})
    for servers in ("evil:9092", "kafka:9092,evil:9092", "10.0.0.2:9092", "127.0.0.1:6379", "[::1]:9092",
                    "0x0a000001:9092", "kafka.evil:9092", "169.254.169.254:80", "[::ffff:10.0.0.1]:9092"):  # fmt: skip
        assert "STREAMJOIN_ALLOWED_HOSTS" in refusal(settings, {"servers": servers}), servers
    for servers in ("", "kafka", "kafka:", ":9092", "kafka:0", "kafka:99999", "kafka:x", "kafka:1,",
                    "kafka:9092@evil:1", "PLAINTEXT://kafka:9092", "kafka:9092/x", "kafka:9092 evil:1", "[::1:9", 9092,
                    ["kafka:9092"], "kafka:1,".join([""] * 60)):  # fmt: skip
        refusal(settings, {"servers": servers})


def test_any_host_is_not_the_machines_own_credentials() -> None:
    anywhere = Settings(allowed_hosts=("*",))
    for servers in ("10.1.2.3:9092", "127.0.0.1:9092", "[2001:db8::1]:9092"):
        check_place(anywhere, {"servers": servers})
    for host in ("169.254.169.254", "169.254.1.1", "0xa9fea9fe", "2852039166", "0251.0376.0251.0376", "[fe80::1]",
                 "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::1]", "[fd00:ec2::254]",
                 "metadata.google.internal", "METADATA.google.internal.", "100.100.100.200"):  # fmt: skip
        assert "STREAMJOIN_ALLOWED_HOSTS" in refusal(anywhere, {"servers": f"{host}:80"}), host
    check_place(Settings(allowed_hosts=("*", "169.254.169.254")), {"servers": "169.254.169.254:80"})


def test_a_client_may_log_in_and_no_more(settings: Settings, tmp_path: Path) -> None:
    check_client(settings, {
        "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "kim",
        "sasl.password": "secret", "sasl.jaas.config": JAAS, "ssl.ca.location": f"{tmp_path}/allowed/ca.pem",
        "request.timeout.ms": 1000,
    })  # fmt: skip
    for name, value in {
        "plugin.library.paths": "/tmp/evil.so",
        "sasl.kerberos.kinit.cmd": "touch /tmp/evil",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.mechanisms": "GSSAPI",
        "sasl.oauthbearer.token.endpoint.url": "file:///etc/passwd",
        "sasl.jaas.config": 'com.sun.security.auth.module.JndiLoginModule required user.provider.url="ldap://evil";',
        "sasl.login.callback.handler.class": "evil.Class",
        "interceptor.classes": "evil.Class",
        "ssl.engine.factory.class": "evil.Class",
        "ssl.ca.location": "/etc/passwd",
        "ssl.truststore.location": "../x",
        "bootstrap.servers": "evil:9092",
        "metadata.broker.list": "evil:9092",
        "": "x",
        "client.id": {"a": 1},
    }.items():
        with pytest.raises(Problem) as refused:
            check_client(settings, {name: value})
        assert refused.value.errors[0].pointer == f"/secrets/{name}"
    assert "/spec/client" in refusal(settings, {"client": {"plugin.library.paths": "x"}})
    assert "/spec/client" in refusal(settings, {"client": "x"})
    for jaas in (JAAS + " evil.Module required;", JAAS.replace(";", ""),
                 JAAS.replace("required", "required debug=true"), JAAS.replace("kim", 'kim" other="x'),
                 JAAS.replace("scram.Scram", "oauthbearer.OAuthBearer")):  # fmt: skip
        with pytest.raises(Problem):
            check_client(settings, {"sasl.jaas.config": jaas})


def test_a_refusal_shows_no_secret(settings: Settings) -> None:
    with pytest.raises(Problem) as refused:
        check_client(settings, {"sasl.jaas.config": "canary", "sasl.password": "canary"})
    assert "canary" not in refused.value.detail
