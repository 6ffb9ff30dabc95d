"""All figures of the page, and how large their runs are."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks import machine, three_way
from benchmarks.psp import adaptation, costs, described, on_spark, response, throughput, traffic, unequal
from benchmarks.psp.adaptation import Change


@dataclass(frozen=True, slots=True)
class Size:
    """Of all runs.

    Args:
        nodes: N, where messages are counted and systems are compared.
        windows: of the runs in which messages are counted.
        lengths: N of rings that answer.
        settings: their M and p.
        stored: their lambda W.
        pairs: that may be compared in one of them.
        baselines: lambda W, and windows, where systems are compared.
        segments, copies: L of ATR in windows, and c of CTR.
        changes: where the rate doubles.
        rings: of interleaved processing: N, how many rows come in, and how many are in flight.
        aligned: of ATR's throughput: N, lambda W, windows, and L of them.
        turns: of 12 rows each, in a window of unequal rates.
        jobs: of Spark's, where ways take turns.
    """

    nodes: tuple[int, ...]
    windows: int
    lengths: tuple[int, ...]
    settings: tuple[tuple[int, float], ...]
    stored: int
    pairs: int
    baselines: tuple[int, int]
    segments: tuple[float, ...]
    copies: tuple[int, ...]
    changes: tuple[Change, ...]
    rings: tuple[tuple[int, ...], int, tuple[int, ...]]
    aligned: tuple[tuple[int, ...], int, int, tuple[float, ...]]
    turns: int
    jobs: three_way.Size


FULL = Size(
    nodes=(4, 8, 12, 16, 19),
    windows=12,
    lengths=tuple(range(1, 20)),
    settings=response.SETTINGS,
    stored=500,
    pairs=3_000_000,
    baselines=(200, 8),
    segments=(1.0, 2.0, 5.0),
    copies=(2, 4, 9),
    changes=(Change(3, 200, 5.0, 2, 4), Change(5, 100, 1.0, 2, 4)),
    rings=((4, 8, 12, 19), 400, (1, 2, 4, 8, 16)),
    aligned=((1, 4, 8, 12, 16, 19), 60, 24, (1.0, 2.0, 5.0)),
    turns=60,
    jobs=three_way.LARGE,
)
QUICK = Size(
    nodes=(4, 8),
    windows=4,
    lengths=(1, 4, 8),
    settings=((3, 0.5), (3, 1.0), (9, 0.5)),
    stored=30,
    pairs=2_000,
    baselines=(20, 2),
    segments=(1.0, 2.0),
    copies=(2, 4),
    changes=(Change(3, 20, 1.0, 1, 2),),
    rings=((4, 8), 20, (1, 4)),
    aligned=((1, 4), 10, 6, (1.0, 2.0)),
    turns=12,
    jobs=three_way.QUICK,
)


def run(size: Size, *, quick: bool) -> dict[str, Any]:
    """What steps take here, then all figures."""
    begun_s = time.perf_counter()

    def done(name: str, points: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        found = list(points)
        print(f"{name}: after {time.perf_counter() - begun_s:,.0f} s", flush=True)
        return found

    measured = costs.measure(quick)
    found = {name: done(name, points) for name, points in traffic.counted(size.nodes, size.windows).items()}
    found["rings"] = done(
        "rings", response.ring_points(measured, size.lengths, size.stored, size.pairs, settings=size.settings)
    )
    found["few_stored"] = done(
        "few_stored",
        response.ring_points(measured, size.lengths, response.FEW_STORED, size.pairs, settings=size.settings),
    )
    found["pixels"] = [
        point
        for pixels in costs.PIXELS
        for point in response.ring_points(
            measured, size.lengths, size.stored, size.pairs, pixels=pixels, settings=size.settings[:3][-1:]
        )
    ]
    stored, windows = size.baselines
    found["baselines"] = done(
        "baselines", response.baselines(measured, size.nodes, stored, windows, size.segments, size.copies)
    )
    found["adaptation"] = done(
        "adaptation", (point for change in size.changes for point in adaptation.points(measured, change))
    )
    for name, points in _further(size, measured).items():
        found[name] = done(name, points)
    told = machine.describe()
    return {
        "windows": size.windows,
        "machine": {key: told[key] for key in ("cores", "model")},
        "costs": measured,
        "figures": found,
    }


def _further(size: Size, measured: Mapping[str, Any]) -> dict[str, Iterable[dict[str, Any]]]:
    """What is beside figure 8."""
    return {
        "words": described.points(size.nodes[1:2] + size.nodes[-1:], size.windows),
        "aligned_rates": throughput.of_aligned(measured, *size.aligned),
        "interleaved": throughput.interleaved(measured, size.rings[0], size.baselines[0], *size.rings[1:]),
        "unequal": unequal.points(size.nodes, size.turns),
        "on_spark": on_spark.points(size.jobs),
    }


def _alone(name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """One of these, with the costs that are there."""
    return lambda known: {name: list(_further(FULL, known["costs"])[name])}


def _merged(old: list[dict[str, Any]], new: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The old points, those that were simulated anew replaced."""

    def run_of(point: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(point.get(key) for key in RUN)

    anew = {run_of(point): point for point in new}
    return [anew.get(run_of(point), point) for point in old]


RUN = ("system", "streams", "matches", "stored", "pixels", "nodes", "segment", "copies")
"""What names a point of a figure, where its kind has it."""


def _lone(known: dict[str, Any]) -> dict[str, Any]:
    """Rings of one node."""
    found = known["figures"]
    each = {"rings": (FULL.stored, costs.PIXELS[:1]), "few_stored": (response.FEW_STORED, costs.PIXELS[:1]),
            "pixels": (FULL.stored, costs.PIXELS)}  # fmt: skip
    settings = {name: FULL.settings[:3][-1:] if name == "pixels" else FULL.settings for name in each}
    return {
        name: _merged(found[name], (
            point for one in pixels for point in response.ring_points(
                known["costs"], (1,), stored, FULL.pairs, pixels=one, settings=settings[name])
        ))
        for name, (stored, pixels) in each.items()
    }  # fmt: skip


def _aligned(known: dict[str, Any]) -> dict[str, Any]:
    """ATR's response times."""
    points = response.baselines(known["costs"], FULL.nodes, *FULL.baselines, FULL.segments, (), ring=False)
    return {"baselines": _merged(known["figures"]["baselines"], points)}


AGAIN: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "counted": lambda known: traffic.counted(FULL.nodes, known["windows"]),
    "one-node": _lone,
    "atr-times": _aligned,
    "words": _alone("words"),
    "interleaved": _alone("interleaved"),
    "atr-rates": _alone("aligned_rates"),
    "unequal": _alone("unequal"),
    "on-spark": _alone("on_spark"),
}
"""What can be made anew alone, with the costs that are there."""
TIMED = frozenset({"on-spark"})
"""Those of which the machine has to be quiet."""
