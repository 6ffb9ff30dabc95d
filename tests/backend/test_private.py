"""What the platform keeps is closed to other users of the machine, also where an earlier version left it open."""

from __future__ import annotations

import gc
import os
import stat
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from backend.auth.first_password import FILE, welcome
from backend.private import tighten
from streamjoin.errors import InputError
from streamjoin.intake.deadletter import DeadLetter, write_dead_letters
from tests.modes import open_to_others


def left_by_an_earlier_version(data: Path) -> None:
    for folder in (data, data / "jobs", data / "jobs" / "job_1", data / "logs"):
        folder.mkdir(mode=0o755)
    for file in ("catalog.db", "catalog.db-wal", "jobs/job_1/driver.log", "jobs/job_1/run.sh", "logs/api.log"):
        (data / file).write_text("kept")
        (data / file).chmod(0o644)
    (data / "jobs/job_1/run.sh").chmod(0o775)


def test_a_folder_of_an_earlier_version_is_closed_once_and_says_so(tmp_path: Path) -> None:
    data = tmp_path / "data"
    left_by_an_earlier_version(data)
    said = tighten(data)
    assert said is not None
    assert "was open to other users" in said and said.endswith("4 folders, 5 files")
    assert open_to_others(data) == []
    assert stat.S_IMODE((data / "jobs/job_1/run.sh").stat().st_mode) == 0o700
    assert stat.S_IMODE((data / "catalog.db").stat().st_mode) == 0o600
    assert tighten(data) is None
    assert tighten(tmp_path / "not there yet") is None


def test_links_lead_nowhere_and_what_is_not_the_platforms_stays_as_it_is(tmp_path: Path) -> None:
    data, other = tmp_path / "data", tmp_path / "other"
    left_by_an_earlier_version(data)
    other.mkdir(mode=0o755)
    (other / "file").write_text("of somebody else")
    (data / "inputs").mkdir(mode=0o755)
    (data / "spool").symlink_to(other)
    (data / "logs" / "more").symlink_to(other)
    (data / "logs" / "gone").symlink_to(tmp_path / "nowhere")
    (data / "jobs" / "catalog.db").symlink_to(other / "file")
    assert tighten(data)
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in (other, other / "file", data / "inputs")] == [
        0o755, 0o644, 0o755,
    ]  # fmt: skip


def test_a_folder_that_all_users_share_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    with pytest.raises(InputError, match="shared by all users of this machine; set STREAMJOIN_DATA"):
        tighten(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o1777


def test_dead_letters_are_for_those_for_whom_their_process_writes(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_dead_letters(
            tmp_path / "letters" / "1.jsonl", [DeadLetter("a", "file", 1, "malformed", "no JSON", b"{")], 0, 0
        )
    finally:
        os.umask(before)
    assert open_to_others(tmp_path / "letters") == []


@pytest.mark.parametrize("module", ["backend.__main__", "worker.app", "worker.reconcile", "worker.driver", "worker.up"])
def test_every_program_of_the_platform_begins_with_closing_what_it_makes(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Closed(Exception):
        pass

    def close() -> None:
        raise Closed

    program = import_module(module)
    monkeypatch.setattr("backend.private.keep_private", close)
    if hasattr(program, "keep_private"):
        monkeypatch.setattr(program, "keep_private", close)
    monkeypatch.setattr(sys, "argv", ["it", "job_1", "1"])
    monkeypatch.setenv("STREAMJOIN_PORT", "none")  # which is what ends it otherwise
    try:
        with pytest.raises(Closed):
            program.main()
    finally:
        gc.enable()


@pytest.mark.slow
def test_the_api_closes_what_an_earlier_version_left_open_and_logs_it(tmp_path: Path) -> None:
    data = tmp_path / "data"
    left_by_an_earlier_version(data)
    # A catalog that cannot be used ends the start after that.
    settings = {"STREAMJOIN_DATA": str(data), "STREAMJOIN_CATALOG": f"sqlite:///{tmp_path}/nowhere/catalog.db"}
    ended = subprocess.run(
        [sys.executable, "-m", "backend"], env=os.environ | settings, capture_output=True, text=True, timeout=120
    )
    assert ended.returncode and "cannot be used" in ended.stderr
    assert "was open to other users" in ended.stdout + ended.stderr
    assert open_to_others(data) == []


def test_the_first_password_is_told_to_people_only(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("long and random\n")
    assert "with the password long and random" in welcome(tmp_path, to_terminal=True)
    told = welcome(tmp_path, to_terminal=False)
    assert str(tmp_path / FILE) in told
    assert "long and random" not in told
