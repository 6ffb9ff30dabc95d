"""What two types mean together: the type in which they are compared, and the type of their sum and product.

One table serves WHERE clauses, join keys, SELECT lists and questions for results:

    compared                              in
    integers                              int64
    decimals, and decimals with integers  a decimal wide enough for both, so exactly; where that were more than 76
                                          digits, digit by digit as they are, which is as exact (`too_wide`)
    a float with any number               float64, the other side rounded to the nearest
    dates; timestamps of one unit         as they are
    dates with timestamps                 timestamps: a date is its midnight, UTC
    timestamps of two units               whole nanoseconds, as a decimal, so exactly
    texts; bytes; booleans                as they are

How values of each type become index keys is the table in `index/keys.py`.
"""

from __future__ import annotations

import pyarrow as pa

INT64 = pa.int64()
FLOAT64 = pa.float64()
BOOL = pa.bool_()
STRING = pa.string()
TIMESTAMP = pa.timestamp("us", tz="UTC")
TIMESTAMP_NS = pa.timestamp("ns", tz="UTC")
DURATION = pa.duration("us")
DURATION_NS = pa.duration("ns")

DIGITS_MAX = 76
"""The digits a decimal may have while a condition is computed; columns have at most 38."""
COLUMN_DIGITS_MAX = 38
_INT64_DIGITS = 19
NANOSECONDS = pa.decimal128(22, 0)
"""Any timestamp or duration, whatever its unit, as whole nanoseconds."""


def decimal(precision: int, scale: int) -> pa.DataType:
    """The decimal type of these digits, in 128 bits where they suffice."""
    return pa.decimal128(precision, scale) if precision <= COLUMN_DIGITS_MAX else pa.decimal256(precision, scale)


def as_decimal(kind: pa.DataType) -> pa.DataType:
    """The decimal type that holds every value of an integer or decimal type."""
    return kind if pa.types.is_decimal(kind) else decimal(_INT64_DIGITS, 0)


def is_number(kind: pa.DataType) -> bool:
    """Whether arithmetic works on `kind`."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_instant(kind: pa.DataType) -> bool:
    """Whether `kind` is a point in time."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def is_text(kind: pa.DataType) -> bool:
    """Whether `kind` is text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def number_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type that holds the values of two numeric types: exactly, unless one is a float."""
    if pa.types.is_floating(left) or pa.types.is_floating(right):
        return FLOAT64
    if pa.types.is_integer(left) and pa.types.is_integer(right):
        return INT64
    left, right = as_decimal(left), as_decimal(right)
    scale = max(left.scale, right.scale)
    # 76 digits always suffice for columns, whose whole part and scale are 38 at most; computed values may have more.
    whole = max(left.precision - left.scale, right.precision - right.scale)
    return decimal(whole + scale, scale) if whole + scale <= DIGITS_MAX else FLOAT64


def too_wide(left: pa.DataType, right: pa.DataType) -> bool:
    """Whether two exact numbers have no common decimal type, as a decimal(39, 0) and a decimal(38, 38) have none."""
    exact = all(is_number(kind) and not pa.types.is_floating(kind) for kind in (left, right))
    return exact and number_type(left, right) == FLOAT64


def sum_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type of a sum or difference; a decimal has one digit more than its terms, so that nothing overflows."""
    kind = number_type(left, right)
    if not pa.types.is_decimal(kind):
        return kind
    return decimal(kind.precision + 1, kind.scale) if kind.precision < DIGITS_MAX else FLOAT64


def product_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type of a product; a decimal has room for every digit."""
    kind = number_type(left, right)
    if kind == INT64 or pa.types.is_floating(left) or pa.types.is_floating(right):
        return kind
    left, right = as_decimal(left), as_decimal(right)
    digits = left.precision + right.precision + 1  # Arrow's rule
    return decimal(digits, left.scale + right.scale) if digits <= DIGITS_MAX else FLOAT64


def comparison_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type in which two values are compared, or None where they cannot be."""
    if is_number(left) and is_number(right):
        return number_type(left, right)
    if pa.types.is_null(left) or pa.types.is_null(right):
        return right if pa.types.is_null(left) else left
    if is_instant(left) and is_instant(right):
        if left == right:
            return left
        units = {kind.unit for kind in (left, right) if pa.types.is_timestamp(kind)}
        return NANOSECONDS if "ns" in units and left != right else TIMESTAMP
    if pa.types.is_duration(left) and pa.types.is_duration(right):
        return left if left == right else NANOSECONDS
    if is_text(left) and is_text(right):
        return STRING
    return left if left == right else None


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type of a value that is one of two, as in COALESCE; None where there is none.

    As they are compared, but for times of two units: those become the coarser, microseconds.
    """
    found = comparison_type(left, right)
    if found == NANOSECONDS and not is_number(left):
        return TIMESTAMP if is_instant(left) else DURATION
    return found


def column_type(kind: pa.DataType) -> pa.DataType:
    """The type in which computed values become a column of a result.

    Decimals of too many digits become float64, spans microseconds.
    """
    if pa.types.is_decimal(kind) and kind.precision > COLUMN_DIGITS_MAX:
        return FLOAT64
    return DURATION if kind == DURATION_NS else kind


def embeds(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether every value of `source` is one of `target`, so that a cast changes no comparison between two."""
    if source == target:
        return True
    if not pa.types.is_decimal(target):
        return bool(pa.types.is_integer(source) and target == INT64)
    if not (pa.types.is_integer(source) or pa.types.is_decimal(source)):
        return False
    source = as_decimal(source)
    return bool(source.scale <= target.scale and source.precision - source.scale <= target.precision - target.scale)
