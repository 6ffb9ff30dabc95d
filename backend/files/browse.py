"""What is in the folders that streams may read, for people who choose a file there.

Only what a stream may read is shown: nothing of the data folder, nothing hidden, no link that leads out.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, Literal

from backend.auth.folders import Folders
from backend.files.format import Format, format_of
from streamjoin.errors import InputError

Kind = Literal["folder", "file"]
LOOKED_AT_MAX: Final = 20_000
"""A folder with more is not listed to its end: it is named by its path, and seldom what people choose from."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file or folder.

    Args:
        path: what a `spec` says.
        format: guessed from a file's name.
        bytes: of a file.
    """

    name: str
    path: str
    kind: Kind
    format: Format | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """What is in a folder.

    Args:
        path: of the folder; None for the list of the allowed folders themselves.
        parent: of the folder; None where that is the list of the allowed folders.
        entries: folders first, each kind by name.
        is_cut: whether the folder has more than could be looked at.
    """

    path: str | None
    parent: str | None
    entries: list[Entry]
    is_cut: bool = False


def allowed_folders(folders: Folders) -> Listing:
    """Where choosing begins."""
    return Listing(None, None, [Entry(str(path), str(path), "folder") for path in folders.allowed if path.is_dir()])


def listed(folders: Folders, path: str) -> Listing:
    """A folder that may be read.

    Raises:
        InputError: it may not, or is none.
    Cost: one listing of it, of `LOOKED_AT_MAX` entries at most, and a look at each.
    """
    if not path.startswith("/") or "\0" in path:
        raise InputError("a path on this platform is absolute, such as /data/orders", field="path")
    try:
        real = Path(path).resolve()
        if (reason := folders.why_not(real)) is not None or (reason := _hidden(real, folders)) is not None:
            raise InputError(f"{path[:200]} {reason}", field="path")
        with os.scandir(real) as found:
            seen = list(islice(found, LOOKED_AT_MAX + 1))
    except NotADirectoryError:
        raise InputError(f"{path[:200]} is a file; a folder can be listed", field="path") from None
    except (OSError, RuntimeError) as cause:
        why = getattr(cause, "strerror", None) or "its links lead in a circle"
        raise InputError(f"{path[:200]} cannot be looked at: {why}", field="path") from None
    entries = [entry for item in seen[:LOOKED_AT_MAX] if (entry := _entry(item, folders)) is not None]
    entries.sort(key=_order)
    parent = None if real in folders.allowed else str(real.parent)
    return Listing(str(real), parent, entries, len(seen) > LOOKED_AT_MAX)


def after(entries: list[Entry], name: str) -> list[Entry]:
    """Those that come after one with this name; all where there is none."""
    place = next((place for place, entry in enumerate(entries) if entry.name == name), -1)
    return entries[place + 1 :]


def _order(entry: Entry) -> tuple[bool, str, str]:
    return entry.kind == "file", entry.name.casefold(), entry.name


def _hidden(real: Path, folders: Folders) -> str | None:
    """Hidden folders are not shown, even where a stream that names one may read it."""
    root = next((root for root in (real, *real.parents) if root in folders.allowed), real)
    if any(part.startswith(".") for part in real.relative_to(root).parts):
        return "is hidden, and is not listed; a stream that names its path may read it"
    return None


def _entry(item: os.DirEntry[str], folders: Folders) -> Entry | None:
    if item.name.startswith("."):
        return None
    try:
        item.name.encode()  # names that are no text cannot be told, and cannot be asked for
        if folders.why_not(Path(item.path).resolve()) is not None:
            return None
        if item.is_dir():
            return Entry(item.name, item.path, "folder")
        if item.is_file():
            return Entry(item.name, item.path, "file", format_of(item.name), item.stat().st_size)
    except (OSError, RuntimeError, UnicodeEncodeError):  # it went meanwhile, or may not be looked at
        pass
    return None
