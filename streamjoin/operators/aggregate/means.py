"""Means of groups: exact sums divided by counts, rounded once.

A quotient has digits below those that are rounded, and its lowest bit says whether anything is left, so that the float
is the nearest one, ties to even. Sums that are rounded before they are divided give means above the greatest value.
"""

from __future__ import annotations

import math

import numpy as np

from streamjoin.kernel import kernel
from streamjoin.operators.aggregate.exact import DIGITS, carried_whole, nearest, read_number, sum_values

_MORE = 4
"""Digits below a quotient's: a count takes up to two, and what is rounded is above the others."""
_FITS = 1 << 31


@kernel
def divide(digits: np.ndarray, end: int, count: int, out: np.ndarray) -> int:
    """Divide a number of `end` digits in [0, 2**32), with `_MORE` digits more below it, by a count above 0.

    Args:
        out: takes the digits of the quotient; its lowest bit is 1 where there is a remainder, which so many digits
            below those that are rounded stands for all that is lost.
    Returns:
        Where the quotient's digits end.
    """
    out[:] = 0
    left, divisor = np.uint64(0), np.uint64(count)
    for place in range(end + _MORE - 1, -1, -1):
        digit = np.uint64(digits[place - _MORE]) if place >= _MORE else np.uint64(0)
        if count < _FITS:
            left = left << np.uint64(32) | digit
            out[place] = np.int64(left // divisor)
            left = left % divisor
            continue
        found = np.uint64(0)
        for bit in range(31, -1, -1):  # what is left and a whole digit more would not fit into a word
            left = left << np.uint64(1) | (digit >> np.uint64(bit) & np.uint64(1))
            found = found << np.uint64(1)
            if left >= divisor:
                left -= divisor
                found |= np.uint64(1)
        out[place] = np.int64(found)
    if left:
        out[0] |= 1
    end += _MORE
    while end and out[end - 1] == 0:
        end -= 1
    return end


@kernel
def means(codes: np.ndarray, offsets: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The float nearest to each sum of values divided by its count, float64 of shape (g,); NaN where that is 0.

    So the mean of equal values is their value, and no mean is beyond the least or the greatest of them.

    Args:
        counts: how many values, int64 of shape (g,).
    """
    groups = counts.size
    out = np.empty(groups, np.float64)
    digits = np.zeros(DIGITS + 4, np.int64)
    quotient = np.zeros(DIGITS + 4 + _MORE, np.int64)
    for group in range(groups):
        sign, end, flags = read_number(codes, offsets[group], offsets[group + 1], digits)
        if flags & 1 or flags & 6 == 6 or counts[group] == 0:
            out[group] = np.nan
        elif flags:
            out[group] = np.inf if flags == 2 else -np.inf
        else:
            number, exponent = nearest(quotient, divide(digits, end, counts[group], quotient), 32 * _MORE)
            out[group] = sign * math.ldexp(number, exponent - 32 * _MORE - 1074)
    return out


@kernel
def integer_means(low: np.ndarray, middle: np.ndarray, high: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The same of sums of integers, whose digits to the base 2**32 these are; the last one has the sign."""
    groups = counts.size
    out = np.empty(groups, np.float64)
    digits = np.zeros(4, np.int64)
    quotient = np.zeros(4 + _MORE, np.int64)
    for group in range(groups):
        sign = -1 if high[group] < 0 else 1
        digits[0], digits[1], digits[2], digits[3] = sign * low[group], sign * middle[group], sign * high[group], 0
        end = carried_whole(digits, 4)
        if counts[group] == 0:
            out[group] = np.nan
        else:
            number, exponent = nearest(quotient, divide(digits, end, counts[group], quotient), 0)
            out[group] = sign * math.ldexp(number, exponent - 32 * _MORE)
    return out


def warm_up() -> None:
    """Load every kernel; see `streamjoin/warming.py`."""
    one, starts, order = np.ones(1), np.array([0, 1], np.int64), np.zeros(1, np.int64)
    means(*sum_values(one, order, starts), starts[1:])
    integer_means(order, order, order, starts[1:])
