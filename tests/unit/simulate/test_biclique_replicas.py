"""Replicas in opposite units: machines are lost, disks and all, and the join stays exact (BiStream, section 3.5)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import combinations

import pytest

from simulate.biclique import Arrival, Cluster, Protections, Setting, Window, routed_by, spread
from simulate.biclique.messages import Plan, Role, StreamTuple
from simulate.biclique.replicas import ReplicatedUnit, home_of
from simulate.network import Earliest, Network, Scheduler, Shuffled
from streamjoin.operators.biclique import Biclique, Routing
from streamjoin.plan.window import R, S
from tests.unit.simulate.seeds import told

pytestmark = pytest.mark.slow

FOUR = spread(["R0", "R1"], ["S0", "S1"], ([], []))
SIX = spread(["R0", "R1", "R2"], ["S0", "S1", "S2"], ([], []))


def history(seed: int, each: int, keys: int = 2, span_us: int = 30_000) -> list[Arrival]:
    """So many tuples of each stream, of any keys and at any times."""
    rng = random.Random(seed)
    arrivals = [
        Arrival(rng.randrange(span_us), side, number, rng.randrange(keys)) for side in (R, S) for number in range(each)
    ]
    return sorted(arrivals, key=lambda arrival: arrival.at_us)


def joined(arrivals: Sequence[Arrival], width_us: int | None = None) -> list[tuple[int, int]]:
    return sorted(
        (r.number, s.number)
        for r in arrivals
        for s in arrivals
        if (r.side, s.side) == (R, S) and r.key == s.key and (width_us is None or abs(r.at_us - s.at_us) <= width_us)
    )


def cluster_of(
    arrivals: Sequence[Arrival],
    plan: Plan = FOUR,
    replicas: int = 1,
    protections: Protections | None = None,
    window: Window | None = None,
    scheduler: Scheduler | None = None,
    delay_us: Callable[..., int] = lambda sender, receiver, message: 300,
) -> Cluster:
    network = Network(scheduler or Earliest(), delay_us)
    setting = Setting(plan, protections=protections or Protections(), replicas=replicas, window=window)
    return Cluster(network, setting, arrivals)


def go_on(cluster: Cluster, steps: int) -> None:
    goal = cluster.network.steps + steps
    cluster.network.run(until=lambda: cluster.network.steps >= goal)


def units(cluster: Cluster) -> dict[str, ReplicatedUnit]:
    return {name: unit for name, unit in cluster.units.items() if isinstance(unit, ReplicatedUnit)}


def check_whole(cluster: Cluster, replicas: int) -> None:
    """Each tuple is stored once, and held by as many others as are to hold it."""
    stored = {identity: unit.copies[identity] for unit in units(cluster).values() for identity in unit.state.stored}
    assert sum(len(unit.state.stored) for unit in cluster.units.values()) == len(stored)
    for name, unit in units(cluster).items():
        duties = {identity for identity, copy in stored.items() if copy.home is not None and name in copy.home.holders}
        assert set(unit.held) == duties, name
        assert unit.is_whole
    assert all(len(copy.home.holders) == replicas for copy in stored.values() if copy.home is not None)


def lost_at(step: int, names: Sequence[str], cluster: Cluster, *, disk: bool = True, lose_waiting: bool = True) -> None:
    """Lose machines after so many steps, start them again a few steps later one by one, and go on to the end."""
    go_on(cluster, step)
    for name in names:
        cluster.lose(name, disk=disk, lose_waiting=lose_waiting)
    for name in names:
        go_on(cluster, step % 7)
        cluster.recover(name)
    cluster.network.run()


def steps_of(cluster: Cluster) -> int:
    cluster.network.run()
    return cluster.network.steps


@pytest.mark.parametrize("name", ["R0", "S1"])
@pytest.mark.parametrize("lose_waiting", [True, False])
def test_a_machine_is_lost_at_any_step_and_rebuilt(name: str, lose_waiting: bool) -> None:
    arrivals = history(9, 6)
    back = 0
    for step in range(steps_of(cluster_of(arrivals)) + 1):
        cluster = cluster_of(arrivals)
        lost_at(step, [name], cluster, lose_waiting=lose_waiting)
        with told(step, cluster.network):
            assert cluster.pairs == joined(arrivals)
            assert cluster.waiting == 0 and cluster.network.waiting() == 0
            check_whole(cluster, 1)
        back += len(units(cluster)[name]._given_back)
    assert back > 0, "nothing came from a replica"


def test_as_many_machines_as_there_are_replicas_are_lost_at_once() -> None:
    arrivals = history(4, 8)
    steps = steps_of(cluster_of(arrivals, SIX, 2))
    pairs = list(combinations(SIX.units, 2))
    for number, step in enumerate(range(0, steps + 1, 5)):
        cluster = cluster_of(arrivals, SIX, 2)
        lost_at(step, pairs[number % len(pairs)], cluster)
        with told(step, cluster.network):
            assert cluster.pairs == joined(arrivals)
            check_whole(cluster, 2)


def test_one_machine_more_than_there_are_replicas_loses_tuples() -> None:
    arrivals = history(4, 8)
    wrong = 0
    for step in range(60, 160, 10):
        cluster = cluster_of(arrivals)
        lost_at(step, ["R0", "S0", "S1"], cluster)
        wrong += cluster.pairs != joined(arrivals)
    assert wrong > 0


def test_a_power_failure_of_all_machines_leaves_their_disks() -> None:
    arrivals = history(5, 6)
    for step in range(0, steps_of(cluster_of(arrivals)) + 1, 3):
        cluster = cluster_of(arrivals)
        lost_at(step, FOUR.units, cluster, disk=False)
        with told(step, cluster.network):
            assert cluster.pairs == joined(arrivals)
            check_whole(cluster, 1)


def run_losses(seed: int, protections: Protections | None = None) -> tuple[Cluster, list[tuple[int, int]]]:
    """One machine after the other is lost, each once the one before is whole again, under any schedule."""
    rng = random.Random(seed)
    arrivals = history(seed, rng.randint(4, 14), rng.randint(1, 3))
    plan, replicas = rng.choice([(FOUR, 1), (SIX, 1), (SIX, 2), (SIX, 3)])
    cluster = cluster_of(arrivals, plan, replicas, protections, scheduler=rng.choice([Earliest(), Shuffled(seed)]))
    for _ in range(rng.randint(1, 4)):
        go_on(cluster, rng.randrange(120))
        names = rng.sample(plan.units, replicas)
        for name in names:
            cluster.lose(name, disk=rng.random() < 0.7, lose_waiting=rng.random() < 0.5)
            go_on(cluster, rng.randrange(20))
        for name in names:
            cluster.recover(name)
            go_on(cluster, rng.randrange(20))
        settle(cluster)
    cluster.network.run()
    return cluster, joined(arrivals)


def settle(cluster: Cluster) -> None:
    """Until all that was lost is back, and in its holders."""

    def is_settled() -> bool:
        return all(unit.is_whole for unit in units(cluster).values()) and not any(
            cluster.network.waiting(name) for name in cluster.units
        )

    cluster.network.run(until=is_settled)


@pytest.mark.parametrize(
    "seeds", [range(40), pytest.param(range(40, 500), marks=pytest.mark.soak)], ids=["few", "some"]
)
def test_losses_one_after_the_other_under_any_schedule(seeds: range) -> None:
    for seed in seeds:
        cluster, expected = run_losses(seed)
        with told(seed, cluster.network):
            assert cluster.pairs == expected
            assert cluster.waiting == 0 and cluster.network.waiting() == 0


WIDTH_US = 4_000


def with_window(seed: int, step: int, protections: Protections | None = None) -> tuple[Cluster, list[tuple[int, int]]]:
    """A unit is away for a while, and what it has to catch up with is older than what the others let go."""
    arrivals = history(seed, 60, span_us=120_000)
    cluster = cluster_of(arrivals, protections=protections, window=Window(WIDTH_US, 1_000))
    go_on(cluster, step)
    cluster.lose("R0", disk=True)
    begun_us = cluster.network.now_us
    cluster.network.run(until=lambda: cluster.network.now_us > begun_us + 40_000)
    cluster.recover("R0")
    cluster.network.run()
    return cluster, joined(arrivals, WIDTH_US)


def test_replicas_go_when_what_they_are_of_goes() -> None:
    arrivals = history(1, 400, span_us=800_000)
    cluster = cluster_of(arrivals, window=Window(WIDTH_US, 1_000))
    cluster.network.run()
    assert cluster.pairs == joined(arrivals, WIDTH_US)
    stored, held = (
        max(getattr(unit, name) for unit in units(cluster).values()) for name in ("stored_most", "held_most")
    )
    assert 0 < held < 40 and 0 < stored < 40, "of 400"
    assert max(dispatcher.output_most for dispatcher in cluster.dispatchers) < 30


def test_with_a_window_a_rebuilt_unit_finds_what_it_missed() -> None:
    for seed in range(12):
        cluster, expected = with_window(seed, 100 + 40 * seed)
        with told(seed, cluster.network):
            assert cluster.pairs == expected


@pytest.mark.parametrize(
    "protections",
    [Protections(restored_in_order=False), Protections(numbered_results=False)],
    ids=["given back out of order", "results without places"],
)
def test_what_breaks_it_is_detected(protections: Protections) -> None:
    for seed in range(150):
        cluster, _ = run_losses(seed, protections)
        if len(cluster.pairs) > len(set(cluster.pairs)):
            return
    raise AssertionError("no pair was found twice")


@pytest.mark.parametrize("after", [True, False])
def test_holders_are_asked_once_dispatchers_have_answered(after: bool) -> None:
    """A holder that is asked at the same time has not processed the tuple yet, and the dispatcher is asked too late."""
    cluster, expected = run_losses(352, Protections(restored_after_resumed=after))
    assert (cluster.pairs == expected) is after


@pytest.mark.parametrize("together", [True, False])
def test_a_tuple_is_kept_upstream_until_its_holders_have_it_too(together: bool) -> None:
    """The unit that stores it is lost while its holders, which are far from dispatchers, have not heard of it."""
    arrivals = history(9, 6)

    def far(sender: str, receiver: str, message: object) -> int:
        return 30_000 if sender.startswith("y") and receiver.startswith("S") else 300

    protections = Protections(safe_with_replicas=together)
    lost = 0
    for step in range(0, 200, 4):
        cluster = cluster_of(arrivals, protections=protections, delay_us=far)
        lost_at(step, ["R0"], cluster)
        lost += not set(joined(arrivals)) <= set(cluster.pairs)
    assert (lost == 0) is together


def test_replicas_that_their_holders_let_go_are_missing() -> None:
    lost = 0
    for seed in range(40):
        cluster, expected = with_window(seed, 100 + 40 * (seed % 12), Protections(expired_by_primary=False))
        lost += not set(expected) <= set(cluster.pairs)
    assert lost > 0


@pytest.mark.parametrize(("routing", "most"), [(Routing.HASH, 1), (Routing.CONTRAND, 2), (Routing.RANDOM, 4)])
def test_there_are_as_many_candidates_as_units_that_join_a_tuple(routing: Routing, most: int) -> None:
    groups = {"r_groups": 2, "s_groups": 2} if routing is Routing.CONTRAND else {}
    plan = routed_by(Biclique(4, 4, routing, **groups))
    item = StreamTuple(R, 3, 7, 0)
    homes = home_of(item, plan.assign(item), most, "y0")
    assert len(set(homes.holders)) == most and homes.primary not in homes.holders
    counted = f"{most} opposite unit{'s' if most > 1 else ''}"
    with pytest.raises(ValueError, match=f"sent to {counted}, so there cannot be {most + 1} replicas"):
        home_of(item, plan.assign(item), most + 1, "y0")
    assert [role for _, role in plan.assign(item)].count(Role.STORE) == 1


def test_holders_share_the_replicas() -> None:
    counts = dict.fromkeys(FOUR.units, 0)
    for number in range(2_000):
        item = StreamTuple(R, number, 0, 0)
        (holder,) = home_of(item, FOUR.assign(item), 1, "y0").holders
        counts[holder] += 1
    assert counts["R0"] == counts["R1"] == 0 and min(counts["S0"], counts["S1"]) > 900
    assert StreamTuple(S, 0, 0, 0).side == S
