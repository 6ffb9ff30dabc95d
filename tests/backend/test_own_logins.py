"""What the platform's own user could log in with at a database's server is of no use to whoever asks the platform."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from psycopg.pq import Conninfo, PGconn

from backend.apart import bounded
from backend.relations.sample import look_at
from backend.relations.secrets import with_secrets
from streamjoin.errors import InputError
from streamjoin.sources import database
from streamjoin.sources.database import Database
from streamjoin.sources.sql import columns_of
from tests.servers.postgres import PostgresServer

PASSWORD = "canary :/@%#?&=é 1"
PROTECTS = {
    "PGSSLMODE", "PGSSLNEGOTIATION", "PGSSLCOMPRESSION", "PGSSLROOTCERT", "PGSSLCRL", "PGSSLCRLDIR", "PGSSLSNI",
    "PGSSLMINPROTOCOLVERSION", "PGSSLMAXPROTOCOLVERSION", "PGCHANNELBINDING", "PGREQUIREPEER", "PGREQUIREAUTH",
    "PGMINPROTOCOLVERSION", "PGMAXPROTOCOLVERSION",
}  # fmt: skip
"""How a connection is protected, which lets nobody in."""
HARMLESS = {
    "PGAPPNAME", "PGCLIENTENCODING", "PGTARGETSESSIONATTRS", "PGLOADBALANCEHOSTS", "PGSSLCERT", "PGSSLKEY",
    "PGKRBSRVNAME", "PGGSSLIB", "PGGSSDELEGATION",
}  # fmt: skip
"""Also the certificate and its key: `sslcertmode` says that none is sent. Without Kerberos its settings are idle."""


def looked_at_as(environment: Mapping[str, str], entry: Mapping[str, Any]) -> list[str]:
    """A look by a process of the platform that was started with these variables."""
    os.environ.update(environment)
    return look_at(entry).schema.names


@pytest.fixture(scope="module")
def entry(postgres: PostgresServer) -> dict[str, Any]:
    """A table behind a password."""
    name = f"t_{os.urandom(6).hex()}"
    url = postgres.guard(name, PASSWORD, query="SELECT 1::bigint AS k")
    return {"source": "sql", "url": url, "table": name}


@pytest.fixture(params=["PGPASSWORD", "PGPASSFILE", "HOME", "PGSERVICEFILE"])
def owner(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """Variables by which libpq finds the password."""
    (tmp_path / ".pgpass").write_text(f"*:*:*:*:{PASSWORD.replace(':', chr(92) + ':')}\n")
    (tmp_path / ".pgpass").chmod(0o600)
    (tmp_path / "services").write_text(f"[mine]\npassword={PASSWORD}\n")
    values = {
        "PGPASSWORD": PASSWORD, "PGPASSFILE": str(tmp_path / ".pgpass"), "HOME": str(tmp_path),
        "PGSERVICEFILE": str(tmp_path / "services"),
    }  # fmt: skip
    more = {"PGSERVICE": "mine"} if request.param == "PGSERVICEFILE" else {}
    return {request.param: values[request.param], **more}


@pytest.mark.services
def test_attack_a_relation_without_a_password_does_not_log_in_with_the_owners(
    entry: dict[str, Any], owner: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="no password supplied") as refused:
        bounded(None, looked_at_as, owner, entry)
    assert "canary" not in str(refused.value)
    assert bounded(None, looked_at_as, owner, with_secrets(entry, {"password": PASSWORD})) == ["k"]
    tls = {**entry, "url": entry["url"] + "?sslmode=disable&application_name=a%20b&connect_timeout=3"}
    assert bounded(None, looked_at_as, owner, with_secrets(tls, {"password": PASSWORD})) == ["k"]
    # On the command line they are a person's own.
    for name, value in owner.items():
        monkeypatch.setenv(name, value)
    assert columns_of(entry["url"], entry["table"]).names == ["k"]


def made_certificates(folder: Path, *names: str) -> None:
    """An authority `ca.crt`, and a certificate and key for each name."""

    def run(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=60)

    key = ("-newkey", "rsa:2048", "-nodes")
    run("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=ca")
    for name in names:
        run("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        authority = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial")
        run("x509", "-req", "-in", f"{name}.csr", *authority, "-out", f"{name}.crt")


@pytest.mark.services
@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes certificates with openssl")
def test_attack_a_relation_does_not_show_the_owners_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_certificates(tmp_path, "server", "odd")
    home = tmp_path / ".postgresql"
    home.mkdir()
    for end in ("crt", "key"):
        shutil.move(tmp_path / f"odd.{end}", home / f"postgresql.{end}")
    monkeypatch.setenv("HOME", str(tmp_path))
    with PostgresServer() as server:
        url = server.guard("odd", PASSWORD, query="SELECT 1::bigint AS k") + "?sslmode=require"
        for name in ("ca.crt", "server.crt", "server.key"):
            shutil.copy(tmp_path / name, server.data)
            os.chown(server.data / name, server.data.stat().st_uid, server.data.stat().st_gid)
        with (server.data / "postgresql.conf").open("a") as file:
            file.write("ssl = on\nssl_ca_file = 'ca.crt'\nssl_cert_file = 'server.crt'\nssl_key_file = 'server.key'\n")
        rules = server.data / "pg_hba.conf"
        rules.write_text(f"hostssl all odd 127.0.0.1/32 cert\n{rules.read_text()}")
        server.restart()
        assert columns_of(url, "odd").names == ["k"], "on the command line it is a person's own"
        with pytest.raises(InputError, match="requires a valid client certificate"):
            bounded(None, looked_at_as, {"HOME": str(tmp_path)}, {"source": "sql", "url": url, "table": "odd"})


@pytest.mark.services
@pytest.mark.parametrize(
    "elsewhere",
    [
        {"PGHOSTADDR": "127.0.0.9"}, {"PGPORT": "1"}, {"PGUSER": "nobody"}, {"PGDATABASE": "nothing"},
        {"PGOPTIONS": "-c role=nobody"},
    ],
    ids=lambda variables: min(variables),
)  # fmt: skip
def test_attack_the_owners_environment_leads_to_no_other_server_or_user(
    entry: dict[str, Any], elsewhere: dict[str, str], postgres: PostgresServer
) -> None:
    role = entry["table"]
    whole = with_secrets(entry, {"password": PASSWORD})
    assert bounded(None, looked_at_as, elsewhere, whole) == ["k"]
    # A URL that leaves all of it out means what libpq means by that: the usual port, this process' user, its database.
    url = f"postgresql://127.0.0.1/?application_name={role}"
    with pytest.raises(InputError) as refused:
        bounded(None, looked_at_as, {**elsewhere, "PGCONNECT_TIMEOUT": "3"}, {**entry, "url": url})
    assert not any(value in str(refused.value) for value in ("nobody", "nothing", "127.0.0.9", "port 1 "))


@pytest.mark.parametrize("url", ["postgresql://127.0.0.1", "postgresql://me:pw@[::1]:2/db?sslmode=require"])
def test_attack_no_variable_of_libpq_s_says_who_logs_in_or_where(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {one.envvar.decode() for one in Conninfo.get_defaults() if one.envvar}
    variables -= {"PGSERVICE", "PGSERVICEFILE"}  # they only give what is not said
    for name in variables:
        monkeypatch.setenv(name, "canary")

    def taken() -> set[str]:
        found = PGconn.connect_start(Database(url).for_libpq.encode()).info  # refused before it goes anywhere
        return {one.envvar.decode() for one in found if one.val == b"canary" and one.envvar}

    assert {"PGHOSTADDR", "PGPASSFILE"} <= taken()
    monkeypatch.setattr(database, "_is_url_all", True)
    assert variables & taken() <= PROTECTS | HARMLESS
    sent = {one.keyword: one.val for one in Conninfo.parse(Database(url).for_libpq.encode())}
    assert sent[b"sslcertmode"] == b"disable" and sent[b"require_auth"] == b"canary"
    monkeypatch.delenv("PGREQUIREAUTH")
    assert b"require_auth=none%2Cpassword%2Cmd5%2Cscram-sha-256" in Database(url).for_libpq.encode()
