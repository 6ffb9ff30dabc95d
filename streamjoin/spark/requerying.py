"""Another set of queries for what a job stores, between two batches: some end, others start over it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from streamjoin.engine.coverage import all_stored, check_starts
from streamjoin.engine.requery import Requery
from streamjoin.engine.state import UnitState
from streamjoin.failpoints import failpoint
from streamjoin.plan.sharing import SharedJoin
from streamjoin.plan.stages import is_divided
from streamjoin.spark.checkpoint import Held, recorded_of, units_of
from streamjoin.spark.identity import identity
from streamjoin.spark.started import lasting_version, version_of
from streamjoin.spark.starts import Starts
from streamjoin.spec.job import Job, Recorded, order_of, queries_of
from streamjoin.state import rewrite
from streamjoin.state.places import open_states

OnUnit = Callable[[int, int], None]
"""Told how many units are done, of how many."""


def requery(held: Held, job: Job, on_unit: OnUnit | None = None) -> None:
    """Give a job's state its queries, in place of those of `job.earlier`; there must be no pending batch.

    Raises:
        UnsupportedError: what is stored is not all that a query asks for.
        StateError: the state is not all there.
    """
    assert job.earlier is not None
    changes = [
        (part.numbers[-1], found.plan.shared, part.plan.shared)
        for part in job.plan.parts
        for found in job.earlier.parts
        if part.numbers == found.numbers and part.names != found.names
    ]
    for stage, earlier, plan in changes:
        assert earlier is not None and plan is not None
        _of_pairs(held, job, stage, earlier, plan, on_unit)
    if is_divided(job.plan):
        _of_parts(held, job, on_unit)


def _of_pairs(held: Held, job: Job, stage: int, earlier: SharedJoin, plan: SharedJoin, on_unit: OnUnit | None) -> None:
    """The same of one stage, which joins pairs for several queries."""
    version, operator = version_of(job), held.operators(job)[stage]
    store = open_states(held.begun(job, [stage]), stage)
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
    now = recorded_of(job) if job.plan.shared else held.queries
    now = _without(held, now, set(earlier.names_of_queries) - set(plan.names_of_queries))
    now = replace(now, kept=_kept(held.queries.kept, before, after))
    held.change(job, stage, operator, after, _noting(held, now), store)


def _of_parts(held: Held, job: Job, on_unit: OnUnit | None) -> None:
    """Give new stages their first state, and let those go that are of no query any more, with what they store."""
    new = range(len(held.units), len(job.operators))
    gone = {query.name for query in held.queries.queries} - set(job.plan.names_of_queries)
    now = replace(_without(held, held.queries, gone), queries=queries_of(job.plan), order=order_of(job.plan))
    root = held.begun(job, new)
    starts = Starts(job, held.place(job), lasting_version(job), held.operators(job))
    starts.write(root, str(held.requeries), on_unit)
    failpoint("requery.before_note")
    # Other units for stages that go on are a change of their own, which comes after this one.
    wanted = units_of(job)
    units = [wanted[stage] and have for stage, have in enumerate(held.units)] + [wanted[stage] for stage in new]
    held.note(job, {**identity(job), **_noting(held, now), "units": units}, root, new)
    failpoint("requery.after_note")
    held.let_go(job)


def _without(held: Held, now: Recorded, names: Collection[str]) -> Recorded:
    """What a checkpoint says once queries of these names have ended."""
    known = (*held.queries.ended, *(query for query in held.queries.queries if query.name in names))
    left = tuple(query for query in now.queries if query.name not in names)
    there = {query.name for query in left}
    return replace(now, queries=left, ended=tuple(query for query in known if query.name not in there))


def _noting(held: Held, now: Recorded) -> dict[str, Any]:
    return {"queries": now.to_json(), "requeries": held.requeries + 1}


def _kept(
    kept: tuple[bool, bool], before: Mapping[int, UnitState], after: Mapping[int, UnitState]
) -> tuple[bool, bool]:
    r, s = (was and _rows(before, side) == _rows(after, side) for side, was in enumerate(kept))
    return r, s


def _rows(states: Mapping[int, UnitState], side: int) -> int:
    return sum(info.rows for state in states.values() for info in state.tuples(side))
