"""Which versions of its relations a job has: at a start those are read that have changed since they were read last."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import pyarrow as pa

from streamjoin.errors import InputError, RunError
from streamjoin.index.table import Part
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.window import S
from streamjoin.relations.history import History, Reading
from streamjoin.relations.versions import Version, Versions
from streamjoin.sources.relation import AnyRelation
from streamjoin.spec.job import Job, read_columns

OnRelation = Callable[[str, int], None]
"""Is told of a relation that is read, and how many of its rows were."""
_READS_MAX = 3
_NOTED_EVERY_US = 1_000_000


def read_relations(job: Job, on_relation: OnRelation | None = None) -> dict[str, Version]:
    """The newest version of each relation of a job, read now where its files are others than when it was read.

    Raises:
        InputError, RunError: a relation cannot be read.
    Cost: reads each relation that has changed once, and none that has not.
    """
    found = {name: _newest(job, relation, on_relation) for name, relation in job.joined_relations.items()}
    for version in found.values():
        _check(job, version.stages)  # one that was read before may be too large for what the join file says now
    return found


def _check(job: Job, stages: Mapping[int, Sequence[Part]]) -> None:
    """Refuse a version that the operator of a stage cannot read."""
    for stage, parts in stages.items():
        job.operators[stage].check_relation(parts)


def is_current(known: Version, relation: AnyRelation, now_us: int) -> bool:
    """Whether a start need not read a relation: nothing of it has changed, or it would not be looked at yet."""
    if not relation.has_origin(known.origin):
        return False
    return relation.is_listed or (relation.refresh_us is not None and 0 <= now_us - known.read_us < relation.refresh_us)


def plans_of(job: Job, relation: str) -> dict[int, JoinPlan]:
    """By stage, the joins that a relation is S of, of queries that have not ended."""
    return {stage: join for stage, join in job.relation_joins.items() if join.streams[S].name == relation}


def units_of(job: Job, relation: str) -> dict[int, int]:
    """By stage, how many units read a part each of a relation, again and again; see `Versions.read`."""
    operators = {stage: job.operators[stage] for stage in plans_of(job, relation)}
    return {stage: len(one.units) for stage, one in operators.items() if one.capabilities.reads_parts}


def _newest(job: Job, relation: AnyRelation, on_relation: OnRelation | None) -> Version:
    versions = Versions(job.tables, relation.name, sync=job.sync)
    there = versions.newest()
    # A start that was refused may have read a version for fewer queries, of which one was to end.
    needed = plans_of(job, relation.name).keys()
    if (
        there
        and needed <= (known := versions.load(there)).stages.keys()
        and is_current(known, relation, time.time_ns() // 1_000)
    ):
        History(job.tables, relation.name).reads_nothing()  # what somebody began who was killed is given up
        return known
    if there:
        _check_is_there(relation)
    return read_version(job, relation, on_relation)


def refreshed(job: Job, relation: AnyRelation, on_relation: OnRelation | None = None) -> Version | None:
    """A new version of a relation that has one already, or None where nothing has changed since.

    Raises:
        InputError: it is not there any more, or has other columns than before.
        RunError: it cannot be read, changes each time while it is read, or no record of it is one.
    Cost: as `read_relations`.
    """
    versions = Versions(job.tables, relation.name, sync=job.sync)
    known, relation = versions.load(versions.newest()), relation.listed_again()
    if relation.is_listed and relation.has_origin(known.origin):
        return None
    _check_is_there(relation)
    _check_columns(known, relation, _columns(plans_of(job, relation.name), relation))
    return read_version(job, relation, on_relation, keeps=known)


def _check_is_there(relation: AnyRelation) -> None:
    """Refuse a relation that was read before and whose files are gone: no row would have a partner any more."""
    if relation.file_count == 0:
        raise InputError(f"{relation.place} has no files any more; put them back, or one without rows")


def _check_columns(known: Version, relation: AnyRelation, columns: Sequence[str]) -> None:
    """Refuse a relation that has lost a column, or has it in another type, since it was read."""
    if not (carried := relation.carried()):
        return
    for name in columns:
        if name not in carried:
            raise InputError(f'it has no column "{name}" any more; it has {", ".join(list(carried)[:20])}')
        was = known.columns.get(name, carried[name])
        if carried[name] and was != carried[name]:  # a version may have a type where none is told any more
            raise InputError(
                f'its column "{name}" is {carried[name]} now, and was {was}; give it that type again, or start the job '
                "anew"
            )


def read_version(
    job: Job, relation: AnyRelation, on_relation: OnRelation | None = None, keeps: Version | None = None
) -> Version:
    """A new version of a relation, of the files that there are now.

    Args:
        keeps: the version that there is, if one with nothing but bad records is not to follow it.
    Raises:
        InputError: it is not there any more, or the operator of a stage cannot read it.
        RunError: it cannot be read, or changes each time while it is read.
    """
    versions, plans = Versions(job.tables, relation.name, sync=job.sync), plans_of(job, relation.name)
    columns, units, check = _columns(plans, relation), units_of(job, relation.name), partial(_check, job)
    for _ in range(_READS_MAX):
        relation = relation.listed_again()
        before = relation.origin()

        def is_same(relation: AnyRelation = relation, before: str = before) -> bool:
            return relation.listed_again().origin() == before

        carried = relation.carried()
        types = {name: carried[name] for name in columns if name in carried}
        with _noting(History(job.tables, relation.name), versions.newest() + 1, on_relation) as on_rows:
            blocks = _told(relation, columns, on_rows)
            blocks = blocks if keeps is None else _some_good(blocks)
            version = versions.read(blocks, plans, before, is_same, types, units, check)
        if version is not None:
            return version
    raise RunError(
        f"relation {relation.name} has changed {_READS_MAX} times while it was read; write its files elsewhere and "
        "move them into place when they are complete"
    )


@contextmanager
def _noting(history: History, version: int, on_relation: OnRelation | None) -> Iterator[OnRelation]:
    """Have it noted, once a second at most, how far a version is that is read meanwhile, and somebody told."""
    noted_us = 0

    def on_rows(relation: str, rows: int) -> None:
        nonlocal noted_us
        if (now_us := time.time_ns() // 1_000) - noted_us >= _NOTED_EVERY_US:
            history.reads(Reading(version, rows, now_us))
            noted_us = now_us
        if on_relation:
            on_relation(relation, rows)

    try:
        yield on_rows
    finally:
        history.reads_nothing()


def _told(relation: AnyRelation, columns: Sequence[str], on_rows: OnRelation) -> Iterator[tuple[pa.RecordBatch, int]]:
    """A relation's blocks, while somebody is told how many rows were read."""
    read = 0
    for rows, bad in relation.blocks(columns):
        read += rows.num_rows
        on_rows(relation.name, read)
        yield rows, bad


def _some_good(blocks: Iterator[tuple[pa.RecordBatch, int]]) -> Iterator[tuple[pa.RecordBatch, int]]:
    """The blocks, unless there are bad records and no others."""
    rows = bad = 0
    for block, letters in blocks:
        rows, bad = rows + block.num_rows, bad + letters
        yield block, letters
    if bad and not rows:
        raise RunError(f"none of its {bad:,} records can be read")


def columns_read(job: Job, relation: str) -> pa.Schema:
    """What is read of a relation of a job."""
    of = job.relations[relation]
    return pa.schema([of.columns.field(name) for name in _columns(plans_of(job, relation), of)])


def _columns(plans: dict[int, JoinPlan], relation: AnyRelation) -> tuple[str, ...]:
    """What is read of it; a column where nothing is, as rows without any cannot be counted."""
    wanted = {name for plan in plans.values() for name in read_columns(plan, S)}
    return tuple(name for name in relation.columns.names if name in wanted) or (relation.columns.names[0],)
