"""What the platform keeps is for its own user alone: folders have the mode 0700 and files 0600."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from streamjoin.durable import write_durably
from streamjoin.errors import InputError

OTHERS: Final = 0o077
"""All that a mode may allow to others than the owner."""
LEFT_OPEN: Final = (
    "catalog.db", "catalog.db-wal", "catalog.db-shm", "admin-password", "up.lock", "jobs", "spool", "logs", "redis",
)  # fmt: skip
"""What versions that did not call `keep_private` have made in a data folder, with a mode that others may read."""


def kept_secret(file: Path) -> str:
    """A random secret in a file, made if there is none; processes that look at once agree on it.

    Raises:
        OSError: it can be neither read nor written.
    """
    if not file.exists():
        draft = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
        file.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        write_durably(draft, secrets.token_urlsafe(32).encode())
        try:
            os.link(draft, file)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return file.read_text().strip()


def keep_private() -> None:
    """From now on, what this process and its children make is for their user alone."""
    os.umask(OTHERS)


def tighten(data: Path) -> str | None:
    """Take from others what the data folder of an earlier version allows them; gives a line for the log if it did.

    A folder that is closed already stays as it is, whatever is in it: nobody else gets there. Links are not followed.

    Raises:
        InputError: the folder is one that all users share, such as /tmp.
    Cost: a look at each file of an open folder, about 5 s for a million; one look at a closed one.
    """
    data = data.resolve()
    if not data.exists() or not _is_open(data):
        return None
    if data.stat().st_mode & stat.S_ISVTX:
        raise InputError(f"{data} is shared by all users of this machine; set STREAMJOIN_DATA to a folder of its own")
    folders, files, failed = 0, 0, []
    for path, is_folder in _left_open(data):
        try:
            if _is_open(path):
                path.chmod(path.stat().st_mode & ~OTHERS)
                folders, files = folders + is_folder, files + (not is_folder)
        except FileNotFoundError:  # it went meanwhile
            continue
        except OSError:
            failed.append(path)
    said = f"{data} was open to other users of this machine, and is closed now: {_count(folders, 'folder')}, "
    said += _count(files, "file")
    if failed:
        said = f"{said}; {len(failed):,} could not be closed, such as {failed[0]}: their owner can, with chmod go="
    return said


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _left_open(data: Path) -> Iterator[tuple[Path, bool]]:
    """What is to be closed, and whether it is a folder; the data folder comes last, when all in it is done."""
    for name in LEFT_OPEN:
        if (data / name).is_symlink():
            continue
        for place, _, names in os.walk(data / name, topdown=False):
            yield from ((Path(place, name), False) for name in names)
            yield Path(place), True
        if (data / name).is_file():
            yield data / name, False
    yield data, True


def _is_open(path: Path) -> bool:
    mode = path.lstat().st_mode
    return not stat.S_ISLNK(mode) and bool(mode & OTHERS)
