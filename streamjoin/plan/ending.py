"""Which rows or files of a stream end a period: knowledge of its source, as punctuations say it (ESJ, section 3.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class EndsByRow:
    """A row whose column holds a value ends a period.

    Args:
        value: of the column's type.
    """

    column: str
    value: pa.Scalar

    def marked(self, rows: pa.RecordBatch) -> np.ndarray:
        """Which rows do, bool of shape (n,)."""
        equal = pc.equal(rows.column(self.column), self.value)
        return np.asarray(pc.fill_null(equal, False).to_numpy(zero_copy_only=False), bool)


@dataclass(frozen=True, slots=True)
class EndsByFile:
    """The end of a file ends a period."""


Ending = EndsByRow | EndsByFile


def as_typed(value: Any, kind: pa.DataType) -> pa.Scalar | None:
    """A value as people write it, as one of a column; None where the column's type has no such value."""
    try:
        found = _as_typed(value, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, InvalidOperation):
        return None
    return found if found.is_valid else None


def _as_typed(value: Any, kind: pa.DataType) -> pa.Scalar:
    if isinstance(value, list | dict):
        raise TypeError
    if isinstance(value, str):
        return _read(value, kind)
    if isinstance(value, bool) != pa.types.is_boolean(kind):
        raise TypeError
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError
    if isinstance(value, float) and pa.types.is_integer(kind) and not value.is_integer():
        raise ValueError
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(str(value)), kind)
    if pa.types.is_temporal(kind) and isinstance(value, int | float):
        raise TypeError
    return pa.scalar(value, kind)


def _read(text: str, kind: pa.DataType) -> pa.Scalar:
    """A text as a value, since forms have nothing but texts."""
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pa.scalar(text.encode()).cast(kind)
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(text), kind)
    if pa.types.is_timestamp(kind):
        try:
            return pa.scalar(text).cast(pa.timestamp(kind.unit, "UTC")).cast(kind)
        except pa.ArrowInvalid:  # without a zone it is in UTC, as in files
            return pa.scalar(text).cast(pa.timestamp(kind.unit)).cast(pa.int64()).cast(kind)
    found = pa.scalar(text).cast(kind)
    if pa.types.is_floating(kind) and not math.isfinite(found.as_py()):
        raise ValueError
    return found
