"""SplitJoin's formulas (USENIX ATC 2016): latency, for itself and for the low-latency handshake chain, and its costs.

The latency model, (1) to (6), is logarithmic in the cores for SplitJoin and linear for the chain. All times are in us.
Logarithms are rounded up, as trees have whole levels. In (2) the text lost the bracket round (k - 1) / 2; it is rounded
up here, to the middle core of the chain or the one behind it.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamjoin.operators.costs.prediction import (
    Latency,
    Prediction,
    StreamStatistics,
    UnitCosts,
    nested_loop_per_s,
    stored_once_bytes,
)


def depth_of(leaves: int, fan_out: int) -> int:
    """The logarithm of `leaves`, rounded up, in whole numbers (floats are off for 125 to the base 5)."""
    depth, reach = 0, 1
    while reach < leaves:
        depth, reach = depth + 1, reach * fan_out
    return depth


def chain_processing_us(cores: int, rows: int, link: float, monitor: float, compare: float, collect: float) -> float:
    """(1) PL of the low-latency handshake join.

    Args:
        rows: w, of a sub-window.
        link, monitor: T_CL and T_ML, to send a tuple to the next core and to watch for races on the way.
        compare, collect: T_P and T_Col.
    """
    return link + (cores - 1) * (link + monitor) + rows * compare + collect


def chain_visiting_us(cores: int, rows: int, link: float, monitor: float, compare: float) -> float:
    """(2) Mean VL of the low-latency handshake join."""
    return link + cores // 2 * (link + monitor) + rows / 2 * compare


def processing_by_path_us(
    paths: Sequence[Sequence[float]], rows: Sequence[int], compare: Sequence[float], collect: float
) -> float:
    """(3) PL of SplitJoin: the slowest core counts.

    Args:
        paths: for each core, the time of each edge from the root to it.
        rows, compare: w and T_P of each core.
    """
    return max(sum(path) + w * each for path, w, each in zip(paths, rows, compare, strict=True)) + collect


def processing_by_core_us(
    links: Sequence[float], fan_out: int, rows: int, compare: Sequence[float], collect: float
) -> float:
    """(4) PL of SplitJoin when all edges of a core's path take the same time."""
    depth = depth_of(len(links), fan_out)
    return max(link * depth + rows * each for link, each in zip(links, compare, strict=True)) + collect


def processing_us(cores: int, fan_out: int, fan_in: int, rows: int, link: float, compare: float) -> float:
    """(5) PL of SplitJoin when cores and edges are alike, the gathering tree's included."""
    return link * depth_of(cores, fan_out) + rows * compare + link * depth_of(cores, fan_in)


def visiting_us(cores: int, fan_out: int, rows: int, link: float, compare: float) -> float:
    """(6) Mean VL of SplitJoin."""
    return link * depth_of(cores, fan_out) + rows / 2 * compare


def splitjoin(
    r: StreamStatistics, s: StreamStatistics, cores: int, fan_out: int, fan_in: int, unit_costs: UnitCosts | None = None
) -> Prediction:
    """SplitJoin on k cores: each receives every tuple and stores every k-th, and all compare each.

    Args:
        fan_out, fan_in: b and c, of the trees that hand tuples out and gather results.
        unit_costs: what a step takes; without it there is no latency to tell.
    """
    arriving = r.bytes_per_s + s.bytes_per_s
    return Prediction(
        stored_once_bytes(r, s),
        cores * arriving,
        float(cores),
        nested_loop_per_s(r, s),
        arriving,
        _latency(cores, fan_out, fan_in, unit_costs) if unit_costs else None,
    )


def _latency(cores: int, fan_out: int, fan_in: int, unit_costs: UnitCosts) -> Latency:
    """(5) and (6), where the w comparisons of a tuple are known together and not one by one."""
    link, all_compared = unit_costs.link_us, unit_costs.probe_us
    return Latency(
        processing_us(cores, fan_out, fan_in, 1, link, all_compared), visiting_us(cores, fan_out, 1, link, all_compared)
    )
