"""Folders among everybody's temporary files that one user alone can use."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path


def own_temporary(purpose: str) -> Path:
    """A folder of this user's for one purpose: any of its processes finds it, and others know its name as well."""
    return Path(tempfile.gettempdir()) / f"streamjoin-{purpose}-{os.getuid()}"


def is_private(folder: Path) -> bool:
    """Make a folder, unless it is there; whether it is this user's, and nobody else can write to it.

    Raises:
        OSError: it cannot be made.
    """
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700, parents=True)
    found = folder.lstat()
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == os.getuid()
        and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )
