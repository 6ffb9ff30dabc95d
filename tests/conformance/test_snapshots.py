"""Every operator with every rule for when snapshots close: no result is lost, and what was closed as complete is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from streamjoin.flow.punctuation import lowest_mark_us
from streamjoin.operators.handshake import Handshake
from streamjoin.plan.join import RESULT_TIME
from streamjoin.plan.ordering import Ordering
from streamjoin.results.block import BlockRef
from streamjoin.results.policy import Collected, Cut, EpochPolicy, Open, Policy, PunctuationPolicy
from streamjoin.results.stores.store import BlockKey

from .check import KEYED, NAMES, OPERATORS, expected, plan
from .histories import History, history
from .local import Batch, LocalRun

BATCHES = 8
POLICIES: dict[str, Policy] = {
    "epoch": EpochPolicy(),
    "delayed": EpochPolicy(delayed=1.0),
    "batches": EpochPolicy(span_us=None, batches=3),
    "whole batches": EpochPolicy(threshold_rows=10, whole_batches=True),
    "punctuation": PunctuationPolicy(20),
}


def given_of(operator: str) -> tuple[History, str]:
    return history(4, r=120, s=110, time_shape="disordered", delay_us=30), "equality" if operator in KEYED else "band"


def closed(operator: str, window: str, folder: Path) -> tuple[int, dict[str, tuple[int, int]]]:
    """How many results there should be, and by rule: those in its snapshots, and those that came behind one.

    Behind is what comes after its period was closed as complete.
    """
    given, condition = given_of(operator)
    wanted = replace(plan(given, condition, window), keyed=True)
    run = LocalRun(wanted, OPERATORS[operator], folder)
    batches = []
    for number, batch in enumerate([*given.cuts(BATCHES), *run.drain()]):
        times = [time for found in run.batch(batch) for time in found.column(RESULT_TIME).to_pylist()]
        blocks = [
            BlockRef(BlockKey(0, 0, 1, number, 0, n), 1, 10, 0, time, time, 0, 0, 0) for n, time in enumerate(times)
        ]
        reports = run.reports[-1]
        mark_us = lowest_mark_us(report.output_mark_us for report in reports)
        batches.append(Collected(number, 1_000_000 * number, reports[0].marks_us, blocks, output_mark_us=mark_us))
    counts = {name: _counts(policy, batches) for name, policy in POLICIES.items()}
    return len(expected(given, condition, wanted, BATCHES)), counts


def _counts(policy: Policy, batches: Sequence[Collected]) -> tuple[int, int]:
    state, waiting, cuts, behind = Open(), list[BlockRef](), list[Cut](), 0
    for collected in batches:
        if isinstance(policy, PunctuationPolicy) and state.epoch is not None:
            behind += sum(block.time_max_us // policy.every_us < state.epoch for block in collected.blocks)
        out = policy.collect(state, waiting, collected)
        state, waiting = out.state, out.waiting
        cuts += out.cuts
    cuts += policy.finish(state, waiting, for_good=True).cuts
    return sum(block.rows for cut in cuts for block in cut.blocks), behind


@pytest.mark.parametrize("operator", NAMES)
def test_a_period_is_complete_when_it_is_closed(operator: str, tmp_path: Path) -> None:
    for window in ("20 us", "7 rows"):
        wanted, counts = closed(operator, window, tmp_path / window)
        assert wanted > 30
        for policy, (rows, behind) in counts.items():
            assert rows == wanted, (window, policy)
            assert behind == 0, f"{behind} of {wanted} behind {policy}, {window}"


@pytest.mark.parametrize("ordering", [Ordering.NONE, Ordering.TOTAL])
@pytest.mark.parametrize("operator", NAMES)
def test_no_result_is_earlier_than_the_mark_of_the_output_before_it(
    operator: str, ordering: Ordering, tmp_path: Path
) -> None:
    given, condition = given_of(operator)
    wanted = replace(plan(given, condition, "20 us"), keyed=True, ordering=ordering)
    run = LocalRun(wanted, OPERATORS[operator], tmp_path)
    assert _behind(run, [*given.cuts(BATCHES), *run.drain()])[0] == 0


@pytest.mark.parametrize(("before", "after"), [(4, 2), (4, 1), (2, 5)])
def test_a_chain_of_another_length_holds_the_mark_of_its_output_too(before: int, after: int, tmp_path: Path) -> None:
    given, condition = given_of("handshake 3")
    wanted = replace(plan(given, condition, "20 us"), keyed=True)
    run = LocalRun(wanted, Handshake(before), tmp_path)
    cuts = list(given.cuts(BATCHES))
    first = _behind(run, cuts[:4])
    operator = Handshake(after)
    run.resize(operator)
    second = _behind(run, [*cuts[4:], *run.drain()], first[1])
    assert (first[0], second[0]) == (0, 0)
    assert first[2] + second[2] == len(expected(given, condition, wanted, BATCHES))
    # It does not wait for ever: in the end it is where the marks of the streams are.
    assert second[1] == lowest_mark_us(run.reports[-1][0].marks_us)


def test_the_streams_marks_alone_would_close_periods_of_a_chain_too_soon(tmp_path: Path) -> None:
    given, condition = given_of("handshake 3")
    run = LocalRun(replace(plan(given, condition, "20 us"), keyed=True), OPERATORS["handshake 3"], tmp_path)
    behind, mark_us = 0, None
    for batch in [*given.cuts(BATCHES), *run.drain()]:
        times = [time for found in run.batch(batch) for time in found.column(RESULT_TIME).to_pylist()]
        behind += sum(mark_us is not None and time < mark_us for time in times)
        mark_us = lowest_mark_us(run.reports[-1][0].marks_us)
    assert behind > 30


def _behind(run: LocalRun, batches: Sequence[Batch], mark_us: int | None = None) -> tuple[int, int | None, int]:
    """How many results were earlier than the mark before them, the mark at the end, and how many there were."""
    behind = rows = 0
    for batch in batches:
        times = [time for found in run.batch(batch) for time in found.column(RESULT_TIME).to_pylist()]
        rows += len(times)
        behind += sum(mark_us is not None and time < mark_us for time in times)
        now_us = lowest_mark_us(report.output_mark_us for report in run.reports[-1])
        assert mark_us is None or (now_us is not None and now_us >= mark_us), "the mark of the output goes back"
        mark_us = now_us
    return behind, mark_us, rows
