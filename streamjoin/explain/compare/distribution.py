"""What PSP's figure 7 says of three ways to spread a join of several streams over nodes, in its words."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

SYSTEMS: Mapping[str, str] = {"aligned": "ATR", "coordinated": "CTR", "ring": "PSP"}
"""By operator, what the paper calls it."""
MEASURED = "docs/evaluation/psp.md"
"""The page with numbers of ours for each word."""


@dataclass(frozen=True, slots=True)
class Trait:
    """A line of the figure.

    Args:
        name: of what is compared.
        words: by operator, what the paper says of it.
    """

    name: str
    words: Mapping[str, str]


def _trait(name: str, aligned: str, coordinated: str, ring: str) -> Trait:
    return Trait(name, {"aligned": aligned, "coordinated": coordinated, "ring": ring})


FIGURE_7 = (
    _trait("routing cost", "low", "high", "low"),
    _trait("metadata for each segment", "no", "yes", "no"),
    _trait("duplicate removal", "no", "yes", "no"),
    _trait("balancing granularity", "large", "small", "small"),
    _trait("state management", "high", "high", "low"),
    _trait("adaptation", "unknown", "unknown", "low"),
    _trait("network", "low", "middle", "high"),
)


def distribution_text(operators: Collection[str]) -> str:
    """The figure as a table, of those operators that it is about; nothing where fewer than two are."""
    shown = [name for name in SYSTEMS if name in operators]
    if len(shown) < 2:
        return ""
    rows = [("PSP, figure 7", *(f"{name} ({SYSTEMS[name]})" for name in shown))]
    rows += [(trait.name, *(trait.words[name] for name in shown)) for trait in FIGURE_7]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        f"{name:<{widths[0]}}  " + "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True))
        for name, *cells in rows
    ]
    return "\n".join([*lines, f"these are the paper's words; {MEASURED} has numbers for each of them"])
