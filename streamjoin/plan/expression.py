"""Expressions over stream columns: their types, their text, and their vectorised evaluation.

An expression is a tree of `Column`, `Literal` and `Call`. What a call may be is one table, `FUNCTIONS`: nothing outside
it can be written in a query, and nothing in it can reach a file, a shell or a class.

Semantics follow SQL's three-valued logic: NULL in, NULL out, except for AND, OR, IS and COALESCE. Numbers are
computed as int64, decimal or float64, as `types.py` says. What has no value is NULL and so never matches: a division
by zero, or an integer result outside int64. NaN equals NaN and is greater than every other number, -0.0 equals 0.0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.errors import InputError, QueryError, RunError
from streamjoin.plan.decimals import shortened, to_float64, to_text
from streamjoin.plan.functions import rounding, texts, times
from streamjoin.plan.schema import type_name
from streamjoin.plan.types import (
    BOOL,
    DIGITS_MAX,
    DURATION,
    DURATION_NS,
    FLOAT64,
    INT64,
    NANOSECONDS,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    as_decimal,
    common_type,
    comparison_type,
    decimal,
    is_instant,
    is_number,
    is_text,
    number_type,
    product_type,
    sum_type,
    too_wide,
)

Value: TypeAlias = "pa.Array | pa.Scalar"
Columns: TypeAlias = Mapping[tuple[str, str], pa.Array]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a stream; evaluates to the array the caller holds under (stream, name)."""

    stream: str
    name: str
    type: pa.DataType

    def __str__(self) -> str:
        return f"{self.stream}.{self.name}"


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. `value` is what `pa.scalar(value, type)` takes."""

    value: Any
    type: pa.DataType

    def __str__(self) -> str:
        if self.value is None:
            return "NULL"
        if pa.types.is_string(self.type):
            return "'" + self.value.replace("'", "''") + "'"
        if pa.types.is_timestamp(self.type) and self.type.unit == "ns":
            return f"TIMESTAMP '{pa.scalar(self.value, self.type).cast(STRING).as_py()}'"
        if pa.types.is_timestamp(self.type) or pa.types.is_date(self.type):
            return f"{type_name(self.type).upper()} '{self.value}'"
        if pa.types.is_duration(self.type):
            return f"INTERVAL {self.value} {'NANO' if self.type.unit == 'ns' else 'MICRO'}SECONDS"
        if isinstance(self.value, Decimal):
            return f"{self.value:f}"
        return str(self.value).upper() if isinstance(self.value, bool) else str(self.value)


@dataclass(frozen=True, slots=True)
class Call:
    """A function of `FUNCTIONS`, or a registered predicate, applied to arguments of the right types."""

    function: str
    args: tuple[Expression, ...]
    type: pa.DataType

    def __str__(self) -> str:
        words = [str(arg) for arg in self.args]
        if self.function in _INFIX and len(words) == 2:
            return f"({words[0]} {_INFIX[self.function]} {words[1]})"
        if self.function == "not":
            inner = self.args[0]
            return inner._same(False) if isinstance(inner, Call) and inner.function == "same" else f"(NOT {words[0]})"
        if self.function == "same":
            return self._same(True)
        if self.function == "is_null":
            return f"({words[0]} IS NULL)"
        if self.function == "cast":
            return f"CAST({words[0]} AS {type_name(self.type)})"
        return f"{self.function.upper()}({', '.join(words)})"

    def _same(self, holds: bool) -> str:
        left, right = self.args
        if isinstance(right, Literal) and isinstance(right.value, bool):
            return f"({left} IS {'' if holds else 'NOT '}{right})"
        return f"({left} IS {'NOT ' if holds else ''}DISTINCT FROM {right})"


Expression: TypeAlias = "Column | Literal | Call"

TRUE = Literal(True, BOOL)

_INFIX = {
    "and": "AND",
    "or": "OR",
    "eq": "=",
    "ne": "<>",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "modulo": "%",
    "like": "LIKE",
    "ilike": "ILIKE",
}


_READS_NULL = {"and", "or", "is_null", "same", "coalesce", "nullif", "case", "if", "cast"}


def walk(expression: Expression) -> Iterator[Expression]:
    """Every node of the tree, parents first."""
    yield expression
    if isinstance(expression, Call):
        for arg in expression.args:
            yield from walk(arg)


def columns_of(expression: Expression) -> frozenset[tuple[str, str]]:
    """The (stream, column) pairs an expression reads."""
    return frozenset((node.stream, node.name) for node in walk(expression) if isinstance(node, Column))


def streams_of(expression: Expression) -> frozenset[str]:
    """The streams an expression reads."""
    return frozenset(stream for stream, _ in columns_of(expression))


def conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """The parts of a conjunction, left to right; an expression without AND is one part, TRUE is none."""
    if expression == TRUE:
        return ()
    if isinstance(expression, Call) and expression.function == "and":
        return conjuncts(expression.args[0]) + conjuncts(expression.args[1])
    return (expression,)


def conjunction(parts: Sequence[Expression]) -> Expression:
    """The AND of all parts, in their order; TRUE where there are none."""
    if len(parts) < 2:
        return parts[0] if parts else TRUE
    # Halves: a chain of 500 parts would be too deep to walk.
    middle = (len(parts) + 1) // 2
    return Call("and", (conjunction(parts[:middle]), conjunction(parts[middle:])), BOOL)


# --- types -----------------------------------------------------------------------------------------------------------


def cast(expression: Expression, kind: pa.DataType) -> Expression:
    """`expression` as `kind`; itself where it has that type already, and a constant number as one of that type."""
    if expression.type == kind:
        return expression
    if isinstance(expression, Literal) and is_number(expression.type) and is_number(kind):
        return Literal(_cast([pa.scalar(expression.value, expression.type)], kind).as_py(), kind)
    return Call("cast", (expression,), kind)


# --- evaluation ------------------------------------------------------------------------------------------------------


def evaluate(
    expression: Expression,
    columns: Columns,
    rows: int,
    predicates: Mapping[str, Callable[..., Any]] | None = None,
) -> pa.Array:
    """The values of an expression.

    Args:
        columns: arrays of `rows` values for every column the expression reads.
        predicates: registered vectorised predicates by name.
    Returns:
        An array of `rows` values of the expression's type.
    Raises:
        RunError: a registered predicate failed, or gave something else than one boolean a row.
    Cost: one vectorised pass a node.
    """
    value = _evaluate(expression, columns, rows, predicates or {})
    if isinstance(value, pa.Scalar):
        return pa.repeat(value, rows)
    return value.combine_chunks() if isinstance(value, pa.ChunkedArray) else value


def filter_mask(
    expression: Expression,
    columns: Columns,
    rows: int,
    predicates: Mapping[str, Callable[..., Any]] | None = None,
) -> np.ndarray:
    """Which rows satisfy a predicate, bool of shape (rows,): NULL does not."""
    mask = evaluate(expression, columns, rows, predicates)
    return np.asarray(pc.fill_null(mask, False).to_numpy(zero_copy_only=False), dtype=bool)


def _evaluate(
    expression: Expression, columns: Columns, rows: int, predicates: Mapping[str, Callable[..., Any]]
) -> Value:
    match expression:
        case Column(stream, name, _):
            return columns[(stream, name)]
        case Literal(value, kind):
            return pa.scalar(value, kind)
        case Call(function, args, kind):
            values = [_evaluate(arg, columns, rows, predicates) for arg in args]
            # Arrow has no kernels for NULL without a type; everything else gives NULL where an argument is one.
            if function not in _READS_NULL and any(pa.types.is_null(value.type) for value in values):
                return pa.scalar(None, kind)
            if function in FUNCTIONS:
                return FUNCTIONS[function].compute(values, kind)
            return _registered(function, predicates, values, rows)


def _registered(name: str, predicates: Mapping[str, Callable[..., Any]], values: list[Value], rows: int) -> pa.Array:
    arrays = [pa.repeat(value, rows) if isinstance(value, pa.Scalar) else value for value in values]
    try:
        answer = predicates[name](*[array.to_numpy(zero_copy_only=False) for array in arrays])
    except Exception as cause:
        raise RunError(f"predicate {name} failed on a block of {rows} rows: {type(cause).__name__}: {cause}") from cause
    mask = np.asarray(answer)
    if mask.shape != (rows,) or mask.dtype != np.bool_:
        raise RunError(
            f"predicate {name} must give one boolean a row: for {rows} rows it gave {mask.dtype} of shape {mask.shape}"
        )
    return pa.array(mask)


@dataclass(frozen=True, slots=True)
class Function:
    """One row of the allow-list.

    Args:
        signature: the types of the arguments -> the type of the result; raises InputError with what it takes.
        compute: argument values and the result type -> the result.
    """

    signature: Callable[[Sequence[pa.DataType]], pa.DataType]
    compute: Callable[[list[Any], pa.DataType], Value]


def call(function: str, *args: Expression) -> Call:
    """A call with its arguments cast to what the function works on.

    Raises:
        QueryError: no such function, or arguments it does not take. The caller adds the place.
    """
    if function not in FUNCTIONS:
        raise QueryError(f"there is no function {function.upper()}; functions are {', '.join(PUBLIC_FUNCTIONS)}")
    kinds = [arg.type for arg in args]
    try:
        result = FUNCTIONS[function].signature(kinds)
    except InputError as wrong:
        raise QueryError(f"{function.upper()}: {wrong.message}") from None
    if function in _COMPARISONS:
        return _comparison(function, *args)
    if function in _ARITHMETIC and is_number(result):
        return Call(function, tuple(cast(arg, _term_type(function, kinds, result, arg.type)) for arg in args), result)
    return Call(function, args, result)


_MIRRORED = {"eq": "eq", "ne": "ne", "same": "same", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def _comparison(function: str, left: Expression, right: Expression) -> Call:
    """A comparison of two values in their common type; beside a column, a constant takes the column's form."""
    if isinstance(left, Literal) and not isinstance(right, Literal):
        mirrored = _comparison(_MIRRORED[function], right, left)
        return Call(_MIRRORED[mirrored.function], (mirrored.args[1], mirrored.args[0]), BOOL)
    if isinstance(right, Literal):
        right = _beside(function, left.type, right)
    if too_wide(left.type, right.type):
        return Call(function, (cast(left, as_decimal(left.type)), cast(right, as_decimal(right.type))), BOOL)
    common = comparison_type(left.type, right.type)
    return Call(function, (cast(left, common), cast(right, common)), BOOL)


