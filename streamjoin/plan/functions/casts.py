"""Values as another type; NULL where one has no counterpart there."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.plan.decimals import shortened, to_float64, to_text
from streamjoin.plan.expression import decimal_literal
from streamjoin.plan.functions import numbers, times
from streamjoin.plan.types import (
    DIGITS_MAX,
    DURATION,
    DURATION_NS,
    FLOAT64,
    INT64,
    NANOSECONDS,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    is_instant,
    is_number,
    is_text,
)
from streamjoin.plan.values import Value


def cast(values: list[Any], kind: pa.DataType) -> Value:
    """CAST of one value, an array or a scalar."""
    (value,) = values
    if value.type == kind:
        return value
    if pa.types.is_boolean(value.type) and is_number(kind):
        value = value.cast(pa.int8())
    if is_number(value.type) and is_number(kind):
        return _cast_number(value, kind)
    if is_text(value.type) and (pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        return _cast_text(value, kind)
    try:
        return _cast_all(value, kind)
    except pa.ArrowInvalid:
        # Rare: some value has no counterpart, such as 'abc' as an integer. Only that one becomes NULL.
        if isinstance(value, pa.Scalar):
            return _cast_one(value, kind)
        return pa.array([_cast_one(one, kind) for one in value], kind)


def _cast_text(value: Value, kind: pa.DataType) -> Value:
    """A text as an integer or decimal; NULL where it is none, or has no counterpart there."""
    if isinstance(value, pa.Scalar):
        return _cast_text(pa.array([value.as_py()], STRING), kind)[0]
    is_integer, value = pa.types.is_integer(kind), value.cast(STRING)
    if numbers.are_plain(value):
        try:
            found = value.cast(kind if is_integer else pa.decimal256(DIGITS_MAX, kind.scale))
            return found if is_integer else _cast_decimal(found, kind)
        except pa.ArrowInvalid:
            pass  # some have no counterpart, or more digits
    read = numbers.to_integers if is_integer else numbers.to_decimals
    return read(value, lambda found: _cast_number(found, kind))


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
    if is_text(value.type) and (pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        return _cast_text(value, kind)
    try:
        return _cast_all(value, kind)
    except pa.ArrowInvalid:
        return pa.scalar(None, kind)


def as_type(value: Value, kind: pa.DataType) -> Value:
    """The value itself where it is of type `kind` already, else cast."""
    return value if value.type == kind else cast([value], kind)


def all_as_type(values: list[Any], kind: pa.DataType) -> list[Any]:
    return [as_type(value, kind) for value in values]
