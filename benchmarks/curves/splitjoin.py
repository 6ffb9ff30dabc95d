"""SplitJoin's evaluation curves with the unit costs of this machine: the figures, as plain data.

`tuples_per_s` and latencies in lines come from formulas, for every number of cores; those in `simulated` come from
running the protocol, for some. Throughput is that of both streams, latencies are in us.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any

from benchmarks.curves import chain, model, paper, timed
from benchmarks.curves.model import FAN, Workload
from benchmarks.curves.units import Measured, compare_ns
from simulate.splitjoin.gathering import Left
from simulate.splitjoin.messages import Result, Star
from simulate.splitjoin.report import stages
from simulate.splitjoin.system import SplitJoin
from streamjoin.operators.costs import splitjoin as formulas

CORES = range(1, paper.CORES_MAX + 1)
SIMULATED_CORES = (1, 4, 8, 16, paper.CORES)
COUNT_WINDOWS = tuple(1 << power for power in range(17, 22))
FIXED_ROWS = 1 << 12
"""Sub-window of the picture in which only the way to the cores changes; the paper's smallest."""
LOAD = 0.9
"""Share of what a system can take, for latencies: at more than all of it they grow without end."""
LATENCY_TUPLES = 160
"""Of a run for latencies: too few for a steady state, which the page says; a step looks at all channels there are."""
STARS_SIMULATED_MAX = 8
MATCH_PROBABILITIES = tuple(10.0**power for power in range(-6, 0))
Stages = dict[str, float]


def figures(costs: Measured, quick: bool = False) -> dict[str, Any]:
    """All curves."""
    simulated = (4, 8) if quick else SIMULATED_CORES
    tuples = 24 if quick else 80
    latency_cores = (2, 4, 8) if quick else (1, 2, 4, 8, 12, 16, 20, 24, paper.CORES)
    latency_tuples = 24 if quick else LATENCY_TUPLES
    return {
        "time": {
            str(minutes): _throughput(costs, by_time(minutes * 60, costs), simulated, tuples)
            for minutes in paper.TIME_WINDOWS_MIN
        },
        "hand_over": _hand_over(costs),
        "count": {str(window): _throughput(costs, by_count(window), simulated, tuples) for window in COUNT_WINDOWS},
        "visiting": _visiting(costs, simulated),
        "stages": {
            "time": _loaded(costs, by_time(paper.TIME_WINDOW_MIN * 60, costs), latency_cores, latency_tuples),
            "count": _loaded(costs, by_count(paper.COUNT_WINDOW), latency_cores, latency_tuples),
        },
        "selectivity": _selectivity(costs, quick),
        "stars": _stars(costs, quick),
    }


Rows = Callable[[int, bool], float]
"""(cores, whether it is the chain) -> w."""


def by_time(window_s: float, costs: Measured) -> Rows:
    """Sub-windows that hold what the highest input brings in so many seconds."""
    return lambda cores, chain: model.rows_of_time_window(cores, window_s, costs, chain)


def by_count(window: int) -> Rows:
    """Sub-windows of a count window."""
    return lambda cores, _: window / cores


def _throughput(costs: Measured, rows: Rows, simulated: Iterable[int], tuples: int) -> dict[str, Any]:
    lines = {
        "splitjoin": [model.tuples_per_s(model.splitjoin_busy(Workload(k, rows(k, False)), costs)) for k in CORES],
        "chain": [model.tuples_per_s(model.chain_busy(Workload(k, rows(k, True)), costs)) for k in CORES],
    }
    return {
        "cores": list(CORES),
        "rows": [rows(k, False) for k in CORES],
        **lines,
        "simulated": [
            {
                "cores": k,
                "splitjoin": splitjoin_rate(Workload(k, rows(k, False)), costs, tuples),
                "chain": chain_rate(Workload(k, rows(k, True)), costs, 4 * tuples),
            }
            for k in simulated
        ],
    }


