"""Recorded histories of two streams: small, seeded, and nasty where it matters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.plan.schema import StreamSchema

Row = dict[str, Any]
TIMESTAMP = pa.timestamp("us", tz="UTC")
COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", TIMESTAMP),
        ("k", pa.int64()),
        ("f", pa.float64()),
        ("x", pa.int64()),
        ("y", pa.float64()),
        ("n", pa.string()),
        ("p", pa.decimal128(9, 2)),
    ]
)
NAMES = ("", "a", "ab", "b", "ä", "a\u0308", "abcdefgh", "abcdefghi", "abcdefghj", "A")
FLOATS = (0.0, -0.0, 1.0, 1.5, float("nan"), float("inf"), -1e300, 2.0**53, 1e17, 1e30)


@dataclass(frozen=True)
class History:
    """Two streams in arrival order.

    Args:
        delay_us: the disorder they stay inside of.
    """

    r: Sequence[Row]
    s: Sequence[Row]
    delay_us: int = 0

    def schema(self, name: str) -> StreamSchema:
        """The description of one of its streams."""
        return StreamSchema(name, COLUMNS, "ts", delay_us=self.delay_us)

    def cuts(self, batches: int, pieces: int = 1) -> list[tuple[list[pa.RecordBatch], list[pa.RecordBatch]]]:
        """The history as `batches` batches of `pieces` pieces a stream."""
        return [
            (split(to_batch(r), pieces), split(to_batch(s), pieces))
            for r, s in zip(cut(self.r, batches), cut(self.s, batches), strict=True)
        ]

    def arrivals(self, batches: int) -> list[tuple[str, Row]]:
        """Both streams in one order: inside a batch they alternate, R first."""
        order: list[tuple[str, Row]] = []
        for r, s in zip(cut(self.r, batches), cut(self.s, batches), strict=True):
            for place in range(max(len(r), len(s))):
                order += [("r", r[place])] if place < len(r) else []
                order += [("s", s[place])] if place < len(s) else []
        return order


def cut(rows: Sequence[Row], parts: int) -> list[Sequence[Row]]:
    """`rows` in `parts` runs of about the same length."""
    return [rows[part * len(rows) // parts : (part + 1) * len(rows) // parts] for part in range(parts)]


def split(rows: pa.RecordBatch, parts: int) -> list[pa.RecordBatch]:
    """A record batch in `parts` slices."""
    bounds = [part * rows.num_rows // parts for part in range(parts + 1)]
    return [rows.slice(start, stop - start) for start, stop in pairwise(bounds)]


def to_batch(rows: Sequence[Row]) -> pa.RecordBatch:
    """Rows as a record batch of COLUMNS."""
    return pa.RecordBatch.from_pylist(list(rows), schema=COLUMNS)


def make_rows(rng: np.random.Generator, ts_us: Sequence[int], keys: Sequence[int | None]) -> list[Row]:
    """Rows with the given times and keys, and values from small domains so that much matches."""
    from decimal import Decimal

    return [
        {
            "id": number,
            "ts": int(ts),
            "k": None if key is None else int(key),
            "f": FLOATS[rng.integers(len(FLOATS))] if rng.random() > 0.1 else None,
            "x": int(rng.integers(0, 60)),
            "y": float(rng.integers(0, 50)) / 10,
            "n": NAMES[rng.integers(len(NAMES))],
            "p": Decimal(int(rng.integers(0, 400))).scaleb(-2),
        }
        for number, (ts, key) in enumerate(zip(ts_us, keys, strict=True))
    ]


def times(rng: np.random.Generator, shape: str, count: int, delay_us: int) -> list[int]:
    """Event times in us, `count` of them, in arrival order and never more than `delay_us` out of order."""
    match shape:
        case "in order":
            return sorted(rng.integers(0, 1_000, count).tolist())
        case "all equal":
            return [500] * count
        case "disordered":
            base = np.sort(rng.integers(0, 1_000, count))
            return (base + rng.integers(0, delay_us + 1, count)).tolist()
        case "before 1970":
            return sorted((rng.integers(0, 1_000, count) - 10**15).tolist())
        case "gaps of w":
            # Steps of exactly the window, and one microsecond either side.
            return np.cumsum(rng.choice([0, 19, 20, 21], count)).tolist()
        case "far future":
            ordered = sorted(rng.integers(0, 1_000, count).tolist())
            return [*ordered[:-1], 10**16] if count else []
    raise ValueError(shape)


def keys(rng: np.random.Generator, shape: str, count: int) -> list[int | None]:
    """Join keys."""
    match shape:
        case "uniform":
            return [int(key) if rng.random() > 0.05 else None for key in rng.integers(0, 12, count)]
        case "zipf":
            return [int(key) for key in np.minimum(rng.zipf(1.5, count), 50)]
        case "one hot":
            return [7] * count
        case "all distinct":
            return list(range(count))
        case "all null":
            return [None] * count
    raise ValueError(shape)


def history(
    seed: int,
    *,
    r: int = 40,
    s: int = 40,
    time_shape: str = "in order",
    key_shape: str = "uniform",
    delay_us: int = 0,
) -> History:
    """A history from a seed: the same one every time."""
    rng = np.random.default_rng(seed)
    return History(
        make_rows(rng, times(rng, time_shape, r, delay_us), keys(rng, key_shape, r)),
        make_rows(rng, times(rng, time_shape, s, delay_us), keys(rng, key_shape, s)),
        delay_us,
    )
