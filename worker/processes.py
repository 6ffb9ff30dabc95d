"""Drivers as processes: which one it is, whether it lives, and how all of it ends.

A driver leads a session. Java is in the driver's process group, Python workers have groups of their own, and all are in
the session: that, and a mark in the environment that every child inherits, says what belongs to a driver.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

import psutil

MARK: Final = "STREAMJOIN_DRIVER"
"""Variable that a driver and all its children carry: the job's id and the generation."""
DRIVER_COMMAND: Final = "STREAMJOIN_DRIVER_COMMAND"
"""Variable with another program to start as driver; it gets job and generation as its last arguments."""
WARM: Final = "warm-"
"""What the mark of a driver begins with that was started before it had a job."""
UP_PIPE: Final = "STREAMJOIN_UP_PIPE"
"""Variable with a pipe that whoever started the whole platform holds open: when it is gone, drivers go, too."""
_PAUSE_S = 0.02
_MARK = re.compile(r"[A-Za-z0-9_-]{1,100}/[0-9]{1,15}")


def mark_of(job_id: str, generation: int) -> str:
    """The value of `MARK` for a driver."""
    return f"{job_id}/{generation}"


def warm_mark(token: str) -> str:
    """The value of `MARK` for a driver that has no job yet; a file says later which one it got."""
    return mark_of(f"{WARM}{token}", 0)


def warm_folder(data: Path) -> Path:
    """Where the files of such drivers are."""
    return data.absolute() / "warm"


def given_to(data: Path, token: str) -> Path:
    """The file that has the mark of the job that such a driver got; no process can change its environment."""
    return warm_folder(data) / f"{token}.job"


def _owner(data: Path, mark: str) -> tuple[str, int]:
    """The job and the generation that a mark, which is one, or the file of a driver that waited says."""
    job, _, generation = mark.rpartition("/")
    if job.startswith(WARM):
        with suppress(FileNotFoundError):
            said = given_to(data, job.removeprefix(WARM)).read_text(errors="replace")
            if _MARK.fullmatch(said):
                job, _, generation = said.rpartition("/")
    return job, int(generation)


def started(pid: int) -> str | None:
    """When a process started, so that it is told from a later one of the same number; None if it does not run.

    In ticks since the machine was booted, and which boot that was: the clock may be set meanwhile.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, ticks = fields[0], fields[19]
    return None if state in "ZX" else f"{_boot()}-{ticks}"


@cache
def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text()[:8]


def is_alive(pid: int, since: str | None) -> bool:
    """Whether the process that was given this number at `since` still runs."""
    found = started(pid)
    return found is not None and found == since


def ask_to_end(pid: int, since: str | None) -> bool:
    """Send SIGTERM to a process; tell whether it was there."""
    if not is_alive(pid, since):
        return False
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    return True


def members(data: Path, job_id: str | None = None, *, below: int | None = None) -> list[int]:
    """Processes on this machine that belong to drivers: they themselves, Java, Python workers.

    Args:
        data: the data folder of the platform that started them.
        job_id: only of this job.
        below: only of generations before this one.
    Cost: reads the environment of every process, a few milliseconds.
    """
    return [
        pid
        for pid, mark in _marked(data)
        for its_job, generation in [_owner(data, mark)]
        if (job_id is None or its_job == job_id) and (below is None or generation < below)
    ]


def of_warm(data: Path, token: str) -> list[int]:
    """Processes of one driver that was started before it had a job, whether it got one or not."""
    its_mark = warm_mark(token)
    return [pid for pid, mark in _marked(data) if mark == its_mark]


def leaders(data: Path) -> list[int]:
    """The drivers themselves, of those that `members` finds, without those that wait for a job."""
    found = []
    for pid, mark in _marked(data):
        with suppress(ProcessLookupError):
            if os.getsid(pid) == pid and not _owner(data, mark)[0].startswith(WARM):
                found.append(pid)
    return found


def _marked(data: Path) -> Iterator[tuple[int, str]]:
    """All processes that carry a mark of the platform with this data folder, each with its mark.

    Any process may have any environment. Other users' processes are not ours, and what is no mark is passed over.
    """
    folder = f"STREAMJOIN_DATA={data.absolute()}".encode()
    prefix = f"{MARK}=".encode()
    own = os.geteuid()
    for pid in psutil.pids():
        try:
            place = Path(f"/proc/{pid}")
            if place.stat().st_uid != own:  # root may read all of them
                continue
            variables = (place / "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # it ended meanwhile, or is somebody else's
        mark = next((value for value in variables if value.startswith(prefix)), None)
        if mark is not None and folder in variables:
            text = mark.removeprefix(prefix).decode(errors="replace")
            if _MARK.fullmatch(text):
                yield pid, text


def kill_all(find: Callable[[], Sequence[int]], within_s: float = 5.0) -> list[int]:
    """Kill what `find` finds until it finds nothing: they may start others meanwhile.

    Returns:
        Those that are left after `within_s`, which the kernel does not let go.
    """
    deadline = time.monotonic() + within_s
    while left := list(find()):
        if time.monotonic() >= deadline:
            return left
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_PAUSE_S)
    return []
