"""The demo as people start it: its verdict, and that nothing is left however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from demo.feed import Feeder, FolderTarget
from streamjoin.errors import InputError, RunError
from streamjoin.spark.java import find_java
from tests import duck
from tests.servers.process import comes_true

ROOT = Path(__file__).parents[2]
CHECK_S_MAX = 800.0
START_S_MAX = 300.0
END_S_MAX = 180.0


@pytest.fixture
def java() -> None:
    try:
        find_java()
    except InputError as reason:
        pytest.skip(str(reason))


@contextmanager
def demo(folder: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A demo that works in `folder` and writes to `log` there."""
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "demo", "--files", *options], cwd=folder, stdin=subprocess.DEVNULL,
            stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
        )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def left(folder: Path) -> list[psutil.Process]:
    """What runs for a demo in `folder`."""
    found = []
    for process in psutil.process_iter():
        try:
            lines = [process.environ().get("STREAMJOIN_DATA", ""), process.cwd()]
            if any(line.startswith(str(folder)) for line in lines) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.mark.soak  # `make demo CHECK=1` is a step of its own before a change lands
@pytest.mark.spark
@pytest.mark.services
@pytest.mark.slow
@pytest.mark.usefixtures("java")
@pytest.mark.timeout(1000)
def test_it_finds_that_the_result_is_exact_and_leaves_nothing(tmp_path: Path) -> None:
    with demo(tmp_path, "--check", "--rate", "5000") as process:
        status = process.wait(CHECK_S_MAX)
    output = (tmp_path / "log").read_text()
    assert status == 0, output
    assert "checked  exact" in output and "rows followed" in output
    assert not left(tmp_path)


@pytest.mark.soak
@pytest.mark.services
@pytest.mark.slow
@pytest.mark.usefixtures("java")
@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_ends_a_start_and_a_second_one_ends_it_at_once(tmp_path: Path, times: int) -> None:
    log = tmp_path / "log"
    with demo(tmp_path) as process:
        assert comes_true(lambda: _is_up(tmp_path), START_S_MAX)
        begun_s = time.monotonic()
        for _ in range(times):
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        assert process.wait(END_S_MAX) == 130, log.read_text()
        assert times == 1 or time.monotonic() - begun_s < 30
        assert comes_true(lambda: not left(tmp_path), 60), left(tmp_path)
    assert "Traceback" not in log.read_text()


def _is_up(folder: Path) -> bool:
    path = folder / "demo-data" / "platform.log"
    return path.exists() and "streamjoin is up" in path.read_text()


def test_rows_are_fed_with_the_time_of_the_clock_and_kept(tmp_path: Path) -> None:
    feeder = Feeder(FolderTarget(tmp_path / "out"), {"bid": "nexmark.bid"}, {"bid": 46 / 50}, 1000, tmp_path / "fed")
    begun_s = time.time()
    with feeder:
        feeder.start()
        assert comes_true(lambda: any((tmp_path / "out" / "bid").glob("*.parquet")), 60)
        fed = feeder.stop()
    query = f"SELECT count(*), epoch(min(ts)), epoch(max(ts)) FROM '{tmp_path}/out/bid/*.parquet'"
    ((count, first, last),) = duck.rows(query)
    assert fed == {"bid": count} and count > 0
    assert duck.rows(f"SELECT count(*) FROM '{tmp_path}/fed/bid/*.parquet'") == [(count,)]
    assert begun_s - 1 < first <= last <= time.time()


def test_a_failure_to_feed_is_told(tmp_path: Path) -> None:
    (tmp_path / "fed").write_text("no folder")
    feeder = Feeder(FolderTarget(tmp_path / "out"), {"bid": "nexmark.bid"}, {"bid": 46 / 50}, 1000, tmp_path / "fed")
    feeder.start()
    assert comes_true(lambda: feeder.failure is not None, 10)
    with pytest.raises(RunError, match="could not be fed"):
        feeder.stop()
