"""Giving a job to a driver that waits for one: which driver fits, and how it is told.

A driver that waits listens on a socket among the platform's files, whose name says what it fits. Whoever renames the
socket has the driver for itself: of any number of launches one gets it.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

from backend.handover import hand_over
from backend.settings import Settings
from worker import processes

ACK_S: Final = 5.0
"""A driver that does not say within so long that it took its job is ended."""
WAITS: Final = ".waits"
TAKEN: Final = ".taken"
JOB: Final = "STREAMJOIN_JOB"
"""Variable with the job and the generation, of those that a driver is told."""


def key_of(run: Mapping[str, Any]) -> str:
    """What a Spark session is of: a driver fits jobs of its own key alone.

    Args:
        run: the section `run` of a join file.
    """
    what = json.dumps([run["slots"], run["driver_memory"], run.get("spark"), run.get("master")], sort_keys=True)
    return f"{run['slots']}x{run['driver_memory']}-{hashlib.sha256(what.encode()).hexdigest()[:12]}"


def ready_file(data: Path, token: str) -> Path:
    """It is there if the driver has, or had, all ready before it got a job."""
    return processes.warm_folder(data) / f"{token}.ready"


def name_of(token: str, key: str) -> str:
    """The name of the socket of a driver that waits."""
    return f"{token}.{key}{WAITS}"


def give(
    settings: Settings, key: str, job_id: str, generation: int, environment: Mapping[str, str], log: IO[bytes]
) -> int | None:
    """Give a generation of a job to a driver that waits, the longest waiting first.

    Args:
        environment: as a driver that is started now would get it.
        log: where the driver writes from now on.
    Returns:
        Its process id; None where none waits that fits.
    """
    folder = processes.warm_folder(settings.data)
    for place in sorted(folder.glob(f"*.{key}{WAITS}"), key=_age):
        token = place.name.partition(".")[0]
        taken = place.with_suffix(TAKEN)
        try:
            place.rename(taken)
        except FileNotFoundError:
            continue  # it is another job's
        pid = _tell(settings.data, token, taken, job_id, generation, environment, log)
        if pid is not None:
            return pid
        # Whatever it did not do by now it must not do later.
        processes.given_to(settings.data, token).unlink(missing_ok=True)
        processes.kill_all(partial(processes.of_warm, settings.data, token))
    return None


def _age(place: Path) -> float:
    with suppress(FileNotFoundError):
        return place.stat().st_mtime
    return 0.0


def _tell(
    data: Path, token: str, taken: Path, job_id: str, generation: int, environment: Mapping[str, str], log: IO[bytes]
) -> int | None:
    mark = processes.mark_of(job_id, generation)
    record = processes.given_to(data, token)
    with socket.socket(socket.AF_UNIX) as channel:
        channel.settimeout(ACK_S)
        try:
            with short_path(taken) as path:
                channel.connect(path)
            pid, _, _ = struct.unpack("3i", channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            # From before it is told: then it is the job's whatever becomes of this process.
            unfinished = record.with_suffix(".new")
            unfinished.write_text(mark)
            os.replace(unfinished, record)
            hand_over(channel, {**environment, JOB: mark}, log.fileno())
            return int(pid) if channel.recv(1) else None
        except OSError:  # it has ended, or hangs
            return None


@contextmanager
def short_path(path: Path) -> Iterator[str]:
    """A path to the same file that is short enough for a Unix socket."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