def _hand_over(costs: Measured) -> dict[str, Any]:
    """SplitJoin over the chain at 28 cores, if sending and receiving cost more or less than they do here."""
    measured = costs.send + costs.receive
    lines = {}
    for minutes in paper.TIME_WINDOWS_MIN:
        points = []
        for step in range(-8, 33):
            factor = 2.0 ** (step / 4)
            each = replace(costs, send=costs.send * factor, receive=costs.receive * factor)
            rows = by_time(minutes * 60, each)
            split = model.tuples_per_s(model.splitjoin_busy(Workload(paper.CORES, rows(paper.CORES, False)), each))
            chained = model.tuples_per_s(model.chain_busy(Workload(paper.CORES, rows(paper.CORES, True)), each))
            points.append({"us": measured * factor / 1e3, "ratio": split / chained, "tuples_per_s": split})
        lines[str(minutes)] = points
    return {"measured_us": measured / 1e3, "lines": lines}


def splitjoin_rate(load: Workload, costs: Measured, tuples: int) -> float:
    """Tuples a second of both streams when all of them wait at the door, without the time to fill the trees."""
    run = timed.simulate(load, costs, [0.0] * tuples)
    done_ns = [left.at_us for left in _last_stars(run)]
    skipped = tuples // 3
    return (tuples - skipped) / (done_ns[-1] - done_ns[skipped - 1]) * 1e9


def chain_rate(load: Workload, costs: Measured, tuples: int) -> float:
    """The same of the chain. Its cores do not do the tuples in one order, so that the time to fill it counts here."""
    interval_ns = 1e9 / model.tuples_per_s(model.chain_busy(load, costs))
    cores = chain.simulate(load, costs, [at * interval_ns / 1.3 for at in range(tuples)])
    return tuples / max(done_ns for core in cores for _, _, done_ns, _ in core.visits) * 1e9


def _last_stars(run: SplitJoin) -> list[Left]:
    return [left for left in run.output if isinstance(left.message, Star) and left.message.last]


def _visiting(costs: Measured, simulated: Iterable[int]) -> dict[str, Any]:
    """Without waiting: formulas (6) and (2), T_ML left out; and simulated, with one tuple at a time."""
    windows = {str(minutes): by_time(minutes * 60, costs) for minutes in paper.TIME_WINDOWS_MIN}
    windows["fixed"] = lambda cores, chain: float(FIXED_ROWS)
    answer: dict[str, Any] = {"cores": list(CORES), "fixed_rows": FIXED_ROWS}
    for name, rows in windows.items():
        answer[name] = {
            "splitjoin": [
                formulas.visiting_us(k, FAN, round(rows(k, False)), costs.link, costs.compare) / 1e3 for k in CORES
            ],
            "chain": [
                formulas.chain_visiting_us(k, round(rows(k, True)), costs.link, 0, costs.compare) / 1e3 for k in CORES
            ],
        }
    answer["simulated"] = [{"cores": k, **_visiting_simulated(Workload(k, FIXED_ROWS), costs)} for k in simulated]
    return answer


def _visiting_simulated(load: Workload, costs: Measured) -> dict[str, float]:
    apart_ns = 100 * (costs.link * load.cores + load.rows * costs.compare)
    arrivals_ns = [at * apart_ns for at in range(12)]
    run = timed.simulate(load, costs, arrivals_ns, follow=True)
    return {
        "splitjoin": stages(run.output).visiting / 1e3,
        "chain": _chain_visiting_us(chain.simulate(load, costs, arrivals_ns)),
    }


def _chain_visiting_us(cores: Sequence[chain.BusyCore], skipped: int = 0) -> float:
    times_ns = [
        met_ns - arrived_ns for core in cores for place, met_ns, _, arrived_ns in core.visits if place >= skipped
    ]
    return sum(times_ns) / len(times_ns) / 1e3


