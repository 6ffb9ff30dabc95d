"""The page's plots, as small PNG files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from benchmarks.head import NO_FIGURES

OURS, THEIRS, THIRD = "#1f6f8b", "#b8b8b8", "#e0a458"
DPI = 100
GIB = 1 << 30

Results = Mapping[str, Mapping[str, Any]]


def draw(results: Results, folder: Path) -> dict[str, str]:
    """Draw what there is data for; part -> file name below `folder`."""
    made: dict[str, str] = {}
    for part, (plot, width, height) in PLOTS.items():
        if part not in results:
            continue
        figure, axes = plt.subplots(figsize=(width, height), layout="constrained")
        try:
            plot(axes, results[part])
        except NO_FIGURES:
            continue
        else:
            axes.spines[["top", "right"]].set_visible(False)
            path = folder / f"{part}.png"
            figure.savefig(path, dpi=DPI, metadata={"Software": None})
            made[part] = path.name
        finally:
            plt.close(figure)
    return made


def _bars(axes: Axes, values: Mapping[str, float], label: str, ours: str = "streamjoin") -> None:
    """Horizontal bars, largest on top as given, each with its value."""
    names = list(values)[::-1]
    heights = [values[name] for name in names]
    bars = axes.barh(names, heights, color=[OURS if name.startswith(ours) else THEIRS for name in names])
    axes.bar_label(bars, [f"{height:,.0f}" for height in heights], padding=3, fontsize=8)
    axes.set_xlim(0, max(heights) * 1.18)
    axes.set_xlabel(label)
    axes.tick_params(labelsize=8)


def _rates(axes: Axes, part: Mapping[str, Any], of: str = "both streams") -> None:
    rates = {name: run["rate_measured"] for name, run in part["runs"].items() if run.get("rate_measured")}
    _bars(axes, dict(sorted(rates.items(), key=lambda item: -item[1])), f"tuples/s of {of}, after warm-up")


def _band(axes: Axes, part: Mapping[str, Any]) -> None:
    rates = {f"streamjoin, {name}": run["rate_full_window"] for name, run in part["runs"].items()}
    rates = {name: rate for name, rate in rates.items() if rate}
    _bars(axes, {**rates, "SplitJoin, 28 cores (paper)": part["paper_tuples_per_second"]}, "tuples/s, windows full")


def _memory(axes: Axes, part: Mapping[str, Any]) -> None:
    memory = part["free"]["memory"]
    bars = {
        "live state on disk": part["state_bytes"],
        "file-backed, all processes": memory["file_bytes"],
        "anonymous, all processes": memory["anonymous_bytes"],
    }
    names = list(bars)[::-1]
    drawn = axes.barh(names, [bars[name] / GIB for name in names], color=[THIRD, OURS, THEIRS])
    axes.bar_label(drawn, fmt="%.2f", padding=3, fontsize=8)
    axes.axvline(part["limit_bytes"] / GIB, color="#a33", linewidth=1, linestyle="--")
    axes.set_xlabel("GiB, peak proportional set size; dashed: the limit of the second run")
    axes.tick_params(labelsize=8)


def _startup(axes: Axes, part: Mapping[str, Any]) -> None:
    names = ["first batch", "after kill -9"]
    for offset, (size, color) in enumerate((("small", THEIRS), ("large", OURS))):
        median = part[size]["median"]
        places = [place + (offset - 0.5) * 0.38 for place in range(2)]
        label = f"{median['state_bytes'] / (1 << 20):,.0f} MiB of state when killed"
        bars = axes.barh(places, [median["first_batch_s"], median["recovery_s"]], 0.36, color=color, label=label)
        axes.bar_label(bars, fmt="%.1f", padding=3, fontsize=8)
    axes.set_yticks(range(2), names)
    axes.invert_yaxis()
    axes.set_xlabel("seconds from the command to the next committed batch")
    axes.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.25), ncols=2)
    axes.tick_params(labelsize=8)


def _operators(axes: Axes, part: Mapping[str, Any]) -> None:
    figures = part["bytes"]
    sent = [figures[name]["sent_bytes"] / 2**20 for name in figures]
    axes.bar_label(axes.bar(range(len(sent)), sent, 0.6, color=OURS), fmt="%.0f", padding=2, fontsize=8)
    axes.set_xticks(range(len(sent)), [f"{name}\n{figures[name]['paper_name']}" for name in figures])
    axes.set_ylabel("MiB sent\nbetween two slots")
    axes.tick_params(labelsize=8)


def _index(axes: Axes, part: Mapping[str, Any]) -> None:
    rates = {f"streamjoin {name}": figures["probes_per_second"] for name, figures in part["probes"].items()}
    _bars(axes, {name.removeprefix("streamjoin "): rate for name, rate in rates.items()}, "probes/s of one core", "")
    axes.set_xscale("log")
    axes.set_xlim(1, max(rates.values()) * 30)


def _asof(axes: Axes, part: Mapping[str, Any]) -> None:
    rates = {name: run["rate_measured"] / 2 for name, run in part["runs"].items() if run.get("rate_measured")}
    for one in part["alone"]:
        rates[f"streamjoin, join alone, {one['rows_per_batch']:,} a batch"] = one["left_rows_per_second"]
    rates["DuckDB, all rows at once"] = part["duckdb"]["left_rows_per_second"]
    _bars(axes, dict(sorted(rates.items(), key=lambda item: -item[1])), "rows of r/s")


def _group_questions(axes: Axes, part: Mapping[str, Any]) -> None:
    stores = {name: store["asked"] for name, store in part["stores"].items() if "skipped" not in store}
    kinds = list(next(iter(stores.values())))
    wide = 0.8 / len(stores)
    for offset, ((name, asked), color) in enumerate(zip(stores.items(), (OURS, THEIRS, THIRD), strict=False)):
        places = [place + (offset - (len(stores) - 1) / 2) * wide for place in range(len(kinds))]
        bars = axes.barh(places, [asked[kind]["p95_ms"] for kind in kinds], wide, color=color, label=name)
        axes.bar_label(bars, fmt="%.0f", padding=3, fontsize=7)
    axes.set_yticks(range(len(kinds)), kinds)
    axes.invert_yaxis()
    axes.set_xlabel("ms, 95th percentile")
    axes.legend(fontsize=8, frameon=False)
    axes.tick_params(labelsize=8)


def _elastic(axes: Axes, part: Mapping[str, Any]) -> None:
    rows: Sequence[int] = next(iter(part["routings"].values()))["batch_rows"]
    at_first = 2 * part["units_at_first"]
    axes.step(range(len(rows)), [at_first * count / rows[0] for count in rows], where="post", color=THEIRS,
              label=f"tuples of a batch, as so many units at {rows[0] / at_first:,.0f} each")  # fmt: skip
    for (name, found), color in zip(part["routings"].items(), (OURS, THIRD, "#7a4f9a"), strict=False):
        for what, style in (("storing", "-"), ("draining", ":")):
            points = [(one["batch"], sum(one[what].values())) for one in found["storing"]]
            begins, units = zip(*points, (len(rows), points[-1][1]), strict=True)
            axes.step(begins, units, style, where="post", color=color, label=f"{name}: units that {_UNITS[what]}")
    axes.set_xlabel("batch")
    axes.set_ylim(0)
    axes.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.35), ncols=2)
    axes.tick_params(labelsize=8)


_UNITS = {"storing": "store", "draining": "drain"}

PLOTS: Mapping[str, tuple[Callable[[Axes, Mapping[str, Any]], None], float, float]] = {
    "equi_large": (_rates, 7.5, 3.0),
    "equi_small": (_rates, 7.5, 3.0),
    "outer": (_rates, 7.5, 2.4),
    "aggregate": (_rates, 7.5, 1.7),
    "asof": (_asof, 7.5, 2.2),
    "three_streams": (partial(_rates, of="all streams"), 7.5, 1.5),
    "group_questions": (_group_questions, 7.5, 3.4),
    "band": (_band, 7.5, 1.9),
    "kafka_json": (_rates, 7.5, 1.5),
    "elastic": (_elastic, 7.5, 3.4),
    "memory": (_memory, 7.5, 1.7),
    "startup": (_startup, 7.5, 1.9),
    "operators": (_operators, 7.5, 2.8),
    "index": (_index, 7.5, 2.2),
}
"""Part -> how it is drawn, width and height in inches."""