def _beside(function: str, kind: pa.DataType, constant: Literal) -> Literal:
    """The constant as it is cheapest to compare values of `kind` with; the comparison means the same."""
    if constant.value is None:
        return constant
    if pa.types.is_decimal(kind) and pa.types.is_integer(constant.type):
        return decimal_literal(Decimal(constant.value))
    if pa.types.is_integer(kind) and pa.types.is_decimal(constant.type):
        # x < 2.5 is x < 3, and x <= 2.5 is x <= 2; x = 2.5 stays as it is.
        exact = Fraction(constant.value)
        whole = math.ceil(exact) if function in ("lt", "ge") else math.floor(exact)
        if (whole == exact or function in ("lt", "le", "gt", "ge")) and -(2**63) <= whole < 2**63:
            return Literal(whole, INT64)
    finer = {TIMESTAMP_NS: TIMESTAMP, DURATION_NS: DURATION}.get(kind)
    if finer is not None and constant.type == finer:
        nanoseconds = _cast([pa.scalar(constant.value, constant.type)], kind).cast(INT64).as_py()
        return constant if nanoseconds is None else Literal(nanoseconds, kind)
    return constant


def decimal_literal(value: Decimal) -> Literal:
    """A constant of the smallest decimal type that holds it.

    Raises:
        QueryError: it has more than 76 digits.
    """
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    precision = max(len(digits) + max(exponent, 0), scale, 1)
    if precision > DIGITS_MAX:
        raise QueryError(f"a number has {DIGITS_MAX} digits at most; write it as a float, such as 1e20")
    return Literal(value, decimal(precision, scale))


