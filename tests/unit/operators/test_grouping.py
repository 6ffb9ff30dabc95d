"""Which rows are of one group, by every way of finding out, and exact sums of whole numbers."""

from __future__ import annotations

import math
import random
import struct
from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.operators.aggregate.grouping import group, normal
from streamjoin.operators.aggregate.parts import made
from streamjoin.plan.aggregate import Kind, Part
from streamjoin.plan.expression import Column

ROWS = 500
OTHER_NAN = struct.unpack("<d", b"\x01\0\0\0\0\0\xf8\xff")[0]
KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "close": (pa.int64(), [-3, -2, 0, 1, 5]),
    "far apart": (pa.int64(), [-(2**63), -1, 0, 2**63 - 1]),
    "close to an end": (pa.int64(), [-(2**63), -(2**63) + 1]),
    "all of 8 bits": (pa.int8(), list(range(-128, 128))),
    "unsigned, above a sign": (pa.uint64(), [2**64 - 1, 2**64 - 2, 2**63]),
    "unsigned, far apart": (pa.uint64(), [0, 2**64 - 1]),
    "with NULL": (pa.int32(), [None, 1, 2]),
    "NULL alone": (pa.int64(), [None]),
    "texts": (pa.string(), ["", "a", "aa", None]),
    "floats": (pa.float64(), [0.0, -0.0, math.nan, OTHER_NAN, math.inf, -math.inf, 1.5, None]),
    "single floats": (pa.float32(), [0.0, -0.0, math.nan, 1.5]),
    "infinities": (pa.float64(), [math.inf, -math.inf, -0.0]),
    "nearly all of them differ": (pa.int64(), list(range(0, 10**9, 10**6))),
}
PANES = {
    "one": [7],
    "close": [-1, 0, 1],
    "far apart": [-(2**40), 0, 2**40],
    "farther than an int64 tells": [-(2**62) - 20, 0, 2**62 - 1],
    "as many as rows": list(range(ROWS)),
}


def of(value: Any) -> Any:
    """What tells groups apart."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


@pytest.mark.parametrize("panes", PANES)
@pytest.mark.parametrize("names", [*((name,) for name in KEYS), ("close", "texts"), ("nearly all of them differ",) * 2])
def test_rows_of_a_group_are_beside_each_other_in_their_order(names: tuple[str, ...], panes: str) -> None:
    chosen = random.Random(f"{names} {panes}")
    at = [chosen.choice(PANES[panes]) for _ in range(ROWS)]
    columns = [[chosen.choice(KEYS[name][1]) for _ in range(ROWS)] for name in names]
    keys = [normal(pa.array(column, KEYS[name][0])) for name, column in zip(names, columns, strict=True)]
    wanted = defaultdict(list)
    for row, told in enumerate(zip(at, *(map(of, column) for column in columns), strict=True)):
        wanted[told].append(row)
    found = group(np.array(at, np.int64), keys)
    parts = [found.order[a:b].tolist() for a, b in zip(found.starts[:-1], found.starts[1:], strict=True)]
    assert sorted(parts) == sorted(wanted.values())
    assert [at[rows[0]] for rows in parts] == sorted(at[rows[0]] for rows in parts)


def test_sums_of_whole_numbers_are_exact_whatever_their_sign() -> None:
    chosen = random.Random(3)
    values = [chosen.choice([2**63 - 1, -(2**63), -1, 0, chosen.randrange(-(2**63), 2**63)]) for _ in range(ROWS)]
    keys = [chosen.randrange(9) for _ in values]
    rows = group(np.zeros(ROWS, np.int64), [pa.array(keys)])
    part = Part(Kind.INTEGERS, (Column("s", "x", pa.int64()),))
    low, high, sign = (column.to_pylist() for column in made(part, [pa.array(values)], rows))
    for place, first in enumerate(rows.firsts):
        wanted = sum(value for value, key in zip(values, keys, strict=True) if key == keys[first])
        assert 0 <= low[place] < 2**32
        assert 0 <= high[place] < 2**32
        assert low[place] + (high[place] << 32) + (sign[place] << 64) == wanted


def test_values_are_counted_without_null() -> None:
    keys = pa.array([1, 2, 1, 1])
    part = Part(Kind.VALUES, (Column("s", "x", pa.int64()),))
    rows = group(np.zeros(4, np.int64), [keys])
    assert made(part, [pa.array([5, None, None, 7])], rows)[0].to_pylist() == [2, 0]
    assert made(part, [pa.array([5, 6, 6, 7])], rows)[0].to_pylist() == [3, 1]
