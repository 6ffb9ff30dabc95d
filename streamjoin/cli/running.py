"""Commands that run a join file: run, compare."""

from __future__ import annotations

import json
import logging
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from streamjoin.cli.joinfile import Set, load_join
from streamjoin.cli.places import WrittenIfGiven
from streamjoin.cli.terminal import clear_line, counted, progress_line
from streamjoin.errors import InputError, RunError, StreamJoinError
from streamjoin.intake.shedding import OTHER_WAY_OUT

_RING = "ring"
"""Whose nodes come and go, where a report has R and S of a biclique."""


def run(
    file: Path, *, until_end: bool = False, set: Set = None, report: WrittenIfGiven = None, quiet: bool = False
) -> None:
    """Run a join file.

    Parameters
    ----------
    file
        The join file.
    until_end
        Join all that is there now, then exit.
    report
        Write figures of the run to this file, as JSON.
    quiet
        No progress line, no summary.
    """
    from streamjoin.spark.run import run_file
    from streamjoin.spec.inputs import require_ends

    _check_report(report)
    stop = threading.Event()
    _stop_on_signals(stop)
    join = load_join(file, set)
    if until_end:
        require_ends(join)
    try:
        figures = run_file(join, until_end=until_end, stop=stop, show=None if quiet else progress_line())
    except StreamJoinError as failure:
        clear_line()
        log = join.checkpoint / "spark.log"
        if isinstance(failure, InputError) or not log.exists():
            raise
        raise RunError(f"{failure}; the log is {log}") from None
    if report:
        _write_json(report, figures)
    if not quiet:
        clear_line()
        print(_summary(figures), file=sys.stderr)


def compare(
    file: Path,
    *,
    operators: str | None = None,
    set: Set = None,
    report: WrittenIfGiven = None,
    plot: WrittenIfGiven = None,
    quiet: bool = False,
) -> None:
    """Run the same input through several operators, side by side. Ctrl-C shows those that have run so far.

    Parameters
    ----------
    file
        The join file.
    operators
        Names, separated by commas; unless given biclique,matrix,spark, and for a relation
        lookup,spark-broadcast,spark-shuffled.
    report
        Write the figures of all runs to this file, as JSON.
    plot
        Draw the figures of all runs into this file, .svg or .png.
    quiet
        No progress line.
    """
    from streamjoin.explain.compare.plot import check_plot, draw
    from streamjoin.explain.compare.table import comparison_text
    from streamjoin.spark.compare import compare_file
    from streamjoin.spec.inputs import require_ends

    _check_report(report)
    if plot:
        check_plot(plot)
    stop = threading.Event()
    _stop_on_signals(stop)
    names = [name.strip() for name in (operators or "").split(",") if name.strip()]
    if operators is not None and not names:
        raise InputError("--operators takes names, separated by commas, such as biclique,matrix")
    join = load_join(file, set)
    require_ends(join)
    rows: list[dict[str, Any]] = []
    try:
        for row in compare_file(join, names, stop=stop, show=None if quiet else progress_line()):
            rows.append(row)
    finally:  # What has run before a failure, or a second Ctrl-C, took long enough to be worth showing.
        clear_line()
        if rows:
            print(comparison_text(rows))
            if report:
                _write_json(report, rows)
            if plot:
                draw(rows, plot, f"{join.name}: {', '.join(names or [row['operator'] for row in rows])}")


def _stop_on_signals(stop: threading.Event) -> None:
    def ask(number: int, frame: Any) -> None:
        if stop.is_set():
            logging.disable()  # what is cut off on the way out, such as a call of Java, is no news
            clear_line()
            print("stopped; a batch that was not committed is done again at the next start", file=sys.stderr)
            raise KeyboardInterrupt
        stop.set()
        clear_line()
        print("stopping after the current batch; once more to stop at once", file=sys.stderr)

    signal.signal(signal.SIGINT, ask)
    signal.signal(signal.SIGTERM, ask)


