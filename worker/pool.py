"""Keeps drivers waiting for jobs, as many as the platform is to have."""

from __future__ import annotations

import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import psutil

from backend.settings import Settings
from streamjoin.machine import free_bytes
from streamjoin.spark.memory import JOB_MIB
from worker import processes
from worker.child import BACKOFF_S_MAX, LOG_BYTES_MAX, WELL_S
from worker.waiting import ready_file

COMMAND: Final = (sys.executable, "-m", "worker.warm")
REFILL_S: Final = 3.0
"""So long after one got a job none is started, and no longer than `REFILL_S_MAX` while processors are busy."""
REFILL_S_MAX: Final = 20.0
IDLE_SHARE: Final = 0.7


@dataclass
class _Driver:
    token: str
    process: subprocess.Popen[bytes]
    started_s: float
    has_job: bool = False


class Pool:
    """Drivers that wait, and those that waited once: they are children of this process until they end.

    Args:
        environment: of a process of the platform.
        available_mib: how much memory there is for more.
        idle_share: the part of the processors that nobody uses.
    """

    def __init__(
        self,
        settings: Settings,
        environment: Mapping[str, str],
        command: Sequence[str] = COMMAND,
        available_mib: Callable[[], float] | None = None,
        idle_share: Callable[[], float] = lambda: 1.0 - psutil.cpu_percent() / 100.0,
        steady_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self.environment = dict(environment)
        self.command = command
        self.log = settings.data.absolute() / "logs" / "warm.log"
        self._available_mib = available_mib or (lambda: free_bytes() / 2**20)
        self._idle_share = idle_share
        self._steady_s = steady_s
        self._drivers: list[_Driver] = []
        self._taken_s: float | None = None
        self._refill_s = REFILL_S
        self._again_s = 0.0
        self._quick_deaths = 0
        self._sweep()

    @property
    def waiting(self) -> list[int]:
        """Process ids of the drivers that have no job."""
        return [driver.process.pid for driver in self._drivers if not driver.has_job]

    def look(self) -> None:
        """Do what is due: forget who has ended, let go who is in the way, start who is missing."""
        now_s = self._steady_s()
        for driver in list(self._drivers):
            if not driver.has_job and processes.given_to(self.settings.data, driver.token).exists():
                driver.has_job = True
                # A job that found nothing ready starts for as long as any.
                was_ready = ready_file(self.settings.data, driver.token).exists()
                self._taken_s, self._refill_s = now_s, REFILL_S if was_ready else REFILL_S_MAX
                self._quick_deaths = 0
            if driver.process.poll() is not None:
                self._remove(driver)
                if not driver.has_job:
                    self._quick_deaths = 0 if now_s - driver.started_s > WELL_S else self._quick_deaths
                    self._pause(now_s)
        waiting = [driver for driver in self._drivers if not driver.has_job]
        if waiting and self._available_mib() < self._job_mib:
            self._end(waiting)
            self._again_s = now_s + REFILL_S_MAX
        elif len(waiting) < self.settings.warm_drivers and self._may_start(now_s):
            self._start(now_s)

    def end(self) -> None:
        """End those that wait; those with a job are whoever's that ends jobs."""
        self._end([driver for driver in self._drivers if not driver.has_job])

    def _pause(self, now_s: float) -> None:
        """One died, or could not be started: the next is, after a pause that grows while that goes on."""
        self._quick_deaths += 1
        self._again_s = now_s + min(BACKOFF_S_MAX, 2.0 ** (self._quick_deaths - 1))

    def close(self) -> None:
        """Jobs have ended, too: forget them."""
        for driver in list(self._drivers):
            with suppress(subprocess.TimeoutExpired):
                driver.process.wait(1)
                self._remove(driver)

    @property
    def _job_mib(self) -> float:
        return float(self.settings.driver_memory_mib + JOB_MIB)

    def _may_start(self, now_s: float) -> bool:
        if now_s < self._again_s or self._available_mib() < 2 * self._job_mib:
            return False
        if self._taken_s is None or now_s - self._taken_s >= REFILL_S_MAX:
            return True
        # A job has just started, and has the processor for itself.
        return now_s - self._taken_s >= self._refill_s and self._idle_share() >= IDLE_SHARE

    def _start(self, now_s: float) -> None:
        token = secrets.token_hex(16)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        if self.log.exists() and self.log.stat().st_size > LOG_BYTES_MAX:
            self.log.replace(self.log.with_suffix(".log.1"))
        with open(self.log, "ab") as log:
            try:
                process = subprocess.Popen(
                    self.command, env={**self.environment, processes.MARK: processes.warm_mark(token)},
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                )  # fmt: skip
            except OSError as failure:  # no memory, or too many processes: jobs start without
                log.write(f"streamjoin: a driver that waits cannot be started: {failure}\n".encode())
                self._pause(now_s)
                return
        self._drivers.append(_Driver(token, process, now_s))

    def _end(self, drivers: Sequence[_Driver]) -> None:
        for driver in drivers:
            for place in self._files(driver.token):
                # Whoever takes it from now on finds nobody.
                with suppress(OSError):
                    place.unlink()
            if not processes.given_to(self.settings.data, driver.token).exists():
                processes.kill_all(partial(processes.of_warm, self.settings.data, driver.token))
                # Of one that has just started the kernel may not show the environment yet, by which others are found.
                driver.process.kill()
                driver.process.wait()
                self._remove(driver)

    def _remove(self, driver: _Driver) -> None:
        self._drivers.remove(driver)
        processes.kill_all(partial(processes.of_warm, self.settings.data, driver.token))
        for place in self._files(driver.token):
            _remove(place)
        processes.given_to(self.settings.data, driver.token).unlink(missing_ok=True)

    def _files(self, token: str) -> list[Path]:
        """Of a driver, but for the record of its job."""
        return [
            place
            for place in processes.warm_folder(self.settings.data).glob(f"{token}.*")
            if place != processes.given_to(self.settings.data, token)
        ]

    def _sweep(self) -> None:
        """Remove what an earlier platform left that was killed."""
        folder = processes.warm_folder(self.settings.data)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for place in folder.iterdir():
            token = place.name.partition(".")[0]
            if not processes.given_to(self.settings.data, token).exists():
                processes.kill_all(partial(processes.of_warm, self.settings.data, token))
            if not processes.of_warm(self.settings.data, token):
                _remove(place)


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place, ignore_errors=True)
    else:
        place.unlink(missing_ok=True)
