"""Another set of queries for what a job stores, between two batches: some end, others start over it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from streamjoin.engine.coverage import all_stored, check_starts
from streamjoin.engine.requery import Requery
from streamjoin.engine.state import UnitState
from streamjoin.failpoints import failpoint
from streamjoin.plan.sharing import SharedJoin
from streamjoin.plan.stages import is_divided
from streamjoin.spark.checkpoint import Changed, Held, recorded_of, units_of
from streamjoin.spark.identity import ended_relations, identity
from streamjoin.spark.started import lasting_version, version_of
from streamjoin.spark.starts import Starts
from streamjoin.spec.job import ENDED_COLUMNS, Job, Recorded, order_of, queries_of
from streamjoin.state import rewrite
from streamjoin.state.places import open_states
from streamjoin.state.root import Root

OnUnit = Callable[[int, int], None]
"""Told how many units are done, of how many."""


def requery(held: Held, job: Job, on_unit: OnUnit | None = None, complete: Callable[[], None] | None = None) -> None:
    """Give a job's state its queries, in place of those of `job.earlier`; there must be no pending batch.

    Nothing knows of what is written until all of it is noted in one step.

    Args:
        complete: called once nothing is left that may be refused, to complete the results of queries that end; who is
            killed before the note does it again.
    Raises:
        UnsupportedError: what is stored is not all that a query asks for.
        StateError: the state is not all there.
    """
    assert job.earlier is not None
    pairs = {
        part.numbers[-1]: (found.plan.shared, part.plan.shared)
        for part in job.plan.parts
        for found in job.earlier.parts
        if part.numbers == found.numbers and part.names != found.names
    }
    new = range(len(held.units), len(job.operators))
    root = held.begun(job, [*pairs, *new])
    # What ends with this start may store what another query begins with.
    starts = Starts(job, held.place(job), lasting_version(job), held.operators(job))
    if new:
        starts.write(root, str(held.requeries), on_unit)
    changed, kept = {}, held.queries.kept
    for stage, (earlier, plan) in pairs.items():
        assert earlier is not None and plan is not None
        changed[stage], kept = _of_pairs(held, job, root, stage, earlier, plan, kept, on_unit)
    noted: dict[str, Any] = {"queries": _queries(held, job, kept).to_json(), "requeries": held.requeries + 1}
    if is_divided(job.plan):
        # Other units for stages that go on are a change of their own, which comes after this one.
        wanted = units_of(job)
        units = [wanted[stage] and have for stage, have in enumerate(held.units)] + [wanted[stage] for stage in new]
        noted = {**identity(job), **noted, "units": units, ENDED_COLUMNS: ended_relations(job)}
    if complete:
        complete()
    failpoint("requery.before_note")
    held.change(job, changed, noted, root, new)
    failpoint("requery.after_note")
    held.let_go(job)


def _of_pairs(
    held: Held,
    job: Job,
    root: Root,
    stage: int,
    earlier: SharedJoin,
    plan: SharedJoin,
    kept: tuple[bool, bool],
    on_unit: OnUnit | None,
) -> tuple[Changed, tuple[bool, bool]]:
    """What the state of a stage becomes, which joins pairs for several queries, and what is `kept` from now on."""
    version, operator = version_of(job), held.operators(job)[stage]
    store = open_states(root, stage)
    known = open_states(held.place(job), stage)
    operator = operator.in_batch(partial(known.load, version=version))
    # Those that begin with the next batch have nothing stored.
    units = [unit.number for unit in operator.units if not unit.begins_at(version)]
    before = {unit: known.load(unit, version) for unit in units}
    check_starts(plan, earlier, operator, all_stored(held.queries.kept, before[0].clocks))
    change = Requery(operator, earlier, plan)
    after: dict[int, UnitState] = {}
    for unit, state in rewrite.requeried(store, version, held.requeries, change, before):
        after[unit] = state
        if on_unit:
            on_unit(len(after), len(units))
    return Changed(operator, after, store), _kept(kept, before, after)


def _queries(held: Held, job: Job, kept: tuple[bool, bool]) -> Recorded:
    """What the checkpoint says of queries from now on."""
    assert job.earlier is not None
    there = set(job.plan.names_of_queries)
    gone = set(job.earlier.names_of_queries) - there
    known = (*held.queries.ended, *(query for query in held.queries.queries if query.name in gone))
    # One that had ended may be there again, of pairs alone.
    ended = tuple(query for query in known if query.name not in there)
    now = recorded_of(job) if job.plan.shared else held.queries
    return replace(now, queries=queries_of(job.plan), order=order_of(job.plan), ended=ended, kept=kept)


def _kept(
    kept: tuple[bool, bool], before: Mapping[int, UnitState], after: Mapping[int, UnitState]
) -> tuple[bool, bool]:
    r, s = (was and _rows(before, side) == _rows(after, side) for side, was in enumerate(kept))
    return r, s


def _rows(states: Mapping[int, UnitState], side: int) -> int:
    return sum(info.rows for state in states.values() for info in state.tuples(side))
