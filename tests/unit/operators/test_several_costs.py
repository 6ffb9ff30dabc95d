"""What joins of three streams and more cost, by figures that were worked out by hand, and by counting."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

import pytest

from streamjoin.operators.costs.psp import StepTimes, partials, rate_per_s
from streamjoin.operators.costs.ring_lengths import load_of, ring_terms, ring_traffic
from streamjoin.operators.costs.several import (
    Cost,
    Known,
    Several,
    Share,
    cheapest_order,
    cheapest_trees,
    tree_count,
    ways_to_lose,
)
from streamjoin.plan.kinds import Join, Tree, streams_in

JOINS_ALONE = StepTimes(join=1.0, send=0.0, hop=0.0)
SENDS_ALONE = StepTimes(join=0.0, send=1.0, hop=0.0)


def of(*streams: int) -> frozenset[int]:
    return frozenset(streams)


def known(rate_per_s: float = 100.0, reach_s: float = 10.0) -> Known:
    return Known(rate_per_s, 20.0, reach_s, reach_s)


def chain(first: float, second: float, times: StepTimes = JOINS_ALONE, **keys: bool) -> Several:
    """a with b, b with c; these shares of pairs match."""
    shares = (Share(of(0, 1), first, first, **keys), Share(of(1, 2), second, second, **keys))
    return Several((known(),) * 3, shares, times)


def test_results_have_a_newest_part_and_others_in_reach() -> None:
    of_three = Several((known(10, 2), known(20, 3), known(30, 4)), (Share(of(0, 1), 0.5), Share(of(0, 1, 2), 0.1)))
    assert of_three.found_per_s(of(2)) == 30
    assert of_three.found_per_s(of(0, 1)) == pytest.approx(0.5 * (10 * 20 * 3 + 20 * 10 * 2))
    newest = 10 * (20 * 3) * (30 * 4) + 20 * (10 * 2) * (30 * 4) + 30 * (10 * 2) * (20 * 3)
    assert of_three.found_per_s(of(0, 1, 2)) == pytest.approx(0.05 * newest)
    assert of_three.found_per_s(of(1, 2)) == 20 * 30 * 4 + 30 * 20 * 3, "no condition is of these two alone"


@pytest.mark.slow
def test_results_are_as_many_as_a_nested_loop_finds() -> None:
    chosen = random.Random(1)
    rates, reaches, span = (3.0, 1.0, 2.0), (2.0, 5.0, 3.0), 100.0
    rows = [[(chosen.uniform(0, span), chosen.randrange(4)) for _ in range(int(rate * span))] for rate in rates]
    count = sum(
        a[1] == b[1]
        and b[1] == c[1]
        and all(max(a[0], b[0], c[0]) <= one[0] + reach for one, reach in zip((a, b, c), reaches, strict=True))
        for a, b, c in product(*rows)
    )
    several = Several(
        tuple(known(rate, reach) for rate, reach in zip(rates, reaches, strict=True)),
        (Share(of(0, 1), 0.25), Share(of(1, 2), 0.25)),
    )
    assert count / span == pytest.approx(several.found_per_s(of(0, 1, 2)), rel=0.15)


def test_an_equality_that_follows_from_others_counts_once() -> None:
    keys = [("a.k", "b.k"), ("b.k", "c.k"), ("a.k", "c.k")]
    pairs = [of(0, 1), of(1, 2), of(0, 2)]
    shares = tuple(Share(pair, 0.1, keys=key) for pair, key in zip(pairs, keys, strict=True))
    assert Several((known(),) * 3, shares).matching(of(0, 1, 2)) == pytest.approx(0.01)
    others = (*shares[:2], replace(shares[2], keys=("a.k", "c.j")))
    assert Several((known(),) * 3, others).matching(of(0, 1, 2)) == pytest.approx(0.001)


def test_a_stage_costs_what_it_stores_sends_and_looks_at() -> None:
    times = StepTimes(join=1.0, send=10.0, hop=0.0, insert=100.0, purge=200.0, probe=1000.0)
    streams = (Known(10, 20, 5, 6), Known(30, 40, 7, 8))
    by_hash = Several(streams, (Share(of(0, 1), 0.1, 0.2, by_hash=True),), times).stage(of(0), of(1), 3)
    pairs = 10 * 30 * 7 + 30 * 10 * 5
    assert Several((known(1, 2), known(1, 9)), ()).stored(of(0, 1)) == (2 + 9) * 9, (
        "as long as the part that waits longest"
    )
    assert by_hash == Cost(
        10 * 6 * 20 + 30 * 8 * 40, 10 * 30 * 8 + 30 * 10 * 6, pytest.approx(pairs * 0.2), 80,
        2 * (10 * 20 + 30 * 40), pytest.approx(40 * (300 + 2 * 10 + 1000) + pairs * 0.2),
        pytest.approx((300 + 2 * 10 + 1000) + pairs * 0.2 / 40),
    )  # fmt: skip
    met_by_all = Several(streams, (Share(of(0, 1), 0.1, 0.2),), times).stage(of(0), of(1), 3)
    assert met_by_all.sent_per_s == 40 * 4
    assert met_by_all.work_s - by_hash.work_s == pytest.approx(40 * 2 * (10 + 1000))


def test_a_row_has_met_all_after_a_hop_for_each_stage_and_the_work_that_its_units_share() -> None:
    """Streams of 10, 30 and 60 rows a second: a row of the last one enters at the second stage."""
    streams = tuple(Known(rate, 20, 5, 5) for rate in (10, 30, 60))
    tree: Tree = Join(Join(0, 1), 2)
    apart = Several(streams, (Share(of(0, 1), 1e-9), Share(of(1, 2), 1e-9)), StepTimes(join=0.0, send=0.0, hop=7.0))
    assert apart.tree(tree, 3).response_s == pytest.approx(7.0 * (0.4 * 2 + 0.6))
    work = Several(streams, apart.shares, StepTimes(join=1.0, send=0.0, hop=0.0))
    by_hash = Several(streams, tuple(replace(one, by_hash=True, looked_at=1.0) for one in apart.shares), work.times)
    for several, units in ((work, 3), (by_hash, 1)):
        cost = several.tree(tree, 3)
        assert cost.response_s == pytest.approx(cost.work_s / 100 / units) and cost.work_s > 100
    orders = ((1, 2), (0, 2), (1, 0))
    assert by_hash.ring(orders, (4, 4, 2)).response_s == pytest.approx(
        load_of(by_hash, orders).latency_s([4, 4, 2], work.times)
    )
    assert Several((known(0),) * 2, ()).stage(of(0), of(1), 2).response_s == 0.0


def test_a_ring_sends_more_than_it_gives_where_few_rows_match_and_nodes_are_many() -> None:
    """Of three equal streams N (1 + p) is sent and p squared found, for a row (section 4.3)."""
    orders = [(1, 2), (0, 2), (1, 0)]
    for matches, nodes, dominates in (
        (0.5, 4, True),
        (2.0, 1, False),
        (0.5, 1, False),
        (2.0, 2, True),
        (8.0, 7, False),
        (8.0, 8, True),
    ):
        shares = tuple(Share(of(*pair), matches / 500) for pair in ((0, 1), (1, 2)))
        several = Several((known(50, 10),) * 3, shares, StepTimes(join=10e-6, send=1e-6, hop=1e-3))
        found = ring_traffic(several, orders, nodes)
        assert (found.matching, found.sent) == pytest.approx((matches, nodes * (1 + matches)))
        assert found.found == pytest.approx(matches**2) and found.dominates == dominates
        met = several.met(0, (1, 2))
        assert found.rate_per_s == pytest.approx(rate_per_s(met, nodes, several.times))
    assert ring_traffic(Several((known(0),) * 3, shares), orders, 2).rate_per_s == 0.0


def test_a_tree_stores_and_sends_what_its_inner_joins_find() -> None:
    few, many = chain(0.001, 0.1), chain(0.1, 0.001)
    written: Tree = Join(Join(0, 1), 2)
    other: Tree = Join(0, Join(1, 2))
    found = few.found_per_s(of(0, 1))
    assert found == pytest.approx(0.001 * 2 * 100 * 1000)
    of_streams = 3 * 1000 * 20
    assert few.tree(written, 2).memory_bytes == pytest.approx(of_streams + found * 10 * 40)
    assert few.tree(written, 2).sent_per_s == pytest.approx(3 * (300 + found))
    assert few.tree(written, 2).work_s == pytest.approx(many.tree(other, 2).work_s)
    assert few.tree(written, 2).work_s < few.tree(other, 2).work_s


@pytest.mark.parametrize("streams", [3, 4, 5])
def test_the_cheapest_trees_are_those_of_all_there_are(streams: int) -> None:
    chosen = random.Random(streams)
    for _ in range(20):
        pairs = [pair for pair in product(range(streams), repeat=2) if pair[0] < pair[1]]
        shares = tuple(
            Share(frozenset(pair), chosen.choice([0.5, 0.01, 0.001]), chosen.choice([1.0, 0.6]), chosen.random() < 0.5)
            for pair in pairs
            if chosen.random() < 0.6
        )
        several = Several(tuple(known(chosen.uniform(1, 500), chosen.uniform(1, 20)) for _ in range(streams)), shares)
        every = {str(tree): tree for tree in all_trees(frozenset(range(streams)))}
        assert len(every) == tree_count(streams)
        work = sorted(several.tree(tree, 2).work_s for tree in every.values())
        cheapest = cheapest_trees(several, 2, 3)
        assert [cost.work_s for _, cost in cheapest] == pytest.approx(work[:3])
        assert all(str(tree) in every and several.tree(tree, 2) == near(cost) for tree, cost in cheapest)


def near(cost: Cost) -> Cost:
    return Cost(*(pytest.approx(getattr(cost, name)) for name in Cost.__slots__))


def all_trees(of: frozenset[int]) -> list[Tree]:
    if len(of) == 1:
        return list(of)
    first, *others = sorted(of)
    found: list[Tree] = []
    for bits in range((1 << len(others)) - 1):
        left = frozenset([first, *(one for place, one in enumerate(others) if bits >> place & 1)])
        found += [Join(one, other) for one in all_trees(left) for other in all_trees(of - left)]
    return found


def test_nine_streams_are_planned_in_a_second() -> None:
    shares = tuple(Share(of(one, one + 1), 0.001, 0.001, by_hash=True) for one in range(8))
    (tree, _), *_ = cheapest_trees(Several(tuple(known(10.0 ** (n % 3)) for n in range(9)), shares), 2, 3)
    assert streams_in(tree) == frozenset(range(9))
    assert tree_count(9) == 2_027_025


def test_attack_of_nine_streams_costs_are_made_of_the_cheapest_trees_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all pairs of trees there are 80 times as many, and a query of nine streams took its reader ten seconds."""
    made, count, add = 0, 5, Cost.__add__

    def counted(one: Cost, other: Cost) -> Cost:
        nonlocal made
        made += 1
        return add(one, other)

    monkeypatch.setattr(Cost, "__add__", counted)
    shares = tuple(Share(of(one, one + 1), 0.001, 0.001, by_hash=True) for one in range(8))
    found = cheapest_trees(Several((known(),) * 9, shares), 2, count)
    assert len(found) == count and 0 < made <= 2 * count * 2**9


