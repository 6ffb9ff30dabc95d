"""Text to integers, decimals and booleans, and what counts as a floating-point number.

Every kernel fills rows whose `fault` is still 0 and whose `filled` is set, and sets `fault` where it cannot.
"""

from __future__ import annotations

from typing import Final

from streamjoin.intake.records.cells import MALFORMED, OUT_OF_RANGE, TOO_FINE, Bytes, Flags, Longs
from streamjoin.intake.records.int128 import ZERO, negated, times_ten_plus, words
from streamjoin.kernel import lean_kernel

_INT64_TENTH: Final = -922337203685477580  # The least int64 without its last digit, which is 8.
_EXPONENT_MAX: Final = 10**12  # Beyond any shift the digits of a record can make up for.

NAMED: Final = 255
"""Mark of `check_floats`, not a fault: the text is the name of infinity or of no number."""


@lean_kernel
def parse_integers(
    data: Bytes, start: Longs, length: Longs, filled: Flags, low: int, high: int, out: Longs, fault: Bytes
) -> None:
    """Whole numbers in low .. high, a sign and decimal digits; a fraction or exponent is malformed."""
    for row in range(len(start)):
        if not filled[row] or fault[row]:
            continue
        at = start[row]
        end = at + length[row]
        is_negative = at < end and data[at] == 0x2D
        if is_negative or (at < end and data[at] == 0x2B):
            at += 1
        if at == end:
            fault[row] = MALFORMED
        # Counted downwards: the least int64 has no positive twin.
        number = 0
        while at < end:
            digit = int(data[at]) - 0x30
            if digit < 0 or digit > 9:
                fault[row] = MALFORMED
                break
            if number < _INT64_TENTH or (number == _INT64_TENTH and digit > 8):
                fault[row] = OUT_OF_RANGE
                number = 0
            if not fault[row]:
                number = number * 10 - digit
            at += 1
        if fault[row]:
            continue
        if not is_negative:
            number = -number
            if number < 0:
                fault[row] = OUT_OF_RANGE
                continue
        if number < low or number > high:
            fault[row] = OUT_OF_RANGE
        else:
            out[row] = number


@lean_kernel
def _word_at(data: Bytes, at: int, end: int, word: Bytes) -> bool:
    """Whether `data[at:end]` is `word` in any case; `word` is lower case ASCII letters."""
    if end - at != len(word):
        return False
    step = 0
    while step < len(word) and data[at + step] | 0x20 == word[step]:
        step += 1
    return step == len(word)


@lean_kernel
def parse_booleans(
    data: Bytes, start: Longs, length: Longs, filled: Flags, true: Bytes, false: Bytes, out: Bytes, fault: Bytes
) -> None:
    """`true` and `false` in any case, 1 and 0."""
    for row in range(len(start)):
        if not filled[row] or fault[row]:
            continue
        at = start[row]
        end = at + length[row]
        is_true = _word_at(data, at, end, true) or (length[row] == 1 and data[at] == 0x31)
        if is_true or _word_at(data, at, end, false) or (length[row] == 1 and data[at] == 0x30):
            out[row] = is_true
        else:
            fault[row] = MALFORMED


@lean_kernel
def _numeral(data: Bytes, start: int, end: int) -> tuple[int, int, int, int]:
    """Take `[+-]? digits [. digits] [e exponent]` apart.

    Returns:
        (first digit or point, past the last one, digits before the point, exponent); the first is -1 when
        `data[start:end]` is no such text.
    """
    at = start
    if at < end and (data[at] == 0x2B or data[at] == 0x2D):
        at += 1
    first = at
    while at < end and 0x30 <= data[at] <= 0x39:
        at += 1
    whole = at - first
    digits = whole
    if at < end and data[at] == 0x2E:
        at += 1
        while at < end and 0x30 <= data[at] <= 0x39:
            at += 1
            digits += 1
    past = at
    exponent = 0
    if digits == 0:
        return -1, 0, 0, 0
    if at < end and (data[at] == 0x65 or data[at] == 0x45):
        at += 1
        sign = -1 if at < end and data[at] == 0x2D else 1
        if at < end and (data[at] == 0x2B or data[at] == 0x2D):
            at += 1
        if at == end:
            return -1, 0, 0, 0
        while at < end and 0x30 <= data[at] <= 0x39:
            exponent = min(exponent * 10 + (int(data[at]) - 0x30), _EXPONENT_MAX)
            at += 1
        exponent *= sign
    if at != end:
        return -1, 0, 0, 0
    return first, past, whole, exponent


@lean_kernel
def parse_decimals(
    data: Bytes, start: Longs, length: Longs, filled: Flags, precision: int, scale: int, out: Longs, fault: Bytes
) -> None:
    """Exact decimals as unscaled 128-bit integers; `out` is of shape (n, 2), low word first.

    A digit other than 0 beyond `scale` is TOO_FINE, one beyond `precision` OUT_OF_RANGE: nothing is rounded.
    """
    for row in range(len(start)):
        if not filled[row] or fault[row]:
            continue
        at, past, whole, exponent = _numeral(data, start[row], start[row] + length[row])
        if at < 0:
            fault[row] = MALFORMED
            continue
        # Power of ten of a digit in the unscaled number.
        power = whole - 1 + exponent + scale
        unscaled = ZERO
        while at < past:
            if data[at] != 0x2E:
                digit = int(data[at]) - 0x30
                if digit and power >= precision:
                    fault[row] = OUT_OF_RANGE
                    break
                if digit and power < 0:
                    fault[row] = TOO_FINE
                    break
                if power >= 0:
                    unscaled = times_ten_plus(unscaled, digit)
                power -= 1
            at += 1
        if fault[row]:
            continue
        if unscaled != ZERO:
            # `power` now belongs to the digit after the last one.
            for _ in range(power + 1):
                unscaled = times_ten_plus(unscaled, 0)
            if data[start[row]] == 0x2D:
                unscaled = negated(unscaled)
        out[row, 0], out[row, 1] = words(unscaled)


@lean_kernel
def check_floats(
    data: Bytes, start: Longs, length: Longs, filled: Flags, names: tuple[Bytes, ...], fault: Bytes
) -> None:
    """Set `fault` to MALFORMED for what is no floating-point number, to NAMED for `nan`, `inf` and `infinity`.

    A leading plus sign is cut off the cell, because Arrow's parser, which reads the numbers next, refuses it.
    """
    for row in range(len(start)):
        if not filled[row] or fault[row]:
            continue
        at = start[row]
        end = at + length[row]
        if at < end and data[at] == 0x2B:
            start[row] += 1
            length[row] -= 1
        if _numeral(data, at, end)[0] >= 0:
            continue
        if at < end and (data[at] == 0x2B or data[at] == 0x2D):
            at += 1
        fault[row] = MALFORMED
        for name in names:
            if _word_at(data, at, end, name):
                fault[row] = NAMED
