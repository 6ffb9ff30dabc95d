"""What the model's units of work cost on this machine: one comparison, one hop to the next process, one result merged.

Each is measured alone, and the fastest of some repeats counts: what disturbs a run only ever makes it longer. The hop
is the exception: its latency is a matter of luck with the operating system, so that the median counts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from streamjoin.kernel import kernel

MESSAGE_BYTES = 64
"""A tuple of the papers' benchmark: number, float, 20 characters, time stamp, place in the sequence."""
PROBES = 64
HIGHEST = 10_000
"""Values are uniform in 1..10^4."""

ECHO = f"""
import os
while message := os.read(0, {MESSAGE_BYTES}):
    os.write(1, message)
"""
DRAIN = f"""
import os, time
received = 0
begun_s = time.process_time()
while os.read(0, {MESSAGE_BYTES}):
    received += 1
os.write(1, str((time.process_time() - begun_s) / received).encode())
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """Times in ns.

    Args:
        compare: T_P, a tuple with one stored tuple.
        link: T_CL, from the sender's call until the next process has the tuple, that one having waited for it.
        send, receive: the part of a hop that keeps the sender or the receiver busy when queues are never empty.
        collect: T_Col of one result at one merger.
        clock: a call for the time, as time windows need for each tuple.
    """

    compare: float
    link: float
    send: float
    receive: float
    collect: float
    clock: float

    @property
    def under_way(self) -> float:
        """The part of a hop in which neither end is busy."""
        return max(0.0, self.link - self.send - self.receive)


@kernel
def nested_loop(
    x: np.ndarray, y: np.ndarray, probe_x: np.ndarray, probe_y: np.ndarray, reach: float, found: np.ndarray
) -> int:
    """Compare each probe with each stored tuple, |x - a| <= reach and |y - b| <= reach, one probe after the other.

    Args:
        x, probe_x: int32; y, probe_y: float32.
        found: where a probe's matches are written, from the beginning for each probe; one place a stored tuple.
    Returns:
        The matches of all probes.
    """
    total = 0
    for p in range(probe_x.size):
        matches = 0
        for i in range(x.size):
            if abs(x[i] - probe_x[p]) <= reach and abs(y[i] - probe_y[p]) <= reach:
                found[matches] = i
                matches += 1
        total += matches
    return total


@kernel
def merge(left: np.ndarray, right: np.ndarray, merged: np.ndarray) -> None:
    """Two inputs of (place of the processed tuple, R's number, S's number), each by place, into one; all int64."""
    i = j = 0
    for at in range(merged.shape[0]):
        if j == right.shape[0] or (i < left.shape[0] and left[i, 0] <= right[j, 0]):
            merged[at] = left[i]
            i += 1
        else:
            merged[at] = right[j]
            j += 1


def measure(quick: bool = False) -> Measured:
    """On this machine, now."""
    send, receive = streaming_ns(2_000 if quick else 100_000)
    return Measured(
        compare=compare_ns(1 << (12 if quick else 16))[0],
        link=hop_ns(300 if quick else 5_000),
        send=send,
        receive=receive,
        collect=collect_ns(1 << (10 if quick else 13)),
        clock=clock_ns(1_000 if quick else 200_000),
    )


def compare_ns(rows: int, match_probability: float | None = None) -> tuple[float, float]:
    """T_P in the Numba loop, one core, and the match probability it had.

    Args:
        rows: stored tuples. The benchmark's band of +-10 is used if no probability is wanted.
    """
    rng = np.random.default_rng(1)
    x, probe_x = (rng.integers(1, HIGHEST + 1, size).astype(np.int32) for size in (rows, PROBES))
    y, probe_y = (rng.uniform(1, HIGHEST, size).astype(np.float32) for size in (rows, PROBES))
    reach = 10.0 if match_probability is None else HIGHEST * match_probability**0.5 / 2
    found = np.empty(rows, np.int64)
    matches = nested_loop(x, y, probe_x, probe_y, reach, found)
    seconds = best_s(lambda: nested_loop(x, y, probe_x, probe_y, reach, found), repeats=15)
    return seconds / (rows * PROBES) * 1e9, matches / (rows * PROBES)


def compare_numpy_ns(rows: int) -> float:
    """The same comparisons as NumPy expressions over the whole sub-window, for the page."""
    rng = np.random.default_rng(1)
    x, y = rng.integers(1, HIGHEST + 1, rows).astype(np.int32), rng.uniform(1, HIGHEST, rows).astype(np.float32)

    def probe() -> None:
        for at in range(8):
            np.flatnonzero((np.abs(x - x[at]) <= 10) & (np.abs(y - y[at]) <= 10))

    return best_s(probe) / (rows * 8) * 1e9


def hop_ns(times: int) -> float:
    """Half of a message's way to another process and back through two pipes, the median."""
    ways_ns = []
    message = bytes(MESSAGE_BYTES)
    with _process(ECHO) as peer:
        there, back = _ends(peer)
        for _ in range(times):
            begun_ns = time.perf_counter_ns()
            os.write(there, message)
            os.read(back, MESSAGE_BYTES)
            ways_ns.append((time.perf_counter_ns() - begun_ns) / 2)
        os.close(there)
        peer.stdin = None
    return float(np.median(ways_ns))


def streaming_ns(messages: int) -> tuple[float, float]:
    """Processor time of a message at its sender and at its receiver, one behind the other through a pipe."""
    sent: list[float] = []
    received: list[float] = []
    message = bytes(MESSAGE_BYTES)
    for _ in range(3):
        with _process(DRAIN) as peer:
            there, back = _ends(peer)
            begun_s = time.process_time()
            for _ in range(messages):
                os.write(there, message)
            sent.append((time.process_time() - begun_s) / messages)
            os.close(there)
            peer.stdin = None
            received.append(float(os.read(back, 100)))
    return min(sent) * 1e9, min(received) * 1e9


def collect_ns(rows: int) -> float:
    """Merging two inputs of results by place, a result."""
    rng = np.random.default_rng(1)
    left, right = (np.sort(rng.integers(0, rows, rows))[:, None] * np.ones(3, np.int64) for _ in range(2))
    merged = np.empty((2 * rows, 3), np.int64)
    return best_s(lambda: merge(left, right, merged)) / (2 * rows) * 1e9


def clock_ns(times: int) -> float:
    """A call of clock_gettime from Python."""

    def ask() -> None:
        for _ in range(times):
            time.clock_gettime_ns(time.CLOCK_REALTIME)

    return best_s(ask) / times * 1e9


def best_s(call: Callable[[], object], repeats: int = 5) -> float:
    """The shortest of some runs; the first compiles and is not timed."""
    call()
    best = float("inf")
    for _ in range(repeats):
        begun_s = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begun_s)
    return best


def _process(program: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)


def _ends(peer: subprocess.Popen[bytes]) -> tuple[int, int]:
    assert peer.stdin is not None and peer.stdout is not None
    return os.dup(peer.stdin.fileno()), peer.stdout.fileno()
