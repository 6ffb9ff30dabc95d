"""Other cores over the tuples that are stored: any core may store any tuple, since all of them process each one."""

from __future__ import annotations

from collections.abc import Mapping

from streamjoin.engine.deciding import BITS, NOTICES
from streamjoin.engine.state import UnitState, totals_of
from streamjoin.engine.stored import stored, tables
from streamjoin.errors import UnsupportedError
from streamjoin.index.segment import SegmentInfo
from streamjoin.plan.window import R, S


def spread(states: Mapping[int, UnitState], units: int) -> dict[int, UnitState]:
    """States of `units` units over the tuples of `states`, which are of one version.

    Largest segments first, each goes to the unit with the fewest tuples of its stream, and stays where it is if it can:
    loads become as even as whole segments can be, and tuples that come make up for the rest.

    Raises:
        UnsupportedError: of stored tuples it is kept, core by core, whether they were matched.
    """
    if any(state.segments(name) for state in states.values() for name in (BITS, NOTICES)):
        raise UnsupportedError(
            "an outer, semi or anti join keeps the cores that it began with; set it to "
            f"{len(states)}, or use another run.checkpoint to start anew with {units}",
            field="operator.cores",
        )
    before = states[min(states)]
    segments: dict[int, dict[int, list[SegmentInfo]]] = {unit: {R: [], S: []} for unit in range(units)}
    for side in (R, S):
        rows = dict.fromkeys(range(units), 0)
        found = [(unit, info) for unit, state in sorted(states.items()) for info in stored(state, side)]
        for owner, info in sorted(found, key=lambda item: -item[1].rows):
            unit = min(range(units), key=lambda unit: (rows[unit], unit != owner, unit))
            rows[unit] += info.rows
            segments[unit][side].append(info.taken_over(owner, unit))
    totals = totals_of(states.values())
    after = {}
    for unit in range(units):
        # A chain is in order of construction, or nearly so, for neighbours of one period to be merged.
        chains = {side: tuple(sorted(infos, key=lambda info: info.first)) for side, infos in segments[unit].items()}
        after[unit] = UnitState(
            before.version, tables(chains), clocks=before.clocks, totals=totals if unit == 0 else {},
            elsewhere=before.elsewhere,
        )  # fmt: skip
    return after
