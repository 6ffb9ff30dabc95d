"""A server process is watched while it is waited for, and no way to end leaves a part of it behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .process import EPHEMERAL_PORT_MIN, ServerFailed, ServerProcess, comes_true, free_ports

DEADLINE_S = 30.0


def shell(script: str, folder: Path) -> ServerProcess:
    return ServerProcess("The server", ["/bin/sh", "-c", script], folder / "server.log")


def group_runs(group: int) -> bool:
    """Whether any process of a group runs. One that ended, but whose parent has not asked how, does not."""
    listing = subprocess.run(["ps", "-A", "-o", "pgid=,stat="], stdout=subprocess.PIPE, text=True, check=True).stdout
    states = [state for pgid, state in map(str.split, listing.splitlines()) if int(pgid) == group]
    return any(not state.startswith("Z") for state in states)


def test_server_that_writes_its_line_is_ready(tmp_path: Path) -> None:
    with shell("echo ready; sleep 60", tmp_path) as server:
        server.wait_for_output("ready", DEADLINE_S)
        assert server.is_running()


def test_server_that_ends_is_not_waited_for(tmp_path: Path) -> None:
    expected = pytest.raises(ServerFailed, match=r"ended with 3(.|\n)*the port is taken")
    with shell("echo the port is taken; exit 3", tmp_path) as server, expected:
        server.wait_for_output("ready", DEADLINE_S)


def test_server_that_is_never_ready_is_given_up_at_the_deadline(tmp_path: Path) -> None:
    expected = pytest.raises(ServerFailed, match=r'did not write "ready" within 0.5 s(.|\n)*busy')
    with shell("echo busy; sleep 60", tmp_path) as server:
        server.wait_for_output("busy", DEADLINE_S)
        with expected:
            server.wait_for_output("ready", 0.5)


def test_line_of_an_earlier_run_does_not_make_a_later_one_ready(tmp_path: Path) -> None:
    with shell("echo ready; sleep 60", tmp_path) as first:
        first.wait_for_output("ready", DEADLINE_S)
    with shell("sleep 60", tmp_path) as second, pytest.raises(ServerFailed, match="within"):
        second.wait_for_output("ready", 0.2)


def test_stop_lets_a_server_end_by_itself(tmp_path: Path) -> None:
    with shell('trap "echo goodbye; exit 0" TERM; echo ready; while :; do sleep 0.01; done', tmp_path) as server:
        server.wait_for_output("ready", DEADLINE_S)
        server.stop()
        assert "goodbye" in server.output()


def test_stop_ends_a_server_that_will_not_and_its_children(tmp_path: Path) -> None:
    with shell('trap "" TERM; sleep 60 & echo ready; while :; do sleep 0.01; done', tmp_path) as server:
        server.wait_for_output("ready", DEADLINE_S)
        server.stop(grace_s=0.1)
        assert comes_true(lambda: not group_runs(server.pid), DEADLINE_S)


def test_stop_takes_the_children_of_a_server_that_ended_before(tmp_path: Path) -> None:
    with shell("sleep 60 & echo ready", tmp_path) as server:
        assert comes_true(lambda: not server.is_running(), DEADLINE_S)
        server.stop()
        assert comes_true(lambda: not group_runs(server.pid), DEADLINE_S)


def test_server_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    package = Path(__file__).parent
    owner_script = (
        f"import sys; sys.path.insert(0, {str(package.parent)!r})\n"
        f"from pathlib import Path; from {package.name}.process import ServerProcess\n"
        f"server = ServerProcess('The server', ['sleep', '60'], Path({str(tmp_path)!r}) / 'server.log')\n"
        "print(server.pid, flush=True); sys.stdin.read()\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", owner_script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert owner.stdin
    assert owner.stdout
    with owner.stdin, owner.stdout:
        server_pid = int(owner.stdout.readline())
        assert group_runs(server_pid)
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        assert comes_true(lambda: not group_runs(server_pid), DEADLINE_S)


def test_free_ports_differ_and_are_none_the_system_hands_out() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert max(ports) < EPHEMERAL_PORT_MIN
