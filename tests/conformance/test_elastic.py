"""Units of a biclique that come, drain and leave while it runs, against the nested loop.

The changes are scripted here: what happens in which batch is drawn at random, and done by the code that decisions use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from streamjoin.engine.operator import Operator
from streamjoin.engine.state import UnitState
from streamjoin.errors import StateError
from streamjoin.operators import registry
from streamjoin.operators.adapting.members import Load
from streamjoin.operators.biclique.adaptive import AdaptiveBiclique
from streamjoin.operators.biclique.scaling import UnitPlan
from streamjoin.plan.window import R
from streamjoin.spec.changes import keeps_state
from streamjoin.state.show import list_units

from . import check as suite
from .check import RUNS
from .elastic import ROUTED, Scripted, scripted
from .histories import History, history, make_rows
from .local import LocalRun

BATCHES = 14


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("routed", ROUTED)
def test_units_come_and_go_in_any_batch(routed: str, run: str) -> None:
    # Two windows that expire, so that units do leave, and one that counts rows.
    turn = list(RUNS).index(run) + list(ROUTED).index(routed)
    for seed, window in enumerate(("20 us", ("only after", "7 rows")[turn % 2])):
        shaped = history(seed, r=110, s=100, time_shape="disordered", delay_us=15)
        job = suite.check(
            scripted(ROUTED[routed], seed, BATCHES),
            shaped,
            "equality",
            window,
            run=RUNS[run],
            batches=BATCHES,
            pieces=2,
            period_us=None if window == "7 rows" else 7,
        )
        seen = [frozenset(report.unit for report in reports) for reports in job.reports]
        came = set().union(*seen) - seen[0]
        left = {unit for before, after in pairwise(seen) for unit in before - after}
        assert came and left, "the script changed nothing"
        for unit in left:
            batches = [number for number, units in enumerate(seen) if unit in units]
            assert batches == list(range(batches[0], batches[-1] + 1)), f"unit {unit} came back"


def caught(**how: object) -> bool:
    """Whether a case notices a wrong `AdaptiveBiclique`."""
    for seed in range(3):
        shaped = history(seed, r=110, s=100, time_shape="disordered", delay_us=15)
        for routed in ROUTED:
            wrong = type("Wrong", (Scripted,), how)
            right = scripted(ROUTED[routed], seed, BATCHES)
            operator = wrong(*ROUTED[routed], script=right.script)
            try:
                suite.check(operator, shaped, "equality", "20 us", run=RUNS["restored"], batches=BATCHES, period_us=7)
            except (AssertionError, StateError):
                return True
    return False


def test_a_unit_that_drains_and_stores_is_caught() -> None:
    assert caught(groups=property(lambda self: self.probed))


def last_row(operator: type[Scripted], batches: int = 12) -> LocalRun:
    """One row a batch and stream, every 10 us, all alike: each meets those of two batches before, up to the last one.

    The only unit of R that is not unit 0 stores until it drains, and has one row less in each batch.
    """
    rng = np.random.default_rng(0)
    r, s = (make_rows(rng, range(0, 10 * batches, 10), [1] * batches) for _ in "rs")
    script = {4: [(R, 0, -1)]}  # in which it stores
    return suite.check(operator(2, 1, script=script), History(r, s), "equality", "20 us", batches=batches, period_us=1)


def test_a_unit_that_drains_answers_until_its_last_row_is_out_of_reach() -> None:
    seen = [{report.unit for report in reports if report.unit == 1} for reports in last_row(Scripted).reports]
    assert seen[7] and not seen[-1]


def test_a_unit_that_is_released_with_its_last_rows_is_caught() -> None:
    class Early(Scripted):
        def decide(self, batch: int, now_us: int, loads: Mapping[int, Load | None]) -> UnitPlan:
            less = {unit: Load(max(load.rows - 2, 0), 0) for unit, load in loads.items() if load}
            return super().decide(batch, now_us, less)

    with pytest.raises(AssertionError, match="missing"):
        last_row(Early)


def test_a_batch_that_is_repeated_by_a_newer_plan_is_caught() -> None:
    def newer(self: Scripted, look: Callable[[int], UnitState]) -> Operator:
        store, version = look.func.__self__, look.keywords["version"]  # type: ignore[attr-defined]
        there = version + 1 in store.versions(0)
        return Scripted.in_batch(self, partial(store.load, version=version + 1) if there else look)

    assert caught(in_batch=newer)


def test_a_new_unit_that_is_not_probed_is_caught() -> None:
    def old(self: Scripted) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
        every = AdaptiveBiclique.probed.func(self)  # type: ignore[attr-defined]
        at_first = self.r_units + self.s_units
        r, s = (tuple(tuple(unit for unit in group if unit < at_first) for group in side) for side in every)
        return r, s

    assert caught(probed=property(old))


def test_state_ls_says_which_units_drain_and_nothing_of_those_that_left(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    times = [at for at in range(0, 240, 10) for _ in range(4)]
    given = History(*(make_rows(rng, times, [1] * len(times)) for _ in "rs"))
    run = LocalRun(suite.plan(given, "equality", "20 us"), Scripted(2, 1, script={2: [(R, 0, -1)]}), tmp_path / "state")
    seen = []
    for batch in given.cuts(24):
        run.batch(batch)
        seen.append(list_units(tmp_path).splitlines())
    drains = [[line.split()[0] for line in lines if line.endswith(", drains")] for lines in seen]
    assert drains[2] == [] and drains[4] == ["1"] and drains[-1] == []
    assert [line.split()[0] for line in seen[-1]] == ["unit", "0", "2", "all"]
    # Ten batches later nothing of it is on disk.
    assert not (tmp_path / "state" / "0" / "1").exists() and (tmp_path / "state" / "0" / "2").exists()


def test_limits_may_change_and_other_units_may_not() -> None:
    def lasting(**knobs: object) -> str:
        given = {"adaptive": True, "r_units": 2, "s_units": 2, **knobs}
        return registry.build("biclique", given, suite.plan(history(0), "equality", "20 us"), 2).lasting

    assert lasting() == lasting(capacity=3, max_units=4, check_every="1s")
    assert len({lasting(), lasting(adaptive=False), lasting(r_units=3), lasting(routing="random")}) == 4
    assert keeps_state("operator.capacity") and not keeps_state("operator.adaptive")


def test_explain_says_that_units_come_and_go() -> None:
    def said(window: str) -> str:
        knobs = {"adaptive": True, "r_units": 2, "s_units": 2, "capacity": 0.5}
        return str(registry.build("biclique", knobs, suite.plan(history(0), "equality", window), 2))

    assert said("20 us").endswith(
        "; adaptive, units are added and taken away while it runs: 1 to 8 of each stream, of 0.5 MiB each"
    )
    assert "units are added while it runs, and none is taken away without a window" in said("full history")
