"""What groups of windows are, in plain Python that shares nothing with the code."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa

from streamjoin.plan.schema import StreamSchema

DISORDER_US = 15
COLUMNS = pa.schema(
    [
        ("ts", pa.int64()), ("id", pa.int64()), ("k", pa.int64()), ("x", pa.int64()), ("f", pa.float64()),
        ("t", pa.string()), ("d", pa.decimal128(20, 2)), ("p", pa.bool_()),
    ]
)  # fmt: skip
STREAMS = {name: StreamSchema(name, COLUMNS, "ts", "us", DISORDER_US) for name in "abcd"}
HARD_FLOATS = (1e40, 1e20, 1.0, -1e40, -1e20, 5e-324, 0.1, -0.0, 1e-300)

Row = dict[str, Any]
Pair = tuple[Row, ...]


def rows(seed: int, count: int = 60, keys: int = 4, span: int = 6) -> pa.RecordBatch:
    """Rows out of order by less than the allowed delay, with NULLs in every column but time and number."""
    chosen = random.Random(seed)

    def some(value: Any) -> Any:
        return None if chosen.random() < 0.1 else value

    times = sorted(chosen.randrange(span * count) for _ in range(count))
    listed = [
        {
            "ts": max(time - chosen.randrange(DISORDER_US), 0), "id": number, "k": some(chosen.randrange(keys)),
            "x": some(chosen.randrange(-50, 50)),
            "f": some(chosen.choice([*HARD_FLOATS, chosen.gauss(0, 1), chosen.gauss(0, 1)])),
            "t": some(chosen.choice(["", "a", "ab", "straße", "ζ" * 9])),
            "d": some(Decimal(chosen.randrange(-(10**18), 10**18)) / 100), "p": some(chosen.random() < 0.7),
        }
        for number, time in enumerate(times)
    ]  # fmt: skip
    return pa.RecordBatch.from_pylist(listed, schema=COLUMNS)


def joined(
    streams: Sequence[pa.RecordBatch], condition: Callable[..., bool], within_us: int | None = None
) -> list[tuple[int, Pair]]:
    """(time, parts) of every combination of rows that lie within the window and for which the condition holds."""
    found = []
    for parts in itertools.product(*(stream.to_pylist() for stream in streams)):
        times = [part["ts"] for part in parts]
        if (within_us is None or max(times) - min(times) <= within_us) and condition(*parts):
            found.append((max(times), parts))
    return found


@dataclass(frozen=True)
class Windowed:
    """What a query groups by: windows every `slide` of `size`, and a key of each row."""

    slide: int
    size: int
    key: Callable[[Pair], Any]


def windowed(found: Sequence[tuple[int, Pair]], by: Windowed) -> dict[tuple[int, Any], list[Pair]]:
    """The rows of each group, by (start of the window, key)."""
    groups: dict[tuple[int, Any], list[Pair]] = {}
    for time, parts in found:
        start = time // by.slide * by.slide
        while start + by.size > time:
            groups.setdefault((start, by.key(parts)), []).append(parts)
            start -= by.slide
    return groups


def exact_sum(values: Sequence[float]) -> float:
    """The float nearest to the sum."""
    total = sum(map(Fraction, values), Fraction(0))
    return total.numerator / total.denominator


def variance(values: Sequence[float], less: int) -> float | None:
    """Exact, and then rounded; None where there are too few values."""
    if len(values) <= less:
        return None
    exact, count = list(map(Fraction, values)), len(values)
    above = count * sum(value * value for value in exact) - sum(exact, Fraction(0)) ** 2
    found = above / (count * (count - less))
    return found.numerator / found.denominator


def quantile(values: Sequence[Any], at: float) -> Any:
    """The value of rank 1 + floor(at * (n - 1)); None of none."""
    return sorted(values)[math.floor(at * (len(values) - 1))] if values else None


def middle(value: float | None) -> float | None:
    """The middle of the 1/64 of a power of two that a float lies in."""
    if not value or abs(value) < 2.3e-308:
        return value and 0.0
    fraction, power = math.frexp(abs(value))
    return math.copysign(math.ldexp(math.floor(fraction * 128) / 128 + 1 / 256, power), value)


def present(values: Sequence[Any]) -> list[Any]:
    """Those that are not NULL."""
    return [value for value in values if value is not None]


def is_close(one: Any, other: Any, magnitude: float = 0.0) -> bool:
    """Equal; floats within 1e-12 of themselves or of a magnitude."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-12 * magnitude)
    return bool(one == other)
