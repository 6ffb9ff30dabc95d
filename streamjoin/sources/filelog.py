"""The log of a file source: which files there are, in the order they will be read.

A folder is listed again for every batch; files it did not have before are appended to the log in name order. An offset
is a number of lines of the log, so a replay reads the same files, whatever the folder looks like by then.

A job whose folder was moved or copied, or is reached through a link, finds its files at other paths. A file is one that
was logged if it lies at the same place below the source's folder and has the same content there: its size, and a digest
of how it begins and ends, say so.
"""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import json
import logging
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise, zip_longest
from pathlib import Path

from streamjoin.durable import make_folder, sync_folder
from streamjoin.errors import InputError, RunError
from streamjoin.sources.patterns import ACROSS, WILD, Search, Tally, bounded_but, tally_of

_log = logging.getLogger("streamjoin.sources")
_ENDS_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class LoggedFile:
    """A file as it was when it was first seen.

    Args:
        below: its path below the folder of the source; empty where that was not logged.
        digest: of its first and last 64 KiB; empty where that was not logged.
    """

    number: int
    path: str
    bytes: int
    below: str = ""
    digest: str = ""

    @property
    def line(self) -> str:
        """How it is logged."""
        return json.dumps([self.path, self.bytes, self.below, self.digest]) + "\n"

    def is_at(self, path: str) -> bool:
        """Whether what lies at another path is this file."""
        try:
            if os.stat(path).st_size < self.bytes:
                return False
            digest = self.digest or (_digest(self.path, self.bytes) if os.path.exists(self.path) else "")
            return digest == _digest(path, self.bytes) if digest else os.stat(path).st_size == self.bytes
        except OSError:
            return False


def _digest(path: str, size: int) -> str:
    """Of the first and the last bytes of a file that had `size` of them."""
    with open(path, "rb") as file:
        found = hashlib.blake2b(file.read(min(size, _ENDS_BYTES)), digest_size=8)
        if size > _ENDS_BYTES:
            file.seek(max(size - _ENDS_BYTES, _ENDS_BYTES))
            found.update(file.read(size - file.tell()))
    return found.hexdigest()


class FileLog:
    """The log of one stream, kept in a file.

    Args:
        folder: a folder, one file, or a pattern.
        log: where the log is kept.
    """

    def __init__(self, folder: Path, log: Path) -> None:
        self.folder = folder
        self.log = log
        self.root = str(root_of(folder))
        self.files = self._load()
        self._known: set[str] = set()
        self._moved: _Moved | None = None

    def _load(self) -> list[LoggedFile]:
        """The logged files.

        Raises:
            RunError: the log is damaged.
        """
        if not self.log.exists():
            return []
        text = self.log.read_bytes()
        # After a power cut there may be zeros in place of what was not synced, and lines behind them.
        whole, _, torn = text.partition(b"\0")[0].rpartition(b"\n")
        torn = text[len(whole) + 1 :] if whole else text
        if torn:  # a crash while appending: no offset can name a line that was not finished
            with open(self.log, "rb+") as file:
                file.truncate(len(text) - len(torn))
        return [self._entry(number, line) for number, line in enumerate(whole.split(b"\n") if whole else [])]

    def _entry(self, number: int, line: bytes) -> LoggedFile:
        try:
            path, size, *more = json.loads(line)
            below, digest = more or ("", "")  # which logs of earlier versions lack
            if all(isinstance(text, str) for text in (path, below, digest)) and isinstance(size, int):
                return LoggedFile(number, path, size, below, digest)
        except (ValueError, TypeError):
            pass
        raise RunError(
            f"{self.log} is damaged in line {number + 1}; restore the checkpoint from a copy or start with another one"
        )

    def refresh(self) -> None:
        """Append the files that appeared since the last call.

        Raises:
            InputError: the folder is not there.
        """
        known = {file.path for file in self.files} | self._known
        new = [str(path) for path in list_files(self.folder) if str(path) not in known]
        added: list[LoggedFile] = []
        if new and self._moved is None:
            self._moved = _Moved(self.files, self.root)  # what is logged from now on lies in the folder
        before = self._moved.count if self._moved else 0
        for path in new:
            if self._moved is not None and self._moved.has(path):
                self._known.add(path)
                continue
            with contextlib.suppress(FileNotFoundError):  # gone since it was listed
                added.append(self._seen(len(self.files) + len(added), path))
        if self._moved is not None and (count := self._moved.count - before):
            _log.info("%d files of %s were read at another path before, and are not read again", count, self.root)
        if not added:
            return
        is_new = not self.log.exists()
        if is_new:
            make_folder(self.log.parent)
        with open(self.log, "a", encoding="utf-8") as file:
            file.writelines(entry.line for entry in added)
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            sync_folder(self.log.parent)
        self.files += added

    def _seen(self, number: int, path: str) -> LoggedFile:
        size = os.stat(path).st_size
        digest = ""
        with contextlib.suppress(PermissionError):  # which whoever reads it says
            digest = _digest(path, size)
        return LoggedFile(number, path, size, os.path.relpath(path, self.root), digest)

    def _now(self, file: LoggedFile) -> LoggedFile:
        """A logged file where it is now."""
        if _is_below(file.path, self.root):
            return file
        for below in _places(file):
            if file.is_at(path := os.path.join(self.root, below)):
                return replace(file, path=path)
        return file

    def between(self, start: int, stop: int) -> list[LoggedFile]:
        """Files number start..stop-1.

        Raises:
            RunError: one of them is gone or was changed since it was logged, so the batch cannot be repeated.
        """
        chosen = [self._now(file) for file in self.files[start:stop]]
        for file in chosen:
            try:
                size = os.stat(file.path).st_size
            except OSError:
                raise RunError(
                    f"{file.path} was to be read, but it is gone; put it back, the job goes on where it stopped"
                ) from None
            if size < file.bytes:
                raise RunError(f"{file.path} is shorter than when it was first seen; files of a stream must not change")
        return chosen


