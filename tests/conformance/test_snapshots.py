"""Every operator with every rule for when snapshots close: no result is lost, and what was closed as complete is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from streamjoin.operators import registry
from streamjoin.operators.handshake import Handshake
from streamjoin.plan import RESULT_TIME
from streamjoin.results.block import BlockRef
from streamjoin.results.policy import Collected, Cut, EpochPolicy, Open, Policy, PunctuationPolicy
from streamjoin.results.stores.store import BlockKey

from .check import KEYED, NAMES, OPERATORS, expected, plan
from .histories import History, history
from .local import LocalRun

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
        batches.append(Collected(number, 1_000_000 * number, run.reports[-1][0].marks_us, blocks))
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


def is_refused(operator: str, policy: str) -> bool:
    by_period = isinstance(POLICIES[policy], PunctuationPolicy)
    asked = replace(plan(history(4), "equality", "20 us"), keyed=True, by_period=by_period)
    return registry.REGISTRY[OPERATORS[operator].name].refuses(asked) is not None


@pytest.mark.parametrize("operator", NAMES)
def test_a_period_is_complete_when_it_is_closed_or_the_rule_is_refused(operator: str, tmp_path: Path) -> None:
    for window in ("20 us", "7 rows"):
        wanted, counts = closed(operator, window, tmp_path / window)
        assert wanted > 30
        for policy, (rows, behind) in counts.items():
            assert rows == wanted, (window, policy)
            assert behind == 0 or is_refused(operator, policy), f"{behind} of {wanted} behind {policy}, {window}"


def test_a_chain_is_refused_for_a_reason_and_nothing_else_is(tmp_path: Path) -> None:
    wanted, counts = closed("handshake 3", "20 us", tmp_path)
    assert counts["punctuation"][1] > wanted / 2
    refused = {(name, policy) for name in OPERATORS for policy in POLICIES if is_refused(name, policy)}
    assert refused == {(name, "punctuation") for name, operator in OPERATORS.items() if isinstance(operator, Handshake)}
