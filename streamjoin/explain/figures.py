"""Figures as people read them."""

from __future__ import annotations

from collections.abc import Sequence


def figure(value: float) -> str:
    """Two digits at least: a stream of one tuple a minute has a rate too."""
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"


def bytes_text(size: float) -> str:
    """A size in the largest unit that leaves a whole number."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            return f"{size:,.1f} {unit}" if unit != "B" else f"{size:.0f} B"
        size /= 1024
    raise AssertionError


def padded(cells: Sequence[str], widths: Sequence[int]) -> str:
    """A row of a table: its name, and figures below each other."""
    first, *rest = cells
    return f"{first:<{widths[0]}}  " + "  ".join(
        f"{cell:>{width}}" for cell, width in zip(rest, widths[1:], strict=True)
    )
