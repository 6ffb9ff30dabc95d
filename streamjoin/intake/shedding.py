"""Load shedding: under overload a part of the tuples is dropped before they reach a unit (ESJ, section 3.1).

Below a threshold of load nothing is shed. From there on the shed factor, the share of tuples that is dropped, rises
from `base` at the threshold to 1 at the capacity. Load is the live tuples of both streams, those that units store, a
unit: so the same tuples over twice the units are half the load.

Which tuples go is a hash of their identity with a salt of its own, and load is read from the state version that the
batch starts from. Both are the same when a batch is repeated, so it sheds the same tuples again.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from streamjoin.errors import InputError
from streamjoin.index.kernels import mix

SALT = 0x0005_4EDD_1234_5678
"""Differs from the router's: with the same hash, keeping half of the tuples would leave half of the units empty."""


def linear(base: float, excess: float) -> float:
    """ESJ's own: from `base` straight to 1."""
    return base + (1 - base) * excess


def quadratic(base: float, excess: float) -> float:
    """Sheds little at first, and then more and more."""
    return base + (1 - base) * excess**2


SHAPES: dict[str, Callable[[float, float], float]] = {"linear": linear, "quadratic": quadratic}
"""Shed functions by name: (base, how much of the way from threshold to capacity load has gone) -> shed factor."""


@dataclass(frozen=True, slots=True)
class ShedRule:
    """When a stream sheds, and how much.

    Args:
        threshold: live tuples a unit from which on tuples are shed, 1 or more.
        capacity: live tuples a unit at which all are shed.
        base: shed factor at the threshold, in [0, 1).
        shape: a name of `SHAPES`.

    Raises:
        InputError: one of them is wrong; it has the field's name.
    """

    threshold: int
    capacity: int
    base: float = 0.0
    shape: str = "linear"

    def __post_init__(self) -> None:
        if self.threshold < 1:
            raise InputError("must be at least 1 live tuple a unit", field="threshold")
        if self.capacity <= self.threshold:
            raise InputError(f"{self.capacity} must be above the threshold, which is {self.threshold}; at the capacity "
                             "all tuples are shed", field="capacity")  # fmt: skip
        if not 0 <= self.base < 1:
            raise InputError(f"{self.base} must be at least 0 and below 1; it is the share shed at the threshold",
                             field="base")  # fmt: skip
        if self.shape not in SHAPES:
            raise InputError(f'"{self.shape}" is not a shed function; use {" and ".join(SHAPES)}', field="shape")

    def factor(self, live: float, units: int = 1) -> float:
        """The share of incoming tuples to drop, in [0, 1].

        Args:
            live: tuples of both streams that all units store; one that is stored twice counts twice.
            units: how many units there are.
        """
        load = live / units
        if load < self.threshold:
            return 0.0
        excess = min((load - self.threshold) / (self.capacity - self.threshold), 1.0)
        return min(max(SHAPES[self.shape](self.base, excess), 0.0), 1.0)

    def __str__(self) -> str:
        return (
            f"from {self.threshold:,} live tuples a unit on {self.base:.0%} and more, all from {self.capacity:,} on "
            f"({self.shape})"
        )


OTHER_WAY_OUT = "more units, and slots for them, are the other way out of an overload"
"""What those who decide for or against shedding are told."""

Rules = Mapping[int, ShedRule]
"""Rules by side; a side that has none sheds nothing."""


@dataclass(frozen=True, slots=True)
class Shedding:
    """The rules of a job: those that hold now, and those that a batch begun earlier is repeated by.

    Args:
        since: the first batch for which `rules` hold.
        before: the rules of the batch before it.
    """

    rules: Rules = field(default_factory=dict)
    since: int = 0
    before: Rules = field(default_factory=dict)

    def rule(self, side: int, batch: int) -> ShedRule | None:
        """What a side sheds by in a batch; None where it sheds nothing."""
        return self._of(batch).get(side)

    def changed(self, rules: Rules, planned: int) -> Shedding:
        """After a start with other rules.

        Args:
            planned: the last batch whose offsets are logged, -1 if there is none; it may be repeated, and then sheds
                as it did.
        """
        return self if rules == self.rules else Shedding(rules, planned + 1, self._of(planned))

    def _of(self, batch: int) -> Rules:
        return self.rules if batch >= self.since else self.before

    def to_json(self) -> dict[str, Any]:
        """A plain mapping; `from_json` reads it back."""
        return {"rules": _rules_to_json(self.rules), "since": self.since, "before": _rules_to_json(self.before)}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Shedding:
        """The inverse of `to_json`."""
        return Shedding(_rules_from_json(value["rules"]), value["since"], _rules_from_json(value["before"]))


def _rules_to_json(rules: Rules) -> dict[str, Any]:
    return {str(side): asdict(rule) for side, rule in sorted(rules.items())}


def _rules_from_json(value: Mapping[str, Any]) -> Rules:
    return {int(side): ShedRule(**rule) for side, rule in value.items()}


def kept(factor: float, stream: str, identity: str, positions: np.ndarray) -> np.ndarray:
    """Which tuples stay: bool of shape (n,), about 1 - factor of them.

    What stays at one factor stays at every smaller one.

    Args:
        stream: the stream's own name, so that both sides of a self-join lose the same tuples.
        identity: of the piece that the tuples are of.
        positions: int64 of shape (n,); with `identity`, the identity of each tuple.
    """
    base = zlib.crc32(f"shed/{stream}/{identity}".encode("utf-8", "surrogateescape"))
    drawn = mix(mix(positions ^ np.int64(SALT)) + np.int64(base))
    # 53 bits are a float64 below 1 exactly, so that a factor of 1 leaves none.
    return np.asarray((drawn.view(np.uint64) >> np.uint64(11)).astype(np.float64) * 2.0**-53 >= factor)
