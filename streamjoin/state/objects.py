"""Objects in a place that PyArrow's file systems open: whole ones are put and got, by names that are computed.

An object never changes once it is put, but for one that says who the owner is, so a put that is repeated is harmless.
Whatever may pass by itself is tried again for a while: a store that is busy, a connection that was cut, an answer that
did not come though the store did what it was asked.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from streamjoin.errors import InputError, StateError
from streamjoin.state.uris import BEGINS, check_uri, without_secrets

if TYPE_CHECKING:
    from pyarrow import fs

Done = TypeVar("Done")
RETRY_S = 60.0
"""How long a store may be down before the job fails, unless a join file says otherwise."""
LITTER_RETRY_S = 2.0
"""How long a call is retried for work that may as well be left undone."""
_PAUSE_S, _PAUSE_MAX_S = 0.05, 5.0
_AT_ONCE = 32
_PART_BYTES = 8 << 20
"""An object that is longer is read in parts, side by side: a connection has its own limit."""
_TOO_NEW = (
    "the store does not know what newer clients ask it for; set AWS_REQUEST_CHECKSUM_CALCULATION and "
    "AWS_RESPONSE_CHECKSUM_VALIDATION to when_required in the environment"
)
_REFUSED = {
    "NO_SUCH_BUCKET": "there is no such bucket",
    "Bucket does not exist": "there is no such bucket",
    "ACCESS_DENIED": "the store does not permit it",
    "INVALID_ACCESS_KEY_ID": "the store does not know the access key",
    "SIGNATURE_DOES_NOT_MATCH": "the store does not take the secret key",
    "INVALID_SIGNATURE": "the store does not take the secret key",
    "HTTP status 401": "the store does not permit it",
    "HTTP status 403": "the store does not permit it",
    "NotImplemented": _TOO_NEW,
    "XAmzContentSHA256Mismatch": _TOO_NEW,  # it takes a trailer with a checksum for content
    "Permission denied": "the store does not permit it",
}
"""What is in the text of a failure that does not pass by itself, and what it means."""


class Refused(StateError):
    """The store will not do it, however often it is asked."""


@dataclass(slots=True)
class Traffic:
    """What went to a store and came from it.

    Args:
        served: openings of segments that the cache of this machine had.
        fetched: segments that it had not.
        fetched_bytes: of these and of manifests.
        retries: how often something was asked again, because the store failed or what it gave was damaged.
    """

    served: int = 0
    fetched: int = 0
    fetched_bytes: int = 0
    put: int = 0
    put_bytes: int = 0
    retries: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def count(self, **more: int) -> None:
        """Count, from any thread."""
        with self._lock:
            for name, value in more.items():
                setattr(self, name, getattr(self, name) + value)

    def taken(self) -> dict[str, int]:
        """What was counted since the last call."""
        with self._lock:
            found = {one.name: getattr(self, one.name) for one in fields(self) if not one.name.startswith("_")}
            for name in found:
                setattr(self, name, 0)
        return found


def opened(uri: str) -> tuple[fs.FileSystem, str]:
    """The file system of a URI, and the path in it.

    Raises:
        InputError: there is none, or it may not be one for states.
    """
    check_uri(uri)
    from pyarrow import fs  # a part of a second, for those that need it

    try:
        filesystem, path = fs.FileSystem.from_uri(uri)
    except (ValueError, OSError, ImportError, TypeError) as wrong:
        raise InputError(
            f"{without_secrets(uri)} cannot be opened: {_line(wrong)}; {BEGINS}", field="run.state"
        ) from None
    if isinstance(filesystem, fs.S3FileSystem):
        # A small object is one call, and not three.
        rebuild, (options,) = filesystem.__reduce__()
        filesystem = rebuild({**options, "allow_delayed_open": True})
    return filesystem, path


class Objects:
    """The objects below one place; all calls may come from any thread.

    Args:
        place: how messages call it.
        retry_s: for how long something is tried again.
    """

    def __init__(self, filesystem: fs.FileSystem, path: str, place: str, retry_s: float = RETRY_S) -> None:
        self.filesystem = filesystem
        self.path = path.rstrip("/")
        self.place = place
        self.retry_s = retry_s
        self.traffic = Traffic()
        self._pool = ThreadPoolExecutor(_AT_ONCE, "objects")
        self._parts = ThreadPoolExecutor(_AT_ONCE, "parts")
        self._litter = ThreadPoolExecutor(_AT_ONCE, "litter")

    def submit(self, work: Callable[[], Done]) -> Future[Done]:
        """Do something beside; it must not wait for other work that was submitted."""
        return self._pool.submit(work)

    def put(self, name: str, content: bytes | pa.Buffer, look: Callable[[], None] = lambda: None) -> None:
        """Put an object; a reader finds all of it or nothing.

        Args:
            look: done just before each try, of which the last may come long after the first; it may raise.
        Raises:
            StateError: the store did not take it in time, or will not.
        """
        size = content.size if isinstance(content, pa.Buffer) else len(content)

        def once() -> None:
            look()
            try:
                self._write(name, content)
            except FileNotFoundError:  # a file system with folders
                self.filesystem.create_dir(self._path(name).rpartition("/")[0], recursive=True)
                self._write(name, content)

        self._patiently(f"put {name}", once)
        self.traffic.count(put=1, put_bytes=size)

    def _write(self, name: str, content: bytes | pa.Buffer) -> None:
        stream = self.filesystem.open_output_stream(self._path(name))
        try:
            stream.write(content)
        finally:
            stream.close()

    def get(self, name: str, size: int | None = None) -> pa.Buffer | None:
        """An object; None where there is none.

        Args:
            size: how long it should be, where that is known; a long one is read in parts.
        Raises:
            StateError: the store did not give it in time, or will not.
        """

        def once() -> pa.Buffer | None:
            try:
                if size is not None and size > _PART_BYTES:
                    return self._in_parts(name, size)
                with self.filesystem.open_input_stream(self._path(name)) as stream:
                    return stream.read_buffer()
            except FileNotFoundError:
                return None

        return self._patiently(f"get {name}", once)

    def _in_parts(self, name: str, size: int) -> pa.Buffer:
        def part(start: int) -> bytes:
            with self.filesystem.open_input_file(self._path(name)) as file:
                return file.read_at(min(_PART_BYTES, size - start), start)

        whole = b"".join(self._parts.map(part, range(0, size, _PART_BYTES)))
        return pa.py_buffer(whole)

    def hasty(self) -> Objects:
        """The same objects with little patience, for work that may as well be left undone."""
        found = copy.copy(self)
        found.retry_s = min(self.retry_s, LITTER_RETRY_S)
        return found

    def some_at_once(self, work: Callable[[str], Done], names: Iterable[str]) -> list[Done]:
        """What `work` returns for each name; a few names are worked on side by side.

        Never starts more than runs at once, because a process that exits waits for everything that was started.

        Raises:
            StateError: one failed, or the process is exiting; the names after it are not worked on.
        """
        left, found = iter(names), []
        while some := list(islice(left, _AT_ONCE)):
            try:
                begun = [self._litter.submit(work, name) for name in some]
            except RuntimeError:
                raise StateError(f"{self.place} is left as it is: the process ends") from None
            found += [one.result() for one in begun]
        return found

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects, a few at a time. It is not an error if one is already gone.

        An object that the store refuses to remove stays as litter. If the store fails, all the rest stays too.
        """
        hasty = self.hasty()

        def once(name: str) -> None:
            with contextlib.suppress(Refused):
                hasty._remove(name)

        with contextlib.suppress(StateError):
            self.some_at_once(once, names)

    def remove_all(self) -> None:
        """Remove everything at the place, object by object: not every store removes many at once.

        Marks of empty folders, which a file system needs and a store does not, may stay.

        Raises:
            StateError: the store does not answer, or refuses.
        """

        self.some_at_once(self._remove, self.listed(""))
        with contextlib.suppress(OSError, pa.ArrowException):
            self.filesystem.delete_dir(self.path)

    def _remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._patiently(f"remove {name}", lambda: self.filesystem.delete_file(self._path(name)))

    def listed(self, folder: str) -> Iterator[str]:
        """Names below a folder, of those that the store lists just now; only what is to go is looked for like this."""
        from pyarrow import fs

        selector = fs.FileSelector(self._path(folder), allow_not_found=True, recursive=True)
        found: Sequence[fs.FileInfo] = self._patiently(
            f"list {folder}", lambda: self.filesystem.get_file_info(selector)
        )
        for info in found:
            if info.type == fs.FileType.File:
                yield info.path.removeprefix(self.path).lstrip("/")

    def _path(self, name: str) -> str:
        return f"{self.path}/{name}".rstrip("/")

    def _patiently(self, what: str, once: Callable[[], Done]) -> Done:
        until, pause_s = time.monotonic() + self.retry_s, _PAUSE_S
        while True:
            try:
                return once()
            except FileNotFoundError as missing:
                if meaning := _refusal(missing):
                    raise Refused(f"{self.place}: {meaning} ({what})") from None
                raise
            except (OSError, pa.ArrowException) as failure:
                if meaning := _refusal(failure):
                    raise Refused(f"{self.place}: {meaning} ({what})") from None
                if time.monotonic() + pause_s > until:
                    raise StateError(
                        f"{self.place} has failed for {self.retry_s:g} s, and the job stops ({what}: "
                        f"{_line(failure)}); start it again once the store answers, and it goes on where it stopped"
                    ) from None
            self.traffic.count(retries=1)
            time.sleep(pause_s * random.uniform(0.5, 1.0))
            pause_s = min(2 * pause_s, _PAUSE_MAX_S)


