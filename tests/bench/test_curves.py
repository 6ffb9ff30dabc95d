"""The evaluation curves have the shapes that the papers' models say, and the pages are made of their figures."""

from __future__ import annotations

import json
import random
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from benchmarks.curves import chain, handshake, model, page, paper, splitjoin, timed, units
from benchmarks.curves.__main__ import run
from benchmarks.curves.model import FAN, Workload
from benchmarks.curves.text import WIDTH
from benchmarks.curves.units import Measured
from simulate.network import Earliest
from simulate.splitjoin.distribution import Input
from simulate.splitjoin.messages import Star
from simulate.splitjoin.system import Costs, SplitJoin
from simulate.splitjoin.window import CountWindow
from simulate.stream import Stream
from streamjoin.operators.costs import splitjoin as formulas

DOCS = Path(__file__).parents[2] / "docs" / "evaluation"
COSTS = Measured(compare=0.5, link=3_000, send=500, receive=500, collect=6, clock=100)
"""As on a machine of today, in ns."""
UP_TO_28 = range(1, paper.CORES + 1)


def test_the_pages_are_what_their_figures_give() -> None:
    results = json.loads((DOCS / "curves.json").read_text())
    assert not results["quick"]
    for name, text in page.pages(results).items():
        assert (DOCS / name).read_text() == text, f"run python -m benchmarks.curves --page: {name} is old"
        assert max(len(line) for line in text.splitlines() if not line.startswith("|")) <= WIDTH
        for line in text.splitlines():
            if line.startswith("!["):
                assert (DOCS / line.partition("(")[2].rstrip(")")).stat().st_size > 5_000, line


def test_the_figures_on_the_page_have_the_shapes_of_the_models() -> None:
    check_shapes(json.loads((DOCS / "curves.json").read_text()))


@pytest.mark.slow
def test_a_quick_run_has_the_shapes_of_the_models() -> None:
    # Costs measured while the machine is busy, a hop ten times as long say, are another machine's shapes.
    results = json.loads(json.dumps(run(quick=True, costs=COSTS)))
    check_shapes(results)
    assert set(page.pages(results)) == {"splitjoin.md", "handshake.md"}


def test_every_unit_of_work_has_a_cost() -> None:
    assert all(cost > 0 for cost in asdict(units.measure(quick=True)).values())


def check_shapes(results: dict[str, Any]) -> None:
    part, chained = results["splitjoin"], results["handshake"]
    for each in (*part["time"].values(), *part["count"].values()):
        rates = each["splitjoin"][: paper.CORES]
        assert len(rates) == paper.CORES and all(after >= before for before, after in pairwise(rates))
        for dot in each["simulated"]:
            assert dot["splitjoin"] == pytest.approx(each["splitjoin"][dot["cores"] - 1], rel=0.02)
            assert dot["chain"] == pytest.approx(each["chain"][dot["cores"] - 1], rel=0.12)
    check_visiting(part["visiting"]["fixed"])
    for stage in part["stages"].values():
        for point in stage["points"]:
            parts = point["distribution"] + point["execution"] + point["gathering"]
            assert parts == pytest.approx(point["end_to_end"], rel=0.01)
        executions = [point["execution"] for point in stage["points"]]
        assert all(after < before for before, after in pairwise(executions))
    for line in part["stars"]["lines"].values():
        rates = [point["tuples_per_s"] for point in line]
        assert all(after >= before for before, after in pairwise(rates)), "fewer stars are never slower"
    imbalances = [(point["block"], point["imbalance"]) for point in chained["blocks"]["points"]]
    assert all(before < after for (_, before), (block, after) in pairwise(imbalances) if block <= 500)
    for row in chained["efficiency"]:
        for index, measured in row.get("measured", {}).items():
            assert measured == pytest.approx(row["predicted"][index], rel=0.15)


def check_visiting(fixed: dict[str, list[float]]) -> None:
    """At 2, 4, 8, 16 and 32 cores: the chain's steps double, SplitJoin's are one level of the tree each."""
    by_chain, by_tree = ([fixed[system][2**power - 1] for power in range(1, 6)] for system in ("chain", "splitjoin"))
    steps = [after - before for before, after in pairwise(by_chain)]
    assert all(after == pytest.approx(2 * before, rel=0.01) for before, after in pairwise(steps))
    levels = [after - before for before, after in pairwise(by_tree)]
    assert all(each == pytest.approx(levels[0], rel=0.01) for each in levels)
    assert fixed["chain"][paper.CORES - 1] / fixed["splitjoin"][paper.CORES - 1] > 1


