"""CAST of texts to integers and decimals, against Python's own decimals: every digit counts, none ends the process."""

from __future__ import annotations

import decimal
import random
import re
from decimal import Decimal

import pyarrow as pa
import pytest

from streamjoin.plan.functions.casts import cast

KINDS = [
    pa.int8(), pa.int32(), pa.int64(), pa.decimal128(10, 2), pa.decimal128(38, 38), pa.decimal128(38, 0),
    pa.decimal128(38, 20), pa.decimal128(1, 1), pa.decimal128(1, 0), pa.decimal128(18, 18),
]  # fmt: skip
NONE = [
    "abc", "", " 5", "5 ", "0x10", "-0X1f", ".", "+", "-", "e5", "1e", "1_0", "\u0661", "5\n", "--5", "1e+", "nan",
    "inf", "0b1", "1e9999999999", "1,5", None,
]  # fmt: skip
COUNTS = (0, 1, 1, 2, 3, 10, 20, 37, 38, 39, 60, 80)
EXPONENTS = (
    0,
    1,
    2,
    3,
    5,
    10,
    37,
    38,
    39,
    40,
    75,
    76,
    77,
    78,
    115,
    116,
    117,
    152,
    153,
    160,
    300,
    9_999_999,
    999_999_999,
)


def wanted(text: str | None, kind: pa.DataType) -> int | Decimal | None:
    """What a text is."""
    if text is None:
        return None
    if pa.types.is_integer(kind):
        limit = 2 ** (kind.bit_width - 1)
        return int(text) if re.fullmatch("[+-]?[0-9]+", text) and -limit <= int(text) < limit else None
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?", text):
        return None
    with decimal.localcontext(prec=400, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN):
        value = Decimal(text)
        if not value or value.adjusted() < -100:
            return Decimal(0)
        if value.adjusted() > 100:
            return None
        value = value.quantize(Decimal(1).scaleb(-kind.scale), decimal.ROUND_HALF_UP)
        return value if abs(value) < Decimal(10) ** (kind.precision - kind.scale) else None


def some_text(chosen: random.Random) -> str | None:
    """A number with any number of digits, or none."""
    if chosen.random() < 0.1:
        return chosen.choice(NONE)
    digits = "".join(chosen.choices("0123456789", k=chosen.choice(COUNTS)))
    fraction = chosen.choice(["", "", ".", "." + "".join(chosen.choices("05949", k=chosen.choice(COUNTS)))])
    exponent = chosen.choice(["", "", "", f"e{chosen.choice(['', '+', '-'])}{chosen.choice(EXPONENTS)}"])
    return chosen.choice(["", "", "+", "-", "00"]) + digits + fraction + exponent


@pytest.mark.parametrize(
    ("text", "kind", "number"),
    [
        ("5.777", pa.decimal128(10, 2), Decimal("5.78")),
        ("-0.005", pa.decimal128(10, 2), Decimal("-0.01")),
        ("1e-3", pa.decimal128(10, 2), Decimal(0)),
        ("5e-3", pa.decimal128(10, 2), Decimal("0.01")),
        ("1.5E3", pa.decimal128(10, 2), Decimal(1500)),
        ("99999999.995", pa.decimal128(10, 2), None),
        ("-96", pa.decimal128(38, 38), None),
        ("1e-9999999", pa.decimal128(10, 2), Decimal(0)),
        ("+5", pa.int32(), 5),
        ("-0005", pa.int8(), -5),
        ("0x10", pa.int32(), None),
        ("1e3", pa.int32(), None),
        ("128", pa.int8(), None),
    ],
)
def test_a_text_is_the_number_that_it_says(text: str, kind: pa.DataType, number: int | Decimal | None) -> None:
    assert wanted(text, kind) == number
    assert cast([pa.scalar(text)], kind).as_py() == number
    for others in ([], ["1"], ["abc", None]):
        found = cast([pa.array([text, *others], pa.string())], kind)
        assert (found.type, found.to_pylist()) == (kind, [number, *(wanted(other, kind) for other in others)])


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_random_texts_are_what_python_reads(kind: pa.DataType) -> None:
    chosen = random.Random(str(kind))
    for count in (0, 1, 2, *[30] * 40):
        texts = [some_text(chosen) for _ in range(count)]
        found = cast([pa.array(texts, pa.string())], kind)
        found.validate(full=True)
        assert (found.type, found.to_pylist()) == (kind, [wanted(text, kind) for text in texts])
