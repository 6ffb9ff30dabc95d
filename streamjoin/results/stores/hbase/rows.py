"""Rows of HBase: their keys, which sort as what they hold, their one cell, and how many go into a request."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from streamjoin.results.stores.store import BlockKey

FAMILY = b"d"
COLUMN = b"d:v"
REQUEST_BYTES = 4 << 20
ROWS_A_REQUEST = 256
ROWS_FIRST = 16

_KEY = struct.Struct(">Q5q")
_SIGN = 1 << 63  # turned over, negative numbers sort before the others as bytes do


def block_row(job: str, key: BlockKey) -> bytes:
    return job.encode() + b"\0" + _KEY.pack(
        key.lowest + _SIGN, key.bucket, key.generation, key.batch, key.unit, key.number
    )  # fmt: skip


def block_key(row: bytes) -> BlockKey:
    lowest, bucket, generation, batch, unit, number = _KEY.unpack(row[-_KEY.size :])
    return BlockKey(bucket, lowest - _SIGN, generation, batch, unit, number)


def record_row(job: str, name: str) -> bytes:
    return f"{job}\0{name}".encode("ascii")


def all_of(job: str) -> tuple[bytes, bytes]:
    """Where the rows of a job start and stop."""
    return job.encode() + b"\0", job.encode() + b"\x01"


def after(row: bytes) -> bytes:
    """The next row there could be."""
    return row + b"\0"


def contents(answer: Sequence[Any]) -> list[tuple[bytes, bytes]]:
    return [(found.row, found.columns[COLUMN].value) for found in answer if COLUMN in found.columns]


class Pace:
    """How many rows to ask for next, so that an answer has about `REQUEST_BYTES`."""

    def __init__(self) -> None:
        self.rows = ROWS_FIRST

    def note(self, found: Sequence[tuple[bytes, bytes]]) -> None:
        """What the last answer was."""
        size = sum(len(content) for _, content in found)
        fitting = REQUEST_BYTES * len(found) // max(size, 1)
        self.rows = min(max(fitting, 1), self.rows * 2, ROWS_A_REQUEST)
