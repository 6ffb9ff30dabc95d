"""A query that starts while its job goes on: the state that its stages would have if it had been there before.

The stored tuples of its streams go through its stages once more, so that a stage which joins further has what the one
before found of them. What they give is dropped: a query's results are those whose newest part came after its start.
Rows that others keep for being decided on are taken as matched, so that only later ones leave as unmatched, and groups
begin with nothing. No tuple is late meanwhile and none expires, as no stream says how far it has come; in the end each
has the clock that it has in the job.

Source: ESJ, "Join engine" (tasks come on a running job), for plans of stages.
Cost: each stored tuple of its streams is read, routed and stored once, and all that they find is found again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from streamjoin.engine.deciding import BITS, all_matched
from streamjoin.engine.entering import Entering
from streamjoin.engine.loop import Brought, Loop
from streamjoin.engine.operator import Operator
from streamjoin.engine.recovering import Giver, givers
from streamjoin.engine.router import Router
from streamjoin.engine.slot import States
from streamjoin.engine.starting import Asked, asked_of
from streamjoin.engine.state import Rewritten, Table, UnitState
from streamjoin.flow.block import TS
from streamjoin.flow.punctuation import StreamClock, lowest_mark_us
from streamjoin.index.chain import Save
from streamjoin.index.columns import routed_columns
from streamjoin.intake.intake import Piece, Routed
from streamjoin.plan.aggregate import AggregatePlan
from streamjoin.plan.expression import Expression, columns_of, conjunction, conjuncts
from streamjoin.plan.hearing import elsewhere
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.kinds import JoinKind
from streamjoin.plan.sharing import renamed
from streamjoin.plan.stages import Flow, Part, Plan, Stage, StagePlan, ending, parts_at, running
from streamjoin.plan.window import CountWindow, R, TimeWindow


@dataclass(frozen=True)
class Taking:
    """What the tuples that enter at a stage are taken from.

    Args:
        stage, side: where they enter.
        giver: who stores them; None where the stage makes groups, which begin empty.
        rest: what the new query asks of them and the giver does not.
    """

    stage: Stage
    side: int
    giver: Giver | None
    rest: frozenset[Asked] = frozenset()


def new_parts(plan: Plan, earlier: Plan) -> tuple[Part, ...]:
    """The parts that a plan has beside those of an earlier one, whose stages are its first."""
    return tuple(part for part in plan.parts if part.numbers[0] >= len(earlier.stages))


def refusal(plan: Plan, part: Part, earlier: Plan, operators: Sequence[Operator]) -> str | None:
    """Why a query cannot start over what a job stores, as far as that follows from its plan; None where it can.

    A stage that it shares with others that start has the columns of all of them.

    Args:
        plan: of the job, whose part it is.
        operators: of the stages of `earlier`, the first ones.
    """
    own = part.plan
    if own.relations:
        return f"this reads relation {own.relations[0].name}"
    if own.rounds is not None:
        return f"{own.rounds.operator} joins all streams at once"
    if any(stage.asof is not None for stage in own.stages):
        return "this is an as-of join"
    if any(isinstance(stage.plan, JoinPlan) and isinstance(stage.plan.window, CountWindow) for stage in own.stages):
        return "its window counts rows"
    if (kind := _joined_further(own)) is not None:
        return f"its {kind} JOIN is joined further, and nothing says which stored rows it has no partners of"
    for stage, side, stream in _entering(plan.stages[number] for number in part.numbers):
        if stream >= len(earlier.streams):
            return f"this reads {plan.streams[stream].name}, which the job has not read so far"
        if isinstance(found := _taking(stage, side, stream, earlier, operators), str):
            return found
    return None


def _joined_further(plan: Plan) -> JoinKind | None:
    """Of the first join that decides on rows and feeds another join, what it is."""
    feeding = {before for stage in plan.stages if isinstance(stage.plan, JoinPlan) for before in stage.fed_by}
    kinds = [stage.plan.kind for stage in plan.stages if isinstance(stage.plan, JoinPlan) and stage.number in feeding]
    return next((kind for kind in kinds if kind.decided), None)


def _entering(stages: Iterable[Stage]) -> Iterator[tuple[Stage, int, int]]:
    """(stage, side, number of the stream) wherever a stream enters these stages."""
    for stage in stages:
        for side, read in enumerate(stage.inputs):
            if isinstance(read, int):
                yield stage, side, read


def _taking(stage: Stage, side: int, stream: int, earlier: Plan, operators: Sequence[Operator]) -> Taking | str:
    """The first query that stores all that a new stage needs of a stream; or why the one that comes closest does not.

    Args:
        stream: its number in `earlier`.
    """
    if isinstance(stage.plan, AggregatePlan):
        return Taking(stage, side, None)
    (query,) = stage.plan.queries
    assert isinstance(query, JoinPlan)
    lacks: list[_Lack] = []
    for other, at, read in _entering(running(earlier)):
        for giver in givers(other, operators[other.number], at) if read == stream else ():
            rest = _rest(query, side, giver)
            if not isinstance(rest, _Lack):
                return Taking(stage, side, giver, rest)
            lacks.append(rest)
    if not lacks:
        return f"no query of the job stores tuples of {query.streams[side].name} to begin with"
    return max(lacks, key=lambda lack: lack.passed).words


@dataclass(frozen=True, slots=True)
class _Lack:
    """Why what a query stores will not do, and how many checks it passed before."""

    passed: int
    words: str


def _rest(query: JoinPlan, side: int, giver: Giver) -> frozenset[Asked] | _Lack:
    """What a query asks of a giver's tuples that the giver does not; or why they will not do."""
    stream, name = query.streams[side].name, query.names[side]
    called = {giver.join.names[giver.side]: name}
    known = {(what, renamed(expression, called)) for what, expression in giver.asked}
    asked = asked_of(query, side)
    if more := sorted(f"{expression} {what}" for what, expression in known if (what, expression) not in asked):
        return _Lack(0, f"tuples of {stream} are stored only where {more[0]}, and this needs others")
    kept_us, window = giver.kept_us(), query.window
    if kept_us is not None and not (isinstance(window, TimeWindow) and window.keeps_us(side) <= kept_us):
        return _Lack(1, f"this is {window}, and tuples of {stream} are stored for {giver.stage.plan.window}")
    rest = frozenset(one for one in asked if one not in known)
    wanted = {*routed_columns(query, side), *(column for _, part in rest for _, column in columns_of(part))}
    if missing := sorted(wanted - giver.columns):
        have = ", ".join(sorted(giver.columns)) or "no column"
        return _Lack(2, f"this reads {', '.join(missing)} of {stream}, and of stored tuples there is {have}")
    return rest


