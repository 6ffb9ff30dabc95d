"""When a biclique gets more units or fewer: thresholds, confirmations, bounds; which units come, drain and leave."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from streamjoin.engine.routing import even_groups
from streamjoin.operators.adapting.members import Load, Member
from streamjoin.operators.biclique.scaling import Limits, UnitPlan, after, grown, released, shrunk
from streamjoin.plan.window import R, S

MINUTE_US = 60_000_000
LIMITS = Limits(1000, 1, 16)
AT_FIRST = UnitPlan.first([range(4)], [range(4, 8)])


def loads(plan: UnitPlan, share: float, other: float = 0.5) -> dict[int, Load]:
    """Every unit of R stores this share of its capacity, and every one of S another."""
    return {
        member.number: Load(10, round(1000 * (share, other)[side])) for side in (R, S) for member in plan.members(side)
    }


def rounds(shares: Sequence[float], limits: Limits = LIMITS, plan: UnitPlan = AT_FIRST) -> list[UnitPlan]:
    """The plan after each round, where R's units store these shares of their capacity one after the other."""
    found = [after(plan, 0, 0, {}, limits)]
    for number, share in enumerate(shares, 1):
        found.append(after(found[-1], number, number * MINUTE_US, loads(found[-1], share), limits))
    return found[1:]


def storing(plan: UnitPlan, side: int = R) -> int:
    return sum(map(len, plan.storing(side)))


def test_three_rounds_above_the_threshold_add_what_brings_the_target() -> None:
    assert [storing(plan) for plan in rounds([0.81] * 3)] == [4, 4, 6]
    (told,) = rounds([0.81] * 3)[-1].decisions
    assert (told.side, told.units, told.bytes, told.wish, told.added) == ("R", 4, 3240, 2, (8, 9))
    assert (told.batch, told.at_us, told.load) == (4, 3 * MINUTE_US, 0.81)


def test_three_rounds_below_the_threshold_drain_the_last_ones() -> None:
    found = rounds([0.29] * 3)[-1]
    assert found.storing(R) == [[0, 1]] and found.draining == [2, 3]
    assert found.decisions[-1].drained == (2, 3)


@pytest.mark.parametrize("share", [0.8, 0.3, 0.6])
def test_at_a_threshold_nothing_happens(share: float) -> None:
    assert not any(plan.number or plan.asked[R][0].times for plan in rounds([share] * 5))


def test_any_other_answer_begins_anew() -> None:
    assert not rounds([0.9, 0.9, 0.5, 0.9, 0.9])[-1].number
    assert not rounds([0.9, 0.9, 0.1, 0.9, 0.9])[-1].number
    assert rounds([0.9, 0.9, 0.5, 0.9, 0.9, 0.9])[-1].number == 1


def test_after_a_change_confirmations_begin_anew() -> None:
    assert [storing(plan) for plan in rounds([0.81] * 6)] == [4, 4, 6, 6, 6, 9]


def test_confirmations_are_part_of_what_is_kept() -> None:
    before = rounds([0.9, 0.9])[-1]
    again = UnitPlan.from_json(json.loads(json.dumps(before.to_json())))
    assert again == before and storing(after(again, 9, 3 * MINUTE_US, loads(again, 0.9), LIMITS)) == 6
    changed = rounds([0.9] * 3)[-1]
    assert UnitPlan.from_json(json.loads(json.dumps(changed.to_json()))) == changed


