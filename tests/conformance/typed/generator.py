"""A seed -> a case: random conditions over random types, and rows whose values lie where the conditions turn."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from typing import Any

from .case import STREAMS, WAYS, Case, Row, Window
from .kinds import INSTANTS, INT_BITS, NS, NUMBERS, OTHERS, edges, nearest, number
from .terms import INTERVAL_US, MIRRORED, SAFE, Column, Interval, Node, Number, Term, Text, node

SMALL = ("0", "1", "2", "3", "20", "0.5", "0.57", "0.01", "1.50", "2.01", "0.1", "0.3", "1e0", "5e-1", "1e3")
LARGE = (
    "-1", "255", "9007199254740992", "9007199254740993", "4611686018427387904", "9223372036854775806",
    "9223372036854775807", "-9223372036854775808", "9223372036854775808", "18446744073709551615",
    "10000000000000000000", "1" + "0" * 30, "9" * 38, "9" * 60, "-18446744073709551616",
    "0.005", "0.0", "0.000000000000000001", "0." + "0" * 37 + "1", "0." + "9" * 38, "99999999999999999999.5",
    "123456789012345678901234567890.12", "9223372036854775807.5", "9007199254740992.5", "9999999.99",
    "9" * 36 + ".99", "0.50000000000000000001", "1." + "0" * 20 + "1",
    "0e0", "57e-2", "1e-3", "1e16", "1e19", "1e38", "1e300", "1e308", "5e-324", "1e-300", "-1e-3",
)  # fmt: skip
RANGES = ("<", "<=", ">", ">=")


@dataclass
class Relation:
    """A column of each stream, and by how much values may differ where a condition turns.

    Args:
        shifts: R's value less S's, as numbers of `kinds.number`.
        bases: values that this relation's are near to.
    """

    r: Column
    s: Column
    shifts: list[Fraction] = field(default_factory=lambda: [Fraction(0)])
    bases: list[Any] = field(default_factory=list)


class Generator:
    """Makes one case.

    Args:
        seed: the same one gives the same case.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = Random(seed)
        self.columns: dict[str, list[tuple[str, str]]] = {stream: [] for stream in STREAMS}
        self.relations: list[Relation] = []
        self.bands_only = self.rng.random() < 0.15

    def case(self) -> Case:
        """The case."""
        rng = self.rng
        conjuncts: list[Term] = []
        for _ in range(rng.choices((1, 2, 3, 4), (45, 30, 15, 10))[0]):
            if rng.random() < 0.12:
                conjuncts.append(self.selection())
            else:
                conjuncts.append(self.condition())
        if not self.relations:
            self.relation()
        rows = self.rows()
        return Case(
            {stream: tuple(columns) for stream, columns in self.columns.items()},
            rows,
            tuple(conjuncts),
            self.window(),
            rng.choice(list(WAYS)),
            rng.choices(("auto", "hash", "tree", "scan"), (55, 10, 25, 10))[0],
            rng.choices((1, 2, 3), (60, 30, 10))[0],
            self.seed,
            tuple(self.item() for _ in range(rng.choices((0, 1, 2), (70, 20, 10))[0])),
        )

    # --- conditions ---------------------------------------------------------------------------------------------------

    def condition(self, nested: bool = False) -> Node:
        """A condition over both streams."""
        rng = self.rng
        if not nested and rng.random() < 0.06:
            return node("OR", self.condition(True), self.condition(True))
        if not nested and rng.random() < 0.03:
            return node("NOT", self.condition(True))
        again = self.relations and rng.random() < (0.1 if self.bands_only else 0.35)
        relation = rng.choice(self.relations) if again else self.relation()
        if self.bands_only and relation.r.kind not in OTHERS:
            shape = rng.choice(BANDS)
        elif relation.r.kind in NUMBERS:
            shape = rng.choices(list(_NUMERIC), list(_NUMERIC.values()))[0]
        elif relation.r.kind in INSTANTS:
            shape = rng.choices(list(_TEMPORAL), list(_TEMPORAL.values()))[0]
        else:
            shape = rng.choices([equality, one_sided, unequal], (50, 40, 10))[0]
        return shape(self, relation)

    def relation(self) -> Relation:
        """Two new columns of types that compare."""
        rng = self.rng
        group = rng.choices((NUMBERS, INSTANTS, OTHERS), (75, 15, 10))[0]
        kind = rng.choice(group)
        if group is NUMBERS and rng.random() < 0.3:
            kind = rng.choice(("int64", "float64"))
        same = group is OTHERS or rng.random() < 0.45
        kinds = (kind, kind if same else rng.choice(group))
        name = "abcdefgh"[len(self.relations)]
        relation = Relation(*(Column(stream, name, of) for stream, of in zip(STREAMS, kinds, strict=True)))
        for column in (relation.r, relation.s):
            self.columns[column.stream].append((column.name, column.kind))
        pool = [number(of, value) for of in kinds for value in edges(of)] if group is not OTHERS else list(edges(kind))
        relation.bases = rng.sample(pool, min(rng.choice((1, 2, 3, 5)), len(pool)))
        self.relations.append(relation)
        return relation

    def constant(self, relation: Relation) -> Number:
        """A number, often one that stands between two edges of the types."""
        rng = self.rng
        draw = rng.random()
        text = rng.choice(SMALL) if draw < 0.6 else rng.choice(LARGE)
        if draw > 0.9 and relation.bases and isinstance(base := rng.choice(relation.bases), Fraction):
            scale = rng.choice((0, 0, 2, 18))
            whole = math.floor(base * 10**scale)
            digits = str(abs(whole)).rjust(scale + 1, "0")
            text = ("-" if whole < 0 else "") + (f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits)
            if len(digits) > 70:
                text = rng.choice(LARGE)
        return Number("-" + text if rng.random() < 0.15 and not text.startswith("-") else text)

    def interval(self, relation: Relation) -> Interval:
        """A span of time."""
        if "date" in (relation.r.kind, relation.s.kind) and self.rng.random() < 0.6:
            return Interval(self.rng.choice((0, 1, 2, 36_525)), "DAY")
        return Interval(self.rng.choice((0, 1, 2, 20, 999, 1_000, -1)), self.rng.choice(list(INTERVAL_US)[:3]))

    def selection(self) -> Term:
        """A condition over one stream."""
        rng = self.rng
        relation = rng.choice(self.relations) if self.relations else self.relation()
        column = rng.choice((relation.r, relation.s))
        if column.kind == "bool" and rng.random() < 0.5:
            return column
        draw = rng.random()
        if draw < 0.2 or column.kind in ("bool", "binary", *INSTANTS):
            return node(rng.choice(("IS NULL", "IS NOT NULL")), column)
        if column.kind == "string":
            return node(rng.choice(RANGES), column, Text(rng.choice(edges("string")[:-1]).replace("\0", "")))
        if draw < 0.4:
            return node("BETWEEN", column, self.constant(relation), self.constant(relation))
        if draw < 0.5:
            return node("IN", column, *(self.constant(relation) for _ in range(3)))
        return self.flipped(rng.choice((*RANGES, "=", "<>")), column, self.constant(relation))

    def item(self) -> Term:
        """Something computed of a column of each stream; a condition shows NULL and FALSE apart."""
        rng = self.rng
        relation = rng.choice(self.relations)
        if relation.r.kind in OTHERS or rng.random() < 0.25:
            return self.flipped(rng.choice((*RANGES, "=", "<>")), relation.r, relation.s)
        if relation.r.kind in INSTANTS:
            of_both = node("-", relation.r, relation.s)
            return rng.choice((of_both, node("ABS", of_both), self.shifted(relation, relation.r, 1)))
        operator = rng.choice(("+", "-", "*", "/"))
        result = node(operator, relation.r, rng.choice((relation.s, self.constant(relation))))
        outer = rng.choice((None, None, None, "ABS", "NEGATE", "FLOOR", "CEIL", "ROUND", "IS NULL"))
        return node(outer, result) if outer else result

    def flipped(self, operator: str, left: Term, right: Term) -> Node:
        """A comparison, now and then the other way round, or with NULL as a value."""
        operator = SAFE[operator] if operator in SAFE and self.rng.random() < 0.2 else operator
        if self.rng.random() < 0.3:
            return node(MIRRORED[operator], right, left)
        return node(operator, left, right)

    def shifted(self, relation: Relation, term: Term, sign: int) -> Term:
        """A term plus or minus a constant; `sign` is the sign of the shift that this makes."""
        minus = self.rng.random() < 0.5
        amount: Number | Interval
        if relation.r.kind in INSTANTS:
            amount = self.interval(relation)
            value = Fraction(amount.us * NS)
        else:
            amount = self.constant(relation)
            value = Fraction(amount.text)
        relation.shifts.append(-sign * value if minus else sign * value)
        return node("-" if minus else "+", term, amount)

    # --- rows ---------------------------------------------------------------------------------------------------------

    def rows(self) -> dict[str, list[Row]]:
        """5 to 12 rows a side; each of S is near one of R, in every relation."""
        rng = self.rng
        counts = {stream: rng.randint(5, 12) for stream in STREAMS}
        spread = rng.choice((0, 3, 40))
        times = {stream: sorted(rng.randint(0, spread) for _ in range(counts[stream])) for stream in STREAMS}
        r = [{"ts": ts} for ts in times["r"]]
        for relation in self.relations:
            for row in r:
                row[relation.r.name] = self.value(relation.r.kind, rng.choice(relation.bases), relation)
        s = []
        for ts in times["s"]:
            partner = rng.choice(r)
            row = {"ts": ts}
            for relation in self.relations:
                row[relation.s.name] = self.beside(relation, partner[relation.r.name])
            s.append(row)
        return {"r": r, "s": s}

    def value(self, kind: str, base: Any, relation: Relation) -> Any:
        """A value near a base."""
        rng = self.rng
        draw = rng.random()
        if draw < 0.05:
            return None
        if draw < 0.2:
            return rng.choice(edges(kind))
        if kind in OTHERS:
            return base
        shift = rng.choice(relation.shifts) * rng.choice((0, 0, 1, -1))
        return nearest(kind, base if isinstance(base, float) else base + shift, rng.choice((0, 0, 0, 1, -1)))

    def beside(self, relation: Relation, partner: Any) -> Any:
        """A value of S near the place where a condition with R's value turns."""
        rng = self.rng
        kind = relation.s.kind
        if partner is None or kind in OTHERS or rng.random() < 0.12:
            return self.value(
                kind, partner if kind in OTHERS and partner is not None else rng.choice(relation.bases), relation
            )
        if rng.random() < 0.04:
            return None
        base = number(relation.r.kind, partner)
        assert base is not None
        if isinstance(base, Fraction):
            base -= rng.choice(relation.shifts)
        return nearest(kind, base, rng.choice((0, 0, 0, 1, -1)))

    def window(self) -> Window:
        """Mostly none, so that conditions decide."""
        rng = self.rng
        draw = rng.random()
        if draw < 0.65:
            return Window()
        if draw < 0.85:
            return Window(rng.choice((0, 1, 20)), rng.choice((0, 1, 20)))
        return Window(rows=rng.choice((1, 3, 100)))


