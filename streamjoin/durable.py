"""Files that outlast a power cut: their content is on disk, and so is the folder's entry that names them."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def temporary_beside(path: Path) -> Path:
    """A name beside a file to write it under, which nobody else has and no reader of the folder looks at.

    A process id would not do: those of two containers may be the same, and both may write to a folder that they share.
    """
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}")


def write_durably(path: Path, content: bytes) -> None:
    """Write a file whose content is on disk when this returns. Its name is durable once its folder is synced."""
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary name to write to. The file then replaces `path` in one step; if that fails, it is removed."""
    temporary = temporary_beside(path)
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def put_durably(path: Path, content: bytes) -> None:
    """Put a file into place in one step, so that it lasts; whoever reads sees the one of before or this one, whole."""
    with replacing(path) as temporary:
        write_durably(temporary, content)
    sync_folder(path.parent)


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, so that their names last.

    Cost: a sync for each folder that is made and one more, in case whoever made the one above died before its sync.
    """
    missing: list[Path] = []
    above = folder
    while not above.is_dir():
        missing.append(above)
        above = above.parent
    with contextlib.suppress(PermissionError):  # it is not for us to list, so somebody else made what is in it
        sync_folder(above.parent)
    for one in reversed(missing):
        one.mkdir(exist_ok=True)
        sync_folder(one.parent)


def have_folder(folder: Path) -> None:
    """Make a folder as `make_folder` does, unless it is there; whoever made it has synced it. Cost: a look."""
    if not folder.is_dir():
        make_folder(folder)


def sync_file(path: Path) -> None:
    """Make the content of a file durable that was written without."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def sync_all(folder: Path, files: Callable[[Path], bool]) -> None:
    """Make durable what a process may have left that died before it synced it: all folders in here, and some files.

    Args:
        files: which ones, by their paths.
    Cost: a sync for each, which is next to nothing where there is nothing to be written.
    """
    for above, _, names in os.walk(folder):
        for path in map(Path(above).joinpath, names):
            if files(path):
                sync_file(path)
        sync_folder(Path(above))


def sync_folder(folder: Path) -> None:
    """Make renames, new names and removals in a folder durable: they are entries of the folder, not of the file."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
