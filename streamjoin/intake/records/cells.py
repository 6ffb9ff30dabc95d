"""Cells: where the value of each field stands in each record, and what is wrong with it.

The scanners of JSON and CSV produce cells and `columns` turns them into typed columns, so that the rules for
numbers, times and text are written once. Codes are plain integers because compiled kernels use them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

# What stands in a cell.
ABSENT: Final = 0  # The record has no such field; reads as null.
NULL: Final = 1
TRUE: Final = 2
FALSE: Final = 3
NUMBER: Final = 4  # A JSON number; its grammar has been checked.
STRING: Final = 5  # The inside of a JSON string without escapes.
ESCAPED: Final = 6  # The inside of a JSON string with escapes.
NESTED: Final = 7  # A JSON object or array.
TEXT: Final = 8  # A CSV field.
QUOTED: Final = 9  # The inside of a quoted CSV field that holds doubled quotes.

KIND_NAMES: Final = {
    TRUE: "a boolean",
    FALSE: "a boolean",
    NUMBER: "a number",
    STRING: "a string",
    ESCAPED: "a string",
    NESTED: "an object or array",
    TEXT: "text",
    QUOTED: "text",
}

# What is wrong with a cell; 0 is nothing.
WRONG_KIND: Final = 1
MALFORMED: Final = 2
OUT_OF_RANGE: Final = 3
TOO_FINE: Final = 4
LONE_SURROGATE: Final = 5
NOT_UTF8: Final = 6


@dataclass(frozen=True, slots=True)
class FieldCells:
    """The cells of one field: `data[start[i]:start[i] + length[i]]` is the text of record i, of shape (n,) each."""

    data: Bytes
    kind: Bytes
    start: Longs
    length: Longs


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of every field, of shape (fields, n): a column is contiguous, as its conversion wants it."""

    data: Bytes
    kind: Bytes
    start: Longs
    length: Longs

    @classmethod
    def absent(cls, data: Bytes, fields: int, count: int) -> Cells:
        """Room for `count` records, every cell absent."""
        shape = (fields, count)
        return cls(data, np.zeros(shape, np.uint8), np.zeros(shape, np.int64), np.zeros(shape, np.int64))

    def of_field(self, index: int) -> FieldCells:
        """The cells of field `index`."""
        return FieldCells(self.data, self.kind[index], self.start[index], self.length[index])
