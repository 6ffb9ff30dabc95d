"""The types CAST knows, and which values it turns into which."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from streamjoin.errors import InputError, QueryError
from streamjoin.plan.schema import parse_type
from streamjoin.plan.types import BOOL, FLOAT64, INT64, STRING, TIMESTAMP, TIMESTAMP_NS, is_instant, is_number, is_text

_KIND = exp.DataType.Type
_SQL_TYPES = {
    _KIND.BOOLEAN: BOOL,
    _KIND.TINYINT: pa.int8(),
    _KIND.SMALLINT: pa.int16(),
    _KIND.INT: pa.int32(),
    _KIND.BIGINT: INT64,
    _KIND.FLOAT: pa.float32(),
    _KIND.DOUBLE: FLOAT64,
    _KIND.TEXT: STRING,
    _KIND.DATE: pa.date32(),
    _KIND.TIMESTAMP: TIMESTAMP,
    _KIND.TIMESTAMPNTZ: TIMESTAMP,
    _KIND.TIMESTAMPTZ: TIMESTAMP,
    _KIND.TIMESTAMP_NS: TIMESTAMP_NS,
}
_NAMES = "BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, REAL, DOUBLE, DECIMAL(p, s), VARCHAR, DATE, TIMESTAMP"


def type_of(node: exp.DataType) -> pa.DataType:
    """The column type a query casts to.

    Raises:
        QueryError: without a place; CAST does not know the type.
    """
    if node.this == _KIND.DECIMAL:
        parts = [part.this for part in node.expressions]
        numbers = [int(part.this) for part in parts if type(part) is exp.Literal and part.this.isdecimal()]
        if len(numbers) == 2 and 1 <= numbers[0] <= 38 and numbers[1] <= numbers[0]:
            return pa.decimal128(*numbers)
        raise QueryError("DECIMAL takes a precision from 1 to 38 and a scale up to it, such as DECIMAL(12, 2)")
    written = node.sql("duckdb")
    if node.expressions:
        raise QueryError(f"{written} takes no length here; lengths are not checked")
    if node.this in _SQL_TYPES:
        return _SQL_TYPES[node.this]
    try:
        kind = parse_type(str(node.args.get("kind", "")).lower())
    except InputError:
        kind = None
    if kind is None:
        raise QueryError(f'CAST knows no type "{written}"; types are {_NAMES}')
    return kind


def can_cast(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether a value of one type can become one of the other; a single value without a counterpart becomes NULL."""
    if source == target or pa.types.is_null(source):
        return True
    if pa.types.is_binary(source) or pa.types.is_binary(target):
        return False
    if pa.types.is_string(target):
        return bool(is_number(source) or pa.types.is_boolean(source) or is_instant(source) or is_text(source))
    if is_text(source):
        return bool(is_number(target) or pa.types.is_boolean(target) or is_instant(target))
    # Integers are microseconds since 1970.
    if pa.types.is_timestamp(target) and pa.types.is_integer(source):
        return True
    if target == INT64 and pa.types.is_timestamp(source):
        return True
    if is_number(target):
        return bool(is_number(source) or pa.types.is_boolean(source))
    return is_instant(source) and is_instant(target)
