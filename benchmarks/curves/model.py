"""How many tuples a second each system can take: the busiest of its processes decides.

The paper has formulas of latency, (1) to (6), and none of throughput. Here every process is charged for what it does
for one input tuple of either stream: its messages, its comparisons and the merging of results. Times are in ns.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.curves.units import Measured

FAN = 2
"""Of the distribution tree and of the gathering trees."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What a join core of a full window has to do.

    Args:
        cores: k.
        rows: w, stored tuples of one stream in a core's sub-window.
        stars: a probe and core.
        match_probability: results of a comparison.
    """

    cores: int
    rows: float
    stars: float = 1
    match_probability: float = 0.0


def splitjoin_busy(load: Workload, costs: Measured) -> dict[str, float]:
    """By process, the time that one input tuple takes it.

    A gathering tree has the results of one stream's tuples, hence of every second tuple. A region sends a probe's
    results in the message of the star behind them. One core has no trees.
    """
    busy = {"core": costs.receive + load.rows * costs.compare + load.stars * costs.send}
    if load.cores > 1:
        results = load.cores * load.rows * load.match_probability
        ports = min(FAN, load.cores)
        busy["distributor"] = costs.receive + ports * costs.send
        busy["merger"] = (load.stars * (ports * costs.receive + costs.send) + results * costs.collect) / 2
    return busy


def chain_busy(load: Workload, costs: Measured) -> dict[str, float]:
    """The same of the low-latency handshake join: each tuple and each expiry message is taken in and passed on.

    Collecting results and watching for races (T_ML) are free here, which favours the chain.
    """
    links = 1 if load.cores > 1 else 0
    return {
        "core": 2 * (costs.receive + links * costs.send) + load.rows * costs.compare,
        "coordinator": costs.receive + 2 * costs.send,
    }


def tuples_per_s(busy: dict[str, float]) -> float:
    """Of both streams together."""
    return 1e9 / max(busy.values())


def rows_of_time_window(cores: int, window_s: float, costs: Measured, chain: bool = False) -> float:
    """w where the input is what the system can just take: a window holds more the faster the input is.

    Where cores decide, a rate of T gives w = T l / (2 k) and T (messages + w T_P) = 1, a quadratic equation in T.
    """
    none = Workload(cores, 0)
    busy = chain_busy(none, costs) if chain else splitjoin_busy(none, costs)
    seconds = {name: each * 1e-9 for name, each in busy.items()}
    grows = window_s * costs.compare * 1e-9 / (2 * cores)
    core = seconds.pop("core")
    rate = ((core**2 + 4 * grows) ** 0.5 - core) / (2 * grows)
    return min([rate, *(1 / each for each in seconds.values())]) * window_s / (2 * cores)
