"""The machine that runs an Avro program over records, never looking outside the record at hand."""

from __future__ import annotations

from typing import Final

from streamjoin.intake.records.avro_program import (
    BLOCK,
    BOOLEAN,
    BYTES,
    DOUBLE,
    END,
    ENUM,
    FIXED,
    FLOAT,
    INT,
    JUMP,
    LONG,
    REPEAT,
    UNION,
)
from streamjoin.intake.records.cells import TEXT, Bytes, Flags, Longs
from streamjoin.kernel import lean_kernel

TRUNCATED: Final = 1
LONG_VARINT: Final = 2
NEGATIVE_LENGTH: Final = 3
BAD_BRANCH: Final = 4
BAD_SYMBOL: Final = 5
BAD_BOOLEAN: Final = 6
BAD_INT: Final = 7
TRAILING: Final = 8
NO_PREFIX: Final = 9
OTHER_SCHEMA: Final = 10

ANY_SCHEMA: Final = -1
NO_CONFLUENT: Final = -2

_INT_MAX: Final = 2**31 - 1
_LONG_MIN: Final = -(2**63)


@lean_kernel
def _varint(data: Bytes, at: int, end: int) -> tuple[int, int, int]:
    """The zigzag number at `at`: (number, past it, fault)."""
    bits = 0
    for step in range(10):
        if at >= end:
            return 0, end, TRUNCATED
        byte = int(data[at])
        at += 1
        # Nine bytes hold 63 bits; the tenth has room for one.
        if step == 9 and byte > 1:
            return 0, at, LONG_VARINT
        bits |= (byte & 0x7F) << (7 * step)
        if byte < 0x80:
            break
    # A shift of a negative number brings in ones; the zigzag number has 63 bits after its sign.
    return ((bits >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(bits & 1), at, 0


@lean_kernel
def _little_endian(data: Bytes, at: int, size: int) -> int:
    bits = 0
    for step in range(size):
        bits |= int(data[at + step]) << (8 * step)
    return bits


@lean_kernel
def _run_record(
    data: Bytes, at: int, end: int, rows: Longs, stack: Longs, kind: Bytes, start: Longs, length: Longs, row: int
) -> tuple[int, int]:
    """Fill column `row` of the cells from `data[at:end]`: (program row of the fault, fault)."""
    step = 0
    open_blocks = 0
    while True:
        operation = rows[step, 0]
        slot = rows[step, 1]
        size = -1
        number = 0
        fault = 0
        if operation == END:
            return step, 0 if at == end else TRAILING
        if operation == JUMP:
            step = rows[step, 2]
            continue
        if operation == REPEAT:
            stack[open_blocks - 1] -= 1
            if stack[open_blocks - 1] > 0:
                step = rows[step, 2]
            else:
                open_blocks -= 1
                step = rows[step, 2] - 1
            continue
        if operation == FIXED:
            size = rows[step, 2]
        elif operation == BOOLEAN:
            size = 1
        elif operation == FLOAT:
            size = 4
        elif operation == DOUBLE:
            size = 8
        else:
            number, at, fault = _varint(data, at, end)
            if fault:
                return step, fault
        if operation == UNION:
            if number < 0 or number >= rows[step, 2]:
                return step, BAD_BRANCH
            step += 1 + number
            continue
        if operation == BLOCK:
            if number == _LONG_MIN:
                return step, NEGATIVE_LENGTH
            if number < 0:
                # A negative count is followed by the block's size in bytes, made for stepping over it.
                size, at, fault = _varint(data, at, end)
                if fault:
                    return step, fault
                if size < 0:
                    return step, NEGATIVE_LENGTH
                if size > end - at:
                    return step, TRUNCATED
                at += size
            elif number == 0:
                step = rows[step, 2]
            elif rows[step, 3]:
                stack[open_blocks] = number
                open_blocks += 1
                step += 1
            # Items without bytes are read already, and counting them one by one could take for ever.
            continue
        if operation == BYTES:
            size = number
            if size < 0:
                return step, NEGATIVE_LENGTH
        if size > end - at:
            return step, TRUNCATED
        if operation == INT and (number > _INT_MAX or number < -_INT_MAX - 1):
            return step, BAD_INT
        if operation == ENUM and (number < 0 or number >= rows[step, 2]):
            return step, BAD_SYMBOL
        if operation == BOOLEAN and data[at] > 1:
            return step, BAD_BOOLEAN
        if slot >= 0:
            kind[slot, row] = TEXT
            if operation in (BYTES, FIXED):
                start[slot, row] = at
                length[slot, row] = size
            elif operation in (LONG, INT, ENUM):
                start[slot, row] = number
            else:
                start[slot, row] = _little_endian(data, at, size)
        if size > 0:
            at += size
        step += 1


@lean_kernel
def run(
    data: Bytes, starts: Longs, ends: Longs, valid: Flags, schema_id: int, rows: Longs, stack: Longs,
    kind: Bytes, start: Longs, length: Longs, fault: Bytes, fault_at: Longs,
) -> None:  # fmt: skip
    """Run the program over every valid record.

    Args:
        schema_id: NO_CONFLUENT, or the Confluent schema id every record must begin with; ANY_SCHEMA takes any.
        kind, start, length: of shape (columns, n), all absent. Filled cells become TEXT; `start` holds the number
            itself (for float and double its bits), or the place of bytes, string and fixed.
        fault, fault_at: of shape (n,); the fault of a record and its program row, or the other schema id.
    """
    for row in range(len(starts)):
        if not valid[row]:
            continue
        at = starts[row]
        end = ends[row]
        if schema_id != NO_CONFLUENT:
            if end - at < 5 or data[at] != 0:
                fault[row] = NO_PREFIX
                continue
            found = 0
            for place in range(at + 1, at + 5):
                found = (found << 8) | int(data[place])
            if schema_id != ANY_SCHEMA and found != schema_id:
                fault[row] = OTHER_SCHEMA
                fault_at[row] = found
                continue
            at += 5
        step, code = _run_record(data, at, end, rows, stack, kind, start, length, row)
        if code:
            fault[row] = code
            fault_at[row] = step
