"""Figures of a report that are made of many batches, for our own operators and for Spark's join alike."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

from streamjoin.spark.batchreport import BatchTimes


def rho(results: int, comparisons: int | None, search_steps: int = 0) -> float | None:
    """Processing efficiency (ESJ, equations 1, 3 and 7): outputs by all that was looked at for them; None without any.

    Args:
        comparisons: stored tuples that were compared.
        search_steps: places of an index that were looked at to find these.
    """
    return results / (comparisons + search_steps) if comparisons is not None and comparisons + search_steps else None


def weighted(batches: Iterable[BatchTimes], seconds_of: Callable[[Mapping[str, float]], float]) -> dict[str, int]:
    """A time of batches as results saw it: p50, p95 and max in ms, each batch weighing as many results as it brought.

    Where there are no results at all, tuples stand in for them.
    """
    known = sorted((seconds_of(batch.seconds), batch.results, batch.tuples) for batch in batches)
    results = [results for _, results, _ in known]
    weights = results if any(results) else [tuples for *_, tuples in known]
    times = [(round(1000 * seconds), weight) for (seconds, *_), weight in zip(known, weights, strict=True) if weight]
    if not times:
        return {"p50": 0, "p95": 0, "max": 0}
    reached = list(itertools.accumulate(weight for _, weight in times))
    at = [
        next(number for number, so_far in enumerate(reached) if so_far >= share * reached[-1]) for share in (0.5, 0.95)
    ]
    return {"p50": times[at[0]][0], "p95": times[at[1]][0], "max": times[-1][0]}


def quantiles(values: Sequence[int]) -> dict[str, int]:
    """p50, p95 and max; zeros where nothing was measured."""
    if not values:
        return {"p50": 0, "p95": 0, "max": 0}
    if len(values) == 1:
        return dict.fromkeys(("p50", "p95", "max"), values[0])
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return {"p50": round(cuts[49]), "p95": round(cuts[94]), "max": max(values)}
