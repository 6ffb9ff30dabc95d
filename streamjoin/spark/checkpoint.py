"""The checkpoint directory of a job: one driver at a time, and always the same join.

job.json       what the checkpoint belongs to
lock           held by the running driver
starting/      while queries start, what is stored for them so far
offsets/       Spark's offsets and commits
state/         the units' state           sources/       file logs
dead-letters/  rows that cannot be joined
shedding.json  the rules of load shedding, where there ever were any
runs.json      which batches begin a run
measured.json  what steps of a ring take, as far as that was measured
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from streamjoin.durable import make_folder
from streamjoin.engine.operator import Operator, RoutesBy
from streamjoin.engine.state import UnitState
from streamjoin.errors import InputError, StateError
from streamjoin.index.keys import WideSpace, key_space
from streamjoin.lockfile import locked
from streamjoin.plan.aggregate import AggregatePlan
from streamjoin.plan.expression import Call, Expression
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.sharing import Lasting, key_text
from streamjoin.plan.stages import is_divided
from streamjoin.spark.identity import ANEW, check_same, known_identity, parts_differ, recorded_identity
from streamjoin.spark.started import lasting_version, settle, version_of, write_json
from streamjoin.spec.job import (
    IDENTITY_FILE,
    RELATION_COLUMNS,
    Job,
    Recorded,
    RecordedQuery,
    order_of,
    queries_of,
    recorded,
)
from streamjoin.spec.joinfile import JoinFile
from streamjoin.state import rewrite
from streamjoin.state.generation import Generation, Head, seen
from streamjoin.state.objectstore import ObjectStates
from streamjoin.state.places import AnyStates, open_states
from streamjoin.state.restored import checked_local, restore
from streamjoin.state.root import ObjectRoot, Root
from streamjoin.state.store import StateStore

KEYS = 3
"""How values become keys, which is what state is sorted by.

Before 2, bounds and wide decimals had keys of floats; before 3, ranges of whole numbers with a CAST to DOUBLE had keys
of whole numbers, and as-of joins one cell for NULL and 0.
"""


@dataclass(frozen=True, slots=True)
class Changed:
    """What the state of a stage becomes.

    Args:
        after: of its units, by number.
        written: their segments, where `Held.begun` said, if they were written anew.
    """

    operator: Operator
    after: Mapping[int, UnitState]
    written: AnyStates | None = None


@dataclass(slots=True)
class Held:
    """A checkpoint that this process holds.

    Args:
        id: its own, by which stores tell the results of one from another's.
        units: how many units each stage's state is spread over; 0 for a stage that rests.
        resizes: how often that has changed.
        queries: the queries that its state is for.
        requeries: how often these have changed.
        generation: this process's turn as the owner, where the state is in a store of objects; None in a folder.
    """

    id: str
    units: tuple[int, ...]
    queries: Recorded
    resizes: int = 0
    requeries: int = 0
    generation: Generation | None = None

    def resizes_for(self, job: Job) -> bool:
        """Whether the state is of another number of units than the job's operator has."""
        return any(units != wanted and wanted for units, wanted in zip(self.units, units_of(job), strict=False))

    def requeries_for(self, job: Job) -> bool:
        """Whether the state is of other queries than the job has."""
        return self.queries.queries != queries_of(job.plan)

    def operators(self, job: Job) -> tuple[Operator, ...]:
        """The operators of the stages that have state, each with as many units as that is spread over."""
        return tuple(
            operator if units in (0, len(operator.units)) else operator.with_units(units)
            for operator, units in zip(job.operators, self.units, strict=False)
        )

    def resize(self, job: Job) -> None:
        """Give the state as many units as the operators have, stage by stage; there must be no pending batch.

        Raises:
            StateError: the state is not all there.
        """
        version, wanted = version_of(job), units_of(job)
        for stage, operator in enumerate(job.operators):
            if wanted[stage] in (0, self.units[stage]):
                continue
            store = open_states(self.place(job), stage)
            after = rewrite.resized(store, version, self.units[stage], operator)
            units = [*self.units[:stage], wanted[stage], *self.units[stage + 1 :]]
            changed = {stage: Changed(operator, after)}
            self.change(job, changed, {"units": units, "resizes": self.resizes + 1}, self.begun(job, changed))

    def let_go(self, job: Job) -> None:
        """Remove what stages that rest have in the folder; in a store of objects a generation sweeps it."""
        for stage, units in enumerate(self.units):
            if not units and isinstance(job.state, Path):
                shutil.rmtree(StateStore(job.state, stage).directory(0).parent, ignore_errors=True)

    def place(self, job: Job) -> Root:
        """Where a job's states are, as who holds it knows it."""
        return self.generation.root if self.generation else job.state

    def begun(self, job: Job, changed: Collection[int]) -> Root:
        """Where the states of these stages are written anew, before anything knows of them."""
        if self.generation is None:
            return job.state
        return self.generation.begun(self._firsts(version_of(job), changed))

    def change(
        self,
        job: Job,
        changed: Mapping[int, Changed],
        noted: Mapping[str, Any],
        root: Root,
        new: Collection[int] = (),
    ) -> None:
        """Put these states of stages in place of those that there are, and note something with them, in one step.

        Args:
            changed: by stage.
            root: where `begun` said, of all of these stages.
            new: stages whose first states are written there already.
        """
        version = lasting_version(job)
        if changed and self.generation is None:
            assert isinstance(job.state, Path)
            stages = {stage: (one.operator.units, one.after) for stage, one in changed.items()}
            rewrite.begin(StateStore(job.state), version, stages, noted)
            self.complete(job)
            for stage in changed:
                StateStore(job.state, stage).sweep()
            return
        for stage, one in changed.items():
            store = one.written or open_states(root, stage)
            assert isinstance(store, ObjectStates)
            rewrite.put(store, version, one.operator.units, one.after)
        self.note(job, noted, root, [*changed, *new])

    def note(self, job: Job, noted: Mapping[str, Any], root: Root, changed: Collection[int]) -> None:
        """Note something, and with it, in one step, that the states of `changed` stages are those written at `root`."""
        known = _known_with(job, noted)
        if self.generation is None:
            write_json(job.checkpoint / IDENTITY_FILE, known)
        else:
            # One generation more: its states take the place of those of before as it becomes the owner.
            assert isinstance(root, ObjectRoot)
            version = lasting_version(job)
            files = {IDENTITY_FILE: json.dumps(known, indent=1)}
            self.generation.become(self._firsts(version, changed), version, root, files)
        self._noted(job, noted)

    def _firsts(self, version: int, changed: Collection[int]) -> dict[int, int]:
        """From which version on a next generation writes the states of each stage."""
        assert self.generation is not None
        return {number: version + (number not in changed) for number in range(len(self.generation.root.lines))}

    def _noted(self, job: Job, noted: Mapping[str, Any]) -> None:
        self.units = _recorded_units(noted.get("units", self.units))
        self.resizes = noted.get("resizes", self.resizes)
        self.requeries = noted.get("requeries", self.requeries)
        self.queries = _recorded_in(job.checkpoint)

    def complete(self, job: Job) -> None:
        """Finish a change of the state that was begun, now or by a start that was killed."""
        if not isinstance(job.state, Path):
            return
        store = StateStore(job.state)
        if (noted := rewrite.complete(store)) is not None:
            write_json(job.checkpoint / IDENTITY_FILE, _known_with(job, noted))
            rewrite.forget(store)
            self._noted(job, noted)


