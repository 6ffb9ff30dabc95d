"""Many conditions: `python -m tests.conformance.typed.soak --conditions 100000 --seed 0`.

Exit status 1 if one differs from oracle 1, or DuckDB from oracle 1; the smallest case of each difference is printed as
a script. With `--spark 500` so many of them run on Spark instead.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace

import duckdb

from .case import difference
from .check import check_in_duckdb
from .generator import generate
from .memory import limited
from .shrinking import report

PART = 500
SHOWN_MAX = 20
PROCESSES_MAX = 8


def part(seeds: range) -> tuple[int, list[str]]:
    """(cases compared with DuckDB too, what differs) of these seeds."""
    found = []
    with limited():
        for seed in seeds:
            case = generate(seed)
            if (differs := difference(case)) is not None:
                found.append(report(case, differs))
        compared = 0
        try:
            compared = check_in_duckdb(map(generate, seeds))
        except (AssertionError, duckdb.Error) as wrong:
            found.append(f"the oracles differ at one of the seeds from {seeds.start} to {seeds.stop - 1}: {wrong}")
    return compared, found


def parts(first: int, conditions: int) -> Iterator[range]:
    """All seeds, in parts."""
    for start in range(first, first + conditions, PART):
        yield range(start, min(start + PART, first + conditions))


def soak(first: int, conditions: int, processes: int) -> int:
    """Run them; how many differ."""
    began_s, done, compared, differ = time.monotonic(), 0, 0, 0
    # Numba's threads and locks do not survive a fork.
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        running = {pool.submit(part, seeds): seeds for seeds in parts(first, conditions)}
        for future in as_completed(running):
            seeds = running[future]
            try:
                more, found = future.result()
            except BrokenProcessPool:
                print(f"a process died at one of the seeds from {seeds.start} to {seeds.stop - 1}, or beside it")
                return differ + 1
            for text in found[: max(SHOWN_MAX - differ, 0)]:
                print(f"{text}\n", flush=True)
            done, compared, differ = done + len(seeds), compared + more, differ + len(found)
            seconds = time.monotonic() - began_s
            print(
                f"{done:,} of {conditions:,} conditions, {compared:,} in DuckDB too, {differ} differ, {seconds:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    return differ


def soak_on_spark(first: int, conditions: int) -> int:
    """Run them on Spark, one after the other; how many differ."""
    from .on_spark import differences

    began_s, kinds = time.monotonic(), Counter[str]()
    for done, text in enumerate(
        differences(replace(generate(seed), items=()) for seed in range(first, first + conditions)), 1
    ):
        if text is not None:
            kinds["differ"] += 1
            print(f"{text}\n", flush=True)
        if done % 20 == 0 or done == conditions:
            seconds = time.monotonic() - began_s
            print(
                f"{done:,} conditions on Spark, {kinds['differ']} differ, {seconds:.0f} s", file=sys.stderr, flush=True
            )
    return kinds["differ"]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.typed.soak")
    parser.add_argument("--conditions", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0, help="the first one; each condition has its own")
    parser.add_argument("--processes", type=int, choices=range(1, PROCESSES_MAX + 1), default=2)
    parser.add_argument("--spark", type=int, metavar="CONDITIONS", help="run so many on Spark, and none without")
    asked = parser.parse_args()
    if asked.spark is not None:
        differ = soak_on_spark(asked.seed, asked.spark)
    else:
        differ = soak(asked.seed, asked.conditions, asked.processes)
    print(f"{differ} conditions differ" if differ else "no condition differs")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
