"""Aggregates over an answer: `count, sum(amount), avg(amount)`, for all of it or by some of its columns.

DuckDB computes them over the rows as they are read. It never sees the text of the question: an aggregate is a function
of a short list and the name of a column, and the connection can reach neither files nor the network.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from streamjoin.errors import InputError
from streamjoin.plan.schema import type_name
from streamjoin.results.answer import ask
from streamjoin.results.finding import Answer
from streamjoin.results.latest import Holds
from streamjoin.results.question import Question
from streamjoin.results.reader import Reader
from streamjoin.results.rows import check_once, no_column_text

FUNCTIONS = {
    "count": "count({})", "sum": "sum({})", "avg": "avg({})", "min": "min({})", "max": "max({})",
    "count_distinct": "count(DISTINCT {})",
}  # fmt: skip
"""Name -> what DuckDB calls it."""
_OF_NUMBERS = ("sum", "avg")
ITEMS_MAX = 100


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One output column.

    Args:
        function: one of `FUNCTIONS`.
        column: what it is of; None for `count` of all rows.
    """

    function: str
    column: str | None = None

    @property
    def name(self) -> str:
        """What the output column is called, such as sum_amount."""
        return self.function if self.column is None else f"{self.function}_{self.column}"


def parse_aggregates(text: str) -> tuple[Aggregate, ...]:
    """`count, sum(amount)` as aggregates; whether the columns exist shows when they are asked for.

    Raises:
        InputError: there is no such function, or nothing at all.
    """
    found = []
    for item in text.split(","):
        # No regular expression: one that looks for blanks in three places takes hours over a text of blanks.
        function, bracket, rest = (part.strip() for part in item.partition("("))
        if function.lower() not in FUNCTIONS or (bracket and not rest.endswith(")")):
            raise InputError(
                f'"{item.strip()[:40]}" is not an aggregate; write count, or one of {", ".join(FUNCTIONS)} '
                "with a column, such as sum(amount)"
            )
        column = rest[:-1].strip() or None
        if column in (None, "*") and function.lower() != "count":
            raise InputError(f"{function} needs a column, such as {function}(amount)")
        found.append(Aggregate(function.lower(), None if column == "*" else column))
    if len(found) > ITEMS_MAX:
        raise InputError(f"{len(found)} aggregates are too many; {ITEMS_MAX} are allowed")
    return tuple(found)


def aggregate(
    reader: Reader,
    question: Question,
    aggregates: tuple[Aggregate, ...],
    by: tuple[str, ...] = (),
    recent: Reader | None = None,
    holds: Holds | None = None,
    memory_bytes: int | None = None,
) -> tuple[pa.Table, Answer]:
    """The aggregates over all rows that answer `question`, one row a group, ordered by the groups' columns.

    Args:
        holds: told how much is held, as `ask` does.
        memory_bytes: DuckDB may take so much; None for what it takes by itself.
    Raises:
        InputError: a column does not exist or has no sum, two outputs have one name, the question has a limit, or its
            groups need more memory.
    Cost: reads what the question reads; memory grows with the number of groups only.
    """
    if question.limit is not None or question.cursor is not None or question.select is not None:
        raise InputError("an aggregate is over all rows that answer; leave select, limit and cursor out")
    if not aggregates:
        raise InputError("there is nothing to aggregate; write count, or sum of a column")
    schema = (recent or reader).description.schema
    visible = [name for name in schema.names if not name.startswith("__")]
    for name in (*by, *(item.column for item in aggregates)):
        if name is not None and name not in visible:
            raise InputError(no_column_text(name, visible))
    for item in aggregates:
        if item.function in _OF_NUMBERS and item.column is not None and not _is_number(schema.field(item.column).type):
            kind = type_name(schema.field(item.column).type)
            raise InputError(f"{item.function} is of numbers, and {item.column} is {kind}; try min, max or count")
    check_once(by, "by")
    outputs = [*by, *(item.name for item in aggregates)]
    if twice := next((name for name in outputs if outputs.count(name) > 1), None):
        raise InputError(f'two output columns would be called "{twice}"; ask for it once')
    used = tuple(dict.fromkeys([*by, *(item.column for item in aggregates if item.column is not None)]))
    answer = ask(reader, replace(question, select=used or (visible[0],)), recent, holds)
    table = _compute(answer, aggregates, by, memory_bytes)
    if holds is not None:
        holds(table.nbytes)
    return table, answer


def _compute(
    answer: Answer, aggregates: tuple[Aggregate, ...], by: tuple[str, ...], memory_bytes: int | None
) -> pa.Table:
    items = [
        *(_quoted(name) for name in by),
        *(f"{FUNCTIONS[item.function].format(_quoted(item.column))} AS {_quoted(item.name)}" for item in aggregates),
    ]
    groups = ", ".join(_quoted(name) for name in by)
    text = f"SELECT {', '.join(items)} FROM answer" + (f" GROUP BY {groups} ORDER BY {groups}" if by else "")
    import duckdb  # here, since most processes answer nothing that needs it

    config: dict[str, str | bool | int | float | list[str]] = {"enable_external_access": "false"}
    if memory_bytes is not None:  # and what does not fit is not written to the disk either
        config |= {"memory_limit": f"{memory_bytes // 1024}KiB", "temp_directory": ""}
    with duckdb.connect(config=config) as connection:
        connection.execute("SET lock_configuration = true")
        connection.register("answer", pa.RecordBatchReader.from_batches(answer.schema, answer))
        try:
            table = connection.sql(text).to_arrow_table()
        except duckdb.OutOfMemoryException:
            most = "memory" if memory_bytes is None else f"the {memory_bytes >> 20} MiB that an answer may take"
            raise InputError(
                f"the groups of this aggregate do not fit into {most}; ask by fewer columns, for a shorter range, or "
                "without count_distinct"
            ) from None
    for place, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type):  # in UTC, whatever the machine's zone is
            table = table.set_column(place, column.name, table[place].cast(pa.timestamp("us", "UTC")))
    return table


def _quoted(name: str | None) -> str:
    return "*" if name is None else '"' + name.replace('"', '""') + '"'


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
