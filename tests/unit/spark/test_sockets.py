"""Where the sockets of Spark's Python workers are: where nobody else comes in, and nothing of the dead stays."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamjoin.private import own_temporary
from streamjoin.spark import sockets

DIR = "spark.python.unix.domain.socket.dir"


@pytest.fixture(autouse=True)
def _anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test is a process of its own, with short names in /tmp."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        sockets._folder.cache_clear()
        yield
    sockets._folder.cache_clear()


def test_they_are_in_a_folder_that_only_this_user_opens_whatever_the_umask() -> None:
    before = os.umask(0)
    try:
        own_temporary("sockets").mkdir(mode=0o755)
        given = sockets.socket_settings()
    finally:
        os.umask(before)
    folder = Path(given[DIR])
    assert given["spark.python.unix.domain.socket.enabled"] == "true"
    assert folder.parent == own_temporary("sockets")
    assert [stat.S_IMODE(one.stat().st_mode) for one in (folder, folder.parent)] == [0o700, 0o700]
    assert sockets.socket_settings() == given, "one a process"
    # As Spark names them: the longest path that such a folder may have.
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{folder}/.{'0' * 36}.sock")


@pytest.mark.parametrize("planted", ["others may write", "another user's", "a link", "a file"])
def test_attack_what_others_may_have_planted_is_not_used(planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = own_temporary("sockets")
    if planted == "a file":
        place.touch()
    elif planted == "a link":
        (place.parent / "elsewhere").mkdir()
        place.symlink_to(place.parent / "elsewhere")
    else:
        place.mkdir(0o700)
        place.chmod(0o777 if planted == "others may write" else 0o700)
    if planted == "another user's":
        monkeypatch.setattr(os, "getuid", lambda: place.stat().st_uid + 1)
        monkeypatch.setattr(sockets, "own_temporary", lambda purpose: place)
    assert sockets.socket_settings() == {}
    assert not place.is_dir() or not list(place.iterdir())


def test_a_path_that_is_too_long_for_a_socket_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Path(tempfile.gettempdir())
    (long := place / ("x" * 60)).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    assert sockets.socket_settings() == {}


def test_a_folder_that_another_process_sweeps_before_it_is_held_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    real, swept = Path.mkdir, []

    def made_and_swept(folder: Path, *args: Any, **settings: Any) -> None:
        real(folder, *args, **settings)
        if folder.parent.name.startswith("streamjoin-sockets") and not swept:
            swept.append(folder)
            folder.rmdir()

    monkeypatch.setattr(Path, "mkdir", made_and_swept)
    folder = Path(sockets.socket_settings()[DIR])
    assert swept and folder.is_dir() and folder != swept[0]


def test_folders_of_processes_that_are_gone_are_removed_and_others_stay() -> None:
    code = (
        "import sys, tempfile; tempfile.tempdir = sys.argv[1]\n"
        "from streamjoin.spark.sockets import socket_settings\n"
        f"print(socket_settings()[{DIR!r}], flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, tempfile.gettempdir()]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as killed, subprocess.Popen(command, **pipes) as lives:  # type: ignore[call-overload]
        assert killed.stdout and lives.stdout and lives.stdin
        gone, stays = (Path(process.stdout.readline().strip()) for process in (killed, lives))
        killed.kill()
        killed.wait()
        (gone / ".dead.sock").touch()
        own = Path(sockets.socket_settings()[DIR])
        assert not gone.exists() and stays.is_dir() and own.is_dir()
        lives.stdin.close()
        assert lives.wait(30) == 0
    assert not stays.exists(), "it goes with its process"
