"""Exact sums of floats and of their squares, so that no order of adding and no number of units changes a bit.

A sum is an integer in units of the smallest float, 2**-1074, or of its square. It is kept as digits to the base 2**32,
each in [-2**31, 2**31), without those that are zero: three or four where values are of like size. Every number can be
written in one way only. A digit and its place are one int64, a *code*: place << 32 | digit + 2**31. NaN and the two
infinities have places of their own.

    add values      -> codes of each group          add codes -> codes of each group
    codes           -> the float nearest to the sum; `means` has that nearest to the mean
    codes of both   -> the variance, from n * sum of squares - square of the sum, which is computed exactly
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from streamjoin.kernel import kernel

DIGITS = 140
"""Places of a sum of squares, and of n times one; a sum of values needs half of them."""
_NAN, _PLUS, _MINUS = 1000, 1001, 1002
"""The places of NaN and of the two infinities, which have no digits."""
_MASK = 0xFFFFFFFF
_HALF = 1 << 31
_FRACTION = (1 << 52) - 1
_ADDED_MAX = 1 << 30  # so many digits fit into an int64 before carries are moved on


@kernel
def carried(digits: np.ndarray, low: int, high: int) -> int:
    """Bring digits [low, high) into their range, and return where they end then."""
    carry = np.int64(0)
    place = low
    while place < high or carry != 0:
        value = digits[place] + carry
        carry = (value + np.int64(_HALF)) >> np.int64(32)
        digits[place] = value - (carry << np.int64(32))
        place += 1
    return place


@kernel
def put_codes(digits: np.ndarray, low: int, high: int, flags: int, codes: np.ndarray, at: int) -> int:
    """Write a sum's codes from `at` on, clear its digits, and return where the codes end."""
    high = carried(digits, low, high)
    for place in range(low, high):
        if digits[place] != 0:
            codes[at] = (np.int64(place) << np.int64(32)) | (digits[place] + np.int64(_HALF))
            at += 1
            digits[place] = 0
    for bit in range(3):
        if flags >> bit & 1:
            codes[at] = np.int64(_NAN + bit) << np.int64(32)
            at += 1
    return at


