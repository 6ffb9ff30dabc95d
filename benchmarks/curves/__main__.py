"""Measure unit costs, run the simulations, and write the evaluation pages.

python -m benchmarks.curves            docs/evaluation/: curves.json, the pictures and both pages; some minutes
python -m benchmarks.curves --quick    toy sizes into benchmarks/out/quick/, in seconds
python -m benchmarks.curves --page     the pictures and pages anew, from the figures that are there
"""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import evaluation, machine, provenance, quiet
from benchmarks.curves import handshake, page, splitjoin, units
from benchmarks.curves.units import Measured

FIGURES = "curves.json"
MACHINE = ("cores", "model", "system", "python", "numpy", "numba")


def main() -> int:
    parser, arguments = evaluation.asked("python -m benchmarks.curves", __doc__, "measure nothing")
    docs = arguments.docs
    if not arguments.page:
        if evaluation.is_real(docs):
            try:
                provenance.require_clean()
                quiet.wait_until_quiet()
            except (provenance.DirtyError, quiet.BusyError) as refused:
                parser.exit(1, f"nothing was measured: {refused}, or measure for yourself with --docs FOLDER\n")
        results = evaluation.rounded(run(arguments.quick))
        if provenance.commit() != results["commit"]:
            parser.exit(1, "nothing was written: the code was changed while it was measured\n")
        (docs / FIGURES).write_text(json.dumps(results, indent=1) + "\n")
    write(docs)
    return 0


def run(quick: bool = False, costs: Measured | None = None) -> dict[str, Any]:
    """All figures of both pages.

    Args:
        costs: of the units of work; they are measured if none are given.
    """
    begun = datetime.now(UTC).isoformat(timespec="seconds")
    described = machine.describe()
    costs = costs or units.measure(quick)
    return {
        "quick": quick,
        "begun": begun,
        "commit": described["commit"],
        "busy_before": 0.0 if quick else quiet.look().share,
        "machine": {key: described[key] for key in MACHINE},
        "units": asdict(costs),
        "numpy_compare": units.compare_numpy_ns(1 << (12 if quick else 16)),
        "splitjoin": splitjoin.figures(costs, quick),
        "handshake": handshake.figures(quick),
    }


def write(docs: Path) -> None:
    """Pictures and pages from the figures in a folder."""
    from benchmarks.curves.plots import draw  # It takes a while to import, and figures alone do without.

    results = json.loads((docs / FIGURES).read_text())
    draw(results, docs)
    for name, text in page.pages(results).items():
        (docs / name).write_text(text)


if __name__ == "__main__":
    raise SystemExit(main())
