"""Text of cells copied out: escapes resolved, doubled quotes halved."""

from __future__ import annotations

from streamjoin.intake.records.cells import (
    ESCAPED,
    LONE_SURROGATE,
    QUOTED,
    STRING,
    TEXT,
    Bytes,
    Longs,
)
from streamjoin.kernel import lean_kernel


@lean_kernel
def _hex4(data: Bytes, at: int) -> int:
    """The number four hexadecimal digits write; they have been checked."""
    number = 0
    for place in range(at, at + 4):
        byte = int(data[place])
        number = number * 16 + (byte - 0x30 if byte <= 0x39 else (byte & 0xDF) - 0x37)
    return number


@lean_kernel
def _encoded(point: int, out: Bytes, to: int) -> int:
    """Write the UTF-8 form of a code point at `out[to]`; past its last byte."""
    if point < 0x80:
        out[to] = point
        return to + 1
    if point < 0x800:
        out[to] = 0xC0 | (point >> 6)
        out[to + 1] = 0x80 | (point & 0x3F)
        return to + 2
    if point < 0x10000:
        out[to] = 0xE0 | (point >> 12)
        out[to + 1] = 0x80 | ((point >> 6) & 0x3F)
        out[to + 2] = 0x80 | (point & 0x3F)
        return to + 3
    out[to] = 0xF0 | (point >> 18)
    out[to + 1] = 0x80 | ((point >> 12) & 0x3F)
    out[to + 2] = 0x80 | ((point >> 6) & 0x3F)
    out[to + 3] = 0x80 | (point & 0x3F)
    return to + 4


@lean_kernel
def unescaped(data: Bytes, at: int, end: int, out: Bytes, to: int) -> int:
    """Resolve the JSON escapes of `data[at:end]`, known to be well formed, into `out` from `to`.

    Returns:
        Past the last byte written, at most `to + end - at`; -1 when a surrogate stands alone, which no UTF-8 can say.
    """
    while at < end:
        byte = data[at]
        if byte != 0x5C:
            out[to] = byte
            to += 1
            at += 1
            continue
        letter = data[at + 1]
        if letter == 0x75:
            point = _hex4(data, at + 2)
            at += 6
            if 0xDC00 <= point <= 0xDFFF:
                return -1
            if 0xD800 <= point <= 0xDBFF:
                if at + 6 > end or data[at] != 0x5C or data[at + 1] != 0x75:
                    return -1
                low = _hex4(data, at + 2)
                if low < 0xDC00 or low > 0xDFFF:
                    return -1
                point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00)
                at += 6
            to = _encoded(point, out, to)
            continue
        if letter == 0x62:
            letter = 0x08
        elif letter == 0x66:
            letter = 0x0C
        elif letter == 0x6E:
            letter = 0x0A
        elif letter == 0x72:
            letter = 0x0D
        elif letter == 0x74:
            letter = 0x09
        out[to] = letter
        to += 1
        at += 2
    return to


@lean_kernel
def copy_text(data: Bytes, kind: Bytes, start: Longs, length: Longs, out: Bytes, offsets: Longs, fault: Bytes) -> None:
    """Copy the text of every cell into `out`, one after the other; what is no text or has a fault is left empty.

    Args:
        out: at least as long as all cells together.
        offsets: of shape (n + 1,), filled: text i is `out[offsets[i]:offsets[i + 1]]`.
        fault: of shape (n,), set to LONE_SURROGATE where the text has no UTF-8 form.
    """
    to = 0
    offsets[0] = 0
    for row in range(len(start)):
        code = kind[row]
        at = start[row]
        end = at + length[row]
        if fault[row]:
            pass
        elif code in (STRING, TEXT):
            for place in range(at, end):
                out[to] = data[place]
                to += 1
        elif code == ESCAPED:
            past = unescaped(data, at, end, out, to)
            if past < 0:
                fault[row] = LONE_SURROGATE
            else:
                to = past
        elif code == QUOTED:
            quote = data[at - 1]  # the opening one
            while at < end:
                out[to] = data[at]
                to += 1
                at += 2 if data[at] == quote else 1
        offsets[row + 1] = to
