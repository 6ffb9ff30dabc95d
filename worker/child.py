"""A program that the platform runs, and starts again when it dies."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from worker.guarded import guarded, kill_guarded
from worker.head_start import HeadStart

WELL_S: Final = 60.0
BACKOFF_S_MAX: Final = 30.0
LOG_BYTES_MAX: Final = 32 << 20

Show = Callable[[str], None]


@dataclass
class Child:
    """One program of the platform.

    Args:
        is_ready: looks whether it does its work already.
        inherits: numbers of open files that it gets.
        head_start: the process of its first start, which loads already; it inherits one listener.
        deaths: how often it ended though it should not have.
    """

    name: str
    command: Sequence[str]
    environment: dict[str, str]
    log: Path
    is_ready: Callable[[Child], bool]
    inherits: Sequence[int] = ()
    head_start: HeadStart | None = None
    process: subprocess.Popen[bytes] | None = None
    log_start: int = 0
    started_s: float = 0.0
    deaths: int = 0
    again_s: float | None = None
    quick_deaths: int = field(default=0)

    def start(self) -> None:
        """Start it, in a process group of its own."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        if self.log.exists() and self.log.stat().st_size > LOG_BYTES_MAX:
            self.log.replace(self.log.with_suffix(".log.1"))
        with open(self.log, "ab") as log:
            self.log_start = log.tell()
            if self.head_start is None:
                self.process = guarded(self.command, self.environment, self.inherits, log)
                self.started_s = time.monotonic()
            else:
                self.process = self.head_start.goes_on(self.environment, self.inherits[0], log)
                self.started_s = self.head_start.started_s
                self.head_start = None
        self.again_s = None

    @property
    def pid(self) -> int | None:
        """Of the program, once it was started."""
        return None if self.process is None else self.process.pid

    def ended(self) -> int | None:
        """How it ended; None while it runs."""
        return None if self.process is None else self.process.poll()

    def output(self) -> str:
        """What it has written since it was started."""
        with open(self.log, "rb") as log:
            log.seek(self.log_start)
            return log.read().decode(errors="replace")

    def ask_to_end(self) -> None:
        """Send SIGTERM, if it runs."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()

    def end(self, grace_s: float) -> None:
        """Wait until it has ended, then make sure that nothing of it is left."""
        if self.process is None:
            return
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(max(grace_s, 0.0))
        kill_guarded(self.process)
        self.process = None

    def look(self, show: Show) -> None:
        """Start it again if it died, after a pause that grows while it keeps dying."""
        now_s = time.monotonic()
        status = self.ended()
        if status is not None:
            self.deaths += 1
            self.quick_deaths = 1 if now_s - self.started_s > WELL_S else self.quick_deaths + 1
            pause_s = min(BACKOFF_S_MAX, 0.5 * 2.0 ** (self.quick_deaths - 1))
            self.end(0)
            self.again_s = now_s + pause_s
            show(f"{self.name} ended with {status}, for the {_ordinal(self.deaths)} time; again in {pause_s:g} s")
        elif self.process is None and self.again_s is not None and now_s >= self.again_s:
            self.start()


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"{number}{ending}"
