"""What matches a pattern of files and folders, found with bounded work, whoever wrote the pattern.

A folder that is named as it is has no bound where a job lists it, since it may grow for years; it has the same one
where somebody asks a process that others need.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Final

from streamjoin.errors import InputError

WILD: Final = frozenset("*?[")
ACROSS: Final = "**"
"""The part of a pattern that stands for any number of folders."""
ACROSS_MAX: Final = 4
ENTRIES_MAX: Final = 200_000
"""Files and folders that are looked at for one pattern; a listing of so many takes about a second."""

_bounded_but: ContextVar[Path | None] = ContextVar("_bounded_but", default=None)


@contextmanager
def listing_bounded(but: Path | None) -> Iterator[None]:
    """In the block, at most `ENTRIES_MAX` files and folders are looked at for a plain folder, too.

    Args:
        but: what lies in this folder is listed to its end; None for no bound at all.
    """
    before = _bounded_but.set(but)
    try:
        yield
    finally:
        _bounded_but.reset(before)


def bounded_but() -> Path | None:
    """What `listing_bounded` was given; None outside of it."""
    return _bounded_but.get()


class Tally:
    """Counts what is looked at for one path.

    Args:
        path: as it was written, for messages.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._looked_at = 0

    def count(self) -> None:
        """One more was looked at.

        Raises:
            InputError: it is one too many.
        """
        self._looked_at += 1
        if self._looked_at > ENTRIES_MAX:
            raise InputError(
                f"for {str(self.path)[:200]} more than {ENTRIES_MAX:,} files and folders would have to be looked "
                "at; name the folders in which the files are"
            )


def tally_of(folder: Path) -> Tally | None:
    """Counts what is looked at in a plain folder; None where that has no bound."""
    but = _bounded_but.get()
    is_free = but is None or (folder.is_relative_to(but) and ".." not in folder.parts)
    return None if is_free else Tally(folder)


class Search(Tally):
    """A look for what matches a pattern; what begins with . or _ does not.

    Args:
        pattern: as it was written, for messages.
        root: what it has before its first wildcard.
    Raises:
        InputError: it crosses folders too often.
    """

    def __init__(self, pattern: Path, root: Path) -> None:
        super().__init__(pattern)
        self.root = root
        self._parts = _merged(pattern.parts[len(root.parts) :])
        if self._parts.count(ACROSS) > ACROSS_MAX:
            raise InputError(f"{str(pattern)[:200]} has more than {ACROSS_MAX} of {ACROSS}; name some of the folders")

    def found(self) -> Iterator[Path]:
        """All that matches, once each, in no order.

        Raises:
            InputError: there is too much to look at.
            OSError: a folder cannot be read.
        """
        # The same folder may be reached with the same parts left in as many ways as it is deep, and counts once.
        seen = {(self.root, 0)}
        left = [(self.root, 0)]
        while left:
            place, number = left.pop()
            if number == len(self._parts):
                yield place
                continue
            for step in self._steps(place, number):
                if step not in seen:
                    seen.add(step)
                    left.append(step)

    def _steps(self, folder: Path, number: int) -> Iterator[tuple[Path, int]]:
        """What is next in a folder, each with how many parts of the pattern are behind it."""
        part, is_last = self._parts[number], number + 1 == len(self._parts)
        if part == ACROSS:
            yield folder, number + 1
        elif not WILD & set(part):
            self.count()
            place = folder / part
            if part[0] not in "._" and (place.exists() if is_last else place.is_dir()):
                yield place, number + 1
            return
        for entry in self._entries(folder):
            if part == ACROSS:
                if entry.is_dir(follow_symlinks=False):  # a link may lead back
                    yield folder / entry.name, number
            elif _compiled(part).match(entry.name) and (is_last or entry.is_dir()):
                yield folder / entry.name, number + 1

    def _entries(self, folder: Path) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    self.count()
                    if entry.name[0] not in "._":
                        yield entry
        except (PermissionError, NotADirectoryError):
            return  # what may not be read matches nothing


def _merged(parts: Sequence[str]) -> list[str]:
    """Parts in which no two stand side by side that cross folders: they mean what one of them means."""
    return [part for number, part in enumerate(parts) if part != ACROSS or number == 0 or parts[number - 1] != ACROSS]


@lru_cache(64)
def _compiled(part: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(part))
