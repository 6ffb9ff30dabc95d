"""The log of a file source: the same files in the same order, whatever the folder looks like by now."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from streamjoin.errors import InputError, RunError
from streamjoin.sources.filelog import FileLog, name_order_hint
from tests.relocating import WAYS, relocate


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


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            ["day-1.csv", "day-2.csv", "day-10.csv"],
            "day-10.csv before day-2.csv, which may be why rows are late: .* day-02.csv,",
        ),
        (["h=9/a.csv", "h=10/a.csv"], "h=10/a.csv before h=9/a.csv, .* such as h=09/a.csv,"),
        (["2026-1-31.csv", "2026-10-1.csv", "2026-2-1.csv"], "2026-10-1.csv before 2026-2-1.csv, .* 2026-02-1.csv,"),
        (["2026-01-31.csv", "2026-02-01.csv", "2026-10-01.csv"], None),
        (["day-01.csv", "day-02.csv", "day-10.csv"], None),
        (["10ab.csv", "2cd.csv", "9ef.csv"], None),
        (["a.csv", "b.csv"], None),
    ],
)
def test_files_in_another_order_than_that_of_their_numbers_are_named(
    given: list[str], said: str | None, tmp_path: Path
) -> None:
    for name in given:
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_text("x")
    log = opened(tmp_path / "data")
    log.refresh()
    hint = name_order_hint("orders", log.files)
    assert hint == said is None or re.match(f"files of orders are read in the order of their names, {said}", hint or "")


def test_files_that_came_later_are_read_later_for_that(folder: Path) -> None:
    log = opened(folder)
    for name in ("10.csv", "3.csv"):
        (folder / name).write_text("x")
        log.refresh()
    assert names(log) == ["1.csv", "10.csv", "2.csv", "3.csv"]
    assert "10.csv before 2.csv" in (name_order_hint("a", log.files) or "")
    assert name_order_hint("a", log.files[2:]) is None


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
    path, size, below, digest = json.loads(log.log.read_text())
    assert (path, size, below) == (str(folder / "2.csv"), 1, "2.csv") and digest


def as_before(log: Path) -> None:
    """A log as it was when it had paths and sizes alone."""
    lines = [json.loads(line)[:2] for line in log.read_text().splitlines()]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize("before", [False, True], ids=["", "logged before"])
@pytest.mark.parametrize("how", WAYS)
def test_files_that_were_read_at_another_path_are_not_read_again(how: str, before: bool, tmp_path: Path) -> None:
    job, other = tmp_path / "job", tmp_path / "other"
    for name in ("a=1/0.csv", "a=2/0.csv", "1.csv"):
        (job / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (job / "data" / name).write_text(f"{name}, as long as each other"[:12])
    log = FileLog(job / "data", job / "log.jsonl")
    log.refresh()
    if before:
        as_before(job / "log.jsonl")
    relocate(how, job, other)
    there = FileLog(other / "data", other / "log.jsonl")
    there.refresh()
    assert len(there.files) == 3
    # What is still to be read, or read again, is read where it is now.
    assert [file.path for file in there.between(1, 3)] == [
        str(other / "data" / name) for name in ("a=1/0.csv", "a=2/0.csv")
    ]
    (other / "data" / "a=1" / "2.csv").write_text("new")
    there.refresh()
    again = FileLog(other / "data", other / "log.jsonl")
    again.refresh()
    assert [file.path for file in again.files[3:]] == [str(other / "data" / "a=1" / "2.csv")]


@pytest.mark.parametrize("before", [False, True], ids=["", "logged before"])
def test_another_folder_with_files_of_the_same_names_and_sizes_is_read(before: bool, tmp_path: Path) -> None:
    for day in ("monday", "tuesday"):
        (tmp_path / day).mkdir()
        (tmp_path / day / "0.csv").write_text(f"{day[:3]}")
    FileLog(tmp_path / "monday", tmp_path / "log.jsonl").refresh()
    if before:
        as_before(tmp_path / "log.jsonl")
    log = FileLog(tmp_path / "tuesday", tmp_path / "log.jsonl")
    log.refresh()
    assert [file.path for file in log.between(0, 2)] == [str(tmp_path / day / "0.csv") for day in ("monday", "tuesday")]


def test_of_a_large_file_its_beginning_and_its_end_are_looked_at(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    content = bytes(range(256)) * 1024
    for number, changed in enumerate((0, len(content) - 1, 40_000, len(content) - 40_000)):
        for name in ("old", "new"):
            shutil.rmtree(tmp_path / name, ignore_errors=True)
            (tmp_path / name).mkdir()
        (tmp_path / "old" / "0.csv").write_bytes(content)
        log = tmp_path / f"{number}.jsonl"
        FileLog(tmp_path / "old", log).refresh()
        other = bytearray(content)
        other[changed] ^= 1
        (tmp_path / "new" / "0.csv").write_bytes(other)
        there = FileLog(tmp_path / "new", log)
        there.refresh()
        assert len(there.files) == 2


@pytest.mark.parametrize("content", ["", "ts,id\n", "ts,id\n1,2\n"])
def test_a_longer_file_that_begins_like_one_that_was_read_is_another(content: str, tmp_path: Path) -> None:
    for day, more in (("monday", ""), ("tuesday", "3,4\n")):
        (tmp_path / day).mkdir()
        (tmp_path / day / "0.csv").write_text(content + more)
    FileLog(tmp_path / "monday", tmp_path / "log.jsonl").refresh()
    log = FileLog(tmp_path / "tuesday", tmp_path / "log.jsonl")
    log.refresh()
    assert [file.path for file in log.files] == [str(tmp_path / day / "0.csv") for day in ("monday", "tuesday")]