def _term_type(function: str, kinds: Sequence[pa.DataType], result: pa.DataType, own: pa.DataType) -> pa.DataType:
    """What a term of a sum or product is cast to, so that Arrow's result is of the type `result`."""
    if not pa.types.is_decimal(result):
        return result
    kind = as_decimal(own) if function == "multiply" else number_type(*kinds)
    return pa.decimal256(kind.precision, kind.scale) if result.bit_width == 256 else kind


# --- the allow-list: signatures ---------------------------------------------------------------------------------------


def _takes(count: int | tuple[int, int], what: str, kinds: Sequence[pa.DataType], test: Callable[[Any], bool]) -> None:
    low, high = (count, count) if isinstance(count, int) else count
    if not low <= len(kinds) <= high:
        many = str(low) if low == high else f"{low} to {high}"
        raise InputError(f"takes {many} argument{'s' if high != 1 else ''}, not {len(kinds)}")
    for kind in kinds:
        if not (test(kind) or pa.types.is_null(kind)):
            raise InputError(f"takes {what}, not {type_name(kind)}")


def _sign_compare(kinds: Sequence[pa.DataType]) -> pa.DataType:
    _takes(2, "two values", kinds, lambda kind: True)
    if comparison_type(*kinds) is None:
        raise InputError(f"cannot compare {type_name(kinds[0])} with {type_name(kinds[1])}")
    return BOOL


def _sign_logic(kinds: Sequence[pa.DataType]) -> pa.DataType:
    _takes((1, 2), "booleans", kinds, pa.types.is_boolean)
    return BOOL


def _sign_arithmetic(kinds: Sequence[pa.DataType]) -> pa.DataType:
    if len(kinds) == 2 and is_number(kinds[0]) and is_number(kinds[1]):
        return sum_type(*kinds)
    _takes(2, "two numbers", kinds, is_number)
    return INT64


def _sign_multiply(kinds: Sequence[pa.DataType]) -> pa.DataType:
    if len(kinds) == 2 and is_number(kinds[0]) and is_number(kinds[1]):
        return product_type(*kinds)
    return _sign_arithmetic(kinds)


def _sign_add(kinds: Sequence[pa.DataType]) -> pa.DataType:
    if len(kinds) == 2 and any(pa.types.is_duration(kind) for kind in kinds):
        if any(is_instant(kind) for kind in kinds):
            return TIMESTAMP_NS if _is_fine(kinds) else TIMESTAMP
        if all(pa.types.is_duration(kind) for kind in kinds):
            return DURATION_NS if _is_fine(kinds) else DURATION
    return _sign_arithmetic(kinds)


def _sign_subtract(kinds: Sequence[pa.DataType]) -> pa.DataType:
    if len(kinds) == 2 and is_instant(kinds[0]):
        if is_instant(kinds[1]):
            return DURATION_NS if _is_fine(kinds) else DURATION
        if pa.types.is_duration(kinds[1]):
            return TIMESTAMP_NS if _is_fine(kinds) else TIMESTAMP
    if len(kinds) == 2 and all(pa.types.is_duration(kind) for kind in kinds):
        return DURATION_NS if _is_fine(kinds) else DURATION
    return _sign_arithmetic(kinds)


