"""Text of the evaluation pages: lines of one width, tables, the machine, and how figures read."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.provenance import said
from benchmarks.quiet import BUSY_SHARE_MAX

Part = Mapping[str, Any]

WIDTH = 120


def wrapped(text: str) -> str:
    """Paragraphs and points of lists in lines of one width, whatever figures they hold; the rest as it is."""
    return "\n\n".join(map(_wrapped_block, text.rstrip().split("\n\n"))) + "\n"


def _wrapped_block(block: str) -> str:
    if block.startswith(("#", "|", "!")):
        return block
    parts = re.split(r"\n(?=- )", block)
    indent = "  " if block.startswith("- ") else ""
    wrapped = [
        textwrap.fill(" ".join(part.split()), WIDTH, subsequent_indent=indent, break_long_words=False,
                      break_on_hyphens=False)
        for part in parts
    ]  # fmt: skip
    return "\n".join(wrapped)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The first column is text, the others are numbers, but for one that says how."""
    sides = ["---", *("---" if name == "how" else "--:" for name in header[1:])]
    lines = ["| " + " | ".join(header) + " |", "| " + " | ".join(sides) + " |"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def machine(results: Part) -> str:
    """The machine, when and at which commit it was measured, and what was not as it should be."""
    found = results["machine"]
    toy = "**Toy sizes: these numbers show that the programs work, and nothing else.**\n\n" if results["quick"] else ""
    busy = results["busy_before"]
    noisy = (
        f" Other programs used {busy:.0%} of the cores' time just before: units that are timed can be too slow."
        if busy > BUSY_SHARE_MAX
        else ""
    )
    return (
        f"{toy}{found['cores']} cores ({found['model']}), {found['system']}, Python {found['python']}, "
        f"NumPy {found['numpy']}, Numba {found['numba']}. "
        f"{said(results.get('begun'), results.get('commit'))}{noisy}"
    )


def point_at(points: Sequence[Part], key: str, value: float) -> Part:
    """The point where `key` is `value`, else the last: toy runs have fewer."""
    return next((point for point in points if point[key] == value), points[-1])


def us(nanoseconds: float) -> str:
    """As microseconds."""
    return f"{nanoseconds / 1e3:,.2f} us"


def ratio(value: float) -> str:
    """How many times."""
    return f"{value:.2f} x"
