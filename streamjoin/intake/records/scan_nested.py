"""JSON records with fields inside objects: a column `a.b` is the field `b` of the object `a`.

A field that is called `a.b` itself comes first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamjoin.intake.records.cells import ABSENT, KIND_NAMES, NESTED, NULL, Cells
from streamjoin.intake.records.record_bytes import RecordBytes
from streamjoin.intake.records.scan_json import JsonScanner

_OBJECT = ord("{")


class NestedScanner:
    """As `JsonScanner`, with one more look at an object for each level of dots in the names."""

    def __init__(self, names: Sequence[str]) -> None:
        self._count = len(names)
        every = list(names)
        self._inside: list[tuple[int, list[int], NestedScanner]] = []
        for parent in dict.fromkeys(name.partition(".")[0] for name in names if "." in name):
            children = [place for place, name in enumerate(names) if name.startswith(f"{parent}.")]
            if parent not in every:
                every.append(parent)
            below = NestedScanner([names[place].removeprefix(f"{parent}.") for place in children])
            self._inside.append((every.index(parent), children, below))
        self._names = every
        self._scanner = JsonScanner(every)

    def scan(self, records: RecordBytes) -> tuple[Cells, dict[int, str]]:
        """The cells of every record, and why a record has none."""
        cells, reasons = self._scanner.scan(records)
        for parent, children, below in self._inside:
            found = cells.of_field(parent)
            is_object = found.kind == NESTED
            is_object[is_object] = found.data[found.start[is_object]] == _OBJECT
            for row in map(int, np.flatnonzero(~is_object & (found.kind > NULL))):
                what = "an array" if found.kind[row] == NESTED else KIND_NAMES[int(found.kind[row])]
                reasons.setdefault(row, f'field "{self._names[parent]}": {what} where an object is expected')
            rows = np.flatnonzero(is_object)
            starts = found.start[rows]
            inside, wrong = below.scan(
                RecordBytes(records.data, starts, starts + found.length[rows], np.ones(rows.size, np.bool_))
            )
            for row, reason in wrong.items():
                reasons.setdefault(int(rows[row]), f'in "{self._names[parent]}": {reason}')
            for place, child in enumerate(children):
                at = rows[cells.kind[child, rows] == ABSENT]
                taken = np.isin(rows, at, assume_unique=True)
                cells.kind[child, at] = inside.kind[place, taken]
                cells.start[child, at] = inside.start[place, taken]
                cells.length[child, at] = inside.length[place, taken]
        first = slice(self._count)
        return Cells(cells.data, cells.kind[first], cells.start[first], cells.length[first]), reasons
