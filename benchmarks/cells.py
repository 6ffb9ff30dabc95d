"""What the page's tables hold: numbers, ratios and sizes as text."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.head import Part


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    lines = ["| " + " | ".join(header) + " |", "| " + " | ".join(["---"] + ["--:"] * (len(header) - 1)) + " |"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def number(value: float | None, form: str = ",.0f") -> str:
    """With a dash where it was not measured."""
    return "-" if value is None else format(value, form)


def times(value: float | None) -> str:
    """How many times as fast."""
    return "-" if value is None else f"{value:.1f} x"


def mib(size: float | None) -> str:
    """Bytes in MiB."""
    return "-" if size is None else f"{size / 2**20:,.0f}"


def right(run: Part) -> str:
    """Whether a run counted as many results as DuckDB."""
    if run.get("error"):
        return "failed"
    if run.get("right") is None:
        return "not counted" if run.get("results") is None else "cut off"
    return "yes" if run["right"] else "NO"