# --- shapes: numbers and times ----------------------------------------------------------------------------------------


def equality(g: Generator, relation: Relation) -> Node:
    """a = b."""
    return g.flipped("=", relation.r, relation.s)


def unequal(g: Generator, relation: Relation) -> Node:
    """a <> b."""
    return g.flipped("<>", relation.r, relation.s)


def one_sided(g: Generator, relation: Relation) -> Node:
    """a < b."""
    return g.flipped(g.rng.choice(RANGES), relation.r, relation.s)


def shifted_right(g: Generator, relation: Relation) -> Node:
    """a < b + c."""
    operator = g.rng.choice((*RANGES, "="))
    return g.flipped(operator, relation.r, g.shifted(relation, relation.s, 1))


def shifted_left(g: Generator, relation: Relation) -> Node:
    """a + c < b."""
    operator = g.rng.choice((*RANGES, "="))
    return g.flipped(operator, g.shifted(relation, relation.r, -1), relation.s)


def shifted_both(g: Generator, relation: Relation) -> Node:
    """a + c < b + d."""
    operator = g.rng.choice((*RANGES, "="))
    left, right = g.shifted(relation, relation.r, -1), g.shifted(relation, relation.s, 1)
    relation.shifts.append(relation.shifts[-1] + relation.shifts[-2])
    return g.flipped(operator, left, right)