def _is_fine(kinds: Sequence[pa.DataType]) -> bool:
    return any(kind in (TIMESTAMP_NS, DURATION_NS) for kind in kinds)


def _sign_divide(kinds: Sequence[pa.DataType]) -> pa.DataType:
    _takes(2, "two numbers", kinds, is_number)
    return FLOAT64


def _sign_modulo(kinds: Sequence[pa.DataType]) -> pa.DataType:
    _takes(2, "two integers", kinds, pa.types.is_integer)
    return INT64


def _sign_same_number(kinds: Sequence[pa.DataType]) -> pa.DataType:
    if len(kinds) == 1 and pa.types.is_duration(kinds[0]):
        return kinds[0]
    _takes(1, "a number", kinds, is_number)
    return INT64 if pa.types.is_integer(kinds[0]) else FLOAT64 if pa.types.is_floating(kinds[0]) else kinds[0]


def _sign_to_integer(kinds: Sequence[pa.DataType]) -> pa.DataType:
    _takes(1, "a number", kinds, is_number)
    return INT64


def _sign_to_float(count: int) -> Callable[[Sequence[pa.DataType]], pa.DataType]:
    def sign(kinds: Sequence[pa.DataType]) -> pa.DataType:
        _takes(count, "numbers", kinds, is_number)
        return FLOAT64

    return sign


def _sign_text(count: int | tuple[int, int], result: pa.DataType) -> Callable[[Sequence[pa.DataType]], pa.DataType]:
    def sign(kinds: Sequence[pa.DataType]) -> pa.DataType:
        _takes(count, "strings", kinds, is_text)
        return result

    return sign


def _sign_substring(kinds: Sequence[pa.DataType]) -> pa.DataType:
    _takes((2, 3), "a string and one or two integers", kinds, lambda kind: is_text(kind) or pa.types.is_integer(kind))
    if not is_text(kinds[0]) or any(is_text(kind) for kind in kinds[1:]):
        raise InputError("takes a string and one or two integers")
    return STRING


def _sign_common(kinds: Sequence[pa.DataType]) -> pa.DataType:
    if not kinds:
        raise InputError("takes at least one argument")
    common = kinds[0]
    for kind in kinds[1:]:
        merged = common_type(common, kind)
        if merged is None:
            raise InputError(f"cannot mix {type_name(common)} and {type_name(kind)}")
        common = merged
    return common


def _sign_case(kinds: Sequence[pa.DataType]) -> pa.DataType:
    return _sign_common(kinds[1:])


def _sign_if(kinds: Sequence[pa.DataType]) -> pa.DataType:
    _takes(3, "values", kinds, lambda kind: True)
    _takes(1, "a condition first", kinds[:1], pa.types.is_boolean)
    return _sign_common(kinds[1:])


def _sign_any(kinds: Sequence[pa.DataType]) -> pa.DataType:
    _takes(1, "one value", kinds, lambda kind: True)
    return BOOL


def _sign_round(kinds: Sequence[pa.DataType]) -> pa.DataType:
    _takes((1, 2), "numbers", kinds, is_number)
    if len(kinds) == 1:
        return INT64
    _takes(1, "an integer of digits", kinds[1:], pa.types.is_integer)
    # Of decimals the digits decide, see `rounding.rounded_type`.
    return _sign_same_number(kinds[:1])


def _sign_each(result: pa.DataType, what: str, *tests: Callable[[Any], bool]) -> Callable[[Any], pa.DataType]:
    def sign(kinds: Sequence[pa.DataType]) -> pa.DataType:
        _takes(len(tests), what, kinds, lambda kind: True)
        for kind, test in zip(kinds, tests, strict=True):
            _takes(1, what, [kind], test)
        return result

    return sign


def _sign_truncate(kinds: Sequence[pa.DataType]) -> pa.DataType:
    _sign_each(TIMESTAMP, "a unit and a timestamp or date", is_text, is_instant)(kinds)
    return kinds[1] if pa.types.is_timestamp(kinds[1]) else TIMESTAMP


def _sign_epoch(kinds: Sequence[pa.DataType]) -> pa.DataType:
    what = "a timestamp, date or difference of such"
    _takes(1, what, kinds, lambda kind: is_instant(kind) or pa.types.is_duration(kind))
    return FLOAT64


def _sign_instant(kinds: Sequence[pa.DataType]) -> pa.DataType:
    _takes(1, "a timestamp or date", kinds, is_instant)
    return INT64


# --- the allow-list: computations -------------------------------------------------------------------------------------


