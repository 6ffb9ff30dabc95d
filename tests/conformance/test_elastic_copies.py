"""How much is copied when a unit is added: nothing by a biclique, |S|/n for each unit of a matrix's new row.

Source: BiStream (SIGMOD 2015), sections 4.2 and 5; the share of a new unit that new tuples may use is its SGR there.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from streamjoin.engine.operator import Operator
from streamjoin.operators import costs
from streamjoin.operators.costs import StreamStatistics
from streamjoin.operators.matrix import Matrix
from streamjoin.plan.window import R, S
from streamjoin.state.store import StateStore

from .elastic import ROUTED, Scripted
from .local import LocalRun
from .test_memory import a_plan, steady

ROWS, BATCHES, ADDED_IN = 120, 6, 2
"""Tuples of a stream in a batch. Units come when half of all that a run brings is stored."""
Lying = dict[int, set[tuple[int, int]]]
"""By unit, (side, number) of each tuple that it stores."""


def lying(run: LocalRun) -> Lying:
    store = StateStore(run.state, sync=False)
    found: Lying = {}
    for unit in run.now.units:
        if unit.begins_at(run.version):
            continue
        state = store.load(unit.number, run.version)
        rows = [
            (side, number)
            for side in (R, S)
            for info in state.tuples(side)
            for number in store.open_segment(unit.number, info).column("id").to_pylist()
        ]
        assert len(rows) == len(set(rows)), f"unit {unit.number} has a tuple twice"
        found[unit.number] = set(rows)
    return found


def played(operator: Operator, within: str, folder: Path) -> tuple[LocalRun, list[Lying]]:
    """A run, each batch twice as after a kill, and what lies where after each batch."""
    run, found = LocalRun(a_plan(within=within), operator, folder), []
    for batch in range(BATCHES):
        rng = np.random.default_rng(batch)
        given = ([steady(batch * ROWS, ROWS, rng)], [steady(batch * ROWS, ROWS, rng)])
        run.batch(given, commit=False)
        run.batch(given)
        found.append(lying(run))
    return run, found


def copied(found: list[Lying]) -> int:
    """Rows that came to lie in a unit in a later batch than the one that brought them."""
    return sum(
        number < batch * ROWS
        for batch, (before, after) in enumerate(pairwise(found), 1)
        for unit, rows in after.items()
        for _, number in rows - before.get(unit, set())
    )


@pytest.mark.parametrize("within", ["", f"WITHIN {2 * ROWS} MICROSECONDS"], ids=["full history", "window"])
@pytest.mark.parametrize("routed", ROUTED)
def test_no_row_is_copied_or_moved_when_units_are_added_and_drain(routed: str, within: str, tmp_path: Path) -> None:
    script = {ADDED_IN: [(R, 0, 1), (S, 0, 2)], ADDED_IN + 1: [(R, 0, -1)]}
    operator = Scripted(*ROUTED[routed], script=script)
    run, found = played(operator, within, tmp_path)
    new = set(found[-1]) - set(found[0])
    assert len(new) >= 2 and all(found[-1][unit] for unit in new if not_draining(run, unit)), "new units store"
    assert copied(found) == 0
    # Each tuple of a stream is sent to one unit to be stored, and that is all that any unit gets to store.
    for reports in run.reports:
        assert sum(report.received["store"] for report in reports) == 2 * ROWS


def test_a_copy_and_a_move_are_counted() -> None:
    first = {0: {(R, 0), (R, 1)}, 1: {(S, 0)}}
    assert copied([first, {**first, 2: {(R, ROWS)}}]) == 0
    assert copied([first, {**first, 2: {(R, ROWS), (R, 1)}}]) == 1
    assert copied([first, {0: {(R, 0)}, 1: {(S, 0), (R, 1)}}]) == 1


def not_draining(run: LocalRun, unit: int) -> bool:
    return any(unit in group for side in run.now.groups for group in side)  # type: ignore[attr-defined]


def test_a_new_row_of_the_matrix_would_be_filled_with_copies_as_its_formula_says(tmp_path: Path) -> None:
    columns, stored = 3, BATCHES * ROWS
    (before,), (after,) = (played(Matrix(rows, columns), "", tmp_path / f"{rows}")[1][-1:] for rows in (2, 3))
    of_s = {unit: sum(side == S for side, _ in rows) for unit, rows in after.items()}
    new = sum(of_s.values()) - sum(side == S for rows in before.values() for side, _ in rows)
    # |S| in all, whatever else it stores.
    assert new == stored and len(of_s) == 3 * columns
    # Of a unit whose capacity is twice that, half is left for new tuples, and all of a unit of the biclique.
    known, capacity = StreamStatistics(tuple_bytes=1, rate_per_s=0, stored=stored), 2 * stored / columns
    assert costs.matrix_scaling_gain(known, columns, capacity) == pytest.approx(1 - new / columns / capacity)
    assert costs.biclique_scaling_gain() == 1
