"""An Avro writer schema compiled to a straight program that one small machine runs over every record.

Each instruction is a row (operation, slot, a, b) of an int64 table; `slot` is the column the value goes to, or -1
when it is only stepped over:

    BOOLEAN INT LONG FLOAT DOUBLE BYTES    read one value
    FIXED a        read a bytes
    ENUM a         read an index below a
    UNION a        read an index below a, go on at the JUMP that many rows further
    JUMP a         go on at row a
    BLOCK a b      read a count of items (array and map); none: go on at row a. b is 0 when items take no bytes
    REPEAT a       one item done: go on at row a for the next, or at row a - 1, the BLOCK, for the next count
    END            the record must be used up

Columns are fields of simple types, or unions of one with null: those at the top, and as `a.b` a field `b` of a record
`a`, which may be in a union. Fields that are no columns may have any type except one that contains itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from streamjoin.errors import InputError
from streamjoin.intake.records.cells import Longs

END: Final = 0
BOOLEAN: Final = 1
INT: Final = 2
LONG: Final = 3
FLOAT: Final = 4
DOUBLE: Final = 5
BYTES: Final = 6
FIXED: Final = 7
ENUM: Final = 8
UNION: Final = 9
JUMP: Final = 10
BLOCK: Final = 11
REPEAT: Final = 12

_OPERATIONS: Final = {
    "boolean": BOOLEAN, "int": INT, "long": LONG, "float": FLOAT, "double": DOUBLE, "bytes": BYTES, "string": BYTES,
}  # fmt: skip
_NAMED: Final = ("record", "error", "enum", "fixed")
_ROWS_MAX: Final = 100_000
_NESTING_MAX: Final = 100

Row = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Leaf:
    """The Avro type a column is written with, null left out.

    Args:
        type: name of the Avro type, `null` when the column can only be null.
        logical: its logical type, or "".
        scale: of a decimal.
        symbols: of an enum, in order.
    """

    type: str
    logical: str = ""
    scale: int = 0
    symbols: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.type} ({self.logical})" if self.logical else self.type


@dataclass(frozen=True, slots=True)
class Program:
    """What the machine runs.

    Args:
        rows: int64 of shape (k, 4).
        fields: name of the field each row belongs to, with those of the records around it; "" for END.
        leaves: column name -> how it is written; columns the writer schema lacks are not in it.
        stack_size: how many blocks can be open at once.
    """

    rows: Longs
    fields: tuple[str, ...]
    leaves: Mapping[str, Leaf]
    stack_size: int


def compile_program(avro_schema: str | Mapping[str, Any], schema: pa.Schema) -> Program:
    """The program that reads records written with `avro_schema` into the columns of `schema`.

    Raises:
        InputError: the Avro schema is wrong, or a column or extra field has a type that cannot be read.
    """
    if isinstance(avro_schema, str):
        try:
            avro_schema = json.loads(avro_schema)
        except ValueError as error:
            raise InputError(f"the Avro schema is not JSON: {error}") from None
    if not isinstance(avro_schema, Mapping) or avro_schema.get("type") != "record":
        raise InputError("the Avro schema of a stream is a record with fields")
    return _Compiler(schema).compile(avro_schema)


@dataclass(slots=True)
class _Compiler:
    schema: pa.Schema
    rows: list[Row] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)
    field_name: str = ""
    types: dict[str, tuple[Mapping[str, Any], str]] = field(default_factory=dict)  # full name -> type, its namespace
    leaves: dict[str, Leaf] = field(default_factory=dict)
    depth: int = 0
    block_depth: int = 0
    block_depth_max: int = 0

    def compile(self, record: Mapping[str, Any]) -> Program:
        namespace = self.define(record, "")
        for each in self.fields_of(record):
            self.read_field(str(each["name"]), each["type"], namespace)
        self.emit(END)
        return Program(np.array(self.rows, np.int64), tuple(self.fields), self.leaves, self.block_depth_max)

    def read_field(self, name: str, avro_type: Any, namespace: str) -> None:
        """Emit the rows that read a field, or step over it, outside of arrays and maps."""
        outside, self.field_name = self.field_name, name
        slot = self.schema.get_field_index(name)
        if slot >= 0:
            leaf = self.column(avro_type, namespace, slot)
            known = self.leaves.get(name, leaf)  # of another record of a union
            if leaf != known and "null" not in (leaf.type, known.type):
                raise self.refuse(f"a column is one type; it is {known} in one record of a union and {leaf} in another")
            self.leaves[name] = leaf if known.type == "null" else known
        else:
            inside = next((column for column in self.schema.names if column.startswith(f"{name}.")), None)
            if inside is not None and not self.has_record(avro_type, namespace):
                raise self.refuse(f'column "{inside}" is a field of a record, and this is none')
            self.value(avro_type, namespace, None if inside is None else name)
        self.field_name = outside

    def has_record(self, avro_type: Any, namespace: str) -> bool:
        """Whether it is a record, or a union with one."""
        found, namespace = self.resolve(avro_type, namespace)
        branches = found if isinstance(found, list) else [found]
        return any(_kind(self.resolve(branch, namespace)[0]) in ("record", "error") for branch in branches)

    def refuse(self, problem: str) -> InputError:
        return InputError(
            f'Avro field "{self.field_name}": {problem}' if self.field_name else f"Avro schema: {problem}"
        )

    def emit(self, operation: int, slot: int = -1, a: int = 0, b: int = 0) -> int:
        """Append one row; its index."""
        if len(self.rows) >= _ROWS_MAX:
            raise self.refuse(f"the schema unfolds to more than {_ROWS_MAX} steps")
        self.rows.append((operation, slot, a, b))
        self.fields.append(self.field_name)
        return len(self.rows) - 1

    def patch(self, row: int, a: int) -> None:
        operation, slot, _, b = self.rows[row]
        self.rows[row] = (operation, slot, a, b)

    def fields_of(self, record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        found = record.get("fields")
        if not isinstance(found, list) or not all(
            isinstance(each, Mapping) and "name" in each and "type" in each for each in found
        ):
            raise self.refuse("a record has a list of fields, each with name and type")
        return found

    def define(self, named: Mapping[str, Any], namespace: str) -> str:
        """Make a named type known; the namespace inside it."""
        name = str(named.get("name", ""))
        if "." in name:
            namespace = name.rpartition(".")[0]
            full_name = name
        else:
            namespace = str(named.get("namespace", namespace))
            full_name = f"{namespace}.{name}" if namespace else name
        self.types[full_name] = (named, namespace)
        return namespace

    def resolve(self, avro_type: Any, namespace: str) -> tuple[Any, str]:
        """A type with any name replaced by what it names: a primitive's name, a mapping or a list of branches."""
        while isinstance(avro_type, str) and avro_type not in _OPERATIONS and avro_type != "null":
            found = self.types.get(f"{namespace}.{avro_type}") or self.types.get(avro_type)
            if found is None:
                raise self.refuse(f'unknown type "{avro_type}"')
            avro_type, namespace = found
        if isinstance(avro_type, Mapping):
            kind = avro_type.get("type")
            if kind in _NAMED:
                namespace = self.define(avro_type, namespace)
            elif isinstance(kind, Mapping | list) or (
                isinstance(kind, str) and kind not in _OPERATIONS and kind not in ("null", "array", "map")
            ):
                return self.resolve(kind, namespace)
        elif not isinstance(avro_type, str | list):
            raise self.refuse("a type is a name, an object or a list")
        return avro_type, namespace

    def column(self, avro_type: Any, namespace: str, slot: int) -> Leaf:
        """Emit the rows that read a column into `slot`."""
        avro_type, namespace = self.resolve(avro_type, namespace)
        if not isinstance(avro_type, list):
            return self.leaf(avro_type, slot)
        branches = [self.resolve(branch, namespace)[0] for branch in avro_type]
        if len([branch for branch in branches if _kind(branch) != "null"]) > 1:
            raise self.refuse("a column is one type or a union of one type with null")
        leaf = Leaf("null")
        jumps, ends = self.union_head(len(branches)), []
        for jump, branch in zip(jumps, branches, strict=True):
            self.patch(jump, len(self.rows))
            if _kind(branch) != "null":
                leaf = self.leaf(branch, slot)
            ends.append(self.emit(JUMP))
        for end in ends:
            self.patch(end, len(self.rows))
        return leaf

    def leaf(self, avro_type: Any, slot: int) -> Leaf:
        kind = _kind(avro_type)
        if kind == "null":
            return Leaf("null")
        if kind in ("record", "error", "array", "map"):
            raise self.refuse(f"a column is a simple type, not {kind}")
        self.simple(avro_type, slot)
        detail = avro_type if isinstance(avro_type, Mapping) else {}
        logical = str(detail.get("logicalType", ""))
        scale = detail.get("scale", 0) if logical == "decimal" else 0  # elsewhere it may mean anything
        if type(scale) is not int or scale < 0:
            raise self.refuse('"scale" is a whole number, 0 or more')
        symbols = detail["symbols"] if kind == "enum" else ()
        return Leaf(kind, logical, scale, tuple(map(str, symbols)))

    def simple(self, avro_type: Any, slot: int) -> None:
        kind = _kind(avro_type)
        if kind in _OPERATIONS:
            self.emit(_OPERATIONS[kind], slot)
        elif kind == "fixed":
            size = avro_type.get("size")
            if not isinstance(size, int) or size < 0:
                raise self.refuse("a fixed type has a size")
            self.emit(FIXED, slot, size)
        elif kind == "enum":
            symbols = avro_type.get("symbols")
            if not isinstance(symbols, list) or not symbols:
                raise self.refuse("an enum has symbols")
            self.emit(ENUM, slot, len(symbols))
        else:
            raise self.refuse(f'unknown type "{kind}"')

    def union_head(self, branches: int) -> list[int]:
        """Emit UNION and its JUMPs; the rows of the jumps, to be patched."""
        if not branches:
            raise self.refuse("a union has at least one type")
        self.emit(UNION, -1, branches)
        return [self.emit(JUMP) for _ in range(branches)]

    def value(self, avro_type: Any, namespace: str, name: str | None = None) -> bool:
        """Emit the rows that step over a value; whether it takes at least one byte.

        Args:
            name: of the field, where fields of its records are columns.
        """
        self.depth += 1
        if self.depth > _NESTING_MAX:
            raise self.refuse("a type that contains itself cannot be read; leave the field out of the Avro schema")
        try:
            return self.value_inside(*self.resolve(avro_type, namespace), name)
        finally:
            self.depth -= 1

    def value_inside(self, avro_type: Any, namespace: str, name: str | None) -> bool:
        if isinstance(avro_type, list):
            ends = []
            for jump, branch in zip(self.union_head(len(avro_type)), avro_type, strict=True):
                self.patch(jump, len(self.rows))
                self.value(branch, namespace, name)
                ends.append(self.emit(JUMP))
            for end in ends:
                self.patch(end, len(self.rows))
            return True
        kind = _kind(avro_type)
        if kind == "null":
            return False
        if kind in ("record", "error"):
            if name is not None:
                for each in self.fields_of(avro_type):
                    self.read_field(f"{name}.{each['name']}", each["type"], namespace)
                return True  # it is in no array, which alone asks
            # Every field is emitted before any is asked.
            takes_bytes = [self.value(each["type"], namespace) for each in self.fields_of(avro_type)]
            return any(takes_bytes)
        if kind in ("array", "map"):
            self.block(avro_type, kind, namespace)
            return True
        self.simple(avro_type, -1)
        return not (kind == "fixed" and avro_type["size"] == 0)

    def block(self, avro_type: Mapping[str, Any], kind: str, namespace: str) -> None:
        self.block_depth += 1
        self.block_depth_max = max(self.block_depth_max, self.block_depth)
        head = self.emit(BLOCK)
        if kind == "map":
            self.emit(BYTES)
        has_bytes = self.value(avro_type.get("items" if kind == "array" else "values"), namespace) or kind == "map"
        self.emit(REPEAT, -1, head + 1)
        self.rows[head] = (BLOCK, -1, len(self.rows), int(has_bytes))
        self.block_depth -= 1


def _kind(avro_type: Any) -> str:
    if isinstance(avro_type, list):
        return "union"
    return str(avro_type.get("type")) if isinstance(avro_type, Mapping) else str(avro_type)
