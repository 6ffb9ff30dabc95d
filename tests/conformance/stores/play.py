"""Drivers that are killed and paused, one after the other, while readers look."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import signal
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from multiprocessing.synchronize import Event
from pathlib import Path

import psutil

from streamjoin.results.head import Head
from streamjoin.results.ledger import Ledger
from streamjoin.results.reader import Reader
from streamjoin.results.snapshot import Snapshot
from streamjoin.results.stores.spec import StoreSpec
from streamjoin.results.stores.store import Store
from tests.servers.process import comes_true

from . import driver, watch
from .job import CASES, ORIGIN, CommitLog, Undisturbed, description, without_generation

READERS = 2
ENDS_S_MAX = 120.0
STACK_S_MAX = 5.0
TAKE_OVER_S_MAX = 2.0
"""A driver may be paused in the middle of a transaction, and then SQLite lets nobody else write."""
RUN_S = 0.3
"""How long a driver that dies at a random moment lives at most."""
POINTS = ("store.after_blocks", "ledger.before_records", "ledger.before_head", "ledger.after_head")
VISITS_MAX = {"store.after_blocks": 20}
LAST_BATCHES = 8

# Started once: a driver that begins with everything imported begins in milliseconds.
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload([f"{__package__}.warm"])


class BrokenError(AssertionError):
    """A promise of the result store was broken."""


@dataclass
class Report:
    """What was played, and what was looked at.

    Args:
        kills: by the place where the driver died.
        fenced: drivers that were paused, and found another one in their place when they went on.
    """

    kills: Counter[str] = field(default_factory=Counter)
    restarts: int = 0
    fenced: int = 0
    batches: int = 0
    snapshots: int = 0
    looks: int = 0
    snapshots_checked: int = 0
    rows_checked: int = 0
    swept: int = 0
    seconds: float = 0.0

    def add(self, other: Report) -> None:
        """Add another job's."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


def play(spec: StoreSpec, case: str, kills: int, seed: int, folder: Path) -> Report:
    """Play one job to its end.

    Args:
        kills: how often a driver dies; before every third, another one is paused and goes on too late.
    Raises:
        BrokenError: a reader saw what it must not see, or what is left at the end is wrong.
    """
    began_s = time.monotonic()
    with Game(spec, case, seed, folder) as game:
        for number in range(kills):
            if number % 3 == 2:
                game.pause_and_kill()
            elif number % 2 == 0:
                game.kill_at(game.point())
            else:
                game.kill_at_random()
        game.run_to_the_end()
        game.stop_readers()
        game.check_what_is_left()
    game.report.seconds = time.monotonic() - began_s
    return game.report


def play_a_few(spec: StoreSpec, case: str, folder: Path) -> None:
    """Five kills, for a store that others use too; `stores.soak` has more of them."""
    report = play(spec, case, 5, 5, folder)
    assert report.kills.total() == 5 and report.fenced == 1
    assert report.snapshots_checked == 2 * report.snapshots > 0


