"""The names of a job's records in a store; they sort as what they name does."""

from __future__ import annotations

from streamjoin.results.snapshot import SnapshotId


def snapshot_name(id: SnapshotId, generation: int = 0) -> str:
    """The name of a manifest; names sort as ids do."""
    return f"s/{id.epoch:020d}/{id.part + 1:010d}/{generation:08d}"


def batch_name(batch: int, generation: int = 0, part: int = 0) -> str:
    """The name of a batch's record of blocks that wait, or of a further part of it."""
    return f"b/{batch:014d}/{generation:08d}" + (f"/{part:06d}" if part else "")


def base_name(id: SnapshotId, generation: int) -> str:
    """The name of the manifest of a base, by the newest snapshot that it stands for."""
    return f"g/{id.epoch:020d}/{id.part + 1:010d}/{generation:08d}"


BASES = "g/", "g0"
"""The names of all bases lie between these two."""
LAST_GENERATION = 99_999_999
"""Names of any generation sort up to one of this number."""
