"""How uploaded files are called, and how a stream or relation says that it reads one: `path: upload:NAME`.

A name may have `*` and `?` there, and then means all uploads that match it, as in `upload:orders-*.csv`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeGuard

from backend.settings import Settings
from streamjoin.errors import InputError, RunError

PREFIX: Final = "upload:"
NAME_BYTES_MAX: Final = 120
WILDCARDS: Final = "*?"
STARS_MAX: Final = 4
"""Each `*` of a pattern multiplies the ways a name can match."""
_MARKS: Final = " ._-+,()@"
"""What a name may have besides letters and digits."""


def folder_of(settings: Settings) -> Path:
    """Where all uploads are."""
    return settings.data.absolute() / "uploads"


def check_name(name: str, *, wild: str = "") -> str:
    """A name as it is kept, with its accents composed.

    Args:
        wild: further characters that it may have.
    Raises:
        InputError: it may not be called so.
    """
    name = composed(name)
    if not name or len(name.encode("utf-8", "surrogatepass")) > NAME_BYTES_MAX:
        raise InputError(f"is a file's name, of {NAME_BYTES_MAX} bytes at most", field="name")
    other = next((mark for mark in name if not (mark.isalnum() or mark in _MARKS + wild)), None)
    if other is not None:
        shown = other if other.isprintable() else f"U+{ord(other):04X}"
        raise InputError(
            f"has {shown} in it; an upload is a file without folders, and its name has letters, digits, blanks and "
            f"{' '.join(_MARKS.strip())} only",
            field="name",
        )
    if not (name[0].isalnum() or name[0] in wild) or name[-1] in " .":
        raise InputError("begins with a letter or a digit, and does not end with a blank or a dot", field="name")
    return name


def is_upload(path: object) -> TypeGuard[str]:
    """Whether the path of an entry means uploads."""
    return isinstance(path, str) and path.startswith(PREFIX)


def check_wildcards(path: object) -> None:
    """Refuse a pattern of uploads that takes long to match. Jobs, and entries of earlier versions, keep theirs.

    Raises:
        InputError: it has too many `*`.
    """
    if is_upload(path) and (stars := path.count("*")) > STARS_MAX:
        raise InputError(f"{PREFIX}NAME: the name has {stars} *, and may have {STARS_MAX}", field="path")


def path_of(settings: Settings, path: str) -> Path:
    """The file, or the pattern of files, that `upload:NAME` means.

    Raises:
        InputError: it is not a name.
    """
    try:
        return folder_of(settings) / check_name(path.removeprefix(PREFIX), wild=WILDCARDS)
    except InputError as wrong:
        raise InputError(f"{PREFIX}NAME: the name {wrong.message}", field="path") from None


def resolved(settings: Settings, entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of a join file as the engine reads it: `upload:NAME` is the path of that file.

    Raises:
        InputError: it is not a name.
    """
    path = entry.get("path")
    return {**entry, "path": str(path_of(settings, path))} if is_upload(path) else dict(entry)


@contextmanager
def called_by_names(settings: Settings) -> Iterator[None]:
    """What is wrong with an upload says `upload:NAME`, and not where the platform keeps it."""
    folder = f"{folder_of(settings)}/"
    try:
        yield
    except InputError as wrong:
        raise InputError(wrong.message.replace(folder, PREFIX), field=wrong.field) from None
    except RunError as wrong:
        raise RunError(str(wrong).replace(folder, PREFIX)) from None


def composed(name: str) -> str:
    """A name with each letter and its accents as one character: some systems write them as several."""
    return unicodedata.normalize("NFC", name)