def _compare(operator: str) -> Callable[[list[Any], pa.DataType], Value]:
    plain = {
        "eq": pc.equal,
        "ne": pc.not_equal,
        "lt": pc.less,
        "le": pc.less_equal,
        "gt": pc.greater,
        "ge": pc.greater_equal,
    }

    def compute(values: list[Any], _: pa.DataType) -> Value:
        left, right = values
        if pa.types.is_decimal(left.type) and too_wide(left.type, right.type):
            return _compare_wide(operator, left, right)
        if not pa.types.is_floating(left.type) or not (_has_nan(left) or _has_nan(right)):
            return plain[operator](left, right)
        # NaN sorts above all numbers: compare (is NaN, number) pairs. NULL stays NULL.
        left_nan, right_nan = pc.is_nan(left), pc.is_nan(right)
        equal = pc.or_(pc.equal(left, right), pc.and_(left_nan, right_nan))
        less = pc.or_(pc.less(left, right), pc.and_(pc.invert(left_nan), right_nan))
        table = {
            "eq": lambda: equal,
            "ne": lambda: pc.invert(equal),
            "lt": lambda: less,
            "le": lambda: pc.or_(less, equal),
            "gt": lambda: pc.invert(pc.or_(less, equal)),
            "ge": lambda: pc.invert(less),
        }
        return table[operator]()

    return compute


def _compare_wide(operator: str, left: Value, right: Value) -> Value:
    # What has fewer digits after the point is compared with the nearest such numbers below and above the other.
    if left.type.scale > right.type.scale:
        return _compare_wide(_MIRRORED[operator], right, left)
    scale = left.type.scale
    below, above = (shortened(right, scale, way).cast(decimal(DIGITS_MAX, scale)) for way in ("down", "up"))
    left = left.cast(decimal(DIGITS_MAX, scale))
    if operator in ("eq", "ne"):
        equal = pc.and_(pc.equal(left, below), pc.equal(left, above))
        return equal if operator == "eq" else pc.invert(equal)
    compute = {"lt": pc.less, "le": pc.less_equal, "gt": pc.greater, "ge": pc.greater_equal}[operator]
    return compute(left, below if operator in ("le", "gt") else above)


def _has_nan(value: Value) -> bool:
    nan = pc.is_nan(value)
    return bool(nan.as_py()) if isinstance(nan, pa.Scalar) else bool(pc.any(nan).as_py())


def _arithmetic(checked: Callable[..., Any], wrapping: Callable[..., Any]) -> Callable[[list[Any], pa.DataType], Value]:
    def compute(values: list[Any], kind: pa.DataType) -> Value:
        left, right = values
        if not pa.types.is_integer(kind):
            result = wrapping(left, right)
            return _as(result, kind)
        try:
            return checked(left, right)
        except pa.ArrowInvalid:
            return _exact_or_null(wrapping, left, right)

    return compute


def _exact_or_null(wrapping: Callable[..., Any], left: Value, right: Value) -> Value:
    # Rare: some row left int64. Which one shows where the float64 result is far from the wrapped one.
    result = wrapping(left, right)
    about = wrapping(left.cast(FLOAT64, safe=False), right.cast(FLOAT64, safe=False))
    off = pc.greater(pc.abs(pc.subtract(about, result.cast(FLOAT64, safe=False))), 2.0**62)
    return pc.if_else(off, pa.scalar(None, INT64), result)


def _same(values: list[Any], _: pa.DataType) -> Value:
    left_null, right_null = (pc.is_null(value) for value in values)
    both_null = pc.and_(left_null, right_null)
    # NULL without a type is compared with nothing.
    if any(pa.types.is_null(value.type) for value in values):
        return both_null
    return pc.or_(both_null, pc.fill_null(_compare("eq")(values, BOOL), False))


def _divide(values: list[Any], _: pa.DataType) -> Value:
    left, right = values
    return pc.divide(left, pc.if_else(pc.equal(right, 0.0), pa.scalar(None, FLOAT64), right))


def _modulo(values: list[Any], _: pa.DataType) -> Value:
    left = values[0].cast(INT64)
    right = values[1].cast(INT64)
    # -1 would overflow on the smallest integer, and every remainder by it is 0 anyway.
    divisor = pc.if_else(pc.equal(right, 0), pa.scalar(None, INT64), pc.if_else(pc.equal(right, -1), 1, right))
    return pc.subtract(left, pc.multiply(pc.divide(left, divisor), divisor))


def _add(values: list[Any], kind: pa.DataType) -> Value:
    if is_number(kind):
        return _arithmetic(pc.add_checked, pc.add)(values, kind)
    return _time_arithmetic(pc.add_checked, pc.add, values, kind)


def _subtract(values: list[Any], kind: pa.DataType) -> Value:
    if is_number(kind):
        return _arithmetic(pc.subtract_checked, pc.subtract)(values, kind)
    return _time_arithmetic(pc.subtract_checked, pc.subtract, values, kind)


def _time_arithmetic(
    checked: Callable[..., Any], wrapping: Callable[..., Any], values: list[Any], kind: pa.DataType
) -> Value:
    # As whole numbers of one unit, so that what leaves int64 is NULL here too.
    numbers = [_cast([value], _in_unit(value.type, kind.unit)).cast(INT64) for value in values]
    return _arithmetic(checked, wrapping)(numbers, INT64).cast(kind)


def _in_unit(kind: pa.DataType, unit: str) -> pa.DataType:
    return pa.duration(unit) if pa.types.is_duration(kind) else pa.timestamp(unit, tz="UTC")


