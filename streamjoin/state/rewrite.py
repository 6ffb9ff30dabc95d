"""Another state between two batches, while no task runs: for other units, or for other queries.

First the new manifests of all stages that change are written down together, in one file that is renamed into place,
then each goes to its unit, and all other manifests of these stages are removed. A crash in between is made good by
doing the second part again.

    begin -> complete -> (the caller notes what it gave along) -> forget

Segments that are new are durable before `begin`; files that no manifest names any more are swept afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from streamjoin.durable import have_folder, sync_folder
from streamjoin.engine.operator import Operator
from streamjoin.engine.requery import Requery
from streamjoin.engine.routing import UnitSpec
from streamjoin.engine.state import UnitState
from streamjoin.engine.unit import UnitReport
from streamjoin.errors import StateError
from streamjoin.state import manifest
from streamjoin.state.objectstore import ObjectStates
from streamjoin.state.places import AnyStates
from streamjoin.state.store import StateStore


def resized(store: AnyStates, version: int, before: int, operator: Operator) -> dict[int, UnitState]:
    """The state of `version`, of `before` units, as it is of the operator's units; files stay where they are.

    Raises:
        StateError: the state is not all there.
    """
    states = {unit: store.load(unit, version) for unit in range(before)}
    after = operator.resized(states) if version else {}
    # Files that a unit let go lie in its folder, whatever it stores from now on.
    return {
        unit: replace(state, dropped=states[unit].dropped if unit in states else ()) for unit, state in after.items()
    }


def requeried(
    store: AnyStates, version: int, number: int, change: Requery, before: Mapping[int, UnitState]
) -> Iterator[tuple[int, UnitState]]:
    """The state of `version`, unit by unit, as it is for other queries; its segments are new files.

    Args:
        number: how many such changes there were before, by which files of two of them differ.
        before: the state of `version`, by unit.
    Raises:
        StateError: a segment cannot be read.
    """
    for unit in before if version else ():
        writer = store.writer(unit, f"{version}-q{number}")
        state = change.state(before[unit], partial(store.open_segment, unit), writer.save)
        writer.finish()
        store.detach_except(unit, state)
        yield unit, state


def begin(
    store: StateStore,
    version: int,
    changed: Mapping[int, tuple[tuple[UnitSpec, ...], Mapping[int, UnitState]]],
    noted: Mapping[str, Any],
) -> None:
    """Write down what the state of `version` becomes, in all stages at once.

    Args:
        changed: by stage, its units, and their states by number; none where there is no state yet.
        noted: what `complete` gives back.
    """
    stages = []
    for stage, (units, after) in changed.items():
        labels = {unit.number: unit.label for unit in units}
        texts = {
            unit: manifest.dump(state, UnitReport(unit, labels[unit])).decode() for unit, state in sorted(after.items())
        }
        stages.append({"stage": stage, "units": 1 + max(labels), "manifests": texts})
    have_folder(store.root)
    content = {"version": version, "stages": stages, "noted": noted}
    store.write(_path(store), json.dumps(content).encode())


def put(store: ObjectStates, version: int, units: tuple[UnitSpec, ...], after: Mapping[int, UnitState]) -> None:
    """The same for objects, below the name of a generation that is not the owner yet: nobody reads them before it is.

    Raises:
        StateError: the store does not take them.
    """
    labels = {unit.number: unit.label for unit in units}
    for unit, state in sorted(after.items()):
        assert state.version == version
        store.commit(unit, state, UnitReport(unit, labels[unit]))
    store.settle()


def complete(store: StateStore) -> dict[str, Any] | None:
    """Do what was written down; gives what was noted with it, or None where nothing was.

    Raises:
        StateError: what was written down is damaged.
    """
    try:
        found = json.loads(_path(store).read_bytes())
        version, noted = int(found["version"]), dict(found["noted"])
        # Versions before wrote one stage, and the first of them did not say which.
        stages = [
            (StateStore(store.root, one.get("stage", 0), sync=store.sync), int(one["units"]), dict(one["manifests"]))
            for one in found.get("stages", [found])
        ]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        raise StateError(f"{_path(store)} is damaged; restore the checkpoint from a copy") from None
    for of_stage, units, manifests in stages:
        _put_in_place(of_stage, version, units, manifests)
    return noted


def _put_in_place(store: StateStore, version: int, units: int, manifests: Mapping[str, str]) -> None:
    for name, text in manifests.items():
        folder = store.directory(int(name))
        have_folder(folder)
        store.write(folder / f"{version}.json", text.encode())
    # Older versions are of other units or queries, and would keep files that nobody lets go; no batch before this one
    # comes again.
    for unit in store.units():
        old = [other for other in store.versions(unit) if unit >= units or other != version]
        for other in old:
            (store.directory(unit) / f"{other}.json").unlink()
        if old:
            sync_folder(store.directory(unit))


def forget(store: StateStore) -> None:
    """What was noted stands elsewhere; what starts left that ended while they noted it goes, too."""
    path = _path(store)
    for left in (path, *store.root.glob(f".{path.name}.*")):
        left.unlink(missing_ok=True)
    sync_folder(store.root)  # it must not come back after batches that it knows nothing of


def _path(store: StateStore) -> Path:
    return store.root / "rewrite.json"