def test_the_choice_flips_with_the_pair_that_finds_least() -> None:
    for times in (JOINS_ALONE, SENDS_ALONE):
        assert cheapest_trees(chain(0.001, 0.1, times), 2, 1)[0][0] == Join(Join(0, 1), 2)
        assert cheapest_trees(chain(0.1, 0.001, times), 2, 1)[0][0] == Join(0, Join(1, 2))
    assert cheapest_order(chain(0.001, 0.1), 1) == (0, 2)
    assert cheapest_order(chain(0.1, 0.001), 1) == (2, 0)


def test_a_ring_costs_what_equation_1_says() -> None:
    """Equal streams, each with a condition on each other one: L_PSP of every tuple that comes in."""
    shares = tuple(Share(of(*pair), 0.05) for pair in ((0, 1), (1, 2), (0, 2)))
    several = Several((known(100, 5),) * 3, shares, StepTimes(join=2.0, send=3.0, hop=0.0, insert=5.0, purge=7.0))
    met = several.met(0, (1, 2))
    assert partials(met) == pytest.approx((1, 25))
    assert several.met(0, (1, 2))[1].stored == 500
    cost = several.ring([(1, 2), (0, 2), (0, 1)], [4, 4, 4])
    assert cost.comparisons_per_s == pytest.approx(300 * (500 + 25 * 500))
    assert cost.sent_per_s == pytest.approx(300 * 4 * (1 + 25))
    assert cost.bytes_per_s == pytest.approx(300 * 4 * (20 + 25 * 40))
    assert cost.memory_bytes == 3 * 500 * 20
    assert cost.work_s == pytest.approx(300 * (5 + 4 * 7 + 2 * (500 + 25 * 500) + 3 * 4 * 26))


