"""Several joins in turn in one session, so that what the machine does meanwhile meets all of them alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import systems
from benchmarks.rates import median, rate_after, ratio
from benchmarks.scale import Scale
from benchmarks.systems import Report


@dataclass(frozen=True, slots=True)
class Turns:
    """What joins did in their turns.

    Args:
        warm: the first run of each, which compiles; its rate does not count.
        runs: by join, a report for each turn.
    """

    warm: Mapping[str, Report]
    runs: Mapping[str, list[Report]]

    def whole(self, name: str, right: int) -> Report:
        """The last report of a join with its median rate; `right`, whether each run had so many results."""
        reports = [self.warm[name], *self.runs[name]]
        errors = [report["error"] for report in reports if report.get("error")]
        return {
            **reports[-1],
            "rates": [report["rate_measured"] for report in self.runs[name]],
            "rate_measured": _median([report["rate_measured"] for report in self.runs[name]]),
            "rate_all": _median([report["rate_all"] for report in self.runs[name]]),
            "right": None if errors else all(report["results"] == right for report in reports),
            "error": errors[0] if errors else None,
        }

    def ratios(self, name: str, base: str) -> list[float]:
        """The rate of one join / that of another, turn by turn."""
        pairs = zip(self.runs[name], self.runs[base], strict=True)
        found = [ratio(one["rate_measured"], other["rate_measured"]) for one, other in pairs]
        return [each for each in found if each is not None]


def take_turns(
    scale: Scale, work: Path, name: str, joins: Mapping[str, Mapping[str, Any]], turns: int, warmup_rows: int,
    limit_s: float, first: Mapping[str, Mapping[str, Any]] | None = None,
) -> Turns:  # fmt: skip
    """Run all joins, then again, once more than `turns`.

    Args:
        joins: their join files by name.
        warmup_rows: of all streams, with which each run begins and which its `rate_measured` leaves out.
        limit_s: for a run.
        first: the join files of the first turn, where they are others.
    """
    files = [
        {**content, "run": {**content["run"], "checkpoint": str(work / f"{one}-{turn}.checkpoint")}}
        for turn in range(turns + 1)
        for one, content in (joins if turn else {**joins, **(first or {})}).items()
    ]
    reports = systems.own(scale, work, name, files, limit_s=limit_s)
    for report in reports:
        report["rate_measured"] = rate_after(report, warmup_rows)
        report["rate_all"] = report.get("rows_per_second")
    by_name = {one: reports[number :: len(joins)] for number, one in enumerate(joins)}
    return Turns({one: each[0] for one, each in by_name.items()}, {one: each[1:] for one, each in by_name.items()})


def _median(rates: list[float | None]) -> float | None:
    return median([rate for rate in rates if rate])


def complain(runs: Mapping[str, Report], skipped: list[str]) -> dict[str, str]:
    """`error` where a run failed, was left out or counted wrong; else nothing."""
    wrong = [name for name, report in runs.items() if report["right"] is False]
    failed = [name for name, report in runs.items() if report.get("error")]
    if wrong:
        return {"error": f"wrong counts: {', '.join(wrong)}"}
    said = [*skipped, *(f"{name} failed" for name in failed)]
    return {"error": "; ".join(said)} if said else {}