def _cast(values: list[Any], kind: pa.DataType) -> Value:
    (value,) = values
    if value.type == kind:
        return value
    if pa.types.is_boolean(value.type) and is_number(kind):
        value = value.cast(pa.int8())
    if is_number(value.type) and is_number(kind):
        return _cast_number(value, kind)
    try:
        return _cast_all(value, kind)
    except pa.ArrowInvalid:
        # Rare: some value has no counterpart, such as 'abc' as an integer. Only that one becomes NULL.
        if isinstance(value, pa.Scalar):
            return _cast_one(value, kind)
        return pa.array([_cast_one(one, kind) for one in value], kind)


def _cast_number(value: Value, kind: pa.DataType) -> Value:
    """A number as another type; NULL where it has no counterpart there."""
    given = value.type
    if pa.types.is_floating(kind):
        if not pa.types.is_decimal(given):
            return value.cast(kind, safe=False)
        rounded = to_float64(value) if not isinstance(value, pa.Scalar) else value.cast(STRING).cast(FLOAT64)
        return rounded.cast(kind, safe=False)
    if pa.types.is_floating(given):
        if pa.types.is_integer(kind):
            limit = 2.0 ** (kind.bit_width - 1)
            whole = pc.trunc(value)
            inside = pc.and_(pc.greater_equal(whole, -limit), pc.less(whole, limit))
            return pc.if_else(inside, whole, pa.scalar(None, given)).cast(kind, safe=False)
        limit = 10.0 ** (kind.precision - kind.scale)
        inside = pc.less(pc.abs(value), limit)
        # Next to the limit a value may round up to it; as a wider decimal it is seen.
        wide = pc.if_else(inside, value, pa.scalar(None, given)).cast(_wider(kind))
        return _cast_decimal(wide, kind)
    if pa.types.is_integer(given):
        if pa.types.is_integer(kind):
            limit = 2 ** (kind.bit_width - 1)
            if kind.bit_width >= given.bit_width:
                return value.cast(kind)
            inside = pc.and_(pc.greater_equal(value, -limit), pc.less(value, limit))
            return pc.if_else(inside, value, pa.scalar(None, given)).cast(kind)
        value = value.cast(pa.decimal128(19, 0))
    if pa.types.is_integer(kind):
        whole = shortened(value, 0, "towards_zero")
        limit = 2 ** (kind.bit_width - 1)
        inside = pc.and_(pc.greater_equal(whole, _decimal(-limit)), pc.less(whole, _decimal(limit)))
        return pc.if_else(inside, whole, pa.scalar(None, whole.type)).cast(kind)
    return _cast_decimal(value, kind)


def _cast_decimal(value: Value, kind: pa.DataType) -> Value:
    """A decimal as another, rounded half away from zero; NULL where it has too many digits before the point."""
    given = value.type
    if kind.scale < given.scale:
        value = shortened(value, kind.scale)
    whole = kind.precision - kind.scale
    if whole < DIGITS_MAX and (kind.scale < given.scale or whole < given.precision - given.scale):
        fits = pc.less(pc.abs(value), _decimal(10**whole))
        value = pc.if_else(fits, value, pa.scalar(None, value.type))
    return value.cast(kind)


def _wider(kind: pa.DataType) -> pa.DataType:
    """A decimal type with room for a digit more before the point, so that rounding up fits."""
    return pa.decimal256(min(max(kind.precision, kind.scale) + 1, DIGITS_MAX), kind.scale)


def _decimal(value: int) -> pa.Scalar:
    constant = decimal_literal(Decimal(value))
    return pa.scalar(constant.value, constant.type)


_NANOSECONDS_IN_US = 1_000
_LARGEST_US_IN_NS = (2**63 - 1) // _NANOSECONDS_IN_US


def _cast_all(value: Value, kind: pa.DataType) -> Value:
    given = value.type
    if kind == NANOSECONDS and not is_number(given):
        if getattr(given, "unit", None) == "ns" and not pa.types.is_date(given):
            return value.cast(INT64).cast(kind)
        value = value if pa.types.is_duration(given) else value.cast(TIMESTAMP)
        return pc.multiply(value.cast(INT64).cast(pa.decimal128(19, 0)), _decimal(_NANOSECONDS_IN_US)).cast(kind)
    if kind in (TIMESTAMP_NS, DURATION_NS) and not is_text(given):
        us = value if pa.types.is_duration(given) else value.cast(TIMESTAMP)
        inside = pc.less_equal(pc.abs(us.cast(INT64)), _LARGEST_US_IN_NS)
        return pc.if_else(inside, us, pa.scalar(None, us.type)).cast(kind)
    if given == TIMESTAMP_NS and kind == TIMESTAMP:
        return times.to_microseconds(value).cast(kind)
    if given == DURATION_NS and kind == DURATION:
        return value.cast(kind, safe=False)
    if is_text(given) and pa.types.is_timestamp(kind):
        return times.from_text(value, kind)
    if pa.types.is_decimal(given) and is_text(kind):
        return to_text(value)
    if is_instant(given) and is_text(kind):
        return times.to_text(value)
    return value.cast(kind)