def _width(g: Generator, relation: Relation, sign: int) -> Number | Interval:
    if relation.r.kind in INSTANTS:
        span = g.interval(relation)
        relation.shifts += [Fraction(span.us * NS), Fraction(-span.us * NS)][:: 1 if sign > 0 else -1]
        return span
    width = g.constant(relation)
    relation.shifts += [Fraction(width.text), -Fraction(width.text)]
    return width


def difference_form(g: Generator, relation: Relation) -> Node:
    """a - b < c."""
    sides = [relation.r, relation.s] if g.rng.random() < 0.6 else [relation.s, relation.r]
    return g.flipped(g.rng.choice((*RANGES, "=")), node("-", *sides), _width(g, relation, 1))


def absolute_band(g: Generator, relation: Relation) -> Node:
    """ABS(a - b) <= c."""
    sides = [relation.r, relation.s] if g.rng.random() < 0.6 else [relation.s, relation.r]
    operator = g.rng.choices(("<=", "<", ">", "="), (55, 30, 10, 5))[0]
    return g.flipped(operator, node("ABS", node("-", *sides)), _width(g, relation, 1))


def between(g: Generator, relation: Relation) -> Node:
    """a BETWEEN b - c AND b + d."""
    one, other = (relation.r, relation.s) if g.rng.random() < 0.6 else (relation.s, relation.r)
    sign = 1 if one is relation.r else -1
    bounds = [g.shifted(relation, other, sign) if g.rng.random() < 0.85 else other for _ in range(2)]
    return node("BETWEEN", one, *bounds)


