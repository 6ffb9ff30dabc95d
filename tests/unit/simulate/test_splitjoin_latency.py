"""The latency model of SplitJoin's paper against the simulation, by the time of the channels."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from simulate.network import Earliest, Shuffled
from simulate.splitjoin import check
from simulate.splitjoin.chain import Chain, Expiry, Passing
from simulate.splitjoin.distribution import Input
from simulate.splitjoin.messages import End, Ordering, Precision, Star
from simulate.splitjoin.report import stages, visiting_us
from simulate.splitjoin.system import Costs, SplitJoin
from simulate.splitjoin.window import CountWindow
from streamjoin.operators.costs import splitjoin as latency
from streamjoin.operators.costs.splitjoin import depth_of
from tests.unit.simulate.splitjoin_runs import R, S, always, expected, history, never

pytestmark = pytest.mark.slow

APART_US = 1_000_000
"""Between tuples, so that none waits for another."""


def _probed(
    cores: int,
    rows: int,
    costs: Costs,
    match: object = never,
    precision: Precision | None = None,
    b: int = 2,
    c: int = 2,
) -> SplitJoin:
    """All sub-windows of R hold `rows` tuples, then one S tuple comes."""
    inputs = [Input(R, 0, None, at * APART_US) for at in range(cores * rows)]
    run = SplitJoin(
        Earliest(),
        cores,
        CountWindow(cores * rows),
        match,
        precision,
        fan_out=b,
        fan_in=c,
        costs=costs,  # type: ignore[arg-type]
    )
    return run.join([*inputs, Input(S, 0, None, len(inputs) * APART_US)])


def _processing_us(run: SplitJoin) -> int:
    """From the S tuple's arrival until its star left."""
    (at_us,) = [left.at_us for left in run.output if isinstance(left.message, Star) and left.message.flag is S]
    return at_us - run.source.sequence[-1].arrived_us


@pytest.mark.parametrize(
    ("cores", "b", "c"), [(4, 2, 2), (8, 2, 2), (9, 3, 3), (16, 2, 4), (16, 4, 2), (1, 2, 2), (7, 2, 4), (11, 3, 2)]
)
def test_processing_latency_with_like_costs_is_formula_5(cores: int, b: int, c: int) -> None:
    run = _probed(cores, 3, Costs(lambda sender, receiver: 1, lambda core: 1), b=b, c=c)
    assert _processing_us(run) == latency.processing_us(cores, b, c, 3, 1, 1)


@pytest.mark.parametrize("seed", range(5))
def test_processing_latency_with_any_costs_is_formula_3(seed: int) -> None:
    random_ = random.Random(seed)
    cores, rows = 8, 3
    compare = [random_.randint(1, 50) for _ in range(cores)]
    links: dict[tuple[str, str], int] = {}

    def link_us(sender: str, receiver: str) -> int:
        return 7 if receiver.startswith("merger") else links.setdefault((sender, receiver), random_.randint(1, 50))

    run = _probed(cores, rows, Costs(link_us, lambda core: compare[core]))
    parents, paths = run.distribution.parents(), []
    for name in run.cores:
        path, node = [], name
        while node in parents:
            path.append(links[parents[node], node])
            node = parents[node]
        paths.append(path)
    wanted = latency.processing_by_path_us(paths, [rows] * cores, compare, 7 * depth_of(cores, 2))
    assert _processing_us(run) == wanted


def test_formula_4_is_formula_3_with_like_edges_and_formula_5_is_formula_4_with_like_cores() -> None:
    links, compare = [3.0, 5.0, 4.0, 9.0], [2.0, 7.0, 1.0, 1.0]
    by_path = latency.processing_by_path_us([[each] * 2 for each in links], [10] * 4, compare, 11)
    assert latency.processing_by_core_us(links, 2, 10, compare, 11) == by_path == 5 * 2 + 70 + 11
    assert latency.processing_by_core_us([3] * 4, 2, 10, [2] * 4, 3 * 2) == latency.processing_us(4, 2, 2, 10, 3, 2)


def test_logarithms_are_whole_levels() -> None:
    assert [depth_of(cores, 2) for cores in (1, 2, 3, 4, 5, 28, 32, 33)] == [0, 1, 2, 2, 3, 5, 5, 6]
    assert depth_of(125, 5) == 3 and depth_of(243, 3) == 5, "which floats get wrong"


def _splitjoin_visiting_us(cores: int, rows: int = 1, link: int = 10, compare: int = 2) -> float:
    run = _probed(
        cores, rows, Costs(lambda sender, receiver: link, lambda core: compare), always, Precision(Ordering.NONE)
    )
    times = [visiting_us(each) for each in run.results]
    assert len(times) == cores * rows
    return sum(times) / len(times)


def _chain_visiting_us(cores: int, rows: int = 1, link: int = 10, compare: int = 2, monitor: int = 0) -> float:
    inputs = [Input(R, 0, None, at * APART_US) for at in range(cores * rows)]
    chain = Chain(Earliest(), cores, cores * rows, always, link, monitor, compare)
    chain.join([*inputs, Input(S, 0, None, len(inputs) * APART_US)])
    assert len(chain.found) == cores * rows
    return sum(met.visiting_us for met in chain.found) / len(chain.found)


