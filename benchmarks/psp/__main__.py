"""The ring, ATR and CTR, simulated message by message: PSP's figures 7 and 8 in our words.

python -m benchmarks.psp             docs/evaluation/: psp.json, psp.md and pictures; about a quarter of an hour
python -m benchmarks.psp --quick     toy sizes into benchmarks/out/quick/evaluation/, in seconds
python -m benchmarks.psp --only PART a part of the figures anew, with the costs that are there
python -m benchmarks.psp --page      page and pictures anew, from the figures that are there

First it is measured what single steps take, and last what jobs on Spark do, for which the machine has to be quiet.
Everything else is counted on a clock of its own, so what else the machine does changes nothing more.
"""

from __future__ import annotations

from typing import Any

from benchmarks import evaluation
from benchmarks.psp.figures import AGAIN, FULL, QUICK, TIMED, run
from benchmarks.psp.page import page

FIGURES, PAGE = "psp.json", "psp.md"


def main() -> int:
    def simulate(quick: bool) -> dict[str, Any]:
        return run(QUICK if quick else FULL, quick=quick)

    found, docs = evaluation.simulated(
        "python -m benchmarks.psp", __doc__, FIGURES, simulate, timed=True, again=AGAIN, timed_again=TIMED
    )
    from benchmarks.psp.plots import draw  # It takes a while to import, and figures alone do without.

    draw(found, docs)
    (docs / PAGE).write_text(page(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
