"""Folders whose names last: what is synced, and in which order."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from streamjoin import durable


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders and files that are synced."""
    found: list[Path] = []
    monkeypatch.setattr(durable, "sync_folder", found.append)
    monkeypatch.setattr(durable, "sync_file", found.append)
    return found


def test_each_folder_that_is_made_is_in_a_folder_that_is_synced(synced: list[Path], tmp_path: Path) -> None:
    durable.make_folder(tmp_path / "a" / "b")
    # Whoever made `tmp_path` may have died before its sync.
    assert synced == [tmp_path.parent, tmp_path, tmp_path / "a"]
    assert (tmp_path / "a" / "b").is_dir()
    synced.clear()
    durable.make_folder(tmp_path / "a" / "b")
    assert synced == [tmp_path / "a"]


def test_a_folder_above_that_may_not_be_read_is_somebody_elses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = durable.sync_folder

    def refuses(folder: Path) -> None:
        if folder == tmp_path.parent:
            raise PermissionError(13, "Permission denied")
        real(folder)

    monkeypatch.setattr(durable, "sync_folder", refuses)
    durable.make_folder(tmp_path / "a")
    assert (tmp_path / "a").is_dir()


def test_what_a_killed_process_left_is_synced(synced: list[Path], tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name in ("x.log", "a/y.log", "a/b/z.txt"):
        (tmp_path / name).write_text("")
    durable.sync_all(tmp_path, lambda path: path.suffix == ".log")
    assert sorted(synced) == sorted(
        [tmp_path, tmp_path / "x.log", tmp_path / "a", tmp_path / "a/y.log", tmp_path / "a/b"]
    )


def test_who_puts_a_file_writes_under_a_name_that_nobody_else_has(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Processes of two containers may have one number, as both of these do, and put the same file at once."""
    path, write = tmp_path / "1.json", durable.write_durably

    def dies_half_way(temporary: Path, content: bytes) -> None:
        write(temporary, content[:5])
        raise OSError(5, "Input/output error")

    def meanwhile(temporary: Path, content: bytes) -> None:
        write(temporary, content)
        monkeypatch.setattr(durable, "write_durably", dies_half_way)
        with pytest.raises(OSError, match="Input/output"):
            durable.put_durably(path, b"by the other one")

    monkeypatch.setattr(durable, "write_durably", meanwhile)
    durable.put_durably(path, b"by this one")
    assert path.read_bytes() == b"by this one"
    assert all(other.name.startswith(".1.json.") for other in tmp_path.iterdir() if other != path)


@pytest.mark.parametrize("fails", ["fsync", "replace"])
def test_what_could_not_be_put_leaves_nothing(fails: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def is_full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "1.json").write_bytes(b"the one of before")
    monkeypatch.setattr(os, fails, is_full)
    for _ in range(3):
        with pytest.raises(OSError, match="No space"):
            durable.put_durably(tmp_path / "1.json", b"{}" * 100)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"1.json": b"the one of before"}
