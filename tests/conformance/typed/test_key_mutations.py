"""Wrong keys are caught: each mutation of the key table makes an edge or a random condition differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.index import keys, layout
from streamjoin.plan.expression import Expression
from streamjoin.plan.predicate import JoinPredicate, Range

from .case import Case, difference
from .check import seeded
from .edges import EDGES
from .memory import limited

RANDOM = range(1_500)
"""Seeds that are tried once no edge is caught."""

Mutation = Callable[[pytest.MonkeyPatch], None]


def caught() -> Case | None:
    """The first case that differs."""
    edges = (replace(edge.case, index=index) for edge in EDGES.values() for index in ("auto", "tree"))
    with limited():
        return next((case for case in chain(edges, seeded(RANDOM)) if difference(case)), None)


def off_by_one(space: str, end: int, step: int) -> Mutation:
    """One end of every range of a space is moved."""

    def apply(patch: pytest.MonkeyPatch) -> None:
        real = getattr(keys, space).ranges

        def ranges(self: Any, values: pa.Array, bounds: Range) -> keys.Bounds:
            found = list(real(self, values, bounds))
            given = bounds.high if end else bounds.low
            limit = keys.INT64_MAX if step > 0 else keys.INT64_MIN
            if given is not None:
                found[end] = np.where(found[end] == limit, found[end], found[end] + step)
            return found[0], found[1]

        patch.setattr(getattr(keys, space), "ranges", ranges)

    return apply


def in_space(applies: Callable[[pa.DataType], bool], space: Callable[[pa.DataType], keys.KeySpace]) -> Mutation:
    """Some types have another space."""

    def apply(patch: pytest.MonkeyPatch) -> None:
        real = keys.key_space
        patch.setattr(keys, "key_space", lambda kind: space(kind) if applies(kind) else real(kind))

    return apply


def bounds_as(change: Callable[[Range], Range]) -> Mutation:
    """Every space is given other bounds."""

    def apply(patch: pytest.MonkeyPatch) -> None:
        for space in (keys.WholeSpace, keys.WideSpace, keys.FloatSpace, keys.PrefixSpace):
            real = space.ranges
            patch.setattr(space, "ranges", lambda self, values, bounds, real=real: real(self, values, change(bounds)))

    return apply


def settled(space: type[keys.KeySpace]) -> Mutation:
    """Keys that are not one to one are taken for it, so nothing is checked again."""
    return lambda patch: patch.setattr(space, "one_to_one", True)


def wrapping(patch: pytest.MonkeyPatch) -> None:
    """Sums stay inside int64, and nobody is told where they did not."""
    real = keys._sum
    nowhere: Callable[[np.ndarray], np.ndarray] = np.zeros_like
    patch.setattr(keys, "_sum", lambda values, shift: (real(values, shift)[0], *[nowhere(values != values)] * 2))


def nulls_settled(patch: pytest.MonkeyPatch) -> None:
    """What IS NOT DISTINCT FROM finds is not checked again, so NULL is whatever fills its place."""
    real = layout._recheck

    def recheck(predicate: JoinPredicate, kind: str, key: Range | None) -> tuple[Expression, ...]:
        settled = {found.source for found in predicate.equalities if found.joins_null and kind != "scan"}
        return tuple(part for part in real(predicate, kind, key) if part not in settled)

    patch.setattr(layout, "_recheck", recheck)


def _wide(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(kind)) and kind.precision > keys._WHOLE_DIGITS


MUTATIONS: dict[str, Mutation] = {
    **{
        f"{space}: {'high' if end else 'low'} end {'in' if (step > 0) != bool(end) else 'out'} by one": off_by_one(
            space, end, step
        )
        for space in ("WholeSpace", "WideSpace", "FloatSpace", "PrefixSpace")
        for end in (0, 1)
        for step in (1, -1)
        # What is too wide is checked again where keys are not one to one.
        if space in ("WholeSpace", "FloatSpace") or (step > 0) != bool(end)
    },
    "strict from below is forgotten": bounds_as(lambda bounds: replace(bounds, strict_low=False)),
    "strict from above is forgotten": bounds_as(lambda bounds: replace(bounds, strict_high=False)),
    "strict from below always": bounds_as(lambda bounds: replace(bounds, strict_low=True)),
    "strict from above always": bounds_as(lambda bounds: replace(bounds, strict_high=True)),
    "no room for rounding": bounds_as(lambda bounds: replace(bounds, slack=bounds.slack / 10**400)),
    "sums leave int64 unseen": wrapping,
    "wide decimals as floats": in_space(_wide, lambda kind: keys.FloatSpace()),
    "wide decimals by their low half": in_space(_wide, lambda kind: keys.WholeSpace(Fraction(10**kind.scale))),
    "narrow decimals without their point": in_space(
        lambda kind: pa.types.is_decimal(kind) and not _wide(kind), lambda kind: keys.WholeSpace(Fraction(1))
    ),
    "dates counted in microseconds": in_space(pa.types.is_date32, lambda kind: keys.WholeSpace(Fraction(1))),
    "nanoseconds as microseconds": in_space(
        lambda kind: pa.types.is_timestamp(kind) and kind.unit == "ns", lambda kind: keys.WholeSpace(Fraction(1))
    ),
    "integers as floats": in_space(pa.types.is_int64, lambda kind: keys.FloatSpace()),
    "NULL taken for what fills its place": nulls_settled,
    "prefixes taken for texts": settled(keys.PrefixSpace),
    "leading bits taken for decimals": settled(keys.WideSpace),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_wrong_keys_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTATIONS[name](monkeypatch)
    assert caught() is not None, "no case notices"
