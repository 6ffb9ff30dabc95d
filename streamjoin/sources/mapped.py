"""Files as PyArrow opens them: by the bytes of their names, which need not be UTF-8."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def mapped(path: str | Path) -> pa.MemoryMappedFile:
    """A file, to be read.

    Raises:
        OSError: it cannot be read.
    """
    return pa.memory_map(os.fsencode(path), "r")


def parquet_footer(path: str | Path) -> pq.FileMetaData:
    """The footer of a Parquet file.

    Raises:
        OSError, ArrowInvalid: it cannot be read, or is no such file.
    """
    with mapped(path) as file:
        return pq.read_metadata(file)