def sum_values(values: np.ndarray, order: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The exact sums of groups.

    Args:
        values: float64 of shape (n,), zero where there is none.
        order: row numbers, int64 of shape (n,), a group's beside each other.
        starts: where in `order` each group begins, and n, int64 of shape (g + 1,).
    Returns:
        (codes int64, where each group's begin int64 of shape (g + 1,)).
    Cost: a few additions a value.
    """
    codes, offsets = _sums(values, order, starts, False)
    return codes, offsets


def sum_squares(values: np.ndarray, order: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The exact sums of the squares of groups' values; see `sum_values`."""
    codes, offsets = _sums(values, order, starts, True)
    return codes, offsets


@kernel
def _sums(values: np.ndarray, order: np.ndarray, starts: np.ndarray, squares: bool) -> tuple[Any, ...]:
    groups = starts.size - 1
    codes = np.empty(_room(starts, 6 if squares else 4), np.int64)
    offsets = np.zeros(groups + 1, np.int64)
    digits = np.zeros(DIGITS + 4, np.int64)
    bits = values.view(np.int64)
    at = 0
    for group in range(groups):
        low, high, flags, added = DIGITS, 0, 0, 0
        for i in range(starts[group], starts[group + 1]):
            pattern = bits[order[i]]
            exponent = (pattern >> 52) & 0x7FF
            fraction = pattern & _FRACTION
            if exponent == 0x7FF:
                flags |= 1 if fraction != 0 else (4 if pattern < 0 and not squares else 2)
                continue
            if exponent != 0:
                fraction |= 1 << 52
                exponent -= 1
            if squares:
                first = int(exponent * 2 >> 5)
                add_square(digits, first, fraction, exponent * 2 & 31)
                past = first + 5
            else:
                first = int(exponent >> 5)
                add_value(digits, first, fraction, exponent & 31, -1 if pattern < 0 else 1)
                past = first + 3
            low, high = min(low, first), max(high, past)
            added += 2  # to one digit, at most
            if added >= _ADDED_MAX:
                high = carried(digits, low, high)
                added = 0
        at = put_codes(digits, low, high, flags, codes, at)
        offsets[group + 1] = at
    return codes[:at], offsets


@kernel
def add_value(digits: np.ndarray, first: int, fraction: int, shift: int, sign: int) -> None:
    """Add 53 bits with a sign, moved by less than a digit, from the digit `first` on."""
    # 31 bits more at most: what leaves a word at its upper end is in the next digit, too.
    middle = fraction >> (32 - shift)
    digits[first] += sign * ((fraction << shift) & _MASK)
    digits[first + 1] += sign * (middle & _MASK)
    digits[first + 2] += sign * (middle >> 32)


@kernel
def add_square(digits: np.ndarray, first: int, fraction: int, shift: int) -> None:
    """Add the square of 53 bits, moved by less than a digit, from the digit `first` on."""
    mask, word, by = np.uint64(_MASK), np.uint64(32), np.uint64(shift)
    lower, upper = np.uint64(fraction) & mask, np.uint64(fraction) >> word
    least, middle, most = lower * lower, np.uint64(2) * upper * lower, upper * upper
    # Digits of the square; the middle two have a bit more than 32, which leaves room to move them.
    moved = (least & mask) << by
    digits[first] += np.int64(moved & mask)
    digits[first + 1] += np.int64(moved >> word)
    moved = ((least >> word) + (middle & mask)) << by
    digits[first + 1] += np.int64(moved & mask)
    digits[first + 2] += np.int64(moved >> word)
    moved = ((middle >> word) + (most & mask)) << by
    digits[first + 2] += np.int64(moved & mask)
    digits[first + 3] += np.int64(moved >> word)
    moved = (most >> word) << by
    digits[first + 3] += np.int64(moved & mask)
    digits[first + 4] += np.int64(moved >> word)


@kernel
def _room(starts: np.ndarray, a_value: int) -> int:
    """How many codes sums of groups have at most."""
    room = 0
    for group in range(starts.size - 1):
        room += min(int(starts[group + 1] - starts[group]) * a_value, DIGITS) + 4
    return room


@kernel
def sum_codes(codes: np.ndarray, spans: np.ndarray, order: np.ndarray, starts: np.ndarray) -> tuple[Any, ...]:
    """The sums of sums.

    Args:
        codes, spans: those of n sums, and where each one's begin, int64 of shape (n + 1,).
        order, starts: see `sum_values`.
    Returns:
        As `sum_values`.
    """
    groups = starts.size - 1
    room = 0
    for group in range(groups):
        size = 0
        for i in range(starts[group], starts[group + 1]):
            size += spans[order[i] + 1] - spans[order[i]]
        room += min(size * 2, DIGITS) + 4
    out = np.empty(room, np.int64)
    offsets = np.zeros(groups + 1, np.int64)
    digits = np.zeros(DIGITS + 4, np.int64)
    at = 0
    for group in range(groups):
        low, high, flags, added = DIGITS, 0, 0, 0
        for i in range(starts[group], starts[group + 1]):
            row = order[i]
            for j in range(spans[row], spans[row + 1]):
                place = codes[j] >> 32
                if place >= _NAN:
                    flags |= 1 << (place - _NAN)
                    continue
                digits[place] += (codes[j] & _MASK) - _HALF
                low, high = min(low, place), max(high, place + 1)
            added += 1
            if added >= _ADDED_MAX:
                high = carried(digits, low, high)
                added = 0
        at = put_codes(digits, low, high, flags, out, at)
        offsets[group + 1] = at
    return out[:at], offsets


@kernel
def read_number(codes: np.ndarray, first: int, last: int, digits: np.ndarray) -> tuple[Any, ...]:
    """A number's magnitude as digits in [0, 2**32), its sign, where its digits end, and its flags."""
    digits[:] = 0
    flags, end, sign = 0, 0, 1
    for j in range(first, last):
        place = codes[j] >> 32
        if place >= _NAN:
            flags |= 1 << (place - _NAN)
        else:
            digits[place] = (codes[j] & _MASK) - _HALF
            end = place + 1
    if end and digits[end - 1] < 0:
        sign = -1
        for place in range(end):
            digits[place] = -digits[place]
    return sign, carried_whole(digits, end), flags


@kernel
def carried_whole(digits: np.ndarray, end: int) -> int:
    """Bring the `end` digits of a number that is not below 0 into [0, 2**32), and return where they end then."""
    carry = np.int64(0)
    for place in range(end):
        value = digits[place] + carry
        carry = value >> np.int64(32)
        digits[place] = value & _MASK
    while end and digits[end - 1] == 0:
        end -= 1
    return end


@kernel
def nearest(digits: np.ndarray, end: int, least: int) -> tuple[Any, ...]:
    """(m, e) with m * 2**e the number of 53 bits that is nearest to the one of these digits, ties to even.

    Args:
        least: e is not below it.
    """
    if end == 0:
        return 0.0, 0
    bits = 0
    top = digits[end - 1]
    while top >> bits:
        bits += 1
    length = (end - 1) * 32 + bits
    lowest = max(length - 53, least)  # the place of the last bit that is kept
    kept = np.int64(0)
    for place in range(end - 1, -1, -1):
        begins = place * 32 - lowest
        if begins >= 0:
            kept |= digits[place] << np.int64(begins)
        elif begins > -32:
            kept |= digits[place] >> np.int64(-begins)
    if lowest:
        half = lowest - 1
        if digits[half >> 5] >> np.int64(half & 31) & 1:
            more = digits[half >> 5] & ((np.int64(1) << np.int64(half & 31)) - 1)
            for place in range(half >> 5):
                more |= digits[place]
            if more or kept & 1:
                kept += 1
    return float(kept), lowest


@kernel
def rounded(codes: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The float nearest to each sum of values, float64 of shape (g,)."""
    groups = offsets.size - 1
    out = np.empty(groups, np.float64)
    digits = np.zeros(DIGITS + 4, np.int64)
    for group in range(groups):
        sign, end, flags = read_number(codes, offsets[group], offsets[group + 1], digits)
        if flags & 1 or flags & 6 == 6:
            out[group] = np.nan
        elif flags:
            out[group] = np.inf if flags == 2 else -np.inf
        else:
            number, exponent = nearest(digits, end, 0)
            out[group] = sign * math.ldexp(number, exponent - 1074)
    return out


@kernel
def multiply(left: np.ndarray, left_end: int, right: np.ndarray, right_end: int, out: np.ndarray) -> None:
    """out = left * right, of digits in [0, 2**32); `out` has room for as many as both have."""
    out[:] = 0
    mask, word = np.uint64(_MASK), np.uint64(32)
    for i in range(left_end):
        carry = np.uint64(0)
        one = np.uint64(left[i])
        if one == 0:
            continue
        for j in range(right_end):
            total = one * np.uint64(right[j]) + np.uint64(out[i + j]) + carry
            out[i + j] = np.int64(total & mask)
            carry = total >> word
        out[i + right_end] = np.int64(carry)


@kernel
def variances(
    sums: np.ndarray, sum_offsets: np.ndarray, squares: np.ndarray, square_offsets: np.ndarray, counts: np.ndarray,
    less: int,
) -> np.ndarray:  # fmt: skip
    """The variance of each group, float64 of shape (g,); NaN where a value is NaN or infinite, or there are too few.

    Args:
        counts: how many values, int64 of shape (g,).
        less: 1 divides by one less than that, as of a sample.
    """
    groups = counts.size
    out = np.empty(groups, np.float64)
    digits = np.zeros(DIGITS + 4, np.int64)
    number = np.zeros(2, np.int64)
    scaled = np.zeros(DIGITS + 8, np.int64)
    product = np.zeros(2 * DIGITS + 8, np.int64)
    for group in range(groups):
        count = counts[group]
        _, end, flags = read_number(squares, square_offsets[group], square_offsets[group + 1], digits)
        if flags or count <= less:
            out[group] = np.nan
            continue
        number[0], number[1] = count & _MASK, count >> 32
        multiply(digits, end, number, 2, scaled)
        scaled_end = end + 2
        _, end, _ = read_number(sums, sum_offsets[group], sum_offsets[group + 1], digits)
        multiply(digits, end, digits, end, product)
        borrow = np.int64(0)
        for place in range(scaled_end):
            value = scaled[place] - product[place] + borrow
            borrow = value >> np.int64(32)
            scaled[place] = value & _MASK
        while scaled_end and scaled[scaled_end - 1] == 0:
            scaled_end -= 1
        above, exponent = nearest(scaled, scaled_end, 0)
        out[group] = math.ldexp(above / (float(count) * float(count - less)), exponent - 2148)
    return out


def warm_up() -> None:
    """Load every kernel; see `streamjoin/warming.py`."""
    one, starts, order = np.ones(1), np.array([0, 1], np.int64), np.zeros(1, np.int64)
    codes, spans = sum_values(one, order, starts)
    sums, sum_offsets = sum_codes(codes, spans, order, starts)
    squares, square_offsets = sum_squares(one, order, starts)
    rounded(sums, sum_offsets)
    variances(sums, sum_offsets, squares, square_offsets, np.ones(1, np.int64), 0)