def _cast_one(value: pa.Scalar, kind: pa.DataType) -> pa.Scalar:
    try:
        return _cast_all(value, kind)
    except pa.ArrowInvalid:
        return pa.scalar(None, kind)


def _abs(values: list[Any], kind: pa.DataType) -> Value:
    (value,) = values
    if pa.types.is_integer(value.type) or pa.types.is_duration(kind):
        value = value.cast(INT64)
        value = pc.abs(pc.if_else(pc.equal(value, -(2**63)), pa.scalar(None, INT64), value))
        return value.cast(kind)
    return pc.abs(value)


def _negate(values: list[Any], kind: pa.DataType) -> Value:
    (value,) = values
    return pc.negate(value) if pa.types.is_decimal(kind) else _subtract([pa.scalar(0, kind), value], kind)


def _to_whole(round_mode: str) -> Callable[[list[Any], pa.DataType], Value]:
    def run(values: list[Any], kind: pa.DataType) -> Value:
        (value,) = values
        if pa.types.is_decimal(value.type):
            value = shortened(value, 0, round_mode)
        elif pa.types.is_floating(value.type):
            is_half = round_mode == "half_towards_infinity"
            value = rounding.half_away(value) if is_half else pc.round(value, round_mode=round_mode)
        return _as(value, kind)  # an integer is whole already

    return run


def _unary(compute: Callable[..., Any]) -> Callable[[list[Any], pa.DataType], Value]:
    return lambda values, kind: _as(compute(values[0]), kind)


def _as(value: Value, kind: pa.DataType) -> Value:
    return value if value.type == kind else _cast([value], kind)


def _instant(value: Value) -> Value:
    return _as(value, TIMESTAMP) if pa.types.is_date(value.type) else value


def _of_instant(compute: Callable[[Any], Any]) -> Callable[[list[Any], pa.DataType], Value]:
    return lambda values, kind: _as(compute(_instant(values[0])), kind)


def _float_argument(compute: Callable[..., Any]) -> Callable[[list[Any], pa.DataType], Value]:
    def run(values: list[Any], kind: pa.DataType) -> Value:
        result = compute(*[_as(value, FLOAT64) for value in values])
        return pc.if_else(pc.is_nan(result), pa.scalar(None, FLOAT64), result) if compute is pc.sqrt else result

    return run


_to_nearest = _to_whole("half_towards_infinity")


def _round(values: list[Any], kind: pa.DataType) -> Value:
    if len(values) == 1:
        return _to_nearest(values, kind)
    digits = _constant(values, "ROUND", 1)
    return pa.scalar(None, kind) if digits is None else _as(rounding.round_to(values[0], digits), kind)


def _extreme(operator: str) -> Callable[[list[Any], pa.DataType], Value]:
    def compute(values: list[Any], kind: pa.DataType) -> Value:
        best, *others = _common(values, kind)
        for other in others:
            # NULL where either is; NaN has its place in the order.
            best = pc.if_else(_compare(operator)([best, other], BOOL), best, other)
        return best

    return compute


def _common(values: list[Any], kind: pa.DataType) -> list[Any]:
    return [_as(value, kind) for value in values]


def _constant(values: list[Any], function: str, place: int) -> Any:
    value = values[place]
    if not isinstance(value, pa.Scalar):
        raise RunError(f"{function}: argument {place + 1} must be a constant")
    return value.as_py()


def _substring(values: list[Any], _: pa.DataType) -> Value:
    start = _constant(values, "SUBSTRING", 1)
    length = _constant(values, "SUBSTRING", 2) if len(values) == 3 else None
    if start is None or (len(values) == 3 and length is None):
        return pa.scalar(None, STRING)
    begin = max(start - 1, 0)
    stop = None if length is None else max(start - 1 + length, begin)
    return pc.utf8_slice_codeunits(values[0], begin, stop)


def _pattern(compute: Callable[..., Any], name: str) -> Callable[[list[Any], pa.DataType], Value]:
    def run(values: list[Any], _: pa.DataType) -> Value:
        pattern = _constant(values, name, 1)
        return pa.scalar(None, BOOL) if pattern is None else compute(values[0], pattern)

    return run


def _with_constants(function: str, compute: Callable[..., Any]) -> Callable[[list[Any], pa.DataType], Value]:
    def run(values: list[Any], kind: pa.DataType) -> Value:
        places = PATTERN_ARGUMENTS[function]
        constants = [_constant(values, function.upper(), place) for place in places]
        if None in constants:
            return pa.scalar(None, kind)
        return compute(*[value for place, value in enumerate(values) if place not in places], *constants)

    return run


def _replace(values: list[Any], _: pa.DataType) -> Value:
    old, new = _constant(values, "REPLACE", 1), _constant(values, "REPLACE", 2)
    if old is None or new is None:
        return pa.scalar(None, STRING)
    return values[0] if old == "" else pc.replace_substring(values[0], old, new)


def _case(values: list[Any], kind: pa.DataType) -> Value:
    condition, then, otherwise = values
    return pc.if_else(pc.fill_null(_as(condition, BOOL), False), _as(then, kind), _as(otherwise, kind))