def _known_with(job: Job, noted: Mapping[str, Any]) -> dict[str, Any]:
    """What a checkpoint says it belongs to, with what is noted now."""
    return {**json.loads((job.checkpoint / IDENTITY_FILE).read_text()), **noted}


def _locked(checkpoint: Path) -> AbstractContextManager[None]:
    make_folder(checkpoint)
    way_out = "stop that job first, or give this one another run.checkpoint"
    return locked(checkpoint / "lock", lambda pid: f"checkpoint {checkpoint} is in use by process {pid}; {way_out}")


@contextmanager
def opened(job: Job) -> Iterator[Held]:
    """Hold a job's checkpoint.

    Raises:
        InputError: another driver holds it.
        StateError: it belongs to another join.
        RunError: its state is in a store, and another driver goes on with it meanwhile.
    """
    with _locked(job.checkpoint):
        settle(job)
        before: Head | None = None
        if isinstance(job.state, ObjectRoot):
            before = seen(job.state)
            restore(job.state, job.checkpoint)
        else:
            checked_local(job.checkpoint)
        held = _check_identity(job)
        held.complete(job)
        _check_queries(job, held)
        if isinstance(job.state, ObjectRoot):
            stages, version = len(job.operators), version_of(job)
            held.generation = Generation(job.state, job.checkpoint, stages, version, before)
            held.generation.sweep(held.units, version)
        else:
            held.let_go(job)
            for stage in range(len(job.operators)):
                StateStore(job.state, stage).sweep()
        yield held


def brought(file: JoinFile) -> None:
    """Before a join file is bound: what its checkpoint says, where its state is in a store and was last used elsewhere.

    Raises:
        InputError: the store cannot be used, the checkpoint is in use, or its state is elsewhere.
    """
    if isinstance(root := file.states, ObjectRoot):
        with _locked(file.checkpoint):
            restore(root, file.checkpoint, _staying(file))


def _staying(file: JoinFile) -> str | None:
    """What of a job is in its checkpoint alone, without which it would not go on exactly."""
    if file.relations:
        return "the versions of its relations"
    results = (file.results, *(query.results for query in (file.queries or {}).values()))
    if any(one.jsonl not in (None, "-") for one in results):
        return "the records of what is in its file of JSON lines"
    return None