def _loaded(costs: Measured, rows: Rows, cores: Iterable[int], tuples: int) -> dict[str, Any]:
    """Simulated where each system gets `LOAD` of what it can take, tuples coming by chance."""
    return {
        "load": LOAD,
        "points": [
            {
                "cores": k,
                "rows": rows(k, False),
                **splitjoin_stages(Workload(k, rows(k, False)), costs, tuples),
                "chain_visiting": loaded_chain_visiting_us(Workload(k, rows(k, True)), costs, tuples),
            }
            for k in cores
        ],
    }


def splitjoin_stages(load: Workload, costs: Measured, tuples: int) -> Stages:
    """Mean times in us, the first third of the tuples left out; `processing` is until the star behind it left."""
    busy_ns = max(model.splitjoin_busy(load, costs).values())
    run = timed.simulate(load, costs, arrivals_ns(tuples, busy_ns / LOAD), follow=True)
    skipped = tuples // 3
    kept = [left for left in run.output if isinstance(left.message, Result | Star) and left.message.position >= skipped]
    processing_ns = [
        left.at_us - run.source.sequence[left.message.position].arrived_us
        for left in kept
        if isinstance(left.message, Star)
    ]
    parts = {name: value / 1e3 for name, value in asdict(stages(kept)).items()}
    return {**parts, "processing": sum(processing_ns) / len(processing_ns) / 1e3}


def loaded_chain_visiting_us(load: Workload, costs: Measured, tuples: int) -> float:
    """Mean visiting latency of the chain, the first third of the tuples left out."""
    busy_ns = max(model.chain_busy(load, costs).values())
    return _chain_visiting_us(chain.simulate(load, costs, arrivals_ns(tuples, busy_ns / LOAD)), tuples // 3)


def arrivals_ns(tuples: int, mean_ns: float) -> list[float]:
    """Times with exponential gaps, the same ones on every call but for the mean."""
    chance = random.Random(2)
    now_ns, times = 0.0, []
    for _ in range(tuples):
        now_ns += chance.expovariate(1.0) * mean_ns
        times.append(now_ns)
    return times


def _selectivity(costs: Measured, quick: bool) -> dict[str, Any]:
    """28 cores; comparing is measured anew for each match probability, since a match is also written down."""
    cores, points = paper.CORES, []
    for wanted in MATCH_PROBABILITIES:
        compare, found = compare_ns(1 << (12 if quick else 15), wanted)
        each = replace(costs, compare=compare)
        lines = {}
        for rows in paper.SUB_WINDOWS:
            rate = model.tuples_per_s(model.splitjoin_busy(Workload(cores, rows, match_probability=wanted), each))
            lines[str(rows)] = {"tuples_per_s": rate, "results_per_s": rate * cores * rows * wanted}
        points.append({"match_probability": wanted, "found": found, "compare": compare, "by_rows": lines})
    return {"cores": cores, "points": points}


def _stars(costs: Measured, quick: bool) -> dict[str, Any]:
    """A star every so many comparisons: 28 cores, by formula, and simulated where a probe has few stars."""
    cores = paper.CORES
    lines = {}
    for rows in paper.SUB_WINDOWS:
        intervals = [1 << power for power in range(rows.bit_length())]
        lines[str(rows)] = [
            {
                "interval": interval,
                "tuples_per_s": model.tuples_per_s(
                    model.splitjoin_busy(Workload(cores, rows, stars=rows / interval), costs)
                ),
            }
            for interval in intervals
        ]
    rows = paper.SUB_WINDOWS[-1]
    simulated = [
        {
            "interval": rows // stars,
            "tuples_per_s": splitjoin_rate(Workload(cores, rows, stars=stars), costs, 12 if quick else 36),
        }
        for stars in ([1] if quick else [1, 2, 4, STARS_SIMULATED_MAX])
    ]
    return {"cores": cores, "lines": lines, "simulated_rows": rows, "simulated": simulated}
