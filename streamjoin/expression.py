"""Expressions over stream columns: their types, their text, and their vectorised evaluation.

An expression is a tree of `Column`, `Literal` and `Call`. What a call may be is one table, `FUNCTIONS`: nothing outside
it can be written in a query, and nothing in it can reach a file, a shell or a class.

Semantics follow SQL's three-valued logic: NULL in, NULL out, except for AND, OR, IS NULL and COALESCE. Numbers are
computed as int64, decimal or float64. What has no value is NULL and so never matches: a division by zero, or an
integer result outside int64. NaN equals NaN and is greater than every other number, -0.0 equals 0.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.errors import InputError, QueryError, RunError
from streamjoin.schema import type_name

INT64 = pa.int64()
FLOAT64 = pa.float64()
BOOL = pa.bool_()
STRING = pa.string()
TIMESTAMP = pa.timestamp("us", tz="UTC")
DURATION = pa.duration("us")

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
        if pa.types.is_timestamp(self.type) or pa.types.is_date(self.type):
            return f"{type_name(self.type).upper()} '{self.value}'"
        if pa.types.is_duration(self.type):
            return f"INTERVAL {self.value} MICROSECONDS"
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
            return f"(NOT {words[0]})"
        if self.function == "is_null":
            return f"({words[0]} IS NULL)"
        if self.function == "cast":
            return f"CAST({words[0]} AS {type_name(self.type)})"
        return f"{self.function.upper()}({', '.join(words)})"


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
}


_READS_NULL = {"and", "or", "is_null", "coalesce", "nullif", "case", "cast"}


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


def is_number(kind: pa.DataType) -> bool:
    """Whether arithmetic works on `kind`."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def number_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type two numbers are computed in: float64 beats decimal beats int64."""
    if pa.types.is_floating(left) or pa.types.is_floating(right):
        return FLOAT64
    decimals = [kind if pa.types.is_decimal(kind) else pa.decimal128(19, 0) for kind in (left, right)]
    if pa.types.is_integer(left) and pa.types.is_integer(right):
        return INT64
    scale = max(kind.scale for kind in decimals)
    whole = max(kind.precision - kind.scale for kind in decimals)
    return pa.decimal128(whole + scale, scale) if whole + scale <= 38 else FLOAT64