def job_clocks(plan: Plan, state_of: Callable[[int], UnitState]) -> dict[int, StreamClock]:
    """How far each stream of a job has come by its own rows, by number: an idle one is not moved on by others.

    Partitions that are idle do not hold it back, as in the job; one that is back does, as far as others may have moved
    the stream on meanwhile.

    Args:
        state_of: a stage -> the state of one of its units.
    """
    found: dict[int, StreamClock] = {}
    for stage, side, stream in _entering(running(plan)):
        if stream not in found:
            clock, schema = state_of(stage.number).clock(side), plan.streams[stream]
            # The mark of a stream that is never idle is its own.
            if schema.idle_us is not None and clock.mark_us is not None:
                reached_us = clock.reached_us(schema.idle_us)
                if reached_us is not None:
                    clock = replace(clock, mark_us=min(reached_us - schema.delay_us, clock.mark_us))
            found[stream] = clock
    return found


@dataclass
class Rebuilding:
    """The stages of new parts, to be filled with stored tuples.

    Args:
        plan: of the job, with its earlier queries.
        earlier: these alone; the stages of the others come behind theirs.
        operators: of all stages.
        clocks: of the streams, by number.
        open_states: where the new stages keep their states meanwhile.
        version: how many batches it took.
    """

    plan: Plan
    earlier: Plan
    operators: tuple[Operator, ...]
    clocks: Mapping[int, StreamClock]
    open_states: Callable[[int], States]
    version: int = 0

    def __post_init__(self) -> None:
        self._alone = ending(self.plan, self.earlier.names_of_queries)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The new ones."""
        return self.plan.stages[len(self.earlier.stages) :]

    @cached_property
    def taken(self) -> tuple[Taking, ...]:
        """Where what enters at the new stages is stored; `refusal` has been asked before."""
        found = []
        for stage, side, stream in _entering(self.stages):
            taking = _taking(stage, side, stream, self.earlier, self.operators)
            assert not isinstance(taking, str), taking
            found.append(taking)
        return tuple(found)

    def since_us(self, taking: Taking) -> int | None:
        """From which event time on tuples are needed, as far as the other streams have come; None for all of them."""
        window = taking.stage.plan.window
        if not isinstance(window, TimeWindow):
            return None
        own = taking.stage.inputs[taking.side]
        streams = {stream for part in parts_at(self.plan, taking.stage.number) for stream in part.streams}
        # Of a stream that is joined with itself alone both sides are at once as far as it is.
        marks = [self._clock(stream).mark_us for stream in (streams - {own}) or streams]
        mark_us = lowest_mark_us(marks)
        return None if mark_us is None else mark_us - window.keeps_us(taking.side)

    def run(self, rows: Callable[[Giver], Iterable[pa.RecordBatch]]) -> None:
        """Send all stored tuples through the new stages.

        Args:
            rows: what `Giver.rows` gives.
        """
        loop = _Replay(self._alone, self.operators, self.open_states)
        for taking in self.taken:
            read = taking.stage.inputs[taking.side]
            loop.taking = taking
            for some in rows(taking.giver) if taking.giver is not None else ():
                brought = Brought([[some] if stream == read else [] for stream in range(len(self.plan.streams))], 0)
                for _ in loop.batch(brought):
                    pass  # all parts of it came before the start
                loop.commit(brought)
        self.version = loop.version

    def states(self, stage: Stage, version: int, save: Callable[[int], Save]) -> Iterator[tuple[int, UnitState]]:
        """The state of each unit of a new stage after `run`, as the job's next batch takes it.

        Args:
            version: of the job's state.
            save: a unit -> where its segments are kept for good.
        """
        operator, store = self.operators[stage.number], self.open_states(stage.number)
        for unit in (spec.number for spec in operator.units):
            if isinstance(stage.plan, AggregatePlan) or not self.version:
                yield unit, self._with_clocks(stage, UnitState(version))
                continue
            state = store.load(unit, self.version)
            files: dict[str, str | None] = {}
            tables: dict[str, Table] = {}
            for name, table in state.tables.items():
                made = []
                for info in table.segments:
                    rows = store.open_segment(unit, info)
                    made.append(save(unit)(all_matched(rows, state.sequence) if name == BITS else rows, info))
                    files[info.file] = made[-1].file
                tables[name] = replace(table, segments=tuple(made))
            state = replace(state, version=version, tables=tables, totals={}, dropped=())
            numbers = {query: query for query in range(len(stage.plan.queries))}
            yield unit, self._with_clocks(stage, operator.requeried(state, Rewritten(files, numbers)))

    def _with_clocks(self, stage: Stage, state: UnitState) -> UnitState:
        """A state whose inputs have come as far as in the job; their tuples are numbered as they were stored here."""
        clocks = list(state.clocks)
        for side, read in enumerate(stage.inputs):
            if isinstance(read, int):
                clock = self._clock(read)
                own = clock if isinstance(stage.plan, AggregatePlan) else clocks[side]
                clocks[side] = replace(clock, rows=own.rows, routed=own.routed, shed=own.shed)
            elif isinstance(read, Flow):
                # What a stage finds from now on has a part that comes now, and no row waits there to be decided on.
                marks = [self._clock(stream).mark_us for stream in self._below(read.stage)]
                clocks[side] = replace(clocks[side], mark_us=lowest_mark_us(marks))
        others = {number: self._clock(number) for number in elsewhere(self.plan, stage.number)}
        return replace(state, clocks=tuple(clocks), elsewhere=others)

    def _clock(self, stream: int) -> StreamClock:
        """How far a stream has come; if no query has read it lately, it begins anew."""
        return self.clocks.get(stream, StreamClock())

    def _below(self, stage: int) -> frozenset[int]:
        """The streams whose rows a stage's results are made of."""
        found: set[int] = set()
        for read in self.plan.stages[stage].inputs:
            if isinstance(read, int):
                found.add(read)
            elif isinstance(read, Flow):
                found |= self._below(read.stage)
        return frozenset(found)


