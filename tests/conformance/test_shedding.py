"""A join that sheds gives every pair of the tuples it kept and no other, and it recovers from overload by itself."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from streamjoin.intake.shedding import ShedRule, kept
from streamjoin.operators.reference import Pairs
from streamjoin.plan.window import R, S

from .check import OPERATORS, RUNS, expected, of_each_kind, pairs_of, plan
from .histories import History, Row, history, make_rows
from .local import LocalRun

pytestmark = pytest.mark.slow

BATCHES = 12
RULE = ShedRule(3, 40, 0.2)
WINDOWS = ["20 us", "only after", "full history", "7 rows"]


class Noting(LocalRun):
    """Notes the shed factor of every committed batch, by side."""

    def note(self, batches: int) -> None:
        self.factors = [[0.0, 0.0] for _ in range(batches)]

    def shed_factor(self, side: int) -> float:
        factor = super().shed_factor(side)
        self.factors[self.version][side] = factor
        return factor


def kept_ids(rows: list[Row], side: int, factors: list[list[float]]) -> set[int]:
    """The ids of one stream that its batches' factors leave, worked out apart from the engine's run."""
    places = np.arange(len(rows))
    found: set[int] = set()
    for batch, factor in enumerate(factors):
        own = places[batch * len(rows) // BATCHES : (batch + 1) * len(rows) // BATCHES]
        stay = kept(factor[side], "rs"[side], "history", own)
        found |= {rows[place]["id"] for place in own[stay]}
    return found


@pytest.mark.parametrize(("operator", "window"), of_each_kind(OPERATORS, WINDOWS))
def test_every_pair_of_kept_tuples_is_found(operator: str, window: str, tmp_path: Path) -> None:
    given = history(40, r=240, s=240, time_shape="disordered", delay_us=15)
    found = plan(given, "equality", window, period_us=5 if " us" in window or "only" in window else None)
    run = Noting(found, OPERATORS[operator], tmp_path, shed={R: RULE, S: ShedRule(3, 60, 0.0, "quadratic")})
    run.note(BATCHES)
    got = Counter(pairs_of(list(run.run([*given.cuts(BATCHES), *run.drain()]))))

    exact: Pairs = expected(given, "equality", found, BATCHES)
    r, s = (kept_ids(list(rows), side, run.factors) for side, rows in ((R, given.r), (S, given.s)))
    want = Counter((r_id, s_id) for r_id, s_id in exact if r_id in r and s_id in s)
    assert got == want
    assert want and want.total() < len(exact)
    if window != "7 rows":  # where tuples do not count, that is the join of the kept ones alone
        alone = History([row for row in given.r if row["id"] in r], [row for row in given.s if row["id"] in s])
        pairs = expected(alone, "equality", found, BATCHES)
        assert got == Counter((alone.r[r_place]["id"], alone.s[s_place]["id"]) for r_place, s_place in pairs)


@pytest.mark.parametrize(("operator", "how"), of_each_kind(OPERATORS, [name for name in RUNS if name != "straight"]))
def test_a_repeated_batch_sheds_the_same_with_any_number_of_slots(operator: str, how: str, tmp_path: Path) -> None:
    given = history(41, r=240, s=240, time_shape="disordered", delay_us=15)
    found = plan(given, "equality", "20 us", period_us=5)
    results = []
    for folder, run_by in (("straight", "straight"), ("other", how)):
        run = LocalRun(found, OPERATORS[operator], tmp_path / folder, shed={R: RULE})
        results.append(Counter(pairs_of(RUNS[run_by](run, [*given.cuts(BATCHES), *run.drain()]))))
    assert results[0] == results[1]
    assert 0 < results[0].total() < len(expected(given, "equality", found, BATCHES))


@pytest.mark.parametrize("operator", OPERATORS)
def test_without_a_rule_nothing_is_shed_however_high_the_load(operator: str, tmp_path: Path) -> None:
    given = history(42, r=240, s=240)
    run = LocalRun(plan(given, "equality", "full history"), OPERATORS[operator], tmp_path)
    got = Counter(pairs_of(list(run.run([*given.cuts(BATCHES), *run.drain()]))))
    assert got == Counter(expected(given, "equality", run.plan, BATCHES))
    assert "shed" not in run.counts


def test_intake_resumes_when_shed_tuples_have_moved_the_marks(tmp_path: Path) -> None:
    # A burst fills the units at time 0..9; then time goes on slowly, and everything that comes is shed until the burst
    # is out of the window. A shedder whose tuples did not move the marks would stay shut for ever.
    rng = np.random.default_rng(43)
    batches = 20
    burst, after = 100, 1
    times = [number % 10 for number in range(burst)]
    times += [10 + 2 * batch for batch in range(1, batches) for _ in range(after)]
    streams = [make_rows(rng, times, [1] * len(times)) for _ in range(2)]
    found = plan(History(*streams), "equality", "20 us", period_us=1)
    run = Noting(found, OPERATORS["biclique 1+1"], tmp_path, shed={R: ShedRule(15, 50), S: ShedRule(15, 50)})
    run.note(batches)
    cuts = [slice(0, burst), *(slice(burst + after * n, burst + after * (n + 1)) for n in range(batches - 1))]
    results = []
    for part in cuts:
        [batch] = History(streams[0][part], streams[1][part]).cuts(1)
        results.append(sum(rows.num_rows for rows in run.batch(batch)))
    shut = [batch for batch, factor in enumerate(run.factors) if factor[R] == factor[S] == 1]
    assert len(shut) >= 9 and shut == list(range(1, 1 + len(shut)))
    assert all(results[batch] == 0 for batch in shut)
    # Load fell by itself, so later batches are joined in full again.
    assert run.factors[-1] == [0, 0] and results[-1] > 0
    assert run.counts["shed"] >= 2 * after * len(shut)
