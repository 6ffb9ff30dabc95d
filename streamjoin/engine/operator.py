"""The contract of operators: what one declares and does. The engine asks for nothing else, and never what it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from streamjoin.engine.routing import Route, Tuples, UnitSpec
from streamjoin.engine.state import Rewritten, UnitState
from streamjoin.engine.storing import UnitStep
from streamjoin.engine.unit import Step, Work
from streamjoin.errors import UnsupportedError
from streamjoin.flow.punctuation import Punctuation
from streamjoin.index.columns import stored_columns
from streamjoin.plan.sharing import Plan
from streamjoin.plan.window import R


class RoutesBy(StrEnum):
    """What of a tuple says where it goes."""

    IDENTITY = "identity"
    """Nothing that it holds: its identity, as if at random."""
    EQUALITY = "equality"
    """Its equal keys, so stored tuples lie where their keys sent them."""
    RANGE = "range"
    """The key of the main range, and the opposite keys that it may meet."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an operator can do, and what it needs from those around it.

    Args:
        routes_by: what routers must know of a tuple.
        resizes: a later start may have more units or fewer; then `with_units` and `resized` are there.
        hands_on: units hand stored tuples on to one another, so a pair may meet in a later batch than the one that
            brought it, and `drain_batches` says how many batches without input the end of input takes.
        units_by_key: of how many units one stores all of R's tuples of a key, and all of S's; None where a key's tuples
            are spread.
    """

    routes_by: RoutesBy = RoutesBy.IDENTITY
    resizes: bool = False
    hands_on: bool = False
    units_by_key: tuple[int, int] | None = None


class Operator(ABC):
    """A join operator that runs on units; what is not abstract is so for units that store and answer probes."""

    name: str
    """The name on the command line and in the API."""

    @property
    def capabilities(self) -> Capabilities:
        """What it can do."""
        return Capabilities()

    @property
    @abstractmethod
    def units(self) -> tuple[UnitSpec, ...]:
        """All units, by number."""

    @abstractmethod
    def route(self, side: int, tuples: Tuples) -> list[Route]:
        """Where tuples of `side` go; a pure function. Every tuple is in exactly one route."""

    def step(self, work: Work) -> Step:
        """A unit's work on one batch."""
        return UnitStep(work)

    def stored_columns(self, plan: Plan, side: int) -> tuple[str, ...]:
        """The columns of the tuples that units store."""
        return stored_columns(plan, side)

    @property
    def drain_batches(self) -> int:
        """How many batches without input it takes at most until every pair has met; 0 where pairs meet in their own."""
        return 0

    @property
    def lasting(self) -> str:
        """What of it must stay while a checkpoint is used."""
        return repr(self)

    def with_units(self, units: int) -> Operator:
        """The same operator with another number of units.

        Raises:
            UnsupportedError: it cannot be resized.
        """
        raise UnsupportedError(f"units of {self.name} cannot become more or fewer", field="operator")

    def resized(self, states: Mapping[int, UnitState]) -> dict[int, UnitState]:
        """What the states of another number of units, all of one version, become for these units.

        Raises:
            UnsupportedError: it cannot be resized.
        """
        raise UnsupportedError(f"units of {self.name} cannot become more or fewer", field="operator")

    def requeried(self, state: UnitState, change: Rewritten) -> UnitState:
        """A unit's state whose tuples were written anew for other queries, with values that say so.

        Args:
            state: its tables of tuples as they are now; its other tables and its values as they were.
        """
        return state


_DRAIN = "drain"


def drain_punctuation(clock_us: int) -> Punctuation:
    """What tells the units that a batch drains: it moves tuples on, and no mark."""
    return Punctuation(R, _DRAIN, _DRAIN, 0, None, clock_us)


def drains(punctuations: Sequence[Punctuation]) -> bool:
    """Whether the batch of these punctuations drains."""
    return any(item.piece == _DRAIN for item in punctuations)
