"""Decimals as text: every digit, none as a power of ten; as JSON always with a digit before the point."""

from __future__ import annotations

import json
from decimal import Decimal

import pyarrow as pa
import pytest

from streamjoin.plan.decimals import to_text
from streamjoin.results.jsonlines import json_lines

DIGITS = ["0", "1", "-1", "12", "-9", "99999999", "-123456789012345678", None]
KINDS = [
    pa.decimal128(18, 0), pa.decimal128(18, 2), pa.decimal128(18, 6), pa.decimal128(18, 7), pa.decimal128(18, 18),
    pa.decimal128(38, 10), pa.decimal128(38, 38), pa.decimal256(40, 20), pa.decimal256(76, 76),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_it_is_what_python_writes_without_exponents(kind: pa.DataType) -> None:
    values = [None if digits is None else Decimal(f"{digits}E-{kind.scale}") for digits in DIGITS]
    array = pa.array(values, kind)
    want = [None if value is None else format(value, "f") for value in values]
    want = [text if text is None or Decimal(text) else text.lstrip("-") for text in want]
    assert to_text(array).to_pylist() == want
    assert to_text(array.slice(3)).to_pylist() == want[3:]
    assert to_text(pa.chunked_array([array.slice(0, 3), array.slice(3)])).to_pylist() == want
    assert [to_text(one).as_py() for one in array] == want


@pytest.mark.parametrize("scale", [1, 2, 18, 20, 37, 38])
def test_json_of_decimals_without_whole_digits(scale: int) -> None:
    values = [None, Decimal(f"5E-{scale}"), Decimal(f"-5E-{scale}"), Decimal(0)]
    table = pa.table({"n": ['"', "a", "b", "c"], "d": pa.array(values, pa.decimal128(scale, scale))})
    lines = json_lines(table)
    rows = [json.loads(line, parse_float=Decimal) for line in lines]
    assert [row["d"] for row in rows] == values
    assert [row["n"] for row in rows] == ['"', "a", "b", "c"]
    assert f'"d":0.{"5".rjust(scale, "0")}}}' in lines[1]
