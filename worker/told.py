"""Launches that were sent to machines: which ones a machine may not have counted yet, and which came to nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from backend.catalog.models import Job, Lease

COUNTED_S: Final = 60.0
"""For how long after a launch its driver may not have taken all its memory yet."""
LEFT_OUT_S: Final = 300.0
"""How long a machine that ignored a launch is left out, unless a launch succeeds there."""


@dataclass(frozen=True, slots=True)
class _Launch:
    generation: int
    wanted_since_us: int
    machine: str
    at_s: float


class Told:
    """What one reconciler remembers of its launches; losing it does no harm.

    Args:
        void_s: how long after it was sent a message expires.
        steady_s: a clock that nobody sets.
    """

    def __init__(self, void_s: float, steady_s: Callable[[], float]) -> None:
        self._void_s = void_s
        self._steady_s = steady_s
        self._counted: deque[tuple[str, float]] = deque(maxlen=1000)
        self._waiting: dict[str, _Launch] = {}
        self._launched: dict[str, int] = {}
        self._silent: dict[str, float] = {}

    def add(self, job: Job, machine: str) -> None:
        """A machine was told to launch a job's next generation."""
        now_s = self._steady_s()
        self._counted.append((machine, now_s))
        self._waiting[job.id] = _Launch(job.generation + 1, job.wanted_since_us, machine, now_s)

    def look(self, rows: Collection[tuple[Job, Lease | None]], machines: Collection[str]) -> None:
        """Note which machines took a lease since the last look, and forget jobs and machines that are gone."""
        for job, lease in rows:
            if lease is not None and self._launched.get(job.id) != lease.generation:
                self._launched[job.id] = lease.generation
                self._silent.pop(lease.host, None)
        there = {job.id for job, _ in rows}
        for memory in (self._waiting, self._launched):
            for job_id in memory.keys() - there:
                del memory[job_id]
        old_s = self._steady_s() - LEFT_OUT_S
        self._silent = {name: at_s for name, at_s in self._silent.items() if name in machines and at_s > old_s}

    def in_vain(self, job: Job) -> str | None:
        """The machine that was told to launch this job and had time to do so, but did not.

        A job that was stopped and started meanwhile says nothing: the machine may have found nothing to launch.
        """
        told = self._waiting.get(job.id)
        if told is None or self._steady_s() - told.at_s < self._void_s:
            return None
        del self._waiting[job.id]
        if (told.generation, told.wanted_since_us) != (job.generation + 1, job.wanted_since_us):
            return None
        self._silent[told.machine] = self._steady_s()
        return told.machine

    def counted(self) -> list[str]:
        """The machines that were told of launches recently, one entry per launch."""
        return [name for name, at_s in self._counted if self._steady_s() - at_s < COUNTED_S]

    def silent(self) -> dict[str, float]:
        """The machines that ignored a launch, and when that was last noticed."""
        return self._silent
