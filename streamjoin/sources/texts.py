"""The bytes of text files as UTF-8: other encodings are told by their byte order mark, archives by name or first bytes.

Archives are read from their beginning to their end and cannot be split. One that is damaged or cut off is an error that
names it, because the rows behind the damage would be lost.
"""

from __future__ import annotations

import codecs
import gzip
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from streamjoin.errors import RunError

TEXT_FORMATS = ("jsonl", "csv")
"""Formats whose files are texts: their records have no types of their own, and may be bad one by one."""

HEAD_BYTES = 1 << 20
"""So much of a text's beginning is looked at, for its names and types."""


class TextBytes(Protocol):
    """UTF-8 without a byte order mark."""

    def read(self, size: int, /) -> bytes:
        """At most about `size` bytes; none at the end only."""


_ARCHIVES = {".gz": ("gzip", b"\x1f\x8b"), ".zst": ("zstd", b"\x28\xb5\x2f\xfd")}
_OTHER_ARCHIVES = {
    b"BZh91AY&SY": "a bzip2 archive", b"\xfd7zXZ\0": "an xz archive", b"PK\x03\x04": "a zip archive",
    b"\x04\x22\x4d\x18": "an lz4 archive",
}  # fmt: skip
_ENCODINGS = {
    codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF32_LE: "utf-32-le", codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be",
}  # fmt: skip
"""By byte order mark; UTF-32's begins as UTF-16's does, so it comes first."""
_MARK_BYTES = max(map(len, _OTHER_ARCHIVES))
_POSTED = re.compile(r"rows_[0-9a-z]{26}\.jsonl")
"""Names of files of rows that were posted to the platform: UTF-8, whatever they begin with, so that nobody who may post
stops the jobs that read the stream."""


def archive_of(path: str | Path) -> str | None:
    """How a file is packed: gzip, zstd or None.

    Raises:
        RunError: it cannot be read, or is packed in another way.
    """
    try:
        with open(path, "rb") as file:
            begin = file.read(_MARK_BYTES)
    except OSError as cause:
        raise RunError(f"{path} cannot be read: {cause}") from None
    if _POSTED.fullmatch(Path(path).name):
        return None
    for mark, name in _OTHER_ARCHIVES.items():
        if begin.startswith(mark):
            raise RunError(f"{path} is {name}, which is not read; pack it with gzip or zstd, or not at all")
    for suffix, (name, mark) in _ARCHIVES.items():
        if begin.startswith(mark):
            return name
        if Path(path).suffix.lower() == suffix:
            if not begin:
                raise RunError(f"{path} is damaged: it is empty, and a {name} archive never is")
            return name
    return None


@contextmanager
def opened(path: str | Path) -> Iterator[TextBytes]:
    """A text file's bytes.

    Raises:
        RunError: also in the block: the file cannot be read, its archive is damaged or cut off, or it is not the text
            that its byte order mark says.
    """
    archive = archive_of(path)
    try:
        with _unpacked(path, archive) as file:
            begin = _first_bytes(file, _MARK_BYTES)
            mark = _mark_of(path, begin)
            if not mark and _is_utf16(begin) and not _POSTED.fullmatch(Path(path).name):
                raise RunError(f"{path} looks like UTF-16 without a byte order mark; write it as UTF-8, or with the "
                               "mark at its beginning")  # fmt: skip
            text: TextBytes = _Rest(begin[len(mark) :], file)
            yield text if _ENCODINGS.get(mark, "utf-8") == "utf-8" else _Decoded(text, _ENCODINGS[mark])
    except UnicodeDecodeError as cause:
        raise RunError(f"{path} is not the {cause.encoding.upper()} text that its byte order mark says: "
                       f"{cause.reason}") from None  # fmt: skip
    except (pa.ArrowInvalid, OSError, EOFError, zlib.error) as cause:
        what = "cannot be read" if archive is None else f"is damaged, or no {archive} archive"
        raise RunError(f"{path} {what}: {cause}") from None


def _unpacked(path: str | Path, archive: str | None) -> Any:
    if archive == "gzip":
        return gzip.open(path)  # which takes the zeros that tapes and blocks are filled up with for none of the archive
    return open(path, "rb") if archive is None else pa.CompressedInputStream(pa.OSFile(os.fsencode(path)), archive)


def head_of(path: str | Path, size: int) -> tuple[bytes, bool]:
    """About the first `size` bytes of a text, and whether there are more.

    Raises:
        RunError: see `opened`.
    """
    with opened(path) as text:
        head = _first_bytes(text, size)
        return head, bool(len(head) >= size and text.read(1))


def is_plain(path: str | Path) -> bool:
    """Whether a file's bytes are its text, so that one may begin to read it anywhere.

    Raises:
        RunError: it cannot be read.
    """
    if archive_of(path) is not None:
        return False
    with open(path, "rb") as file:
        mark = _mark_of(path, file.read(_MARK_BYTES))
    return _ENCODINGS.get(mark, "utf-8") == "utf-8"


def not_plain(begin: bytes) -> str | None:
    """What begins with these bytes, ten of them or all: an archive, or text in UTF-16 or 32; None for all others."""
    archives = {mark: f"a {name} archive" for name, mark in _ARCHIVES.values()} | _OTHER_ARCHIVES
    others = {mark: f"{encoding[:6].upper()} text" for mark, encoding in _ENCODINGS.items() if encoding != "utf-8"}
    for mark, what in (archives | others).items():
        if begin.startswith(mark):
            return what
    return "UTF-16 text" if _is_utf16(begin) else None


def _mark_of(path: str | Path, begin: bytes) -> bytes:
    """The byte order mark of a text, or nothing."""
    known = (codecs.BOM_UTF8,) if _POSTED.fullmatch(Path(path).name) else _ENCODINGS
    return next((mark for mark in known if begin.startswith(mark)), b"")


def _first_bytes(file: TextBytes, size: int) -> bytes:
    parts: list[bytes] = []
    while size > 0 and (part := file.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _is_utf16(begin: bytes) -> bool:
    """No JSON or CSV text in UTF-8 has every other byte 0."""
    even, odd = begin[0:4:2], begin[1:4:2]
    return len(begin) >= 4 and ((not any(even) and all(odd)) or (not any(odd) and all(even)))


class _Rest:
    """A file from which the first bytes were read already."""

    def __init__(self, begin: bytes, file: TextBytes) -> None:
        self._begin = begin
        self._file = file

    def read(self, size: int, /) -> bytes:
        if not self._begin:
            return self._file.read(size)
        part, self._begin = self._begin[:size], self._begin[size:]
        return part + self._file.read(size - len(part)) if len(part) < size else part


class _Decoded:
    """Text of another encoding as UTF-8."""

    def __init__(self, file: TextBytes, encoding: str) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder(encoding)()

    def read(self, size: int, /) -> bytes:
        while part := self._file.read(size):
            if text := self._decoder.decode(part):
                return text.encode()
        return self._decoder.decode(b"", final=True).encode()
