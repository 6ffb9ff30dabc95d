"""States wherever they are: a folder or objects, opened the same way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from streamjoin.engine.state import UnitState
from streamjoin.state.generation import newest_head
from streamjoin.state.objectstore import ObjectStates
from streamjoin.state.root import ObjectRoot, Root
from streamjoin.state.store import StateStore, read_manifests, stages_in

AnyStates = StateStore | ObjectStates


def open_states(root: Root, stage: int = 0, *, sync: bool = True) -> AnyStates:
    """The states of one stage's units."""
    return ObjectStates(root, stage) if isinstance(root, ObjectRoot) else StateStore(root, stage, sync=sync)


def newest_states(root: Root, stage: int | None = None) -> Iterator[tuple[int, UnitState]]:
    """The newest state of every unit, of one stage or of all.

    Raises:
        StateError: a manifest is missing or damaged.
    """
    if isinstance(root, Path):
        for number in stages_in(root) if stage is None else [stage]:
            yield from read_manifests(root, number)
        return
    if (found := newest_head(root)) is None:
        return
    root, head = found
    units = json.loads(head.files["job.json"])["units"] if "job.json" in head.files else []
    for number, count in enumerate(units):
        if stage in (None, number):
            yield from _newest(ObjectStates(root, number), count, head.version)


def _newest(store: ObjectStates, units: int, version: int) -> Iterator[tuple[int, UnitState]]:
    before = dict(store.staying(units, version)) if version else {}
    # Heads are put before their batches: what the last one left is one version later.
    if store.find(max(before, default=units - 1), version + 1) is None:
        yield from before.items()
        return
    for unit in store.numbers(units, version + 1):
        found = store.find(unit, version + 1) or before.get(unit)
        if found is not None:
            yield unit, found


def stages_at(root: Root) -> list[int]:
    """The stages that there are states of."""
    if isinstance(root, Path):
        return stages_in(root)
    found = newest_head(root)
    return list(range(len(found[1].lines))) if found else []
