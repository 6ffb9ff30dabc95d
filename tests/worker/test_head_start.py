"""A process that loads already is told how to go on, or ends."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from backend.handover import hand_over
from backend.listener import claim
from tests.servers.process import comes_true
from worker.child import Child
from worker.head_start import HeadStart

SHOWS = """
import os, time
from backend.handover import take_over
from backend.listener import inherited
print("loads", flush=True)
take_over()
print("said", os.environ["STREAMJOIN_TEST"], inherited().getsockname()[1], "CHANNEL" in os.environ, flush=True)
time.sleep(60)
"""


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with closing(claim("127.0.0.1", 0)) as claimed:
        yield claimed


def child_of(head_start: HeadStart, listener: socket.socket, log: Path) -> Child:
    environment = {**os.environ, "STREAMJOIN_TEST": "ä" * 50_000}
    command = [sys.executable, "-c", SHOWS]
    return Child("it", command, environment, log, lambda _: True, [listener.fileno()], head_start)


def test_it_gets_variables_an_address_and_a_log(
    listener: socket.socket, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    head_start = HeadStart([sys.executable, "-c", SHOWS])
    child = child_of(head_start, listener, tmp_path / "it.log")
    assert comes_true(lambda: "loads" in capfd.readouterr().out, 30)
    child.start()
    port = listener.getsockname()[1]
    assert comes_true(lambda: child.output() == f"said {'ä' * 50_000} {port} False\n", 30), child.output()[-200:]
    assert child.started_s == head_start.started_s
    head_start.give_up()
    assert child.ended() is None
    pid = child.pid
    child.end(0)
    assert pid is not None
    assert not psutil.pid_exists(pid)


def test_attack_secrets_that_are_handed_over_are_on_no_disk() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        hand_over(ours, {"STREAMJOIN_SECRET_KEY": "canary"})
        _, (variables,), _, _ = socket.recv_fds(theirs, 1, 1)
    with open(variables) as read:
        assert os.readlink(f"/proc/self/fd/{variables}").startswith("/memfd:")
        read.seek(0)
        assert "canary" in read.read()


def test_one_that_is_not_told_ends(listener: socket.socket) -> None:
    head_start = HeadStart([sys.executable, "-c", SHOWS])
    process = head_start.process
    assert process is not None
    head_start.give_up()
    assert not psutil.pid_exists(process.pid)
    head_start.give_up()


def test_one_that_has_ended_is_an_end_like_any_other_and_comes_back(listener: socket.socket, tmp_path: Path) -> None:
    head_start = HeadStart([sys.executable, "-c", "raise SystemExit(7)"])
    process = head_start.process
    assert process is not None
    process.wait(30)
    child = child_of(head_start, listener, tmp_path / "it.log")
    child.start()
    assert child.ended() == 7
    said: list[str] = []
    assert comes_true(lambda: (child.look(said.append), child.pid not in (None, process.pid))[1], 30)
    assert comes_true(lambda: "loads" in child.output(), 30)
    assert len(said) == 1
    assert "it ended with 7" in said[0]
    child.end(0)


def test_whoever_waits_for_one_that_is_gone_ends(capfd: pytest.CaptureFixture[str]) -> None:
    head_start = HeadStart([sys.executable, "-c", SHOWS])
    process = head_start.process
    assert process is not None
    head_start._channel.close()
    assert process.wait(30) == 1
    assert "whoever started this process has ended" in capfd.readouterr().err
    head_start.give_up()