@dataclass(slots=True)
class _Replay(Loop):
    """A loop that takes rows which have been stamped and selected before, and of which none says how late it is.

    Args:
        taking: where they enter, and what is left to ask of them.
    """

    taking: Taking | None = None

    def _taken(self, entering: Entering, rows: pa.RecordBatch, piece: Piece) -> Iterator[tuple[int, Routed]]:
        assert self.taking is not None
        entering.routers = [one for one in entering.routers if self._is_here(*one)]
        for _, router in entering.routers:
            router.intake.plan = _asking(router.intake.plan, self.taking)
        return entering.again(rows.drop_columns([TS]), rows.column(TS).to_numpy(), piece)

    def _is_here(self, stage: int, router: Router) -> bool:
        assert self.taking is not None
        return (stage, router.intake.side) == (self.taking.stage.number, self.taking.side)


def _asking(plan: StagePlan, taking: Taking) -> StagePlan:
    """The plan of a stage, without the conditions that the giver's tuples fulfil: their columns may not be stored."""
    assert isinstance(plan, JoinPlan)
    left = {expression for _, expression in taking.rest}

    def cut(conditions: Sequence[Expression]) -> tuple[Expression, Expression]:
        kept = conjunction([part for part in conjuncts(conditions[taking.side]) if part in left])
        return (kept, conditions[1]) if taking.side == R else (conditions[0], kept)

    predicate = plan.predicate
    return replace(
        plan,
        predicate=replace(predicate, selections=cut(predicate.selections), eligible=cut(predicate.eligible)),
    )
