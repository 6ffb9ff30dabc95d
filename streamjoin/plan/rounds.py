"""One round of a join of many streams, as plain data (PSP, section 4.1): partial results meet their next stream.

A join of M streams takes M - 1 rounds a batch. A new tuple is the first partial result of its *origin*, the stream that
it came in with. In round k each partial result meets what is stored of the k-th stream of its origin's order; what they
make goes on to round k + 1, and after the last one it is a result. All rounds look at one state, which the first keeps.
Where a node has all that its partial results meet, it does all rounds itself, and they are one stage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from streamjoin.plan.expression import TRUE, Expression
from streamjoin.plan.join import ARCHIVE_PERIODS_A_WINDOW, JoinPlan
from streamjoin.plan.lone import Lone
from streamjoin.plan.predicate import JoinPredicate, keys_of
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.window import S, Window


@dataclass(frozen=True)
class RoundPlan(Lone):
    """What is done in one round. Where it says what a `JoinPlan` says, it has the same name; a side is an origin.

    Args:
        number: of the round, from 0.
        orders: by origin, the streams that its partial results meet, in the order of the rounds.
        steps: by origin and round, the join of partial results, R, with the stream that they meet, S.
        reaches_us: of each stream; see `plan.stages`.
        given_orders: the orders were asked for.
        operator: the name of the one that runs it.
        at_once: the stage does all rounds, of which this is the first.
    """

    number: int
    orders: tuple[tuple[int, ...], ...]
    steps: tuple[tuple[JoinPlan, ...], ...]
    reaches_us: tuple[int, ...]
    given_orders: bool = False
    operator: str = "ring"
    at_once: bool = False

    @property
    def is_first(self) -> bool:
        """Whether it stores what comes in."""
        return self.number == 0

    @property
    def is_last(self) -> bool:
        """Whether what it finds are results."""
        return self.at_once or self.number == len(self.steps[0]) - 1

    @property
    def each(self) -> tuple[RoundPlan, ...]:
        """All rounds one by one, of a stage that does them at once."""
        return tuple(replace(self, number=number, at_once=False) for number in range(len(self.steps[0])))

    @cached_property
    def streams(self) -> tuple[StreamSchema, ...]:
        """By origin, what its partial results are at the beginning of the round: tuples of the stream in the first."""
        return tuple(steps[self.number].streams[0] for steps in self.steps)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """By origin, what these are called."""
        return tuple(steps[self.number].names[0] for steps in self.steps)

    @property
    def meets(self) -> tuple[int, ...]:
        """By origin, the stream that its partial results meet in this round."""
        return tuple(order[self.number] for order in self.orders)

    def met_as_s(self, stream: int) -> tuple[JoinPlan, ...]:
        """The joins that look at what is stored of a stream: one of every other origin, by its number."""
        return tuple(
            self.steps[origin][order.index(stream)] for origin, order in enumerate(self.orders) if origin != stream
        )

    def archive_period(self, stream: int) -> int:
        """How much event time a segment of a stream covers, in us."""
        return self.archive_period_us or max(self.reaches_us[stream] // ARCHIVE_PERIODS_A_WINDOW, 1)

    @cached_property
    def predicate(self) -> JoinPredicate:
        """By origin, what is selected of tuples that come in; partial results were made of selected ones."""
        if not self.is_first:
            return JoinPredicate((TRUE,) * len(self.steps), (), (), (), (TRUE,) * len(self.steps))
        selections = tuple(self._selection(stream) for stream in range(len(self.steps)))
        return JoinPredicate(selections, (), (), (), (TRUE,) * len(self.steps))

    def _selection(self, stream: int) -> Expression:
        # As an origin it is also asked what reads no stream at all, such as 1 = 0.
        return self.steps[stream][0].predicate.selections[0]

    def keys(self, side: int) -> tuple[Expression, ...]:
        """What must not be NULL of a tuple, or of a partial result, that is to match anything."""
        keys = keys_of(self.steps[side][self.number].predicate, 0)
        if self.is_first:
            keys += tuple(key for step in self.met_as_s(side) for key in keys_of(step.predicate, S))
        return tuple(dict.fromkeys(keys))

    def equality_keys(self, side: int) -> tuple[Expression, ...]:
        """Nothing is routed by keys."""
        return ()

    @property
    def answer(self) -> JoinPlan:
        """What leaves the last round is the same whatever origin it has."""
        return self.steps[0][-1]

    @property
    def window(self) -> Window:
        """One that is wide enough for any two of the streams."""
        return self.answer.window

    @property
    def index(self) -> str:
        """See `JoinPlan`."""
        return self.answer.index

    @property
    def archive_period_us(self) -> int | None:
        """See `JoinPlan`."""
        return self.answer.archive_period_us

    @property
    def predicates(self) -> Mapping[str, Callable[..., Any]]:
        """See `JoinPlan`."""
        return self.answer.predicates

    @property
    def text(self) -> str:
        """See `JoinPlan`."""
        return self.answer.text

    @property
    def select(self) -> tuple[tuple[str, Expression], ...]:
        """See `JoinPlan`; of results."""
        return self.answer.select

    @property
    def filter(self) -> Expression:
        """See `JoinPlan`; every condition decides who matches."""
        return TRUE

    @property
    def keyed(self) -> bool:
        """See `JoinPlan`."""
        return self.answer.keyed

    @property
    def output(self) -> pa.Schema:
        """See `JoinPlan`."""
        return self.answer.output

    @property
    def result_key(self) -> Expression | None:
        """See `JoinPlan`."""
        return self.answer.result_key

    @property
    def has_equal_keys(self) -> bool:
        """See `JoinPlan`."""
        return self.answer.has_equal_keys

    @property
    def key_name(self) -> str | None:
        """See `JoinPlan`."""
        return self.answer.key_name

    @property
    def emitted(self) -> pa.Schema:
        """See `JoinPlan`."""
        return self.answer.emitted

    @property
    def delivered(self) -> pa.Schema:
        """See `JoinPlan`."""
        return self.answer.delivered

    def answering(self, **changes: Any) -> RoundPlan:
        """The same with changes to what makes the results, whatever their origin."""
        steps = tuple((*steps[:-1], replace(steps[-1], **changes)) for steps in self.steps)
        return replace(self, steps=steps)