_NUMBERS = re.compile(r"([0-9]+)")


def name_order_hint(stream: str, files: Sequence[LoggedFile]) -> str | None:
    """Where rows of a stream were late: that its files were read in another order than the numbers in their names have.

    None where they were not. Names of other letters are not compared: they have their numbers for something else.
    """
    for before, after in pairwise(files):
        first, then = (_NUMBERS.split(_shown(file)) for file in (before, after))
        if first[::2] != then[::2]:
            continue
        wide = [max(len(one), len(other)) for one, other in zip(first[1::2], then[1::2], strict=True)]
        padded = [[text.zfill(width) for text, width in zip(one[1::2], wide, strict=True)] for one in (first, then)]
        if first[1::2] < then[1::2] and padded[0] > padded[1]:
            named = "".join(chain.from_iterable(zip_longest(then[::2], padded[1], fillvalue="")))
            return (
                f"files of {stream} are read in the order of their names, {_shown(before)} before {_shown(after)}, "
                "which may be why rows are late: use the same number of digits in all names, such as "
                f"{named}, and begin anew"
            )
    return None


def _shown(file: LoggedFile) -> str:
    return file.below or file.path


def _is_below(path: str, root: str) -> bool:
    return os.path.commonpath([path, root]) == root


def _places(file: LoggedFile) -> Iterator[str]:
    """Where a logged file may be below the source's folder."""
    if file.below:
        yield file.below
        return
    parts = file.path.strip("/").split("/")
    yield from ("/".join(parts[-count:]) for count in range(1, len(parts) + 1))


class _Moved:
    """Which files are those that were logged with paths outside of the source's folder as it is now."""

    def __init__(self, files: list[LoggedFile], root: str) -> None:
        self.root = root
        self.count = 0
        self._by_name: dict[str, list[LoggedFile]] = {}
        for file in files:
            if not _is_below(file.path, root):
                self._by_name.setdefault(os.path.basename(file.path), []).append(file)

    def has(self, path: str) -> bool:
        """Whether a file is one of them."""
        below = os.path.relpath(path, self.root)
        for file in self._by_name.get(os.path.basename(path), ()):
            same = file.below == below if file.below else file.path.endswith("/" + below)
            if same and 0 < file.bytes == os.stat(path).st_size and file.is_at(path):
                self.count += 1
                return True
        return False


