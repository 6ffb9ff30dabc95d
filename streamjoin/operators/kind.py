"""A kind of operator, as the registry has one: what it is called, its settings, and what builds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal

from streamjoin.engine.operator import Operator
from streamjoin.operators.costs import Prediction, StreamStatistics, UnitCosts
from streamjoin.operators.costs.growth import LayoutOf
from streamjoin.operators.costs.several import Cost, Several
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.stages import Plan
from streamjoin.settings.setting import Settings, setting
from streamjoin.settings.trees import TreeSetting
from streamjoin.settings.values import Choice, Span

Predict = Callable[[Any, StreamStatistics, StreamStatistics, float, UnitCosts | None], Prediction]
Index = Literal["auto", "hash", "tree", "scan"]


class Joins(Enum):
    """What an operator joins; a stage is run by one of its own sort, whichever the others have."""

    STREAMS = "streams"
    AS_OF = "a stream with the latest row of another"
    RELATION = "a stream with a relation"


@dataclass(frozen=True, slots=True)
class OperatorKind:
    """An operator as the join file, the command line, the API and the dashboard know it.

    Args:
        system: what it is, for people.
        settings: its knobs.
        build: an instance of `settings`, a stage's plan and slots -> the operator; None for Spark's own joins,
            which have no units of ours.
        refuses: why it cannot run a plan, or None if it can.
        plans: settings, a plan of joins of two and slots -> the plan that its stages are of; None where they are these.
        joins: what it joins.
        predict: the operator, both streams' statistics, D in seconds, what steps take -> the paper's formulas.
        several: the operator, what is known of three streams or more -> what it costs; of those that join all at once
            and are there to be compared with.
        hint: how one of Spark's own joins with a relation is to go about it, as Spark calls that.
        layout: the operator -> what becomes of a tuple with more slots and units; None where no model of scale tells.
    """

    name: str
    system: str
    settings: type[Settings]
    build: Callable[[Any, Any, int], Operator] | None
    refuses: Callable[[Plan], str | None] = lambda plan: None
    predict: Predict | None = None
    plans: Callable[[Any, Plan, int], Plan] | None = None
    joins: Joins = Joins.STREAMS
    several: Callable[[Any, Several], Cost] | None = None
    hint: str | None = None
    layout: Callable[[Any], LayoutOf] | None = None

    @property
    def is_sparks(self) -> bool:
        """Whether it is one of Spark's own joins."""
        return self.build is None

    @property
    def knobs(self) -> tuple[str, ...]:
        """The names of its settings."""
        return tuple(self.settings.model_fields)


class CommonSettings(Settings):
    """What every operator with units takes."""

    archive_period: Annotated[
        Span | None,
        setting("how much event time one segment of the chained index covers", unset="a tenth of the window"),
    ] = None
    index: Annotated[Annotated[Index, Choice("index")], setting("how partners are found among stored tuples")] = "auto"
    main: Annotated[
        str | None, setting("the condition of the query that is indexed, as it is written there", unset="the best one")
    ] = None
    ordering: Annotated[Annotated[Ordering, Choice("ordering")], setting("the order in which results leave")] = (
        Ordering.NONE
    )
    tree: Annotated[
        TreeSetting,
        setting(
            "of three streams and more, what is joined with what, such as [[a, b], c]", unset="in the order of FROM"
        ),
    ] = None