def comparison_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type in which two values are compared, or None where they cannot be."""
    if is_number(left) and is_number(right):
        return number_type(left, right)
    if pa.types.is_null(left) or pa.types.is_null(right):
        return right if pa.types.is_null(left) else left
    if pa.types.is_temporal(left) and pa.types.is_temporal(right) and _is_instant(left) and _is_instant(right):
        return left if left == right and pa.types.is_date(left) else TIMESTAMP
    if _is_text(left) and _is_text(right):
        return STRING
    return left if left == right else None


def _is_instant(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def cast(expression: Expression, kind: pa.DataType) -> Expression:
    """`expression` as `kind`; itself where it has that type already."""
    return expression if expression.type == kind else Call("cast", (expression,), kind)


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
        common = comparison_type(*kinds)
        return Call(function, tuple(cast(arg, common) for arg in args), result)
    if function == "multiply" and pa.types.is_decimal(result):
        return Call(function, tuple(cast(arg, _as_decimal(arg.type)) for arg in args), result)
    if function in _ARITHMETIC and is_number(result):
        return Call(function, tuple(cast(arg, result) for arg in args), result)
    return Call(function, args, result)


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
        result = number_type(*kinds)
        if not pa.types.is_decimal(result):
            return result
        # A decimal sum needs one digit more than its terms, and 38 is the most there is.
        return pa.decimal128(result.precision + 1, result.scale) if result.precision < 38 else FLOAT64
    _takes(2, "two numbers", kinds, is_number)
    return INT64


def _sign_multiply(kinds: Sequence[pa.DataType]) -> pa.DataType:
    result = _sign_arithmetic(kinds)
    if not all(pa.types.is_decimal(kind) or pa.types.is_integer(kind) for kind in kinds) or result == INT64:
        return result
    left, right = (_as_decimal(kind) for kind in kinds)
    precision = left.precision + right.precision + 1
    return pa.decimal128(precision, left.scale + right.scale) if precision <= 38 else FLOAT64


def _as_decimal(kind: pa.DataType) -> pa.DataType:
    return kind if pa.types.is_decimal(kind) else pa.decimal128(19, 0)


def _sign_add(kinds: Sequence[pa.DataType]) -> pa.DataType:
    if len(kinds) == 2 and any(pa.types.is_duration(kind) for kind in kinds):
        if any(_is_instant(kind) for kind in kinds):
            return TIMESTAMP
        if kinds[0] == kinds[1]:
            return DURATION
    return _sign_arithmetic(kinds)


def _sign_subtract(kinds: Sequence[pa.DataType]) -> pa.DataType:
    if len(kinds) == 2 and _is_instant(kinds[0]):
        if _is_instant(kinds[1]):
            return DURATION
        if pa.types.is_duration(kinds[1]):
            return TIMESTAMP
    if len(kinds) == 2 and kinds[0] == kinds[1] == DURATION:
        return DURATION
    return _sign_arithmetic(kinds)


def _sign_divide(kinds: Sequence[pa.DataType]) -> pa.DataType:
    _takes(2, "two numbers", kinds, is_number)
    return FLOAT64


def _sign_modulo(kinds: Sequence[pa.DataType]) -> pa.DataType:
    _takes(2, "two integers", kinds, pa.types.is_integer)
    return INT64


def _sign_same_number(kinds: Sequence[pa.DataType]) -> pa.DataType:
    if len(kinds) == 1 and pa.types.is_duration(kinds[0]):
        return DURATION
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
        _takes(count, "strings", kinds, _is_text)
        return result

    return sign


def _sign_substring(kinds: Sequence[pa.DataType]) -> pa.DataType:
    _takes((2, 3), "a string and one or two integers", kinds, lambda kind: _is_text(kind) or pa.types.is_integer(kind))
    if not _is_text(kinds[0]) or any(_is_text(kind) for kind in kinds[1:]):
        raise InputError("takes a string and one or two integers")
    return STRING


def _sign_common(kinds: Sequence[pa.DataType]) -> pa.DataType:
    if not kinds:
        raise InputError("takes at least one argument")
    common = kinds[0]
    for kind in kinds[1:]:
        merged = comparison_type(common, kind)
        if merged is None:
            raise InputError(f"cannot mix {type_name(common)} and {type_name(kind)}")
        common = merged
    return common


def _sign_case(kinds: Sequence[pa.DataType]) -> pa.DataType:
    return _sign_common(kinds[1:])


def _sign_any(kinds: Sequence[pa.DataType]) -> pa.DataType:
    _takes(1, "one value", kinds, lambda kind: True)
    return BOOL


def _sign_instant(kinds: Sequence[pa.DataType]) -> pa.DataType:
    _takes(1, "a timestamp or date", kinds, _is_instant)
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
    # As microseconds, so that what leaves int64 is NULL here too.
    microseconds = [_instant(value).cast(INT64) for value in values]
    return _arithmetic(checked, wrapping)(microseconds, INT64).cast(kind)


def _instant(value: Value) -> Value:
    return value.cast(TIMESTAMP) if pa.types.is_date(value.type) else value


def _cast(values: list[Any], kind: pa.DataType) -> Value:
    (value,) = values
    if value.type == kind:
        return value
    if pa.types.is_boolean(value.type) and is_number(kind):
        value = value.cast(pa.int8())
    if pa.types.is_integer(kind) and pa.types.is_floating(value.type):
        # Outside the integers of this width there is none: NULL rather than a wrapped one.
        limit = 2.0 ** (kind.bit_width - 1)
        whole = pc.trunc(value)
        inside = pc.and_(pc.greater_equal(whole, -limit), pc.less(whole, limit))
        return pc.if_else(inside, whole, pa.scalar(None, value.type)).cast(kind, safe=False)
    if pa.types.is_floating(kind) and is_number(value.type):
        return value.cast(kind, safe=False)
    try:
        return _cast_all(value, kind)
    except pa.ArrowInvalid:
        # Rare: some value has no counterpart, such as 'abc' as an integer. Only that one becomes NULL.
        if isinstance(value, pa.Scalar):
            return _cast_one(value, kind)
        return pa.array([_cast_one(one, kind) for one in value], kind)


def _cast_all(value: Value, kind: pa.DataType) -> Value:
    if pa.types.is_decimal(value.type) and pa.types.is_integer(kind):
        return pc.trunc(value).cast(kind)
    if pa.types.is_decimal(value.type) and pa.types.is_decimal(kind) and kind.scale < value.type.scale:
        return pc.round(value, kind.scale, round_mode="half_towards_infinity").cast(kind)
    if pa.types.is_integer(value.type) and pa.types.is_decimal(kind):
        # Arrow asks for room for every int64, not only for those there are.
        return value.cast(pa.decimal128(38, kind.scale)).cast(kind) if kind.scale <= 19 else value.cast(kind)
    if _is_text(value.type) and pa.types.is_timestamp(kind):
        return _timestamps(value, kind)
    return value.cast(kind)


def _timestamps(value: Value, kind: pa.DataType) -> Value:
    # Arrow takes strings with an offset or strings without one, not both; without one they are UTC.
    try:
        return value.cast(pa.timestamp(kind.unit)).cast(kind)
    except pa.ArrowInvalid:
        return value.cast(kind)


def _cast_one(value: pa.Scalar, kind: pa.DataType) -> pa.Scalar:
    try:
        return _cast_all(value, kind)
    except pa.ArrowInvalid:
        return pa.scalar(None, kind)


def _abs(values: list[Any], kind: pa.DataType) -> Value:
    (value,) = values
    if pa.types.is_duration(kind):
        return pc.abs(value.cast(INT64)).cast(kind)
    if pa.types.is_integer(value.type):
        value = value.cast(INT64)
        value = pc.if_else(pc.equal(value, -(2**63)), pa.scalar(None, INT64), value)
    return pc.abs(value)


def _negate(values: list[Any], kind: pa.DataType) -> Value:
    (value,) = values
    return pc.negate(value) if pa.types.is_decimal(kind) else _subtract([pa.scalar(0, kind), value], kind)


def _unary(compute: Callable[..., Any]) -> Callable[[list[Any], pa.DataType], Value]:
    return lambda values, kind: _as(compute(values[0]), kind)


def _as(value: Value, kind: pa.DataType) -> Value:
    return value if value.type == kind else _cast([value], kind)


def _float_argument(compute: Callable[..., Any]) -> Callable[[list[Any], pa.DataType], Value]:
    def run(values: list[Any], kind: pa.DataType) -> Value:
        result = compute(*[value.cast(FLOAT64, safe=False) for value in values])
        return pc.if_else(pc.is_nan(result), pa.scalar(None, FLOAT64), result) if compute is pc.sqrt else result

    return run


def _round(values: list[Any], kind: pa.DataType) -> Value:
    value = values[0] if not pa.types.is_integer(values[0].type) else values[0].cast(FLOAT64)
    return _as(pc.round(value, round_mode="half_towards_infinity"), kind)


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


def _replace(values: list[Any], _: pa.DataType) -> Value:
    old, new = _constant(values, "REPLACE", 1), _constant(values, "REPLACE", 2)
    if old is None or new is None:
        return pa.scalar(None, STRING)
    return values[0] if old == "" else pc.replace_substring(values[0], old, new)


def _case(values: list[Any], kind: pa.DataType) -> Value:
    condition, then, otherwise = values
    return pc.if_else(pc.fill_null(condition, False), _as(then, kind), _as(otherwise, kind))


def _nullif(values: list[Any], kind: pa.DataType) -> Value:
    left, right = _common(values, kind)
    return pc.if_else(pc.fill_null(_compare("eq")([left, right], BOOL), False), pa.scalar(None, kind), left)


_ARITHMETIC = {"add", "subtract", "multiply", "divide"}
_COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge"}

FUNCTIONS: dict[str, Function] = {
    **{name: Function(_sign_compare, _compare(name)) for name in _COMPARISONS},
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
    "floor": Function(_sign_to_integer, _unary(pc.floor)),
    "ceil": Function(_sign_to_integer, _unary(pc.ceil)),
    "round": Function(_sign_to_integer, _round),
    "sqrt": Function(_sign_to_float(1), _float_argument(pc.sqrt)),
    "power": Function(_sign_to_float(2), _float_argument(pc.power)),
    "least": Function(_sign_common, _extreme("le")),
    "greatest": Function(_sign_common, _extreme("ge")),
    "coalesce": Function(_sign_common, lambda values, kind: pc.coalesce(*_common(values, kind))),
    "nullif": Function(_sign_common, _nullif),
    "case": Function(_sign_case, _case),
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
    "like": Function(_sign_text(2, BOOL), _pattern(pc.match_like, "LIKE")),
    "starts_with": Function(_sign_text(2, BOOL), _pattern(pc.starts_with, "STARTS_WITH")),
    "ends_with": Function(_sign_text(2, BOOL), _pattern(pc.ends_with, "ENDS_WITH")),
    "contains": Function(_sign_text(2, BOOL), _pattern(pc.match_substring, "CONTAINS")),
    # RE2 runs in time linear in the text, so no pattern can hang a unit.
    "regexp_like": Function(_sign_text(2, BOOL), _pattern(pc.match_substring_regex, "REGEXP_LIKE")),
    "year": Function(_sign_instant, _unary(pc.year)),
    "month": Function(_sign_instant, _unary(pc.month)),
    "day": Function(_sign_instant, _unary(pc.day)),
    "hour": Function(_sign_instant, _unary(pc.hour)),
    "minute": Function(_sign_instant, _unary(pc.minute)),
    "second": Function(_sign_instant, _unary(pc.second)),
}
"""What a query may call, by name."""

PATTERN_ARGUMENTS = {
    "like": (1,),
    "starts_with": (1,),
    "ends_with": (1,),
    "contains": (1,),
    "regexp_like": (1,),
    "substring": (1, 2),
    "replace": (1, 2),
}
"""Arguments that must be constants, by position: they are compiled once, not once a row."""

PUBLIC_FUNCTIONS = sorted(
    FUNCTIONS.keys() - _COMPARISONS - _INFIX.keys() - {"not", "is_null", "negate", "case", "cast"}
)
"""The names a query may write as a function call."""
