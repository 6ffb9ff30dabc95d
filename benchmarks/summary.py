"""All parts' results as one file and one page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.page import page
from benchmarks.parts import PARTS
from benchmarks.plots import draw
from benchmarks.provenance import DIRTY, note_gone
from benchmarks.scale import ROOT

FIGURES = "benchmarks.json"
DESCRIBED = {"part", "quick", "begun", "busy_before", "busy_after", "quiet", "machine", "seconds", "error"}
"""What a part's result says of its run; all else is figures."""
Results = dict[str, dict[str, Any]]


def load_results(out: Path) -> Results:
    """What each part left, by part; a part that did not run is missing."""
    found = {}
    for name in PARTS:
        path = out / f"{name}.json"
        try:
            found[name] = json.loads(path.read_text())
        except (OSError, ValueError):
            continue
    return found


def publishable(result: dict[str, Any]) -> bool:
    """Whether what a part left is of a commit alone, and of a machine that did nothing else."""
    commit = result["machine"]["commit"]
    return bool(commit) and not commit.endswith(DIRTY) and result["quiet"] and not result["quick"]


def _has_figures(result: dict[str, Any]) -> bool:
    return not result.keys() <= DESCRIBED


def write_summary(out: Path, docs: Path, published: bool = False) -> None:
    """`docs`/benchmarks.json, benchmarks.md and the plots in benchmarks/, from what is in `out`.

    Args:
        published: parts that are not `publishable` are left out; those that `docs` has already stay unless there is a
            newer one. One that failed before it had any figures takes the place of none that has some.
    """
    results = load_results(out)
    if published:
        before = _read(docs)
        new = {name: part for name, part in results.items() if publishable(part)}
        results = {
            name: max(
                (each[name] for each in (before, new) if name in each),
                key=lambda part: (_has_figures(part), part["begun"]),
            )
            for name in PARTS
            if name in before or name in new
        }
    docs.mkdir(parents=True, exist_ok=True)
    _write(docs, _shortened(results))
    write_page(docs)


def note_commits(docs: Path, root: Path = ROOT) -> None:
    """Write into benchmarks.json which parts' commits are not in the history of the one that is checked out."""
    if results := _read(docs):
        _write(docs, results, root)


def write_page(docs: Path) -> None:
    """benchmarks.md and the plots in benchmarks/, from benchmarks.json and nothing else."""
    results = _read(docs)
    (docs / "benchmarks").mkdir(parents=True, exist_ok=True)
    (docs / "benchmarks.md").write_text(page(results, draw(results, docs / "benchmarks")))


def _write(docs: Path, results: Results, root: Path = ROOT) -> None:
    for part in results.values():
        note_gone(part["machine"], root)
    (docs / FIGURES).write_text(json.dumps(results, indent=1) + "\n")


def _read(docs: Path) -> Results:
    try:
        found: Results = json.loads((docs / FIGURES).read_text())
    except FileNotFoundError:
        return {}
    return found


def _shortened(value: Any) -> Any:
    """Without what is long and says little: batch lists are kept, single units' figures are not."""
    if isinstance(value, dict):
        return {key: _shortened(item) for key, item in value.items() if key not in ("units", "settings")}
    if isinstance(value, list):
        return [_shortened(item) for item in value]
    return round(value, 4) if isinstance(value, float) else value
