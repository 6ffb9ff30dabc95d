"""Two partitions a stream, one of which is not read for a while: whether that is silence, or a backlog."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from streamjoin.flow.punctuation import IDLE_TIMEOUT_US

from .check import OPERATORS, REPRESENTATIVES, expected, pairs_of, plan
from .histories import cut, history, to_batch
from .local import Batch, LocalRun

GIVEN = history(2, r=120, s=120, key_shape="uniform")
LATER_US = 3 * IDLE_TIMEOUT_US // 2
NOTHING = to_batch([])


def batches(*, moved: bool) -> list[Batch]:
    """Both partitions, then the first one's further rows, then the second one's, of the same times.

    Args:
        moved: the second batch moves the second partition's offset too, over records that give no row.
    """
    r, s = (
        [[to_batch(rows[partition::2]) for partition in (0, 1)] for rows in cut(side, 2)] for side in (GIVEN.r, GIVEN.s)
    )
    others = [NOTHING] if moved else []
    return [
        (r[0], s[0]),
        ([r[1][0], *others], [s[1][0], *others]),
        ([NOTHING, r[1][1]], [NOTHING, s[1][1]]),
    ]


def lost(run: LocalRun, given: list[Batch], *, twice: bool = False) -> tuple[int, int]:
    """How many pairs are missing, and how many tuples were late, where the second batch comes much later."""
    got: Counter[tuple[int, int]] = Counter()
    for batch, clock_us in zip(given, (0, LATER_US, LATER_US + 1), strict=True):
        if twice:
            run.batch(batch, commit=False, clock_us=clock_us)
        got += Counter(pairs_of(run.batch(batch, clock_us=clock_us)))
    for batch in run.drain():
        got += Counter(pairs_of(run.batch(batch)))
    want = Counter(expected(GIVEN, "equality", run.plan, 1))
    assert not got - want
    late = sum(sum(report.late) for reports in run.reports for report in reports)
    return sum((want - got).values()), late


def run_of(operator: str, folder: Path) -> LocalRun:
    run = LocalRun(plan(GIVEN, "equality", "20 us", period_us=5), OPERATORS[operator], folder)
    run.partitioned = True
    return run


@pytest.mark.parametrize("operator", REPRESENTATIVES)
@pytest.mark.parametrize("twice", [False, True])
def test_a_backlog_after_a_stop_is_not_silence(operator: str, twice: bool, tmp_path: Path) -> None:
    run = run_of(operator, tmp_path)
    run.begins = {0, 1}
    assert lost(run, batches(moved=False), twice=twice) == (0, 0)


@pytest.mark.parametrize("operator", REPRESENTATIVES)
def test_a_partition_whose_records_give_no_row_is_not_silent(operator: str, tmp_path: Path) -> None:
    run = run_of(operator, tmp_path)
    run.begins = {0}
    assert lost(run, batches(moved=True)) == (0, 0)


@pytest.mark.parametrize("operator", REPRESENTATIVES)
def test_a_partition_that_had_nothing_to_bring_in_one_run_is_late_when_it_returns(
    operator: str, tmp_path: Path
) -> None:
    """What the time-out costs; without it the tests above would show nothing."""
    run = run_of(operator, tmp_path)
    run.begins = {0}
    pairs, late = lost(run, batches(moved=False))
    assert late > 0 and (pairs > 0 or operator.startswith("handshake"))
