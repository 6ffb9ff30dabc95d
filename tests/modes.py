"""Who may read files."""

from __future__ import annotations

from pathlib import Path


def open_to_others(folder: Path) -> list[str]:
    """The files and folders, itself included, that others than their owner may read or write; links aside."""
    found = [
        f"{path} {path.lstat().st_mode & 0o777:o}"
        for path in (folder, *folder.rglob("*"))
        if not path.is_symlink() and path.lstat().st_mode & 0o077
    ]
    return sorted(found)