@pytest.mark.parametrize("cores", [1, 4, 8, 16])
def test_mean_visiting_latency_is_formula_6_but_for_half_a_comparison(cores: int) -> None:
    rows, link, compare = 4 if cores < 16 else 1, 10, 2
    measured = _splitjoin_visiting_us(cores, rows, link, compare)
    # A pair counts as met when its comparison ends, so of w comparisons the mean is the (w + 1) / 2-th.
    assert measured == latency.visiting_us(cores, 2, rows, link, compare) + compare / 2


@pytest.mark.parametrize("cores", [4, 7, 16, 64])
def test_the_chains_latencies_are_formulas_1_and_2(cores: int) -> None:
    rows, link, compare, monitor = 3, 10, 2, 5
    inputs = [Input(R, 0, None, at * APART_US) for at in range(cores * rows)]
    chain = Chain(Earliest(), cores, cores * rows, always, link, monitor, compare)
    chain.join([*inputs, Input(S, 0, None, len(inputs) * APART_US)])
    processing = max(core.ready_us for core in chain.cores) - len(inputs) * APART_US
    assert processing == latency.chain_processing_us(cores, rows, link, monitor, compare, 0)
    # The formula rounds the middle of the chain up: for an even number of cores by half a hop.
    half_a_hop = (link + monitor) / 2 if cores % 2 == 0 else 0
    measured = sum(met.visiting_us for met in chain.found) / len(chain.found)
    assert measured == pytest.approx(
        latency.chain_visiting_us(cores, rows, link, monitor, compare) - half_a_hop + compare / 2
    )


def _grows(chain_us: list[float], splitjoin_us: list[float]) -> None:
    """Cores doubled each time: the chain's increase doubles too, SplitJoin's is one level of the tree."""
    by_chain = [after - before for before, after in pairwise(chain_us)]
    assert all(after == pytest.approx(2 * before) for before, after in pairwise(by_chain))
    assert {after - before for before, after in pairwise(splitjoin_us)} == {10}


def test_visiting_latency_grows_as_a_line_in_the_chain_and_as_a_logarithm_in_splitjoin() -> None:
    cores = [4, 8, 16]
    _grows([_chain_visiting_us(each) for each in cores], [_splitjoin_visiting_us(each) for each in cores])
    cores = [4, 8, 16, 32, 64]
    _grows(
        [latency.chain_visiting_us(each, 1, 10, 0, 2) for each in cores],
        [latency.visiting_us(each, 2, 1, 10, 2) for each in cores],
    )


def test_visiting_latency_grows_so_up_to_64_cores() -> None:
    cores = [4, 8, 16, 32, 64]
    _grows([_chain_visiting_us(each) for each in cores], [_splitjoin_visiting_us(each) for each in cores])


def test_a_partner_that_came_late_does_not_count() -> None:
    run = _probed(2, 1, Costs(lambda sender, receiver: 10, lambda core: 2), always)
    assert [visiting_us(each) for each in run.results] == [12, 12]
    naive = [each.matched_us - min(each.newer.arrived_us, each.older.arrived_us) for each in run.results]
    assert naive == [2 * APART_US + 12, APART_US + 12]


def _busy(precision: Precision) -> SplitJoin:
    """Tuples that come faster than they are compared, cores of unlike speed."""
    inputs = [Input(S if at % 2 else R, 0, None, at * 5) for at in range(60)]
    costs = Costs(lambda sender, receiver: 3, lambda core: 1 + 3 * core)
    return SplitJoin(Earliest(), 4, CountWindow(8), always, precision, costs=costs).join(inputs)


def test_stages_add_up_and_gathering_dominates_with_stars() -> None:
    measured = {each: stages(_busy(Precision(each)).output) for each in Ordering}
    for each in measured.values():
        assert each.distribution + each.execution + each.gathering == pytest.approx(each.end_to_end, rel=0.01)
        assert each.visiting == pytest.approx(each.distribution + each.execution)
    none, outer = measured[Ordering.NONE], measured[Ordering.OUTER]
    assert none.gathering == 6, "two edges"
    assert outer.gathering > 5 * none.gathering and outer.gathering > outer.execution
    ends_us = {each: _busy(Precision(each)).network.now_us for each in Ordering}
    assert ends_us[Ordering.NONE] == min(ends_us.values()), "no order is the cheapest"
    with pytest.raises(ValueError, match="no result"):
        stages([])


def test_the_chain_finds_each_pair_once_under_any_interleaving() -> None:
    for seed in range(40):
        random_ = random.Random(seed)
        inputs, window = history(random_, 20), CountWindow(random_.randint(1, 6))
        chain = Chain(Shuffled(seed), random_.randint(1, 5), window.rows, always).join(inputs)
        assert check.exactly_once([met.pair for met in chain.found], expected(inputs, window, always)) == []
        for stream in (R, S):
            assert sum(len(core.stored[stream]) for core in chain.cores) <= window.rows


def test_expiry_messages_double_the_chains_traffic_and_splitjoin_has_none() -> None:
    inputs = [Input(each, 0) for each in (R, S) * 200]
    chain = Chain(Earliest(), 4, 2, never).join(inputs)
    tuples = sum(isinstance(each.message, Passing) for each in chain.network.log)
    expiries = sum(isinstance(each.message, Expiry) for each in chain.network.log)
    assert tuples == 4 * len(inputs) and expiries == pytest.approx(tuples, rel=0.02)
    run = SplitJoin(Earliest(), 4, CountWindow(2), never)
    run.feed([*inputs[:20], End()])
    run.network.run()
    assert not any(isinstance(each.message, Expiry) for each in run.network.log)