def test_rounds_keep_their_distance() -> None:
    often = AT_FIRST
    for number in range(20):
        often = after(often, number, number * MINUTE_US // 10, loads(often, 0.9), LIMITS)
    assert often.round_us == MINUTE_US and often.asked[R][0].times == 1


def test_nothing_is_decided_from_a_part_of_the_answers() -> None:
    plan = rounds([0.9, 0.9])[-1]
    missing: Mapping[int, Load | None] = {**loads(plan, 0.9), 3: None}
    void = after(plan, 9, 3 * MINUTE_US, missing, LIMITS)
    assert storing(void) == 4 and void.asked == plan.asked
    assert storing(after(void, 10, 4 * MINUTE_US, loads(void, 0.9), LIMITS)) == 6


def test_each_subgroup_is_decided_alone() -> None:
    plan = UnitPlan.first([range(2), range(2, 4)], [range(4, 6), range(6, 8)])
    hot = {number: Load(1, 900 if number < 2 else 500) for number in range(8)}
    for number in range(4):
        plan = after(plan, number, number * MINUTE_US, hot, LIMITS)
    assert plan.storing(R) == [[0, 1, 8], [2, 3]] and plan.storing(S) == [[4, 5], [6, 7]]


def test_bounds_hold_for_all_subgroups_together() -> None:
    assert [storing(plan) for plan in rounds([0.99] * 6, replace(LIMITS, most=5))] == [4, 4, 5, 5, 5, 5]
    assert storing(rounds([0.01] * 9, replace(LIMITS, least=3))[-1]) == 3
    assert storing(rounds([0.0] * 9)[-1]) == 1


@pytest.mark.parametrize(("limits", "wanted"), [({"least": 9}, [3, 3, 3]), ({"most": 3}, [1, 1, 1])])
def test_other_limits_are_come_into_by_all_subgroups(limits: dict[str, int], wanted: list[int]) -> None:
    """Also where loads ask for nothing, or for the other way."""
    for share in (0.5, 0.1 if "least" in limits else 0.9):
        plan = UnitPlan.first(even_groups(range(6), 3), even_groups(range(6, 12), 3))
        for number in range(13):
            plan = after(plan, number, number * MINUTE_US, loads(plan, share, share), replace(LIMITS, **limits))
        assert [[len(group) for group in plan.storing(side)] for side in (R, S)] == [wanted, wanted]


def test_what_a_limit_asks_for_is_confirmed_and_takes_nothing_away_without_a_window() -> None:
    assert [storing(plan) for plan in rounds([0.5] * 3, replace(LIMITS, least=6))] == [4, 4, 6]
    assert storing(rounds([0.5] * 9, replace(LIMITS, most=2, shrinks=False))[-1]) == 4


def test_without_a_window_units_are_only_added() -> None:
    forever = replace(LIMITS, shrinks=False)
    assert storing(rounds([0.01] * 9, forever)[-1]) == 4 and storing(rounds([0.9] * 3, forever)[-1]) == 6


def test_what_draining_units_have_counts_as_the_others_share() -> None:
    plan = rounds([0.29] * 3)[-1]
    # The four have 1160 of the two's 2000: within the thresholds, so nothing follows from what has not expired yet.
    for number in range(4, 10):
        plan = after(plan, number, number * MINUTE_US, loads(plan, 0.29), LIMITS)
    assert storing(plan) == 2 and plan.number == 1 and plan.asked[R][0].load == 0.58


def test_a_unit_leaves_once_it_was_empty_and_drained() -> None:
    plan = rounds([0.29] * 3)[-1]
    some = {**loads(plan, 0.29), 2: Load(0, 0)}
    found = released(plan, 5, 7, some)
    assert [member.number for member in found.members(R)] == [0, 1, 3] and found.decisions[-1].left == (2,)
    stores = {**loads(AT_FIRST, 0.5), 2: Load(0, 0)}
    assert released(AT_FIRST, 5, 7, stores) is AT_FIRST
    assert released(plan, 5, 7, {**some, 2: None}) is plan


def test_units_that_drain_come_back_before_new_ones_do_and_numbers_are_not_used_again() -> None:
    plan, going = shrunk(AT_FIRST, R, 0, 2)
    assert going == (2, 3)
    back, added = grown(plan, R, 0, 1, 6)
    assert added == (2,) and back.draining == [3]
    left = released(plan, 6, 7, {2: Load(0, 0), 3: Load(0, 0)})
    more, added = grown(left, R, 0, 2, 8)
    assert added == (8, 9) and more.groups[R][0][-1] == Member(9, 8) and more.end == 10


def test_the_first_unit_of_a_subgroup_stays() -> None:
    plan, going = shrunk(AT_FIRST, S, 0, 99)
    assert going == (5, 6, 7) and plan.storing(S) == [[4]]
    assert shrunk(plan, S, 0, 1) == (plan, ())


@pytest.mark.parametrize("seed", range(30))
def test_whatever_comes_and_goes_the_subgroups_stay_and_only_one_list_changes(seed: int) -> None:
    chosen = random.Random(seed)
    units = chosen.randint(1, 9), chosen.randint(1, 9)
    groups = chosen.randint(1, units[R]), chosen.randint(1, units[S])
    numbers = range(units[R]), range(units[R], sum(units))
    plan = UnitPlan.first(even_groups(numbers[R], groups[R]), even_groups(numbers[S], groups[S]))
    used = set(range(sum(units)))
    for batch in range(60):
        side = chosen.choice((R, S))
        group, before = chosen.randrange(groups[side]), plan
        act = chosen.choice((grown, shrunk, released))
        if act is grown:
            plan, added = grown(plan, side, group, chosen.randint(1, 3), batch)
            new = set(added) - set(before.draining)
            assert not new & used, "a number is used once"
            used |= new
        elif act is shrunk:
            plan, _ = shrunk(plan, side, group, chosen.randint(1, 3))
        else:
            plan = released(
                plan, batch, 0, {member: Load(0, 0) for member in chosen.sample(sorted(used), 3 % len(used))}
            )
        # A key's subgroup follows from how many there are, so none of them may go, or be without a unit that stores.
        assert (len(plan.groups[R]), len(plan.groups[S])) == groups
        assert all(stores for one in (R, S) for stores in plan.storing(one))
        all_of = [member.number for one in (R, S) for member in plan.members(one)]
        assert len(set(all_of)) == len(all_of), "a unit is in one subgroup"
        changed = {
            (one, place)
            for one in (R, S)
            for place in range(groups[one])
            if plan.storing(one)[place] != before.storing(one)[place]
        }
        assert changed <= ({(side, group)} if act is not released else set())
