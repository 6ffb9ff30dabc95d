"""Another number of units over the state there is: files stay where they are, and other units name them.

For operators whose units may each store any tuple. State of version v is rewritten between two batches, while no task
runs: first the new manifests are written down together, in one file that is renamed into place, then each goes to its
unit, and those of units that are no more are removed. A crash in between is made good by doing the second part again.

    begin -> complete -> (the caller notes the number of units) -> forget
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from streamjoin.errors import StateError
from streamjoin.index.segment import SegmentInfo
from streamjoin.operators.operator import UnitSpec
from streamjoin.operators.unit import UnitReport, UnitState
from streamjoin.state import manifest
from streamjoin.state.store import StateStore
from streamjoin.window import R, S


def spread(states: Mapping[int, UnitState], units: int) -> dict[int, UnitState]:
    """States of `units` units over the tuples of `states`, which are of one version.

    Largest segments first, each goes to the unit with the fewest tuples of its stream, and stays where it is if it can:
    loads become as even as whole segments can be, and tuples that come make up for the rest.
    """
    before = states[min(states)]
    segments: dict[int, dict[int, list[SegmentInfo]]] = {unit: {R: [], S: []} for unit in range(units)}
    for side in (R, S):
        rows = dict.fromkeys(range(units), 0)
        found = [(unit, info) for unit, state in sorted(states.items()) for info in state.segments.get(side, ())]
        for owner, info in sorted(found, key=lambda item: -item[1].rows):
            unit = min(range(units), key=lambda unit: (rows[unit], unit != owner, unit))
            rows[unit] += info.rows
            segments[unit][side].append(info.taken_over(owner, unit))
    totals: dict[str, int] = {}
    for state in states.values():
        for name, value in state.totals.items():
            totals[name] = totals.get(name, 0) + value
    empty = UnitState(before.version, {}, before.clocks)
    after = {}
    for unit in range(units):
        # A chain is in order of construction, or nearly so, for neighbours of one period to be merged.
        chains = {side: tuple(sorted(infos, key=lambda info: info.first)) for side, infos in segments[unit].items()}
        after[unit] = replace(
            empty,
            segments=chains,
            totals=totals if unit == 0 else {},
            dropped=states[unit].dropped if unit in states else (),
        )
    return after


def begin(store: StateStore, version: int, units: tuple[UnitSpec, ...]) -> None:
    """Write down what the state of `version` becomes.

    Raises:
        StateError: the state is not all there.
    """
    states = {unit: store.load(unit, version) for unit in store.units() if version in store.versions(unit)}
    if version and not states:
        raise StateError(f"there is no state of version {version} below {store.root}")
    after = spread(states, len(units)) if version else {}
    texts = {
        unit.number: manifest.dump(after[unit.number], UnitReport(unit.number, unit.label)).decode()
        for unit in units
        if unit.number in after
    }
    store.write(_path(store), json.dumps({"version": version, "units": len(units), "manifests": texts}).encode())


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
    for unit in store.units():
        for left in store.versions(unit) if unit >= units else ():
            (store.directory(unit) / f"{left}.json").unlink()
    return int(units)


def forget(store: StateStore) -> None:
    """The number of units is noted elsewhere."""
    _path(store).unlink(missing_ok=True)


def _path(store: StateStore) -> Path:
    return store.root / "rescale.json"
