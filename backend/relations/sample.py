"""A look at a relation before anything runs: its columns, its first rows, its size, and how skewed its values are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from backend.relations.entry import opened_relation
from backend.skew import SKEW_ROWS
from streamjoin.errors import InputError


@dataclass(frozen=True, slots=True)
class Sample:
    """What was seen.

    Args:
        rows: the first rows, `SKEW_ROWS` at most.
        bad: why records could not be read, with how many there were of each.
        row_count: of the whole relation; None where only reading it all would tell.
        bytes, files: of the whole relation; None of a table of a database.
    """

    schema: pa.Schema
    rows: pa.RecordBatch
    bad: Counter[str]
    row_count: int | None
    bytes: int | None
    files: int | None


def look_at(entry: Mapping[str, Any]) -> Sample:
    """Read the beginning of a relation.

    Raises:
        InputError: it cannot be opened; the message says what to change.
        RunError: a file is damaged, or has other columns than the first.
    Cost: the footers of its files, and their first rows.
    """
    relation = opened_relation(entry)
    rows, letters = relation.first_rows(SKEW_ROWS)
    try:
        row_count, size = relation.row_count(), relation.bytes()
    except InputError as wrong:
        raise InputError(wrong.message, field="path") from None
    return Sample(
        relation.columns, rows, Counter(letter.detail for letter in letters), row_count, size, relation.file_count
    )
