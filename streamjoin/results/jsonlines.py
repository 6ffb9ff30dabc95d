"""Rows as lines of JSON, as files of results, the screen and the API show them."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.plan.decimals import to_text
from streamjoin.plan.functions.times import to_text as time_texts


def iso_times(times: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Timestamps, in UTC, and dates as ISO 8601. Years without exactly four digits stay as they are."""
    if pa.types.is_timestamp(times.type):
        times = times.cast(pa.timestamp(times.type.unit, "UTC"))
    return pc.replace_substring(time_texts(times), " ", "T", max_replacements=1)


def _objects(table: pa.Table) -> list[str]:
    """Each row as DuckDB writes it; an empty text for a row that holds invalid UTF-8."""
    import duckdb  # here, since processes that write or read no JSON need not wait for it

    with duckdb.connect() as connection:
        # No result column is called `__rows`, so here it means the whole row. DuckDB would invent a name for a column
        # without one.
        unnamed = "__unnamed"
        connection.register("__rows", table.rename_columns([name or unnamed for name in table.column_names]))
        lines = [line for (line,) in connection.execute("SELECT to_json(__rows)::VARCHAR FROM __rows").fetchall()]
    if "" in table.column_names:
        return [line.replace(f'"{unnamed}":', '"":', 1) for line in lines]
    return lines


def _legible(table: pa.Table) -> pa.Table:
    """The same rows, with bytes that are not valid UTF-8 written as `\\xe9`. Goes value by value, so for few rows."""
    for place, column in enumerate(table.schema):
        if pa.types.is_string(column.type):
            values = table[place].cast(pa.binary()).to_pylist()
            texts = [None if value is None else value.decode("utf-8", "backslashreplace") for value in values]
            table = table.set_column(place, column.name, pa.array(texts, pa.string()))
    return table


def json_lines(table: pa.Table) -> list[str]:
    """Each row as a JSON object: times as ISO 8601 in UTC, spans as microseconds, bytes as DuckDB writes them.

    NaN and infinities become null. A text from a file may hold invalid UTF-8; its bytes are written as `\\xe9`.
    """
    if table.num_rows == 0:
        return []
    mark, is_marked = uuid.uuid4().hex, False
    for place, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
            table = table.set_column(place, column.name, iso_times(table[place]))
        elif pa.types.is_floating(column.type):  # JSON has no NaN and no infinity
            finite = pc.if_else(pc.is_finite(table[place]), table[place], pa.scalar(None, column.type))
            table = table.set_column(place, column.name, finite)
        elif pa.types.is_duration(column.type):
            table = table.set_column(place, column.name, table[place].cast(pa.int64()))
        elif pa.types.is_decimal(column.type) and column.type.precision == column.type.scale:
            # DuckDB writes 0.5 as .5, which is not valid JSON. As a text with a mark it keeps its zero, and the mark
            # shows below where to take the quotes off again.
            text = pc.binary_join_element_wise(mark, to_text(table[place]), mark, "")
            table, is_marked = table.set_column(place, column.name, text), True
    lines = _objects(table)
    if bad := [place for place, line in enumerate(lines) if not line]:
        for place, line in zip(bad, _objects(_legible(table.take(bad))), strict=True):
            lines[place] = line
    return [line.replace(f'"{mark}', "").replace(f'{mark}"', "") for line in lines] if is_marked else lines
