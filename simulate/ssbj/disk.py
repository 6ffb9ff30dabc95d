"""A relation on a simulated disk: rows in random order, read part by part, each part after a seek."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamjoin.index.segment import Segment
from streamjoin.index.view import CELL, KEY
from streamjoin.operators.costs.ssbj import StepTimes
from streamjoin.operators.meshjoin.scan import arranged

_OF_INDEX = 16  # cell and key


@dataclass(frozen=True, slots=True)
class Disk:
    """What reading takes.

    Args:
        rows: the relation's join values, int64, as they lie.
        row_bytes: of one row, at least 16.
        times: of these, seek and read are the disk's.
    """

    rows: np.ndarray
    row_bytes: int
    times: StepTimes

    def part(self, number: int, parts: int) -> Segment:
        """The rows of a part, arranged as a unit has them."""
        first, past = number * self.rows.size // parts, (number + 1) * self.rows.size // parts
        cells = self.rows[first:past]
        rest = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(self.row_bytes - _OF_INDEX), cells.size, [None, pa.py_buffer(bytes(cells.size * self.row_bytes))]
        ).slice(0, cells.size)
        values = [pa.array(cells), pa.array(np.zeros(cells.size, np.int64)), rest]
        return arranged(pa.RecordBatch.from_arrays(values, [CELL, KEY, "rest"]))


def zipf_shares(domain: int, exponent: float) -> np.ndarray:
    """How often each value comes, float64 of shape (domain,), the most frequent one first."""
    weights = np.arange(1, domain + 1, dtype=np.float64) ** -exponent
    return np.asarray(weights / weights.sum())


def with_repetition(rows: int, domain: int, seed: int) -> np.ndarray:
    """A relation whose values are drawn at random, so some have many rows and others none (section 4.1)."""
    return np.random.default_rng(seed).integers(0, domain, rows)
