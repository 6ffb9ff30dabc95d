"""Figures 4 to 6 of SSBJ's evaluation, scaled down and simulated with a disk, beside what the cost model says.

python -m benchmarks.semistream             docs/evaluation/: ssbj.json, ssbj.md and pictures; minutes
python -m benchmarks.semistream --quick     toy sizes into benchmarks/out/quick/evaluation/, in seconds
python -m benchmarks.semistream --page      page and pictures anew, from the figures that are there

All times are of a virtual clock, so what else the machine does changes no figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from benchmarks import evaluation
from benchmarks.semistream_page import page
from simulate.ssbj.beside import Case
from simulate.ssbj.data import OTHER_WEATHER, SYNTHETIC, TPC_H, WEATHER, Data
from streamjoin.operators.ssbj.moving import Rule

FIGURES, PAGE = "ssbj.json", "ssbj.md"
BUFFER_SHARE = 10
ROWS, QUICK_ROWS = 50_000, 5_000
SHARES = (0.02, 0.04, 0.06, 0.08, 0.1)


@dataclass(frozen=True, slots=True)
class Figure:
    """One of the paper's figures.

    Args:
        shows: what is on the y axis, by its name in what `run_case` gives.
        cases: what is on the x axis, and the setting.
    """

    name: str
    x: str
    shows: str
    cases: tuple[tuple[str, Case], ...]


def of_memory(rows: int, skew: float, memory: float, data: Data = SYNTHETIC) -> Case:
    """A setting with memory given, a tenth of it for the buffer."""
    return Case(rows, skew, memory, round(BUFFER_SHARE / memory), Rule(), data=data)


def figures(rows: int) -> tuple[Figure, ...]:
    """All settings, by the size of the largest relation."""
    small = rows // 5
    rated = Case(small, 1.0, 0.0, 40, Rule())
    base = of_memory(rows, 1.0, 0.1)
    # Of toy relations, a part of the least memory has no room for a tuple a step.
    shares, skews = SHARES if rows >= ROWS else SHARES[1:], (0.0, 0.25, 0.5, 0.75, 1.0)
    by_memory = tuple((f"{share:.0%}", of_memory(rows, 1.0, share)) for share in shares)

    def of_data(name: str, data: Data, skew: float) -> Figure:
        enough = shares if rows >= ROWS else SHARES[2:]  # their tuples are larger
        cases = tuple((f"{share:.0%}", of_memory(rows, skew, share, data)) for share in enough)
        return Figure(name, "memory as a share of R", "rate", cases)

    by_skew = tuple((f"{skew:g}", replace(base, skew=skew)) for skew in skews)
    sizes = [small * times for times in (1, 2, 3, 4)]
    rates = (5_000.0, 10_000.0, 20_000.0, 30_000.0)
    fixed = base.memory * rows
    factors = (0.5, 0.75, 1.0, 1.5, 2.0, 4.0)
    parts = (20, 33, 50, 100, 200, 400)
    return (
        Figure("4(a)", "tuples/s that come", "memory",
               tuple((f"{rate:,.0f}", replace(rated, rate_per_s=rate)) for rate in rates)),
        Figure("4(b)", "rows of R", "memory", tuple(
            (f"{size:,}", replace(rated, rows=size, parts=size // (small // 40), rate_per_s=10_000.0))
            for size in sizes)),
        Figure("5(a)", "memory as a share of R", "rate", by_memory),
        Figure("5(b)", "rows of R", "rate",
               tuple((f"{size:,}", of_memory(size, 1.0, fixed / size)) for size in (*sizes, rows))),
        Figure("5(c)", "skew", "rate", by_skew),
        of_data("5(d)", TPC_H, 0.0),
        of_data("5(d), Zipf", TPC_H, 1.0),
        of_data("5(e)", WEATHER, 0.0),
        of_data("5(e), apart", OTHER_WEATHER, 0.0),
        Figure("5(f)", "memory as a share of R", "share", by_memory),
        Figure("6(a)", "s_f", "rate", tuple(
            (f"{factor:g}", replace(of_memory(small, 1.0, 0.1), rule=Rule(switching_factor=factor)))
            for factor in factors)),
        Figure("6(b)", "rows of the buffer", "rate",
               tuple((f"{rows // k:,}", replace(base, parts=k)) for k in parts)),
        Figure("6(c, d)", "skew", "step", by_skew),
    )  # fmt: skip


def run_case(case: Case) -> dict[str, Any]:
    """Both operators, simulated and by the model."""
    return {"ssbj": _run(case), "meshjoin": _run(case.without_cache())}


def _run(case: Case) -> dict[str, Any]:
    found, said = case.simulated(), case.predicted()
    a_step = said.round_tuples / case.parts
    return {
        "rate": [found.rate_per_s, said.rate_per_s],
        "memory": [found.memory_bytes_mean, said.memory_bytes],
        "share": [found.cached_share, said.cached_share],
        "step": [found.seconds / found.steps, a_step / said.rate_per_s],
    }


def run(rows: int, show: Callable[[str], None]) -> dict[str, Any]:
    """All figures; a setting that two of them have is run once."""
    known: dict[Case, dict[str, Any]] = {}

    def points(figure: Figure) -> Iterator[dict[str, Any]]:
        for x, case in figure.cases:
            if case not in known:
                known[case] = run_case(case)
            yield {"x": x, **{name: known[case][name][figure.shows] for name in ("ssbj", "meshjoin")}}

    found = []
    for figure in figures(rows):
        show(figure.name)
        found.append({"name": figure.name, "x": figure.x, "shows": figure.shows, "points": list(points(figure))})
    return {"rows": rows, "figures": found}


def main() -> int:
    def simulate(quick: bool) -> dict[str, Any]:
        return run(QUICK_ROWS if quick else ROWS, lambda name: print(f"figure {name}", flush=True))

    found, docs = evaluation.simulated("python -m benchmarks.semistream", __doc__, FIGURES, simulate)
    from benchmarks.semistream_plots import draw  # It takes a while to import, and figures alone do without.

    draw(found, docs)
    (docs / PAGE).write_text(page(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
