"""A wall clock that is set back while Spark waits by it for the next batch: the job goes on, as often as asked."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from streamjoin.operators.biclique import Biclique
from streamjoin.spark import pace
from streamjoin.spark.driver import POLL_S, Driver
from streamjoin.spec.job import Job
from tests.conformance.check import plan
from tests.conformance.histories import history

NOON_S, HOUR_S, RUN_S = 1_700_000_000.0, 3600.0, 60.0
SET_S, TOOK_S = 20.6, 0.3


@dataclass
class Machine:
    """Its clocks, and Spark on it: batches begin at multiples of a span by the wall clock, and the first one at once.

    Attributes:
        sets: when the wall clock is set, by the steady one, and by how much.
        stops_s: when the job is to stop.
        begun_s: when batches began, by the steady clock.
        begins: with each start of the query, how many had begun, and which ones the driver said are the first of a run.
    """

    folder: Path
    every_s: float
    sets: dict[float, float]
    stops_s: float = RUN_S
    wall_s: float = NOON_S
    steady_s: float = 0.0
    started: int = 0
    begun_s: list[float] = field(default_factory=list)
    begins: list[tuple[int, frozenset[int]]] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        job = Job(plan(history(1, r=1, s=1), "equality", "20 us"), (Biclique(1, 1),), 1, self.folder)
        self.driver = Driver(cast(Any, None), replace(job, every_us=int(self.every_s * 1e6)), [])
        self.driver._start = self.start  # type: ignore[method-assign]

    def start(self, origin: str, **trigger: bool) -> Any:
        self.started += 1
        self.begins.append((len(self.begun_s), self.driver.job.begins))
        self._next_s, self._done_s = self.wall_s, 0.0
        query = SimpleNamespace(isActive=True, recentProgress=[], status={}, stop=self.ends, awaitTermination=self.wait)
        self._query = query
        self._spark()
        return query

    def ends(self) -> None:
        self._query.isActive = False

    def wait(self, poll_s: float) -> bool:
        self.steady_s, self.wall_s = self.steady_s + poll_s, self.wall_s + poll_s
        for at_s in [at_s for at_s in self.sets if at_s <= self.steady_s]:
            self.wall_s += self.sets.pop(at_s)
        self._spark()
        if self.steady_s >= self.stops_s:
            self.stop.set()
        return False

    def _spark(self) -> None:
        if self.steady_s >= self._done_s and self.wall_s >= self._next_s:
            log = self.folder / "offsets" / "offsets"
            log.mkdir(parents=True, exist_ok=True)
            (log / str(len(self.begun_s))).write_text(json.dumps({}))
            self.begun_s.append(self.steady_s)
            self._done_s = self.steady_s + TOOK_S
            self._next_s = (self.wall_s // self.every_s + 1) * self.every_s if self.every_s else 0.0
        is_done = self.steady_s >= self._done_s
        self.driver.progress.batches = len(self.begun_s) - (not is_done)
        self._query.status.update(
            message="Waiting for next trigger" if is_done else "Processing new data", isTriggerActive=not is_done
        )

    def run(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        """Until it is stopped; the pauses between its batches."""
        clocks = SimpleNamespace(time=lambda: self.wall_s, monotonic=lambda: self.steady_s)
        monkeypatch.setattr(pace, "time", clocks)
        self.driver._join(cast(Any, SimpleNamespace(id="job")), self.stop)
        return [after - before for before, after in pairwise(self.begun_s)]


@pytest.mark.parametrize("at_s", [20.125, SET_S], ids=["in a batch", "in a pause"])
@pytest.mark.parametrize("every_s", [1.0, 5.0])
def test_a_job_that_begins_batches_every_so_often_does_not_wait_for_a_clock_that_was_set_back(
    every_s: float, at_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path, every_s, {at_s: -HOUR_S})
    pauses = machine.run(monkeypatch)
    assert max(pauses) <= every_s + 2 * POLL_S and machine.started == 2
    assert len(pauses) >= RUN_S // every_s - 1
    # The batch that comes then is the first of a run, before which no stream was silent.
    begun, begins = machine.begins[1]
    assert begins == {begun}


@pytest.mark.parametrize(
    ("every_s", "step_s"), [(1.0, HOUR_S), (1.0, -0.5), (0.0, -HOUR_S)], ids=["forward", "a little", "at once"]
)
def test_no_query_is_started_again_that_goes_on_by_itself(
    every_s: float, step_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path, every_s, {SET_S: step_s})
    pauses = machine.run(monkeypatch)
    assert max(pauses) <= every_s + 1 + 2 * POLL_S and machine.started == 1


def test_a_job_that_is_to_stop_is_not_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path, 5.0, {SET_S: -HOUR_S}, stops_s=SET_S)
    machine.run(monkeypatch)
    assert machine.started == 1 and machine.steady_s < SET_S + 1
