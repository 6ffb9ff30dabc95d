"""Routing in the join-biclique: random, by hash, and ContRand in between.

    r -> store in one unit of the subgroup that R's map gives for its key, at random inside it
      -> probe every unit of the subgroup that S's map gives for the same key

R has d subgroups and S has e, so the two maps differ. With d = e = 1 this is random routing, with d = m and e = n it is
hash routing. Source: BiStream, section 3.2.2 and Algorithm 1.

Algorithm 1 speaks of value ranges, its text of hashing; both are here. Equalities are hashed. A band uses ranges, and
then a tuple probes every subgroup that its band [v - c, v + c] meets: one subgroup alone would lose pairs across a
boundary.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np

from streamjoin.engine.operator import Capabilities, Operator, RoutesBy
from streamjoin.engine.routing import PROBE, STORE, Route, Tuples, UnitSpec, even_groups, split
from streamjoin.errors import InputError, UnsupportedError
from streamjoin.index.kernels import mix
from streamjoin.plan.window import R, S


class Routing(StrEnum):
    """How the biclique spreads tuples."""

    RANDOM = "random"
    HASH = "hash"
    CONTRAND = "contrand"


@dataclass(frozen=True)
class Biclique(Operator):
    """m + n units and the rule that spreads tuples over them.

    Args:
        r_units, s_units: m and n, at least 1 each.
        routing: random, hash or contrand.
        r_groups, s_groups: d and e; only contrand sets them.
        bounds: for contrand on a band, the keys at which R's (S's) next subgroup begins, d - 1 (e - 1) rising int64;
            None where an equality is hashed.
    """

    r_units: int
    s_units: int
    routing: Routing = Routing.RANDOM
    r_groups: int = 1
    s_groups: int = 1
    bounds: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    name: str = "biclique"

    def __post_init__(self) -> None:
        for side, units, groups in (("r", self.r_units, self.r_groups), ("s", self.s_units, self.s_groups)):
            if units < 1:
                raise InputError(f"at least one unit must store {side.upper()}", field=f"operator.{side}_units")
            if not 1 <= groups <= units:
                raise InputError(
                    f"{groups} subgroups of {units} units: there must be between 1 and {units}",
                    field=f"operator.{side}_groups",
                )

    def __str__(self) -> str:
        words = f"{self.routing} routing, {self.r_units} units store R and {self.s_units} store S"
        return (
            f"{words}, in {self.r_groups} and {self.s_groups} subgroups" if self.routing is Routing.CONTRAND else words
        )

    @property
    def capabilities(self) -> Capabilities:
        """What routing needs follows from its kind; units are pinned by keys or counts of subgroups."""
        if self.routing is Routing.RANDOM:
            return Capabilities()
        by = RoutesBy.EQUALITY if self.bounds is None else RoutesBy.RANGE
        return Capabilities(by, units_by_key=(self.r_units, self.s_units) if self.routing is Routing.HASH else None)

    @cached_property
    def groups(self) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
        """Numbers of the units that store, by subgroup of R and of S."""
        r = range(self.r_units)
        s = range(self.r_units, self.r_units + self.s_units)
        match self.routing:
            case Routing.RANDOM:
                return even_groups(r, 1), even_groups(s, 1)
            case Routing.HASH:
                return even_groups(r, self.r_units), even_groups(s, self.s_units)
            case Routing.CONTRAND:
                return even_groups(r, self.r_groups), even_groups(s, self.s_groups)

    @property
    def probed(self) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
        """The same with units that store nothing new; opposite tuples are sent to all of these."""
        return self.groups

    @property
    def units(self) -> tuple[UnitSpec, ...]:
        """R's units, then S's."""
        r = [UnitSpec(number, f"R{number}", (R,), (R,)) for number in range(self.r_units)]
        s = [UnitSpec(self.r_units + number, f"S{number}", (S,), (S,)) for number in range(self.s_units)]
        return (*r, *s)

    def route(self, side: int, tuples: Tuples) -> list[Route]:
        """Where tuples of `side` go.

        Raises:
            UnsupportedError: content-sensitive routing without a key to look at.
        """
        own, other = self.groups[side], self.probed[1 - side]
        group, first, last = self._groups_of(side, tuples)
        storing = [unit for units in own for unit in units]
        sizes = np.array([len(units) for units in own], np.uint64)
        starts = np.cumsum([0, *(len(units) for units in own[:-1])])
        # The group itself was chosen by key; the unit inside it by identity, so that a hot key spreads.
        place = starts[group] + (tuples.identity.view(np.uint64) % sizes[group]).view(np.int64)
        many = len(other)
        routes = []
        for code, rows in split((place * many + first) * many + last):
            low, high = code // many % many, code % many
            probed = [target for members in other[low : high + 1] for target in members]
            targets = ((storing[code // many // many], STORE), *((target, PROBE) for target in probed))
            routes.append(Route(rows, targets))
        return routes

    def _groups_of(self, side: int, tuples: Tuples) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(own subgroup, first and last opposite subgroup) of every tuple, int64 of shape (n,)."""
        own, other = len(self.groups[side]), len(self.groups[1 - side])
        nothing = np.zeros(len(tuples), np.int64)
        if own == other == 1:
            return nothing, nothing, nothing
        if self.bounds is not None:
            if tuples.key is None or tuples.lows is None or tuples.highs is None:
                raise UnsupportedError("ContRand by value ranges needs a range predicate between the streams")
            mine, theirs = (np.array(self.bounds[face], np.int64) for face in (side, 1 - side))
            return (
                np.searchsorted(mine, tuples.key, side="right"),
                np.searchsorted(theirs, tuples.lows, side="right"),
                np.searchsorted(theirs, tuples.highs, side="right"),
            )
        if tuples.equal is None:
            raise UnsupportedError(
                f"{self.routing} routing sends equal keys to one place, and this query has no equality between its "
                "streams; use routing: random, or contrand on a band"
            )
        hashed = mix(tuples.equal).view(np.uint64)
        met = (hashed % np.uint64(other)).view(np.int64)
        return (hashed % np.uint64(own)).view(np.int64), met, met
