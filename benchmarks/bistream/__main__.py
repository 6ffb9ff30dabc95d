"""BiStream's evaluation with the engine's own units, each of which counts as a machine.

python -m benchmarks.bistream             docs/evaluation/: bistream.json, bistream.md and pictures; some minutes
python -m benchmarks.bistream --quick     toy sizes into benchmarks/out/quick/evaluation/, in seconds
python -m benchmarks.bistream --page      page and pictures anew, from the figures that are there

Bytes and volumes are counted and do not depend on what else the machine does; rates and latencies do, so that the real
sizes wait for a quiet machine.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from benchmarks import evaluation, machine
from benchmarks.bistream.figures import FIGURES, FULL, QUICK, Size
from benchmarks.bistream.page import page

FILE, PAGE = "bistream.json", "bistream.md"


def run(size: Size) -> dict[str, Any]:
    """All figures."""
    found: dict[str, Any] = {}
    for name, figure in FIGURES.items():
        print(name, flush=True)
        found[name] = list(figure(size))
    described = machine.describe()
    return {"size": asdict(size), "machine": {key: described[key] for key in ("cores", "model")}, "figures": found}


def main() -> int:
    def measure(quick: bool) -> dict[str, Any]:
        return run(QUICK if quick else FULL)

    found, docs = evaluation.simulated("python -m benchmarks.bistream", __doc__, FILE, measure, timed=True)
    from benchmarks.bistream.plots import draw  # It takes a while to import, and figures alone do without.

    draw(found, docs)
    (docs / PAGE).write_text(page(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