def test_throughput_never_falls_up_to_28_cores() -> None:
    for window in (1 << 17, 1 << 21):
        rates = [model.tuples_per_s(model.splitjoin_busy(Workload(k, window / k), COSTS)) for k in UP_TO_28]
        assert all(after >= before for before, after in pairwise(rates))
    rows = [model.rows_of_time_window(k, 900, COSTS) for k in UP_TO_28]
    rates = [
        model.tuples_per_s(model.splitjoin_busy(Workload(k, w), COSTS)) for k, w in zip(UP_TO_28, rows, strict=True)
    ]
    assert all(after >= before for before, after in pairwise(rates))
    # A window of 900 s holds what comes in 900 s, half of it in each stream.
    assert [w * k for k, w in zip(UP_TO_28, rows, strict=True)] == pytest.approx([450 * rate for rate in rates])


@pytest.mark.parametrize(("cores", "seed"), [(3, 1), (5, 2)])
def test_a_probe_as_one_step_takes_as_long_as_all_its_comparisons(cores: int, seed: int) -> None:
    """Messages cost no work here, so that the simulation that compares one by one has the same costs."""
    rows, compare_ns = 5, 40
    costs = Measured(compare=compare_ns, link=70, send=0, receive=0, collect=0, clock=0)
    chance = random.Random(seed)
    arrivals = sorted(chance.randrange(10_000) * 1_000 for _ in range(12))
    whole = timed.simulate(Workload(cores, rows), costs, [float(each) for each in arrivals])

    warm = 2 * cores * rows
    filled = [Input((Stream.R, Stream.S)[at % 2], 0, None, at * 10_000) for at in range(warm)]
    ends_ns = warm * 10_000
    probes = [Input((Stream.R, Stream.S)[at % 2], 0, None, ends_ns + each) for at, each in enumerate(arrivals)]
    single = SplitJoin(
        Earliest(), cores, CountWindow(cores * rows), lambda r, s: False, fan_out=FAN, fan_in=FAN,
        costs=Costs(lambda sender, receiver: 70, lambda core: compare_ns),
    ).join([*filled, *probes])  # fmt: skip

    def done_ns(run: SplitJoin) -> list[int]:
        return [left.at_us for left in run.output if isinstance(left.message, Star)]

    assert done_ns(whole) == [each - ends_ns for each in done_ns(single)[warm:]]


@pytest.mark.parametrize("cores", [1, 3, pytest.param(8, marks=pytest.mark.slow)])
def test_the_simulated_rate_is_the_busiest_process_s(cores: int) -> None:
    for rows in (200.0, 20_000.0):
        load = Workload(cores, rows, match_probability=1e-3)
        predicted = model.tuples_per_s(model.splitjoin_busy(load, COSTS))
        assert splitjoin.splitjoin_rate(load, COSTS, 15) == pytest.approx(predicted, rel=0.02)
        predicted = model.tuples_per_s({"core": model.chain_busy(load, COSTS)["core"]})
        assert splitjoin.chain_rate(load, COSTS, 150) == pytest.approx(predicted, rel=0.1)


def test_the_busy_chain_visits_as_formula_2_says_when_nobody_waits() -> None:
    load = Workload(9, 1_000)
    times = [met - came for core in chain.simulate(load, COSTS, [0, 1e7, 2e7, 3e7]) for _, met, _, came in core.visits]
    wanted = formulas.chain_visiting_us(9, 1_000, COSTS.link, 0, COSTS.compare)
    # The ends of the chain pass nothing on.
    assert sum(times) / len(times) == pytest.approx(wanted, rel=0.03)


def test_stages_add_up_and_a_busier_core_waits_longer() -> None:
    found = splitjoin.splitjoin_stages(Workload(4, 20_000), COSTS, 40)
    parts = found["distribution"] + found["execution"] + found["gathering"]
    assert parts == pytest.approx(found["end_to_end"], rel=0.01)
    assert found["processing"] > found["visiting"] > 20_000 * COSTS.compare / 2 / 1e3


def test_imbalance_falls_with_the_block() -> None:
    figures = [
        handshake.mean_imbalance(handshake.steady(2, block, 6, handshake.sampled_s(1, 60))) for block in (1, 5, 10)
    ]
    assert figures[0] < figures[1] < figures[2]


def test_counted_comparisons_are_the_formulas() -> None:
    compared, outputs = handshake.comparisons("scan", 200)
    assert (compared, outputs) == (200 * 200, 200)
    compared, outputs = handshake.comparisons("hash", 200)
    assert (compared, outputs) == (2 * 200 + 200, 200)
    compared, outputs = handshake.comparisons("bst", 200)
    assert outputs == 200 and 200 * 2 * 6 < compared < 200 * 2 * 9
