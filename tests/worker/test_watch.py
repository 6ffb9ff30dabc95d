"""The next look comes when there is something to see."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from backend.catalog.database import Catalog
from worker import processes
from worker.watch import Watch

from .jobs import add_job, change, want

LONG_S = 60.0
SOON_S = 5.0
AFTER_S = 0.3
NOT_BEFORE_S = AFTER_S - 0.05
"""Timers and select may be a moment early."""


@contextmanager
def later(act: Callable[[], object]) -> Iterator[None]:
    timer = threading.Timer(AFTER_S, act)
    timer.start()
    yield
    timer.join()


def waited_s(watch: Watch, at_most_s: float = LONG_S) -> float:
    begun_s = time.monotonic()
    watch.wait(threading.Event(), at_most_s, time.monotonic)
    return time.monotonic() - begun_s


@pytest.fixture
def watch(catalog: Catalog) -> Iterator[Watch]:
    made = Watch(catalog, every_s=0.05)
    made.mark()
    yield made
    made.close()


def test_a_driver_that_dies_is_seen_at_once(catalog: Catalog) -> None:
    watch = Watch(catalog, every_s=LONG_S)  # the catalog is not asked
    with subprocess.Popen(["sleep", "600"]) as process:
        since = processes.started(process.pid)
        assert since is not None
        watch.on([(process.pid, since)])
        with later(process.kill):
            assert NOT_BEFORE_S < waited_s(watch) < SOON_S
        assert waited_s(watch) < SOON_S  # until somebody looked
        watch.on([])
        assert waited_s(watch, 0.2) >= 0.2
    watch.close()


def test_a_process_of_the_same_number_is_not_watched(catalog: Catalog) -> None:
    watch = Watch(catalog, every_s=LONG_S)
    with subprocess.Popen(["sleep", "600"]) as process:
        watch.on([(process.pid, "another"), (2**22 + 1, "none")])
        process.kill()
        assert waited_s(watch, 0.5) >= 0.5


def test_a_wish_and_what_was_seen_end_the_wait(catalog: Catalog, watch: Watch) -> None:
    job = add_job(catalog)
    assert waited_s(watch) < SOON_S  # it is new
    for act in (
        lambda: want(catalog, job, "running"),
        lambda: change(catalog, job, version=2),
        lambda: change(catalog, job, restart_version=2),
        lambda: change(catalog, job, observed="starting", observed_since_us=5),
    ):
        watch.mark()
        with later(act):
            assert NOT_BEFORE_S < waited_s(watch) < SOON_S
    watch.mark()
    assert waited_s(watch, AFTER_S) > NOT_BEFORE_S


def test_it_waits_no_longer_than_it_is_to(watch: Watch) -> None:
    stop = threading.Event()
    with later(stop.set):
        begun_s = time.monotonic()
        watch.wait(stop, LONG_S, time.monotonic)
        assert time.monotonic() - begun_s < SOON_S
    assert 0.2 <= waited_s(watch, 0.2) < SOON_S
