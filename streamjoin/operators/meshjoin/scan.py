"""How a unit reads its rows of a relation: in k parts, one a step, and from the first again after the last.

Rows lie as they came. Those of a part are put in the order of their join values when the part is read, in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from streamjoin.errors import InputError
from streamjoin.index.layout import IndexLayout, sorted_by
from streamjoin.index.segment import Segment, SegmentInfo
from streamjoin.index.table import Part, Table
from streamjoin.index.view import CELL, EMPTY, KEY, View, column_of

PARTS = 10
"""In so many parts a relation is read while neither a number of parts nor a memory is given."""
BUFFER_SHARE = 10
"""Without a number of parts, each takes this part of the memory."""
BATCH_BYTES = 64 << 20
"""Without a number of steps, a batch reads as many parts as have this size together, and each at most once."""
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Scan:
    """How the units of a stage read a relation.

    Args:
        partitions: in how many parts each unit reads its rows (k); None for as many as make one a tenth of the memory.
        memory_bytes: what all units together may take; None for as much as the stream's tuples need.
        steps: how many parts a batch reads; None for as many as make `BATCH_BYTES`.
        rate_per_s: tuples that are to be joined as they come; then memory has no bound, and a start says what it takes.
    """

    partitions: int | None = None
    memory_bytes: int | None = None
    steps: int | None = None
    rate_per_s: float | None = None

    def parts(self, rows: int, size: int, units: int) -> int:
        """In how many parts a unit reads so many rows and bytes."""
        if self.partitions is not None:
            return self.partitions
        if self.memory_bytes is None:
            return PARTS
        return max(min(-(-size * BUFFER_SHARE * units // self.memory_bytes), rows), 1)

    def steps_of(self, parts: int, size: int) -> int:
        """How many of the parts a unit reads in a batch, which have so many bytes together."""
        if self.steps is not None:
            return min(self.steps, parts)
        return max(min(-(-BATCH_BYTES * parts // max(size, 1)), parts), 1)

    def check(self, parts: Sequence[Part], units: int) -> None:
        """Refuse a relation of which one part takes more than half of a unit's memory.

        Raises:
            InputError: says the least memory.
        """
        if self.memory_bytes is None:
            return
        for unit in range(units):
            mine = [part for part in parts if part.unit == unit]
            rows, size = sum(part.rows for part in mine), sum(part.bytes for part in mine)
            largest = -(-size // self.parts(rows, size, units))
            if 2 * largest * units > self.memory_bytes:
                least = -(-2 * largest * units // MIB)
                raise InputError(
                    f"a memory of {self.memory_bytes / MIB:g} MiB is not enough, as a part of the relation has "
                    f"{largest / MIB:.1f} MiB in each of {units} units; give at least {least} MiB, or more partitions",
                    field="operator.memory",
                )


class Reader:
    """One unit's rows of one version.

    Args:
        rows, bytes: how many there are.
        parts: k, at least 1; where there are fewer rows some parts are empty.
    """

    def __init__(self, table: Table, unit: int, units: int, layout: IndexLayout, scan: Scan) -> None:
        self.version = table.version
        self._files = table.of_unit(unit)
        self._layout = layout
        self.rows = sum(file.num_rows for file in self._files)
        self.bytes = sum(file.nbytes for file in self._files)
        self.parts = scan.parts(self.rows, self.bytes, units)
        self.read_rows = self.read_bytes = 0
        self.steps = scan.steps_of(self.parts, self.bytes)

    @cached_property
    def buffer_bytes(self) -> int:
        """What the largest part takes in memory. Cost: a look at each part where rows are not equally large."""
        if all(is_fixed_size(column.type) for file in self._files for column in file.schema):
            return -(-self.bytes // self.parts)
        return max(sum(rows.nbytes for rows in self._rows_of(part)) for part in range(self.parts))

    def read(self, part: int) -> Iterator[Segment]:
        """The rows of a part, in segments that can be probed."""
        for rows in self._rows_of(part):
            self.read_rows += rows.num_rows
            self.read_bytes += rows.nbytes
            yield arranged(rows)

    def _rows_of(self, part: int) -> Iterator[pa.RecordBatch]:
        first, past = part * self.rows // self.parts, (part + 1) * self.rows // self.parts
        start = 0
        for file in self._files:
            low, high = max(first - start, 0), min(past - start, file.num_rows)
            if low < high:
                yield file.slice(low, high - low)
            start += file.num_rows


def is_fixed_size(kind: pa.DataType) -> bool:
    """Whether all values of a type are equally large."""
    try:
        return kind.bit_width > 0
    except ValueError:
        return False


def arranged(rows: pa.RecordBatch) -> Segment:
    """Rows with their cells and keys, in any order, as a segment that can be probed."""
    cells, keys = column_of(rows, CELL), column_of(rows, KEY)
    order = sorted_by(cells, keys, rows.num_rows)
    info = SegmentInfo("", rows.num_rows, rows.nbytes, 0, 0, 0)
    view = View(cells[order], keys[order] if keys.size else EMPTY, EMPTY, order, rows.num_rows)
    return Segment(info, rows, (view,))
