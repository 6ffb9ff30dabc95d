"""DuckDB as an oracle, each question on a connection of its own.

DuckDB's default connection belongs to the process, and refuses a question while an answer before it has not been read
to its end: one test would break another. Ruff refuses `duckdb.sql` and `duckdb.execute` for that.
"""

from __future__ import annotations

from typing import Any

import duckdb


def rows(question: str) -> list[tuple[Any, ...]]:
    """All rows of the answer."""
    with duckdb.connect() as connection:
        return connection.execute(question).fetchall()
