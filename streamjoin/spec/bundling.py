"""Queries of a join file as the parts of one job: which of them share what."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from streamjoin.engine.operator import Operator
from streamjoin.engine.rebuilding import new_parts, refusal
from streamjoin.errors import InputError, QueriesStayError, UnsupportedError
from streamjoin.operators import registry
from streamjoin.plan.kinds import JoinKind
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.sharing import Lasting, key_text
from streamjoin.plan.stages import Bundle, Plan, together
from streamjoin.plan.window import CountWindow
from streamjoin.spec.job import Recorded, RecordedQuery, is_of_parts, recorded, recorded_query
from streamjoin.spec.joinfile import JoinFile


@dataclass(frozen=True, slots=True)
class Named:
    """One query of several: its plan, and the operator that runs it."""

    name: str
    plan: Plan
    operator: str


def needs_parts(file: JoinFile, queries: Sequence[Named], *, anew: bool) -> bool:
    """Whether queries are not all of pairs over the same two streams, which share stored tuples and may come and go.

    Args:
        queries: all of the join file; of those that are stopped, only what the checkpoint is of counts.
        anew: whatever the join file's checkpoint has been used for.
    """
    known: tuple[str, ...] = () if anew else recorded_names(file.checkpoint)
    if not anew and is_of_parts(file.checkpoint):
        return True
    stopped = {name for name, query in (file.queries or {}).items() if query.stopped}
    groups = {_group(query) for query in queries if query.name not in stopped or query.name in known or "" in known}
    return len(groups) > 1 or None in groups


def bundled(
    file: JoinFile,
    queries: Sequence[Named],
    ended: frozenset[str] = frozenset(),
    since: Mapping[str, int] = MappingProxyType({}),
) -> tuple[Plan, tuple[str, ...]]:
    """Queries as parts, those that share stored tuples as one part, and each part's operator.

    Args:
        ended: of them, those that have ended; what the job stores for the others is found by all of them.
        since: of those that started in a job that went on, with which start; each is a part of its own.
    Raises:
        InputError, UnsupportedError: they cannot share one job; the message says why.
    """
    _check(file, queries)
    groups: dict[Any, list[Named]] = {}
    for query in queries:
        is_first = query.name not in since
        groups.setdefault((is_first and _group(query)) or query.name, []).append(query)
    plans: list[tuple[tuple[str, ...], Plan]] = []
    operators: list[str] = []
    for found in groups.values():
        left = [query for query in found if query.name not in ended] or found
        whole = found[0].plan if len(found) == 1 else together({query.name: query.plan for query in found})
        is_chosen = len(found) > 1 and file.operator.name == registry.AUTO
        operators.append(registry.choose(whole) if is_chosen else found[0].operator)
        plans.append((tuple(query.name for query in found), whole if left == found else _those_left(left, whole)))
    return Bundle(tuple(plans), ended, tuple(since.items())), tuple(operators)


def _those_left(left: Sequence[Named], whole: Plan) -> Plan:
    """Queries that shared stored tuples with others, which have ended: these lie where the keys of all sent them."""
    lasting = Lasting(whole.names, tuple(map(key_text, whole.predicate.equalities)))
    return together({query.name: query.plan for query in left}, lasting)


def _group(query: Named) -> tuple[tuple[str, ...], bool] | None:
    """What queries have in common that share stored tuples; None for one that shares none."""
    pair = query.plan.pair
    if pair is None or pair.queries[0].kind is not JoinKind.INNER or pair.asof is not None:
        return None
    return tuple(stream.name for stream in pair.streams), isinstance(pair.window, CountWindow)


def _check(file: JoinFile, queries: Sequence[Named]) -> None:
    kinds = "queries of other kinds than pairs over the same two streams"
    for query in queries:
        # What joins nothing has no operator of a name.
        if query.operator in registry.REGISTRY and registry.entry(query.operator).build is None:
            raise UnsupportedError(
                f"{query.operator} runs one query a job, and {query.name} is one of several; choose another operator",
                field="operator.name",
            )
        if query.plan.rounds is not None and file.operator.knobs.get("adaptive"):
            raise UnsupportedError(
                f"a {query.operator} looks at all its rounds to add and take away nodes, and here other queries run "
                "beside it; leave adaptive out, or run each query as a job of its own",
                field="operator.adaptive",
            )
        for stream in query.plan.streams:
            if file.streams[stream.name].shed is not None:
                raise UnsupportedError(
                    f"drops rows by the load of one operator, and a job with {kinds} has several; leave shed out, or "
                    "run each query as a job of its own",
                    field=f"streams.{stream.name}.shed",
                )
    if Ordering(file.operator.ordering) is not Ordering.NONE:
        raise UnsupportedError(
            f"results of a job with {kinds} leave in no order; leave operator.ordering out", field="operator.ordering"
        )


def stage_operators(file: JoinFile, plan: Plan, names: Sequence[str], slots: int) -> tuple[Operator, ...]:
    """The operator of each stage; `names` are those of the parts.

    Raises:
        InputError, UnsupportedError: one cannot run its part; `field` is the query, or the knob.
    """
    operators: dict[int, Operator] = {}
    for part, name in zip(plan.all_parts, names, strict=True):
        for number, operator in zip(
            part.numbers, registry.build_all(name, file.operator.knobs, part.plan, slots), strict=True
        ):
            operators.setdefault(number, operator)
    return tuple(operators[stage.number] for stage in plan.stages)


def recorded_names(checkpoint: Path) -> tuple[str, ...]:
    """The queries of a checkpoint, in the order of their numbers; none where it was never used."""
    found = recorded(checkpoint)
    return () if found is None else tuple(query.name for query in found.queries)


def laid_out(
    file: JoinFile, queries: Sequence[Named], stopped: Collection[str], found: Recorded | None, slots: int
) -> tuple[Plan, tuple[str, ...], Plan | None]:
    """Queries as parts, each part's operator, and the plan so far of a job that goes on with other queries.

    Args:
        queries: all of the join file, those that are `stopped` too.
        found: what its checkpoint says; None where the job begins.
        slots: of the job's first start.
    Raises:
        InputError, UnsupportedError: they cannot share one job; the message says why.
        QueriesStayError: one cannot start or end.
    """
    if found is None:
        return *bundled(file, [one for one in queries if one.name not in stopped]), None
    now = continued(file.checkpoint, found, queries, stopped)
    plan, operators = bundled(file, now.queries, now.ended, now.since)
    if not now.changes:
        return plan, operators, None
    earlier, _ = bundled(file, now.before, now.ended_before, now.since)
    check_starts_over(plan, earlier, stage_operators(file, plan, operators, slots))
    return plan, operators, earlier


@dataclass(frozen=True, slots=True)
class Continued:
    """Queries with stages of their own, in a job that goes on.

    Args:
        before: all that the job has had, in the order in which their stages are numbered.
        queries: the same with those that start now.
        ended_before, ended: of them, those that had ended so far, and those that have from now on.
        since: of those that started after the job did, with which start.
    """

    before: tuple[Named, ...]
    queries: tuple[Named, ...]
    ended_before: frozenset[str]
    ended: frozenset[str]
    since: Mapping[str, int]

    @property
    def new(self) -> tuple[Named, ...]:
        """Those that start now."""
        return self.queries[len(self.before) :]

    @property
    def changes(self) -> bool:
        """Whether any starts or ends."""
        return bool(self.new) or self.ended != self.ended_before


def continued(checkpoint: Path, found: Recorded, queries: Sequence[Named], stopped: Collection[str]) -> Continued:
    """The queries of a join file beside those of its checkpoint.

    Args:
        queries: all of the join file, those that are `stopped` too.
    Raises:
        InputError: one of the checkpoint is missing.
        QueriesStayError: one has ended and is not stopped, or is another one under its name.
    """
    if not is_of_parts(checkpoint):
        names = " and ".join(query.name or "one query without a name" for query in found.queries)
        new_one = next((query.name for query in queries if _is_new(query, found)), queries[-1].name)
        raise QueriesStayError(
            f"the checkpoint is of {names}, and beside queries of pairs over the same two streams alone only others of "
            f"these start; run this one as a job of its own, {ANEW}",
            field=f"queries.{new_one}.query",
        )
    ended_before = frozenset(query.name for query in found.ended)
    known = {query.name: query for query in (*found.queries, *found.ended)}
    by_name = {query.name: query for query in queries}
    for name, query in by_name.items():
        asks = recorded_query(name, query.plan.queries[0])
        if name in known and not known[name].is_same(asks):
            check_place(asks, known[name], f"queries.{name}.results")
            raise QueriesStayError(f"{name_is_taken(name)}, {ANEW}", field=f"queries.{name}.query")
        if name in ended_before and name not in stopped:
            raise QueriesStayError(
                f"{name} has ended in this checkpoint, and its results with it; leave stopped: true there, and start "
                f"the query under another name, {ANEW}",
                field=f"queries.{name}.query",
            )
    if missing := [name for name in known if name not in by_name]:
        raise InputError(
            f"{' and '.join(missing)} {'has its' if len(missing) == 1 else 'have their'} place in the checkpoint; keep "
            "the query here with stopped: true, which ends it and completes its results, or use another run.checkpoint",
            field="queries",
        )
    before = tuple(by_name[name] for name in _order(found, by_name))
    new = tuple(query for query in queries if query.name not in known and query.name not in stopped)
    since = {query.name: query.since for query in known.values() if query.since}
    start = 1 + max(since.values(), default=0)
    return Continued(
        before,
        (*before, *new),
        ended_before,
        ended_before | {name for name in known if name in stopped},
        {**since, **{query.name: start for query in new}},
    )


def _is_new(query: Named, found: Recorded) -> bool:
    """Whether a checkpoint has not had a query, also under no name."""
    asks = recorded_query(query.name, query.plan.queries[0])
    return not any(one.name == query.name or (not one.name and one.is_same(asks)) for one in found.queries)


def _order(found: Recorded, by_name: Mapping[str, Named]) -> list[str]:
    """The names of all queries that a checkpoint has had, in the order in which their stages are numbered.

    Earlier versions forgot those that had ended of a part with others left. Each has its place among these, as in the
    join file, since the first one's names of streams and order of keys are those of all.
    """
    order, in_file = list(found.order or [query.name for query in found.queries]), list(by_name)
    first = {query.name for query in (*found.queries, *found.ended) if not query.since}
    for name in (query.name for query in found.ended if query.name not in order):
        group = _group(by_name[name])
        alike = [other for other in order if other in first and _group(by_name[other]) == group]
        behind = (order.index(other) for other in alike if in_file.index(other) > in_file.index(name))
        order.insert(next(behind, 1 + max(map(order.index, alike), default=len(order))), name)
    return order


def check_starts_over(plan: Plan, earlier: Plan, operators: Sequence[Operator]) -> None:
    """Make sure that queries can start over what a job stores, as far as that follows from its plan.

    Args:
        operators: of the stages of `plan`, which begin with those of `earlier`.
    Raises:
        QueriesStayError: one cannot; `field` is that query.
    """
    for part in new_parts(plan, earlier):
        if (reason := refusal(plan, part, earlier, operators)) is not None:
            raise QueriesStayError(
                f"{reason}, so it cannot start in a job that goes on; run it as a job of its own, {ANEW}",
                field=f"queries.{part.names[0]}.query",
            )


def adopted(queries: Iterable[RecordedQuery], found: Recorded) -> Recorded:
    """The checkpoint of a job that had one query, without a name; that of the file which is the same gives it one."""
    (only,) = found.queries
    for query in queries:
        if query.is_same(only):
            return found.called(query.name)
    raise InputError(
        "the checkpoint is of one query, and none of these is the same; keep it among them, with stopped: true to end "
        f"it, or use another run.checkpoint: {only.text[:200]}",
        field="queries",
    )


def check_only_place(found: Recorded | None, plan: Plan) -> None:
    """See `check_place`, of the query of a job that has one."""
    for query in found.queries if found is not None else ():
        check_place(recorded_query("", plan.queries[0]), query, "results")


def check_place(query: RecordedQuery, other: RecordedQuery, field: str) -> None:
    """Refuse results in a store of a query that had them elsewhere in a checkpoint, and the other way round.

    Args:
        other: as the checkpoint has it.
        field: where the join file says where results go.
    Raises:
        InputError: they are; state and results have a key only for a store.
    """
    if query.text == other.text and query.keyed != other.keyed:
        were, others = ("in a store", "another store") if other.keyed else ("in no store", "another place")
        raise InputError(
            f"the results of this query were {were} when the checkpoint's job began, and its state is made for that; "
            f"{others} will do, or use another run.checkpoint and place for results to start anew",
            field=field,
        )


def name_is_taken(name: str) -> str:
    """What is said of a query under the name of another one, whose results are kept by it."""
    return (
        f"{name} is the name of another query in this checkpoint; give the new one another name, and results in "
        "another place"
    )


ANEW = "or let the job begin anew: with start_anew on the platform, with another run.checkpoint in a join file"
