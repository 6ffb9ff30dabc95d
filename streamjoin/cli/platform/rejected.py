"""Rows that are missing from results, shown alike for a join file and for a job of the platform."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import cyclopts

from streamjoin.cli.platform.common import note, show

Rows = Annotated[bool, cyclopts.Parameter(name="--rows", negative=(), help="Each row that is kept, and not counts.")]
RejectedOutput = Annotated[
    Literal["table", "json", "ndjson"],
    cyclopts.Parameter(name=["-o", "--output"], help="Format; ndjson gives all kept rows, one JSON object a line."),
]
RowLimit = Annotated[int, cyclopts.Parameter(validator=cyclopts.validators.Number(gte=1))]
COUNTS = ("stream", "reason", "rows", "kept", "meaning")
ROWS = ("id", "stream", "reason", "place", "detail", "text")


def show_counts(counts: Sequence[Mapping[str, Any]], output: Literal["table", "json", "ndjson"]) -> None:
    """Print counts by stream and reason."""
    if output == "json":
        print(json.dumps(counts, indent=1))
        return
    show(counts, "table", COUNTS)
    note("each row that is kept is shown by --rows" if counts else "no row is missing")


def show_rows(rows: Sequence[Mapping[str, Any]], has_more: bool, output: Literal["table", "json", "ndjson"]) -> None:
    """Print rows, newest first; control characters never reach the terminal."""
    if output == "json":
        print(json.dumps(rows, indent=1))
    else:
        show([{**row, "place": _place(row), "text": _text(row)} for row in rows], "table", ROWS)
    if has_more:
        note(f"there may be more: --before {rows[-1]['id']}")


def _place(row: Mapping[str, Any]) -> str:
    return f"{row['source']}, {row['unit']} {row['position']}"


def _text(row: Mapping[str, Any]) -> str:
    if row.get("record_base64") is not None:
        return f"(base64) {row['record_base64']}"
    return str(row.get("record") or "")
