"""A driver as a process: it works until it is killed, fenced off, or at the end of its streams."""

from __future__ import annotations

import faulthandler
import importlib
import os
import signal
import sys
from pathlib import Path

from streamjoin import failpoints
from streamjoin.results.ledger import FencedError
from streamjoin.results.stores.spec import StoreSpec

from .job import CASES, CommitLog, Driver

FENCED = 75
"""The exit status of a driver that found another one in its place."""


def run(spec: StoreSpec, job: str, case: str, seed: int, folder: Path, log: Path, points: str) -> None:
    """The process's work.

    Args:
        log: takes what it says.
        points: see `streamjoin.failpoints`.
    """
    with log.open("a") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    faulthandler.register(signal.SIGUSR1)  # it says where it hangs
    os.environ["STREAMJOIN_FAILPOINTS"] = points
    os.environ["STREAMJOIN_DRIVER_PID"] = str(os.getpid())
    importlib.reload(failpoints)  # it reads the environment once
    driver = Driver(spec, job, CASES[case], seed, CommitLog(folder))
    try:
        driver.begin()
        while driver.step():
            pass
    except FencedError as error:
        print(error, flush=True)
        sys.exit(FENCED)
