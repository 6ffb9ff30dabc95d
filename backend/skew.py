"""How skewed the values of columns are: a key with one frequent value loads one unit more than the others."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from backend.cells import texts_of

SKEW_ROWS = 20_000
"""Rows that are looked at."""
TOP_VALUES = 5


def skew_of(rows: pa.RecordBatch) -> dict[str, Any]:
    """For each column but floating ones: how many values are distinct, and the most frequent with their shares."""
    if not rows.num_rows:
        return {}
    return {
        field.name: _column_skew(rows.column(place))
        for place, field in enumerate(rows.schema)
        if not pa.types.is_floating(field.type)
    }


def _column_skew(column: pa.Array) -> dict[str, Any]:
    counted = pc.value_counts(column)
    counts = counted.field("counts")
    top = pc.sort_indices(counts, sort_keys=[("", "descending")])[:TOP_VALUES]
    values = counted.field("values").take(top).cast(pa.string(), safe=False) if _as_text(column.type) else None
    texts = texts_of(values) if values is not None else [str(value) for value in counted.field("values").take(top)]
    shares = [count / len(column) for count in counts.take(top).to_pylist()]
    return {
        "distinct": len(counted),
        "top": [{"value": text, "share": share} for text, share in zip(texts, shares, strict=True)],
    }


def _as_text(kind: pa.DataType) -> bool:
    return not pa.types.is_binary(kind)