def list_files(path: Path) -> list[Path]:
    """The files of a folder, a pattern's files, or the one file, in name order.

    Names that begin with . or _ are not finished yet. Of the folders in a folder those called `column=value` are looked
    into; others need a pattern, such as `data/**/*.csv`.

    Raises:
        InputError: the path does not exist, is neither a file nor a folder, cannot be read, or has too many entries;
            see `patterns.listing_bounded`.
    Cost: a look at each entry of its folders.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return sorted(_inside(path, tally_of(path)))
    except FileNotFoundError:
        if not is_pattern(path):
            raise InputError(f"{path} does not exist") from None
        return _matching(path)
    except (OSError, ValueError) as cause:
        raise _unreadable(path, cause) from None
    if stat.S_ISREG(mode):
        return [path]
    raise InputError(f"{path} is neither a file nor a folder")


def is_pattern(path: Path) -> bool:
    """Whether a path that does not exist as it is written means those that match it."""
    return any(WILD & set(part) for part in path.parts)


def root_of(path: Path) -> Path:
    """The folder below which the folders of a path's files may have columns in their names.

    It is the folder itself, or what a pattern has before its first wildcard.

    Raises:
        InputError: it may not be looked at.
    """
    try:
        if path.is_dir():
            return path
        if path.exists() or not is_pattern(path):
            return path.parent
    except (OSError, ValueError) as cause:
        raise _unreadable(path, cause) from None
    return _before_wildcards(path)


def would_read(path: Path, file: Path) -> bool:
    """Whether a file written to `file` would be among the files of `path`."""
    pattern = None if path.exists() or not is_pattern(path) else str(path)
    # Where `**` is in a pattern, fnmatch's * crosses folders as it does.
    crosses = ACROSS in path.parts
    for above in (file, *file.parents):
        folders = file.relative_to(above).parts[:-1]
        is_named = above == path or (
            pattern is not None
            and (crosses or len(above.parts) == len(path.parts))
            and fnmatch.fnmatchcase(str(above), pattern)
        )
        if is_named and all(PARTITION in name for name in folders):
            return True
    return False


PARTITION = "="
"""What the name of a folder with partitions has, between column and value."""
DEPTH_MAX = 16
"""Folders of partitions inside each other."""


def _before_wildcards(path: Path) -> Path:
    count = next(number for number, part in enumerate(path.parts) if WILD & set(part))
    return Path(*path.parts[:count])


def _inside(folder: Path, tally: Tally | None, depth: int = 0) -> Iterator[Path]:
    if depth > DEPTH_MAX:
        raise InputError(
            f"{str(folder)[:200]} lies in more than {DEPTH_MAX} folders of partitions; does a link lead back?"
        )
    with os.scandir(folder) as entries:
        for entry in entries:
            if tally is not None:
                tally.count()
            if entry.name[0] in "._":
                continue
            if entry.is_file():
                yield folder / entry.name
            elif PARTITION in entry.name and entry.is_dir():
                yield from _inside(folder / entry.name, tally, depth + 1)


def _matching(pattern: Path) -> list[Path]:
    root = _before_wildcards(pattern)
    if ".." in pattern.parts[len(root.parts) :]:
        raise InputError(f"{pattern} has .. behind a wildcard; write the path without it")
    if not root.is_dir():
        raise InputError(f"{root} does not exist, so no file matches {pattern}")
    search = Search(pattern, root)
    all_count = search if bounded_but() is not None else None
    found: set[Path] = set()
    try:
        for path in search.found():
            if path.is_file():
                found.add(path)
            elif path.is_dir():
                for file in _inside(path, all_count):
                    if all_count is None:  # a job that runs goes on, whatever lies beside its files
                        search.count()
                    found.add(file)
    except (OSError, ValueError) as cause:
        raise _unreadable(pattern, cause) from None
    return sorted(found)


def _unreadable(path: Path, cause: Exception) -> InputError:
    return InputError(f"{str(path)[:200]} cannot be read: {getattr(cause, 'strerror', None) or cause}")
