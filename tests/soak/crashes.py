"""Many deaths of a driver on one warm Spark: `python -m tests.soak.crashes --kills 250 --seed 0`.

Jobs come one after the other, each a join of `tests/spark/test_crashes` over a history of its own. A driver dies at
places and visits at random, goes on with another number of slots, and in the end every row is there once. It dies of a
failure at that place, which leaves the same files as a kill (`test_killed_jobs_go_on_exactly` shows it) and does not
cost a Spark.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from itertools import count, cycle
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from streamjoin.errors import RunError
from streamjoin.spark.session import create_session
from tests.conformance.histories import history
from tests.failing import failing_at
from tests.spark.jobs import run_to_the_end, write_history
from tests.spark.test_crashes import BATCHES, CASES, SLOTS, check_results, check_state, committed, write_join_file

PLACES = ("batch.before_commit", "batch.mid_commit", "batch.after_commit")
"""Places of the driver's own code: a failure in a task would be tried again by Spark and not end the job."""
KILLS_A_JOB = 6


def die(session: SparkSession, file: Path, place: str, visit: int, slots: int) -> bool:
    """Run a join until its driver dies there; False if it came to its end before."""
    with failing_at(place, visit):
        try:
            run_to_the_end(session, file, slots)
        except RunError as error:
            if str(error) != place:
                raise
            return True
    return False


def job(session: SparkSession, name: str, seed: int, kills_max: int, folder: Path) -> Counter[str]:
    """One job with its deaths, checked; where it died how often.

    Raises:
        AssertionError: a row is missing or there twice, or state was left that no manifest names.
    """
    rng = np.random.default_rng(seed)
    given = history(seed, r=10 * BATCHES, s=9 * BATCHES, time_shape="disordered", delay_us=15)
    write_history(given, folder, BATCHES)
    file = write_join_file(folder, CASES[name])
    slots, died = cycle(SLOTS), Counter[str]()
    for _ in range(kills_max):
        place, visit = str(rng.choice(PLACES)), int(rng.integers(1, 4))
        if committed(folder) + visit >= BATCHES or not die(session, file, place, visit, next(slots)):
            break
        died[place] += 1
    run_to_the_end(session, file, next(slots))
    check_results(folder, given, CASES[name])
    check_state(folder)
    return died


def soak(session: SparkSession, kills: int, seed: int, root: Path) -> Counter[str]:
    """Jobs until so many drivers have died; where they died."""
    begun_s, died = time.monotonic(), Counter[str]()
    for number, name in zip(count(seed), cycle(CASES)):
        if (left := kills - died.total()) <= 0:
            return died
        folder = root / str(number)
        folder.mkdir()
        try:
            died += job(session, name, number, min(left, KILLS_A_JOB), folder)
        except Exception as error:
            raise AssertionError(f"{name}, seed {number}: {error}") from error
        print(f"{died.total():,} of {kills:,} kills, {time.monotonic() - begun_s:.0f} s", file=sys.stderr, flush=True)
    raise AssertionError("there is always another job")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.crashes")
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first job; each has its own")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="streamjoin-soak-") as name:
        session = create_session(2, name="soak", log=Path(name) / "spark.log")
        try:
            died = soak(session, asked.kills, asked.seed, Path(name))
        finally:
            session.stop()
    for place, times in sorted(died.items()):
        print(f"{place:<24}{times:>8,}")
    print(f"{died.total():,} kills, every row there once")
    return 0


if __name__ == "__main__":
    sys.exit(main())
