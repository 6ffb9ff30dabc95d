"""While units come and go each stored tuple lies in one unit, and stays in it (BiStream, sections 4.2 and 5)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from streamjoin.plan.window import R, S
from streamjoin.state.store import StateStore

from . import check as suite
from .elastic import ROUTED, Scripted, scripted
from .histories import History, make_rows
from .local import LocalRun

BATCHES = 14
ROWS = 24
Places = dict[tuple[int, int], list[int]]


def given(seed: int) -> History:
    """As many rows of each stream in each batch of 10 us, a few keys."""
    rng = np.random.default_rng(seed)
    times = [at for at in range(0, 10 * BATCHES, 10) for _ in range(ROWS)]
    r, s = (make_rows(rng, times, rng.integers(0, 9, len(times))) for _ in "rs")
    return History(r, s)


def places(run: LocalRun, version: int) -> Places:
    """(side, id) of every tuple that the manifests of a version name, and the units that store it."""
    store = StateStore(run.state)
    found: Places = {}
    for unit in run.operator.in_batch(lambda number: store.load(number, version)).units:
        if unit.begins_at(version) and version:
            continue  # nothing of it is there yet
        state = store.load(unit.number, version)
        for side in (R, S):
            for info in state.tuples(side):
                for row in store.open_segment(unit.number, info).column("id").to_pylist():
                    found.setdefault((side, row), []).append(unit.number)
    return found


def changed(run: LocalRun, history: History, killed: frozenset[int] = frozenset()) -> list[Places]:
    """Where rows lie after each batch; some batches are cut off before they are committed, and done again."""
    seen: list[Places] = []
    for number, batch in enumerate(history.cuts(BATCHES)):
        if number in killed:
            run.batch(batch, commit=False)
        run.batch(batch)
        seen.append(places(run, run.version))
    return seen


def check(seen: list[Places], history: History, *, expires: bool) -> None:
    """Each row that should be stored is, in one unit, and in the same one at all versions."""
    home: dict[tuple[int, int], int] = {}
    for number, found in enumerate(seen):
        twice = {row: units for row, units in found.items() if len(units) > 1}
        assert not twice, f"in several units at version {number + 1}: {twice}"
        for row, (unit,) in found.items():
            assert home.setdefault(row, unit) == unit, f"{row} was moved"
        brought = {(side, row["id"]) for side, rows in enumerate((history.r, history.s)) for row in rows
                   if row["ts"] // 10 <= number and (not expires or row["ts"] // 10 >= number - 1)}  # fmt: skip
        assert brought <= set(found), "rows are nowhere"
        assert expires or brought == set(found)


@pytest.mark.parametrize("window", ["20 us", "full history"])
@pytest.mark.parametrize("routed", ROUTED)
def test_each_tuple_lies_in_one_unit_at_every_version_also_after_kills(
    routed: str, window: str, tmp_path: Path
) -> None:
    history = given(7)
    expires = window == "20 us"
    operator = scripted(ROUTED[routed], 3, BATCHES)
    if not expires:  # where nothing drains
        last = len(operator.groups[S]) - 1
        operator = Scripted(*ROUTED[routed], script={1: [(R, 0, 1), (S, 0, 2)], 5: [(S, last, 1)]})
    run = LocalRun(suite.plan(history, "equality", window, period_us=7 if expires else None), operator, tmp_path)
    seen = changed(run, history, frozenset({2, 3, 6, 9}))
    check(seen, history, expires=expires)
    used = Counter(unit for found in seen for (unit,) in found.values())
    at_first = operator.r_units + operator.s_units
    assert any(unit >= at_first for unit in used), "no new unit stored anything"


@pytest.mark.parametrize("routed", ROUTED)
def test_no_row_is_copied_to_a_unit_that_comes(routed: str, tmp_path: Path) -> None:
    """A biclique copies 0 rows for a new unit: the batch that adds it leaves what was stored as it is."""
    history = given(8)
    operator = Scripted(*ROUTED[routed], script={5: [(R, 0, 1), (S, 0, 1)]})
    run = LocalRun(suite.plan(history, "equality", "full history"), operator, tmp_path)
    seen = changed(run, history)
    before, after = seen[5], seen[6]
    assert len(run.now.units) == len(operator.units) + 2
    came = {unit.number for unit in run.now.units} - {unit.number for unit in operator.units}
    assert {row: after[row] for row in before} == before
    theirs = [row for row, units in after.items() if units[0] in came]
    assert theirs and not set(theirs) & set(before)
