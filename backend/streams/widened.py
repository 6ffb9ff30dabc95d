"""Columns that were guessed to be text because of a few values: without these they would be numbers or times."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

SHARE_MAX: Final = 0.1
"""Where more of the values are different, the column is text."""
VALUE_MAX: Final = 100
_NARROWER: Final = (
    ("int64", r"^[-+]?\d{1,18}$"),
    ("float64", r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$"),
    ("timestamp", r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[-+]\d\d(:?\d\d)?)?$"),
    ("date", r"^\d{4}-\d\d-\d\d$"),
    ("bool", r"^(true|false)$"),
)
"""Types with what their values look like; of two that fit equally many the first."""


class Widened(BaseModel):
    """A column that is `type` because of so many `values`, the first of which is `example`; else it were `instead`."""

    column: str
    type: str
    instead: str
    values: int
    example: str


def widened_columns(rows: pa.RecordBatch) -> list[Widened]:
    """Those among the text columns of rows whose types were guessed."""
    found = (
        _widened(field.name, values.drop_null())
        for field, values in zip(rows.schema, rows.columns, strict=True)
        if pa.types.is_string(field.type)
    )
    return [one for one in found if one is not None]


def _widened(name: str, values: pa.Array) -> Widened | None:
    best: tuple[int, str, pa.Array] | None = None
    for kind, pattern in _NARROWER:
        fits = pc.match_substring_regex(values, pattern)
        count = pc.sum(fits).as_py() or 0
        if best is None or count > best[0]:
            best = count, kind, fits
    assert best is not None
    count, kind, fits = best
    others = len(values) - count
    # One value among two or three is none that stands out.
    if not count or not 0 < others <= max(1, len(values) * SHARE_MAX) or len(values) < 3:
        return None
    example = str(values.filter(pc.invert(fits))[0].as_py())[:VALUE_MAX]
    return Widened(column=name, type="string", instead=kind, values=others, example=example)
