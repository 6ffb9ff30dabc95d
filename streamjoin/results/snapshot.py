"""Snapshots: immutable sets of result blocks that became visible in one step."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from streamjoin.errors import InputError, StateError
from streamjoin.results.block import BlockRef, encode, refs_from_batch, refs_to_batch

_META = b"streamjoin"


@dataclass(frozen=True, slots=True, order=True)
class SnapshotId:
    """What orders the snapshots of a job: the epoch that committed it, and its place among those of one epoch."""

    epoch: int
    part: int

    def __str__(self) -> str:
        return f"{self.epoch}.{self.part}"

    @staticmethod
    def parse(text: str) -> SnapshotId:
        """The inverse of str().

        Raises:
            InputError: it is not a snapshot id.
        """
        if text.strip() == str(FIRST):
            return FIRST
        epoch, dot, part = text.strip().partition(".")
        if dot and epoch.isascii() and part.isascii() and epoch.isdigit() and part.isdigit() and len(text) <= 40:
            return SnapshotId(int(epoch), int(part))
        raise InputError(f'"{text[:40]}" is not a snapshot id; ids are two numbers with a dot, such as 41.0')


def is_id(text: str) -> bool:
    """Whether a text is written as a snapshot id is, and not as a time."""
    epoch, dot, part = text.strip().partition(".")
    return bool(dot) and epoch.isdigit() and part.isdigit()


FIRST = SnapshotId(0, -1)
"""Before every snapshot."""


@dataclass(frozen=True, slots=True, order=True)
class BaseId:
    """Names a base: the newest snapshot that it stands for, and the generation that wrote it."""

    upto: SnapshotId
    generation: int

    def to_json(self) -> list[int]:
        """Numbers; `from_json` reads them back."""
        return [self.upto.epoch, self.upto.part, self.generation]

    @staticmethod
    def from_json(value: list[int] | None) -> BaseId | None:
        """The inverse of `to_json`; None of None."""
        return None if value is None else BaseId(SnapshotId(value[0], value[1]), value[2])


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A committed snapshot.

    Args:
        rows, size: rows, and bytes in the store.
        hash_sum: the sum of all rows' hashes, modulo 2**64.
        time_min_us, time_max_us: of its rows' times; None when it has no rows.
        marks_us: how far each stream had come at its commit; None for one that had not begun.
        closed_us: the logged start of the batch that closed it.
        batches: first and last batch whose results may be in it.
        shed: tuples that load shedding dropped while it was collected: since the last batch that closed a snapshot.
        base: of groups that change, the newest base that there was; None before the first.
    """

    id: SnapshotId
    generation: int
    rows: int
    size: int
    hash_sum: int
    time_min_us: int | None
    time_max_us: int | None
    marks_us: tuple[int | None, ...]
    closed_us: int
    batches: tuple[int, int]
    blocks: tuple[BlockRef, ...]
    shed: int = 0
    base: BaseId | None = None

    @staticmethod
    def of(
        id: SnapshotId,
        generation: int,
        blocks: Sequence[BlockRef],
        marks_us: tuple[int | None, ...],
        closed_us: int,
        batches: tuple[int, int],
        shed: int = 0,
        base: BaseId | None = None,
    ) -> Snapshot:
        """A snapshot of these blocks."""
        return Snapshot(
            id,
            generation,
            sum(block.rows for block in blocks),
            sum(block.size for block in blocks),
            sum(block.hash_sum for block in blocks) % 2**64,
            min((block.time_min_us for block in blocks), default=None),
            max((block.time_max_us for block in blocks), default=None),
            marks_us,
            closed_us,
            batches,
            tuple(blocks),
            shed,
            base,
        )

    def summary(self) -> dict[str, Any]:
        """What people and clients see of it: JSON."""
        return {
            "id": str(self.id), "rows": self.rows, "bytes": self.size, "hash": f"{self.hash_sum:016x}",
            "time_min_us": self.time_min_us, "time_max_us": self.time_max_us, "marks_us": list(self.marks_us),
            "closed_us": self.closed_us, "batches": list(self.batches), "blocks": len(self.blocks),
            "shed": self.shed,
        }  # fmt: skip

    def to_bytes(self) -> bytes:
        """The manifest: its blocks as an Arrow IPC stream, the rest as the schema's metadata."""
        meta = {**self.summary(), "generation": self.generation, "epoch": self.id.epoch, "part": self.id.part}
        if self.base is not None:
            meta["base"] = self.base.to_json()
        return with_meta(refs_to_batch(self.blocks), meta)

    @staticmethod
    def from_bytes(content: bytes) -> Snapshot:
        """The inverse of `to_bytes`.

        Raises:
            StateError: it is damaged.
        """
        refs, meta = read_meta(content)
        try:
            found = Snapshot.of(
                SnapshotId(meta["epoch"], meta["part"]), meta["generation"], refs_from_batch(refs),
                tuple(meta["marks_us"]), meta["closed_us"], (meta["batches"][0], meta["batches"][1]),
                meta.get("shed", 0),  # a snapshot from before there was load shedding says nothing of it
                BaseId.from_json(meta.get("base")),
            )  # fmt: skip
            whole = found.rows == meta["rows"] and f"{found.hash_sum:016x}" == meta["hash"]
        except (KeyError, IndexError, TypeError, ValueError) as cause:
            raise StateError(f"a manifest of the result store is damaged: {cause}") from None
        if not whole:
            raise StateError(f"the manifest of snapshot {found.id} is damaged: its blocks do not add up")
        return found


def with_meta(batch: pa.RecordBatch, meta: dict[str, Any]) -> bytes:
    """A record batch with a JSON text beside it."""
    return encode(batch.replace_schema_metadata({_META: json.dumps(meta)}), "zstd")


def read_meta(content: bytes) -> tuple[pa.RecordBatch, dict[str, Any]]:
    """The inverse of `with_meta`.

    Raises:
        StateError: it is damaged.
    """
    try:
        reader = pa.ipc.open_stream(content)
        return reader.read_next_batch(), json.loads(reader.schema.metadata[_META])
    except (pa.ArrowException, OSError, StopIteration, KeyError, TypeError, ValueError) as cause:
        raise StateError(f"a record of the result store cannot be read: {cause}") from None