def _check_identity(job: Job) -> Held:
    path = job.checkpoint / IDENTITY_FILE
    mine = known_identity(job)
    if path.exists():
        theirs = recorded_identity(path)
        kinds = mine.get(RELATION_COLUMNS, {})
        check_same(job.checkpoint, theirs, mine)
        since = theirs.get("keys", 1)
        if since != KEYS and any(_keys_changed(join, since) for join in _joins(job)):
            raise InputError(
                f"checkpoint {job.checkpoint} is from an earlier version of StreamJoin, which had other keys for this "
                "query's condition; use another run.checkpoint and place for results to start anew",
                field="run.checkpoint",
            )
        if kinds and RELATION_COLUMNS not in theirs:  # it is from before they were recorded
            theirs[RELATION_COLUMNS] = kinds
            write_json(path, theirs)
        units = _recorded_units(theirs.get("units", units_of(job)))
        queries = _recorded_in(job.checkpoint) if "query" not in theirs else _recorded_before(job, theirs)
        return Held(str(theirs["id"]), units, queries, theirs.get("resizes", 0), theirs.get("requeries", 0))
    if job.offsets.exists() or (isinstance(job.state, Path) and job.state.exists()):
        raise StateError(f"{path} is missing, so nobody can tell which join this checkpoint belongs to")
    held = Held(uuid.uuid4().hex, units_of(job), recorded_of(job))
    own = {name: value for name, value in asdict(held).items() if name != "generation"}
    order = None if job.order is None else job.order.to_json()
    write_json(path, {**mine, "keys": KEYS, "slots": job.slots, "order": order, **own})
    return held


def units_of(job: Job) -> tuple[int, ...]:
    """How many units the state of each stage is to be spread over."""
    return tuple(
        0 if number in job.plan.resting else len(operator.units) for number, operator in enumerate(job.operators)
    )


def _recorded_units(found: int | Sequence[int]) -> tuple[int, ...]:
    """By stage; a checkpoint from before there were stages has the only one's number."""
    return (found,) if isinstance(found, int) else tuple(found)


def _joins(job: Job) -> Iterator[JoinPlan]:
    """All joins of a job, stage by stage."""
    for stage in job.plan.stages:
        if not isinstance(stage.plan, AggregatePlan):
            yield from (query for query in stage.plan.queries if isinstance(query, JoinPlan))


def _keys_changed(plan: JoinPlan, since: int) -> bool:
    """Whether a join's keys are others than when `KEYS` was `since`."""
    if any(all(map(_is_rounded, found.keys)) for found in plan.predicate.ranges):
        return True
    if plan.asof is not None and any(equality.joins_null for equality in plan.predicate.equalities):
        return True
    if since >= 2:
        return False
    for found in plan.predicate.ranges:
        kind = found.keys[0].type
        fraction = any(bound is not None and bound.denominator != 1 for bound in (found.low, found.high))
        if pa.types.is_decimal(kind) or (fraction and not pa.types.is_floating(kind)):
            return True
    return any(isinstance(key_space(found.keys[0].type), WideSpace) for found in plan.predicate.equalities)


def _is_rounded(key: Expression) -> bool:
    """Whether a key is a whole number or a decimal as a float."""
    return isinstance(key, Call) and key.function == "cast" and not pa.types.is_floating(key.args[0].type)


def _check_queries(job: Job, held: Held) -> None:
    """A job was bound to the queries of its checkpoint before it was held."""
    if not held.requeries_for(job):
        return
    if job.plan.shared is None and not is_divided(job.plan):
        raise _another_query(job, held.queries.queries)
    if job.earlier is None or held.queries.called(job.earlier.names_of_queries[0]).queries != queries_of(job.earlier):
        raise InputError(
            f"the queries of checkpoint {job.checkpoint} have changed since the join file was read; start again",
            field="run.checkpoint",
        )


def _another_query(job: Job, theirs: Sequence[RecordedQuery]) -> InputError:
    was, now = ({"query": "; ".join(query.text for query in queries)} for queries in (theirs, queries_of(job.plan)))
    how = f" ({parts_differ(('query',), was, now)})" if was != now else ""
    return InputError(
        f"checkpoint {job.checkpoint} belongs to another join, with other query{how}; {ANEW}",
        field="run.checkpoint",
    )


def _recorded_before(job: Job, theirs: Mapping[str, Any]) -> Recorded:
    """Of a checkpoint from before queries could be started and stopped: its only one has to be the job's."""
    mine = recorded_of(job)
    (only, *more) = mine.queries
    if more or only.name or (theirs["query"], theirs.get("keyed results")) != (only.text, only.keyed):
        raise _another_query(job, (RecordedQuery("", theirs["query"], only.keyed),))
    return mine


def _recorded_in(checkpoint: Path) -> Recorded:
    if (found := recorded(checkpoint)) is None:
        raise StateError(
            f"{checkpoint / IDENTITY_FILE} is damaged; restore the checkpoint from a copy or start with another one"
        )
    return found


def recorded_of(job: Job) -> Recorded:
    """What the checkpoint says once its state is of the job's queries."""
    plan = job.plan
    routes_by = job.operator.capabilities.routes_by
    equalities = tuple(map(key_text, plan.predicate.equalities)) if routes_by is RoutesBy.EQUALITY else ()
    known = plan.shared.lasting if plan.shared else None
    return Recorded(job.operator.name, known or Lasting(plan.names, equalities), queries_of(plan), order=order_of(plan))