def _check_report(path: Path | None) -> None:
    """Before the run: afterwards its figures would be lost."""
    if path is not None and path.is_dir():
        raise InputError(f"{path} is a folder; --report takes the name of a file")


def _write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".tmp", delete=False) as file:
        json.dump(value, file, indent=1)
    Path(file.name).replace(path)


def _traffic_text(traffic: dict[str, int]) -> str:
    openings = traffic["served"] + traffic["fetched"]
    served = f"{100 * traffic['served'] / openings:.1f} %" if openings else "none"
    fetched, put = (f"{traffic[what] / 2**20:,.1f} MiB" for what in ("fetched_bytes", "put_bytes"))
    text = f"state: {served} of {counted(openings, 'opening')} from the cache, {fetched} fetched, {put} put"
    return text + (f", {counted(traffic['retries'], 'retry', 'retries')}" if traffic["retries"] else "")


def _summary(figures: dict[str, Any]) -> str:
    sides = ", ".join(f"{name} {count:,}" for name, count in figures["tuples_in"].items())
    parts = [
        f"{counted(figures['results'], 'result')} from {sides} tuples in {figures['seconds']:.1f} s "
        f"({figures['tuples_per_second']:,.{0 if figures['tuples_per_second'] >= 10 else 1}f} tuples/s, "
        f"{counted(figures['batches'], 'batch', 'batches')}, {figures['operator']})"
    ]
    if queries := figures.get("queries"):
        parts.append(", ".join(f"{name} {counted(counts['results'], 'result')}" for name, counts in queries.items()))
    for what in ("late", "dead_letters", "null_keys"):
        found = {name: count for name, count in figures[what].items() if count}
        if found:
            words = ", ".join(f"{name} {count:,}" for name, count in found.items())
            parts.append(f"{what.replace('_', ' ')}: {words}")
        if what == "late":
            parts += figures.get("late_files", {}).values()
    parts += [*_decided_text(figures), *_adaptive_text(figures)]
    if figures.get("approximate"):
        shed = ", ".join(f"{name} {count:,}" for name, count in figures["shed"].items() if count)
        shed = shed or "nothing in this run, but in an earlier one"
        parts.append(f"shed: {shed}; so results are partial; {OTHER_WAY_OUT}")
    if traffic := figures.get("state_traffic"):
        parts.append(_traffic_text(traffic))
    if any(figures["dead_letters"].values()):
        parts.append(f"dead letters are in {figures['dead_letter_folder']}; streamjoin rejected FILE shows them")
    return "\n".join(parts)


def _adaptive_text(figures: dict[str, Any]) -> list[str]:
    """How units came and went, where they do."""
    by_stage: dict[int, list[dict[str, int]]] = {}
    for one in figures.get("adaptive", {}).get("units", []):
        by_stage.setdefault(one["stage"], []).append(one["units"])
    said, of = [], {side: f" of {side}" for side in "RS"}
    for stage, found in by_stage.items():
        words = [
            f"{counts[0]}{of.get(whose, '')} at first, {max(counts)} at most, {counts[-1]} at the end"
            for whose in found[0]
            if (counts := [one[whose] for one in found])
        ]
        what = "nodes" if _RING in found[0] else "units"
        said.append(f"{what}{f' of stage {stage}' if len(by_stage) > 1 else ''}: {'; '.join(words)}")
    return said


def _decided_text(figures: dict[str, Any]) -> list[str]:
    """What became of rows that the join decided on; nothing of other joins."""
    said = []
    if rows := figures.get("unmatched_rows"):
        said.append(f"given as unmatched: {counted(rows, 'row')}")
    if rows := figures.get("open_rows"):
        said.append(f"{counted(rows, 'row')} still {'waits' if rows == 1 else 'wait'} for a match")
    if pairs := figures.get("late_after_final"):
        said.append(f"{counted(pairs, 'pair')} came after a row was final, and {'is' if pairs == 1 else 'are'} none")
    return ["; ".join(said)] if said else []
