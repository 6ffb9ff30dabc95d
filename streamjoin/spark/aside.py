"""Rows that tasks put aside, on their way to the driver: in the checkpoint, or beside a state that is in a store."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from concurrent.futures import wait
from functools import partial
from pathlib import Path

from streamjoin.intake import rejected
from streamjoin.intake.deadletter import DeadLetter, write_dead_letters
from streamjoin.spec.job import Job
from streamjoin.state.generation import ASIDE
from streamjoin.state.objects import Objects, get_sealed, sealed
from streamjoin.state.root import ObjectRoot


def put_aside(job: Job, batch: int, piece: str, letters: Sequence[DeadLetter], now_us: int) -> None:
    """Keep the rows of a piece that cannot be joined until the driver takes them; done again, it is the same.

    Raises:
        StateError: the store does not take them.
    """
    path = rejected.file_of(job.dead_letters, batch, piece)
    if not isinstance(job.state, ObjectRoot):
        write_dead_letters(path, letters, batch, now_us)
        return
    with tempfile.TemporaryDirectory(prefix="streamjoin-aside-") as folder:
        made = Path(folder) / path.name
        write_dead_letters(made, letters, batch, now_us)
        job.state.opened()[0].put(f"{ASIDE}/{path.name}", sealed(made.read_bytes()))


def take_aside(job: Job, batch: int, counts: rejected.Counts, taken: Sequence[rejected.Taken]) -> None:
    """Count the missing rows of a batch that is done, and keep those that its tasks put aside.

    Raises:
        StateError: what a task put aside is gone.
    """
    if not isinstance(job.state, ObjectRoot):
        rejected.add(job.dead_letters, batch, counts, taken, sync=job.sync)
        return
    objects = job.state.opened()[0]
    wait(fetched := [objects.submit(partial(_fetched, objects, piece.file)) for piece in taken])
    for one in fetched:
        one.result()
    rejected.add(job.dead_letters, batch, counts, taken, sync=job.sync)
    objects.remove(f"{ASIDE}/{piece.file.name}" for piece in taken)


def _fetched(objects: Objects, file: Path) -> None:
    content = get_sealed(objects, f"{ASIDE}/{file.name}")
    if content is not None:  # of a batch that is done again they may be counted and gone
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
