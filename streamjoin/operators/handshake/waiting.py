"""Results that wait until none that comes before them can still be found.

Where tuples meet batches after they came, results are found out of order. Those of a unit wait in its state as runs:
files sorted by the sequence number of the newer tuple, so that the results that may leave are the first rows of each.

Cost: a result is written once, and about log2(runs) times more when short runs are merged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from streamjoin.engine.arranging import ROWS_A_BATCH
from streamjoin.index.chain import MERGED_BYTES_MAX, MERGED_ROWS_MAX, Open, Save
from streamjoin.index.kernels import radix_order
from streamjoin.index.segment import SegmentInfo
from streamjoin.plan.join import RESULT_TIME
from streamjoin.plan.ordering import NEWER


@dataclass(frozen=True, slots=True)
class Run:
    """Results of one query in one file, sorted by the number of their newer tuple.

    Args:
        query: its number in the job.
        left: how many of the first rows have left already.
        info: the file; `number_min` and event times are of the newer tuples, times only where results are kept by time.
    """

    query: int
    left: int
    info: SegmentInfo

    @property
    def rows(self) -> int:
        """Results that wait."""
        return self.info.rows - self.left

    @property
    def bytes(self) -> int:
        """Their share of the file."""
        return self.info.bytes * self.rows // self.info.rows


class Waiting:
    """One unit's waiting results during a batch.

    First take what leaves of the `before` ones, then hand over what the batch finds, then `finish`.

    Args:
        before: the runs as the batch finds them.
        settled: results whose newer tuple has a lower number can leave.
    """

    def __init__(self, before: Sequence[Run], settled: int, open_run: Open) -> None:
        self.settled = settled
        self.dropped: list[str] = []
        self._before = before
        self._open = open_run
        self._kept: dict[int, list[Run]] = {}
        self._found: dict[int, list[pa.RecordBatch]] = {}

    def leaving(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """(query, results) that have waited and leave in this batch, in parts of bounded size."""
        for run in self._before:
            upto = run.left
            if run.info.number_min < self.settled:
                rows = self._open(run.info)
                upto = int(np.searchsorted(rows.column(NEWER).to_numpy(), self.settled))
                for start in range(run.left, upto, ROWS_A_BATCH):
                    yield run.query, rows.slice(start, min(upto - start, ROWS_A_BATCH))
            if upto == run.info.rows:
                self.dropped.append(run.info.file)
            else:
                self._kept.setdefault(run.query, []).append(replace(run, left=upto))

    def take(self, query: int, results: pa.RecordBatch) -> pa.RecordBatch:
        """Results that were found just now; gives those that leave at once, and keeps the others."""
        waits = results.column(NEWER).to_numpy() >= self.settled
        if not waits.any():
            return results
        self._found.setdefault(query, []).append(results.filter(pa.array(waits)))
        return results.filter(pa.array(~waits))

    def finish(self, save: Save) -> tuple[Run, ...]:
        """The runs after the batch, durable once the state is; `dropped` has the files that none of them names."""
        runs: list[Run] = []
        for query in sorted(self._kept.keys() | self._found.keys()):
            kept = self._kept.get(query, [])
            *full, parts = _bounded(self._found.get(query, []))
            rows, size = _size(parts)
            # A run joins what comes after it once that is half as long, so there are about log2(rows) of them.
            while parts and kept and 2 * rows >= kept[-1].rows and _fits(rows + kept[-1].rows, size + kept[-1].bytes):
                run = kept.pop()
                parts.insert(0, self._open(run.info).slice(run.left))
                self.dropped.append(run.info.file)
                rows, size = rows + run.rows, size + run.bytes
            runs += kept + [_saved(query, pa.concat_batches(found), save) for found in (*full, parts) if found]
        return tuple(runs)


def _size(parts: Sequence[pa.RecordBatch]) -> tuple[int, int]:
    return sum(part.num_rows for part in parts), sum(part.nbytes for part in parts)


def _fits(rows: int, size: int) -> bool:
    return rows <= MERGED_ROWS_MAX and size <= MERGED_BYTES_MAX


def _bounded(parts: Sequence[pa.RecordBatch]) -> list[list[pa.RecordBatch]]:
    """`parts` in groups that are no larger than a run may be, one at least; the last one may take more."""
    groups: list[list[pa.RecordBatch]] = [[]]
    rows = size = 0
    for part in parts:
        rows, size = rows + part.num_rows, size + part.nbytes
        if groups[-1] and not _fits(rows, size):
            groups.append([])
            rows, size = part.num_rows, part.nbytes
        groups[-1].append(part)
    return groups


def _saved(query: int, rows: pa.RecordBatch, save: Save) -> Run:
    newer = rows.column(NEWER).to_numpy()
    order = radix_order(newer, np.arange(newer.size, dtype=np.int64))
    rows = rows.take(pa.array(order))
    times = rows.column(RESULT_TIME).to_numpy() if RESULT_TIME in rows.schema.names else np.zeros(1, np.int64)
    earliest_us, latest_us = int(times.min()), int(times.max())
    info = SegmentInfo("", rows.num_rows, rows.nbytes, earliest_us, latest_us, 0, number_min=int(newer[order[0]]))
    return Run(query, 0, save(rows, info))
