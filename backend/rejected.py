"""Rows that are missing from a job's results, as clients get them: fields of one, and many as CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from backend.cells import time_text

COLUMNS: Final = (
    "stream", "reason", "batch", "at", "source", "unit", "position", "detail", "record", "record_base64", "truncated",
)  # fmt: skip
_FORMULA: Final = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")


def fields_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as it was kept, with all fields, and its time as the API writes times."""
    return {
        **row,
        "at": time_text(row["at_us"]),
        "record": row.get("record"),
        "record_base64": row.get("record_base64"),
        "truncated": row.get("truncated", False),
    }


def as_csv(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """JSON lines as CSV with a header, piece by piece.

    A text that a spreadsheet would take for a formula gets a `'` in front, which spreadsheets do not show.
    """
    yield _csv([dict(zip(COLUMNS, COLUMNS, strict=True))])
    for piece in pieces:
        yield _csv(fields_of(json.loads(line)) for line in piece.splitlines())


def _csv(rows: Iterable[Mapping[str, Any]]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerows([_cell(row[name]) for name in COLUMNS] for row in rows)
    return out.getvalue().encode()


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
