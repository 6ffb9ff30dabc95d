"""Which rows of a block have a key that is asked for: found by their place where blocks are sorted, else looked at."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.errors import InputError
from streamjoin.plan.join import RESULT_KEY, RESULT_TIME
from streamjoin.results.block import cut, decode, key_code
from streamjoin.results.question import Question
from streamjoin.results.rows import Rows

_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
KINDS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int64(), [-(2**63), -5, -1, 0, 1, 7, 2**63 - 1]),
    (pa.int32(), [-3, 0, 2, 2, 9]),
    (pa.float64(), [float("-inf"), -1.5, -0.0, 0.0, 2.5, float("inf"), float("nan")]),
    (pa.string(), ["", "a", "aaaaaaaaa", "aaaaaaaab", "é"]),
    (pa.bool_(), [False, True]),
    (pa.timestamp("us", "UTC"), [_EPOCH + timedelta(microseconds=step) for step in (0, 1, 2, 10**6)]),
    (pa.decimal128(10, 2), [Decimal("-1.50"), Decimal("0.00"), Decimal("2.25")]),
    (pa.decimal128(38, 2), [Decimal("-1.50"), Decimal("0.00"), Decimal(10**30), Decimal(10**30 + 1)]),
]


@pytest.mark.parametrize("equality", [True, False])
@pytest.mark.parametrize("nulls", [True, False])
@pytest.mark.parametrize(
    ("kind", "values"), KINDS, ids=lambda value: str(value) if isinstance(value, pa.DataType) else ""
)
def test_rows_are_found_by_their_place_as_by_their_keys(
    kind: pa.DataType, values: list[Any], nulls: bool, equality: bool
) -> None:
    chance = random.Random(7)
    keys = pa.array([chance.choice([*values, None] if nulls else values) for _ in range(300)], kind)
    times = pa.array(np.arange(300, dtype=np.int64))
    rows = pa.RecordBatch.from_arrays([times, times, keys], names=["n", RESULT_TIME, RESULT_KEY])
    code = key_code(kind, equality=equality, buckets=3)
    blocks = [
        decode(*block)
        for block in cut(
            rows, code, generation=0, batch=0, unit=0, first_number=0, block_bytes=1 << 16, rows_max=64
        )
    ]  # fmt: skip
    assert sum(block.num_rows for block in blocks) == 300
    asked = [Question(key=value) for value in values]
    asked += [Question(key_from=chance.choice(values), key_to=chance.choice(values)) for _ in range(20)]
    asked += [Question(key_from=values[1]), Question(key_to=values[1])]
    found = 0
    for question in asked:
        try:
            wanted = Rows(question, rows.schema).wanted
        except InputError:  # the range is empty
            continue
        assert wanted is not None
        for block in blocks:
            expected = block.filter(pa.array(wanted.mask(block.column(RESULT_KEY))))
            assert wanted.of(block, code).column("n").equals(expected.column("n"))
            found += expected.num_rows
    assert found > 300


@pytest.mark.parametrize("text", ["7", "-7", "007", "-0", str(2**63 - 1), str(-(2**63))])
def test_an_integer_may_be_a_text(text: str) -> None:
    schema = pa.schema([(RESULT_TIME, pa.int64()), (RESULT_KEY, pa.int64())])
    key = Rows(Question(key=text), schema).key
    assert key is not None and key.to_pylist() == [int(text)]


@pytest.mark.parametrize("text", ["", "x", "+7", " 7", "7.0", "٧", "--7", str(2**63), "1" * 50])
def test_what_is_no_integer_is_refused(text: str) -> None:
    schema = pa.schema([(RESULT_TIME, pa.int64()), (RESULT_KEY, pa.int64())])
    with pytest.raises(InputError, match="is not a key of this join"):
        Rows(Question(key=text), schema)
