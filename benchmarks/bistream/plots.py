"""The pictures of BiStream's evaluation: how much fits by units, and what is stored over time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from benchmarks.plots import DPI, OURS, THIRD

SMALL = 8
SHAPES = {"JB": OURS, "JM": THIRD}


def draw(results: Mapping[str, Any], folder: Path) -> None:
    """`bistream_volume.png` and `bistream_time.png`."""
    found = results["figures"]
    for name, plot in (("volume", _volume), ("time", _time)):
        figure, axes = plt.subplots(figsize=(5.2, 3.0), layout="constrained")
        try:
            plot(axes, found)
            axes.spines[["top", "right"]].set_visible(False)
            axes.tick_params(labelsize=SMALL)
            axes.legend(fontsize=SMALL, frameon=False)
            figure.savefig(folder / f"bistream_{name}.png", dpi=DPI, metadata={"Software": None})
        finally:
            plt.close(figure)


def _volume(axes: Axes, found: Mapping[str, Any]) -> None:
    for shape, color in SHAPES.items():
        mine = [one for one in found["volumes"] if one["feed"] == "Q7" and one["setting"].startswith(shape)]
        units = [one["units"] for one in mine]
        axes.loglog(units, [one["fed"] / 1e3 for one in mine], "o", color=color, markersize=4, label=shape)
        power = 1.0 if shape == "JB" else 0.5
        model = [mine[0]["fed"] / 1e3 * (one / units[0]) ** power for one in units]
        axes.loglog(units, model, color=color, linewidth=1, label=f"{shape}, units to the power of {power:g}")
    axes.set_xticks(ticks := sorted({one["units"] for one in found["volumes"]}), [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("units", fontsize=SMALL)
    axes.set_ylabel("thousand tuples, Q7", fontsize=SMALL)


def _time(axes: Axes, found: Mapping[str, Any]) -> None:
    for style, one in zip(("-", "--", ":"), found["over_time"], strict=False):
        times = [one["step_s"] * (number + 1) for number in range(len(one["stored"]))]
        stored = [bytes_ / 1024 for bytes_ in one["stored"]]
        axes.plot(times, stored, style, color=OURS, linewidth=1, label=f"window {one['window_s']:g} s")
    axes.set_xlabel("event time, s", fontsize=SMALL)
    axes.set_ylabel("KiB a unit", fontsize=SMALL)
    axes.set_ylim(bottom=0)
