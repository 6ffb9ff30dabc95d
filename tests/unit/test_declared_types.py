"""Every function over every type: what is computed has the type that the call declares, whatever the values are."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.errors import QueryError
from streamjoin.plan.coercion import call, cast
from streamjoin.plan.evaluation import evaluate
from streamjoin.plan.expression import Call, Column, Expression, Literal
from streamjoin.plan.functions.constants import PATTERN_ARGUMENTS
from streamjoin.plan.functions.table import COMPARISONS, FUNCTIONS
from streamjoin.plan.types import DURATION, DURATION_NS, INT64, STRING, is_number
from streamjoin.query.casts import can_cast
from tests.conformance.typed.kinds import KINDS, arrow_type, edges, to_arrow

TYPES: dict[str, pa.DataType] = {kind: arrow_type(kind) for kind in KINDS}
TYPES |= {"duration": DURATION, "duration_ns": DURATION_NS}
_SPANS = [0, 1, -1, 2**63 - 1, -(2**63), None]
VALUES: dict[str, pa.Array] = {
    kind: pa.array(_SPANS, of) if pa.types.is_duration(of) else to_arrow(kind, [*edges(kind), None])
    for kind, of in TYPES.items()
}
"""By type the values at its edges, NaN and NULL."""
COUNTS = (0, 1, -1, 3, 400, -400, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63), None)
"""Constants where a function takes a number of characters, digits or parts."""
WORDS = ("a", "%a_", None)
UNITS = ("microsecond", "week", "quarter", None)
ARGUMENTS = {
    **dict.fromkeys(("and", "or", "same", "nullif", *COMPARISONS), 2),
    **dict.fromkeys(("case", "if"), 3),
}
"""How many arguments the binder gives, of functions that do not look themselves."""
ROWS = 24


def made(function: str, args: Sequence[Expression]) -> Call:
    """A call as the binder makes it."""
    return replace(call("eq", *args), function=function) if function == "same" else call(function, *args)


def choices(function: str, count: int) -> list[list[Expression]]:
    """What each of so many arguments may be: columns of all types, or constants where only these are taken."""
    words = UNITS if function == "date_trunc" else WORDS
    constants = [*(Literal(one, INT64) for one in COUNTS), *(Literal(word, STRING) for word in words)]
    columns = [[Column("r", f"{kind} {place}", of) for kind, of in TYPES.items()] for place in range(count)]
    found: list[list[Expression]] = [
        list(constants if place in PATTERN_ARGUMENTS.get(function, ()) else columns[place]) for place in range(count)
    ]
    if function in ("case", "if"):
        found[0] = [Column("r", "bool 0", TYPES["bool"])]
    elif count == 3 and function not in PATTERN_ARGUMENTS:
        found[2] = found[2][:: len(TYPES) // 4]
    return found


def calls(function: str) -> Iterator[tuple[Call, dict[tuple[str, str], pa.Array]]]:
    """Calls of a function with all types that it takes, and columns of all edges."""
    for count in range(1, 4):
        if count != ARGUMENTS.get(function, count):
            continue
        for args in itertools.product(*choices(function, count)):
            try:
                found = made(function, args)
            except QueryError:
                continue
            columns = [arg for arg in args if isinstance(arg, Column)]
            yield found, {(one.stream, one.name): _spread(one.name, place) for place, one in enumerate(columns)}


def _spread(name: str, place: int) -> pa.Array:
    """Values of a type, so that two columns bring many pairs of them together."""
    values = VALUES[name.split(" ")[0]]
    steps = (1, 5, 7)[place]
    return values.take(pa.array([(steps * row) % len(values) for row in range(ROWS)]))


@pytest.mark.parametrize("function", sorted(name for name in FUNCTIONS if name != "cast"))
def test_what_is_computed_has_the_declared_type(function: str) -> None:
    count = 0
    for found, columns in calls(function):
        for rows in (ROWS, 0):
            some = {name: values.slice(0, rows) for name, values in columns.items()}
            values = evaluate(found, some, rows)
            values.validate(full=True)
            assert (values.type, len(values)) == (found.type, rows), str(found)
        count += 1
    assert count


@pytest.mark.parametrize("kind", TYPES)
def test_what_is_cast_has_the_type_it_is_cast_to(kind: str) -> None:
    column: Any = Column("r", kind, TYPES[kind])
    for target in TYPES.values():
        if can_cast(column.type, target):
            given = cast(column, INT64) if is_number(column.type) and pa.types.is_timestamp(target) else column
            for values in (VALUES[kind], VALUES[kind].slice(0, 0)):
                found = evaluate(cast(given, target), {("r", kind): values}, len(values))
                found.validate(full=True)
                assert (found.type, len(found)) == (target, len(values)), f"{kind} as {target}"


def test_the_absolute_value_of_a_float32_is_computed_in_float64() -> None:
    """2**24 + 1 is no float32."""
    one, other = (Column("r", name, pa.float32()) for name in "fg")
    total = call("add", call("abs", one), call("abs", other))
    columns = {("r", "f"): pa.array([-(2.0**24)], pa.float32()), ("r", "g"): pa.array([-1.0], pa.float32())}
    assert evaluate(total, columns, 1).to_pylist() == [2.0**24 + 1]


@pytest.mark.parametrize(
    ("start", "length", "found"),
    [(2, 2**63 - 1, "bc"), (2**63 - 1, 2**63 - 1, ""), (1, 2**31, "abc"), (-(2**63), 2**63 - 1, ""), (0, 2, "a")],
)
def test_a_substring_ends_with_its_text(start: int, length: int, found: str) -> None:
    part = call("substring", Literal("abc", STRING), Literal(start, INT64), Literal(length, INT64))
    assert evaluate(part, {}, 1).to_pylist() == [found]
