"""The object store of docker-compose.yml, as its container starts it: what our secrets open, and what it refuses."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from streamjoin.errors import InputError
from streamjoin.state.generation import Generation
from streamjoin.state.objectstore import ObjectStates
from streamjoin.state.root import ObjectRoot
from tests.unit.state.test_objects import written

from .maven import ServerUnavailable, jars
from .process import free_ports
from .s3 import BUCKET, ENVIRONMENT, HERE, S3, SCRIPT

DOCKER = SCRIPT.parents[1]
PLACE = "@states?endpoint_override=objectstore:9000&"
"""In the URI that containers get."""


def run(what: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = ["bash", str(SCRIPT), what]
    environment = os.environ | variables
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.services
def test_states_go_where_our_secrets_lead_and_nobody_else_is_let_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    shutil.copytree(DOCKER, tmp_path / "docker", ignore=shutil.ignore_patterns("*_password", "*_url"))
    subprocess.run(["sh", str(tmp_path / "docker/make-secrets.sh")], check=True, capture_output=True, timeout=30)
    password, uri = ((tmp_path / "docker/secrets" / name).read_text() for name in ("objectstore_password", "state_url"))
    assert PLACE in uri
    with ExitStack() as stack:
        try:
            server = stack.enter_context(S3(password))
        except ServerUnavailable as reason:
            pytest.skip(str(reason))
        here = uri.replace(PLACE, f"@{BUCKET}/job?endpoint_override=127.0.0.1:{server.port}&")
        (checkpoint := tmp_path / "checkpoint").mkdir()
        store = ObjectStates(Generation(ObjectRoot(here, tmp_path / "cache"), checkpoint, 1, 0).root)
        state = written(store, segments=3)
        store.settle()
        fresh = ObjectStates(replace(store.root, cache=tmp_path / "other"))
        assert fresh.load(0, 1) == state
        assert [fresh.open_segment(0, info).num_rows for info in state.named()] == [5, 6, 7]
        assert run("check", **server.variables).returncode == 0
        with pytest.raises(InputError, match=r"^run\.state: s3://states/job: the store does not permit it"):
            Generation(ObjectRoot(here.replace(password, password[::-1]), tmp_path / "cache"), checkpoint, 1, 0)
        kept = Path(server.variables["STORE_DATA"])
        assert not kept.stat().st_mode & 0o077, "objects are for the store's user alone"
        for told in ("cmdline", "environ"):
            seen = Path(f"/proc/{server.process.pid}/{told}").read_bytes()
            assert b"STORE_DATA" in seen or b"s3proxy" in seen
            assert password.encode() not in seen, f"others may see it in its {told}"
    assert run("check", **server.variables).returncode == 2


@pytest.mark.parametrize(
    ("password", "says"),
    [
        (None, "its password cannot be read from"),
        ("", "is not of letters and digits alone"),
        ("short", "8 or more"),
        (r"back\slashes", "is not of letters and digits alone"),
        ("letters and spaces", "is not of letters and digits alone"),
        ("two234567\nlines", "is not of letters and digits alone"),
        ("per%cents", "is not of letters and digits alone"),
    ],
)
def test_a_password_that_could_not_be_meant_is_refused(password: str | None, says: str, tmp_path: Path) -> None:
    file = tmp_path / "password"
    if password is not None:
        file.write_text(password)
    done = run("serve", STORE_PASSWORD_FILE=str(file), STORE_DATA=str(tmp_path / "data"), STORE_JARS="/none")
    assert done.returncode == 2 and says in done.stderr and str(file) in done.stderr
    assert len(done.stderr.splitlines()) == 1 and not (tmp_path / "data").exists()
    assert not password or password not in done.stderr


def test_other_settings_that_cannot_be_meant_are_refused(tmp_path: Path) -> None:
    (file := tmp_path / "password").write_text("x" * 48)
    (tmp_path / "file").write_text("")
    wrong = {
        "a bucket's name has 3 to 63": {"STORE_BUCKET": "../up"},
        "cannot be written to": {"STORE_DATA": str(tmp_path / "file")},
    }
    for says, variables in wrong.items():
        done = run(
            "serve", STORE_PASSWORD_FILE=str(file), STORE_JARS="/none", **{"STORE_DATA": str(tmp_path)} | variables
        )
        assert done.returncode == 2 and says in done.stderr
    for what in ("", "server", "serve check"):
        assert run(what).stderr == "objectstore: usage: objectstore.sh serve | check\n"


@contextmanager
def answering(reply: bytes) -> Iterator[int]:
    """A server that says this, whatever it is asked; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                asked = b""
                while b"\r\n\r\n" not in asked:
                    asked += connection.recv(1024)
                connection.sendall(reply)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(10)


def test_a_store_is_not_healthy_that_lets_in_everybody_or_is_none() -> None:
    for reply, says in (
        (b"HTTP/1.1 200 OK\r\n\r\n", "answers 200, and not 403"),
        (b"HTTP/1.1 500 Oh\r\n\r\n", "answers 500, and not 403"),
        (b"", "answers nothing, and not 403"),
    ):
        with answering(reply) as port:
            found = run("check", STORE_PORT=str(port))
        assert found.returncode == 2 and says in found.stderr
    with answering(b"HTTP/1.1 403 Forbidden\r\n\r\n") as port:
        assert run("check", STORE_PORT=str(port)).returncode == 0
    (port,) = free_ports(1)
    assert run("check", STORE_PORT=str(port)).stderr == f"objectstore: nobody answers on port {port}\n"


@pytest.mark.services
def test_the_jars_of_the_image_are_those_that_were_looked_at() -> None:
    try:
        folder = jars(HERE / "s3")
    except ServerUnavailable as reason:
        pytest.skip(str(reason))
    found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.glob("*.jar")}
    listed = [line.split() for line in (HERE / "s3" / "jars.sha256").read_text().splitlines()]
    assert listed == [[found[name], name] for name in sorted(found)]
