"""The evaluation pages' pictures: ours as lines, dots where the protocol was simulated, the paper's numbers red."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.curves import paper
from benchmarks.plots import DPI, OURS, THEIRS, THIRD

Part = Mapping[str, Any]

SPLITJOIN, CHAIN, PREDICTED, PAPER, RATIO = OURS, THIRD, THEIRS, "#a33333", "#555555"
STYLES = ("-", "--", ":", "-.", (0, (1, 3)))
SMALL = 8


def draw(results: Mapping[str, Any], folder: Path) -> None:
    """One PNG for each picture."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (plot, width, height, panels) in PICTURES.items():
        figure, axes = plt.subplots(1, panels, figsize=(width, height), layout="constrained", squeeze=False)
        try:
            plot(figure, list(axes[0]), results)
            for each in axes[0]:
                each.spines[["top", "right"]].set_visible(False)
                each.tick_params(labelsize=SMALL)
            figure.savefig(folder / f"{name}.png", dpi=DPI, metadata={"Software": None})
        finally:
            plt.close(figure)


def _legend(axes: Axes, **place: Any) -> None:
    axes.legend(fontsize=SMALL, frameon=False, **place)


def _below(figure: Figure, axes: Axes, columns: int) -> None:
    """One legend for all panels, under them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, fontsize=SMALL, frameon=False, ncols=columns, loc="outside lower center")


def _cores(axes: Axes) -> None:
    axes.set_xlabel("join cores k", fontsize=SMALL)
    axes.set_xlim(0, paper.CORES_MAX + 1)
    axes.set_xticks([1, 4, 8, 12, 16, 20, 24, paper.CORES, paper.CORES_MAX])


def _dot(axes: Axes, x: float, y: float, text: str, offset: tuple[float, float] = (-6, 6)) -> None:
    """A number that the paper gives."""
    axes.plot([x], [y], "D", color=PAPER, markersize=5, zorder=5)
    axes.annotate(text, (x, y), xytext=offset, textcoords="offset points", fontsize=SMALL, color=PAPER,
                  ha="right" if offset[0] < 0 else "left")  # fmt: skip


def _power(rows: str | int) -> str:
    return f"$2^{{{int(rows).bit_length() - 1}}}$"


def _throughput(figure: Figure, panels: Sequence[Axes], windows: Mapping[str, Part], name: Callable[[str], str],
                point: tuple[float, str]) -> None:  # fmt: skip
    rates = panels[0]
    for style, (window, part) in zip(STYLES, windows.items(), strict=False):
        cores = part["cores"]
        rates.plot(cores, part["splitjoin"], color=SPLITJOIN, linestyle=style, label=f"SplitJoin, {name(window)}")
        rates.plot(cores, part["chain"], color=CHAIN, linestyle=style, label=f"LH chain, {name(window)}")
        dots = part["simulated"]
        rates.plot([d["cores"] for d in dots], [d["splitjoin"] for d in dots], "o", color=SPLITJOIN, markersize=4)
        rates.plot([d["cores"] for d in dots], [d["chain"] for d in dots], "o", color=CHAIN, markersize=4,
                   fillstyle="none")  # fmt: skip
    _dot(rates, paper.CORES, *point, offset=(-8, -3))
    rates.set_yscale("log")
    rates.set_ylabel("tuples/s of both streams", fontsize=SMALL)
    rates.set_ylim(bottom=1_000)
    _cores(rates)
    _below(figure, rates, len(windows) if len(windows) < 4 else 5)


def _throughput_time(figure: Figure, panels: Sequence[Axes], results: Part) -> None:
    _throughput(figure, panels, results["splitjoin"]["time"], lambda window: f"{window} min",
                (paper.TUPLES_PER_S_TIME, "paper, 15 min"))  # fmt: skip
    part, axes = results["splitjoin"]["hand_over"], panels[1]
    for style, points in zip(STYLES, part["lines"].values(), strict=False):
        axes.plot([p["us"] for p in points], [p["ratio"] for p in points], color=RATIO, linestyle=style)
    axes.axvline(part["measured_us"], color=SPLITJOIN, linewidth=1)
    axes.text(part["measured_us"] * 1.1, 1.45, "measured", color=SPLITJOIN, fontsize=SMALL)
    axes.set_xscale("log")
    axes.set_xlabel("to send and receive a message, us of both cores; k = 28", fontsize=SMALL)
    _ratio(axes)


def _throughput_count(figure: Figure, panels: Sequence[Axes], results: Part) -> None:
    _throughput(figure, panels, results["splitjoin"]["count"], _power,
                (paper.TUPLES_PER_S_COUNT, f"paper, {_power(paper.COUNT_WINDOW)}"))  # fmt: skip
    for style, part in zip(STYLES, results["splitjoin"]["count"].values(), strict=False):
        ratios = [ours / chain for ours, chain in zip(part["splitjoin"], part["chain"], strict=True)]
        panels[1].plot(part["cores"], ratios, color=RATIO, linestyle=style)
    _cores(panels[1])
    _ratio(panels[1])


def _ratio(axes: Axes) -> None:
    axes.axhline(paper.GAIN_THROUGHPUT, color=PAPER, linewidth=1, linestyle="--")
    axes.text(0.98, paper.GAIN_THROUGHPUT + 0.01, "paper: up to 1.6, 15 min", color=PAPER, fontsize=SMALL, ha="right",
              transform=axes.get_yaxis_transform())  # fmt: skip
    axes.set_ylim(0.95, 1.8)
    axes.set_ylabel("SplitJoin / LH chain", fontsize=SMALL)


def _visiting(figure: Figure, panels: Sequence[Axes], results: Part) -> None:
    part, loaded = results["splitjoin"]["visiting"], results["splitjoin"]["stages"]["time"]["points"]
    fixed, window = panels
    names = {"splitjoin": ("SplitJoin", SPLITJOIN), "chain": ("LH chain", CHAIN)}
    load = f"{results['splitjoin']['stages']['time']['load']:.0%} load"
    for system, (name, color) in names.items():
        fixed.plot(part["cores"], part["fixed"][system], color=color, label=f"{name}, formula, nobody waits")
        dots = part["simulated"]
        fixed.plot([d["cores"] for d in dots], [d[system] for d in dots], "o", color=color, markersize=4,
                   label=f"{name}, simulated")  # fmt: skip
        window.plot(part["cores"], [each / 1e3 for each in part["15"][system]], color=color)
        key = {"splitjoin": "visiting", "chain": "chain_visiting"}[system]
        window.plot([d["cores"] for d in loaded], [d[key] / 1e3 for d in loaded], "o--", color=color, markersize=4,
                    label=f"{name}, simulated at {load}")  # fmt: skip
    fixed.set_title(f"sub-window of {_power(part['fixed_rows'])} in every core", fontsize=SMALL)
    fixed.set_ylabel("visiting latency, us", fontsize=SMALL)
    fixed.set_ylim(bottom=0)
    window.set_title("window of 15 minutes", fontsize=SMALL)
    window.set_yscale("log")
    window.set_ylabel("visiting latency, ms", fontsize=SMALL)
    _dot(window, paper.CORES, paper.VISITING_MS, f"paper, SplitJoin {paper.VISITING_MS:g} ms", (-8, -3))
    _dot(window, paper.CORES, paper.CHAIN_VISITING_MS, f"paper, LH {paper.CHAIN_VISITING_MS:.0f}.x ms", (-8, -3))
    for axes in panels:
        _cores(axes)
    handles, labels = (a + b for a, b in zip(*(axes.get_legend_handles_labels() for axes in panels), strict=True))
    figure.legend(handles, labels, fontsize=SMALL, frameon=False, ncols=3, loc="outside lower center")


STAGES = {
    "distribution": ("dis", "#1f6f8b", "-"), "execution": ("exe", "#1f6f8b", "--"),
    "gathering": ("gather", "#1f6f8b", ":"), "processing": ("processing (PL)", "#555555", "-."),
    "end_to_end": ("ete", "#111111", "-"), "visiting": ("vis", "#8bb8c9", "-"),
}  # fmt: skip


def _stages(figure: Figure, panels: Sequence[Axes], results: Part) -> None:
    parts = results["splitjoin"]["stages"]
    for axes, name, title in zip(panels, ("time", "count"), ("15 minutes", _power(paper.COUNT_WINDOW)), strict=True):
        points = parts[name]["points"]
        for stage, (label, color, style) in STAGES.items():
            # One core has no trees: it gathers in no time, which a logarithm cannot show.
            drawn = [point for point in points if point[stage] > 0]
            axes.plot([p["cores"] for p in drawn], [p[stage] / 1e3 for p in drawn], color=color, linestyle=style,
                      marker="o", markersize=3, label=label)  # fmt: skip
        axes.set_yscale("log")
        axes.set_title(f"SplitJoin, window of {title}, {parts[name]['load']:.0%} load", fontsize=SMALL)
        axes.set_ylabel("mean latency, ms", fontsize=SMALL)
        _cores(axes)
    _below(figure, panels[0], len(STAGES))


def _selectivity(figure: Figure, panels: Sequence[Axes], results: Part) -> None:
    points = results["splitjoin"]["selectivity"]["points"]
    x = [point["match_probability"] for point in points]
    for axes, what, label in zip(
        panels, ("tuples_per_s", "results_per_s"), ("tuples/s of both streams", "results/s"), strict=True
    ):
        for style, rows in zip(STYLES, points[0]["by_rows"], strict=False):
            axes.plot(x, [point["by_rows"][rows][what] for point in points], color=SPLITJOIN, linestyle=style,
                      marker="o", markersize=3, label=f"w = {_power(rows)}")  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("match probability", fontsize=SMALL)
        axes.set_ylabel(label, fontsize=SMALL)
    _below(figure, panels[0], 4)


def _stars(figure: Figure, panels: Sequence[Axes], results: Part) -> None:
    (axes,) = panels
    part = results["splitjoin"]["stars"]
    for style, (rows, line) in zip(STYLES, part["lines"].items(), strict=False):
        axes.plot([p["interval"] for p in line], [p["tuples_per_s"] for p in line], color=SPLITJOIN, linestyle=style,
                  label=f"w = {_power(rows)}")  # fmt: skip
    axes.plot([p["interval"] for p in part["simulated"]], [p["tuples_per_s"] for p in part["simulated"]], "o",
              color=SPLITJOIN, markersize=4, label=f"simulated, w = {_power(part['simulated_rows'])}")  # fmt: skip
    axes.axvspan(paper.STAR_INTERVAL_FREE, paper.SUB_WINDOWS[-1] * 1.2, color=PAPER, alpha=0.08, linewidth=0)
    axes.text(paper.STAR_INTERVAL_FREE * 1.15, 40, "paper: no loss\nfrom $2^{11}$ on", color=PAPER, fontsize=SMALL)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("comparisons from star to star", fontsize=SMALL)
    axes.set_ylabel("tuples/s of both streams", fontsize=SMALL)
    _legend(axes, loc="center left", bbox_to_anchor=(1.0, 0.5))


INDEXES = {"scan": ("scan", THEIRS), "bst": ("balanced tree", CHAIN), "hash": ("hash map", "#8a5a1f")}


def _efficiency(figure: Figure, panels: Sequence[Axes], results: Part) -> None:
    rows = results["handshake"]["efficiency"]
    counted = [row for row in rows if "measured" in row]
    rho, compared = panels
    for index, (name, color) in INDEXES.items():
        rho.plot([row["n"] for row in rows], [row["predicted"][index] for row in rows], color=color,
                 label=f"{name}, formula")  # fmt: skip
        rho.plot([row["n"] for row in counted], [row["measured"][index] for row in counted], "o", color=color,
                 markersize=5, label=f"{name}, counted")  # fmt: skip
        compared.plot([row["n"] for row in counted], [row["compared_per_tuple"][index] for row in counted], "o-",
                      color=color, markersize=5)  # fmt: skip
    rho.set_ylabel("rho = outputs / comparisons", fontsize=SMALL)
    compared.set_ylabel("comparisons a tuple", fontsize=SMALL)
    for axes in panels:
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("n, distinct keys of each stream", fontsize=SMALL)
    _below(figure, rho, 3)


KINDS = {"TUPLE_BLK": (CHAIN, "-"), "ACK_BLK": (CHAIN, "--"), "SIZE_CHG": ("#8a5a1f", ":")}


def _blocks(figure: Figure, panels: Sequence[Axes], results: Part) -> None:
    chain = results["handshake"]
    points = chain["blocks"]["points"]
    balance, sizes = panels
    x = [point["block"] for point in points]
    balance.plot(x, [point["predicted"] for point in points], color=PREDICTED, label="formula, b / w_avg")
    balance.plot(x, [point["imbalance"] for point in points], "o-", color=CHAIN, markersize=4, label="simulated")
    best = chain["best"]["1.0"]
    for at, name, alignment in ((best["best"], "b*", "left"), (best["capped"], "with the cap", "right")):
        balance.axvline(at, color=PAPER, linewidth=1, linestyle="--")
        balance.text(at * (1.15 if alignment == "left" else 0.87), 0.0006, f"{name} = {at:.0f}", color=PAPER,
                     fontsize=SMALL, ha=alignment)  # fmt: skip
    balance.set_ylabel("IF = (w_max - w_avg) / w_avg", fontsize=SMALL)
    _legend(balance, loc="upper left")
    for kind, (color, style) in KINDS.items():
        drawn = [point for point in points if kind in point["bytes"]]
        sizes.plot([p["block"] for p in drawn], [p["bytes"][kind] for p in drawn], color=color, linestyle=style,
                   marker="o", markersize=4, label=kind)  # fmt: skip
    sizes.set_ylabel("bytes of a tuple's hop", fontsize=SMALL)
    _legend(sizes, loc="lower left")
    for axes in panels:
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("block b, tuples", fontsize=SMALL)


def _workers(figure: Figure, panels: Sequence[Axes], results: Part) -> None:
    (axes,) = panels
    part = results["handshake"]["workers"]
    for style, (block, points) in zip(STYLES, part["blocks"].items(), strict=False):
        axes.plot([p["workers"] for p in points], [p["imbalance"] for p in points], color=CHAIN, linestyle=style,
                  marker="o", markersize=4, label=f"simulated, b = {block}")  # fmt: skip
        axes.axhline(int(block) / part["share"], color=PREDICTED, linestyle=style, label=f"b / w_avg, b = {block}")
    axes.set_xlabel("workers m", fontsize=SMALL)
    axes.set_ylabel("IF", fontsize=SMALL)
    axes.set_ylim(bottom=0)
    _legend(axes, loc="center left", bbox_to_anchor=(1.0, 0.5))


WORKERS = ("#e0a458", "#a33333", "#8a5a1f", "#555555")


def _over_time(figure: Figure, panels: Sequence[Axes], results: Part) -> None:
    part = results["handshake"]["over_time"]
    loads, balance = panels
    for (worker, values), color in zip(part["loads"].items(), WORKERS, strict=False):
        slow = worker == "w1"
        label = f"{worker}, links of {part['slow_ms']:.0f} ms" if slow else worker
        loads.plot(part["times_s"], values, color=color, linewidth=1.6 if slow else 1, label=label)
    loads.axvline(part["window_s"], color=PREDICTED, linewidth=1, linestyle=":")
    loads.set_ylabel("tuples of R in the worker", fontsize=SMALL)
    loads.set_ylim(bottom=0)
    _legend(loads, loc="lower right")
    balance.plot(part["times_s"], part["imbalance"], color=CHAIN, linewidth=1)
    balance.axhline(0.1, color=PREDICTED, linestyle="--", linewidth=1)
    balance.axvline(part["window_s"], color=PREDICTED, linewidth=1, linestyle=":")
    balance.set_ylabel("IF of R", fontsize=SMALL)
    balance.set_ylim(0, 0.5)
    for axes in panels:
        axes.set_xlabel("seconds; the window is full at the dotted line", fontsize=SMALL)
    loads.set_xlim(0, 1.4 * part["window_s"])
    balance.set_xlim(left=0)


PICTURES: Mapping[str, tuple[Callable[[Figure, Sequence[Axes], Part], None], float, float, int]] = {
    "splitjoin_time": (_throughput_time, 9, 4.0, 2),
    "splitjoin_count": (_throughput_count, 9, 4.2, 2),
    "splitjoin_visiting": (_visiting, 9, 4.0, 2),
    "splitjoin_stages": (_stages, 9, 3.8, 2),
    "splitjoin_selectivity": (_selectivity, 9, 3.3, 2),
    "splitjoin_stars": (_stars, 7.5, 3.2, 1),
    "handshake_efficiency": (_efficiency, 9, 3.6, 2),
    "handshake_blocks": (_blocks, 9, 3.3, 2),
    "handshake_workers": (_workers, 7.5, 2.8, 1),
    "handshake_over_time": (_over_time, 9, 3.3, 2),
}
"""File name -> how it is drawn, width and height in inches, panels."""
