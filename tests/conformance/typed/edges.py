"""The edges at which conditions turn: a name -> columns, rows, condition and how many pairs there are.

The counts are written by hand; both oracles must give them too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from .case import Case
from .terms import Column, Interval, Node, Number, Term, node

A, B = "a", "b"
TOP, BOTTOM = 2**63 - 1, -(2**63)
LONG = "1234567890123456789012345678901"
INF, NAN = math.inf, math.nan


@dataclass(frozen=True)
class Edge:
    """One edge over columns a, and b where there are two.

    Args:
        kinds: of R's a and S's a, then of R's b and S's b.
        r, s: values of a, or (a, b).
        pairs: how many there are.
    """

    kinds: tuple[str, ...]
    r: Sequence[Any]
    s: Sequence[Any]
    where: tuple[Term, ...]
    pairs: int

    @property
    def case(self) -> Case:
        """To run."""
        names = (A, B)[: len(self.kinds) // 2]
        columns = {
            stream: tuple((name, self.kinds[2 * place + side]) for place, name in enumerate(names))
            for side, stream in enumerate(("r", "s"))
        }
        rows = {
            stream: [
                {"ts": number, **dict(zip(names, value if len(names) > 1 else (value,), strict=True))}
                for number, value in enumerate(values)
            ]
            for stream, values in (("r", self.r), ("s", self.s))
        }
        return Case(columns, rows, self.where)


Where = Callable[[Column, Column], Node]
"""A condition over a column of each stream."""


def _columns(*kinds: str) -> tuple[Column, ...]:
    return tuple(Column("rs"[place % 2], (A, B)[place // 2], kind) for place, kind in enumerate(kinds))


def _edge(kinds: tuple[str, str], r: Sequence[Any], s: Sequence[Any], pairs: int, where: Where) -> Edge:
    left, right = _columns(*kinds)
    return Edge(kinds, r, s, (where(left, right),), pairs)


def _number(value: str | int) -> Number:
    return Number(str(value))


def _is(operator: str) -> Where:
    return lambda r, s: node(operator, r, s)


def _apart(operator: str, width: str | Interval) -> Where:
    span = width if isinstance(width, Interval) else _number(width)
    return lambda r, s: node(operator, node("ABS", node("-", r, s)), span)


def _moved(operator: str, sign: str, shift: str | Interval) -> Where:
    amount = shift if isinstance(shift, Interval) else _number(shift)
    return lambda r, s: node(operator, r, node(sign, s, amount))


def _around(shift: str) -> Where:
    return lambda r, s: node("BETWEEN", r, node("-", s, _number(shift)), node("+", s, _number(shift)))


def _whole(function: str) -> Where:
    return lambda r, s: node("=", node(function, r), node(function, s))


def _decimals(*texts: str) -> list[Decimal]:
    return [Decimal(text) for text in texts]


MONEY, NEAR_MONEY = _decimals("10.00", "10.57"), _decimals("10.50", "10.00")
D92 = ("decimal(9,2)", "decimal(9,2)")
FAR, WHOLE = ("decimal(38,38)", "decimal(38,0)"), ("decimal(38,0)", "decimal(38,0)")
UINT = ("decimal(20,0)", "decimal(20,0)")
INTS, DOUBLES = ("int64", "int64"), ("float64", "float64")
NANOS = ("timestamp_ns", "timestamp_ns")
TENTHS = ("0.57", "2.01", "0.50")
HUGE = Number("1e308")
MICRO = Interval(1, "MICROSECOND")

EDGES: dict[str, Edge] = {
    "decimals between integers": _edge(D92, MONEY, NEAR_MONEY, 4, _around("1")),
    "decimals at most one above": _edge(D92, MONEY, NEAR_MONEY, 4, _moved("<=", "+", "1")),
    "decimals at most one apart": _edge(D92, MONEY, NEAR_MONEY, 4, _apart("<=", "1")),
    "decimals at a bound of two digits": _edge(D92, MONEY, NEAR_MONEY, 4, _apart("<=", "0.57")),
    "decimals inside a bound of two digits": _edge(D92, MONEY, NEAR_MONEY, 3, _apart("<", "0.57")),
    "a decimal is the constant": Edge(
        D92, _decimals("0.57"), _decimals("0.57"),
        (node("=", Column("r", A, D92[0]), Number("0.57")), node("=", *_columns(*D92))), 1,
    ),
    "decimal key is double key": _edge(
        ("decimal(9,2)", "float64"), _decimals(*TENTHS), [float(text) for text in TENTHS], 3, _is("=")
    ),
    "double key is decimal key of 38 digits": _edge(
        ("float64", "decimal(38,18)"), [float(text) for text in TENTHS], _decimals(*TENTHS), 3, _is("=")
    ),
    "float32 is no decimal tenth": _edge(
        ("float32", "decimal(9,2)"), [0.5699999928474426, 0.5], _decimals("0.57", "0.50"), 1, _is("=")
    ),
    "unsigned integers 20 apart": _edge(
        UINT, _decimals("18446744073709551615"), _decimals("18446744073709551595", "18446744073709551594"), 1,
        _apart("<=", "20"),
    ),
    "nothing is below the least integer": _edge(INTS, [BOTTOM], [BOTTOM], 0, _is("<")),
    "nothing is above the greatest integer": _edge(INTS, [TOP], [TOP], 0, _is(">")),
    "the least integers are equal": _edge(INTS, [BOTTOM, TOP], [BOTTOM, TOP], 3, _is("<=")),
    "infinities less one": _edge(DOUBLES, [INF], [INF], 1, _moved(">=", "-", "1")),
    "infinities are no distance apart": _edge(DOUBLES, [INF], [INF], 0, _apart("<=", "1")),
    "NaN is above one less": _edge(DOUBLES, [NAN, INF], [INF, 0.0], 4, _moved(">=", "-", "1")),
    "zeros of two signs": _edge(DOUBLES, [0.0, -0.0], [0.0, -0.0], 4, _is("=")),
    "nanoseconds differ": _edge(NANOS, [1, 999, 1_000], [1, 999, 1_000], 3, _is("=")),
    "nanoseconds and microseconds": _edge(("timestamp_ns", "timestamp"), [1, 999, 1_000], [1], 1, _is("=")),
    "nanoseconds inside a microsecond": _edge(NANOS, [1_001], [0, 1, 2], 2, _apart("<=", MICRO)),
    "times before 1970": _edge(
        ("timestamp", "date"), [-1, -86_400_000_000, 0], [-1, 0], 2, _is("="),
    ),
    "days a day apart": _edge(("date", "date"), [0, 2], [1, 3, 2**31 - 1], 3, _apart("<=", Interval(1, "DAY"))),
    "days at least a day later": _edge(
        ("date", "date"), [0, 1, 2], [0, 1], 3,
        lambda r, s: node(">=", node("-", r, s), Interval(1, "DAY")),
    ),
    "a day has no midnight beyond the timestamps": _edge(
        ("date", "timestamp"), [106_751_991, 106_751_992], [0], 1, _is(">=")
    ),
    "nanoseconds beside a microsecond they do not reach": _edge(
        ("timestamp_ns", "timestamp"), [TOP], [TOP // 1_000, TOP // 1_000 + 1], 1, _apart("<=", Interval(1, "SECOND"))
    ),
    "timestamps at their limits": _edge(
        ("timestamp", "timestamp"), [TOP, BOTTOM], [TOP - 1, BOTTOM + 1], 2, _apart("<=", MICRO)
    ),
    "limits of two clocks": _edge(("timestamp", "timestamp_ns"), [TOP, BOTTOM, 0], [TOP, BOTTOM, 0], 5, _is(">=")),
    "31 digits and two scales": _edge(
        ("decimal(38,0)", "decimal(38,2)"), _decimals(LONG, LONG[:-1] + "2"),
        _decimals(LONG + ".00", LONG + ".01", LONG[:-1] + "2.00"), 2, _is("="),
    ),
    "an integer and 20 decimal places": _edge(
        ("int64", "decimal(38,20)"), [3, 2**53 + 1, -4],
        _decimals("3.00000000000000000000", "3.00000000000000000001", "-4.00000000000000000000"), 2, _is("="),
    ),
    "an integer and 38 decimal places": _edge(
        ("int64", "decimal(38,38)"), [0, 1], _decimals("0." + "0" * 38, "0." + "9" * 38, "0." + "0" * 37 + "1"), 3,
        _is("<="),
    ),
    "keys above 2**53 half apart": _edge(INTS, [2**53 + 1], [2**53, 2**53 + 1, 2**53 + 2], 1, _apart("<=", "0.5")),
    "bands wider than int64, exponent": _edge(INTS, [BOTTOM, 0, TOP], [BOTTOM, 0, TOP], 5, _apart("<=", "1e19")),
    "bands wider than int64, digits": _edge(
        INTS, [BOTTOM, 0, TOP], [BOTTOM, 0, TOP], 5, _apart("<=", "18446744073709551615")
    ),
    "decimals wider apart than int64": _edge(
        UINT, _decimals("0", "18446744073709551615"), _decimals("0", "18446744073709551614"), 3,
        _apart("<=", "18446744073709551614"),
    ),
    "shifts beyond int64": _edge(INTS, [TOP], [TOP, 0], 2, _moved("<", "+", "9223372036854775808")),
    "sums outside int64 are NULL": _edge(INTS, [TOP, BOTTOM], [TOP, TOP - 1], 1, _moved("<", "+", "1")),
    "a shift of many digits": _edge(
        ("decimal(38,38)", "decimal(38,0)"), _decimals("0." + "9" * 38), _decimals("0", "1"), 1,
        _moved("=", "+", "0." + "9" * 38),
    ),
    "doubles a unit in the last place apart": _edge(
        DOUBLES, [0.3, 0.30000000000000004], [0.1], 1, _moved("=", "+", "0.2")
    ),
    "floats and a decimal sum": _edge(
        ("float32", "decimal(9,2)"), [16777216.0, 16777215.0], _decimals("1.00"), 1, _moved("<", "+", "16777215")
    ),
    "doubles next to each other, from above": _edge(DOUBLES, [0.1, math.nextafter(0.1, 1)], [0.1], 1, _is("<=")),
    "doubles next to each other, from below": _edge(DOUBLES, [0.1, math.nextafter(0.1, 0)], [0.1], 1, _is(">=")),
    "sums that swallow what is added": _edge(
        DOUBLES, [1.0, 0.2], [0.2, 1.0], 4,
        lambda r, s: node("<=", node("+", r, _number("1e16")), node("+", s, _number("1e16"))),
    ),
    "a sum that overflows is infinity": _edge(
        DOUBLES, [9.999999999999998e307, 1.0, -INF], [INF, 1e300], 3,
        lambda r, s: node("<=", s, node("+", r, HUGE)),
    ),
    "a sum that overflows on its way": _edge(
        DOUBLES, [5e307, -1e308], [INF, 1.7e308, 1e300], 3,
        lambda r, s: node("<=", node("+", s, HUGE), node("+", node("+", r, HUGE), HUGE)),
    ),
    "a decimal of 39 digits beside 38 after the point": _edge(
        FAR, _decimals("0.42999999999999999999999999999999999999", "0.43"), _decimals("1"), 1, _moved(">=", "-", "0.57")
    ),
    "digits that only a decimal of 77 holds": _edge(
        WHOLE, _decimals("0", "1", "3"), _decimals("1"), 1, _apart("<=", "0." + "9" * 38)
    ),
    **{
        f"no decimal holds both sides of {operator}": _edge(
            FAR, _decimals("0.5", "-0.5", "1e-38", "-1e-38", "0"), _decimals("9223372036854775808", "7"), pairs,
            lambda r, s, operator=operator: node(operator, r, node("*", node("-", s, _number(2**63)), _number("1"))),
        )
        for operator, pairs in (("<", 2), ("<=", 3), (">", 7), (">=", 8), ("=", 1), ("<>", 9))
    },
    "denormals": _edge(DOUBLES, [5e-324, 0.0], [0.0, -5e-324], 3, _apart("<=", "5e-324")),
    "long common beginnings": _edge(
        ("string", "string"), ["abcdefghi", "abcdefgh", ""], ["abcdefghj", "abcdefgh", ""], 6, _is("<=")
    ),
    "bytes from below": _edge(("binary", "binary"), [b"\xff", b"a", b""], [b"\xff", b"a", b""], 6, _is(">=")),
    "texts by their bytes": _edge(("string", "string"), ["\uffff", "ä"], ["\U0001f600", "a\u0308"], 2, _is("<")),
    "NULL equals nothing": _edge(INTS, [None, 1], [None, 1], 1, _is("=")),
    "NULL is NULL and not what fills its place": _edge(INTS, [None, 0], [None, 0, 0], 3, _is("IS NOT DISTINCT FROM")),
    **{
        f"NULL of {kind} is NULL and nothing else": _edge(
            (kind, kind), [None, empty], [None, empty, None], 3, _is("IS NOT DISTINCT FROM")
        )
        for kind, empty in (
            ("float64", -0.0), ("decimal(9,2)", Decimal("0.00")), ("decimal(38,0)", Decimal(0)), ("string", ""),
            ("binary", b""), ("bool", False), ("date", 0), ("timestamp", 0), ("timestamp_ns", 0),
        )
    },
    "what is distinct from NULL": _edge(INTS, [None, 0], [None, 0, 1], 4, _is("IS DISTINCT FROM")),
    "NULL of two types": _edge(("decimal(20,0)", "float64"), [None, Decimal(0)], [None, -0.0, NAN], 2,
                               _is("IS NOT DISTINCT FROM")),
    "a day without a midnight is NULL beside timestamps": _edge(
        ("date", "timestamp"), [106_751_992, None, 0], [None, 0], 3, _is("IS NOT DISTINCT FROM")
    ),
    "two bands, one row at minus infinity": Edge(
        (*DOUBLES, *DOUBLES), [(-INF, 0.0), (1.0, 1.0), (2.0, 5.0)], [(-INF, 0.0), (1.5, 1.5), (-1e300, 0.0)],
        tuple(_apart("<=", "1")(*pair) for pair in (_columns(*DOUBLES), _columns(*DOUBLES, *DOUBLES)[2:])), 1,
    ),
    "two bands that open to one side": Edge(
        (*DOUBLES, *DOUBLES), [(-INF, 0.0), (1.0, 1.0), (INF, 1.0)], [(-INF, 0.0), (1.5, 1.5), (INF, 0.5), (NAN, 1.0)],
        tuple(_around("1")(*pair) for pair in (_columns(*DOUBLES), _columns(*DOUBLES, *DOUBLES)[2:])), 3,
    ),
    "bands narrower than the rounding of their constants": Edge(
        (*DOUBLES, *DOUBLES), [(0.0, 0.0), (1e30, 0.0)], [(0.0, 0.0), (0.05, 0.0), (1e30, 0.0), (INF, 0.0)],
        tuple(
            node("BETWEEN", r, node("-", s, _number(low)), node("+", s, _number(high)))
            for (r, s), low, high in (
                (_columns(*DOUBLES), "0.1", "1e29"), (_columns(*DOUBLES)[::-1], "0.1", "1e29"),
                (_columns(*DOUBLES, *DOUBLES)[2:], "1", "1"),
            )
        ),
        3,
    ),
    **{
        f"{function} at the limit of {kind}": _edge(
            (kind, kind), _decimals(value, "-" + value, short), _decimals(short), pairs,
            _whole(function),
        )
        for function in ("FLOOR", "CEIL", "ROUND")
        for kind, value, short, pairs in (
            ("decimal(38,0)", "9" * 38, "7", 1),
            ("decimal(38,2)", "9" * 36 + ".99", "7.00", 1),
            ("decimal(9,2)", "9999999.99", "7.00", 1),
            ("decimal(38,38)", "0." + "9" * 38, "0." + "0" * 38, {"FLOOR": 2, "CEIL": 2, "ROUND": 1}[function]),
        )
    },
    **{
        f"{function} of twenty nines": _edge(
            ("decimal(38,20)", "int64"), _decimals(f"{2**53 - 1}." + "9" * 20), [2**53 - 1, 2**53], 1, _whole(function)
        )
        for function in ("FLOOR", "CEIL", "ROUND")
    },
    "the last doubles below a half round to zero": _edge(
        DOUBLES, [0.49999999999999994, 0.5, -0.49999999999999994, -0.5, 1.5], [0.0, 0.5, -1.0], 4, _whole("ROUND")
    ),
    "rounding integers above 2**53": _edge(
        INTS, [2**53 + 1], [2**53, 2**53 + 1], 1, _whole("ROUND")
    ),
    **{
        f"a large integer as a double is rounded, {name}": _edge(
            INTS, [2**60 + 3, 2**60 + 200], [2**60], 1, lambda r, s, bound=bound: bound(node("DOUBLE", r), s)
        )
        for name, bound in (("moved", _moved("<=", "+", "1")), ("in between", _around("1")), ("alone", _is("<=")))
    },
    "the difference of large integers is rounded as a double": _edge(
        INTS, [2**60 + 3, 2**60 + 4], [3], 2,
        lambda r, s: node("<=", node("DOUBLE", node("-", r, s)), Number(str(2**60))),
    ),
    "a constant is cut off as an integer": _edge(
        INTS, [12, 13, 11], [10], 2,
        lambda r, s: node(">=", r, node("+", s, node("INT", node("NEGATE", node("NEGATE", Number("2.7")))))),
    ),
    **{
        f"a constant that REAL does not hold, {name}": _edge(DOUBLES, [1e300, NAN], [1.0, NAN], pairs, where)
        for name, pairs, where in (
            ("moved", 3, lambda r, s: node("<=", r, node("+", s, node("REAL", HUGE)))),
            ("apart", 1, lambda r, s: node("<=", node("ABS", node("-", r, s)), node("REAL", HUGE))),
        )
    },
}  # fmt: skip
