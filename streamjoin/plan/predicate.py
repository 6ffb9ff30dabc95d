"""A bound WHERE clause, taken apart: what each stream can check alone, what an index can answer, and what is left.

    R.c = 'x' AND R.k = S.k AND ABS(R.y - S.y) <= 3 AND similar(R.v, S.v)
    selection    equality      range                 residual

A conjunct is *separable* when it compares an expression over R with one over S; only such conjuncts can lead to an
index. An index answer may be a superset: conjuncts it does not settle exactly are checked again on the pairs it found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import pyarrow as pa

from streamjoin.plan.coercion import call, cast
from streamjoin.plan.expression import TRUE, Call, Expression, Literal, conjunction, conjuncts, streams_of, walk
from streamjoin.plan.types import BOOL, DURATION_NS, FLOAT64, comparison_type, embeds, is_instant, is_number, too_wide
from streamjoin.plan.window import R, S


@dataclass(frozen=True, slots=True)
class Equality:
    """R's key equals S's key; both expressions have one type.

    Where `joins_null` (IS NOT DISTINCT FROM), NULL equals NULL. An index then does not settle it: NULL has the key of
    some other value there.
    """

    keys: tuple[Expression, Expression]
    source: Expression

    @property
    def joins_null(self) -> bool:
        """Whether a tuple with a NULL key can match something."""
        return isinstance(self.source, Call) and self.source.function == "same"


@dataclass(frozen=True, slots=True)
class Range:
    """low <= R's key - S's key <= high; None is unbounded.

    Args:
        keys: expressions of one type, R's first.
        low, high: exact; of numbers as they are, of times in us.
        strict_low, strict_high: the bound itself is excluded.
        exact: the difference as computed here agrees with the query text for every value, so that pairs
            an index finds need no second check. Float differences round, integer ones may leave int64.
        sources: the conjuncts this range stands for.
        slack: of floats, the sum of the constants' sizes, by which the rounding of the query's sums is bounded.
        takes_nan, bars_nan: whether the condition holds, or fails, where the difference of the keys is NaN, which
            says nothing of their order. See `_indexed`.
    """

    keys: tuple[Expression, Expression]
    low: Fraction | None
    high: Fraction | None
    strict_low: bool
    strict_high: bool
    exact: bool
    sources: tuple[Expression, ...]
    slack: Fraction = Fraction(0)
    takes_nan: bool = False
    bars_nan: bool = False

    @property
    def is_band(self) -> bool:
        """Bounded at both ends, so an index looks at a slice and not at half of everything."""
        return self.low is not None and self.high is not None

    def mirrored(self) -> Range:
        """The same range seen from S: bounds of S's key - R's key."""
        return replace(
            self,
            keys=(self.keys[1], self.keys[0]),
            low=None if self.high is None else -self.high,
            high=None if self.low is None else -self.low,
            strict_low=self.strict_high,
            strict_high=self.strict_low,
        )

    def __str__(self) -> str:
        return " AND ".join(str(source) for source in self.sources)


@dataclass(frozen=True, slots=True)
class JoinPredicate:
    """The condition of a binary join, taken apart.

    Args:
        selections: of R and of S, what their tuples must fulfil to be looked at.
        eligible: of R and of S, what their tuples must fulfil to be matched; others are unmatched, and only an outer
            or anti join asks for that.
    """

    selections: tuple[Expression, ...]
    equalities: tuple[Equality, ...]
    ranges: tuple[Range, ...]
    residual: tuple[Expression, ...]
    eligible: tuple[Expression, ...] = (TRUE, TRUE)

    @property
    def whole(self) -> Expression:
        """The join condition as the user wrote it, without the single-stream selections."""
        parts = [equality.source for equality in self.equalities]
        parts += [source for found in self.ranges for source in found.sources]
        return conjunction(parts + list(self.residual))


def analyse(where: Expression, streams: tuple[str, str]) -> JoinPredicate:
    """Take the conjunction `where` over the streams (R, S) apart.

    A conjunct without any column, such as 1 = 0, counts as a selection of R: it drops every tuple or none.
    """
    selections: tuple[list[Expression], list[Expression]] = ([], [])
    equalities: list[Equality] = []
    ranges: list[Range] = []
    residual: list[Expression] = []
    for part in conjuncts(where):
        reads = streams_of(part)
        if len(reads) < 2:
            selections[S if reads == {streams[S]} else R].append(part)
        elif equality := _equality(part, streams):
            equalities.append(equality)
        elif found := _range(part, streams):
            ranges.append(found)
        else:
            residual.append(part)
    merged, left = _indexed(_merge(ranges))
    return JoinPredicate(
        (conjunction(selections[R]), conjunction(selections[S])), tuple(equalities), merged, (*residual, *left)
    )


def led_by(predicate: JoinPredicate, main: Expression) -> JoinPredicate | None:
    """The same predicate with one conjunct as its main one, which an index answers; None if there is no such conjunct.

    The others are secondary: they are checked on the main one's candidates, as ESJ has it. Ranges beside a main
    equality, and beside a main band, may still narrow the candidates down.
    """
    equality = next((found for found in predicate.equalities if found.source == main), None)
    if equality is not None:
        others = tuple(found.source for found in predicate.equalities if found is not equality)
        return replace(predicate, equalities=(equality,), residual=others + predicate.residual)
    parts = set(conjuncts(main))  # BETWEEN is two
    leading = next((found for found in predicate.ranges if parts <= set(found.sources)), None)
    if leading is None:
        return None
    rest = tuple(found for found in predicate.ranges if found is not leading)
    kept = rest if leading.is_band else ()
    secondary = [found.source for found in predicate.equalities]
    secondary += [source for found in rest if found not in kept for source in found.sources]
    return replace(predicate, equalities=(), ranges=(leading, *kept), residual=(*secondary, *predicate.residual))


def _equality(part: Expression, streams: tuple[str, str]) -> Equality | None:
    if not (isinstance(part, Call) and part.function in ("eq", "same")):
        return None
    if (sides := _sides(part.args, streams)) is None:
        return None
    keys = _same_type(sides[:2])
    return None if keys is None else Equality(keys, part)


def _sides(args: Sequence[Expression], streams: tuple[str, str]) -> tuple[Expression, Expression, bool] | None:
    """(R's expression, S's expression, whether they stood the other way round), or None where they mix streams."""
    left, right = (streams_of(arg) for arg in args)
    if left == {streams[R]} and right == {streams[S]}:
        return args[0], args[1], False
    if left == {streams[S]} and right == {streams[R]}:
        return args[1], args[0], True
    return None


_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def _range(part: Expression, streams: tuple[str, str]) -> Range | None:
    if not (isinstance(part, Call) and part.function in _MIRRORED):
        return None
    # Shifted first: r.x > s.y - 5 and r.x < s.y + 5 have the same keys only once the constants are moved aside.
    if found := _absolute_band(part, streams) or _shifted(part, streams):
        return found
    if (sides := _sides(part.args, streams)) and (keys := _same_type(sides[:2])):
        return _one_sided(keys, _MIRRORED[part.function] if sides[2] else part.function, Fraction(0), part, exact=True)
    return None


def _one_sided(
    keys: tuple[Expression, Expression], operator: str, shift: Fraction, part: Expression, *, exact: bool
) -> Range:
    if operator in ("gt", "ge"):
        return Range(keys, shift, None, operator == "gt", False, exact, (part,))
    return Range(keys, None, shift, False, operator == "lt", exact, (part,))


def _same_type(keys: tuple[Expression, Expression]) -> tuple[Expression, Expression] | None:
    """The keys in the narrowest type that compares them as they are compared now; None where there is none.

    The query compares a decimal(9,2) and a decimal(9,2) + 1 as wide decimals; as keys both stay what they are.
    """
    r, s = (_embedded(key) for key in keys)
    if too_wide(r.type, s.type):
        return None
    kind = comparison_type(r.type, s.type)
    if kind is None or (is_instant(r.type) and is_number(kind)):
        return keys if keys[0].type == keys[1].type else None
    return cast(r, kind), cast(s, kind)


def _embedded(expression: Expression) -> Expression:
    """`expression` without casts that change no value."""
    while (
        isinstance(expression, Call)
        and expression.function == "cast"
        and embeds(expression.args[0].type, expression.type)
    ):
        expression = expression.args[0]
    return expression


def _absolute_band(part: Call, streams: tuple[str, str]) -> Range | None:
    """ABS(a - b) <= c, or c >= ABS(a - b)."""
    left, right = part.args
    operator = part.function
    if _constant(left) is not None:
        left, right, operator = right, left, _MIRRORED[operator]
    left = _uncast(left)
    if operator not in ("lt", "le") or not (isinstance(left, Call) and left.function == "abs"):
        return None
    inside = left.args[0]
    width = _constant(right)
    if width is None or not (isinstance(inside, Call) and inside.function == "subtract"):
        return None
    if (sides := _sides(inside.args, streams)) is None or (keys := _same_type(sides[:2])) is None:
        return None
    strict = operator == "lt"
    # Inside a band of this width no difference of integers or times has left int64, so the index settles it. (Days
    # reach further than timestamps do, and their difference is one of timestamps.)
    exact = not (_is_float(keys[0]) or _is_float(right) or pa.types.is_date(keys[0].type)) and width < 2**63
    bounds = Range(keys, -width, width, strict, strict, exact, (part,), slack=width, bars_nan=True)
    return _widened(bounds) if _is_float(right) and not _is_float(keys[0]) else bounds


def _shifted(part: Call, streams: tuple[str, str]) -> Range | None:
    """a - b < c, a < b + c and the like: move the constants to one side and each stream to its own."""
    sides = [_terms(_uncast(side), 1) for side in part.args]
    shift = slack = Fraction(0)
    rounded = any(_is_float(side) for side in part.args)
    grouped: tuple[list[tuple[int, Expression]], list[tuple[int, Expression]]] = ([], [])
    places: dict[int, int] = {}
    for place, (sign, terms) in enumerate(zip((1, -1), sides, strict=True)):
        for inner_sign, term in terms:
            if (value := _constant(term)) is not None:
                shift -= sign * inner_sign * value
                slack += abs(value)
                continue
            reads = streams_of(term)
            if len(reads) != 1:
                return None
            side = S if reads == {streams[S]} else R
            grouped[side].append((sign * inner_sign, term))
            places[side] = place
    plain = all(len(terms) == 1 for terms in sides)
    if plain or len(grouped[R]) != 1 or len(grouped[S]) != 1 or grouped[R][0][0] == grouped[S][0][0]:
        return None
    operator = part.function
    if grouped[R][0][0] < 0:
        shift, operator = -shift, _MIRRORED[operator]
    keys = _same_type((grouped[R][0][1], grouped[S][0][1]))
    if keys is None or not (is_number(keys[0].type) or is_instant(keys[0].type)):
        return None
    if rounded and places[R] != places[S]:  # CAST(r.k AS DOUBLE) <= s.k + 1 rounds r.k, not only what is near 1
        keys = (cast(keys[R], FLOAT64), cast(keys[S], FLOAT64))
    # Sums of decimals have room for every digit; those of integers and times may leave int64, and are NULL then. A
    # float key beside a decimal sum is near it, no more.
    exact = not _is_float(keys[0]) and not any(
        isinstance(node, Call) and node.function in ("add", "subtract") and not pa.types.is_decimal(node.type)
        for node in walk(part)
    )
    found = replace(_one_sided(keys, operator, shift, part, exact=exact), slack=slack)
    if _is_float(keys[0]) and places[R] == places[S]:
        # NaN is above every number: NaN >= 1 holds, and so does 1 <= NaN.
        holds = part.function in (("gt", "ge") if places[R] == 0 else ("lt", "le"))
        found = replace(found, takes_nan=holds, bars_nan=not holds)
    return _widened(found) if rounded and not _is_float(keys[0]) else found


def _widened(found: Range) -> Range:
    """The range with room for what is rounded where the query computes in floats and the keys are exact."""
    room = found.slack / 2**48
    low = None if found.low is None else found.low - room
    high = None if found.high is None else found.high + room
    return replace(found, low=low, high=high, strict_low=False, strict_high=False, exact=False)


def _is_float(expression: Expression) -> bool:
    return bool(pa.types.is_floating(expression.type))


def _terms(expression: Expression, sign: int) -> list[tuple[int, Expression]]:
    inner = _embedded(expression)
    if isinstance(inner, Call) and inner.function in ("add", "subtract"):
        left, right = inner.args
        return _terms(left, sign) + _terms(right, sign if inner.function == "add" else -sign)
    return [(sign, expression)]


def _uncast(expression: Expression) -> Expression:
    # Comparing with a constant of another number type wraps the whole side; the range keeps its own type.
    if isinstance(expression, Call) and expression.function == "cast":
        inner = expression.args[0]
        if embeds(inner.type, expression.type) or (_is_float(expression) and is_number(inner.type)):
            return inner
    return expression


def _constant(expression: Expression) -> Fraction | None:
    """The value of a finite literal number, or of a literal interval in us; None for anything else."""
    kind = expression.type
    if isinstance(expression, Call) and expression.function in ("cast", "negate"):
        inner, given = _constant(expression.args[0]), expression.args[0].type
        if expression.function == "negate":
            return None if inner is None else -inner
        return inner if pa.types.is_duration(given) or kind == FLOAT64 or embeds(given, kind) else None
    value = expression.value if isinstance(expression, Literal) else None
    if value is None or not (is_number(kind) or pa.types.is_duration(kind)) or not math.isfinite(value):
        return None
    return Fraction(value) / (1_000 if kind == DURATION_NS else 1)


def _indexed(ranges: Sequence[Range]) -> tuple[tuple[Range, ...], tuple[Expression, ...]]:
    """The ranges that an index of ordered keys can answer, and the conditions of the others.

    `r.f - s.f >= 1` holds for a NaN in either stream, which is next to no key of the other; unless something else
    over the same keys fails for them, such pairs are found by a scan.
    """
    kept = tuple(found for found in ranges if found.bars_nan or not found.takes_nan)
    return kept, tuple(part for found in ranges if found.takes_nan and not found.bars_nan for part in found.sources)


def _merge(ranges: Sequence[Range]) -> tuple[Range, ...]:
    """Ranges over the same keys become one: BETWEEN gives two halves of a band."""
    merged: dict[tuple[Expression, Expression], Range] = {}
    for found in ranges:
        merged[found.keys] = _intersect(merged[found.keys], found) if found.keys in merged else found
    return tuple(merged.values())


def _intersect(one: Range, other: Range) -> Range:
    low, strict_low = _tighter(one.low, one.strict_low, other.low, other.strict_low, 1)
    high, strict_high = _tighter(one.high, one.strict_high, other.high, other.strict_high, -1)
    return Range(
        one.keys,
        low,
        high,
        strict_low,
        strict_high,
        one.exact and other.exact,
        one.sources + other.sources,
        max(one.slack, other.slack),
        one.takes_nan or other.takes_nan,
        one.bars_nan or other.bars_nan,
    )


def _tighter(
    one: Fraction | None, one_strict: bool, other: Fraction | None, other_strict: bool, sign: int
) -> tuple[Fraction | None, bool]:
    if one is None or other is None:
        return (other, other_strict) if one is None else (one, one_strict)
    if one == other:
        return one, one_strict or other_strict
    return (one, one_strict) if sign * one > sign * other else (other, other_strict)


def equality_keys(predicate: JoinPredicate, side: int) -> tuple[Expression, ...]:
    """The expressions of one side that equal keys are routed and indexed by."""
    return tuple(equality.keys[side] for equality in predicate.equalities)


def keys_of(predicate: JoinPredicate, side: int) -> tuple[Expression, ...]:
    """The expressions of one side that separable conjuncts compare; a tuple with a NULL one matches nothing."""
    compared = [found.keys for found in predicate.equalities if not found.joins_null] + [
        found.keys for found in predicate.ranges
    ]
    return tuple(keys[side] for keys in compared)


def any_null(keys: Sequence[Expression]) -> Expression | None:
    """Whether one of these is NULL; None where there are none."""
    if not keys:
        return None
    missing: Expression = Call("is_null", (keys[0],), BOOL)
    for key in keys[1:]:
        missing = call("or", missing, Call("is_null", (key,), BOOL))
    return missing
