"""The page of PSP's comparison with ATR and CTR, from its figures."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from typing import Any

from benchmarks import provenance
from benchmarks.psp import further_page, response_page

Point = dict[str, Any]
WIDTH = 120
"""Of a line, in characters."""


def page(results: dict[str, Any]) -> str:
    """The text of the page, with a section for each figure that there is."""
    said = provenance.said(results.get("begun"), results.get("commit"), gone=results.get("commit_gone", False))
    found = results["figures"]
    head = f"""# PSP beside its baselines, ATR and CTR

Source: *Scalable Stream Join Processing with Expensive Predicates* (EDBT 2009), sections 7 and 8. Written by
`python -m benchmarks.psp`; do not edit. All figures: [psp.json](psp.json). {said}{_again(results.get("again", {}))}

## How it is made

The three run message by message: [the ring](../protocols/ring.md), and [ATR and
CTR](../protocols/replicated.md) with one operator that spreads rows. *p* is how many stored rows match a row or a
partial result, lambda W S in the paper. Its own workload has p of 25 to 250, which no simulation here would finish.
A row has 15,000 bytes, as the paper's small images do, and partial results carry their rows whole. A message has 16
bytes of its own, and each name of a segment or a host 8. Results that leave are not counted.

Where messages are counted, streams bring rows in turn for {results["windows"]} windows, and each is joined with the
next one. Segments of ATR are 5 windows long where nothing else is said, those of CTR a quarter of one, with 2 copies.

Our text of the paper has no plots, so what it says about them is quoted in words.
"""
    parts = [head]
    if "costs" in results:
        parts.append(response_page.costs(results["costs"], results["machine"]["model"]))
    parts += [section(found[name]) for name, section in SECTIONS.items() if name in found]
    return "\n\n".join(map(_filled, "".join(parts).split("\n\n")))


AGAIN = {
    "counted": "figures 7 and 8(b, d, f)",
    "one-node": "rings of one node in figure 8(a)",
    "atr-times": "ATR in figure 8(c)",
    "words": "the words of figure 7",
    "interleaved": "interleaved processing",
    "atr-rates": "ATR's throughput",
    "unequal": "unequal rates",
    "on-spark": "jobs on Spark",
}
"""What was simulated anew, by the name of the part."""


def _again(parts: dict[str, dict[str, Any]]) -> str:
    """Sentences for each commit, with a space before them; when is that of its first part."""
    by_commit: dict[str, list[str]] = {}
    for part, source in parts.items():
        by_commit.setdefault(source["commit"], []).append(part)
    return "".join(
        f" Anew with the same costs: {', '.join(AGAIN[part] for part in each)}. "
        + provenance.said(parts[each[0]]["begun"], commit, gone=parts[each[0]].get("commit_gone", False))
        for commit, each in by_commit.items()
    )


def _filled(paragraph: str) -> str:
    """Broken anew if a figure made a line too long; tables and titles are left alone."""
    lines = paragraph.split("\n")
    if paragraph.lstrip()[:1] in "|#!" or all(len(line) <= WIDTH for line in lines):
        return paragraph
    # Commands, links and "p = 1" stay in one piece.
    text = re.sub(r"`[^`]*`|\[[^]]*\]\(\S*\)| = ", lambda found: found[0].replace(" ", "\0"), " ".join(lines).strip())
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False).replace("\0", " ")


def _all_traffic(points: list[Point]) -> str:
    head = """
## Figure 7: what is sent

In the paper: network transmission is low for ATR, in the middle for CTR and high for PSP. Here, in messages and KiB for
each row that comes in:
"""
    return head + "".join(_traffic(points, streams, p) for streams, p in _settings(points)) + _state(points)


def _settings(points: list[Point]) -> list[tuple[int, float]]:
    return list(dict.fromkeys((one["streams"], one["matches"]) for one in points))


def _name(one: Point) -> str:
    if one["system"] == "aligned":
        return f"ATR, L = {one['segment']:g} W"
    return "CTR" if one["system"] == "coordinated" else "ring"


def _rows(points: list[Point], row: str, column: Any, shown: Any) -> str:
    """A table with a line for each value of `row`."""
    columns = list(dict.fromkeys(map(column, points)))
    lines = [f"\n| {row} | {' | '.join(columns)} |", "| --: |" + " --: |" * len(columns)]
    for value in dict.fromkeys(one[row] for one in points):
        cells = {column(one): shown(one) for one in points if one[row] == value}
        lines.append(f"| {value} | {' | '.join(cells.get(name, '') for name in columns)} |")
    return "\n".join(lines) + "\n"


def _traffic(points: list[Point], streams: int, matches: float) -> str:
    mine = [one for one in points if (one["streams"], one["matches"]) == (streams, matches)]
    return f"\n### {streams} streams, p = {matches:g}\n" + _rows(
        mine, "nodes", _name, lambda one: f"{one['messages']:,.1f}, {one['bytes'] / 1024:,.0f}"
    )


def _state(points: list[Point]) -> str:
    streams, matches = _settings(points)[0]
    mine = [one for one in points if (one["streams"], one["matches"]) == (streams, matches)]
    return f"""
## Figure 8(b): what is stored

In the paper: PSP has no copies, so its memory stays the same whatever the number of nodes. Here the most rows that all
nodes had at one moment, and the most that one node ever had, in multiples of what is in all windows, {streams} streams,
p = {matches:g}:
""" + _rows(mine, "nodes", _name, lambda one: f"{one['stored']:.2f}, {one['fullest']:.2f}")


def _segments(points: list[Point]) -> str:
    return """
## Figure 8(d): ATR

In the paper: memory rises steadily with the nodes, as more segments are copied. Here it does not: a segment is dropped
once no row to come is for it, so how many there are at a time follows from L and W alone, and nodes only share them
out. As above, and KiB sent for each row:
""" + _rows(
        points, "nodes", lambda one: f"L = {one['segment']:g} W",
        lambda one: f"{one['stored']:.2f}, {one['fullest']:.2f}, {one['bytes'] / 1024:,.0f}",
    )  # fmt: skip


def _copies(points: list[Point]) -> str:
    return """
## Figure 8(f): CTR

In the paper: memory is fairly stable in the nodes and rises with the copies; and with one copy state may converge to
one node. Here, as above, and KiB sent for each row:
""" + _rows(
        points, "nodes", lambda one: f"c = {one['copies']}",
        lambda one: f"{one['stored']:.2f}, {one['fullest']:.2f}, {one['bytes'] / 1024:,.0f}",
    )  # fmt: skip


SECTIONS: dict[str, Callable[[list[Point]], str]] = {
    "words": further_page.words,
    "traffic": _all_traffic,
    "segments": _segments,
    "copies": _copies,
    "rings": response_page.rings,
    "few_stored": response_page.few_stored,
    "pixels": response_page.pixels,
    "baselines": response_page.baselines,
    "aligned_rates": further_page.throughput,
    "interleaved": further_page.interleaved,
    "unequal": further_page.unequal,
    "adaptation": response_page.adaptation,
    "on_spark": further_page.on_spark,
}
"""By the name of what was simulated, in the order of the page."""
