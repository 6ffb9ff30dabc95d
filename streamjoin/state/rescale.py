"""Another number of units over the state there is: files stay where they are, and other units name them.

An operator that is `Elastic` says what its units' states become. State of version v is rewritten between two batches,
while no task runs: first the new manifests are written down together, in one file that is renamed into place, then each
goes to its unit, and all other manifests are removed. A crash in between is made good by doing the second
part again.

    begin -> complete -> (the caller notes the number of units) -> forget
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from streamjoin.errors import StateError
from streamjoin.operators.operator import Elastic
from streamjoin.operators.unit import UnitReport
from streamjoin.state import manifest
from streamjoin.state.store import StateStore


def begin(store: StateStore, version: int, before: int, operator: Elastic) -> None:
    """Write down what the state of `version` becomes; it is of `before` units.

    Raises:
        StateError: the state is not all there.
    """
    states = {unit: store.load(unit, version) for unit in range(before)}
    after = operator.resized(states) if version else {}
    for unit, state in after.items():
        # Files that a unit let go lie in its folder, whatever it stores from now on.
        after[unit] = replace(state, dropped=states[unit].dropped if unit in states else ())
    labels = {unit.number: unit.label for unit in operator.units}
    texts = {
        unit: manifest.dump(state, UnitReport(unit, labels[unit])).decode() for unit, state in sorted(after.items())
    }
    store.root.mkdir(parents=True, exist_ok=True)
    store.write(_path(store), json.dumps({"version": version, "units": len(labels), "manifests": texts}).encode())


def complete(store: StateStore) -> int | None:
    """Do what was written down; gives the number of units, or None where nothing was.

    Raises:
        StateError: what was written down is damaged.
    """
    try:
        found = json.loads(_path(store).read_bytes())
        version, units, manifests = found["version"], found["units"], found["manifests"]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        raise StateError(f"{_path(store)} is damaged; restore the checkpoint from a copy") from None
    for unit, text in manifests.items():
        store.directory(int(unit)).mkdir(parents=True, exist_ok=True)
        store.write(store.directory(int(unit)) / f"{version}.json", text.encode())
    # Older versions are of other units, and would keep files that nobody lets go; no batch before this one comes again.
    for unit in store.units():
        for other in store.versions(unit):
            if unit >= units or other != version:
                (store.directory(unit) / f"{other}.json").unlink()
    return int(units)


def forget(store: StateStore) -> None:
    """The number of units is noted elsewhere."""
    _path(store).unlink(missing_ok=True)


def _path(store: StateStore) -> Path:
    return store.root / "rescale.json"
