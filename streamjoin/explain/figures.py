"""Figures as people read them."""

from __future__ import annotations


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
