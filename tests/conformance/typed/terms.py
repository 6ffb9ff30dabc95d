"""Conditions as trees: what the generator makes, the oracles evaluate and the engine gets as text.

This is no part of the engine: neither its parser nor its expressions are used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

DIGITS_MAX = 76
INTERVAL_US = {"MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 1_000_000, "DAY": 86_400_000_000}


@dataclass(frozen=True)
class Type:
    """What is known of a value before it is there.

    Args:
        family: int, decimal, float, string, binary, bool, date, timestamp, timestamp_ns, duration, duration_ns.
        precision, scale: digits of a decimal.
    """

    family: str
    precision: int = 0
    scale: int = 0


INT, FLOAT, BOOL = Type("int"), Type("float"), Type("bool")


@dataclass(frozen=True)
class Column:
    """A column of a stream, r or s."""

    stream: str
    name: str
    kind: str

    @cached_property
    def type(self) -> Type:
        """Of its values."""
        if found := re.fullmatch(r"decimal\((\d+),(\d+)\)", self.kind):
            return Type("decimal", int(found[1]), int(found[2]))
        return INT if self.kind.startswith("int") else FLOAT if self.kind.startswith("float") else Type(self.kind)

    def __str__(self) -> str:
        return f"{self.stream}.{self.name}"


@dataclass(frozen=True)
class Number:
    """A numeric constant, as it is written."""

    text: str

    @cached_property
    def type(self) -> Type:
        """An exponent makes a float, a point a decimal, and so does leaving int64."""
        digits = self.text.lstrip("-")
        if "e" in digits:
            return FLOAT
        whole, _, fraction = digits.partition(".")
        if "." in digits:
            return Type("decimal", max(len(whole.lstrip("0")) + len(fraction), 1), len(fraction))
        return INT if -(2**63) <= int(self.text) < 2**63 else Type("decimal", len(digits), 0)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Text:
    """A text constant."""

    text: str
    type = Type("string")

    def __str__(self) -> str:
        return "'" + self.text.replace("'", "''") + "'"


@dataclass(frozen=True)
class Interval:
    """A span of time."""

    number: int
    unit: str
    type = Type("duration")

    @property
    def us(self) -> int:
        """Microseconds."""
        return self.number * INTERVAL_US[self.unit]

    def __str__(self) -> str:
        return f"INTERVAL '{self.number}' {self.unit}"


ARITHMETIC = ("+", "-", "*", "/", "%")
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
NULL_SAFE = ("IS NOT DISTINCT FROM", "IS DISTINCT FROM")
MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<=", **{name: name for name in NULL_SAFE}}
"""A comparison -> the same with its sides changed."""
SAFE = dict(zip(("=", "<>"), NULL_SAFE, strict=True))
"""A comparison -> the same where NULL is a value."""
FUNCTIONS = ("ABS", "FLOOR", "CEIL", "ROUND")
CASTS = {
    "DOUBLE": FLOAT,
    "REAL": FLOAT,
    "BIGINT": INT,
    "INT": INT,
    "DECIMAL(38, 2)": Type("decimal", 38, 2),
    "DECIMAL(20, 0)": Type("decimal", 20),
}
"""What explicit casts make of numbers; a node's operator is one of these names."""
INFIX = {*ARITHMETIC, *COMPARISONS, *NULL_SAFE}


@dataclass(frozen=True)
class Node:
    """An operator with its operands: arithmetic, a comparison, logic."""

    operator: str
    operands: tuple[Term, ...]

    @cached_property
    def type(self) -> Type:
        """Of what it gives."""
        return _type_of(self.operator, [operand.type for operand in self.operands])

    def __str__(self) -> str:
        words = [str(operand) for operand in self.operands]
        if self.operator in INFIX:
            return f"({words[0]} {self.operator} {words[1]})"
        match self.operator:
            case "AND" | "OR":
                return "(" + f" {self.operator} ".join(words) + ")"
            case "BETWEEN":
                return f"({words[0]} BETWEEN {words[1]} AND {words[2]})"
            case "IN":
                return f"({words[0]} IN ({', '.join(words[1:])}))"
            case "IS NULL" | "IS NOT NULL":
                return f"({words[0]} {self.operator})"
            case "NOT":
                return f"(NOT {words[0]})"
            case "NEGATE":
                return f"(- {words[0]})"
            case name if name in CASTS:
                return f"CAST({words[0]} AS {name})"
        return f"{self.operator}({', '.join(words)})"


Term: TypeAlias = "Column | Number | Text | Interval | Node"


def node(operator: str, *operands: Term) -> Node:
    """A node."""
    return Node(operator, operands)


def walk(term: Term) -> Iterator[Term]:
    """Every part of a tree, parents first."""
    yield term
    if isinstance(term, Node):
        for operand in term.operands:
            yield from walk(operand)


def _type_of(operator: str, types: list[Type]) -> Type:
    if operator in CASTS:
        return CASTS[operator]
    if operator in ("FLOOR", "CEIL", "ROUND", "%"):
        return INT
    if operator in ("ABS", "NEGATE"):
        return types[0]
    if operator == "/":
        return FLOAT
    if operator not in ARITHMETIC:
        return BOOL
    left, right = types
    times = {"date", "timestamp", "timestamp_ns"}
    if left.family in times:
        fine = "_ns" if "timestamp_ns" in (left.family, right.family) else ""
        return Type(("duration" if right.family in times else "timestamp") + fine)
    if FLOAT in types or left == right == INT:
        return FLOAT if FLOAT in types else INT
    left, right = (Type("decimal", 19, 0) if kind == INT else kind for kind in types)
    scale = left.scale + right.scale if operator == "*" else max(left.scale, right.scale)
    if operator == "*":
        precision = left.precision + right.precision + 1
    else:
        precision = max(left.precision - left.scale, right.precision - right.scale) + scale + 1
    return Type("decimal", precision, scale) if precision <= DIGITS_MAX else FLOAT
