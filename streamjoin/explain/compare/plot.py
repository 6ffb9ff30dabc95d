"""A comparison as a picture: one panel a measure, one bar an operator, predicted beside measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamjoin.errors import InputError
from streamjoin.explain.compare.table import Row, reason

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MEASURED, TAIL, PREDICTED = "#1f6f8b", "#8cb8c6", "#b8b8b8"
FORMATS = (".svg", ".png")
COLUMNS = 4
WIDTH, HEIGHT = 2.9, 1.0
"""Of a panel without its bars, in inches."""
BAR_HEIGHT = 0.46
MEBIBYTE = 1 << 20
LOGARITHMIC = 50.0
"""From so many times the smallest bar on, bars need a logarithmic axis to be seen at all."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One measure.

    Args:
        first, second: bars of an operator; None leaves one out.
        text: how a bar's figure is written.
        names, color: what the bars are called in the legend, where there are two, and the second one's color.
    """

    title: str
    first: Callable[[Row], float | None]
    text: Callable[[float], str]
    second: Callable[[Row], float | None] | None = None
    names: tuple[str, str] = ("measured", "predicted")
    color: str = PREDICTED


def check_plot(path: Path) -> None:
    """Refuse a picture that could not be drawn, before anything is run for it.

    Raises:
        InputError: its name has another ending, it is a folder, or matplotlib is missing.
    """
    if path.suffix not in FORMATS:
        raise InputError(f"{path} is neither .svg nor .png; --plot takes the name of such a file")
    if path.is_dir():
        raise InputError(f"{path} is a folder; --plot takes the name of a file")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise InputError(
            "--plot draws with matplotlib, which is not installed; pip install matplotlib, or leave --plot out: "
            "--report has the same figures"
        ) from None


def draw(rows: Sequence[Row], path: Path, title: str) -> None:
    """Draw the rows of a comparison that have figures; those that have none are named below, with the reason.

    Raises:
        InputError: see `check_plot`.
    """
    check_plot(path)
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = [row for row in rows if not row.get("error")]
    panels = [panel for panel in PANELS if any(panel.first(row) is not None for row in shown)]
    lines = -(-len(panels) // COLUMNS)
    reasons = [f"{row['operator']} {reason(row)}" for row in rows if row.get("error")]
    size = WIDTH * COLUMNS, max(lines, 1) * (HEIGHT + BAR_HEIGHT * len(shown)) + 0.3 + 0.2 * len(reasons)
    # The same figures give the same file: no random ids, no date.
    with rc_context({"svg.hashsalt": "streamjoin", "svg.fonttype": "none", "font.size": 8}):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        figure.suptitle(title, fontsize=9, x=0.01, ha="left")
        for number, panel in enumerate(panels):
            _draw_panel(figure.add_subplot(lines, COLUMNS, number + 1), panel, shown)
        if reasons:
            figure.supxlabel("\n".join(reasons), fontsize=8, x=0.01, ha="left")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110, metadata={"Date": None} if path.suffix == ".svg" else {"Software": None})


def _draw_panel(axes: Axes, panel: Panel, rows: Sequence[Row]) -> None:
    kinds = [(panel.first, MEASURED), *([(panel.second, panel.color)] if panel.second else [])]
    height = 0.8 / len(kinds)
    values: list[float] = []
    for offset, (value_of, color) in enumerate(kinds):
        found = [(place, value_of(row)) for place, row in enumerate(rows)]
        bars = [
            (place + (offset - (len(kinds) - 1) / 2) * height, value) for place, value in found if value is not None
        ]
        values += [value for _, value in bars]
        drawn = axes.barh([place for place, _ in bars], [value for _, value in bars], height * 0.92, color=color,
                          label=panel.names[offset])  # fmt: skip
        axes.bar_label(drawn, [panel.text(value) for _, value in bars], padding=2, fontsize=7)
    _scale(axes, values)
    axes.set_yticks(range(len(rows)), [row["operator"] for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_title(panel.title, fontsize=8, loc="left")
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.tick_params(bottom=False, labelbottom=False, which="both", left=False)
    if len(kinds) > 1:
        axes.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(-0.02, 0.02), ncols=2, handlelength=1)


def _scale(axes: Axes, values: Sequence[float]) -> None:
    """Room for the figures behind the bars; a logarithmic axis where the smallest bar would not be seen."""
    above = [value for value in values if value > 0]
    largest = max(above, default=1.0)
    if above and largest / min(above) > LOGARITHMIC:
        low = min(above) / 3
        axes.set_xscale("log")
        axes.set_xlim(low, largest * (largest / low) ** 0.45)
        axes.set_xlabel("logarithmic", fontsize=6, loc="right")
    else:
        axes.set_xlim(0, largest * 1.4)


def _of(name: str, part: str | None = None, scale: float = 1.0) -> Callable[[Row], float | None]:
    def value(row: Row) -> float | None:
        found = row.get(name)
        if found is not None and part is not None:
            found = found.get(part)
        return None if found is None else found / scale

    return value


def _predicted(name: str, scale: float = 1.0) -> Callable[[Mapping[str, Any]], float | None]:
    return _of("predicted", name, scale)


def _short(value: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "K")):
        if value >= size:
            return f"{value / (1e3 if unit == 'K' else size):,.1f} {unit}"
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


PANELS = (
    Panel("tuples/s of both streams", _of("tuples_per_second"), _short),
    Panel("latency, ms", _of("latency_ms", "p50"), _short, _of("latency_ms", "p95"), ("p50", "p95"), TAIL),
    Panel("order delay, ms", _of("order_delay_ms", "p50"), _short, _of("order_delay_ms", "p95"), ("p50", "p95"), TAIL),
    Panel("replication", _of("replication"), "{:.2f}".format, _predicted("replication")),
    Panel("state, MiB at its peak", _of("state_bytes_max", scale=MEBIBYTE), _short,
          _predicted("memory_bytes", MEBIBYTE)),
    Panel("live tuples at the peak", _of("state_rows_max"), _short),
    Panel("comparisons (predicted: nested loop)", _of("comparisons"), _short, _predicted("comparisons")),
    Panel("rho, results by what is looked at", _of("rho"), "{:.3f}".format),
)  # fmt: skip