class Game:
    """One job, its drivers and its readers."""

    def __init__(self, spec: StoreSpec, case: str, seed: int, folder: Path) -> None:
        self.spec = spec
        self.case = case
        self.seed = seed
        self.folder = folder
        self.job = f"kills-{uuid.uuid4().hex}"
        self.log = CommitLog(folder)
        self.store: Store = spec.open()
        self.random = random.Random(seed)
        self.report = Report(restarts=-1)
        self._processes: list[ForkServerProcess] = []
        self._logs: dict[int, Path] = {}
        self._points = list(POINTS)
        self._readers: list[tuple[ForkServerProcess, Connection]] = []
        self._stop: Event = _context.Event()

    def __enter__(self) -> Game:
        self.store.prepare()
        for _ in range(READERS):
            ours, theirs = _context.Pipe(duplex=False)
            arguments = (self.spec, self.job, self.case, self.seed, self.folder, self._stop, theirs)
            self._readers.append((self._start(watch.run, arguments), ours))
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for process in self._processes:
            if process.is_alive():
                process.kill()  # a paused one too
            process.join()
        self.store.drop(self.job)
        self.store.close()

    def point(self) -> str:
        """A named place, each in its turn, and a visit."""
        name = self._points.pop(0)
        self._points.append(name)
        return f"{name}:kill:{self.random.randint(1, VISITS_MAX.get(name, 6))}"

    def start(self, points: str = "") -> ForkServerProcess:
        """A driver begins."""
        self.report.restarts += 1
        log = self.folder / f"driver-{self.report.restarts}.log"
        process = self._start(driver.run, (self.spec, self.job, self.case, self.seed, self.folder, log, points))
        assert process.pid is not None
        self._logs[process.pid] = log
        return process

    def kill_at(self, points: str) -> None:
        """A driver dies at a named place."""
        self._expect(self.start(points), -signal.SIGKILL)
        self.report.kills[points.partition(":")[0]] += 1

    def kill_at_random(self) -> None:
        """A driver dies at any moment, one in three perhaps before it is the job's writer."""
        before = self._generation()
        process = self.start()
        if self.random.random() < 2 / 3:
            self._wait(lambda: self._generation() > before, "a driver does not take over", process)
        self._kill_later(process)

    def pause_and_kill(self) -> None:
        """A driver is paused, another one takes over; the first goes on while that one works, or once it is dead."""
        before = self._generation()
        paused = self.start()
        self._wait(lambda: self._generation() > before, "a driver does not take over", paused)
        self._live_on(paused)
        os.kill(paused.pid or 0, signal.SIGSTOP)
        before = self._generation()
        after = self.start()
        # Where the first holds SQLite's lock nobody takes over from it before it goes on.
        is_replaced = comes_true(lambda: self._generation() > before, TAKE_OVER_S_MAX)
        if is_replaced and self.random.random() < 0.5:
            self._kill_later(after)
            self._let_go_on(paused)
        else:
            self._let_go_on(paused)
            self._kill_later(after)

    def run_to_the_end(self) -> None:
        """Nobody is killed any more, and the streams end."""
        self.log.stop_before(self.log.next() + LAST_BATCHES)
        self._expect(self.start(), 0)
        self.report.batches = self.log.next()

    def stop_readers(self) -> None:
        """The readers look a last time and say what they saw."""
        self._stop.set()
        for process, report in self._readers:
            if not report.poll(ENDS_S_MAX):
                raise BrokenError(f"a reader does not end; its exit code is {process.exitcode}")
            looks, snapshots, rows, broken = report.recv()
            if broken:
                raise BrokenError(broken)
            self.report.looks += looks
            self.report.snapshots_checked += snapshots
            self.report.rows_checked += rows

    def check_what_is_left(self) -> None:
        """After one more driver took over there is nothing in the store but what counts."""
        ledger = Ledger(self.store, self.job, description(CASES[self.case]), CASES[self.case].policy)
        self.report.swept = self._blocks()
        ledger.take_over(ORIGIN)
        self.report.swept -= self._blocks()
        reader = Reader(self.store, self.job)
        reader.refresh()
        must = Undisturbed(CASES[self.case], self.seed, self.store.block_bytes)
        must.advance(self.report.batches - 1)
        must.finish()
        waiting = [without_generation(ref) for ref in ledger._waiting]
        snapshots: list[Snapshot] = reader.snapshots()
        counting = [ref.key for found in snapshots for ref in found.blocks] + [ref.key for ref in ledger._waiting]
        for right, what in (
            (waiting == must.waiting, "not what must wait waits"),
            (sorted(self.store.list_blocks(self.job)) == sorted(counting), "blocks are left that nobody reads"),
            (len(snapshots) == ledger.head.snapshots, "the head counts other snapshots than there are"),
        ):
            if not right:
                raise BrokenError(what)
        self.report.snapshots = len(snapshots)

    def _start(self, target: Callable[..., None], arguments: tuple[object, ...]) -> ForkServerProcess:
        process = _context.Process(target=target, args=arguments, daemon=True)
        process.start()
        self._processes.append(process)
        return process

    def _live_on(self, process: ForkServerProcess) -> None:
        time.sleep(self.random.uniform(0, RUN_S))  # the random moment itself
        if process.exitcode is not None:
            raise BrokenError(f"a driver ended by itself: {self._said(process)}")

    def _kill_later(self, process: ForkServerProcess) -> None:
        self._live_on(process)
        process.kill()
        self._expect(process, -signal.SIGKILL)
        self.report.kills["a random moment"] += 1

    def _let_go_on(self, process: ForkServerProcess) -> None:
        os.kill(process.pid or 0, signal.SIGCONT)
        self._expect(process, driver.FENCED)
        self.report.fenced += 1

    def _expect(self, process: ForkServerProcess, status: int) -> None:
        process.join(ENDS_S_MAX)
        if process.exitcode is None:
            state = psutil.Process(process.pid).status()  # one that waits for the disk cannot even be killed
            os.kill(process.pid or 0, signal.SIGUSR1)
            comes_true(lambda: "most recent call" in self._said(process), STACK_S_MAX)
            raise BrokenError(f"a driver does not end, its state is {state}: {self._said(process)}")
        if process.exitcode != status:
            raise BrokenError(f"a driver ended with {process.exitcode} instead of {status}: {self._said(process)}")
        self._look_at_readers()

    def _wait(self, condition: Callable[[], bool], otherwise: str, process: ForkServerProcess) -> None:
        if not comes_true(condition, ENDS_S_MAX):
            raise BrokenError(f"{otherwise}: {self._said(process)}")

    def _look_at_readers(self) -> None:
        """One that ends before it is told to has seen something."""
        for _, report in self._readers:
            if report.poll(0):
                raise BrokenError(report.recv()[-1] or "a reader ended")

    def _said(self, process: ForkServerProcess) -> str:
        log = self._logs.get(process.pid or 0)
        return log.read_text() if log is not None and log.exists() else ""

    def _generation(self) -> int:
        stored = self.store.head(self.job)
        return 0 if stored is None else Head.from_bytes(stored).generation

    def _blocks(self) -> int:
        return len(list(self.store.list_blocks(self.job)))


@contextlib.contextmanager
def sqlite(folder: Path) -> Iterator[StoreSpec]:
    """An empty store in a file."""
    yield StoreSpec("sqlite", (("path", str(folder / "results.db")),))
