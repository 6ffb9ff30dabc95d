"""The pictures of SSBJ's evaluation: dots where a unit was simulated, lines where the model was asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from benchmarks.plots import DPI, OURS, THIRD
from benchmarks.semistream_page import PICTURES

COLORS = {"ssbj": OURS, "meshjoin": THIRD}
SMALL = 8
_LABELS = {"rate": "tuples/s", "memory": "KiB", "share": "% of tuples from the cache", "step": "ms a step"}
_SCALES = {"rate": 1.0, "memory": 1 / 1024, "share": 100.0, "step": 1e3}


def draw(results: Mapping[str, Any], folder: Path) -> None:
    """One PNG for each picture."""
    known = {figure["name"]: figure for figure in results["figures"]}
    for name, figures in PICTURES.items():
        figure, panels = plt.subplots(
            1, len(figures), figsize=(3.1 * len(figures), 2.7), layout="constrained", squeeze=False
        )
        try:
            for axes, one in zip(panels[0], figures, strict=True):
                _panel(axes, known[one])
            handles, labels = panels[0][0].get_legend_handles_labels()
            figure.legend(handles, labels, fontsize=SMALL, frameon=False, ncols=4, loc="outside lower center")
            figure.savefig(folder / f"{name}.png", dpi=DPI, metadata={"Software": None})
        finally:
            plt.close(figure)


def _panel(axes: Axes, figure: Mapping[str, Any]) -> None:
    points, shows = figure["points"], figure["shows"]
    places, scale = range(len(points)), _SCALES[figure["shows"]]
    for name, color in COLORS.items():
        if shows == "share" and name == "meshjoin":
            continue
        axes.plot(places, [scale * one[name][0] for one in points], "o", color=color, markersize=4, label=name)
        if figure["x"] != "s_f":
            said = [scale * one[name][1] for one in points]
            axes.plot(places, said, color=color, linewidth=1, label=f"{name}, by the model")
    axes.set_title(f"Figure {figure['name']}", fontsize=SMALL)
    axes.set_xticks(list(places), [one["x"] for one in points])
    axes.set_xlabel(figure["x"], fontsize=SMALL)
    axes.set_ylabel(_LABELS[shows], fontsize=SMALL)
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=SMALL - 1)
