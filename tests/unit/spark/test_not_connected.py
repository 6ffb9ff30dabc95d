"""A query whose source did not connect to Spark in time is started again, and nothing else is."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from streamjoin.errors import RunError
from streamjoin.operators.biclique import Biclique
from streamjoin.spark.driver import STARTS_MAX, Driver
from streamjoin.spec.job import Job
from tests.conformance.check import plan
from tests.conformance.histories import history

LATE = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Python worker failed to connect back.
=== Streaming Query ===
Caused by: java.net.SocketTimeoutException: Timed out while waiting for the Python worker to connect back"""


class Starts:
    """A driver whose queries end with these failures, one after the other, and then as they should."""

    def __init__(self, folder: Path, *failures: str) -> None:
        self.left = list(failures)
        self.started = 0
        self.stop = threading.Event()
        job = Job(plan(history(1, r=1, s=1), "equality", "20 us"), (Biclique(1, 1),), 1, folder)
        self.driver = Driver(cast(Any, None), job, [])
        self.driver._start = self.start  # type: ignore[method-assign]

    def start(self, origin: str, **trigger: bool) -> Any:
        self.started += 1

        def wait(poll_s: float) -> bool:
            if self.left:
                raise RuntimeError(self.left.pop(0))
            return True

        return SimpleNamespace(awaitTermination=wait, isActive=False, recentProgress=[])

    def join(self) -> bool:
        return self.driver._join(cast(Any, SimpleNamespace(id="job")), self.stop)


def test_it_is_started_again_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    starts = Starts(tmp_path, LATE, LATE)
    assert starts.join()
    assert starts.started == 3
    assert starts.driver.progress.reconnects == 2
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "started again (2 so far)" in caplog.text


def test_batches_in_between_begin_the_count_anew(tmp_path: Path) -> None:
    starts = Starts(tmp_path, *[LATE] * (2 * STARTS_MAX))
    real = starts.start

    def start(origin: str, **trigger: bool) -> Any:
        starts.driver.progress.batches += starts.started % 2  # one of them is committed in every second try
        return real(origin, **trigger)

    starts.driver._start = start  # type: ignore[method-assign]
    assert starts.join()
    assert starts.started == 2 * STARTS_MAX + 1
    assert starts.driver.progress.reconnects == 2 * STARTS_MAX


def test_it_is_not_started_for_ever(tmp_path: Path) -> None:
    starts = Starts(tmp_path, *[LATE] * (STARTS_MAX + 1))
    with pytest.raises(RunError, match="to connect back"):
        starts.join()
    assert starts.started == STARTS_MAX


def test_another_failure_is_final(tmp_path: Path) -> None:
    starts = Starts(tmp_path, "the disk is full")
    with pytest.raises(RunError, match="the disk is full"):
        starts.join()
    assert starts.started == 1


def test_a_failure_is_told_as_it_is_and_not_as_the_one_that_a_start_has_cured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = Starts(tmp_path, LATE, "x.parquet was to be read, but it is gone")
    real = starts.start

    def start(origin: str, **trigger: bool) -> Any:
        if starts.started == 0:  # a task's worker does not connect, and the failure passes through the commit
            with monkeypatch.context() as patched:
                patched.setattr(starts.driver, "_plan_lasts", lambda batch: fail(LATE))
                with pytest.raises(RunError):
                    starts.driver._commit(cast(Any, None), 0)
        return real(origin, **trigger)

    def fail(text: str) -> None:
        raise RunError(text)

    monkeypatch.setattr(starts.driver, "_start", start)
    with pytest.raises(RunError, match="it is gone"):
        starts.join()
    assert (starts.started, starts.driver.progress.reconnects) == (2, 1)


def test_one_that_is_to_stop_is_not_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = Starts(tmp_path, LATE)

    def fail(*_: object) -> bool:
        starts.stop.set()  # meanwhile
        raise RunError(LATE)

    monkeypatch.setattr(starts.driver, "_wait", fail)
    with pytest.raises(RunError):
        starts.join()
    assert starts.started == 1
