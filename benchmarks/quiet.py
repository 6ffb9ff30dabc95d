"""Whether the machine does other work: the share of its processors' time that is not this program's.

Not the load average: that remembers for minutes the part of the benchmarks that ended a moment ago.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import psutil

BUSY_SHARE_MAX = 0.1
"""Of all processors' time: what others may use of it while figures are taken."""
OVER_S = 2.0
PATIENCE_S = 30.0
"""What ended a moment ago may have something to put away."""
NAMED = 3

Process = tuple[int, float]
"""Its id and when it began: ids are used again."""


class BusyError(Exception):
    """Others use too much of the processors' time."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Processor seconds since the machine and each process began.

    Args:
        at_s: on the clock of `time.monotonic`.
        busy_s: of all processors together, by whomever.
        used: by process, its name and its seconds.
        own: those processes that are this program or were started by it.
    """

    at_s: float
    busy_s: float
    used: Mapping[Process, tuple[str, float]]
    own: frozenset[Process]


@dataclass(frozen=True, slots=True)
class Others:
    """What others used between two samples.

    Args:
        share: of all processors' time, 0 to 1.
        processes: those that used any, the busiest first, each as id, name, and processors it kept busy.
    """

    share: float
    processes: tuple[tuple[int, str, float], ...]

    @property
    def quiet(self) -> bool:
        """Whether figures may be taken."""
        return self.share <= BUSY_SHARE_MAX

    def __str__(self) -> str:
        names = "; ".join(f"{name}, process {pid}: {used:.0%} of one" for pid, name, used in self.processes[:NAMED])
        # Short ones begin and end between two samples, and what a virtual machine's host takes has no process.
        return f"others use {self.share:.0%} of the processors' time ({names or 'no process that lasts'})"


def sample() -> Sample:
    """The machine as it is now; takes some milliseconds."""
    total = psutil.cpu_times()
    # Linux counts guests' time as the user's, too.
    busy_s = sum(getattr(total, name, 0.0) for name in ("user", "nice", "system", "irq", "softirq", "steal"))
    used, parents = {}, {}
    for process in psutil.process_iter():
        with suppress(psutil.Error), process.oneshot():
            key = (process.pid, process.create_time())
            times = process.cpu_times()
            used[key] = (process.name(), times.user + times.system)
            parents[key] = process.ppid()
    return Sample(time.monotonic(), busy_s, used, _tree(os.getpid(), parents))


def _tree(root: int, parents: Mapping[Process, int]) -> frozenset[Process]:
    found = {root}
    while more := {key[0] for key, parent in parents.items() if parent in found} - found:
        found |= more
    return frozenset(key for key in parents if key[0] in found)


def between(before: Sample, after: Sample, processors: int) -> Others:
    """What others used from one sample to the next."""
    seconds = after.at_s - before.at_s
    own = before.own | after.own
    spent = {
        key: used - before.used.get(key, ("", 0.0))[1] for key, (_, used) in after.used.items() if key in before.used
    }
    ours = sum(used for key, used in spent.items() if key in own)
    share = (after.busy_s - before.busy_s - ours) / (seconds * processors)
    named = [(key[0], after.used[key][0], used / seconds) for key, used in spent.items() if key not in own and used > 0]
    return Others(min(max(share, 0.0), 1.0), tuple(sorted(named, key=lambda one: -one[2])))


def look(over_s: float = OVER_S) -> Others:
    """What others use just now; takes `over_s`."""
    before = sample()
    time.sleep(over_s)
    return between(before, sample(), psutil.cpu_count() or 1)


def settled(patience_s: float = PATIENCE_S, looked: Callable[[], Others] = look) -> Others:
    """What others use once that is little, or when patience ends."""
    ends_s = time.monotonic() + patience_s
    while not (others := looked()).quiet and time.monotonic() < ends_s:
        pass
    return others


def wait_until_quiet(patience_s: float = PATIENCE_S, looked: Callable[[], Others] = look) -> Others:
    """What others use once that is little.

    Raises:
        BusyError: it is too much for `patience_s`; names the busiest processes.
    """
    others = settled(patience_s, looked)
    if not others.quiet:
        raise BusyError(
            f"the machine is busy: {others}, and figures are taken at {BUSY_SHARE_MAX:.0%} at most; "
            "end that work or wait until it is over"
        )
    return others
