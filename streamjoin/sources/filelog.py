"""The log of a file source: which files there are, in the order they will be read.

A folder is listed again for every batch; files it did not have before are appended to the log in name order. An offset
is a number of lines of the log, so a replay reads the same files, whatever the folder looks like by then.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from streamjoin.errors import InputError, RunError


@dataclass(frozen=True, slots=True)
class LoggedFile:
    """A file as it was when it was first seen."""

    number: int
    path: str
    bytes: int


class FileLog:
    """The log of one stream, kept in a file.

    Args:
        folder: a folder, or one file.
        log: where the log is kept.
    """

    def __init__(self, folder: Path, log: Path) -> None:
        self.folder = folder
        self.log = log
        self.files = self._load()

    def _load(self) -> list[LoggedFile]:
        """The logged files.

        Raises:
            RunError: the log is damaged.
        """
        if not self.log.exists():
            return []
        text = self.log.read_bytes()
        whole, _, torn = text.rpartition(b"\n")
        if torn:  # a crash while appending: no offset can name a line that was not finished
            with open(self.log, "rb+") as file:
                file.truncate(len(text) - len(torn))
        return [self._entry(number, line) for number, line in enumerate(whole.split(b"\n") if whole else [])]

    def _entry(self, number: int, line: bytes) -> LoggedFile:
        try:
            path, size = json.loads(line)
            if isinstance(path, str) and isinstance(size, int):
                return LoggedFile(number, path, size)
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
        known = {file.path for file in self.files}
        new = [path for path in list_files(self.folder) if str(path) not in known]
        if not new:
            return
        added: list[LoggedFile] = []
        for path in new:
            with contextlib.suppress(FileNotFoundError):  # gone since it was listed
                added.append(LoggedFile(len(self.files) + len(added), str(path), path.stat().st_size))
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with open(self.log, "a", encoding="utf-8") as file:
            file.writelines(json.dumps([entry.path, entry.bytes]) + "\n" for entry in added)
            file.flush()
            os.fsync(file.fileno())
        self.files += added

    def between(self, start: int, stop: int) -> list[LoggedFile]:
        """Files number start..stop-1.

        Raises:
            RunError: one of them is gone or was changed since it was logged, so the batch cannot be repeated.
        """
        chosen = self.files[start:stop]
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


def list_files(folder: Path) -> list[Path]:
    """The files of a folder in name order, or the one file; names that begin with . or _ are not finished yet.

    Folders in the folder are not looked into.

    Raises:
        InputError: there is no such file or folder, it is neither, or it may not be read.
    """
    try:
        mode = folder.stat().st_mode
        if stat.S_ISDIR(mode):
            return sorted(path for path in folder.iterdir() if path.name[0] not in "._" and path.is_file())
    except FileNotFoundError:
        hint = "; name a file or a folder, patterns are not expanded" if set("*?[") & set(folder.name) else ""
        raise InputError(f"{folder} does not exist{hint}") from None
    except (OSError, ValueError) as cause:
        raise InputError(f"{str(folder)[:200]} cannot be read: {getattr(cause, 'strerror', None) or cause}") from None
    if stat.S_ISREG(mode):
        return [folder]
    raise InputError(f"{folder} is neither a file nor a folder")
