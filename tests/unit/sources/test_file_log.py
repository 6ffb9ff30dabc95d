"""The log of a file source: the same files in the same order, whatever the folder looks like by now."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from streamjoin.errors import InputError, RunError
from streamjoin.sources.filelog import FileLog


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    data.mkdir()
    for name in ("2.csv", "1.csv"):
        (data / name).write_text("x")
    return data


def opened(folder: Path) -> FileLog:
    return FileLog(folder, folder.parent / "logs" / "log.jsonl")


def names(log: FileLog, start: int = 0) -> list[str]:
    return [Path(file.path).name for file in log.between(start, len(log.files))]


def test_files_are_logged_in_name_order(folder: Path) -> None:
    log = opened(folder)
    log.refresh()
    assert names(log) == ["1.csv", "2.csv"]
    assert [file.number for file in log.files] == [0, 1]


def test_new_files_follow_also_where_their_names_are_smaller(folder: Path) -> None:
    log = opened(folder)
    log.refresh()
    (folder / "0.csv").write_text("y")
    (folder / "1b.csv").write_text("y")
    log.refresh()
    assert names(log) == ["1.csv", "2.csv", "0.csv", "1b.csv"]


def test_nothing_new_leaves_the_log_alone(folder: Path) -> None:
    log = opened(folder)
    log.refresh()
    before = log.log.stat()
    log.refresh()
    assert log.log.stat().st_mtime_ns == before.st_mtime_ns


def test_another_process_reads_the_same_files_in_the_same_order(folder: Path) -> None:
    first = opened(folder)
    first.refresh()
    (folder / "0.csv").write_text("y")
    first.refresh()
    again = opened(folder)
    assert again.files == first.files
    again.refresh()
    assert again.files == first.files


def test_files_that_are_not_finished_are_not_seen_until_they_get_their_name(folder: Path) -> None:
    for name in (".3.csv", "_3.csv", ".3.csv.tmp"):
        (folder / name).write_text("half")
    (folder / "sub").mkdir()
    log = opened(folder)
    log.refresh()
    assert names(log) == ["1.csv", "2.csv"]
    (folder / ".3.csv").rename(folder / "3.csv")
    log.refresh()
    assert names(log, 2) == ["3.csv"]


@pytest.mark.parametrize(
    "torn", ['\0\0\0.csv", 12]\n["/data/4.csv", 9]\n', '["/data/3.csv"', '["/data/3.csv", 12', "\0\0\0\0", '["é']
)
def test_line_torn_by_a_crash_is_forgotten(torn: str, folder: Path) -> None:
    log = opened(folder)
    log.refresh()
    whole = log.log.read_bytes()
    for cut in range(1, len(torn.encode()) + 1):
        log.log.write_bytes(whole + torn.encode()[:cut])
        again = opened(folder)
        assert again.files == log.files
        assert log.log.read_bytes() == whole
    (folder / "3.csv").write_text("z")
    again.refresh()
    assert names(opened(folder)) == ["1.csv", "2.csv", "3.csv"]


def test_path_with_a_line_break_keeps_the_log_readable(folder: Path) -> None:
    (folder / "3\n\u2028é.csv").write_text("z")
    log = opened(folder)
    log.refresh()
    assert opened(folder).files == log.files
    assert len(log.files) == 3


def test_file_that_is_gone_stops_the_job_by_name(folder: Path) -> None:
    log = opened(folder)
    log.refresh()
    (folder / "1.csv").unlink()
    with pytest.raises(RunError, match=r"1\.csv was to be read, but it is gone; put it back"):
        log.between(0, 2)
    assert names(log, 1) == ["2.csv"]


def test_file_that_shrank_stops_the_job_by_name(folder: Path) -> None:
    log = opened(folder)
    log.refresh()
    os.truncate(folder / "2.csv", 0)
    with pytest.raises(RunError, match=r"2\.csv is shorter than when it was first seen"):
        log.between(0, 2)


def test_damaged_log_stops_the_job_by_name(folder: Path) -> None:
    log = opened(folder)
    log.refresh()
    for damage in ("garbage\n", "[]\n", '{"a": 1}\n', "[1, 2, 3]\n", "\xff\n"):
        log.log.write_bytes(damage.encode("latin-1"))
        with pytest.raises(RunError, match=r"log\.jsonl is damaged in line 1"):
            opened(folder)


def test_file_gone_before_it_could_be_logged_is_simply_not_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = opened(folder)
    listed = [folder / "1.csv", folder / "gone.csv"]
    monkeypatch.setattr("streamjoin.sources.filelog.list_files", lambda _: listed)
    log.refresh()
    assert names(log) == ["1.csv"]


def test_folder_that_is_gone_is_named(folder: Path) -> None:
    log = opened(folder)
    with pytest.raises(InputError, match="nowhere does not exist"):
        FileLog(folder / "nowhere", log.log).refresh()


def test_one_file_is_a_log_of_one(folder: Path) -> None:
    log = opened(folder / "2.csv")
    log.refresh()
    log.refresh()
    assert json.loads(log.log.read_text()) == [str(folder / "2.csv"), 1]
