"""Folders that a start makes, for those who ask before it whether they can be made.

Permissions do not tell: root may write anywhere, and yet nobody makes a folder in /proc.
"""

from __future__ import annotations

import os
from pathlib import Path

from streamjoin.errors import InputError
from streamjoin.results.stores.registry import STORES
from streamjoin.spec.joinfile import JoinFile
from streamjoin.spec.prepare import Bound


def check_can_be_made(bound: Bound) -> None:
    """Refuse folders for the checkpoint and for results that cannot be made.

    One with a hidden name is made where each would be, and removed at once.

    Raises:
        InputError: what cannot be made.
    """
    _check_made(bound.file.checkpoint, "run.checkpoint")
    for one in bound.single or (bound,):
        section = f"queries.{one.name}.results" if bound.single else "results"
        for field, folder in _folders(one.file):
            _check_made(folder, f"{section}.{field}")


def _folders(file: JoinFile) -> list[tuple[str, Path]]:
    results = file.results
    if results.parquet is not None:
        return [("parquet", file.resolve(results.parquet))]
    if results.store is not None:
        kept = STORES[results.store].files(results)
        return [(field, file.resolve(path).parent) for field, path in kept.items()]
    return [] if results.jsonl in (None, "-") else [("jsonl", file.resolve(results.jsonl).parent)]


def _check_made(folder: Path, field: str) -> None:
    above = next(path for path in (folder, *folder.parents) if path.exists())
    trial = above / f".streamjoin-{os.getpid()}"
    try:
        trial.mkdir()
        trial.rmdir()
    except OSError as cause:
        what = "cannot be written to" if above == folder else "cannot be made"
        raise InputError(f"{folder} {what}: {cause.strerror}", field=field) from None
