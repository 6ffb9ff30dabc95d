"""Load shedding: how much is shed at which load, and that chance decides, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.engine.operator import Operator
from streamjoin.engine.router import Router
from streamjoin.engine.routing import STORE
from streamjoin.errors import InputError
from streamjoin.flow.block import Block
from streamjoin.flow.punctuation import Punctuation, StreamClock
from streamjoin.intake.intake import Intake, Piece
from streamjoin.intake.shedding import Shedding, ShedRule, kept
from streamjoin.operators.biclique import Biclique, Routing
from streamjoin.operators.matrix import Matrix
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.window import R, S
from streamjoin.query import plan_query

COLUMNS = pa.schema([("t", pa.int64()), ("id", pa.int64()), ("k", pa.int64())])
ROWS = 40_000
KEYS = 20
PIECE = Piece("0-a", "all", "file", 0, 77)
RULE = ShedRule(100, 200, 0.1)


# ---- factor -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("live", "factor"), [(0, 0), (99, 0), (100, 0.1), (150, 0.55), (200, 1), (300, 1), (10**12, 1)]
)
def test_linear_factor_jumps_to_the_base_and_reaches_one_at_the_capacity(live: int, factor: float) -> None:
    assert RULE.factor(live) == pytest.approx(factor)


@pytest.mark.parametrize(("live", "factor"), [(99, 0), (100, 0.1), (150, 0.325), (200, 1), (300, 1)])
def test_quadratic_factor_rises_slowly_at_first(live: int, factor: float) -> None:
    assert ShedRule(100, 200, 0.1, "quadratic").factor(live) == pytest.approx(factor)


def test_twice_the_units_shed_less_at_the_same_load() -> None:
    assert [RULE.factor(300, units) for units in (1, 2, 4)] == pytest.approx([1, 0.55, 0])


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"capacity": 100}, "capacity", "100 must be above the threshold, which is 100"),
        ({"capacity": 99}, "capacity", "above the threshold"),
        ({"threshold": 0}, "threshold", "at least 1"),
        ({"base": 1.0}, "base", "below 1"),
        ({"base": -0.1}, "base", "at least 0"),
        ({"base": float("nan")}, "base", "at least 0"),
        ({"shape": "cubic"}, "shape", '"cubic" is not a shed function; use linear and quadratic'),
    ],
)
def test_wrong_rule_is_refused_by_the_name_of_its_field(change: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        ShedRule(**{"threshold": 100, "capacity": 200, "base": 0.1, **change})
    assert caught.value.field == field


# ---- which rules hold -------------------------------------------------------------------------------------------


def test_a_batch_that_was_planned_keeps_its_rule_and_the_next_one_has_the_new() -> None:
    off = Shedding()
    assert off.rule(R, 0) is None and off.changed({}, 7) is off
    on = off.changed({R: RULE}, 7)
    assert [on.rule(R, batch) for batch in (7, 8, 100)] == [None, RULE, RULE]
    assert on.rule(S, 8) is None
    assert on.changed({R: RULE}, 9) is on
    other = ShedRule(1, 2)
    # Changed twice before batch 8 began: batch 7 is still the one before.
    again = on.changed({S: other}, 7)
    assert [again.rule(R, batch) for batch in (7, 8)] == [None, None] and again.rule(S, 8) == other
    later = on.changed({}, 8)
    assert [later.rule(R, batch) for batch in (8, 9)] == [RULE, None]
    for shedding in (off, on, again, later):
        assert Shedding.from_json(shedding.to_json()) == shedding


def test_rules_hold_from_the_first_batch_of_a_new_job() -> None:
    assert Shedding().changed({R: RULE}, -1).rule(R, 0) == RULE


# ---- which tuples -----------------------------------------------------------------------------------------------


def within_three_sigma(hits: np.ndarray | int, trials: np.ndarray | int, share: float) -> bool:
    expected = np.asarray(trials) * share
    return bool(np.all(np.abs(np.asarray(hits) - expected) <= 3 * np.sqrt(expected * (1 - share)) + 1e-9))


@pytest.mark.parametrize("factor", [0.1, 0.5, 0.9])
def test_the_factor_is_the_share_that_goes(factor: float) -> None:
    assert within_three_sigma(int(kept(factor, "r", "file", np.arange(ROWS)).sum()), ROWS, 1 - factor)


def test_a_factor_of_one_leaves_nothing_and_of_zero_everything() -> None:
    positions = np.arange(1_000_000)
    assert not kept(1.0, "r", "file", positions).any()
    assert kept(0.0, "r", "file", positions).all()


def test_what_stays_at_one_factor_stays_at_a_smaller_one() -> None:
    positions = np.arange(ROWS)
    more, less = kept(0.3, "r", "file", positions), kept(0.6, "r", "file", positions)
    assert not (less & ~more).any() and less.sum() < more.sum()


def test_streams_and_files_choose_for_themselves() -> None:
    positions = np.arange(ROWS)
    here = kept(0.5, "r", "file", positions)
    for other in (kept(0.5, "s", "file", positions), kept(0.5, "r", "other", positions)):
        assert within_three_sigma(int((here == other).sum()), ROWS, 0.5)


def plan(where: str = "r.k = s.k") -> JoinPlan:
    streams = {name: StreamSchema(name, COLUMNS, "t", "s") for name in ("r", "s")}
    return plan_query(f"SELECT ONLINE r.id AS a, s.id AS b FROM r, s WHERE {where} WITHIN 10 SECONDS", streams)


def rows(count: int = ROWS, keys: Sequence[int | None] | None = None) -> pa.RecordBatch:
    ids = pa.array(np.arange(count))
    key = pa.array(np.arange(count) % KEYS) if keys is None else pa.array(keys, pa.int64())
    return pa.RecordBatch.from_arrays([ids, ids, key], schema=COLUMNS)


def take(
    factor: float, operator: Operator, given: pa.RecordBatch, slots: int = 2, where: str = "r.k = s.k"
) -> tuple[list[tuple[int, dict[str, Any]]], Punctuation]:
    """(unit, row) of every stored tuple, and the punctuation of the first slot."""
    router = Router(Intake(plan(where), R, lambda letters: None, shed_factor=factor), operator, slots)
    stored = []
    for routed in router.take(given, PIECE):
        tuples = Block.from_ipc(routed.block).rows.to_pylist()
        stored += [(unit, row) for unit, role in routed.targets if role & STORE for row in tuples]
    return stored, next(iter(router.punctuate(PIECE)))[2]


@pytest.mark.parametrize("operator", [Biclique(4, 3), Biclique(4, 3, Routing.HASH), Matrix(4, 1)], ids=str)
@pytest.mark.parametrize("factor", [0.5, 0.75])
def test_shares_of_keys_and_of_units_are_those_of_all_tuples(factor: float, operator: Operator) -> None:
    everything, _ = take(0.0, operator, rows())
    stored, _ = take(factor, operator, rows())
    for of in (lambda pair: pair[1]["k"], lambda pair: pair[0]):
        before = np.bincount([of(pair) for pair in everything])
        after = np.bincount([of(pair) for pair in stored], minlength=len(before))
        assert within_three_sigma(after, before, 1 - factor)


def test_slots_do_not_change_which_tuples_are_shed() -> None:
    ids = [sorted(row["id"] for _, row in take(0.4, Biclique(3, 2), rows(1_000), slots)[0]) for slots in (1, 2, 5)]
    assert ids[0] == ids[1] == ids[2] and 0 < len(ids[0]) < 1_000


# ---- what is counted --------------------------------------------------------------------------------------------


def test_shed_tuples_advance_marks_and_are_counted() -> None:
    stored, said = take(1.0, Biclique(2, 2), rows(500))
    assert stored == []
    assert (said.rows, said.ts_max_us, said.shed, said.counts["shed"]) == (500, 499_000_000, 500, 500)
    clock = StreamClock().advance([said], 0, 77)
    assert (clock.rows, clock.mark_us, clock.shed) == (500, 499_000_000, 500)
    assert StreamClock.from_json(clock.to_json()) == clock
    assert Punctuation.from_json(said.to_json()) == said


def test_only_tuples_that_could_have_joined_count_as_shed() -> None:
    given = rows(4, keys=[1, None, 1, 2])
    stored, said = take(1.0, Biclique(1, 1), given, where="r.k = s.k AND r.k < 2")
    counts = {name: said.counts.get(name, 0) for name in ("rows", "shed", "dropped_by_selection", "routed")}
    assert stored == [] and said.shed == 2
    assert counts == {"rows": 4, "shed": 2, "dropped_by_selection": 2, "routed": 0}


def test_without_shedding_nothing_is_dropped() -> None:
    stored, said = take(0.0, Biclique(2, 2), rows(2_000))
    assert sorted(row["id"] for _, row in stored) == list(range(2_000))
    assert said.shed == 0 and "shed" not in said.counts


def test_a_clock_from_before_there_was_shedding_says_nothing_was_shed() -> None:
    value = StreamClock(3, 4).to_json()
    del value["shed"]
    assert StreamClock.from_json(value) == StreamClock(3, 4)
