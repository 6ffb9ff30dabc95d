"""Machines that are lost, one after the other: `python -m tests.soak.lost --kills 20 --seed 0`.

Three workers and a driver share an object store and no disk, see `tests/spark/nothing_shared.py`. Time and again one of
them is killed: an executor, a worker with all it had, or the driver. In the end HBase has what DuckDB joins.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from tests.servers.apart import refusal
from tests.servers.hbase import HbaseServer
from tests.servers.process import comes_true
from tests.servers.s3 import ENVIRONMENT, S3
from tests.servers.spark import SparkCluster
from tests.spark.command import RUN_S_MAX
from tests.spark.nothing_shared import OPERATOR, SEEDS, WORKERS, Run, generated

KINDS = ("executor", "worker", "driver")
OPERATORS = (
    OPERATOR,
    "{name: biclique, routing: hash, adaptive: true, capacity: 0.01, min_units: 4, max_units: 8, check_every: 0s}",
    "{name: splitjoin, cores: 3, ordering: total}",
)
"""Of the jobs, in turn."""
BATCHES = 100
ROWS = 100
"""Few rows a batch and many batches: what dies is to die often in a job, which then has not much left to do."""
PAUSE_S_MAX = 3.0
"""The longest time between a commit and the next death: several batches, or some of a start."""


class Losing:
    """One job whose machines are lost.

    Args:
        rng: says what is lost, and when.
    """

    def __init__(self, run: Run, rng: np.random.Generator) -> None:
        self.run = run
        self.rng = rng
        self.lost = Counter[str]()
        self.driver = run.driver()
        self.generation = 0

    def until(self, kills: int) -> Counter[str]:
        """Kill so many machines, or fewer if the job is done before, and check its rows in the end; what was killed.

        Raises:
            AssertionError: a row is missing or there twice, or the job did not go on.
        """
        try:
            while self.lost.total() < kills and self._goes_on():
                time.sleep(self.rng.uniform(0, PAUSE_S_MAX))
                if not self.driver.is_running():
                    break
                self._lose(str(self.rng.choice(KINDS)))
            assert self.driver.exit_status() == 0, self.driver.output()[-4000:]
        finally:
            self.driver.kill()
        self.run.check_exact(self.generation + 1)
        return self.lost

    def _goes_on(self) -> bool:
        """Wait for a commit, so that each death finds another state; False if there are no more to come."""
        before = self.run.seen

        def went_on() -> bool:
            return not self.driver.is_running() or self.run.committed(self.driver) > before

        assert comes_true(went_on, RUN_S_MAX), self.driver.with_log_tail("the job does not go on")
        if self.driver.is_running():
            self.run.seen = self.run.committed(self.driver)
        return self.driver.is_running()

    def _lose(self, kind: str) -> None:
        cluster = self.run.cluster
        if kind == "driver":
            assert self.driver.crash() == -signal.SIGKILL
            self._inherit()
            self.driver = self.run.driver()
        elif kind == "worker":
            there = [worker for worker in cluster.workers if worker.is_running()]
            cluster.lose(there[self.rng.integers(len(there))])
        elif executors := cluster.executors():
            executors[self.rng.integers(len(executors))].kill()
        else:
            return  # those that were killed last have not come back
        self.lost[kind] += 1

    def _inherit(self) -> None:
        """See which generation a dead driver left the state to; one that died in its start may not have taken it."""
        before, self.generation = self.generation, self.run.generation()
        assert before <= self.generation <= before + 1, f"generation {self.generation} follows {before}"


def soak(kills: int, seed: int, root: Path) -> Counter[str]:
    """Run jobs one after the other on one cluster until so many machines were killed; how many of each kind."""
    begun_s, lost = time.monotonic(), Counter[str]()
    (own := root / "own").mkdir()
    with S3() as s3, HbaseServer() as hbase, SparkCluster(WORKERS, own, ENVIRONMENT) as cluster:
        number = 0
        while (left := kills - lost.total()) > 0:
            (folder := root / f"job-{number}").mkdir()
            streams = {name: generated(name, BATCHES * ROWS) for name in SEEDS}
            operator = OPERATORS[(seed + number) % len(OPERATORS)]
            run = Run(folder, cluster, s3, hbase, streams, batches=BATCHES, rows=ROWS, operator=operator)
            lost += Losing(run, np.random.default_rng((seed, number))).until(left)
            spent_s = time.monotonic() - begun_s
            so_far = f"{lost.total():,} of {kills:,} kills, {spent_s:.0f} s"
            print(f"{so_far}; the last job was {operator}", file=sys.stderr, flush=True)
            number += 1
    return lost


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.lost")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    if (reason := refusal()) is not None:
        print(reason, file=sys.stderr)
        return 1
    os.environ.update(ENVIRONMENT)
    with tempfile.TemporaryDirectory(prefix="streamjoin-lost-") as name:
        lost = soak(asked.kills, asked.seed, Path(name))
    for kind, times in sorted(lost.items()):
        print(f"{kind:<24}{times:>8,}")
    print(f"{lost.total():,} machines lost, every row there once")
    return 0


if __name__ == "__main__":
    sys.exit(main())
