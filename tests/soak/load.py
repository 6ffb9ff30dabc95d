"""Changing load: rows of two streams that arrive as files at a rate which changes every minute, and what they join to.

Event time is when rows are written. A folder that has been written to is gone on with.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamjoin.durable import write_durably

STREAMS = ("r", "s")
RATES = (250, 2_000, 4_000, 500, 40)
"""Rows a second of each stream; each for a minute, then again from the first. One round of them is what is compared."""
MINUTE_S = 60.0
ROUND_S = MINUTE_S * len(RATES)
FILE_S = 0.5
"""Each stream gets a file this often."""
KEYS = 20_000
WITHIN_S = 5
SCHEMA = {"id": "int64", "ts": "timestamp", "k": "int64"}
QUERY = f"SELECT ONLINE r.id AS r_id, s.id AS s_id FROM r JOIN s ON r.k = s.k WITHIN {WITHIN_S} SECONDS"


def rate(passed_s: float) -> int:
    """Rows a second of each stream, so many seconds after the first."""
    return RATES[int(passed_s / MINUTE_S) % len(RATES)]


class Load:
    """Writes files into a folder of each stream.

    Args:
        rows: of each stream that there are by now.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.rng = np.random.default_rng(seed)
        for stream in STREAMS:
            (folder / stream).mkdir(parents=True, exist_ok=True)
        self.known = folder / "written.json"
        said = json.loads(self.known.read_text()) if self.known.exists() else {"rows": 0}
        # A file that was written last, and not counted any more, may have been read: no other takes its name.
        self.files = 1 + max((int(file.stem) for file in folder.glob("?/[0-9]*.parquet")), default=-1)
        self.rows = said["rows"]

    def write(self, rows: int) -> None:
        """One file more of each stream, with as many rows."""
        for stream in STREAMS:
            self._write(stream, rows)
        self.files, self.rows = self.files + 1, self.rows + rows
        write_durably(self.known, json.dumps({"rows": self.rows}).encode())

    def _write(self, stream: str, rows: int) -> None:
        now_us = int(time.time() * 1e6)
        times = np.sort(now_us - self.rng.integers(0, int(FILE_S * 1e6), rows))
        table = pa.table(
            {
                "id": pa.array(np.arange(self.rows, self.rows + rows)),
                "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
                "k": pa.array(self.rng.integers(0, KEYS, rows)),
            }
        )
        hidden = self.folder / stream / f".{self.files:07d}.parquet"
        pq.write_table(table, hidden)
        hidden.rename(self.folder / stream / f"{self.files:07d}.parquet")  # it appears whole


def check(folder: Path, results: pa.RecordBatchReader) -> int:
    """Compare all results with DuckDB's join of all files; how many there are.

    Args:
        results: columns `r_id` and `s_id`.
    Raises:
        AssertionError: rows are missing or too many.
    """
    # Rows that join lie in the same span of time or in adjacent ones. Without spans, DuckDB would pair all rows of a
    # key, which takes four times as long when a job has run for twice as long.
    span = f"epoch_us(ts) // {WITHIN_S * 1_000_000}"
    joined = f"""
        SELECT r.id AS r_id, s.id AS s_id FROM (SELECT id, ts, k, {span} AS span FROM '{folder}/r/*.parquet') r
        JOIN (SELECT id, ts, k, unnest([{span} - 1, {span}, {span} + 1]) AS span FROM '{folder}/s/*.parquet') s
        ON r.k = s.k AND r.span = s.span
        AND r.ts BETWEEN s.ts - INTERVAL {WITHIN_S} SECOND AND s.ts + INTERVAL {WITHIN_S} SECOND"""
    # By counts and sums of hashes, which need no memory for the rows; each pair of ids is there once in the join.
    looked_at = "SELECT count(*), sum(hash(r_id, s_id)::HUGEINT), sum(r_id::HUGEINT), sum(s_id::HUGEINT)"
    with duckdb.connect() as database:
        database.register("results", results)
        [want] = database.execute(f"{looked_at} FROM ({joined})").fetchall()
        [got] = database.execute(f"{looked_at} FROM results").fetchall()
    assert want == got, f"(rows, sums) are {got} where DuckDB's join has {want}"
    return int(want[0])
