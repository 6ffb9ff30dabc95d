"""The allow-list: what a query may call, by name.

Nothing outside it can be written in a query, and nothing in it can reach a file, a shell or a class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.plan.expression import INFIX
from streamjoin.plan.functions import arithmetic, casts, comparisons, constants, signatures, texts, times
from streamjoin.plan.types import BOOL, INT64, STRING, TIMESTAMP, is_text
from streamjoin.plan.values import Value


@dataclass(frozen=True, slots=True)
class Function:
    """One row of the allow-list.

    Args:
        signature: the types of the arguments -> the type of the result; raises InputError with what it takes.
        compute: argument values and the result type -> the result.
    """

    signature: Callable[[Sequence[pa.DataType]], pa.DataType]
    compute: Callable[[list[Any], pa.DataType], Value]


def _unary(compute: Callable[..., Any]) -> Callable[[list[Any], pa.DataType], Value]:
    return lambda values, kind: casts.as_type(compute(values[0]), kind)


def _instant(value: Value) -> Value:
    return casts.as_type(value, TIMESTAMP) if pa.types.is_date(value.type) else value


def _of_instant(compute: Callable[[Any], Any]) -> Callable[[list[Any], pa.DataType], Value]:
    return lambda values, kind: casts.as_type(compute(_instant(values[0])), kind)


ARITHMETIC = {"add", "subtract", "multiply", "divide"}
COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge"}

FUNCTIONS: dict[str, Function] = {
    **{name: Function(signatures.compare, comparisons.compare(name)) for name in COMPARISONS},
    "same": Function(signatures.compare, comparisons.same),
    "and": Function(signatures.logic, lambda values, _: pc.and_kleene(*values)),
    "or": Function(signatures.logic, lambda values, _: pc.or_kleene(*values)),
    "not": Function(signatures.logic, lambda values, _: pc.invert(values[0])),
    "is_null": Function(signatures.any_value, lambda values, _: pc.is_null(values[0])),
    "add": Function(signatures.add, arithmetic.add),
    "subtract": Function(signatures.subtract, arithmetic.subtract),
    "multiply": Function(signatures.multiply, arithmetic.exact(pc.multiply_checked, pc.multiply)),
    "divide": Function(signatures.divide, arithmetic.divide),
    "modulo": Function(signatures.modulo, arithmetic.modulo),
    "negate": Function(signatures.same_number, arithmetic.negate),
    "cast": Function(signatures.any_value, casts.cast),
    "abs": Function(signatures.same_number, arithmetic.absolute),
    "floor": Function(signatures.to_integer, arithmetic.to_whole("down")),
    "ceil": Function(signatures.to_integer, arithmetic.to_whole("up")),
    "round": Function(signatures.round, constants.rounded),
    "sqrt": Function(signatures.to_float(1), arithmetic.of_floats(pc.sqrt)),
    "power": Function(signatures.to_float(2), arithmetic.of_floats(pc.power)),
    "least": Function(signatures.common, comparisons.extreme("le")),
    "greatest": Function(signatures.common, comparisons.extreme("ge")),
    "coalesce": Function(signatures.common, lambda values, kind: pc.coalesce(*casts.all_as_type(values, kind))),
    "nullif": Function(signatures.common, comparisons.nullif),
    "case": Function(signatures.case, comparisons.case),
    "if": Function(signatures.if_else, comparisons.case),
    "lower": Function(signatures.text(1, STRING), _unary(pc.utf8_lower)),
    "upper": Function(signatures.text(1, STRING), _unary(pc.utf8_upper)),
    "length": Function(signatures.text(1, INT64), _unary(pc.utf8_length)),
    "trim": Function(signatures.text(1, STRING), _unary(pc.utf8_trim_whitespace)),
    "reverse": Function(signatures.text(1, STRING), _unary(pc.utf8_reverse)),
    "concat": Function(
        signatures.text((1, 64), STRING),
        lambda values, _: pc.binary_join_element_wise(*values, "", null_handling="emit_null"),
    ),
    "substring": Function(signatures.substring, constants.substring),
    "replace": Function(signatures.text(3, STRING), constants.replace),
    "left": Function(
        signatures.each(STRING, "a string and an integer", is_text, pa.types.is_integer),
        constants.with_constants("left", texts.left),
    ),
    "right": Function(
        signatures.each(STRING, "a string and an integer", is_text, pa.types.is_integer),
        constants.with_constants("right", texts.right),
    ),
    "split_part": Function(
        signatures.each(STRING, "two strings and an integer", is_text, is_text, pa.types.is_integer),
        constants.with_constants("split_part", texts.split_part),
    ),
    "like": Function(signatures.text(2, BOOL), constants.pattern(pc.match_like, "LIKE")),
    "ilike": Function(signatures.text(2, BOOL), constants.pattern(texts.ilike, "ILIKE")),
    "starts_with": Function(signatures.text(2, BOOL), constants.pattern(pc.starts_with, "STARTS_WITH")),
    "ends_with": Function(signatures.text(2, BOOL), constants.pattern(pc.ends_with, "ENDS_WITH")),
    "contains": Function(signatures.text(2, BOOL), constants.pattern(pc.match_substring, "CONTAINS")),
    # RE2 runs in time linear in the text, so no pattern can hang a unit.
    "regexp_like": Function(signatures.text(2, BOOL), constants.pattern(pc.match_substring_regex, "REGEXP_LIKE")),
    **{name: Function(signatures.instant, _of_instant(field)) for name, field in times.FIELDS.items()},
    "epoch": Function(signatures.epoch, _of_instant(times.epoch)),
    "date_trunc": Function(
        signatures.truncate,
        constants.with_constants("date_trunc", lambda value, unit: times.truncate(_instant(value), unit)),
    ),
}
"""What a query may call, by name."""

PUBLIC_FUNCTIONS = sorted(
    FUNCTIONS.keys() - COMPARISONS - INFIX.keys() - {"not", "is_null", "same", "negate", "case", "cast"}
)
"""The names a query may write as a function call."""