def test_a_stream_in_fewer_nodes_is_sent_less() -> None:
    several = chain(0.001, 0.001, SENDS_ALONE)
    orders = [(2, 1), (0, 2), (0, 1)]
    # Rows also go to the nodes that may keep them: b's to one more than it has, as a's do not.
    assert several.ring(orders, [4, 4, 4]).sent_per_s == pytest.approx(100 * (4 + 1000 * 4 + 4 + 4 + 4 + 1000 * 4))
    assert several.ring(orders, [4, 1, 4]).sent_per_s == pytest.approx(100 * (4 + 1000 + 4 + 4 + 4 + 1000))


def test_a_ring_is_as_long_as_its_latency_is_lowest() -> None:
    """The figures of three equal streams that PSP's best length was worked out for; see test_psp_costs."""
    times = StepTimes(join=10e-6, send=1e-6, hop=1e-3)
    shares = tuple(Share(of(*pair), 0.1) for pair in ((0, 1), (1, 2), (0, 2)))
    # A pair with both others would match a hundredth: the third condition is not on its own in a round.
    several = Several((known(50, 10),) * 3, shares[:2], times)
    orders = [(1, 2), (0, 2), (1, 0)]
    for met in (several.met(0, (1, 2)), several.met(1, (0, 2)), several.met(2, (1, 0))):
        assert [(one.stored, one.selectivity) for one in met] == [(500, pytest.approx(0.1))] * 2
    terms = ring_terms(several, orders, 30)
    assert terms.bounds == pytest.approx((9.23, 23.09), rel=2e-3)
    assert (terms.best, terms.lengths) == (9, (9, 9, 9))
    assert terms.latency_s == pytest.approx(0.0324, rel=2e-3)
    assert terms.bandwidth_bytes_per_s == pytest.approx(20 / (10e-6 * 500 / 9))
    assert ring_terms(several, orders, 4).lengths == (4, 4, 4)


def test_lengths_are_worked_out_one_stream_after_the_other() -> None:
    """The stream with the lowest lambda W S first, b: while others are not known they count as it (section 5.4)."""
    times = StepTimes(join=10e-6, send=1e-3, hop=1e-4)
    several = Several((known(50), known(0.2), known(50)), (Share(of(0, 1), 0.5), Share(of(1, 2), 0.05)), times)
    orders = [(1, 2), (0, 2), (1, 0)]
    terms = ring_terms(several, orders, 20)
    assert (terms.best, terms.lengths) == (5, (2, 5, 6))
    assert load_of(several, orders).latency_s(terms.lengths, times) < terms.latency_s
    assert terms.latency_s == pytest.approx(load_of(several, orders).latency_s([5, 5, 5], times))


def test_what_would_have_to_change_is_found() -> None:
    several = chain(0.001, 0.004)
    trees = {"written": Join(Join(0, 1), 2), "other": Join(0, Join(1, 2))}
    ways = list(ways_to_lose(several, trees, 2, (2, 8)))
    assert (None, 0, 8, "other") in ways
    assert all(name == "other" for *_, name in ways)
    assert not list(ways_to_lose(several, {"written": trees["written"]}, 2, (8,)))
