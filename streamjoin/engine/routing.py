"""What a router sees of tuples, and what it says: which units there are, and which of them a tuple goes to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from streamjoin.index.kernels import radix_order

STORE, PROBE, ALONE = 1, 2, 4
"""Roles of a tuple in a unit; it can be stored and probe, and is then sent once. One that is alone can match nothing,
and leaves as unmatched."""
ROLES = {STORE: "store", PROBE: "probe", STORE | PROBE: "both", ALONE: "alone"}
"""What people call them."""


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
        since: the first batch that it takes part in, before which it has no state; 0 for the job's first one.
    """

    number: int
    label: str
    stores: tuple[int, ...]
    counts: tuple[int, ...]
    turn: Turn | None = None
    since: int = 0

    def begins_at(self, version: int) -> bool:
        """Whether it has no state of `version` yet, as its first batch is the next one."""
        return self.since == version > 0


@dataclass(frozen=True, slots=True)
class Tuples:
    """What a router may look at in a block of n tuples.

    Args:
        identity: int64 of shape (n,), a mixed hash of each tuple's identity: "at random" is a pure function of it,
            so that a replayed batch is routed the same.
        equal: int64 of shape (n,), equal for equal join keys of either stream; None without an equality.
        key: int64 of shape (n,), in the order of the main range's keys; None without a range.
        lows, highs: the opposite keys that the main range lets each tuple meet, int64 of shape (n,); None as `key`.
        ts_us: event times, int64 of shape (n,); None of what was made without any.
    """

    identity: np.ndarray
    equal: np.ndarray | None = None
    key: np.ndarray | None = None
    lows: np.ndarray | None = None
    highs: np.ndarray | None = None
    ts_us: np.ndarray | None = None

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


def unit_of(hashed: np.ndarray, units: int) -> np.ndarray:
    """One of so many units for each hash, int64 of shape (n,): equal for equal ones, and about as many for each."""
    return np.asarray((hashed.view(np.uint64) % np.uint64(units)).view(np.int64))


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
