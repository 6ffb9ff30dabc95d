"""A bound WHERE clause, taken apart: what each stream can check alone, what an index can answer, and what is left.

    R.c = 'x' AND R.k = S.k AND ABS(R.y - S.y) <= 3 AND similar(R.v, S.v)
    selection    equality      range                 residual

A conjunct is *separable* when it compares an expression over R with one over S; only such conjuncts can lead to an
index. An index answer may be a superset: conjuncts it does not settle exactly are checked again on the pairs it found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from streamjoin.expression import (
    BOOL,
    DURATION,
    INT64,
    Call,
    Expression,
    Literal,
    call,
    conjunction,
    conjuncts,
    is_number,
    streams_of,
)
from streamjoin.window import R, S


@dataclass(frozen=True, slots=True)
class Equality:
    """R's key equals S's key; both expressions have one type."""

    keys: tuple[Expression, Expression]
    source: Expression


@dataclass(frozen=True, slots=True)
class Range:
    """low <= R's key - S's key <= high; None is unbounded.

    Args:
        keys: expressions of one type, R's first. Shifts are in that type's unit (us for timestamps).
        strict_low, strict_high: the bound itself is excluded.
        exact: the difference as computed here agrees with the query text for every value, so that pairs
            an index finds need no second check. Float differences round, integer ones may leave int64.
        sources: the conjuncts this range stands for.
    """

    keys: tuple[Expression, Expression]
    low: float | int | None
    high: float | int | None
    strict_low: bool
    strict_high: bool
    exact: bool
    sources: tuple[Expression, ...]

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
    """The WHERE clause of a binary join, taken apart."""

    selections: tuple[Expression, Expression]
    equalities: tuple[Equality, ...]
    ranges: tuple[Range, ...]
    residual: tuple[Expression, ...]

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
    merged = _merge(ranges)
    return JoinPredicate(
        (conjunction(selections[R]), conjunction(selections[S])), tuple(equalities), merged, tuple(residual)
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
    if not (isinstance(part, Call) and part.function == "eq"):
        return None
    if (sides := _sides(part.args, streams)) is None:
        return None
    return Equality(sides[:2], part)


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
    if sides := _sides(part.args, streams):
        r_key, s_key, swapped = sides
        operator = _MIRRORED[part.function] if swapped else part.function
        return _one_sided((r_key, s_key), operator, 0, True, part)
    return None


def _one_sided(
    keys: tuple[Expression, Expression], operator: str, shift: float | int, exact: bool, part: Expression
) -> Range:
    if operator in ("gt", "ge"):
        return Range(keys, shift, None, operator == "gt", False, exact, (part,))
    return Range(keys, None, shift, False, operator == "lt", exact, (part,))


def _absolute_band(part: Call, streams: tuple[str, str]) -> Range | None:
    """ABS(a - b) <= c, or c >= ABS(a - b)."""
    left, right = part.args
    operator = part.function
    if isinstance(left, Literal):
        left, right, operator = right, left, _MIRRORED[operator]
    left = _uncast(left)
    if operator not in ("lt", "le") or not (isinstance(left, Call) and left.function == "abs"):
        return None
    inside = left.args[0]
    width = _constant(right)
    if width is None or not (isinstance(inside, Call) and inside.function == "subtract"):
        return None
    sides = _sides(inside.args, streams)
    if sides is None or sides[0].type != sides[1].type:
        return None
    strict = operator == "lt"
    # An integer difference inside +-width cannot have left int64, so the index settles it.
    exact = not pa.types.is_floating(sides[0].type) and isinstance(width, int)
    return Range(sides[:2], -width, width, strict, strict, exact, (part,))


def _shifted(part: Call, streams: tuple[str, str]) -> Range | None:
    """a - b < c, a < b + c and the like: move the constants to one side and each stream to its own."""
    terms: list[tuple[int, Expression]] = []
    shift: float | int = 0
    moved = False
    for sign, side in ((1, part.args[0]), (-1, part.args[1])):
        for inner_sign, term in _terms(side, sign):
            if (value := _constant(term)) is not None:
                shift -= inner_sign * value
                moved = True
            else:
                terms.append((inner_sign, term))
    grouped: tuple[list[tuple[int, Expression]], list[tuple[int, Expression]]] = ([], [])
    for sign, term in terms:
        reads = streams_of(term)
        if len(reads) != 1:
            return None
        grouped[S if reads == {streams[S]} else R].append((sign, term))
    operator = part.function
    plain = not moved and all(len(_terms(side, 1)) == 1 for side in part.args)
    if plain or len(grouped[R]) != 1 or len(grouped[S]) != 1 or grouped[R][0][0] == grouped[S][0][0]:
        return None
    if grouped[R][0][0] < 0:
        shift, operator = -shift, _MIRRORED[operator]
    keys = grouped[R][0][1], grouped[S][0][1]
    if keys[0].type != keys[1].type or not (is_number(keys[0].type) or pa.types.is_timestamp(keys[0].type)):
        return None
    return _one_sided(keys, operator, shift, False, part)


def _terms(expression: Expression, sign: int) -> list[tuple[int, Expression]]:
    if isinstance(expression, Call) and expression.function in ("add", "subtract"):
        left, right = expression.args
        return _terms(left, sign) + _terms(right, sign if expression.function == "add" else -sign)
    return [(sign, expression)]


def _uncast(expression: Expression) -> Expression:
    # Comparing with a literal of another number type wraps the whole left side; the band below keeps its own type.
    if isinstance(expression, Call) and expression.function == "cast" and pa.types.is_floating(expression.type):
        return expression.args[0]
    return expression


def _constant(expression: Expression) -> float | int | None:
    """The value of a literal number or interval (us); None for anything else."""
    if isinstance(expression, Call) and expression.function in ("cast", "negate"):
        inner = _constant(expression.args[0])
        return None if inner is None else -inner if expression.function == "negate" else inner
    number = isinstance(expression, Literal) and isinstance(expression.value, int | float)
    if number and (expression.type in (INT64, DURATION) or pa.types.is_floating(expression.type)):
        return expression.value  # type: ignore[union-attr]
    return None


def _merge(ranges: Sequence[Range]) -> tuple[Range, ...]:
    """Ranges over the same keys become one: BETWEEN gives two halves of a band."""
    merged: dict[tuple[Expression, Expression], Range] = {}
    for found in ranges:
        merged[found.keys] = _intersect(merged[found.keys], found) if found.keys in merged else found
    return tuple(merged.values())


def _intersect(one: Range, other: Range) -> Range:
    low, strict_low = _tighter(one.low, one.strict_low, other.low, other.strict_low, 1)
    high, strict_high = _tighter(one.high, one.strict_high, other.high, other.strict_high, -1)
    return Range(one.keys, low, high, strict_low, strict_high, one.exact and other.exact, one.sources + other.sources)


def _tighter(
    one: float | int | None, one_strict: bool, other: float | int | None, other_strict: bool, sign: int
) -> tuple[float | int | None, bool]:
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
    compared = [found.keys for found in predicate.equalities] + [found.keys for found in predicate.ranges]
    return tuple(keys[side] for keys in compared)


def any_null(keys: Sequence[Expression]) -> Expression | None:
    """Whether one of these is NULL; None where there are none."""
    if not keys:
        return None
    missing: Expression = Call("is_null", (keys[0],), BOOL)
    for key in keys[1:]:
        missing = call("or", missing, Call("is_null", (key,), BOOL))
    return missing
