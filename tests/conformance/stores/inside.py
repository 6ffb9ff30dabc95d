"""The same job and the same checks in one process: a reader looks around every single change of the store.

A crash is an error that leaves the store as it is; a paused driver is one whose next step comes after another began.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from streamjoin.results.ledger import FencedError, Ledger
from streamjoin.results.stores.memory import MemoryStore
from streamjoin.results.stores.spec import StoreSpec

from .job import CASES, ORIGIN, CommitLog, Driver, description
from .watch import Watch

JOB = "job"
SEED = 1
_names = itertools.count()


class CrashError(Exception):
    """The driver is dead."""


class Looked(MemoryStore):
    """A store that calls `look` after each change, and `before` once before one to come."""

    def __init__(self) -> None:
        super().__init__()
        self.look: Callable[[], None] = lambda: None
        self._before: Callable[[], None] | None = None
        self._left = 0

    def before_change(self, number: int, act: Callable[[], None]) -> None:
        """Do something before the change with this number, counted from now."""
        self._before, self._left = act, number

    def _changing(self, change: Callable[..., Any], *arguments: Any) -> Any:
        self._left -= 1
        if self._left < 0 and self._before is not None:
            act, self._before = self._before, None
            act()
        done = change(*arguments)
        self.look()
        return done

    def put_blocks(self, *arguments: Any) -> None:
        self._changing(super().put_blocks, *arguments)

    def delete_blocks(self, *arguments: Any) -> None:
        self._changing(super().delete_blocks, *arguments)

    def put_records(self, *arguments: Any) -> None:
        self._changing(super().put_records, *arguments)

    def delete_records(self, *arguments: Any) -> None:
        self._changing(super().delete_records, *arguments)

    def swap_head(self, *arguments: Any) -> bool:
        return bool(self._changing(super().swap_head, *arguments))


@dataclass
class Inside:
    """One job in one store, with a reader that looks all the time."""

    store: Looked
    case: str
    folder: Path

    def __post_init__(self) -> None:
        self.name = f"looked at {next(_names)}"
        self.spec = StoreSpec("memory", (("name", self.name),))
        MemoryStore._named[self.name] = self.store
        self.log = CommitLog(self.folder)
        self.watch = Watch(self.spec.open, JOB, CASES[self.case], SEED, self.log.end)
        self.store.look = self.watch.look

    def __enter__(self) -> Inside:
        return self

    def __exit__(self, *_: object) -> None:
        del MemoryStore._named[self.name]

    def driver(self) -> Driver:
        """A driver that has not begun."""
        return Driver(self.spec, JOB, CASES[self.case], SEED, self.log)

    def crash(self, number: int) -> None:
        """A driver dies before its change with this number."""

        def die() -> None:
            raise CrashError

        self.store.before_change(number, die)
        with pytest.raises(CrashError):
            self.run(self.driver())

    def pause(self, number: int) -> None:
        """A driver is paused before that change; it goes on when another one has done a batch."""
        paused, other = self.driver(), self.driver()

        def work() -> None:
            other.begin()
            other.step()

        self.store.before_change(number, work)
        # The later of the two to take over has the job. One that waited at its head for it may be the later one.
        with pytest.raises(FencedError):
            self._run_both(paused, other)

    def _run_both(self, paused: Driver, other: Driver) -> None:
        self.run(paused, batches=8)
        self.run(other, begun=True)

    def run(self, driver: Driver, *, batches: int = 1000, begun: bool = False) -> None:
        """Let a driver work."""
        if not begun:
            driver.begin()
        while batches and driver.step():
            batches -= 1

    def run_to_the_end(self) -> None:
        """The streams end; then everything is there once, and nothing else."""
        end = self.log.next() + 2
        self.log.stop_before(end)
        self.run(self.driver())
        self.watch.last_look(end)
        ledger = Ledger(self.store, JOB, description(CASES[self.case]), CASES[self.case].policy)
        ledger.take_over(ORIGIN)
        blocks = len(list(self.store.list_blocks(JOB)))
        assert blocks == sum(len(found.blocks) for found in self.watch._seen) + len(ledger._waiting), "blocks are left"
