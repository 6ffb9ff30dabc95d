"""All parts' results as one file and one page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.page import page
from benchmarks.parts import PARTS
from benchmarks.plots import draw

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


def write_summary(out: Path, docs: Path) -> None:
    """`docs`/benchmarks.json, benchmarks.md and the plots in benchmarks/, from what is in `out`."""
    results = load_results(out)
    (docs / "benchmarks").mkdir(parents=True, exist_ok=True)
    (docs / "benchmarks.json").write_text(json.dumps(_shortened(results), indent=1) + "\n")
    plots = draw(results, docs / "benchmarks")
    (docs / "benchmarks.md").write_text(page(results, plots))


def _shortened(value: Any) -> Any:
    """Without what is long and says little: batch lists are kept, single units' figures are not."""
    if isinstance(value, dict):
        return {key: _shortened(item) for key, item in value.items() if key not in ("units", "settings")}
    if isinstance(value, list):
        return [_shortened(item) for item in value]
    return round(value, 4) if isinstance(value, float) else value
