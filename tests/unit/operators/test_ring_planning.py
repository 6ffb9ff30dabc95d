"""When a ring gets more nodes or fewer, in which way, and where its slices end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from streamjoin.operators.adapting.members import Load, Member
from streamjoin.operators.costs.psp import StepTimes, best_length, ring_s
from streamjoin.operators.ring.measured import Rates
from streamjoin.operators.ring.planning import (
    AGGRESSIVE,
    NOTHING,
    PASSIVE,
    Objective,
    RingLimits,
    RingPlan,
    Seen,
    Stored,
    after,
    ends_us,
    grown,
    level_ends_us,
    needed,
    released,
    settled,
    shrunk,
    wished,
)

SECOND_US = 1_000_000
REACHES_US = (10 * SECOND_US,) * 3
TIMES = StepTimes(join=10e-6, send=1e-6, hop=1e-3)
LIMITS = RingLimits(1, 40, TIMES, every_us=SECOND_US)


def rates(rows_per_s: float, stored: float, selectivity: float) -> Rates:
    """Three streams that are alike, whose rows meet so many of each other stream, of which this share matches."""
    compared = rows_per_s * stored, rows_per_s * stored * selectivity * stored
    found = rows_per_s * stored * selectivity, rows_per_s * (stored * selectivity) ** 2
    return Rates((rows_per_s,) * 3, (compared,) * 3, (found,) * 3)


def test_rates_that_were_seen_give_the_formulas_what_they_ask_for() -> None:
    known = rates(7.0, 500, 0.1)
    for met in known.met:
        assert [(one.stored, one.selectivity) for one in met] == pytest.approx([(500, 0.1), (500, 0.1)])
        assert known.best(TIMES, 40) == best_length(met, TIMES, 40) == 9  # item by item what section 5.2 gives
        assert known.busy(TIMES, 4) == pytest.approx(3 * 7 * ring_s(met, [4, 4], TIMES, 4) / 4)
    assert Rates.from_json(json.loads(json.dumps(known.to_json()))) == known


def test_a_round_that_nothing_reached_costs_nothing() -> None:
    known = Rates((5.0,) * 3, ((20.0, 0.0),) * 3, ((0.0, 0.0),) * 3)
    assert [(one.stored, one.selectivity) for one in known.met[0]] == [(4.0, 0.0), (0.0, 0.0)]
    nothing = Rates((0.0,) * 3, ((0.0, 0.0),) * 3, ((0.0, 0.0),) * 3)
    assert nothing.best(TIMES, 9) == 1 and nothing.busy(TIMES, 3) == 0.0


def test_the_newest_round_has_its_weight_in_the_mean() -> None:
    mean = rates(10.0, 100, 0.1).smoothed(rates(20.0, 100, 0.1), 0.3)
    assert mean.rows == pytest.approx((13.0,) * 3)
    assert mean.compared[0] == pytest.approx(rates(13.0, 100, 0.1).compared[0])


def test_nodes_that_are_too_busy_get_others_at_once_and_a_better_number_has_time() -> None:
    calm = rates(1.0, 500, 0.1)  # N* is 9, and nine of them have little to do
    assert [wished(calm, nodes, LIMITS) for nodes in (7, 8, 9, 10, 11)] == [
        (2, PASSIVE), (0, ""), (0, ""), (0, ""), (-2, PASSIVE),
    ]  # fmt: skip
    wild = rates(8.0, 500, 0.1)
    assert wild.busy(TIMES, 7) > LIMITS.high
    nodes = needed(wild, LIMITS)
    assert wild.busy(TIMES, nodes) <= LIMITS.target < wild.busy(TIMES, nodes - 1)
    assert wished(wild, 7, LIMITS) == (nodes - 7, AGGRESSIVE) and nodes > 9
    # N* is 9, and so few would be too busy.
    assert wished(wild, nodes + 3, LIMITS) == (-3, PASSIVE)
    assert wished(wild, 7, replace(LIMITS, most=7)) == (0, "")
    # Nodes that work more than the target, and less than is too much, are no reason for more where N* is not.
    known = rates(10.0, 500, 0.1)
    assert LIMITS.target < known.busy(TIMES, 12) < LIMITS.high
    assert needed(known, LIMITS) > 12 > known.best(TIMES, 40) + 1
    assert wished(known, 12, LIMITS) == (0, PASSIVE)
    # Limits that became others at a later start.
    assert wished(calm, 9, replace(LIMITS, least=10)) == (1, PASSIVE)
    assert wished(calm, 9, replace(LIMITS, most=8)) == (-1, PASSIVE)


def seen(second: int, rows_per_s: int, marks_us: Sequence[int | None] | None = None, **how: object) -> Seen:
    """What there is after so many seconds of equal rates."""
    known = rates(rows_per_s, 500, 0.1)
    marks = marks_us or (second * SECOND_US,) * 3
    of_a_second = known.compared, known.found
    return replace(Seen((rows_per_s * second,) * 3, tuple(marks), *of_a_second, {}, (NOTHING,) * 3), **how)  # type: ignore[arg-type]


def rounds(rows_per_s: int, seconds: int, limits: RingLimits = LIMITS, nodes: int = 7) -> list[RingPlan]:
    """The plan after each second, of a ring that begins with so many nodes."""
    found = [after(RingPlan.first(nodes, REACHES_US), 0, 0, seen(0, 0, (None,) * 3), REACHES_US, limits)]
    for second in range(1, seconds + 1):
        found.append(after(found[-1], second, second * SECOND_US, seen(second, rows_per_s), REACHES_US, limits))
    return found[1:]


def test_three_rounds_in_a_row_change_the_number_and_no_other_change_comes_in_a_window() -> None:
    calm = rounds(1, 30)
    assert [len(plan.storing) for plan in calm] == [7, 7] + [9] * 28
    (told,) = calm[-1].decisions
    assert (told.batch, told.at_us, told.wish, told.added, told.way) == (4, 3 * SECOND_US, 2, (7, 8), PASSIVE)
    assert calm[2].earlier_us == RingPlan.first(7, REACHES_US).ends_us
    few = replace(LIMITS, most=9)
    later = rounds(1, 4, few)[-1]
    busy = [later]
    for second in range(5, 30):
        busy.append(after(busy[-1], second, second * SECOND_US, seen(second, 20), REACHES_US, LIMITS))
    grew = next(number for number, plan in enumerate(busy) if len(plan.storing) > 9)
    assert busy[grew].decisions[-1].at_us > 3 * SECOND_US + REACHES_US[0]
    assert busy[grew].way == AGGRESSIVE and busy[grew].earlier_us is None and busy[grew].since == 5 + grew


def test_other_answers_begin_anew_and_what_was_asked_is_kept() -> None:
    two = rounds(1, 2)[-1]
    again = RingPlan.from_json(json.loads(json.dumps(two.to_json())))
    assert again == two and (again.asked.times, again.asked_way) == (2, PASSIVE)
    third = after(again, 3, 3 * SECOND_US, seen(3, 1), REACHES_US, LIMITS)
    assert len(third.storing) == 9
    assert RingPlan.from_json(json.loads(json.dumps(third.to_json()))) == third
    # So many rows at once are too many, which is another answer.
    other = after(again, 3, 3 * SECOND_US, seen(3, 200), REACHES_US, LIMITS)
    assert (other.asked.times, other.asked_way, len(other.storing)) == (1, AGGRESSIVE, 7)


def test_nothing_changes_before_every_stream_has_begun_and_rounds_keep_their_distance() -> None:
    plan = rounds(1, 2)[-1]
    quiet = after(plan, 3, 3 * SECOND_US, seen(3, 1, (1, None, 1)), REACHES_US, LIMITS)
    assert len(quiet.storing) == 7
    soon = after(plan, 3, 2 * SECOND_US + 1, seen(3, 1), REACHES_US, LIMITS)
    assert soon.round_us == plan.round_us and soon.compared != plan.compared
    assert not settled(plan, (None, 1, 1), REACHES_US)


def test_what_was_counted_between_two_rounds_counts() -> None:
    limits = replace(LIMITS, every_us=2 * SECOND_US)
    often = rounds(1, 4, limits)
    assert often[-1].rates is not None
    assert often[-1].rates.rows == pytest.approx((1.0,) * 3)
    assert often[-1].rates.compared[0] == pytest.approx(rates(1.0, 500, 0.1).compared[0])


@pytest.mark.parametrize("nodes", range(1, 8))
@pytest.mark.parametrize("more", range(1, 8))
def test_new_nodes_stand_where_what_shifts_fills_them(nodes: int, more: int) -> None:
    plan = RingPlan.first(nodes, REACHES_US)
    members, end, came = grown(plan, more, AGGRESSIVE, 5)
    order = [member.number for member in members]
    assert (
        sorted(order) == list(range(nodes + more)) and came == tuple(range(nodes, nodes + more)) and end == nodes + more
    )
    assert [number for number in order if number < nodes] == list(range(nodes))
    # In units of a new slice, as much moves past the new nodes behind old node i as the paper says, and less than one.
    for old in range(1, nodes):
        past = Fraction(old * (nodes + more), nodes) - order.index(old)
        assert past == Fraction(old * more, nodes) % 1
    back, _, went = shrunk(replace(plan, nodes=members), more, AGGRESSIVE)
    assert went == tuple(number for number in order if number >= nodes)
    assert [member.number for member in back if not member.drains] == list(range(nodes))


def test_three_nodes_and_two_more_are_those_of_the_paper() -> None:
    members, _, _ = grown(RingPlan.first(3, REACHES_US), 2, AGGRESSIVE, 5)
    assert [member.number for member in members] == [0, 1, 3, 2, 4]
    passive, _, _ = grown(RingPlan.first(3, REACHES_US), 2, PASSIVE, 5)
    assert [(member.number, member.since) for member in passive] == [(0, 0), (1, 0), (2, 0), (3, 5), (4, 5)]


def test_what_drains_comes_back_first_and_the_first_node_always_stays() -> None:
    plan = RingPlan.first(3, REACHES_US)
    members, _, going = shrunk(plan, 5, PASSIVE)
    assert going == (1, 2)
    less = replace(plan, nodes=members)
    members, end, back = grown(less, 3, PASSIVE, 9)
    assert back == (1, 2, 3) and end == 4 and members == (Member(0), Member(1), Member(2), Member(3, 9))
    assert shrunk(RingPlan.first(1, REACHES_US), 1, AGGRESSIVE)[2] == ()


def test_a_node_leaves_once_it_has_nothing_and_nothing_is_on_its_way_to_it() -> None:
    plan = replace(RingPlan.first(2, REACHES_US), nodes=(Member(0), Member(1, drains=True)))
    assert released(plan, 4, 0, {0: Load(9, 9), 1: Load(1, 0)}) == plan
    assert released(plan, 4, 0, {0: Load(9, 9)}) == plan  # it did not answer
    left = released(plan, 4, 0, {0: Load(9, 9), 1: Load(0, 0)})
    assert left.nodes == (Member(0),) and left.decisions[-1].left == (1,) and left.end == 2


def test_for_the_output_rate_all_nodes_are_asked_for_and_for_latency_those_that_are_best() -> None:
    calm = rates(0.5, 500, 0.1)
    for_rate = replace(LIMITS, objective=Objective.RATE)
    assert calm.best(TIMES, 40) == 9
    assert wished(calm, 9, LIMITS) == (0, "") and wished(calm, 9, for_rate) == (31, PASSIVE)
    # N* may be off by one, and all of them may not.
    assert wished(calm, 8, LIMITS) == (0, "") and wished(calm, 39, for_rate) == (1, PASSIVE)
    assert wished(calm, 40, for_rate) == (0, "") and wished(calm, 40, LIMITS) == (-31, PASSIVE)
    assert wished(calm, 40, replace(for_rate, most=12)) == (-28, PASSIVE)
    # Nodes that are too busy do not wait for theirs.
    assert wished(rates(700.0, 500, 0.1), 9, for_rate)[1] == AGGRESSIVE


def test_slices_have_as_many_rows_each() -> None:
    young = Stored(np.array([900, 0]), np.array([1_000, 899]), np.array([300, 100]))
    assert level_ends_us(young, 1_000, 4) == (33, 66, 100)
    assert level_ends_us(young, 1_000, 1) == () and level_ends_us(NOTHING, 1_000, 4) == ()
    # Rows that are newer than what the others have seen.
    assert level_ends_us(young, 900, 2) == (-33,)


def test_nodes_have_as_many_rows_of_all_streams_where_one_is_ten_times_as_fast() -> None:
    ages_us = np.arange(100) * SECOND_US // 10
    mark_us = 10 * SECOND_US
    rows = [np.full(100, rate) for rate in (1, 10, 1)]
    # The fast stream has come in bursts, of which equal slices would know nothing.
    rows[1][50:] = 30
    stored = tuple(Stored(mark_us - ages_us - SECOND_US // 10, mark_us - ages_us, one) for one in rows)
    ends = ends_us(4, seen(1, 1, (mark_us,) * 3, stored=stored), REACHES_US)
    totals = sum(
        np.bincount(np.searchsorted(of_stream, ages_us + SECOND_US // 20), weights=one, minlength=4)
        for of_stream, one in zip(ends, rows, strict=True)
    )
    assert np.abs(totals / np.mean(totals) - 1).max() < 0.1
    equal = np.bincount(np.searchsorted(np.arange(1, 4) * 25, np.arange(100), side="right"), weights=sum(rows))
    assert np.abs(equal / np.mean(equal) - 1).max() > 0.3


def test_slices_are_equal_where_a_window_has_few_rounds() -> None:
    plan = replace(RingPlan.first(2, REACHES_US), round_us=0, marks_us=(0,) * 3, rows=(0,) * 3)
    dense = Stored(np.array([9 * SECOND_US]), np.array([10 * SECOND_US]), np.array([100]))
    for took, even in ((SECOND_US, False), (2 * SECOND_US, True)):
        now = seen(1, 1, (10 * SECOND_US,) * 3, stored=(dense,) * 3)
        before = replace(plan, marks_us=(10 * SECOND_US - took,) * 3)
        ends = after(before, 1, SECOND_US, now, REACHES_US, LIMITS).ends_us
        assert ends == (((5 if even else 0.5) * SECOND_US,),) * 3
