"""A lookup in a relation that memory does not hold: a cgroup of what the processes have anyway and a tenth of it.

    python -m benchmarks.lookup --cgroup /sys/fs/cgroup/memory [--rows 10000000] [--batch-rows 4194304] [--batches 4]
        [--processes 2]

All processes join their parts of a batch at once, as the slots of a job do. First without a limit: the rate when all
is in memory, and how much memory the processes have of their own. Then one reading of the relation's files from their
beginning to their end, and the same batches, with so much memory and a tenth of the relation for its pages. A reading a
batch allows so many rows a second as a batch has, divided by how long the reading takes.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import psutil

from benchmarks.footprint import most
from benchmarks.limited import Cgroup, limited
from streamjoin.engine.loop import Brought, Loop

SHARE = 0.1
"""Of the relation, for whose pages there is memory beside what processes have of their own."""
NO_LIMIT_BYTES = 1 << 46
SAMPLE_S = 0.01
READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Run:
    """What the timed batches of all processes came to.

    Args:
        own_bytes: anonymous memory of the group at most.
        disk_bytes: read from the disk.
    """

    seconds: float
    rows: int
    own_bytes: int
    disk_bytes: int

    @property
    def rows_per_s(self) -> float:
        """Of all processes together."""
        return self.rows / self.seconds


def one_reading(files: list[Path]) -> tuple[float, int]:
    """Read files from the beginning to the end: seconds, and bytes that came from the disk."""
    before, begun_s = _disk_bytes(), time.perf_counter()
    for path in files:
        with open(path, "rb", buffering=0) as file:
            while file.read(READ_BYTES):
                pass
    return time.perf_counter() - begun_s, _disk_bytes() - before


def forget_pages(files: list[Path]) -> None:
    """Take files out of the page cache; pages that a process has mapped stay."""
    for path in files:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def timed(loop: Loop, bring: Callable[[int], Brought], batches: int, together: Barrier) -> tuple[list[float], int]:
    """Seconds of each batch but the first in this process, and bytes that they read from the disk."""
    seconds, before = [], 0
    for number in range(batches + 1):
        brought = bring(number)
        together.wait()
        if number == 1:
            before = _disk_bytes()
        begun_s = time.perf_counter()
        for _, part in loop.batch(brought):
            del part
        loop.commit(brought)
        seconds.append(time.perf_counter() - begun_s)
    return seconds[1:], _disk_bytes() - before


def run_in(group: Cgroup, one: Callable[..., Any], given: list[tuple[Any, ...]], rows: int) -> Run:
    """Run `one(*given[i], barrier)` in a process of the group each; batches of `rows` rows in all.

    Raises:
        RuntimeError: a process was killed, as the kernel does where memory does not suffice.
    """
    context = multiprocessing.get_context("fork")
    together, ends = context.Barrier(len(given)), [context.Pipe(False) for _ in given]
    children = [
        context.Process(target=_child, args=(group, one, (*some, together), out), daemon=True)
        for some, (_, out) in zip(given, ends, strict=True)
    ]
    with most(group.anonymous_bytes, SAMPLE_S) as own:
        for child in children:
            child.start()
        try:
            while not all(end.poll(SAMPLE_S) for end, _ in ends):
                if any(child.exitcode for child in children):  # the others would wait for it for good
                    raise RuntimeError(f"a process ended without an answer; {group.figures()}")
            found = [end.recv() for end, _ in ends]
        finally:
            for child in children:
                child.kill()
                child.join()
    slowest = [max(some) for some in zip(*(seconds for seconds, _ in found), strict=True)]
    return Run(sum(slowest), rows * len(slowest), own[0], sum(read for _, read in found))


def limited_lookup(
    parent: Path,
    build: Callable[[Path], int],
    one: Callable[..., Any],
    given: list[tuple[Any, ...]],
    *,
    batch_rows: int,
) -> None:
    """Measure and print; see the module.

    Args:
        parent: the cgroup in which others are made.
        build: makes the relation's files in a folder, and gives their bytes.
        one: joins the batches of one process: the folder, one of `given`, and a barrier.
    """
    with tempfile.TemporaryDirectory(prefix="lookup-") as name:
        size = _apart(None, build, Path(name))  # so that nothing here has the files mapped
        files = sorted(path for path in Path(name).rglob("*") if path.is_file())
        given = [(Path(name), *some) for some in given]
        with limited(parent, NO_LIMIT_BYTES) as group:
            warm = run_in(group, one, given, batch_rows)
        own_bytes, share_bytes = warm.own_bytes, round(SHARE * size)
        forget_pages(files)
        with limited(parent, own_bytes + share_bytes) as group:
            read_s, read_bytes = _apart(group, one_reading, files)
            if read_bytes < 0.9 * size:
                raise RuntimeError(f"of {size} bytes {read_bytes} came from the disk: the kernel has the others")
            forget_pages(files)
            cold = run_in(group, one, given, batch_rows)
    allowed = batch_rows / read_s
    print(f"relation {size / 2**20:,.0f} MiB; processes' own memory {own_bytes / 2**20:,.0f} MiB")
    print(f"all in memory: {warm.rows_per_s:,.0f} stream rows/s")
    print(f"one reading: {read_s:.2f} s, {size / read_s / 2**20:,.0f} MiB/s; one a batch allows {allowed:,.0f} rows/s")
    print(
        f"with {(own_bytes + share_bytes) / 2**20:,.0f} MiB: {cold.rows_per_s:,.0f} stream rows/s, "
        f"{cold.rows_per_s / allowed:.0%} of that and {cold.rows_per_s / warm.rows_per_s:.0%} of all in memory; "
        f"{cold.disk_bytes / size / (cold.rows / batch_rows):.2f} readings of the relation a batch"
    )


def _child(group: Cgroup | None, one: Callable[..., Any], given: tuple[Any, ...], out: Any) -> None:
    if group is not None:
        group.processes.write_text(str(os.getpid()))
    out.send(one(*given))


def _apart(group: Cgroup | None, work: Callable[..., Any], *given: Any) -> Any:
    """The result of a function in a process of its own, of a group if one is given."""
    context = multiprocessing.get_context("fork")
    end, out = context.Pipe(False)
    child = context.Process(target=_child, args=(group, work, given, out))
    child.start()
    out.close()
    try:
        return end.recv()
    finally:
        child.join()


def _disk_bytes() -> int:
    return int(psutil.Process().io_counters().read_bytes)
