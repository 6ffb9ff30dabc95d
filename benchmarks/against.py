"""Our own rows of the benchmarks at this commit and at another one, in turn: is this one as fast?

A pair is one turn of each commit, and who is first alternates, so that what drifts on the machine weighs on both alike.
A turn gives a rate for each of the part's rows; the part's ratio in a pair is the geometric mean of this commit's rates
over the other's, and the part's ratio is the median of its pairs'.

Joins and commands run by the code of each commit, from a worktree of its own. What makes the input, the join files and
the servers, and what times commands, is this commit's. Not so `stores`: it works on the library's inside, so each
commit times that by its own benchmarks.

A join whose number of results is not DuckDB's fails its part, and so does a band join with another number than the
first run. A DataFrame's results are not counted; `startup` kills its jobs and compares no results.
"""

from __future__ import annotations

import math
import signal
import statistics
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from benchmarks import band, equi_large, equi_small, kafka_json, startup, stores
from benchmarks.checkouts import checkout, resolve
from benchmarks.processes import run
from benchmarks.quiet import wait_until_quiet
from benchmarks.scale import ROOT, Scale
from benchmarks.systems import Rates, without_paths

PAIRS = 7
RATIO_MIN = 0.97
IMPORT_S_MAX = 120.0

Turn = Callable[[Scale], Rates]
"""One run of the code at `scale.code`: rows -> a rate, more is better."""
Own = Callable[[Scale], AbstractContextManager[Turn]]
"""A part: makes the input and the servers for any number of turns."""

OWN: Mapping[str, Own] = {
    "equi_large": equi_large.own,
    "equi_small": equi_small.own,
    "band": band.own,
    "kafka_json": kafka_json.own,
    "stores": stores.own,
    "startup": startup.own,
}


class WrongCodeError(Exception):
    """A worktree's programs import another StreamJoin than its own."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Ratios of this commit's rates to the other's, one for each pair, in their order."""

    ratios: Sequence[float]
    rows: Mapping[str, Sequence[float]]

    @property
    def median(self) -> float:
        return statistics.median(self.ratios)

    @property
    def fast_enough(self) -> bool:
        return self.median >= RATIO_MIN


def compare(pairs: Sequence[tuple[Rates, Rates]]) -> Compared:
    """What pairs of rates, ours and theirs, come to. Rows that one of them does not have are left out.

    Raises:
        ValueError: no row is in all of them.
    """
    names = [name for name in pairs[0][0] if all(name in rates for pair in pairs for rates in pair)]
    if not names:
        raise ValueError("the two commits have no row in common")
    rows = {name: [ours[name] / theirs[name] for ours, theirs in pairs] for name in names}
    means = [math.exp(statistics.fmean(map(math.log, each))) for each in zip(*rows.values(), strict=True)]
    return Compared(means, rows)


def take_turns(own: Own, scale: Scale, ours: Path, theirs: Path, pairs: int) -> Compared:
    """All pairs of one part. Before them each commit has one turn with toy sizes, which is not timed: it compiles."""
    if not scale.quick:
        toy = replace(scale, quick=True, data=scale.data / "quick")
        with own(toy) as turn:
            for code in (ours, theirs):
                turn(replace(toy, code=code))
    found = []
    with own(scale) as turn:
        for number in range(pairs):
            order = (ours, theirs) if number % 2 == 0 else (theirs, ours)
            scale.show(f"  pair {number + 1} of {pairs}, {'this' if order[0] == ours else 'the other'} commit first")
            rates = {code: turn(replace(scale, code=code)) for code in order}
            found.append((rates[ours], rates[theirs]))
    return compare(found)


def run_against(
    commit: str, parts: Sequence[str], pairs: int, scale: Scale, *, own: Mapping[str, Own] = OWN, root: Path = ROOT
) -> int:
    """Compare and print; the exit status: 0 if every part is fast enough, 1 if one is not or failed.

    Raises:
        NoCommitError: there is no such commit.
        BusyError: others use the machine before the first part or between two.
        WrongCodeError: a commit's programs would not run its own code.
    """
    _interrupt_once()
    results: dict[str, Compared | str] = {}
    base, head = resolve(commit, root), resolve("HEAD", root)
    with checkout(head, root) as ours, checkout(base, root) as theirs:
        for code in (ours, theirs):
            check_imports(code)
        for name in parts:
            if not scale.quick:
                wait_until_quiet()
            scale.show(f"{name}: {pairs} pairs")
            try:
                results[name] = take_turns(own[name], scale, ours, theirs, pairs)
            except Exception as failure:
                results[name] = without_paths(f"{type(failure).__name__}: {failure}")
                traceback.print_exc(file=sys.stderr)
            scale.show(f"  {_line(name, results[name])}")
    print(table(head, base, pairs, results), flush=True)
    return 0 if all(isinstance(each, Compared) and each.fast_enough for each in results.values()) else 1


def check_imports(code: Path) -> None:
    """Make sure that a worktree's programs import its own code.

    Raises:
        WrongCodeError: they do not.
    """
    with tempfile.TemporaryDirectory() as place:
        ask = [sys.executable, "-c", "import streamjoin; print(streamjoin.__file__)"]
        ended = run(ask, limit_s=IMPORT_S_MAX, log=Path(place) / "log", code=code)
        if not (said := ended.tail.strip().splitlines()) or not Path(said[-1]).resolve().is_relative_to(code.resolve()):
            raise WrongCodeError(
                f"programs in the worktree {code} do not import the StreamJoin there but {' '.join(said[-1:])}; "
                "uninstall what is installed, or unset PYTHONPATH"
            )


def table(head: str, base: str, pairs: int, results: Mapping[str, Compared | str]) -> str:
    """What is printed at the end: a line for each part, and one below it for each of its rows if it has several."""
    lines = [f"rates of {head[:12]} / rates of {base[:12]}, {pairs} pairs in turn; {RATIO_MIN:g} or better is wanted"]
    for name, found in results.items():
        lines.append(_line(name, found))
        if isinstance(found, Compared) and len(found.rows) > 1:
            lines += [f"  {_spread(row, ratios)}" for row, ratios in found.rows.items()]
    return "\n".join(lines)


def _line(name: str, found: Compared | str) -> str:
    if isinstance(found, str):
        return f"{name:<26} FAILED: {' '.join(found.split())[:300]}"
    return f"{_spread(name, found.ratios)}  {'yes' if found.fast_enough else 'NO'}"


def _spread(name: str, ratios: Sequence[float]) -> str:
    return f"{name:<26} median {statistics.median(ratios):.3f}, from {min(ratios):.3f} to {max(ratios):.3f}"


def _interrupt_once() -> None:
    """From now on the first Ctrl-C ends the program, and further ones do not disturb it while it puts things away."""

    def leave(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, leave)
