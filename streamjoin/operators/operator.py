"""What an operator is: units, and a rule that says where each tuple goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from streamjoin.index.kernels import radix_order
from streamjoin.punctuation import Punctuation
from streamjoin.window import R

if TYPE_CHECKING:
    from streamjoin.operators.unit import UnitState, UnitStep, Work
    from streamjoin.sharing import Plan

STORE, PROBE = 1, 2
"""Roles of a tuple in a unit; it can have both, and is then sent once."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Which of the tuples that all units receive a unit stores: every k-th run of them, R's and S's counted apart.

    Args:
        position: the unit's place among those that take turns, from 0.
        units: k, how many take turns.
        tuples: how many tuples make a run.
    """

    position: int
    units: int
    tuples: int = 1

    def takes(self, ranks: np.ndarray) -> np.ndarray:
        """Row numbers of the tuples to store, of those whose ranks among all that were routed are given."""
        return np.nonzero(ranks // self.tuples % self.units == self.position)[0]


@dataclass(frozen=True, slots=True)
class UnitSpec:
    """One processing unit.

    Args:
        number: unique in the job, from 0; unit u runs in slot u mod slots.
        label: what people call it, such as R0 or cell 1,2.
        stores: the sides whose tuples it stores; tuples of the opposite sides probe them.
        counts: the sides whose late tuples it counts, so that each late tuple counts once however often it is stored.
        turn: which of the tuples that it is sent to store it does store; None for all.
    """

    number: int
    label: str
    stores: tuple[int, ...]
    counts: tuple[int, ...]
    turn: Turn | None = None


@dataclass(frozen=True, slots=True)
class Tuples:
    """What a router may look at in a block of n tuples.

    Args:
        identity: int64 of shape (n,), a mixed hash of each tuple's identity: "at random" is a pure function of it,
            so that a replayed batch is routed the same.
        equal: int64 of shape (n,), equal for equal join keys of either stream; None without an equality.
        key: int64 of shape (n,), in the order of the main range's keys; None without a range.
        lows, highs: the opposite keys that the main range lets each tuple meet, int64 of shape (n,); None as `key`.
    """

    identity: np.ndarray
    equal: np.ndarray | None = None
    key: np.ndarray | None = None
    lows: np.ndarray | None = None
    highs: np.ndarray | None = None

    def __len__(self) -> int:
        return int(self.identity.size)


@dataclass(frozen=True, slots=True)
class Route:
    """Some tuples of a block, and the units they go to.

    Args:
        rows: row numbers in rising order, int64.
        targets: (unit number, role), each unit once.
    """

    rows: np.ndarray
    targets: tuple[tuple[int, int], ...]


class Operator(Protocol):
    """A join operator that runs on units."""

    @property
    def name(self) -> str:
        """The name on the command line and in the API."""

    @property
    def units(self) -> tuple[UnitSpec, ...]:
        """All units, by number."""

    def route(self, side: int, tuples: Tuples) -> list[Route]:
        """Where tuples of `side` go; a pure function. Every tuple is in exactly one route."""


@runtime_checkable
class Relay(Protocol):
    """What an operator has besides if its units hand stored tuples on to one another.

    A pair then meets in a later batch than the one that brought it, so input that has ended is drained by batches
    without input.
    """

    @property
    def drain_batches(self) -> int:
        """How many of them it takes at most until every pair has met."""

    def step(self, work: Work) -> UnitStep:
        """A unit's work on one batch."""

    def stored_columns(self, plan: Plan, side: int) -> tuple[str, ...]:
        """The columns of stored tuples: all that they probe with when they are handed on."""


def stored_columns(operator: Operator, plan: Plan, side: int) -> tuple[str, ...]:
    """The columns of the tuples that units store."""
    return operator.stored_columns(plan, side) if isinstance(operator, Relay) else plan.stored_columns(side)


def drain_batches(operator: Operator) -> int:
    """How many batches without input it takes until every pair has met; 0 where pairs meet in their own batch."""
    return operator.drain_batches if isinstance(operator, Relay) else 0


@runtime_checkable
class Elastic(Operator, Protocol):
    """What an operator has besides if a later start may have more units or fewer."""

    @property
    def lasting(self) -> str:
        """The operator without what may change."""

    def with_units(self, units: int) -> Elastic:
        """The same operator with another number of units."""

    def resized(self, states: Mapping[int, UnitState]) -> dict[int, UnitState]:
        """What the states of another number of units, all of one version, become for these units."""


def routes_by_key(operator: Operator) -> bool:
    """Whether equal keys say where tuples go, so that stored ones lie where their keys sent them."""
    return bool(getattr(operator, "routes_by_key", False))


_DRAIN = "drain"


def drain_punctuation(clock_us: int) -> Punctuation:
    """What tells the units that a batch drains: it moves tuples on, and no mark."""
    return Punctuation(R, _DRAIN, _DRAIN, 0, None, clock_us)


def drains(punctuations: Sequence[Punctuation]) -> bool:
    """Whether the batch of these punctuations drains."""
    return any(item.piece == _DRAIN for item in punctuations)


def split(codes: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """Row numbers by code, int64 codes of shape (n,); rows of a code keep their order.

    Cost: one counting pass a byte of the codes' span.
    """
    if codes.size == 0:
        return []
    order = radix_order(codes, np.arange(codes.size, dtype=np.int64))
    ordered = codes[order]
    starts = np.concatenate(([0], np.nonzero(np.diff(ordered))[0] + 1, [codes.size]))
    return [(int(ordered[a]), order[a:b]) for a, b in pairwise(starts)]


def even_groups(units: Sequence[int], count: int) -> tuple[tuple[int, ...], ...]:
    """`units` in `count` disjoint groups, none empty, whose sizes differ by one at most."""
    return tuple(tuple(int(unit) for unit in part) for part in np.array_split(np.asarray(units), count))
