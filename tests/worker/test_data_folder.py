"""The data folder of `streamjoin up`: nothing of it gets into git, and none is forgotten without a word."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from backend.settings import Settings
from streamjoin.errors import InputError
from worker import data_folder
from worker.head_start import HeadStart
from worker.platform import read_up_settings, run


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of somebody with two projects, who has set nothing."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("STREAMJOIN_DATA", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def begun(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path | None:
    """What `up` does with its data folder where it is started; gives the other one that it knows of."""
    monkeypatch.chdir(folder)
    settings = read_up_settings()
    found = data_folder.other(settings)
    data_folder.make(settings.data)
    data_folder.remember(settings)
    (settings.data / "catalog.db").touch()
    return found


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_git_sees_nothing_of_a_new_data_folder(home: Path) -> None:
    subprocess.run(["git", "init", "-q", str(home / "one")], check=True)
    data_folder.make(home / "one" / "streamjoin-data")
    (home / "one" / "streamjoin-data" / "catalog.db").touch()
    (home / "one" / "mine.sql").touch()
    seen = subprocess.run(
        ["git", "-C", str(home / "one"), "status", "--porcelain", "-uall"], capture_output=True, text=True, check=True
    )
    assert seen.stdout == "?? mine.sql\n"


def test_a_folder_that_is_there_stays_as_it_is(home: Path) -> None:
    data_folder.make(home / "one")
    assert list((home / "one").iterdir()) == []


def test_a_start_in_another_folder_knows_of_the_one_used_last(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = home / "one" / "streamjoin-data"
    assert begun(home / "one", monkeypatch) is None
    assert begun(home / "one", monkeypatch) is None
    assert begun(home / "two", monkeypatch) == first
    assert f"set STREAMJOIN_DATA={first}" in data_folder.other_text(first)
    assert begun(home / "two", monkeypatch) is None, "it has been said"
    assert begun(home / "one", monkeypatch) == home / "two" / "streamjoin-data"


def test_up_says_so_before_anything_starts(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(home / "one", monkeypatch)
    monkeypatch.chdir(home / "two")
    said: list[str] = []
    monkeypatch.setenv("STREAMJOIN_REDIS_URL", "redis://127.0.0.1:1/0")
    api = HeadStart(["sleep", "60"])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("STREAMJOIN_PORT", str(taken.getsockname()[1]))
        with pytest.raises(InputError, match="something listens"):
            run(read_up_settings(), threading.Event(), said.append, api)
    api.give_up()
    assert said[0].startswith(f"data and logs go to {home}/two/streamjoin-data; ")
    assert said[0].endswith(f"set STREAMJOIN_DATA={home}/one/streamjoin-data")
    assert (home / "two" / "streamjoin-data" / ".gitignore").exists()


def test_up_closes_what_an_earlier_version_left_open_and_says_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(home / "one", monkeypatch)
    data = home / "one" / "streamjoin-data"
    data.chmod(0o755)
    (data / "catalog.db").chmod(0o644)
    said: list[str] = []
    monkeypatch.setenv("STREAMJOIN_REDIS_URL", "redis://127.0.0.1:1/0")
    api = HeadStart(["sleep", "60"])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("STREAMJOIN_PORT", str(taken.getsockname()[1]))
        with pytest.raises(InputError, match="something listens"):
            run(read_up_settings(), threading.Event(), said.append, api)
    api.give_up()
    assert "was open to other users" in said[0]
    assert [path.stat().st_mode & 0o777 for path in (data, data / "catalog.db")] == [0o700, 0o600]


def test_a_folder_that_is_gone_or_never_began_is_no_other_one(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(home / "one", monkeypatch)
    (home / "one" / "streamjoin-data" / "catalog.db").unlink()
    assert begun(home / "two", monkeypatch) is None


def test_whoever_sets_the_folder_is_told_nothing_and_nothing_is_written_down(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(home / "one", monkeypatch)
    record = home / ".local" / "state" / "streamjoin" / "data-folder"
    before = record.read_text()
    monkeypatch.setenv("STREAMJOIN_DATA", str(home / "set"))
    assert begun(home / "two", monkeypatch) is None
    assert record.read_text() == before


@pytest.mark.parametrize("content", [b"", b"relative", b"\xff\xff", b"/a\0b", b"x" * 10_000])
def test_a_damaged_record_stops_nobody(content: bytes, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = home / "state" / "streamjoin" / "data-folder"
    record.parent.mkdir(parents=True)
    record.write_bytes(content)
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    assert begun(home / "one", monkeypatch) is None
    assert record.read_text() == str(home / "one" / "streamjoin-data")


def test_a_home_that_cannot_be_written_stops_nobody(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    assert begun(home / "one", monkeypatch) is None
    assert data_folder.other(Settings(auth="off")) is None
