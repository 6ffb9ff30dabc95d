"""A stage of a plan, what it reads, and which stages answer which queries; for whatever a stage does.

What stages do is said in `plan.join`, `plan.sharing`, `plan.aggregate` and `plan.rounds`; all that a job runs is in
`plan.stages`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

from streamjoin.plan.asof import AsOf
from streamjoin.plan.expression import Expression
from streamjoin.plan.ordering import InNoOrder
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.window import R, S


@dataclass(frozen=True, slots=True)
class Flow:
    """The output of a stage, as an input of another one."""

    stage: int


@dataclass(frozen=True, slots=True)
class Table:
    """A relation as an input of a stage, where it is S; by its number among the plan's relations."""

    number: int


Input = int | Flow | Table
"""What a stage reads on one side: a stream, by its number among the plan's, a flow, or a relation."""


class _Done(Protocol):
    """What a stage does."""

    @property
    def asof(self) -> AsOf | None: ...


_Does = TypeVar("_Does", bound=_Done, covariant=True)
_Plan = TypeVar("_Plan", covariant=True)


@dataclass(frozen=True)
class StageOf(Generic[_Does]):
    """One join of a plan, a round of a join of many streams, or what makes groups of its input.

    Args:
        number: stages are numbered in the order in which data reaches them.
        inputs: what R and S are; of groups the only input, of a first round all streams, and of the others what the
            round before found.
        plan: the join of the two, the round, or the groups.
        conditions: what it checks, in the names of the query; a round, for some of its origins.
        keeps: the stage that keeps the tuples which this one looks at; None where it keeps its own.
    """

    number: int
    inputs: tuple[Input, ...]
    plan: _Does
    conditions: tuple[Expression, ...] = ()
    keeps: int | None = None

    @property
    def fed_by(self) -> tuple[int, ...]:
        """The stages whose output it joins further."""
        return tuple(read.stage for read in self.inputs if isinstance(read, Flow))

    @property
    def table(self) -> int | None:
        """The relation that it joins a stream or a flow with, by its number; None where it joins two of these."""
        read = self.inputs[-1]
        return read.number if isinstance(read, Table) else None

    @property
    def asof(self) -> AsOf | None:
        """What it is, if it is an as-of join."""
        return self.plan.asof

    @property
    def keeper(self) -> int:
        """The stage that keeps the tuples which it looks at."""
        return self.number if self.keeps is None else self.keeps

    def side_of(self, read: Input) -> int | None:
        """The side on which an input enters; None where it does not."""
        return self.inputs.index(read) if read in self.inputs else None


@dataclass(frozen=True)
class PartOf(Generic[_Plan]):
    """Stages of a plan, the last of which answers one query, or several that share its stored tuples.

    Args:
        names: what people call these queries; one without a name is a job's only one.
        plan: they alone, as a job of its own would run them.
        streams: of each that it reads, its number in the whole plan.
        numbers: of each of its stages, likewise.
        first_query: the number of its first query.
    """

    names: tuple[str, ...]
    plan: _Plan
    streams: tuple[int, ...]
    numbers: tuple[int, ...]
    first_query: int = 0


class Unsaid:
    """What a plan says nothing of: it has several queries, or joins two streams, whose predicate says it all."""

    __slots__ = ()

    @property
    def last_join(self) -> Any:
        """Each query has its own."""
        return None

    @property
    def where(self) -> tuple[Expression, ...]:
        """Each query has its own."""
        return ()

    @property
    def inputs(self) -> tuple[str, ...]:
        """Each query has its own names for them."""
        return ()

    @property
    def tree(self) -> None:
        """There is one way to join two streams, and each of several queries has its own."""

    @property
    def rounds(self) -> None:
        """What is joined at once is one query of its own."""

    @property
    def groups(self) -> None:
        """Each query has its own."""


class Throughout:
    """What has one part, from the first start on and for as long as there is a job: its part of `plan.stages.Plan`."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def parts(self) -> tuple[PartOf[Self], ...]: ...

    @property
    def all_parts(self) -> tuple[PartOf[Self], ...]:
        """None has ended."""
        return self.parts

    @property
    def every_name(self) -> tuple[str, ...]:
        """Those of its queries."""
        return self.parts[0].names

    @property
    def resting(self) -> frozenset[int]:
        """None: a stage is there as long as one of its queries is."""
        return frozenset()

    @property
    def begun(self) -> Self:
        """Itself: its stages are those of the first start."""
        return self

    def since_of(self, name: str) -> int:
        """The first start."""
        return 0


class OneStage(Unsaid, Throughout):
    """What joins two streams in one stage, as all that a job runs: its part of `plan.stages.Plan`."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def names(self) -> tuple[str, str]: ...

        @property
        def names_of_queries(self) -> tuple[str, ...]: ...

    @property
    def asof(self) -> AsOf | None:
        """See `JoinPlan`."""
        return None

    @property
    def pair(self) -> Self:
        """All there is."""
        return self

    @property
    def stages(self) -> tuple[StageOf[Self], ...]:
        """It alone."""
        return (StageOf(0, (R, S), self),)

    @property
    def parts(self) -> tuple[PartOf[Self], ...]:
        """One of all its queries."""
        return (PartOf(self.names_of_queries, self, (R, S), (0,)),)

    @property
    def floors(self) -> tuple[tuple[StageOf[Self], ...], ...]:
        """One."""
        return (self.stages,)

    @property
    def relations(self) -> tuple[StreamSchema, ...]:
        """Two streams and nothing else are read."""
        return ()

    @property
    def relation_names(self) -> tuple[str, ...]:
        """None."""
        return ()

    @property
    def shape(self) -> str:
        """What is joined with what."""
        return shape(self.names, (), self.stages)


class ManyStages(InNoOrder):
    """Several stages, one after the other or beside each other: what no such plan has of `plan.stages.Plan`."""

    __slots__ = ()

    @property
    def pair(self) -> None:
        """It is more than one join of two streams."""

    @property
    def shared(self) -> None:
        """Its queries stay as they are."""

    @property
    def main(self) -> None:
        """Each stage has its own best one."""


def shape(names: Sequence[str], relation_names: Sequence[str], stages: Sequence[StageOf[Any]]) -> str:
    """What one query joins with what, by what it calls them, such as `((a, b), c)`."""
    shown: dict[Input, str] = {
        **dict(enumerate(names)),
        **{Table(number): name for number, name in enumerate(relation_names)},
    }
    for stage in stages:
        parts = [shown[read] for read in stage.inputs]
        shown[Flow(stage.number)] = f"({', '.join(parts)})" if len(parts) > 1 else parts[0]
    return shown[Flow(stages[-1].number)]
