"""Columns and faults of a block of records put together to rows and bad records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin.intake import deadletter
from streamjoin.intake.records.contract import BadRecord, Decoded
from streamjoin.intake.records.record_bytes import RecordBytes

TOMBSTONE: Final = "empty record (tombstone)"

_CELLS_MAX: Final = 1 << 22
"""Cells decoded at a time: with 17 bytes each, about 70 MB of working memory however wide the schema is."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of every record of a block, the bad ones included.

    Args:
        array: of the column's type and length n; what it holds for a faulty record does not matter.
        fault: uint8 of shape (n,), 0 where the cell is right.
        explain: record index -> what is wrong with its cell, asked only where `fault` is set.
    """

    array: pa.Array
    fault: npt.NDArray[np.uint8]
    explain: Callable[[int], str]


def assemble(schema: pa.Schema, records: RecordBytes, columns: Sequence[Column], reasons: Mapping[int, str]) -> Decoded:
    """The rows of every record without a fault, in order.

    Args:
        columns: one per field of `schema`; the first one with a fault gives the reason.
        reasons: record index -> why none of its fields could be read; it comes before any fault of a column.
    """
    is_good = records.valid.copy()
    is_good[list(reasons)] = False
    for column in columns:
        is_good &= column.fault == 0
    rows = pa.RecordBatch.from_arrays([column.array for column in columns], schema=schema)
    if is_good.all():
        return Decoded(rows, np.arange(len(records), dtype=np.int64), [])
    bad = []
    for row in map(int, np.flatnonzero(~is_good)):
        if not records.valid[row]:
            bad.append(BadRecord(row, TOMBSTONE, deadletter.TOMBSTONE))
        elif (found := reasons.get(row)) is not None:
            bad.append(BadRecord(row, found))
        else:
            index = next(index for index, column in enumerate(columns) if column.fault[row])
            detail = f'field "{schema.names[index]}": {columns[index].explain(row)}'
            bad.append(BadRecord(row, detail, deadletter.BAD_VALUE))
    return Decoded(rows.filter(pa.array(is_good)), np.flatnonzero(is_good).astype(np.int64), bad)


def decode_in_parts(fields: int, values: pa.Array, decode_part: Callable[[RecordBytes], Decoded]) -> Decoded:
    """`decode_part` over bounded runs of `values`, which have so many fields each, joined to one answer."""
    records = RecordBytes.of(values)
    part_size = max(1, _CELLS_MAX // max(fields, 1))
    if len(records) <= part_size:
        return decode_part(records)
    firsts = range(0, len(records), part_size)
    parts = [decode_part(records.part(first, part_size)) for first in firsts]
    return Decoded(
        pa.concat_batches([part.rows for part in parts]),
        np.concatenate([part.positions + first for first, part in zip(firsts, parts, strict=True)]),
        [replace(each, position=each.position + first) for first, part in zip(firsts, parts, strict=True)
         for each in part.bad],
    )  # fmt: skip
