"""What a process and those that it starts do to a folder, by strace, and the same on a `Disk`."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import pytest

from .disk import Disk, File, Folder

CALLS = (
    "open,openat,creat,write,pwrite64,writev,lseek,ftruncate,truncate,rename,renameat,renameat2,unlink,unlinkat,mkdir,"
    "mkdirat,rmdir,fsync,fdatasync,link,linkat,symlink,symlinkat,fallocate,copy_file_range,sendfile"
)
BYTES_MAX = 64 << 20
"""Of one write."""
SYNCS = ("fsync", "fdatasync")
_LINE = re.compile(r"(\d+) +(?:<\.\.\. (\w+) resumed>(.*)|(\w+)\((.*))$")
_DONE = re.compile(r"(.*)\) += (\d+)(?:<((?:\\x..)*)>)?(?:\(deleted\))?(?: \(flags.*\))?$")
_OPENED = re.compile(r"(\d+|AT_FDCWD)<((?:\\x..)*)>(\(deleted\))?")
_TEXT = re.compile(r'"((?:\\x..)*)"')


@dataclass(frozen=True)
class Call:
    """A system call that succeeded.

    Args:
        arguments: as strace writes them.
        result: what it gave back.
        opened: the path of the descriptor that it gave back.
    """

    name: str
    arguments: str
    result: int
    opened: str

    @property
    def descriptor(self) -> tuple[int, str] | None:
        """The descriptor that it is about, and its path; None where the file has no name any more."""
        match = _OPENED.match(self.arguments)
        return (int(match[1]), _text(match[2])) if match and match[1].isdigit() and not match[3] else None

    @property
    def texts(self) -> list[bytes]:
        """The texts among its arguments."""
        return [_bytes(found) for found in _TEXT.findall(self.arguments)]

    def paths(self) -> list[str]:
        """The paths among its arguments; those that are relative are so to the descriptor before them."""
        found = []
        for match in re.finditer(r'(?:(?:\d+|AT_FDCWD)<((?:\\x..)*)>, )?"((?:\\x..)*)"', self.arguments):
            found.append(str(PurePosixPath(_text(match[1] or "")) / _text(match[2])))
        return found

    def numbers(self) -> list[int]:
        """The numbers after the last text or descriptor."""
        return [int(word) for word in re.findall(r", (-?\d+)", self.arguments.rpartition('"')[2])]


def needs_strace() -> None:
    """Skip the test where writes cannot be recorded."""
    if shutil.which("strace") is None or subprocess.run(["strace", "-f", "true"], capture_output=True).returncode:
        pytest.skip("strace is not installed, or may not be used here")


def record(command: Sequence[str], trace: Path, environment: Mapping[str, str], timeout_s: float) -> None:
    """Run a command to its end, with all that it starts."""
    strace = ["strace", "-f", "--seccomp-bpf", "-q", "-y", "-xx", "-s", str(BYTES_MAX), "-e", f"trace={CALLS}"]
    done = subprocess.run(
        [*strace, "-o", str(trace), *command], env=dict(environment), capture_output=True, text=True, timeout=timeout_s
    )
    assert done.returncode == 0, done.stderr[-4000:]


def calls(trace: Path) -> Iterator[Call]:
    """The calls that succeeded, in the order in which they ended."""
    begun: dict[str, tuple[str, str]] = {}
    with trace.open() as lines:
        for line in lines:
            match = _LINE.match(line.rstrip("\n"))
            if match is None:
                continue  # a signal, or the end of a process
            thread, resumed, rest, name, text = match.groups()
            if resumed:
                name, text = begun.pop(thread)
                text += rest
            elif text.endswith(" <unfinished ...>"):
                begun[thread] = name, text.removesuffix(" <unfinished ...>")
                continue
            if done := _DONE.match(text):
                yield Call(name, done[1], int(done[2]), _text(done[3] or ""))


@dataclass
class Replay:
    """Does recorded calls again on a disk.

    Args:
        root: the folder that they were about; calls about others are passed over.
        unsynced: of files and folders, relative to it, whose syncs do nothing.
    """

    root: Path
    unsynced: Callable[[PurePosixPath], bool] = lambda path: False
    disk: Disk = field(default_factory=Disk)
    _places: dict[tuple[int, int], int | None] = field(default_factory=dict)

    def changes(self, trace: Path) -> Iterator[Call]:
        """Gives each call that changed the folder, or synced something in it, after it was done on the disk."""
        for call in calls(trace):
            if self._apply(call):
                yield call

    def _apply(self, call: Call) -> bool:
        name = call.name.removesuffix("at2").removesuffix("at")
        if call.opened:
            path = self._inside(call.opened)
            return path is not None and self._opened(call, path)
        if name in ("rename", "mkdir", "unlink", "rmdir", "truncate", "link", "symlink"):
            return self._named(name, call)
        if call.descriptor is None or (path := self._inside(call.descriptor[1])) is None:
            return False
        if call.name in SYNCS:
            if not self.unsynced(path):
                self.disk.sync(path)
            return True
        found = self.disk.find(path)
        if not isinstance(found, File):
            return False
        return self._written(call, found, (id(found), call.descriptor[0]))

    def _opened(self, call: Call, path: PurePosixPath) -> bool:
        found = self.disk.find(path)
        is_new = found is None
        if is_new:
            if "O_CREAT" not in call.arguments:
                return False  # gone by now
            found = File()
            self.disk.create(path, found)
        if not isinstance(found, File):
            return False
        self._places[id(found), call.result] = None if "O_APPEND" in call.arguments else 0
        if "O_TRUNC" in call.arguments and found.data:
            del found.data[:]
            return True
        return is_new

    def _named(self, name: str, call: Call) -> bool:
        paths = [self._inside(path) for path in call.paths()]
        if paths[-1] is None or not paths[-1].parts:  # the folder itself is there and lasts
            return False
        if name == "mkdir":
            self.disk.create(paths[0], Folder())
        elif name in ("unlink", "rmdir"):
            self.disk.remove(paths[0])
        elif name == "rename" and paths[0] is not None:
            self.disk.rename(paths[0], paths[1])
        else:
            raise NotImplementedError(call)
        return True

    def _written(self, call: Call, file: File, place: tuple[int, int]) -> bool:
        if call.name == "lseek":
            if self._places.get(place, 0) is not None:
                self._places[place] = call.result
            return False
        if call.name == "ftruncate":
            (size,) = call.numbers() or [int(call.arguments.rpartition(", ")[2])]
            del file.data[size:]
            file.data.extend(bytes(size - len(file.data)))
            return True
        if call.name == "fallocate":
            raise NotImplementedError(call)
        content = b"".join(call.texts)[: call.result]
        if call.name == "pwrite64":
            begin = call.numbers()[-1]
        else:
            known = self._places.get(place, 0)
            begin = len(file.data) if known is None else known
            if known is not None:
                self._places[place] = begin + len(content)
        file.data.extend(bytes(max(begin - len(file.data), 0)))
        file.data[begin : begin + len(content)] = content
        return True

    def _inside(self, path: str) -> PurePosixPath | None:
        found = PurePosixPath(path)
        return found.relative_to(self.root) if found.is_relative_to(self.root) else None


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def _text(text: str) -> str:
    return _bytes(text).decode("utf-8", "surrogateescape")
