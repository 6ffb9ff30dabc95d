"""Segments as files: Arrow IPC files of one batch, mapped into memory, so that processes of a machine share pages."""

from __future__ import annotations

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


def mapped_segment(path: Path, rows: int, described_by: str) -> pa.RecordBatch:
    """The rows of a segment, without copying.

    Args:
        rows: how many there must be, as `described_by` says.
    Raises:
        StateError: the file is missing, shorter than written, or unreadable.
    """
    try:
        batch = mapped_rows(path)
    except FileNotFoundError:
        raise StateError(f"segment {path} is lost; without it results would be missing, so the job stops") from None
    except (pa.ArrowInvalid, OSError) as damage:
        raise StateError(f"segment {path} is damaged: {damage}") from None
    if batch.num_rows != rows:
        raise StateError(f"segment {path} holds {batch.num_rows} rows where its {described_by} says {rows}")
    return batch
