"""Two periods that rows and files end, in any store: at each close all their results, and never another one later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from streamjoin.results.block import BlockRef
from streamjoin.results.reader import Reader
from streamjoin.results.splitting import SPLIT_UNIT
from streamjoin.spec.joinfile import load
from streamjoin.spec.outputs import store_job, store_spec

from .jobs import crash, run_to_the_end, write_file

SECOND_US = 1_000_000
SECONDS = 60
BATCHES = 4
KEYS = 4
WITHIN_S = 5
DELAY_S = 2
ENDING_S = (20, 40)
"""Of the orders, which end periods; the payments' first two files end earlier, and a third order there is not."""
ENDS_US = tuple(second * SECOND_US + 1 for second in ENDING_S)

Row = tuple[int, int]


def write_streams(folder: Path) -> None:
    """An order and a payment each second, in a file of each stream a batch; within a file the latest come first."""
    a_file = SECONDS // BATCHES
    for number in range(BATCHES):
        seconds = list(range(number * a_file, (number + 1) * a_file))
        late = [second for start in range(0, a_file, DELAY_S) for second in reversed(seconds[start : start + DELAY_S])]
        for stream, shift_us in (("orders", 0), ("payments", SECOND_US // 2)):
            columns = [
                pa.array([second * SECOND_US + shift_us for second in late]), pa.array(late),
                pa.array([second % KEYS for second in late]),
                pa.array(["end" if second in ENDING_S else "row" for second in late]),
            ]  # fmt: skip
            write_file(folder / stream, number, pa.RecordBatch.from_arrays(columns, ["ts", "id", "k", "kind"]))


def join_text(results: str) -> str:
    """The join file, for results in a store."""
    common = f"time: ts, delay: {DELAY_S}s"
    return f"""\
streams:
  orders:   {{source: parquet, path: orders, {common}, punctuate: {{column: kind, value: end}}}}
  payments: {{source: parquet, path: payments, {common}, punctuate: {{per: file}}}}
query: >-
  SELECT ONLINE orders.id AS o, payments.id AS p FROM orders, payments
  WHERE orders.k = payments.k WITHIN {WITHIN_S} SECONDS
operator: {{name: biclique, routing: hash, r_units: 2, s_units: 1}}
results: {{{results}, retry: 2min, snapshot: {{punctuation: true}}}}
run: {{checkpoint: checkpoint, files_per_batch: 1}}
"""


def wanted(period: int) -> Counter[Row]:
    """The results of one of the periods: those that are later than the end before it."""
    ends_us = (0, *ENDS_US)
    found: Counter[Row] = Counter()
    for o in range(SECONDS):
        for p in range(SECONDS):
            apart_us = (p - o) * SECOND_US + SECOND_US // 2
            later_us = max(o * SECOND_US, p * SECOND_US + SECOND_US // 2)
            if o % KEYS == p % KEYS and abs(apart_us) <= WITHIN_S * SECOND_US:
                found[o, p] += ends_us[period] <= later_us < ends_us[period + 1]
    return +found


class Looked:
    """What readers see of the job of a join file, each time from a connection of their own."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._before: list[tuple[dict[str, Any], Counter[Row]]] = []

    def check(self, periods: int) -> None:
        """So many are closed, each with all its results and nothing else; those that were stay as they were."""
        join = load(self.file)
        store = store_spec(join).open()
        try:
            reader = Reader(store, store_job(join))
            ended_us = reader.refresh().state.ended_us
            snapshots = reader.snapshots()
            found = [(one.summary(), _rows(reader, one.blocks)) for one in snapshots]
        finally:
            store.close()
        assert ended_us == ENDS_US[periods - 1]
        assert [rows for _, rows in found] == [wanted(period) for period in range(periods)]
        assert found[: len(self._before)] == self._before, "a period that was closed has changed"
        self._before = found
        # The batch that closes a period has results on both sides of its end, so the store's blocks were split.
        assert all(any(block.key.unit == SPLIT_UNIT for block in one.blocks) for one in snapshots)


def _rows(reader: Reader, blocks: Sequence[BlockRef]) -> Counter[Row]:
    batches = [batch for _, batch in reader.rows(blocks)]
    return Counter((row["o"], row["p"]) for batch in batches for row in batch.to_pylist())


def check_two_periods(session: SparkSession, folder: Path, results: str) -> None:
    """A job whose driver dies as it closes each period, so that both batches that close one are done again.

    Args:
        results: where they go, such as "store: sqlite, path: results.db".
    """
    write_streams(folder)
    file = folder / "join.yaml"
    file.write_text(join_text(results))
    looked = Looked(file)
    crash(session, file, "ledger.after_head:2")  # the second batch has closed the first period
    looked.check(1)
    crash(session, file, "ledger.before_head:1")  # the third has written the second period, and nobody sees it
    looked.check(1)
    run_to_the_end(session, file, 1)
    looked.check(2)
