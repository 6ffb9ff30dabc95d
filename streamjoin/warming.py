"""Compiled functions loaded before they are needed, by processes that others are forked from."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from streamjoin.engine import emit
from streamjoin.flow import portions
from streamjoin.index import kernels
from streamjoin.intake.records import decoder
from streamjoin.operators.aggregate import exact, grouping, means, parts


def load_join_kernels() -> None:
    """Load what joins and groups call first. Cost: a second; ten where nothing is compiled yet."""
    one = np.zeros(1, np.int64)
    kernels.mix(one)
    kernels.radix_order(one, one)
    kernels.is_sorted(one)
    kernels.hash_bytes(np.zeros(2, np.int64), np.zeros(1, np.uint8))
    for module in (emit, portions, exact, grouping, means, parts):
        module.warm_up()
    empty = np.zeros(0, np.int64)
    for cells, window in ((one, np.zeros(2, np.int64)), (empty, empty)):
        kernels.probe_segment(
            cells, one, empty, np.array([0, 0, 1]), one, cells, one, one, one, window, np.zeros(6, np.int64), one, one
        )


def load_text_kernels() -> None:
    """Load what reads JSON and CSV records. Cost: as above."""
    types = {"i": pa.int64(), "f": pa.float64(), "s": pa.string(), "t": pa.timestamp("us", "UTC")}
    decoder("json", pa.schema(types)).decode(
        pa.array([b'{"i": 1, "f": 0.5, "s": "\\u0061", "t": "2026-01-01T00:00:00Z"}', b"{"], pa.binary())
    )
    decoder("json", pa.schema({"a.b": pa.int64()})).decode(pa.array([b'{"a": {"b": 1}}'], pa.binary()))
    decoder("csv", pa.schema(types)).decode(pa.array([b'1,0.5,"a",2026-01-01T00:00:00Z', b"x,,,"], pa.binary()))
