"""SplitJoin after the crash of a core: what is lost, and that the rest goes on; a chain of cores for contrast."""

from __future__ import annotations

import random

import pytest

from simulate.network import Earliest, Network, Shuffled
from simulate.splitjoin import check
from simulate.splitjoin.chain import Chain
from simulate.splitjoin.messages import End, Ordering, Precision, Star
from simulate.splitjoin.system import SplitJoin
from simulate.splitjoin.window import CountWindow
from tests.unit.simulate.seeds import told
from tests.unit.simulate.splitjoin_runs import R, always, expected, group_rows, history, messages, processed, sequence

pytestmark = pytest.mark.slow

ORDERINGS = [Precision(each) for each in Ordering] + [
    Precision(Ordering.OUTER, tuples_per_star=3),
    Precision(Ordering.INNER, rows_per_star=2),
]
EVERYTHING = CountWindow(1_000)


def _after_crash(precision: Precision, dead: int, close: bool = True, cores: int = 4) -> tuple[SplitJoin, set, set]:
    """A run whose core crashes in a quiet moment: the run, the pairs that are missing, and those that should be."""
    inputs = sequence("RS" * 12)
    run = SplitJoin(Earliest(), cores, EVERYTHING, always, precision)
    run.feed(inputs[:13])
    run.network.run()
    if close:
        run.crash_core(dead)
    else:
        for name in (run.cores[dead], f"{run.cores[dead]} left", f"{run.cores[dead]} right"):
            run.network.crash(name, lose_waiting=True)
    run.feed([*inputs[13:], End()])
    run.network.run()
    place = {(each.stream, each.number): each.position for each in run.source.sequence}
    pairs = expected(inputs, EVERYTHING, always)
    lost = {
        (r, s)
        for r, s in pairs
        for newer, older in [((r, place[R, r]), (s, place[R.opposite, s]))]
        if max(newer[1], older[1]) >= 13 and (older[0] if older[1] < newer[1] else newer[0]) % cores == dead
    }
    return run, set(pairs) - set(run.pairs), lost


@pytest.mark.parametrize("precision", ORDERINGS)
@pytest.mark.parametrize("dead", [0, 2, 3])
def test_lost_are_exactly_the_pairs_with_a_partner_that_the_dead_core_stored_or_should_have(
    precision: Precision, dead: int
) -> None:
    run, missing, lost = _after_crash(precision, dead)
    assert missing == lost and missing and run.ended
    assert len(run.pairs) == len(set(run.pairs))
    output = messages(run)
    if precision.ordering is not Ordering.NONE:
        assert check.outer_order(output, precision.tuples_per_star) == []
        assert check.stars_divide(output, processed(sequence("RS" * 12)), precision.tuples_per_star) == []
    if precision.by_partner:
        assert check.inner_order(output, group_rows(run)) == []
    if precision.ordering is Ordering.TOTAL:
        assert check.total_order(output) == []


def test_mergers_wait_for_ever_for_a_dead_cores_star_if_its_port_stays_open() -> None:
    run, missing, lost = _after_crash(Precision(), 2, close=False)
    assert not run.ended and missing > lost, "more is missing than the dead core's pairs"


def _crash_anywhere(seed: int) -> None:
    random_ = random.Random(seed)
    precision, cores = random_.choice(ORDERINGS), random_.randint(2, 5)
    inputs, dead = history(random_, 11), random_.randrange(cores)
    run = SplitJoin(
        Shuffled(seed),
        cores,
        CountWindow(5),
        always,
        precision,
        fan_in=random_.choice([2, 3]),
        buffer=random_.choice([None, 1]),
    )
    run.feed([*inputs, End()])
    at = random_.randrange(500)
    run.network.run(until=lambda: run.network.steps >= at)
    entered = len(run.source.sequence) if run.source._buffer else 0
    run.crash_core(dead)
    with told(seed, run.network):
        run.network.run()
        assert run.ended
        place = {(each.stream, each.number): each.position for each in run.source.sequence}
        older = {}
        for r, s in expected(inputs, CountWindow(5), always):
            mine, other = (place[R, r], r), (place[R.opposite, s], s)
            older[r, s] = min(mine, other)[1], max(mine, other)[0]
        missing = check.exactly_once(run.pairs, list(older))
        assert not [each for each in missing if "too much" in each]
        lost = set(older) - set(run.pairs)
        assert all(older[pair][0] % cores == dead for pair in lost), "only pairs with a partner of the dead core"
        if entered:
            must = {pair for pair, (number, newer) in older.items() if newer >= entered and number % cores == dead}
            assert must <= lost
        output = messages(run)
        if precision.ordering is not Ordering.NONE:
            assert check.outer_order(output, precision.tuples_per_star) == []
            assert check.stars_divide(output, processed(inputs), precision.tuples_per_star) == []
        if precision.by_partner:
            assert check.inner_order(output, group_rows(run)) == []
        if precision.ordering is Ordering.TOTAL:
            assert check.total_order(output) == []


@pytest.mark.parametrize("seed", range(30))
def test_a_crash_at_any_moment(seed: int) -> None:
    _crash_anywhere(seed)


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.soak) for part in (1, 2, 3))])
def test_a_crash_at_any_moment_of_2000_seeds(part: int) -> None:
    for seed in range(part, 2_000, 4):
        _crash_anywhere(seed)


def test_a_chain_loses_half_of_what_its_cores_get_and_splitjoin_one_cores_share_of_the_pairs() -> None:
    cores, inputs = 5, sequence("RS" * 20)
    pairs = expected(inputs, EVERYTHING, always)
    shares = []
    for dead in range(cores):
        chain = Chain(Earliest(), cores, 1_000, always)
        chain.network.crash(f"core {dead}")
        chain.join(inputs)
        # Behind the dead core R's tuples do not come, before it S's do not, so that no core sees both.
        assert len(chain.network.log) == (cores - 1) * len(inputs) / 2 and not chain.found
        run = SplitJoin(Earliest(), cores, EVERYTHING, always)
        run.crash_core(dead)
        run.join(inputs)
        shares.append(1 - len(run.pairs) / len(pairs))
        alive = [region for name, region in run.regions.items() if not name.startswith(f"core {dead}")]
        assert all(sum(region.seen.values()) == len(inputs) for region in alive)
    assert sum(shares) / cores == pytest.approx(1 / cores)


def test_the_star_of_a_group_goes_out_when_the_port_that_it_waits_for_closes() -> None:
    run, _, _ = _after_crash(Precision(), 3)
    network: Network = run.network
    assert network.steps and sum(isinstance(each, Star) for each in messages(run)) == 24
