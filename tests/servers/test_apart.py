"""What runs apart shares no disk: it writes to its own folder alone, and nobody finds what is there."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from .apart import apart, inside, refusal
from .process import ServerProcess, comes_true

WRITES = """\
import pathlib, sys, time
for place in sys.argv[1:]:
    try:
        pathlib.Path(place, "written").write_text("x")
        print("wrote", place, flush=True)
    except OSError as failure:
        print(failure.strerror, place, flush=True)
pathlib.Path("/dev/null").write_text("x")
print("done", flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _namespaces() -> None:
    if (reason := refusal()) is not None:
        pytest.skip(reason)


def test_a_process_that_runs_apart_writes_to_its_own_folder_alone(tmp_path: Path) -> None:
    (own := tmp_path / "own with a space").mkdir()
    (own / "from outside").write_text("x")
    (shared := tmp_path / "shared").mkdir()
    closed = [str(shared), str(Path.home()), tempfile.gettempdir(), "/var/tmp", str(Path(sys.prefix))]
    command = [*apart(own), sys.executable, "-c", WRITES, str(own), "/dev/shm", *closed]
    with (
        ServerProcess("one", command, tmp_path / "one") as one,
        ServerProcess("other", [*apart(own), "sleep", "600"], tmp_path / "other") as other,
    ):
        one.wait_for_output("done", 30)
        said = one.output().splitlines()
        assert said[:2] == [f"wrote {own}", "wrote /dev/shm"]
        assert said[2:-1] == [f"Read-only file system {place}" for place in closed]
        assert comes_true(lambda: inside(other.pid, own / "tmp").is_dir(), 30)
        assert {path.name for path in inside(one.pid, own).iterdir()} == {"tmp", "written"}
        assert {path.name for path in inside(other.pid, own).iterdir()} == {"tmp"}
        assert [path.name for path in own.iterdir()] == ["from outside"]
        assert not Path("/dev/shm/written").exists() and not list(shared.iterdir())
    assert not any("own with a space" in line for line in Path("/proc/mounts").read_text().splitlines())


def test_why_nothing_can_run_apart_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "unshare").write_text("#!/bin/sh\necho unshare: unshare failed: Operation not permitted >&2; exit 1\n")
    (tmp_path / "unshare").chmod(0o755)
    path = os.environ["PATH"]
    for place, says in (
        (f"{tmp_path}:{path}", "refused here: unshare: unshare failed: Op"),
        ("/none", "not installed"),
    ):
        monkeypatch.setenv("PATH", place)
        assert says in (refusal.__wrapped__() or "")
    monkeypatch.undo()
    gone = subprocess.run([*apart(tmp_path / "none"), "true"], capture_output=True, timeout=30, check=False)
    assert gone.returncode != 0
