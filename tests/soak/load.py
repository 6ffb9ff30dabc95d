"""A job under changing load: `python -m tests.soak.load --minutes 20 --folder build/soak/load`.

Rows of two streams arrive as files at a rate that changes every minute; its most is four hundred times its least. Every
few minutes the driver is killed and started again. Run with the same folder once more, it goes on with the same job, so
that several parts make a job of hours. At the end of each part the results are compared with DuckDB's join of all files
so far, and memory and state must not have grown from one round of rates to another.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from streamjoin.durable import write_durably
from tests.spark.command import RUN_S_MAX, Command

RATES = (500, 4_000, 16_000, 1_000, 40)
"""Rows a second of each stream; each for a minute, then again from the first. One round of them is what is compared."""
MINUTE_S = 60.0
ROUND_S = MINUTE_S * len(RATES)
FILE_S = 0.5
"""Each stream gets a file this often."""
KEYS = 2_000
WITHIN_S = 5
GROWN_MAX = 1.25
"""How much more a round may take than the round before it."""
SPARE_BYTES = 64 << 20
"""What memory may differ by whatever it is: heaps are not collected at once."""
QUERY = f"SELECT ONLINE r.id AS r_id, s.id AS s_id FROM r JOIN s ON r.k = s.k WITHIN {WITHIN_S} SECONDS"
COLUMNS = "{id: int64, ts: timestamp, k: int64}"
JOIN = f"""\
streams:
  r: {{source: parquet, path: r, time: ts, schema: {COLUMNS}}}
  s: {{source: parquet, path: s, time: ts, schema: {COLUMNS}}}
query: {QUERY}
operator: {{name: biclique, r_units: 2, s_units: 2}}
results: {{parquet: results}}
run: {{checkpoint: checkpoint, slots: 2}}
"""


@dataclass
class Seen:
    """What a part has seen: the most of each round.

    Args:
        memory_bytes: of the driver and all that it started, without the pages that they share.
        state_bytes: of the files of the state.
    """

    memory_bytes: list[int] = field(default_factory=list)
    state_bytes: list[int] = field(default_factory=list)
    kills: int = 0
    rows: int = 0
    results: int = 0

    def take(self, round_: int, memory: int, state: int) -> None:
        """A look in a round."""
        for most, found in ((self.memory_bytes, memory), (self.state_bytes, state)):
            most.extend([0] * (round_ + 1 - len(most)))
            most[round_] = max(most[round_], found)

    def complaint(self, before: list[int]) -> str | None:
        """What grew from one whole round to another; `before` has the most memory and state of earlier parts."""
        for what, most, earlier in (
            ("memory", self.memory_bytes, before[0]), ("state", self.state_bytes, before[1])
        ):  # fmt: skip
            first = earlier or most[0]
            if (last := most[-1]) > first * GROWN_MAX + SPARE_BYTES:
                return f"{what} grew from {first:,} bytes in the first round to {last:,} in the last"
        return None


def write_rows(folder: Path, stream: str, number: int, first: int, rows: int, rng: np.random.Generator) -> None:
    """One file of a stream: event time is now, keys are uniform; it appears whole."""
    now_us = int(time.time() * 1e6)
    table = pa.table(
        {
            "id": pa.array(np.arange(first, first + rows)),
            "ts": pa.array(np.sort(now_us - rng.integers(0, int(FILE_S * 1e6), rows)), pa.timestamp("us", tz="UTC")),
            "k": pa.array(rng.integers(0, KEYS, rows)),
        }
    )
    hidden = folder / stream / f".{number:07d}.parquet"
    pq.write_table(table, hidden)
    hidden.rename(folder / stream / f"{number:07d}.parquet")


def bytes_of(folder: Path) -> int:
    """Of all files below a folder that changes meanwhile."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(root, name)).st_size
            except FileNotFoundError:
                continue
    return total


def memory_of(pid: int) -> int:
    """Of a process and all below it, without what they share."""
    total = 0
    try:
        tree = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    for process in tree:
        try:
            total += process.memory_full_info().uss
        except psutil.Error:
            continue
    return total


