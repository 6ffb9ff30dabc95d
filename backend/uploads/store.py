"""The uploaded files themselves: each is there whole or not at all, and never changes under its name.

data/uploads/orders.csv                what streams read
data/uploads/.owners/orders.csv        the id of the user who sent it
data/uploads/.drafts/usr_....upl_...   what that user is still sending
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from filecmp import cmp
from hashlib import file_digest, sha256
from pathlib import Path
from typing import BinaryIO, Final

from backend.catalog.ids import new_id
from backend.problems import Problem
from backend.space import Space
from streamjoin.durable import sync_folder, write_durably

DRAFT_KEPT_S: Final = 3600.0
"""A draft that nothing was added to for so long is left over from a process that died."""
_DRAFTS: Final = ".drafts"
_OWNERS: Final = ".owners"


@dataclass(frozen=True, slots=True)
class Upload:
    """An uploaded file.

    Args:
        at_us: when it was complete.
        owner_id: who sent it; None where auth was off.
    """

    name: str
    bytes: int
    at_us: int
    owner_id: str | None


@dataclass(frozen=True, slots=True)
class Content:
    """What tells a file's content from others: its size and SHA-256."""

    bytes: int
    sha256: str


def content_of(written: bytes) -> Content:
    """The same for a file with these bytes."""
    return Content(len(written), sha256(written).hexdigest())


class Draft:
    """A file that is coming in, from `begin` to `end`; without `keep` before that it is forgotten.

    Args:
        folder: of all uploads.
        space: how much its owner's may take.
        name: which it gets; checked.
        owner_id: who sends it.
    Cost: a write for each piece; nothing of it stays in memory. What is there already is read instead, and takes no
        space.
    """

    def __init__(self, folder: Path, space: Space, name: str, owner_id: str | None) -> None:
        self._folder = folder
        self._space = space
        self._name = name
        self._owner_id = owner_id
        self._path = folder / _DRAFTS / f"{owner_id or ''}.{new_id('upl')}"
        self._file: BinaryIO
        self._is_there = False
        self._bytes = 0

    def begin(self) -> None:
        """Begin it."""
        kept = self._folder / self._name
        with _told():
            for part in (_DRAFTS, _OWNERS):
                (self._folder / part).mkdir(parents=True, exist_ok=True)
            _forget_old_drafts(self._folder / _DRAFTS)
            self._is_there = kept.is_file() and not kept.is_symlink()
            self._file = open(kept, "rb") if self._is_there else open(self._path, "xb", buffering=0)  # noqa: SIM115

    def end(self) -> None:
        """Forget it, unless it was kept."""
        self._file.close()
        self._path.unlink(missing_ok=True)

    def write(self, piece: bytes) -> None:
        """Add what came.

        Raises:
            Problem: the piece does not fit into the space that is left, or differs from the upload of that name.
        """
        self._bytes += len(piece)
        if self._is_there:
            if self._file.read(len(piece)) != piece:
                raise _differs(self._name)
            return
        with self._space.taking(len(piece)), _told():
            left = memoryview(piece)
            while left:
                left = left[self._file.write(left) :]

    def keep(self) -> bool:
        """Give it its name, durably.

        Returns:
            Whether it is new; the same bytes may be sent under one name again, and nothing changes.
        Raises:
            Problem: it is empty, or there is an upload of that name with other content.
        """
        name = self._name
        if not self._bytes:
            raise Problem("invalid.empty_upload", f"{name} is empty; send the bytes of a file as the body")
        if self._is_there:
            if self._file.read(1):
                raise _differs(name)
            return False
        with _told():
            os.fsync(self._file.fileno())
            try:
                os.link(self._path, self._folder / name)  # of two at once only one is first
            except FileExistsError:
                return self._is_repeated(name)
            write_durably(self._folder / _OWNERS / name, (self._owner_id or "").encode())
            sync_folder(self._folder)
        return True

    def _is_repeated(self, name: str) -> bool:
        kept = self._folder / name
        if kept.is_file() and not kept.is_symlink() and cmp(self._path, kept, shallow=False):
            return False
        raise _differs(name)


def _differs(name: str) -> Problem:
    return Problem(
        "conflict.upload_differs",
        f"there is an upload {name} already, with other content; delete it first, or send this one under another "
        "name: files of a stream do not change",
    )


def bytes_of(folder: Path, owner_id: str | None) -> int:
    """What one user's uploads take, with those that are still coming in.

    Cost: that of `all_of`.
    """
    found = sum(upload.bytes for upload in all_of(folder) if upload.owner_id == owner_id)
    for draft in (folder / _DRAFTS).glob(f"{owner_id or ''}.*"):
        try:
            found += draft.stat().st_size
        except FileNotFoundError:  # it was kept or forgotten meanwhile
            continue
    return found


def all_of(folder: Path) -> list[Upload]:
    """All uploads, by name.

    Cost: one listing, and a look at each file.
    """
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
    except FileNotFoundError:
        return []
    return [upload for name in names if name[0] != "." and (upload := find(folder, name)) is not None]


def find(folder: Path, name: str) -> Upload | None:
    """One of them, if it is there.

    Args:
        name: checked (`names.check_name`).
    """
    path = folder / name
    if path.is_symlink() or not path.is_file():
        return None
    seen = path.stat()
    try:
        owner_id = (folder / _OWNERS / name).read_text() or None
    except FileNotFoundError:  # a crash came in between: it is nobody's
        owner_id = None
    return Upload(name, seen.st_size, seen.st_mtime_ns // 1000, owner_id)


def has(folder: Path, name: str, content: Content) -> bool:
    """Whether there is an upload with this content, and no other.

    Cost: reads it, piece by piece, if its size matches.
    """
    try:
        with open(folder / name, "rb") as file:
            if os.fstat(file.fileno()).st_size != content.bytes:
                return False
            return file_digest(file, "sha256").hexdigest() == content.sha256
    except FileNotFoundError:  # it may be removed at any moment
        return False


def remove(folder: Path, name: str) -> None:
    """Forget one, whose name is checked."""
    (folder / name).unlink(missing_ok=True)
    (folder / _OWNERS / name).unlink(missing_ok=True)
    sync_folder(folder)


@contextmanager
def _told() -> Iterator[None]:
    """A full disk is a problem that names it."""
    try:
        yield
    except OSError as cause:
        if cause.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Problem(
                "unavailable.disk_full", "the disk of the data folder is full; make room, and send the file again"
            ) from None
        raise


def _forget_old_drafts(drafts: Path) -> None:
    before_s = time.time() - DRAFT_KEPT_S
    for path in drafts.iterdir():
        try:
            if path.stat().st_mtime < before_s:
                path.unlink()
        except FileNotFoundError:  # it was kept or forgotten meanwhile
            continue