def _nullif(values: list[Any], kind: pa.DataType) -> Value:
    left, right = _common(values, kind)
    return pc.if_else(pc.fill_null(_compare("eq")([left, right], BOOL), False), pa.scalar(None, kind), left)


_ARITHMETIC = {"add", "subtract", "multiply", "divide"}
_COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge"}

FUNCTIONS: dict[str, Function] = {
    **{name: Function(_sign_compare, _compare(name)) for name in _COMPARISONS},
    "same": Function(_sign_compare, _same),
    "and": Function(_sign_logic, lambda values, _: pc.and_kleene(*values)),
    "or": Function(_sign_logic, lambda values, _: pc.or_kleene(*values)),
    "not": Function(_sign_logic, lambda values, _: pc.invert(values[0])),
    "is_null": Function(_sign_any, lambda values, _: pc.is_null(values[0])),
    "add": Function(_sign_add, _add),
    "subtract": Function(_sign_subtract, _subtract),
    "multiply": Function(_sign_multiply, _arithmetic(pc.multiply_checked, pc.multiply)),
    "divide": Function(_sign_divide, _divide),
    "modulo": Function(_sign_modulo, _modulo),
    "negate": Function(_sign_same_number, _negate),
    "cast": Function(_sign_any, _cast),
    "abs": Function(_sign_same_number, _abs),
    "floor": Function(_sign_to_integer, _to_whole("down")),
    "ceil": Function(_sign_to_integer, _to_whole("up")),
    "round": Function(_sign_round, _round),
    "sqrt": Function(_sign_to_float(1), _float_argument(pc.sqrt)),
    "power": Function(_sign_to_float(2), _float_argument(pc.power)),
    "least": Function(_sign_common, _extreme("le")),
    "greatest": Function(_sign_common, _extreme("ge")),
    "coalesce": Function(_sign_common, lambda values, kind: pc.coalesce(*_common(values, kind))),
    "nullif": Function(_sign_common, _nullif),
    "case": Function(_sign_case, _case),
    "if": Function(_sign_if, _case),
    "lower": Function(_sign_text(1, STRING), _unary(pc.utf8_lower)),
    "upper": Function(_sign_text(1, STRING), _unary(pc.utf8_upper)),
    "length": Function(_sign_text(1, INT64), _unary(pc.utf8_length)),
    "trim": Function(_sign_text(1, STRING), _unary(pc.utf8_trim_whitespace)),
    "reverse": Function(_sign_text(1, STRING), _unary(pc.utf8_reverse)),
    "concat": Function(
        _sign_text((1, 64), STRING),
        lambda values, _: pc.binary_join_element_wise(*values, "", null_handling="emit_null"),
    ),
    "substring": Function(_sign_substring, _substring),
    "replace": Function(_sign_text(3, STRING), _replace),
    "left": Function(
        _sign_each(STRING, "a string and an integer", is_text, pa.types.is_integer),
        _with_constants("left", texts.left),
    ),
    "right": Function(
        _sign_each(STRING, "a string and an integer", is_text, pa.types.is_integer),
        _with_constants("right", texts.right),
    ),
    "split_part": Function(
        _sign_each(STRING, "two strings and an integer", is_text, is_text, pa.types.is_integer),
        _with_constants("split_part", texts.split_part),
    ),
    "like": Function(_sign_text(2, BOOL), _pattern(pc.match_like, "LIKE")),
    "ilike": Function(_sign_text(2, BOOL), _pattern(texts.ilike, "ILIKE")),
    "starts_with": Function(_sign_text(2, BOOL), _pattern(pc.starts_with, "STARTS_WITH")),
    "ends_with": Function(_sign_text(2, BOOL), _pattern(pc.ends_with, "ENDS_WITH")),
    "contains": Function(_sign_text(2, BOOL), _pattern(pc.match_substring, "CONTAINS")),
    # RE2 runs in time linear in the text, so no pattern can hang a unit.
    "regexp_like": Function(_sign_text(2, BOOL), _pattern(pc.match_substring_regex, "REGEXP_LIKE")),
    **{name: Function(_sign_instant, _of_instant(field)) for name, field in times.FIELDS.items()},
    "epoch": Function(_sign_epoch, _of_instant(times.epoch)),
    "date_trunc": Function(
        _sign_truncate, _with_constants("date_trunc", lambda value, unit: times.truncate(_instant(value), unit))
    ),
}
"""What a query may call, by name."""

PATTERN_ARGUMENTS = {
    "like": (1,),
    "ilike": (1,),
    "left": (1,),
    "right": (1,),
    "split_part": (1, 2),
    "round": (1,),
    "date_trunc": (0,),
    "starts_with": (1,),
    "ends_with": (1,),
    "contains": (1,),
    "regexp_like": (1,),
    "substring": (1, 2),
    "replace": (1, 2),
}
"""Arguments that must be constants, by position: they are compiled once, not once a row."""

PUBLIC_FUNCTIONS = sorted(
    FUNCTIONS.keys() - _COMPARISONS - _INFIX.keys() - {"not", "is_null", "same", "negate", "case", "cast"}
)
"""The names a query may write as a function call."""
