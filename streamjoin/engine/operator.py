"""The contract of operators: what one declares and does. The engine asks for nothing else, and never what it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from streamjoin.engine.routing import Route, Tuples, UnitSpec
from streamjoin.engine.state import Rewritten, UnitState
from streamjoin.engine.storing import UnitStep
from streamjoin.engine.unit import Step, Work
from streamjoin.errors import UnsupportedError
from streamjoin.flow.block import Block
from streamjoin.index.columns import stored_columns
from streamjoin.index.segment import SegmentInfo
from streamjoin.index.table import Part
from streamjoin.plan.sharing import Pairs
from streamjoin.plan.stages import Plan, StagePlan


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
        waits: some results are given when the mark of the input says so, and those that wait once the input has ended,
            which one more batch without input tells.
        reads_parts: each unit reads its own rows of a relation, dealt out by the join value, again and again; else
            relations are sorted.
        adapts: units come and go while the job runs; `in_batch` says which there are.
        routes_by_state: where tuples go follows from what units have before the batch; `in_batch` looks at it.
        receives_forwarded: what a unit counts as forwarded, another one counts as received.
    """

    routes_by: RoutesBy = RoutesBy.IDENTITY
    resizes: bool = False
    hands_on: bool = False
    units_by_key: tuple[int, int] | None = None
    waits: bool = False
    reads_parts: bool = False
    adapts: bool = False
    routes_by_state: bool = False
    receives_forwarded: bool = False

    @property
    def looks(self) -> bool:
        """Whether it is another one in each batch."""
        return self.adapts or self.routes_by_state


class Folding(Protocol):
    """Makes fewer tuples of some, in one task.

    Args:
        counts: what was taken: `tuples`, and `tuple_bytes`.
    """

    counts: dict[str, int]

    def add(self, block: Block) -> Iterator[Block]:
        """Take n >= 1 tuples; gives what cannot wait until the end."""

    def rest(self) -> Iterator[Block]:
        """All that is left, once every tuple has been taken."""


class Watching(Protocol):
    """What is measured of an operator's work while it runs, for formulas that say what work costs."""

    def observed(
        self, stages: Sequence[Sequence[Mapping[str, Sequence[float]]]], hops_s: Sequence[float], tuples: int
    ) -> Mapping[str, float | None]:
        """What a batch tells of the time of each step, in seconds by name; None where it tells nothing.

        Args:
            stages: by stage and unit, what was spent, as `Spent` has it by kind.
            hops_s: between each stage and the next, from the moment all was sent until some unit had all.
            tuples: of all streams that the batch brought.
        """

    def told(self, measured: Mapping[str, float]) -> list[dict[str, Any]]:
        """What steps take, for reports: what is set, measured and assumed."""


class Operator(ABC):
    """A join operator that runs on units; what is not abstract is so for units that store and answer probes."""

    name: str
    """The name on the command line and in the API."""

    @property
    def capabilities(self) -> Capabilities:
        """What it can do."""
        return Capabilities()

    def planned(self, plan: Plan) -> Plan:
        """The plan as this operator runs it: most run each join of two as a stage, as it is.

        Raises:
            InputError, UnsupportedError: it cannot be run so.
        """
        return plan

    def at(self, plan: StagePlan) -> Operator:
        """The operator of a stage of what `planned` gives."""
        return self

    def in_batch(self, look: Callable[[int], UnitState]) -> Operator:
        """The operator as it is in one batch; most are the same in all.

        Args:
            look: a unit's state before the batch, in the stage that keeps the tuples.
        """
        return self

    def opened(self, state: UnitState) -> Iterator[SegmentInfo]:
        """The files that a unit opens when its step begins, as far as is known; those of an object store come side by
        side then, and any other when it is opened."""
        return state.named()

    @property
    @abstractmethod
    def units(self) -> tuple[UnitSpec, ...]:
        """All units, by number."""

    @property
    def numbers_end(self) -> int:
        """Numbers of units end before it: of those that there are, and of those that have left."""
        return len(self.units)

    @abstractmethod
    def route(self, side: int, tuples: Tuples) -> list[Route]:
        """Where tuples of `side` go; a pure function. Every tuple is in exactly one route."""

    def folding(self, side: int) -> Folding | None:
        """What makes fewer tuples of those of `side` on their way to the units; None where they travel as they are."""
        return None

    def step(self, work: Work) -> Step:
        """A unit's work on one batch."""
        return UnitStep(work)

    def stored_columns(self, plan: Pairs, side: int) -> tuple[str, ...]:
        """The columns of the tuples that units store."""
        return stored_columns(plan, side)

    @property
    def watching(self) -> Watching | None:
        """What is to be measured of its work; None for an operator of which nobody asks."""
        return None

    @property
    def drain_batches(self) -> int:
        """How many batches without input it takes at most until every pair has met; 0 where pairs meet in their own."""
        return 0

    def check_relation(self, parts: Sequence[Part]) -> None:  # noqa: B027 (most read any)
        """Refuse a version of the stage's relation that it cannot read.

        Raises:
            InputError: the reason.
        """

    def check_first(self) -> None:  # noqa: B027 (any may begin)
        """Refuse to be what a job begins with; one that has begun goes on with what its checkpoint has.

        Raises:
            InputError: the reason.
        """

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
