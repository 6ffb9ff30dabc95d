"""The pictures of PSP's evaluation: response times by nodes, and while the rate doubles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from benchmarks.plots import DPI, OURS, THEIRS, THIRD

SMALL = 8
COLORS = (THEIRS, THIRD, OURS)


def draw(results: Mapping[str, Any], folder: Path) -> None:
    """`psp_response.png` and `psp_adaptation.png`, of what there is."""
    found = results["figures"]
    for name, needs, plot in (("response", "rings", _response), ("adaptation", "adaptation", _adaptation)):
        if needs not in found:
            continue
        shapes = list(dict.fromkeys(_shape(needs, one) for one in found[needs]))
        figure, every = plt.subplots(
            1, len(shapes), figsize=(3.2 * len(shapes), 3.0), layout="constrained", squeeze=False
        )
        try:
            for axes, shape in zip(every[0], shapes, strict=True):
                plot(axes, [one for one in found[needs] if _shape(needs, one) == shape])
                # Ranges are short of a power of ten, which alone would be named.
                axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axes.yaxis.set_major_formatter("{x:g}")
                axes.yaxis.set_minor_formatter(NullFormatter())
                axes.set_title(shape, fontsize=SMALL)
                axes.spines[["top", "right"]].set_visible(False)
                axes.tick_params(labelsize=SMALL)
                axes.legend(fontsize=SMALL, frameon=False)
            figure.savefig(folder / f"psp_{name}.png", dpi=DPI, metadata={"Software": None})
        finally:
            plt.close(figure)


def _shape(needs: str, one: Mapping[str, Any]) -> str:
    streams = f"{one['streams']} streams"
    return streams if needs == "rings" else f"{streams}, p = {one['matches']:g} and then {2 * one['matches']:g}"


def _response(axes: Axes, points: list[Mapping[str, Any]]) -> None:
    for color, matches in zip(COLORS, dict.fromkeys(one["matches"] for one in points), strict=False):
        mine = [one for one in points if one["matches"] == matches]
        nodes = [one["nodes"] for one in mine]
        axes.semilogy(nodes, [one["cycle"] for one in mine], color=color, linewidth=1, label=f"p = {matches:g}")
        axes.semilogy(nodes, [one["cycle_model"] for one in mine], ":", color=color, linewidth=1)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("nodes", fontsize=SMALL)
    axes.set_ylabel("ms of a cycle; dotted: formula", fontsize=SMALL)


def _adaptation(axes: Axes, points: list[Mapping[str, Any]]) -> None:
    for color, one in zip(COLORS, points, strict=True):
        tenths = one["response"]
        axes.semilogy(
            [at for at, _, _ in tenths], [ms for _, ms, _ in tenths], color=color, linewidth=1, label=one["way"]
        )  # fmt: skip
    axes.axvline(0, color="black", linewidth=0.5)
    axes.set_xlabel("windows after the change", fontsize=SMALL)
    axes.set_ylabel("ms until a result", fontsize=SMALL)
