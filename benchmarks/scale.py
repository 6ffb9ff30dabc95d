"""How large a run of the benchmarks is, how long it may take, and where its files are."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

ROOT = Path(__file__).parents[1]
SLOTS = 2
"""Task slots of every system under test, whatever the machine has: the peers' programs are written for two."""
USEFUL_S_MIN = 20.0
"""A run that has less time than this left would measure nothing but its start."""


class OutOfTimeError(Exception):
    """The time for all runs together is spent."""


@dataclass(frozen=True, slots=True)
class Scale:
    """One run of the benchmarks.

    Args:
        quick: toy sizes, which show that everything works and measure nothing.
        ends_s: on the clock of `time.monotonic`; no run goes on after it.
        data: where inputs are kept from run to run.
        work: for checkpoints and logs; a part removes its own when it begins.
        cgroup: a folder of a memory cgroup in which another may be made; None to do without.
        code: the checkout whose StreamJoin is measured.
    """

    quick: bool
    ends_s: float
    data: Path
    work: Path
    cgroup: Path | None = None
    code: Path = ROOT

    def pick(self, full: T, quick: T) -> T:
        """`full`, or `quick` at toy scale."""
        return quick if self.quick else full

    def seconds(self, wanted_s: float) -> float:
        """`wanted_s`, or what is left of the budget.

        Raises:
            OutOfTimeError: hardly anything is left.
        """
        left_s = self.ends_s - time.monotonic()
        if left_s < USEFUL_S_MIN:
            raise OutOfTimeError("the budget is spent; run again to go on with this part")
        return min(wanted_s, left_s)

    def show(self, line: str) -> None:
        """Tell the person who waits."""
        print(f"{time.strftime('%H:%M:%S')}  {line}", file=sys.stderr, flush=True)
