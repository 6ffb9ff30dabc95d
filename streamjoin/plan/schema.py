"""Names of column types, and the description of one stream.

A schema is a plain `pyarrow.Schema`; this module only says which types a stream may have, how they are
written in a join file, and which column is the event time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from streamjoin.alike import alike
from streamjoin.errors import InputError
from streamjoin.plan.ending import Ending

ARRIVAL = "arrival"
"""The value of `time:` that stamps tuples at intake, for data without a time column."""

VERSION = "__version"
"""The column of a relation that says of which version a row is; queries read it by VERSION(name)."""

COLUMNS_MAX = 1_000
"""Of a stream or a relation."""

EVENT_TIME_LIMIT_US = 2**62
"""Event times lie strictly inside +-2**62 us (about 146,000 years), so that differences fit into int64."""

SIMPLE_TYPES: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ns": pa.timestamp("ns", tz="UTC"),
}
_DECIMAL = re.compile(r"decimal\(([0-9]{1,2}),\s*([0-9]{1,2})\)")
_OTHER_NAMES = {
    "int": "int32", "integer": "int32", "bigint": "int64", "long": "int64", "smallint": "int16", "tinyint": "int8",
    "float": "float32", "real": "float32", "double": "float64", "str": "string", "text": "string",
    "varchar": "string", "utf8": "string", "bytes": "binary", "boolean": "bool", "datetime": "timestamp",
    "timestamptz": "timestamp", "date32": "date",
}  # fmt: skip
"""What others call our types."""
_TIME_UNITS_US = {"s": 1_000_000, "ms": 1_000, "us": 1}


def parse_type(name: str) -> pa.DataType:
    """The Arrow type a join file calls `name`, such as `int64` or `decimal(12, 2)`.

    Raises:
        InputError: there is no such type; the message lists those there are.
    """
    if found := SIMPLE_TYPES.get(name):
        return found
    if match := _DECIMAL.fullmatch(name):
        precision, scale = int(match[1]), int(match[2])
        if 1 <= precision <= 38 and scale <= precision:
            return pa.decimal128(precision, scale)
    lower = name.strip().lower()
    meant = lower if lower in SIMPLE_TYPES else _OTHER_NAMES.get(lower)
    hint = f"did you mean {meant}? types" if meant else "types"
    raise InputError(
        f'"{name[:60]}" is not a column type; {hint} are {", ".join(SIMPLE_TYPES)} and decimal(precision, scale), '
        "where 1 <= precision <= 38 and scale <= precision"
    )


def type_name(data_type: pa.DataType) -> str:
    """What a join file calls `data_type`; the inverse of `parse_type` for the types it knows."""
    for name, simple in SIMPLE_TYPES.items():
        if simple == data_type:
            return name
    if pa.types.is_decimal(data_type):
        return f"decimal({data_type.precision},{data_type.scale})"
    return str(data_type)


def parse_schema(fields: Mapping[str, str], what: str = "stream") -> pa.Schema:
    """A schema as a join file writes it: column name -> type name, in column order; `what` has it, for messages."""
    columns = []
    for name, kind in fields.items():
        if not name.strip():
            raise InputError("a column needs a name")
        try:
            columns.append(pa.field(name, parse_type(str(kind))))
        except InputError as wrong:
            raise InputError(f'column "{name[:60]}": {wrong.message}') from None
    schema = pa.schema(columns)
    check_schema(schema, what)
    return schema


_LEFT_OUT = b"left out"


def without(schema: pa.Schema, left_out: Mapping[str, str]) -> pa.Schema:
    """A schema that remembers, for messages, which columns a file has that no stream can have: name -> type."""
    return schema.with_metadata({_LEFT_OUT: json.dumps(left_out)}) if left_out else schema


def left_out(schema: pa.Schema) -> dict[str, str]:
    """The columns of a file that its stream has not, name -> type, as far as they are known."""
    found: dict[str, str] = json.loads((schema.metadata or {}).get(_LEFT_OUT, b"{}"))
    return found


def no_time(column: str, kind: pa.DataType, example: str | None = None) -> str:
    """That a column cannot be the event time, and what can; `example` is a value of it."""
    said = f'column "{column}" is {type_name(kind)}{"" if example is None else f", such as {example}"}'
    texts = (
        f"; texts such as 2026-01-31T12:00:00Z or 2026-01-31 are times with {column}: timestamp in a schema, and no "
        "others are"
    )
    return f"{said}; an event time is a timestamp, a date or an integer with time_unit{texts * (kind == pa.string())}"


def is_reserved(name: str) -> bool:
    """Whether columns of that name are the engine's."""
    return name.startswith("__")