def _refusal(failure: Exception) -> str | None:
    if isinstance(failure, PermissionError):
        return "the store does not permit it"
    return next((meaning for text, meaning in _REFUSED.items() if text in str(failure)), None)


def _line(failure: BaseException) -> str:
    return " ".join(str(failure).split())[:200]


def checksum(content: bytes | pa.Buffer) -> str:
    """Of what is in a segment or a manifest, by which damage shows."""
    return hashlib.sha256(content).hexdigest()


def sealed(content: bytes) -> bytes:
    """A small object that says of itself whether it is whole."""
    return f"{checksum(content)} {len(content)}\n".encode() + content


def unsealed(found: bytes) -> bytes | None:
    """What was sealed; None where it is damaged."""
    _, _, content = found.partition(b"\n")
    return content if found == sealed(content) else None


def get_sealed(objects: Objects, name: str) -> bytes | None:
    """A small object; None where there is none. One that comes damaged is asked for once more.

    Raises:
        StateError: it is damaged in the store too.
    """
    for again in (True, False):
        found = objects.get(name)
        if found is None:
            return None
        if (content := unsealed(found.to_pybytes())) is not None:
            return content
        objects.traffic.count(retries=int(again))
    raise StateError(
        f"{objects.place}/{name} is damaged; restore it from a copy, or start the job anew with another run.checkpoint "
        "and run.state"
    )


def number_of(part: str) -> int:
    """The number at the start of a generation's name or a batch's file name; above all of ours for any other name."""
    digits = part.partition("-")[0].removeprefix("g")
    return int(digits) if digits.isdecimal() else 1 << 62