def difference_between(g: Generator, relation: Relation) -> Node:
    """a - b BETWEEN -c AND d."""
    low, high = _width(g, relation, -1), _width(g, relation, 1)
    if isinstance(low, Number):
        low = Number(low.text[1:] if low.text.startswith("-") else "-" + low.text)
    else:
        low = Interval(-low.number, low.unit)
    return node("BETWEEN", node("-", relation.r, relation.s), low, high)


def listed(g: Generator, relation: Relation) -> Node:
    """a IN (b, ...)."""
    return node("IN", relation.r, relation.s, g.shifted(relation, relation.s, 1))


def product(g: Generator, relation: Relation) -> Node:
    """a * c < b."""
    operator = g.rng.choice(("*", "*", "/"))
    factor = g.constant(relation)
    return g.flipped(g.rng.choice((*RANGES, "=")), node(operator, relation.r, factor), relation.s)


def remainder(g: Generator, relation: Relation) -> Node:
    """a % c = b % c, where both are integers."""
    if not {relation.r.kind, relation.s.kind} <= INT_BITS.keys():
        return absolute_band(g, relation)
    by = Number(g.rng.choice(("7", "2", "-3", "0", "9223372036854775807", "-1")))
    return g.flipped("=", node("%", relation.r, by), node("%", relation.s, by))


def whole(g: Generator, relation: Relation) -> Node:
    """FLOOR(a) = b."""
    function = g.rng.choice(("FLOOR", "CEIL", "ROUND"))
    right: Term = node(function, relation.s) if g.rng.random() < 0.5 else relation.s
    return g.flipped(g.rng.choice((*RANGES, "=")), node(function, relation.r), right)


def negated(g: Generator, relation: Relation) -> Node:
    """-a < b, or ABS(a) = ABS(b)."""
    if g.rng.random() < 0.5:
        return g.flipped(g.rng.choice(("=", "<=")), node("ABS", relation.r), node("ABS", relation.s))
    return g.flipped(g.rng.choice((*RANGES, "=")), node("NEGATE", relation.r), relation.s)


def added(g: Generator, relation: Relation) -> Node:
    """a + b < c."""
    return g.flipped(g.rng.choice(RANGES), node("+", relation.r, relation.s), _width(g, relation, 1))


Shape = Callable[[Generator, Relation], Node]
BANDS: tuple[Shape, ...] = (absolute_band, between, difference_between)  # alone, answered by a grid or value ranges
_TEMPORAL: dict[Shape, int] = {
    equality: 16,
    unequal: 3,
    one_sided: 14,
    shifted_right: 14,
    shifted_left: 8,
    shifted_both: 5,
    difference_form: 12,
    absolute_band: 14,
    between: 12,
    difference_between: 6,
}
_NUMERIC: dict[Shape, int] = {
    **_TEMPORAL,
    listed: 3,
    product: 5,
    remainder: 3,
    whole: 4,
    negated: 4,
    added: 2,
}
"""Shapes and how often they come."""


def generate(seed: int) -> Case:
    """The case of a seed."""
    return Generator(seed).case()
