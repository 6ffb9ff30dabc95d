"""Which processes are a driver's, and that none is left."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.servers.process import comes_true
from worker import processes

CHILD = "import subprocess, time; subprocess.Popen(['sleep', '60'], process_group=0); print(flush=True); time.sleep(60)"


@contextmanager
def driver(data: Path, job: str, generation: int) -> Iterator[subprocess.Popen[bytes]]:
    """A process with a child in another process group."""
    variables = {"STREAMJOIN_DATA": str(data), processes.MARK: processes.mark_of(job, generation)}
    child = subprocess.Popen(
        [sys.executable, "-S", "-c", CHILD], env={**os.environ, **variables}, stdout=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    assert child.stdout is not None
    try:
        child.stdout.readline()
        # A program that has just been started has no environment to read for a moment.
        assert comes_true(lambda: _in_session(processes.members(data, job), child.pid) == 2, 5)
        yield child
    finally:
        processes.kill_all(lambda: processes.members(data))
        child.wait()
        child.stdout.close()


def _in_session(pids: list[int], leader: int) -> int:
    found = 0
    for pid in pids:
        with suppress(ProcessLookupError):
            found += os.getsid(pid) == leader
    return found


def test_a_process_is_known_by_when_it_started() -> None:
    mine = processes.started(os.getpid())
    assert mine is not None
    assert processes.is_alive(os.getpid(), mine)
    assert not processes.is_alive(os.getpid(), mine + "1")
    assert not processes.is_alive(os.getpid(), None)
    assert not processes.ask_to_end(os.getpid(), "another")


def test_a_process_that_nobody_asked_how_it_ended_is_not_alive() -> None:
    child = subprocess.Popen(["true"])
    assert comes_true(lambda: Path(f"/proc/{child.pid}/stat").read_text().split()[2] == "Z", 5)
    assert processes.started(child.pid) is None
    child.wait()
    assert processes.started(child.pid) is None


def test_children_in_other_groups_belong_to_a_driver_and_go_with_it(tmp_path: Path) -> None:
    with driver(tmp_path, "job_a", 1) as child:
        assert len(processes.members(tmp_path, "job_a")) == 2
        assert processes.leaders(tmp_path) == [child.pid]
        child.kill()
        child.wait()
        assert len(processes.members(tmp_path, "job_a")) == 1
        assert processes.kill_all(lambda: processes.members(tmp_path, "job_a")) == []
        assert processes.members(tmp_path) == []


def test_other_jobs_generations_and_platforms_are_left_alone(tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    with driver(mine, "job_a", 1), driver(mine, "job_a", 2), driver(mine, "job_b", 1), driver(theirs, "job_a", 1):
        assert len(processes.members(mine)) == 6
        assert len(processes.members(mine, "job_a")) == 4
        assert len(processes.members(mine, "job_a", below=2)) == 2
        processes.kill_all(lambda: processes.members(mine, "job_a", below=2))
        assert len(processes.members(mine, "job_a")) == 2
        assert len(processes.members(mine, "job_b")) == 2
        assert len(processes.members(theirs)) == 2


def test_what_cannot_be_ended_is_told() -> None:
    begun_s = time.monotonic()
    assert processes.kill_all(lambda: [2**22 + 1], within_s=0.1) == [2**22 + 1]
    assert time.monotonic() - begun_s < 30


@contextmanager
def forged(data: Path, mark: bytes) -> Iterator[subprocess.Popen[bytes]]:
    """A process of somebody who knows how drivers are told, with a mark of their own making."""
    variables = {b"STREAMJOIN_DATA": os.fsencode(data), processes.MARK.encode(): mark}
    child = subprocess.Popen(["sleep", "60"], env={**os.environb, **variables}, start_new_session=True)
    try:
        assert comes_true(lambda: mark in Path(f"/proc/{child.pid}/environ").read_bytes(), 5)
        yield child
    finally:
        child.kill()
        child.wait()


FORGED = [b"", b"x", b"job_1/", b"job_1/two", b"job_1/\xd9\xa2", b"\xff\xfe/1", b"job_1/1/2", b"job_1/" + b"9" * 5000,
          b"warm-../../../etc/passwd/0", b"warm-a\nb/0"]  # fmt: skip


def test_attack_a_forged_environment_is_passed_over(tmp_path: Path) -> None:
    with ExitStack() as all_of_them, driver(tmp_path, "job_1", 1) as real:
        for mark in FORGED:
            all_of_them.enter_context(forged(tmp_path, mark))
        assert real.pid in processes.members(tmp_path)
        assert processes.leaders(tmp_path) == [real.pid]
        assert len(processes.members(tmp_path)) == len(processes.members(tmp_path, "job_1")) == 2
        assert processes.of_warm(tmp_path, "a") == []


def test_attack_what_a_driver_got_is_a_mark_or_nothing(tmp_path: Path) -> None:
    token = "ab" * 16
    processes.warm_folder(tmp_path).mkdir(parents=True)
    with forged(tmp_path, processes.warm_mark(token).encode()) as child:
        for said in ("job_1/two", "", "../x/1"):
            processes.given_to(tmp_path, token).write_text(said)
            assert processes.members(tmp_path, "job_1") == []
            assert processes.of_warm(tmp_path, token) == [child.pid]
        processes.given_to(tmp_path, token).write_text("job_1/2")
        assert processes.members(tmp_path, "job_1") == [child.pid]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root reads what others' processes are started with")
def test_attack_processes_of_other_users_are_not_ours(tmp_path: Path) -> None:
    variables = {"STREAMJOIN_DATA": str(tmp_path), processes.MARK: "job_1/1"}
    child = subprocess.Popen(["sleep", "60"], env={**os.environ, **variables}, user=65534)
    try:
        assert comes_true(lambda: b"job_1/1" in Path(f"/proc/{child.pid}/environ").read_bytes(), 5)
        assert processes.members(tmp_path) == []
    finally:
        child.kill()
        child.wait()
