"""Oracle 2: DuckDB, for the conditions that mean the same there.

It judges oracle 1 on the same rows. `OTHERWISE` says where the two languages part; such conditions are left out.
An integer result outside int64 raises there, so arithmetic is inside TRY, which makes it NULL.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

import duckdb
import pyarrow as pa

from .case import STREAMS, Case
from .terms import ARITHMETIC, CASTS, INT, Node, Number, Term, Type, walk

_TIMES = {"date", "timestamp", "timestamp_ns"}
_DIGITS_MAX = 38
_YEARS = {"date": 3_000_000, "timestamp": 2**61, "timestamp_ns": 2**62}
"""Days, microseconds and nanoseconds that every type of DuckDB's holds."""


@dataclass(frozen=True)
class Meeting:
    """Two terms that an operator brings together."""

    operator: str
    left: Term
    right: Term

    @property
    def families(self) -> set[str]:
        """Of both."""
        return {self.left.type.family, self.right.type.family}

    @property
    def digits(self) -> int:
        """That the exact type of both needs, sums included; 0 where it is no decimal."""
        if "decimal" not in self.families or "float" in self.families:
            return 0
        kinds = [Type("decimal", 19) if kind.family == "int" else kind for kind in (self.left.type, self.right.type)]
        whole = max(max(kind.precision - kind.scale, 1) for kind in kinds)  # 0.5 has two digits there
        return whole + max(kind.scale for kind in kinds) + (self.operator in ARITHMETIC)

    @property
    def long_constant(self) -> bool:
        """Whether one is an integer outside int64, which is a HUGEINT there."""
        return any(
            isinstance(side, Number) and side.type.family == "decimal" and not side.type.scale
            for side in (self.left, self.right)
        )

    @property
    def rounds(self) -> bool:
        """Whether a decimal of more than 15 digits, or a computed one, becomes a float."""
        return "float" in self.families and any(
            side.type.family == "decimal" and not (isinstance(side, Number) and side.type.precision <= 15)
            for side in (self.left, self.right)
        )


OTHERWISE: tuple[tuple[str, str, Callable[[Meeting], bool]], ...] = (
    (
        "DECIMAL with DOUBLE",
        "DuckDB divides by a power of ten in DOUBLE, which rounds twice",
        lambda met: met.rounds,
    ),
    (
        "decimals of more than 38 digits together",
        "DuckDB has 38, and raises or rounds beyond",
        lambda met: met.digits > _DIGITS_MAX,
    ),
    (
        "an integer constant outside int64 with a decimal or float",
        "it is a HUGEINT there, which becomes a DECIMAL of 38 digits or rounds twice",
        lambda met: met.long_constant and met.families != {"int", "decimal"},
    ),
    (
        "an integer constant outside int64 in arithmetic",
        "HUGEINT columns and constants have limits of their own",
        lambda met: met.long_constant and met.operator in ARITHMETIC,
    ),
    (
        "products of decimals",
        "DuckDB keeps 18 digits where both have fewer",
        lambda met: met.operator == "*" and "decimal" in met.families,
    ),
    (
        "BETWEEN and IN with a float among other numbers",
        "all of them become DOUBLE there, and integers above 2**53 round; here each is compared by itself",
        lambda met: met.operator in ("BETWEEN", "IN") and "float" in met.families and met.families != {"float"},
    ),
    ("division", "by zero it is infinite there", lambda met: met.operator in ("/", "%")),
    (
        "differences of times",
        "an INTERVAL there has months and days apart, and no ABS",
        lambda met: met.operator == "-" and met.families <= _TIMES,
    ),
    (
        "TIMESTAMP_NS with other times",
        "DuckDB cuts nanoseconds off, and adds no nanoseconds",
        lambda met: "timestamp_ns" in met.families and met.families != {"timestamp_ns"},
    ),
    (
        "DATE with a span",
        "the sum is a TIMESTAMP, compared with a DATE as one of them",
        lambda met: {"date", "duration"} <= met.families,
    ),
)
"""(what, why it means something else in DuckDB, whether two terms are such)."""
_LIKE_OURS = ("DOUBLE", INT)
"""The CAST that means the same."""
FUNCTIONS = {"FLOOR", "CEIL", "ROUND", "NEGATE"}
"""Their results have other types there."""


def otherwise(case: Case) -> str | None:
    """Why a case means something else in DuckDB, or None. CAST rounds there where it cuts off here, or raises."""
    if case.window.rows is not None:
        return "windows of rows"
    for term in (part for conjunct in case.conjuncts for part in walk(conjunct)):
        if isinstance(term, Node) and term.operator in FUNCTIONS:
            return term.operator
        if isinstance(term, Node) and term.operator in CASTS and (term.operator, term.operands[0].type) != _LIKE_OURS:
            return "CAST"
        for met in _meetings(term):
            for what, _, applies in OTHERWISE:
                if applies(met):
                    return what
    for stream in STREAMS:
        for name, kind in case.columns[stream]:
            values = [row[name] for row in case.rows[stream] if row[name] is not None]
            if kind in _YEARS and any(abs(value) > _YEARS[kind] for value in values):
                return "times outside of DuckDB's calendar"
    return None


def _meetings(term: Term) -> Iterator[Meeting]:
    if isinstance(term, Node) and len(term.operands) > 1 and term.operator not in ("AND", "OR"):
        # All that IN and CASE list has one type there.
        for left, right in combinations(term.operands, 2):
            yield Meeting(term.operator, left, right)


def text(term: Term) -> str:
    """A term as DuckDB gets it."""
    if not isinstance(term, Node):
        return str(term)
    plain = str(Node(term.operator, tuple(_Written(text(operand)) for operand in term.operands)))  # type: ignore[arg-type]
    return f"TRY{plain}" if term.operator in ARITHMETIC else f"TRY({plain})" if term.operator == "ABS" else plain


@dataclass(frozen=True)
class _Written:
    text: str

    def __str__(self) -> str:
        return self.text


def pairs(case: Case, connection: duckdb.DuckDBPyConnection) -> Counter[tuple[int, int]]:
    """The (r, s) row numbers that join, by DuckDB."""
    for stream in STREAMS:
        rows = pa.Table.from_batches([case.batch(stream, 0, case.rows[stream])])
        connection.register(f"{stream}_rows", rows)
        columns = ", ".join(f"{name}::{_TYPES.get(kind, kind)} AS {name}" for name, kind in case.columns[stream])
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE {stream} AS SELECT id, epoch_us(ts) AS ts, {columns} FROM {stream}_rows"
        )
    where = " AND ".join(map(text, case.conjuncts))
    if case.window.before_us is not None:
        where += f" AND s.ts - r.ts BETWEEN {-case.window.before_us} AND {case.window.after_us}"
    return Counter(connection.execute(f"SELECT r.id, s.id FROM r, s WHERE {where}").fetchall())


_TYPES = {
    **dict.fromkeys(("int8", "int16", "int32", "int64"), "BIGINT"),
    **dict.fromkeys(("float32", "float64"), "DOUBLE"),
    "string": "VARCHAR",
    "binary": "BLOB",
    "bool": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamp_ns": "TIMESTAMP_NS",
}
"""Integers are BIGINTs and floats DOUBLEs, for these are what we compute in."""
