"""What two hours of dying parts looked like: `python -m tests.soak.dying_page --folder build/soak/HASH/dying`.

It takes over the timeline of that folder as docs/soak/dying.json, and makes docs/soak/dying.md and its plots of it;
without a folder it makes them anew of what is there.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from benchmarks.cells import number, table
from benchmarks.plots import DPI, OURS, THIRD
from benchmarks.scale import ROOT

from .dying import KINDS
from .load import RATES
from .looks import Look, Timeline, usual

DOCS = ROOT / "docs" / "soak"
MIB = 1 << 20


def page(timeline: Timeline) -> str:
    """The text of the page."""
    killed = Counter(kill.kind for kill in timeline.kills)
    rounds = [
        [str(count), number(usual("memory", looks) / MIB), number(usual("state", looks) / MIB, ",.1f")]
        for count, looks in enumerate(timeline.rounds(), 1)
    ]
    answered = statistics.mean(look.answered for look in timeline.looks)
    rates = ", ".join(f"{rate:,}" for rate in RATES)
    return f"""# Two hours in which something dies each minute

A platform with one job on a Spark cluster of two workers, its state in an object store and its results in HBase, all
on one machine. Two streams get up to {rates} rows a second each, a minute each, and then again from the first. About
once a minute something is killed. `python -m tests.soak.dying_page` wrote this page from what the parts `dying-0` to
`dying-7` of `make soak` saw ([dying.json](dying.json)); do not edit.

{timeline.begun_s / 60:,.0f} minutes, {timeline.looks[-1].rows:,} rows in, {timeline.totals[-1]:,} results. At the end
of each of the {len(timeline.ends_s)} parts all results so far were those of DuckDB's join of all rows. The platform
said within two seconds how the job was in {answered:.0%} of the times that it was asked.

![Rows, results, memory and state over time](dying.png)

{table(["what was killed", "times"], [[kind, str(killed[kind])] for kind in KINDS])}

A round is of all five rates. Medians, of the memory of the platform, the driver and the executors without what they
share, and of the state with the checkpoint. With them is the log of the files that were read, in the checkpoint and in
the store: a line of about 120 bytes for each file of a stream, so it grows for as long as files come:

{table(["round", "memory, MiB", "state, MiB"], rounds)}
"""


def draw(timeline: Timeline, file: Path) -> None:
    """Rows and results, memory, and state over minutes; a line for each kill."""
    figure, axes = plt.subplots(3, 1, figsize=(9, 7), sharex=True, layout="constrained")
    try:
        minutes = [look.at_s / 60 for look in timeline.looks]
        of_rows, of_memory, of_state = axes
        _line(of_rows, minutes, _a_second(timeline.looks, lambda look: look.rows), "rows/s that come", OURS)
        _line(
            of_rows,
            minutes,
            _a_second(timeline.looks, lambda look: look.results),
            "results/s that are committed",
            THIRD,
        )
        _line(of_memory, minutes, [look.memory_bytes / MIB for look in timeline.looks], "memory, MiB", OURS)
        _line(of_state, minutes, [look.state_bytes / MIB for look in timeline.looks], "state, MiB", OURS)
        for each in axes:
            for kill in timeline.kills:
                each.axvline(kill.at_s / 60, color="#dddddd", linewidth=0.6, zorder=0)
            each.set_ylim(bottom=0)
            each.legend(fontsize=8, loc="upper left")
            each.spines[["top", "right"]].set_visible(False)
            each.tick_params(labelsize=8)
        of_state.set_xlabel("minutes")
        figure.savefig(file, dpi=DPI, metadata={"Software": None})
    finally:
        plt.close(figure)


def _line(axes: Axes, minutes: Sequence[float], values: Sequence[float], label: str, color: str) -> None:
    axes.plot(minutes, values, label=label, color=color, linewidth=1)


def _a_second(looks: Sequence[Look], of: Callable[[Look], int]) -> list[float]:
    """How fast a sum grew since the look before."""
    grown = [
        (of(look) - of(before)) / (look.at_s - before.at_s) if look.at_s > before.at_s else float("nan")
        for before, look in itertools.pairwise(looks)
    ]
    return [float("nan"), *grown]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.dying_page")
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    kept = DOCS / "dying.json"
    timeline = Timeline.read(kept if asked.folder is None else asked.folder / "timeline.json")
    if not timeline.ends_s:
        print("no part has passed yet: run python -m tests.soak.dying first", file=sys.stderr)
        return 1
    timeline.write(kept)
    (DOCS / "dying.md").write_text(page(timeline))
    draw(timeline, DOCS / "dying.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