def play(folder: Path, minutes: float, kill_every_s: float, seed: int) -> Seen:
    """One part."""
    rng, chance = np.random.default_rng(seed), random.Random(seed)
    file = folder / "join.yaml"
    for stream in ("r", "s"):
        (folder / stream).mkdir(parents=True, exist_ok=True)
    file.write_text(JOIN)
    written = _written(folder)
    seen, begun_s = Seen(), time.monotonic()
    command = _start(file)
    kill_s = begun_s + kill_every_s * chance.uniform(0.8, 1.2)
    try:
        while (passed_s := time.monotonic() - begun_s) < minutes * MINUTE_S:
            rows = int(RATES[int(passed_s / MINUTE_S) % len(RATES)] * FILE_S)
            for stream in ("r", "s"):
                write_rows(folder, stream, written["files"], written["rows"], rows, rng)
            written = {"files": written["files"] + 1, "rows": written["rows"] + rows}
            write_durably(folder / "written.json", json.dumps(written).encode())
            seen.rows += 2 * rows
            seen.take(int(passed_s / ROUND_S), memory_of(command.pid), bytes_of(folder / "checkpoint" / "state"))
            if time.monotonic() > kill_s:
                command.crash()
                command = _start(file)
                seen.kills += 1
                kill_s = time.monotonic() + kill_every_s * chance.uniform(0.8, 1.2)
            due_s = begun_s + (int((time.monotonic() - begun_s) / FILE_S) + 1) * FILE_S
            time.sleep(max(0.0, due_s - time.monotonic()))
    finally:
        command.crash()
    with Command(file, "--until-end", "--quiet") as last:
        assert (status := last.exit_status()) == 0, f"exit status {status}: {last.output()[-2000:]}"
    return seen


def _start(file: Path) -> Command:
    """The job, when its first batch is done."""
    offsets = file.parent / "checkpoint" / "offsets" / "commits"
    before = _last(offsets)
    command = Command(file)
    try:
        command.wait_until(lambda: _last(offsets) > before, "commits no batch", RUN_S_MAX)
    except BaseException:
        command.kill()
        raise
    return command


def _last(commits: Path) -> int:
    return max((int(path.name) for path in commits.glob("[0-9]*")), default=-1)


def _written(folder: Path) -> dict[str, int]:
    """How many files and rows each stream has got."""
    path = folder / "written.json"
    return dict(json.loads(path.read_text())) if path.exists() else {"files": 0, "rows": 0}


def check(folder: Path) -> int:
    """Compare all results so far with DuckDB's; how many there are.

    Raises:
        AssertionError: rows are missing or too many.
    """
    joined = f"""
        SELECT r.id AS r_id, s.id AS s_id FROM '{folder}/r/*.parquet' r JOIN '{folder}/s/*.parquet' s
        ON r.k = s.k AND r.ts BETWEEN s.ts - INTERVAL {WITHIN_S} SECOND AND s.ts + INTERVAL {WITHIN_S} SECOND"""
    # By counts and sums of hashes, which need no memory for the rows; each pair of ids is there once in the join.
    looked_at = "SELECT count(*), sum(hash(r_id, s_id)::HUGEINT), sum(r_id::HUGEINT), sum(s_id::HUGEINT)"
    with duckdb.connect() as database:
        [want] = database.execute(f"{looked_at} FROM ({joined})").fetchall()
        [got] = database.execute(f"{looked_at} FROM '{folder}/results/*.parquet'").fetchall()
    assert want == got, f"(rows, sums) are {got} where DuckDB's join has {want}"
    return int(want[0])


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.load")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--folder", type=Path, default=Path("build/soak/load"))
    parser.add_argument("--kill-every", type=float, default=420, metavar="SECONDS")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    folder: Path = asked.folder.absolute()
    seen = play(folder, asked.minutes, asked.kill_every, asked.seed)
    seen.results = check(folder)
    most = folder / "most.json"
    earlier: list[int] = json.loads(most.read_text()) if most.exists() else [0, 0]
    if (complaint := seen.complaint(earlier)) is not None:
        print(complaint)
        return 1
    if not most.exists():
        most.write_text(json.dumps([max(seen.memory_bytes), max(seen.state_bytes)]))
    lines: dict[str, Any] = {
        "rows": seen.rows,
        "kills": seen.kills,
        "results so far": seen.results,
        "most memory a round, MiB": [each >> 20 for each in seen.memory_bytes],
        "most state a round, KiB": [each >> 10 for each in seen.state_bytes],
    }
    for what, value in lines.items():
        print(f"{what:<28}{value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
