"""Texts as integers and decimals; what is none is NULL.

A text is an integer, or a number as people write one, with a point, an exponent or both: +5, 1.50, .5, 1e-3. A decimal
keeps all its digits until it is rounded to those of its type.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.plan.decimals import shortened
from streamjoin.plan.types import COLUMN_DIGITS_MAX, DIGITS_MAX, INT64, STRING

_INTEGER = "^[+-]?[0-9]+$"
_NUMBER = r"^(?P<sign>[+-]?)0*(?P<whole>[0-9]*)(?P<fraction>\.?[0-9]*)(?:[eE](?P<exponent>[+-]?[0-9]{1,9}))?$"
_BEGINS = r"^[+-]?\.?[0-9]"
_WHOLE = pa.decimal256(DIGITS_MAX, 0)


def are_plain(texts: pa.Array) -> bool:
    """Whether Arrow's own cast reads such texts rightly.

    It takes 0x10 for 16, loses digits where many are to become more, and ends the process at 1e-9999999.
    """
    longest = pc.max(pc.utf8_length(texts)).as_py() or 0
    return longest <= COLUMN_DIGITS_MAX and not pc.any(pc.match_substring_regex(texts, "[xXeE]")).as_py()


def to_integers(texts: pa.Array, cast: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """A sign and decimal digits as an integer; of the notations that Arrow reads besides, none.

    Args:
        cast: a decimal as the integer type.
    """
    numbers = _where(texts, pc.match_substring_regex(texts, _INTEGER))
    sign, digits = pc.match_substring_regex(numbers, "^-"), pc.replace_substring_regex(numbers, "^[+-]?0*", "")
    short = _where(digits, pc.less_equal(pc.utf8_length(digits), 19))  # as many as int64 has
    return cast(_signed(short, sign))


def to_decimals(texts: pa.Array, cast: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Numbers with a point or an exponent as a decimal.

    Args:
        cast: a decimal of any scale as the decimal type, rounded.
    Cost: some passes over all, and one over the numbers of each size, of which there are 229 at most.
    """
    parts = pc.extract_regex(_where(texts, pc.match_substring_regex(texts, _BEGINS)), _NUMBER)
    sign, whole, fraction, exponent = (
        pc.struct_field(parts, name) for name in ("sign", "whole", "fraction", "exponent")
    )
    fraction = pc.replace_substring(fraction, ".", "")
    digits = pc.replace_substring_regex(pc.binary_join_element_wise(whole, fraction, ""), "^0+", "")
    power = pc.if_else(pc.equal(exponent, ""), "0", exponent)
    power = pc.replace_substring(power, "+", "").cast(INT64)
    # Digits beyond those of a decimal decide nothing: what is rounded away is more.
    beyond = pc.max_element_wise(pc.subtract(pc.utf8_length(digits).cast(INT64), DIGITS_MAX), 0)
    scale = pc.subtract(pc.subtract(pc.utf8_length(fraction).cast(INT64), power), beyond)
    values = _signed(pc.utf8_slice_codeunits(digits, 0, DIGITS_MAX), pc.equal(sign, "-"))
    scales = np.clip(np.asarray(pc.fill_null(scale, 0)), -DIGITS_MAX, 2 * DIGITS_MAX)
    order = np.argsort(scales, kind="stable")
    starts = np.flatnonzero(np.diff(scales[order], prepend=scales.min(initial=0) - 1))
    ordered = values.take(pa.array(order))
    found = [cast(_scaled(ordered.slice(first, past - first), int(scales[order[first]])))
             for first, past in zip(starts, [*starts[1:], order.size], strict=True)]  # fmt: skip
    back = np.empty(order.size, np.int64)
    back[order] = np.arange(order.size)
    return pa.concat_arrays(found).take(pa.array(back)) if found else cast(values)


def _where(texts: pa.Array, wanted: pa.Array) -> pa.Array:
    return pc.if_else(wanted, texts, pa.scalar(None, STRING))


def _signed(digits: pa.Array, negative: pa.Array) -> pa.Array:
    """Digits as whole numbers; no digit is zero."""
    numbers = pc.if_else(pc.equal(digits, ""), "0", digits).cast(_WHOLE)
    return pc.if_else(negative, pc.negate(numbers), numbers)


def _scaled(values: pa.Array, scale: int) -> pa.Array:
    """Whole numbers, divided by 10 to the power of `scale` and cut off after 76 digits, as decimals; NULL where there
    are more before the point."""
    if scale > DIGITS_MAX:
        fraction = values.view(pa.decimal256(DIGITS_MAX, DIGITS_MAX))
        values = shortened(fraction, 2 * DIGITS_MAX - scale, "towards_zero")
    if scale < 0:
        limit = pa.scalar(Decimal(10 ** (DIGITS_MAX + scale)), _WHOLE)
        values = pc.if_else(pc.less(pc.abs(values), limit), values, pa.scalar(None, _WHOLE))
        values = values.cast(pa.decimal256(DIGITS_MAX, -scale))
    return values.view(pa.decimal256(DIGITS_MAX, min(max(scale, 0), DIGITS_MAX)))
