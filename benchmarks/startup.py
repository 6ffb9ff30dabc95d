"""Seconds from the command to the first committed batch, and from the restart after `kill -9` to the next one.

What is timed is what a person runs, `streamjoin run --until-end`; a batch is committed when Spark's commit log has its
entry. The kill takes the driver, Java and all workers at once.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import padded, systems
from benchmarks.processes import kill, start
from benchmarks.scale import ROOT, Scale
from benchmarks.systems import Rates
from streamjoin.state.store import read_manifests

EXPECTED_S = 240
FILES, FILES_QUICK = 24, 8
POLL_S = 0.01


class NoCommitError(Exception):
    """The job ended, or took too long, before the batch was committed."""


def run(scale: Scale) -> dict[str, Any]:
    """`small` and `large`: live state in bytes when it was killed, and seconds, each run's and the median."""
    work = systems.folder(scale, "startup")
    return {
        "small": _measure(scale, work, "small", scale.pick(32 << 20, 4 << 20), 4, times=scale.pick(5, 1)),
        # Four fifths of the files are 1 GiB.
        "large": _measure(scale, work, "large", scale.pick(5 << 28, 8 << 20), scale.pick(19, 5), scale.pick(3, 1)),
    }  # fmt: skip


def _measure(scale: Scale, work: Path, name: str, state_bytes: int, kill_after: int, times: int) -> dict[str, Any]:
    files = scale.pick(FILES, FILES_QUICK)
    streams = padded.make(scale, state_bytes, files, files)
    rounds = []
    for number in range(times):
        join = streams.join(work, f"{name}-{number}")
        file = work / f"{name}-{number}.yaml"
        file.write_text(json.dumps(join, indent=1))
        scale.show(f"  {name}, {number + 1} of {times}")
        checkpoint = Path(join["run"]["checkpoint"])
        rounds.append(_round(scale, file, checkpoint, kill_after))
        shutil.rmtree(checkpoint)
    return {
        "batch_rows": 2 * streams.rows_per_file,
        "rounds": rounds,
        "median": {what: statistics.median(one[what] for one in rounds) for what in rounds[0]},
    }


def _round(scale: Scale, file: Path, checkpoint: Path, kill_after: int) -> dict[str, float]:
    limit_s = scale.pick(300.0, 240.0)
    with running_job(file, file.with_suffix(".first.log")) as job:
        first_s = job.committed(checkpoint, 0, scale.seconds(limit_s))
        before_s = job.committed(checkpoint, kill_after - 1, scale.seconds(limit_s))
        batch_s = (before_s - first_s) / (kill_after - 1)
    state_bytes = sum(info.bytes for _, state in read_manifests(checkpoint / "state") for info in state.tuples())
    reached = last_commit(checkpoint)
    with running_job(file, file.with_suffix(".second.log")) as job:
        recovery_s = job.committed(checkpoint, reached + 1, scale.seconds(limit_s))
    return {"first_batch_s": first_s, "recovery_s": recovery_s, "batch_s": batch_s, "state_bytes": state_bytes}


class Job:
    """A running command."""

    def __init__(self, file: Path, log: Path, code: Path, *, until_end: bool, report: Path | None) -> None:
        self.begun_s = time.monotonic()
        self.log = log
        command = [sys.executable, "-m", "streamjoin", "run", str(file), "--quiet"]
        command += ["--until-end"] if until_end else []
        command += ["--report", str(report)] if report is not None else []
        self.process = start(command, log, code=code)

    def committed(self, checkpoint: Path, batch: int, limit_s: float) -> float:
        """Wait for a batch's commit; seconds since the command.

        Raises:
            NoCommitError: it did not come.
        """
        entry = checkpoint / "offsets" / "commits" / str(batch)
        deadline_s = time.monotonic() + limit_s
        while not entry.exists():
            if self.process.poll() is not None and not entry.exists():
                raise NoCommitError(f"the job ended before batch {batch}: {self.log.read_text()[-1000:]}")
            if time.monotonic() > deadline_s:
                raise NoCommitError(f"batch {batch} was not committed within {limit_s:.0f} s")
            time.sleep(POLL_S)
        return time.monotonic() - self.begun_s


@contextmanager
def running_job(
    file: Path, log: Path, code: Path = ROOT, *, until_end: bool = True, report: Path | None = None
) -> Iterator[Job]:
    """A command that is killed when the block is left.

    Args:
        report: where its `report.json` is to be, if it comes to its end.
    """
    job = Job(file, log, code, until_end=until_end, report=report)
    try:
        yield job
    finally:
        kill(job.process)


def last_commit(checkpoint: Path) -> int:
    """The newest batch that is committed."""
    entries = (checkpoint / "offsets" / "commits").iterdir()
    return max(int(entry.name) for entry in entries if entry.name.isdigit())


@contextmanager
def own(scale: Scale) -> Iterator[Callable[[Scale], Rates]]:
    """One start and one recovery with either state, as often as wanted: how many of them there could be in a second."""
    yield lambda scale: {
        **_turn(scale, "small", scale.pick(32 << 20, 4 << 20), 4),
        **_turn(scale, "large", scale.pick(5 << 28, 8 << 20), scale.pick(19, 5)),
    }


def _turn(scale: Scale, name: str, state_bytes: int, kill_after: int) -> Rates:
    """As `_round`, but nothing is read from the state: another commit may write it otherwise."""
    files = scale.pick(FILES, FILES_QUICK)
    work = systems.folder(scale, f"startup-{name}")
    join = padded.make(scale, state_bytes, files, files).join(work, name)
    file = work / f"{name}.yaml"
    file.write_text(json.dumps(join, indent=1))
    checkpoint = Path(join["run"]["checkpoint"])
    limit_s = scale.seconds(scale.pick(300.0, 240.0))
    with running_job(file, file.with_suffix(".first.log"), scale.code) as job:
        first_s = job.committed(checkpoint, 0, limit_s)
        batch_s = (job.committed(checkpoint, kill_after - 1, limit_s) - first_s) / (kill_after - 1)
    reached = last_commit(checkpoint)
    with running_job(file, file.with_suffix(".second.log"), scale.code) as job:
        recovery_s = job.committed(checkpoint, reached + 1, limit_s)
    shutil.rmtree(checkpoint)
    return {f"{name}, first batch": 1 / first_s, f"{name}, recovery": 1 / recovery_s, f"{name}, batch": 1 / batch_s}
