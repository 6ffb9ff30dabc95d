"""JSON records to cells: one pass over the bytes, the grammar of RFC 8259 and nothing more.

A record is scanned inside its own bounds, so no record can take or give a row of a neighbour, whatever it holds:
newlines, two values, half a value. Arrow's own reader is not used here: it sees one text where we have records,
lets invalid UTF-8 and `NaN` through, and a record that is just `null` takes the whole process down.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from streamjoin.intake.records.cells import (
    ABSENT,
    ESCAPED,
    FALSE,
    NESTED,
    NULL,
    NUMBER,
    STRING,
    TRUE,
    Bytes,
    Cells,
    Longs,
)
from streamjoin.intake.records.record_bytes import RecordBytes
from streamjoin.intake.records.text_copy import unescaped
from streamjoin.intake.records.utf8 import utf8_length
from streamjoin.kernel import lean_kernel

DEPTH_MAX: Final = 10_000

EMPTY: Final = 1
TRUNCATED: Final = 2
NO_OBJECT: Final = 3
EXPECTED_KEY: Final = 4
EXPECTED_COLON: Final = 5
EXPECTED_COMMA: Final = 6
EXPECTED_VALUE: Final = 7
CONTROL_CHARACTER: Final = 8
BAD_UTF8: Final = 9
BAD_ESCAPE: Final = 10
TOO_DEEP: Final = 11
AFTER_OBJECT: Final = 12
TWICE: Final = 13

_REASONS: Final = {
    EMPTY: "empty record",
    TRUNCATED: "not JSON: the record ends inside the object",
    NO_OBJECT: "a JSON record is one object; another value begins at byte {at}",
    EXPECTED_KEY: "not JSON: a field name in double quotes is missing at byte {at}",
    EXPECTED_COLON: "not JSON: a colon is missing at byte {at}",
    EXPECTED_COMMA: "not JSON: a comma or closing bracket is missing at byte {at}",
    EXPECTED_VALUE: "not JSON: no valid value at byte {at}",
    CONTROL_CHARACTER: "not JSON: unescaped control character in a string at byte {at}",
    BAD_UTF8: "not valid UTF-8 at byte {at}",
    BAD_ESCAPE: "not JSON: unknown escape at byte {at}",
    TOO_DEEP: f"nested more than {DEPTH_MAX} deep at byte {{at}}",
    AFTER_OBJECT: "a JSON record is one object; more follows it at byte {at}",
}


class JsonScanner:
    """Finds fields by name in JSON records. One that stands twice makes the record bad."""

    def __init__(self, field_names: Sequence[str]) -> None:
        names = [name.encode() for name in field_names]
        self._field_names = field_names
        self._names = np.frombuffer(b"".join(names), np.uint8).copy()
        self._name_ends = np.cumsum([len(name) for name in names], dtype=np.int64)
        self._slots = _name_slots(self._names, self._name_ends)
        # An escaped byte takes six at most, so a longer name in a record is none of ours.
        self._scratch = np.zeros(6 * max(map(len, names), default=0), np.uint8)
        self._stack = np.zeros(DEPTH_MAX, np.uint8)

    def scan(self, records: RecordBytes) -> tuple[Cells, dict[int, str]]:
        """The cells of every record, and why a record has none. Cost: one look at every byte."""
        cells = Cells.absent(records.data, len(self._name_ends), len(records))
        fault = np.zeros(len(records), np.uint8)
        fault_at = np.zeros(len(records), np.int64)
        # Records may be decoded by several threads at once: the kernel's work space is theirs alone.
        work = (self._scratch.copy(), self._stack.copy())
        _scan(
            records.data, records.starts, records.ends, self._names, self._name_ends, self._slots, *work,
            cells.kind, cells.start, cells.length, fault, fault_at,
        )  # fmt: skip
        return cells, {int(row): self._reason(fault[row], int(fault_at[row])) for row in np.flatnonzero(fault)}

    def _reason(self, fault: int, at: int) -> str:
        if fault == TWICE:
            return f'field "{self._field_names[at]}" is given twice'
        return _REASONS[int(fault)].format(at=at)


def _name_slots(names: Bytes, name_ends: Longs) -> Longs:
    """Hash table of field indices, -1 where empty: open addressing, a power of two, at most a quarter full."""
    slots = np.full(1 << (4 * len(name_ends) - 1).bit_length(), -1, np.int64)
    begin = 0
    for index, end in enumerate(name_ends):
        slot = _hash(names, begin, end) & (len(slots) - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (len(slots) - 1)
        slots[slot] = index
        begin = int(end)
    return slots


@lean_kernel
def _hash(data: Bytes, start: int, end: int) -> int:
    code = 0
    for at in range(start, end):
        code = (code * 31 + data[at]) & 0x3FFFFFFF
    return code ^ (code >> 15)


@lean_kernel
def _same(left: Bytes, left_start: int, right: Bytes, right_start: int, length: int) -> bool:
    step = 0
    while step < length and left[left_start + step] == right[right_start + step]:
        step += 1
    return step == length


@lean_kernel
def _is_field(data: Bytes, start: int, end: int, names: Bytes, name_ends: Longs, field: int) -> bool:
    begin = name_ends[field - 1] if field else 0
    length = name_ends[field] - begin
    return end - start == length and _same(data, start, names, begin, length)


@lean_kernel
def _field_named(data: Bytes, start: int, end: int, names: Bytes, name_ends: Longs, slots: Longs, guess: int) -> int:
    """Index of the field called `data[start:end]`, or -1; `guess` is tried first."""
    # Producers write fields in one order, mostly that of the schema.
    if guess < len(name_ends) and _is_field(data, start, end, names, name_ends, guess):
        return guess
    slot = _hash(data, start, end) & (len(slots) - 1)
    while slots[slot] >= 0:
        if _is_field(data, start, end, names, name_ends, slots[slot]):
            return int(slots[slot])
        slot = (slot + 1) & (len(slots) - 1)
    return -1


@lean_kernel
def _after_space(data: Bytes, at: int, end: int) -> int:
    while at < end and (data[at] == 0x20 or data[at] == 0x0A or data[at] == 0x0D or data[at] == 0x09):
        at += 1
    return at


@lean_kernel
def _is_hex(byte: int) -> bool:
    return 0x30 <= byte <= 0x39 or 0x41 <= byte <= 0x46 or 0x61 <= byte <= 0x66


@lean_kernel
def _string(data: Bytes, at: int, end: int) -> tuple[int, int, int]:
    """The string whose opening quote is at `at`: (past the closing quote, STRING or ESCAPED, fault)."""
    kind = STRING
    at += 1
    while at < end:
        byte = data[at]
        if byte == 0x22:
            return at + 1, kind, 0
        if byte == 0x5C:
            kind = ESCAPED
            if at + 1 >= end:
                return end, kind, TRUNCATED
            letter = data[at + 1]
            if letter == 0x75:
                for place in range(at + 2, at + 6):
                    if place >= end:
                        return end, kind, TRUNCATED
                    if not _is_hex(data[place]):
                        return at, kind, BAD_ESCAPE
                at += 6
            elif (
                letter == 0x22 or letter == 0x5C or letter == 0x2F or letter == 0x62
                or letter == 0x66 or letter == 0x6E or letter == 0x72 or letter == 0x74
            ):  # fmt: skip
                at += 2
            else:
                return at, kind, BAD_ESCAPE
        elif byte < 0x20:
            return at, kind, CONTROL_CHARACTER
        elif byte < 0x80:
            at += 1
        else:
            size = utf8_length(data, at, end)
            if size == 0:
                return at, kind, BAD_UTF8
            at += size
    return end, kind, TRUNCATED


@lean_kernel
def _after_digits(data: Bytes, at: int, end: int) -> int:
    while at < end and 0x30 <= data[at] <= 0x39:
        at += 1
    return at


@lean_kernel
def _number(data: Bytes, start: int, end: int) -> tuple[int, int]:
    """The number at `start`: (past its last character, fault)."""
    at = start + 1 if data[start] == 0x2D else start
    past = _after_digits(data, at, end)
    if past == at or (data[at] == 0x30 and past > at + 1):
        return start, EXPECTED_VALUE
    at = past
    if at < end and data[at] == 0x2E:
        past = _after_digits(data, at + 1, end)
        if past == at + 1:
            return start, EXPECTED_VALUE
        at = past
    if at < end and (data[at] == 0x65 or data[at] == 0x45):
        at += 1
        if at < end and (data[at] == 0x2B or data[at] == 0x2D):
            at += 1
        past = _after_digits(data, at, end)
        if past == at:
            return start, EXPECTED_VALUE
        at = past
    return at, 0


@lean_kernel
def _scalar(data: Bytes, at: int, end: int) -> tuple[int, int, int]:
    """The value at `at` < `end` that is no object or array: (past it, kind, fault)."""
    byte = data[at]
    if byte == 0x22:
        return _string(data, at, end)
    if byte == 0x2D or 0x30 <= byte <= 0x39:
        past, fault = _number(data, at, end)
        return past, NUMBER, fault
    if byte == 0x74 and at + 4 <= end and data[at + 1] == 0x72 and data[at + 2] == 0x75 and data[at + 3] == 0x65:
        return at + 4, TRUE, 0
    if byte == 0x6E and at + 4 <= end and data[at + 1] == 0x75 and data[at + 2] == 0x6C and data[at + 3] == 0x6C:
        return at + 4, NULL, 0
    if (
        byte == 0x66 and at + 5 <= end
        and data[at + 1] == 0x61 and data[at + 2] == 0x6C and data[at + 3] == 0x73 and data[at + 4] == 0x65
    ):  # fmt: skip
        return at + 5, FALSE, 0
    return at, NULL, EXPECTED_VALUE


@lean_kernel
def _key(data: Bytes, at: int, end: int) -> tuple[int, int, int, int, int]:
    """A field name and its colon, from `at`: (start of its value, name start, name end, name kind, fault)."""
    at = _after_space(data, at, end)
    if at >= end:
        return end, 0, 0, 0, TRUNCATED
    if data[at] != 0x22:
        return at, 0, 0, 0, EXPECTED_KEY
    past, kind, fault = _string(data, at, end)
    if fault:
        return past, 0, 0, 0, fault
    colon = _after_space(data, past, end)
    if colon >= end:
        return end, 0, 0, 0, TRUNCATED
    if data[colon] != 0x3A:
        return colon, 0, 0, 0, EXPECTED_COLON
    return _after_space(data, colon + 1, end), at + 1, past - 1, kind, 0


@lean_kernel
def _nested(data: Bytes, at: int, end: int, stack: Bytes) -> tuple[int, int]:
    """The object or array at `at`: (past it, fault). `stack` holds the open brackets, so depth costs no call stack."""
    depth = 0
    while True:
        at = _after_space(data, at, end)
        if at >= end:
            return end, TRUNCATED
        byte = data[at]
        if byte == 0x7B or byte == 0x5B:
            if depth == len(stack):
                return at, TOO_DEEP
            stack[depth] = byte
            depth += 1
            at = _after_space(data, at + 1, end)
            # In ASCII the closing bracket is the opening one plus two.
            if at >= end or data[at] != byte + 2:
                if byte == 0x7B:
                    at, _, _, _, fault = _key(data, at, end)
                    if fault:
                        return at, fault
                continue
            at += 1
            depth -= 1
        else:
            at, _, fault = _scalar(data, at, end)
            if fault:
                return at, fault
        while depth:
            at = _after_space(data, at, end)
            if at >= end:
                return end, TRUNCATED
            byte = data[at]
            if byte == stack[depth - 1] + 2:
                at += 1
                depth -= 1
            elif byte == 0x2C:
                at += 1
                if stack[depth - 1] == 0x7B:
                    at, _, _, _, fault = _key(data, at, end)
                    if fault:
                        return at, fault
                break
            else:
                return at, EXPECTED_COMMA
        if depth == 0:
            return at, 0


@lean_kernel
def _scan_record(
    data: Bytes, at: int, end: int, names: Bytes, name_ends: Longs, slots: Longs, scratch: Bytes, stack: Bytes,
    kind: Bytes, start: Longs, length: Longs, row: int,
) -> tuple[int, int]:  # fmt: skip
    """Fill column `row` of the cells from `data[at:end]`: (place or field of the fault, fault)."""
    at = _after_space(data, at, end)
    if at >= end:
        return end, EMPTY
    if data[at] != 0x7B:
        return at, NO_OBJECT
    at = _after_space(data, at + 1, end)
    guess = 0
    is_open = at >= end or data[at] != 0x7D
    while is_open:
        at, name_start, name_end, name_kind, fault = _key(data, at, end)
        if fault:
            return at, fault
        if at >= end:
            return end, TRUNCATED
        field = -1
        if name_kind == STRING:
            field = _field_named(data, name_start, name_end, names, name_ends, slots, guess)
        elif name_end - name_start <= len(scratch):
            name_length = unescaped(data, name_start, name_end, scratch, 0)
            if name_length >= 0:
                field = _field_named(scratch, 0, name_length, names, name_ends, slots, guess)
        value = at
        if data[at] == 0x7B or data[at] == 0x5B:
            value_kind = NESTED
            at, fault = _nested(data, at, end, stack)
        else:
            at, value_kind, fault = _scalar(data, at, end)
        if fault:
            return at, fault
        if field >= 0:
            if kind[field, row] != ABSENT:
                return field, TWICE
            # The quotes of a string are no part of its text.
            quotes = 1 if value_kind in (STRING, ESCAPED) else 0
            kind[field, row] = value_kind
            start[field, row] = value + quotes
            length[field, row] = at - value - 2 * quotes
            guess = field + 1
        at = _after_space(data, at, end)
        if at >= end:
            return end, TRUNCATED
        if data[at] == 0x7D:
            is_open = False
        elif data[at] == 0x2C:
            at += 1
        else:
            return at, EXPECTED_COMMA
    at = _after_space(data, at + 1, end)
    if at < end:
        return at, AFTER_OBJECT
    return at, 0


@lean_kernel
def _scan(
    data: Bytes, starts: Longs, ends: Longs, names: Bytes, name_ends: Longs, slots: Longs, scratch: Bytes,
    stack: Bytes, kind: Bytes, start: Longs, length: Longs, fault: Bytes, fault_at: Longs,
) -> None:  # fmt: skip
    for row in range(len(starts)):
        at, code = _scan_record(
            data, starts[row], ends[row], names, name_ends, slots, scratch, stack, kind, start, length, row
        )
        if code:
            fault[row] = code
            fault_at[row] = at if code == TWICE else at - starts[row]
