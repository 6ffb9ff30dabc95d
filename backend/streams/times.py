"""Which columns of a stream may be its event time, as far as its first rows tell."""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

_NAMED = re.compile(r"(?:^|[_.\s-])(?:ts|time|timestamp|date|datetime|at|when|epoch|ms|us)$|(?:Time|At|Ts|Date)$", re.I)
_YEAR_2000_S: Final = 946_684_800
_YEAR_2100_S: Final = 4_102_444_800
_PER_S: Final = {"s": 1, "ms": 1_000, "us": 1_000_000}


class TimeColumn(BaseModel):
    """A column that may be the event time; `time_unit` is that of whole numbers, which count since 1970."""

    name: str
    time_unit: str | None = None


def time_columns(rows: pa.RecordBatch) -> list[TimeColumn]:
    """The likely ones: timestamps, else dates, else whole numbers that are times of this century.

    Of several whole numbers those that are called a time; none is likely where there are no rows.
    """
    for is_one in (pa.types.is_timestamp, pa.types.is_date):
        if found := [TimeColumn(name=field.name) for field in rows.schema if is_one(field.type)]:
            return found
    clocks = [
        TimeColumn(name=field.name, time_unit=unit)
        for field, values in zip(rows.schema, rows.columns, strict=True)
        if pa.types.is_integer(field.type) and (unit := _unit_of(values)) is not None
    ]
    return [clock for clock in clocks if _NAMED.search(clock.name)] or clocks


def _unit_of(values: pa.Array) -> str | None:
    """The unit in which whole numbers are times between 2000 and 2100; None if in none of them."""
    ends = pc.min_max(values)
    first, last = ends["min"].as_py(), ends["max"].as_py()
    if first is None:
        return None
    return next((unit for unit, per_s in _PER_S.items()
                 if _YEAR_2000_S * per_s <= first and last < _YEAR_2100_S * per_s), None)  # fmt: skip
