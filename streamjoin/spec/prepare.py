"""From a join file to a job: open the sources, bind the query, build the operator.

The parser of queries is imported where it is called: it is a tenth of what the API loads before it answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from streamjoin.engine.coverage import all_stored, check_starts
from streamjoin.errors import InputError, QueryError, UnsupportedError
from streamjoin.index.layout import check_index
from streamjoin.intake.shedding import Shedding
from streamjoin.operators import registry
from streamjoin.operators.aggregate import Aggregate
from streamjoin.operators.kind import Joins
from streamjoin.plan.in_rounds import tree_plan
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.reordering import keyed, ordered
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import Plan, Query, joins_nothing, together
from streamjoin.results.parts import Sink
from streamjoin.sources.relation import AnyRelation
from streamjoin.spec.bundling import (
    Named,
    adopted,
    check_only_place,
    check_place,
    laid_out,
    name_is_taken,
    needs_parts,
    stage_operators,
)
from streamjoin.spec.checks import check_joins_nothing
from streamjoin.spec.inputs import is_bounded, is_sparks, joined_relations, open_inputs, source_spec
from streamjoin.spec.job import (
    Job,
    Recorded,
    is_used,
    recorded,
    recorded_order,
    recorded_query,
    recorded_slots,
    state_folder,
)
from streamjoin.spec.joinfile import JoinFile
from streamjoin.spec.order import Order, fits, is_left_open
from streamjoin.spec.outputs import open_sink, store_sink
from streamjoin.spec.places import check_places
from streamjoin.spec.reach import check_reach
from streamjoin.spec.room import given
from streamjoin.spec.shed import check_sheds, shed_rules
from streamjoin.spec.without_units import check_without_units
from streamjoin.state.places import newest_states
from streamjoin.state.root import ObjectRoot

if TYPE_CHECKING:
    from streamjoin.query import RegisteredPredicate


@dataclass(frozen=True, slots=True)
class Bound:
    """A join file whose query, or queries, are bound to its streams.

    Args:
        operator: the operator's name, `auto` resolved.
        single: each query for itself, in a file of several.
        name: what people call the query, in a file of several.
        stopped: the queries that are stopped, each for itself.
        earlier: the queries that the checkpoint's state is of, where those of the file are others.
        reason: why `auto` stands for the operator, where it does.
        order: in which three streams and more are joined, where `auto` chose that.
        operators: of each part of a bundle, the operator's name.
    """

    file: JoinFile
    plan: Plan
    operator: str
    single: tuple[Bound, ...] = ()
    name: str = ""
    stopped: tuple[Bound, ...] = ()
    earlier: Plan | None = None
    reason: str = ""
    order: Order | None = None
    operators: tuple[str, ...] = ()

    @property
    def as_named(self) -> Named:
        """One query of several, by its name."""
        return Named(self.name, self.plan, self.operator)

    @property
    def query(self) -> Query:
        """The plan of the only query."""
        (query,) = self.plan.queries
        return query

    @property
    def joined(self) -> JoinPlan:
        """The same, of a query that is one join of two streams."""
        assert isinstance(self.query, JoinPlan)
        return self.query

    @property
    def as_tree(self) -> Bound:
        """The same as joins of two, for those who look at rows before it runs."""
        return replace(self, plan=tree_plan(self.plan))

    @property
    def queries(self) -> tuple[Bound, ...]:
        """Each query for itself."""
        return self.single or (self,)

    def job(self, checkpoint: Path | None = None, *, heartbeat: bool = True) -> Job:
        """The job for an operator with units."""
        file = self.file
        checkpoint = checkpoint or file.checkpoint
        first_slots = _first_slots(file, checkpoint)
        operators = stage_operators(file, self.plan, self.operators or (self.operator,), first_slots)
        return Job(
            self.plan,
            operators,
            file.slots,
            checkpoint,
            {
                number: source_spec(file, file.streams[stream.name], stream)
                for number, stream in enumerate(self.plan.streams)
                if not is_sparks(file.streams[stream.name])
            },
            file.run.strict,
            file.run.heartbeat if heartbeat else 0,
            file.run.every,
            shedding=Shedding(shed_rules(file, self.plan)),
            earlier=self.earlier if checkpoint == file.checkpoint else None,
            relations=self.relations,
            states=file.states if checkpoint == file.checkpoint else None,
            order=self.order,
        )

    @property
    def relations(self) -> dict[str, AnyRelation]:
        """The relations of its queries, by name; see `joined_relations`."""
        return joined_relations(self.file, self.plan)

    def ending(self) -> dict[str, Sink]:
        """Where the results of queries go that are being stopped, by name."""
        earlier = self.earlier.names_of_queries if self.earlier else ()
        return {query.name: query.sink() for query in self.stopped if query.name in earlier}

    def sinks(self, checkpoint: Path | None = None) -> list[Sink]:
        """Where the results of each query go."""
        return [query.sink(checkpoint) for query in self.queries]

    def sink(self, checkpoint: Path | None = None) -> Sink:
        """Where the results of one query go."""
        return open_sink(self.file, self.plan, (checkpoint or self.file.checkpoint) / "staged-results" / self.name)


def _first_slots(file: JoinFile, checkpoint: Path | None) -> int:
    """What knobs that were not set follow: later starts may have other slots, not other units."""
    return (recorded_slots(checkpoint) if checkpoint else None) or file.slots


def bind(
    file: JoinFile,
    predicates: Mapping[str, RegisteredPredicate] | None = None,
    *,
    anew: bool = False,
    elsewhere: bool = False,
) -> Bound:
    """Look at the streams, and bind the query, or queries, to them.

    Args:
        anew: whatever the join file's checkpoint has been used for.
        elsewhere: the job goes on with a checkpoint of another machine, so nothing is compared with that.
    Raises:
        InputError: a stream or a query is wrong, or queries cannot share one job.
    """
    check_reach(file)
    anew = anew or elsewhere
    schemas = open_inputs(file, anew=anew)
    if file.queries is None:
        one = _bind_one(file, schemas, predicates, anew=anew, elsewhere=elsewhere)
        check_only_place(None if anew else recorded(file.checkpoint), one.plan)
        return one
    every = tuple(_bind_named(file, name, schemas, predicates, anew=anew, elsewhere=elsewhere) for name in file.queries)
    single = tuple(one for one in every if not file.queries[one.name].stopped)
    if needs_parts(file, [one.as_named for one in every], anew=anew):
        return _bundled(file, every, anew=anew)
    plan: Plan = together({one.name: one.plan for one in single})
    name, earlier, slots = file.operator.name, None, _first_slots(file, None if anew else file.checkpoint)
    if (found := None if anew else recorded(file.checkpoint)) is not None:
        pairs = {one.name: one.plan for one in every if one.plan.pair is not None}
        single, plan, earlier = _continued(single, pairs, found)
        name = found.operator if name == registry.AUTO else name
    name = registry.choose(plan) if name == registry.AUTO else name
    if found is not None and earlier is not None and earlier.shared and plan.shared:
        # The operator stays, so it is that of the queries so far: what does not fit it is the new query's.
        (operator,) = registry.build_all(name, file.operator.knobs, earlier, slots)
        clocks = next(
            (state.clocks for _, state in newest_states(file.states or state_folder(file.checkpoint), 0)), None
        )
        check_starts(plan.shared, earlier.shared, operator, all_stored(found.kept, clocks))
    stopped = tuple(one for one in every if file.queries[one.name].stopped)
    registry.build_all(name, file.operator.knobs, plan, slots)  # what it cannot do is said now
    return Bound(file, plan, registry.entry(name).name, single, stopped=stopped, earlier=earlier)


def _bundled(file: JoinFile, every: tuple[Bound, ...], *, anew: bool) -> Bound:
    """Queries of which some share no stored tuples: each part of them has stages of its own."""
    stopped = {name for name, query in (file.queries or {}).items() if query.stopped}
    found = None if anew else recorded(file.checkpoint)
    slots = _first_slots(file, None if anew else file.checkpoint)
    plan, operators, earlier = laid_out(file, [one.as_named for one in every], stopped, found, slots)
    by_name = {one.name: one for one in every}
    # It is called by what joins streams, if any does.
    of_streams = (one for one in operators if one in registry.REGISTRY and registry.entry(one).joins is Joins.STREAMS)
    name = next(of_streams, operators[0])
    return Bound(
        file,
        plan,
        name,
        tuple(by_name[name] for name in plan.names_of_queries),
        stopped=tuple(one for one in every if one.name in stopped),
        earlier=earlier,
        operators=operators,
    )


def _continued(
    single: tuple[Bound, ...], queries: Mapping[str, Plan], found: Recorded
) -> tuple[tuple[Bound, ...], Plan, Plan | None]:
    """The queries of a job that has run before, in its order; their plan, and its state's if that is of other queries.

    Args:
        single: those that are not stopped.
        queries: all of the join file.
    """
    recorded_now = {name: recorded_query(name, plan.queries[0]) for name, plan in queries.items()}
    if not found.queries[0].name:
        found = adopted(recorded_now.values(), found)
    known = {query.name: query for query in found.queries}
    for name, query in recorded_now.items():
        for other in (one for one in (*found.queries, *found.ended) if one.name == name and not query.is_same(one)):
            check_place(query, other, f"queries.{name}.results")
            raise InputError(name_is_taken(name), field=f"queries.{name}.query")
    if missing := [name for name in known if name not in queries]:
        raise InputError(
            f"the checkpoint's state is of {' and '.join(missing)} too; keep the query here with stopped: true, which "
            "ends it and completes its results, or use another run.checkpoint",
            field="queries",
        )
    # In the checkpoint's order, so that another order in the file is no change.
    single = tuple(sorted(single, key=lambda one: list(known).index(one.name) if one.name in known else len(known)))
    names = tuple(one.name for one in single)
    started = (frozenset(names) - known.keys()) | found.started
    plan = together({one.name: one.plan for one in single}, found.lasting, started & frozenset(names))
    if names == tuple(known):
        return single, plan, None
    return single, plan, together({name: queries[name] for name in known}, found.lasting, found.started)


def _bind_named(
    file: JoinFile,
    name: str,
    schemas: Mapping[str, StreamSchema],
    predicates: Mapping[str, RegisteredPredicate] | None,
    *,
    anew: bool,
    elsewhere: bool,
) -> Bound:
    """One of several queries; what is wrong with it is said with its name."""
    place = f"queries.{name}"
    try:
        one = _bind_one(file.of(name), schemas, predicates, anew=anew, elsewhere=elsewhere)
        return replace(one, name=name)
    except QueryError as wrong:
        wrong.place = f"{place}.query"
        raise
    except InputError as wrong:
        if wrong.field and wrong.field.split(".")[0] in ("query", "results"):
            wrong.field = f"{place}.{wrong.field}"
        elif isinstance(wrong, UnsupportedError) and wrong.field and wrong.field.startswith("operator."):
            wrong.message = f"{wrong.message} (query {name})"
        raise


def _bind_one(
    file: JoinFile,
    schemas: Mapping[str, StreamSchema],
    predicates: Mapping[str, RegisteredPredicate] | None,
    *,
    anew: bool,
    elsewhere: bool,
) -> Bound:
    check_places(file)
    assert file.query is not None
    from streamjoin.query import plan_query

    plan: Plan = plan_query(
        file.query,
        schemas,
        predicates=predicates or {},
        index=file.operator.index,
        archive_period_us=file.operator.archive_period,
        main=file.operator.main,
        tree=file.operator.tree,
    )
    plan = _delivering(plan, file)
    (query,) = plan.queries
    if query.keyed:
        store_sink(file, plan)  # so that what is wrong with it shows before anything starts
    if joins_nothing(plan):
        check_joins_nothing(file.operator)
        return Bound(file, plan, Aggregate.name)
    order = recorded_order(file.checkpoint, file.query) if is_left_open(file) and fits(plan) and not anew else None
    return ready(file, plan, order, anew=anew, elsewhere=elsewhere)


def ready(file: JoinFile, plan: Plan, order: Order | None, *, anew: bool, elsewhere: bool = False) -> Bound:
    """A plan as the operator runs it that the join file names, or `auto` stands for.

    Args:
        order: in which streams are joined, if `auto` chose that.
        anew, elsewhere: see `bind`.
    Raises:
        InputError: a knob is wrong.
        UnsupportedError: the operator cannot run the query.
    """
    if order is not None:
        file, plan = order.in_file(file), order.in_plan(plan)
    chosen = registry.chosen(plan, given(file, plan, anew=anew)) if file.operator.name == registry.AUTO else None
    name = chosen.operator if chosen else file.operator.name
    found = registry.entry(name)
    if not found.is_sparks:  # so that wrong knobs show before anything starts
        if found.plans is not None and file.operator.tree is not None:
            raise InputError(
                f"{name} joins all streams at once, in an order for each of them; write orders, or leave it out",
                field="operator.tree",
            )
        slots = _first_slots(file, None if anew else file.checkpoint)
        runs = registry.planned(name, file.operator.knobs, plan, slots)
        operators = registry.build_all(name, file.operator.knobs, runs, slots)
        check_sheds(file, runs, operators)
        # Where the state is in a store, the job may have begun elsewhere.
        if not elsewhere and (anew or not (is_used(file.checkpoint) or isinstance(file.states, ObjectRoot))):
            for operator in operators:
                operator.check_first()
    else:
        runs = plan
        check_without_units(found, file, plan)
    for stage in runs.stages:
        check_index(stage.plan.queries[0])
    return Bound(file, runs, found.name, reason=chosen.reason if chosen else "", order=order)


def _delivering(plan: Plan, file: JoinFile) -> Plan:
    """The plan whose results leave as the join file asks for."""
    ordering = Ordering(file.operator.ordering)
    if ordering is not Ordering.NONE:
        if reason := _unordered(plan):
            raise UnsupportedError(f"{reason}; leave operator.ordering out", field="operator.ordering")
        plan = ordered(plan, ordering)
    return keyed(plan) if file.results.store is not None else plan


def _unordered(plan: Plan) -> str | None:
    """Why results of a query leave in no order; None where they can be put in one."""
    if plan.groups:
        return "groups leave window by window, in no order within one"
    if plan.pair is None:
        return f"results of a join of {_joined_words(plan)} leave in no order"
    (query,) = plan.pair.queries
    if query.kind.decided or query.asof is not None:
        what = query.asof or f"{query.kind} JOIN"
        return f"results of {what} leave when it is known what became of a row, in no order"
    return None


def _joined_words(plan: Plan) -> str:
    """What a plan of stages joins that those of two streams do not."""
    if plan.relations:
        return f"relation{'' if len(plan.relations) == 1 else 's'} {' and '.join(plan.relation_names)}"
    return f"{len(plan.streams)} streams"


def bounded_names(bound: Bound) -> tuple[str, ...]:
    """The streams of a query, as it names them, to which nothing can be added: one file, or so many generated rows."""
    return tuple(
        name
        for name, schema in zip(bound.plan.names, bound.plan.streams, strict=True)
        if is_bounded(bound.file, bound.file.streams[schema.name])
    )
