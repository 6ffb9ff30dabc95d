"""What was seen of a job that runs for hours: looks at it, what was killed, and whether anything grew."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

from streamjoin.durable import write_durably

from .load import ROUND_S

GROWN_MAX = 1.25
"""How much more a round may take than the first one."""
SPARE_BYTES = {"memory": 64 << 20, "state": 4 << 20}
"""What a round may differ by whatever it is: heaps are not collected at once, nor is what a state has merged."""


@dataclass(frozen=True, slots=True)
class Look:
    """The job at one moment.

    Args:
        at_s: since the first part began; the time between two parts is left out.
        rows: of both streams, written so far.
        results: committed so far.
        answered: the platform said how the job is, in time.
        memory_bytes: of all processes, without the pages that they share.
        state_bytes: of the state and the checkpoint.
    """

    at_s: float
    rows: int
    results: int
    answered: bool
    memory_bytes: int
    state_bytes: int


@dataclass(frozen=True, slots=True)
class Kill:
    """Something that was killed."""

    at_s: float
    kind: str


@dataclass
class Timeline:
    """All parts so far.

    Args:
        ends_s: when each part that was exact ended.
        totals: results that were compared at each end.
    """

    looks: list[Look] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    ends_s: list[float] = field(default_factory=list)
    totals: list[int] = field(default_factory=list)

    @classmethod
    def read(cls, file: Path) -> Timeline:
        """What earlier parts have left."""
        if not file.exists():
            return cls()
        said = json.loads(file.read_text())
        looks, kills = [Look(**one) for one in said["looks"]], [Kill(**one) for one in said["kills"]]
        return cls(looks, kills, said["ends_s"], said["totals"])

    def write(self, file: Path) -> None:
        """`read` reads it back."""
        write_durably(file, (json.dumps(asdict(self)) + "\n").encode())

    @property
    def begun_s(self) -> float:
        """When the next part begins: a round begins with each part."""
        return self.ends_s[-1] if self.ends_s else 0.0

    def rounds(self) -> list[list[Look]]:
        """Looks by the rounds of rates, those that were cut off left out."""
        found, begin_s = [], 0.0
        for end_s in self.ends_s:
            while begin_s + ROUND_S <= end_s:
                found.append([look for look in self.looks if begin_s <= look.at_s < begin_s + ROUND_S])
                begin_s += ROUND_S
            begin_s = end_s
        return [looks for looks in found if looks]

    def complaint(self) -> str | None:
        """What grew from the first round to the last."""
        rounds = self.rounds()
        if not rounds:
            return None
        for what, spare_bytes in SPARE_BYTES.items():
            first, last = usual(what, rounds[0]), usual(what, rounds[-1])
            if last > first * GROWN_MAX + spare_bytes:
                return f"{what} grew from {first:,} bytes in the first round to {last:,} in the last"
        return None


def usual(what: str, looks: Sequence[Look]) -> int:
    """The median of a round: what dies and what comes in its place are there together for moments."""
    return round(statistics.median(float(getattr(look, f"{what}_bytes")) for look in looks))


def memory_of(processes: Iterable[psutil.Process]) -> int:
    """Bytes of processes, without what they share."""
    total = 0
    for process in processes:
        with suppress(psutil.Error):
            total += process.memory_full_info().uss
    return total


def bytes_of(*folders: Path) -> int:
    """Of all files below folders that change meanwhile."""
    total = 0
    for folder in folders:
        for root, _, names in os.walk(folder):
            for name in names:
                with suppress(FileNotFoundError):
                    total += os.stat(os.path.join(root, name)).st_size
    return total
