"""UTF-8 as the Unicode standard defines it: no overlong forms, no surrogates, nothing past U+10FFFF."""

from __future__ import annotations

from streamjoin.intake.records.cells import NOT_UTF8, Bytes, Longs
from streamjoin.kernel import lean_kernel


@lean_kernel
def utf8_length(data: Bytes, at: int, end: int) -> int:
    """Bytes of the character at `at` < `end`, or 0 when it is not valid inside `data[at:end]`."""
    first = data[at]
    if first < 0x80:
        return 1
    if first < 0xC2 or first > 0xF4:
        return 0
    size = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    if at + size > end:
        return 0
    second = data[at + 1]
    if second & 0xC0 != 0x80:
        return 0
    if (first == 0xE0 and second < 0xA0) or (first == 0xED and second > 0x9F):
        return 0
    if (first == 0xF0 and second < 0x90) or (first == 0xF4 and second > 0x8F):
        return 0
    for place in range(at + 2, at + size):
        if data[place] & 0xC0 != 0x80:
            return 0
    return size


@lean_kernel
def utf8_error(data: Bytes, start: int, end: int) -> int:
    """Where the first invalid character of `data[start:end]` begins, or -1 when there is none."""
    at = start
    while at < end:
        size = utf8_length(data, at, end)
        if size == 0:
            return at
        at += size
    return -1


@lean_kernel
def mark_invalid_utf8(data: Bytes, start: Longs, length: Longs, fault: Bytes) -> None:
    """Set `fault` to NOT_UTF8 for every cell that is not valid UTF-8."""
    for row in range(len(start)):
        if utf8_error(data, start[row], start[row] + length[row]) >= 0:
            fault[row] = NOT_UTF8
