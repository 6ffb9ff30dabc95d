"""Shortening decimals, against Python's fractions: Arrow's own division misses by one beyond 32 bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from random import Random

import pyarrow as pa
import pytest

from streamjoin.plan.decimals import shortened


def half_away(value: Fraction) -> int:
    return int(math.copysign(1, value)) * math.floor(abs(value) + Fraction(1, 2))


MODES: dict[str, Callable[[Fraction], int]] = {
    "down": math.floor,
    "up": math.ceil,
    "towards_zero": math.trunc,
    "half_towards_infinity": half_away,
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("precision", "scale"), [(9, 2), (38, 9), (38, 18), (38, 20), (38, 38), (76, 38), (76, 75)])
def test_every_digit_that_is_kept_is_right(precision: int, scale: int, mode: str) -> None:
    rng = Random(precision + scale)
    near = [10**scale * 2**53 - 1, 10**scale * 2**53, 5 * 10 ** (scale - 1), 5 * 10 ** (scale - 1) - 1, 1, 0]
    near += [rng.randrange(10 ** rng.randint(1, precision)) for _ in range(300)]
    numbers = [sign * number for number in near if number < 10**precision for sign in (1, -1)]
    build = pa.decimal128 if precision <= 38 else pa.decimal256
    digits = [Decimal((number < 0, tuple(map(int, str(abs(number)))), -scale)) for number in numbers]
    values = pa.array([*digits, None], build(precision, scale))
    for kept in {0, scale // 2, max(scale - 10, 0)}:
        found = shortened(values, kept, mode)
        assert found.type.scale == kept and found[-1].as_py() is None
        wanted = [MODES[mode](Fraction(number, 10 ** (scale - kept))) for number in numbers]
        assert [Fraction(value.as_py()) * 10**kept for value in found[:-1]] == wanted
    assert shortened(values[0], 0, mode).as_py() == MODES[mode](Fraction(digits[0]))