def check_schema(schema: pa.Schema, what: str = "stream") -> None:
    """Refuse what none may have: no columns, too many, reserved names, or a name twice.

    Names may differ by case only: whoever asks for such a column writes it as it is there.
    """
    if not schema.names:
        raise InputError(f"a {what} needs at least one column")
    if len(schema.names) > COLUMNS_MAX:
        raise InputError(
            f"a {what} may have {COLUMNS_MAX} columns at most, this one has {len(schema.names)}; give it a schema "
            "of those that are needed"
        )
    seen: set[str] = set()
    for name in schema.names:
        if is_reserved(name):
            raise InputError(f'column "{name}": names that begin with two underscores are reserved')
        if name in seen:
            raise InputError(f'column "{name}" is there twice; rename one')
        seen.add(name)


def no_column(name: str, names: Sequence[str]) -> str:
    """The message for a missing column: it names the one that was probably meant, or else all of them."""
    found = alike(name, names, most=1, cutoff=0.7)
    hint = f'did you mean "{found[0]}"?' if found else f"columns are {listed(names)}"
    return f'there is no column "{name}"; {hint}'


def listed(names: Sequence[str]) -> str:
    """Names as messages have them, the first ones of many."""
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


@dataclass(frozen=True, slots=True)
class StreamSchema:
    """One stream as a query sees it.

    Args:
        name: the name the query uses.
        columns: its columns in order.
        time: the column that holds the event time, or `arrival`.
        time_unit: unit of an integer time column (s, ms, us); ignored for timestamps and dates.
        delay_us: D, the largest disorder inside which results are exact.
        idle_us: a silence after which the stream holds the others back no longer; None for never.
        is_relation: it is a finite table, whose rows have no time; `time` then says nothing.
        ending: which of its rows or files end a period; None where event time alone does.
        key: a row with nothing but these and its time ends the key that it has; empty where no row ends one.
    """

    name: str
    columns: pa.Schema
    time: str
    time_unit: str = "us"
    delay_us: int = 0
    idle_us: int | None = None
    is_relation: bool = False
    ending: Ending | None = None
    key: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_schema(self.own_columns)
        if self.delay_us < 0:
            raise InputError("the delay must not be negative", field=f"streams.{self.name}.delay")
        if self.idle_us is not None and self.idle_us <= 0:
            raise InputError(
                "is no span; give one such as 30s, or leave it out for a stream that is never idle",
                field=f"streams.{self.name}.idle",
            )
        if self.time_unit not in _TIME_UNITS_US:
            raise InputError(
                f'"{self.time_unit}" is not a time unit; use s, ms or us', field=f"streams.{self.name}.time_unit"
            )
        self._check_key()
        if self.time == ARRIVAL:
            return
        if self.time not in self.columns.names:
            raise InputError(no_column(self.time, self.columns.names), field=f"streams.{self.name}.time")
        kind = self.columns.field(self.time).type
        if not (pa.types.is_timestamp(kind) or pa.types.is_date32(kind) or pa.types.is_integer(kind)):
            raise InputError(no_time(self.time, kind), field=f"streams.{self.name}.time")

    def _check_key(self) -> None:
        place = f"streams.{self.name}.key"
        for number, name in enumerate(self.key):
            if name not in self.columns.names:
                raise InputError(no_column(name, self.columns.names), field=place)
            if name in self.key[:number]:
                raise InputError(f'"{name}" is in it twice; name each column once', field=place)
            if name == self.time:
                raise InputError(
                    f'"{name}" is the event time, which each row of a key has anew; leave it out', field=place
                )
        if self.key and not self.values:
            raise InputError(
                "names every column but the event time, so each row would end its key; leave columns with values out",
                field=place,
            )

    @property
    def values(self) -> tuple[str, ...]:
        """The columns that are all NULL in a row that ends its key; empty where no row ends one."""
        if not self.key:
            return ()
        return tuple(name for name in self.columns.names if name != self.time and name not in self.key)

    @staticmethod
    def of_relation(name: str, columns: pa.Schema) -> StreamSchema:
        """A relation as a query sees it."""
        return StreamSchema(name, columns, ARRIVAL, is_relation=True)

    @property
    def has_version(self) -> bool:
        """It is a relation, and has the column of its version."""
        return self.is_relation and VERSION in self.columns.names

    @property
    def own_columns(self) -> pa.Schema:
        """Those that its source has."""
        if not self.has_version:
            return self.columns
        return self.columns.remove(self.columns.names.index(VERSION))

    def versioned_rows(self, rows: pa.RecordBatch, version: int) -> pa.RecordBatch:
        """Rows of its source, with the column of their version if it has one."""
        if not self.has_version:
            return rows
        return rows.append_column(VERSION, pa.repeat(pa.scalar(version, pa.int64()), rows.num_rows))

    def versioned(self) -> StreamSchema:
        """A relation with the column of its version."""
        return replace(self, columns=self.own_columns.append(pa.field(VERSION, pa.int64())))

    @property
    def time_unit_us(self) -> int:
        """Microseconds in one unit of an integer time column."""
        return _TIME_UNITS_US[self.time_unit]
