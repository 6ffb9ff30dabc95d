"""Segments as files: Arrow IPC files of one batch, mapped into memory, so that processes of a machine share pages."""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from streamjoin.errors import StateError


def write_rows(path: Path, rows: pa.RecordBatch) -> None:
    """Write rows; they are durable once the file and its folder are synced."""
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_batch(rows)


def mapped_rows(path: Path) -> pa.RecordBatch:
    """The rows of a file, without copying."""
    return pa.ipc.open_file(pa.memory_map(str(path), "r")).get_batch(0)


class MappedFile:
    """A file of rows, mapped, whose pages the kernel reads as they are going to be looked at.

    A page that is not in memory comes with those around it, 128 KiB, page by page. Where nearly all of a file is going
    to be looked at, it comes in pieces of some MiB: twice as fast, where the kernel has to take other pages out of
    memory for them (`python -m benchmarks.lookup --cgroup`).
    """

    def __init__(self, path: Path) -> None:
        with open(path, "rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._in_large_pieces = False
        self.rows = pa.ipc.open_file(pa.BufferReader(pa.py_buffer(self._map))).get_batch(0)

    def expect(self, places: int) -> None:
        """So many places of the file, spread over it, are looked at next.

        Cost: a call of the system where these become many, or few again.
        """
        much = places >= len(self._map) / _A_PLACE_BYTES
        if much != self._in_large_pieces:
            self._in_large_pieces = much
            advice = getattr(mmap, "MADV_HUGEPAGE" if much else "MADV_NOHUGEPAGE", None)  # Linux has them
            if advice is not None:
                with contextlib.suppress(OSError):  # a kernel without large pages
                    self._map.madvise(advice)


_A_PLACE_BYTES = 1 << 16
"""With a place in every 64 KiB, six of seven pieces of 128 KiB have one."""


def mapped_segment(path: Path, rows: int, described_by: str) -> pa.RecordBatch:
    """The rows of a segment, without copying.

    Args:
        rows: how many there must be, as `described_by` says.
    Raises:
        StateError: the file is missing, shorter than written, or unreadable.
    """
    with _named(path):
        batch = mapped_rows(path)
    return _whole(batch, path, rows, described_by)


def mapped_file(path: Path, rows: int, described_by: str) -> MappedFile:
    """The same, with how its pages are read.

    Raises:
        StateError: as `mapped_segment`.
    """
    with _named(path):
        file = MappedFile(path)
    _whole(file.rows, path, rows, described_by)
    return file


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """What is wrong with the file is said of it."""
    try:
        yield
    except FileNotFoundError:
        raise StateError(f"segment {path} is lost; without it results would be missing, so the job stops") from None
    except (pa.ArrowInvalid, OSError, ValueError) as damage:  # an empty file cannot be mapped
        raise StateError(f"segment {path} is damaged: {damage}") from None


def _whole(batch: pa.RecordBatch, path: Path, rows: int, described_by: str) -> pa.RecordBatch:
    if batch.num_rows != rows:
        raise StateError(f"segment {path} holds {batch.num_rows} rows where its {described_by} says {rows}")
    return batch
