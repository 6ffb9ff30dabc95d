"""Patterns of files: what they match, and that none of them takes more work than there are files and folders."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streamjoin.errors import InputError
from streamjoin.sources import patterns
from streamjoin.sources.filelog import list_files


@pytest.fixture
def top(tmp_path: Path) -> Path:
    for name in ("a.csv", "x/b.csv", "x/y/c.csv", "x/day=1/d.csv", "x/.hidden/e.csv", "x/_f.csv", "z/[1]/g.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("k\n1\n")
    (tmp_path / "z" / "link").symlink_to(tmp_path / "x")
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        ("*.csv", "a.csv"),
        ("*/b.csv", "x/b.csv"),
        ("x/*", "x/b.csv x/day=1/d.csv x/y/c.csv"),
        ("?", "x/b.csv x/day=1/d.csv"),
        ("**/c.csv", "x/y/c.csv"),
        ("**/[cd].csv", "x/day=1/d.csv x/y/c.csv"),
        ("**", "a.csv x/b.csv x/day=1/d.csv x/y/c.csv z/[1]/g.csv"),
        ("**/**/**/**/**/**/b.csv", "x/b.csv"),
        ("z/*/*.csv", "z/[1]/g.csv z/link/b.csv"),
        ("z/**/b.csv", ""),  # a link may lead back
        ("*/.hidden/*", ""),
        ("z/[1]/*", ""),
        ("z/[[]1]/*", "z/[1]/g.csv"),
        ("*/b.csv/**", ""),
    ],
)
def test_a_pattern_matches(top: Path, pattern: str, files: str) -> None:
    assert [str(file.relative_to(top)) for file in list_files(top / pattern)] == files.split()


def test_attack_a_deep_folder_is_looked_at_once_however_it_is_reached(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * 60)
    deep.mkdir(parents=True)
    looked_at = 0
    scandir = os.scandir

    def counted(path: Path) -> object:
        nonlocal looked_at
        looked_at += 1
        assert looked_at < 2_000, "folders are looked at again and again"
        return scandir(path)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "scandir", counted)
        assert list_files(tmp_path / "**/d/**/d/**/d/**/*.csv") == []


def test_attack_what_crosses_folders_again_and_again_is_refused(top: Path) -> None:
    with pytest.raises(InputError, match=r"has more than 4 of \*\*; name some of the folders"):
        list_files(top.joinpath(*["**", "*"] * 5))


@pytest.mark.parametrize("pattern", ["**/none", "*/*", "*"])
def test_attack_no_pattern_looks_at_more_than_so_many_files(
    top: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    monkeypatch.setattr(patterns, "ENTRIES_MAX", 3)
    with pytest.raises(InputError, match="more than 3 files and folders would have to be looked at; name the folders"):
        list_files(top / pattern)
