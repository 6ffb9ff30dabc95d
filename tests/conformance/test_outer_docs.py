"""What docs/query-language.md shows of outer, semi and anti joins, and of brackets, is what they give."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query

from .loops import joined, loop_of

PAGE = (Path(__file__).parents[2] / "docs" / "query-language.md").read_text()


def tables_in(text: str) -> list[list[list[str]]]:
    """The cells of each table of a page, its head first."""
    return [
        [[cell.strip() for cell in line.strip("| ").split("|")] for line in table.splitlines()]
        for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    ]


@dataclass(frozen=True)
class Example:
    """Streams, then queries over them, each followed by what it gives; all as tables of cells."""

    streams: list[list[list[str]]]
    queries: list[str]
    given: list[list[list[str]]]


def example(name: str) -> Example:
    text = PAGE.split(f"<!-- example of {name} -->")[1].split("<!-- end -->")[0]
    queries = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    tables = tables_in(text)
    first = len(tables) - len(queries)
    return Example(tables[:first], queries, tables[first:])


KINDS, BRACKETS = example("joins"), example("brackets")


def stream_of(table: list[list[str]]) -> tuple[StreamSchema, pa.RecordBatch]:
    (head, *names), _, *listed = table
    stream, _, time = head.partition(": ")
    rows = [
        {time: dt.datetime.fromisoformat(f"2026-01-01T{at}+00:00")}
        | {name: int(cell) if cell.isdecimal() else cell for name, cell in zip(names, cells, strict=True)}
        for at, *cells in listed
    ]
    given = pa.Table.from_pylist(rows)
    columns = pa.schema(
        [(name, pa.timestamp("us", "UTC") if name == time else given.field(name).type) for name in given.column_names]
    )
    return StreamSchema(stream, columns, time, delay_us=1_000_000), given.cast(columns).to_batches()[0]


def test_there_is_one_example_of_each_kind() -> None:
    kinds = [re.findall(r"FROM orders (.*) JOIN", query) for query in KINDS.queries]
    assert kinds == [["LEFT"], ["RIGHT"], ["FULL"], ["LEFT SEMI"], ["LEFT ANTI"]]
    assert len(KINDS.streams) == 2
    assert ["(payments JOIN receipts" in query for query in BRACKETS.queries] == [True, False]


@pytest.mark.parametrize(
    ("shown", "place"), [(shown, place) for shown in (KINDS, BRACKETS) for place in range(len(shown.queries))]
)
@pytest.mark.parametrize("operator", ["biclique by hash", "splitjoin"])
def test_the_examples_of_the_documents(shown: Example, place: int, operator: str, tmp_path: Path) -> None:
    given = [stream_of(table) for table in shown.streams]
    plan = plan_query(shown.queries[place], {schema.name: schema for schema, _ in given})
    found = joined(loop_of(plan, operator, tmp_path), [rows for _, rows in given], 2)
    _, _, *rows = shown.given[place]
    mine = Counter(tuple("NULL" if cell is None else str(cell) for cell in row) for row in found.elements())
    assert mine == Counter(map(tuple, rows))
