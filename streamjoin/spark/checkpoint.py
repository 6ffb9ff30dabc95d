"""The checkpoint directory of a job: one driver at a time, and always the same join.

job.json       what the checkpoint belongs to
lock           held by the running driver
offsets/       Spark's offsets and commits
state/         the units' state           sources/       file logs
dead-letters/  rows that cannot be joined
shedding.json  the rules of load shedding, where there ever were any
runs.json      which batches begin a run
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from streamjoin.durable import make_folder
from streamjoin.engine.coverage import all_stored, check_starts
from streamjoin.engine.operator import Operator, RoutesBy
from streamjoin.engine.requery import Requery
from streamjoin.engine.state import UnitState
from streamjoin.errors import InputError, StateError
from streamjoin.index.keys import WideSpace, key_space
from streamjoin.lockfile import locked
from streamjoin.plan.sharing import Lasting, SharedPlan, key_text
from streamjoin.plan.stages import Query
from streamjoin.spark.identity import identity, retyped
from streamjoin.spark.started import lasting_version, settle, version_of, write_json
from streamjoin.spec.job import IDENTITY_FILE, RELATION_COLUMNS, Job, Recorded, queries_of, recorded
from streamjoin.spec.joinfile import JoinFile
from streamjoin.state import rewrite
from streamjoin.state.generation import Generation
from streamjoin.state.manifest import FORMAT, WAY_OUT
from streamjoin.state.objectstore import ObjectStates
from streamjoin.state.places import AnyStates, open_states
from streamjoin.state.restored import checked_local, restore
from streamjoin.state.root import ObjectRoot, Root
from streamjoin.state.store import StateStore

KEYS = 2
"""How values become keys, which is what state is sorted by. Before 2, bounds and wide decimals had keys of floats."""


@dataclass(slots=True)
class Held:
    """A checkpoint that this process holds.

    Args:
        id: its own, by which stores tell the results of one from another's.
        units: of which number of units the state of each stage is.
        resizes: how often that has changed.
        queries: of which queries its state is.
        requeries: how often these have changed.
        generation: what it is at a place of objects, where its state is at one.
    """

    id: str
    units: tuple[int, ...]
    queries: Recorded
    resizes: int = 0
    requeries: int = 0
    generation: Generation | None = None

    def resizes_for(self, job: Job) -> bool:
        """Whether the state is of another number of units than the job's operator has."""
        return self.units != _units(job.operators)

    def requeries_for(self, job: Job) -> bool:
        """Whether the state is of other queries than the job has."""
        return self.queries.queries != queries_of(job.plan)

    def operators(self, job: Job) -> tuple[Operator, ...]:
        """The job's operators, with as many units as the state is of."""
        return tuple(
            operator if len(operator.units) == units else operator.with_units(units)
            for operator, units in zip(job.operators, self.units, strict=True)
        )

    def resize(self, job: Job) -> None:
        """Give the state as many units as the operators have, stage by stage; there must be no pending batch.

        Raises:
            StateError: the state is not all there.
        """
        version, wanted = version_of(job), _units(job.operators)
        for stage, operator in enumerate(job.operators):
            if self.units[stage] == wanted[stage]:
                continue
            store = open_states(self.place(job), stage)
            after = rewrite.resized(store, version, self.units[stage], operator)
            units = [*self.units[:stage], wanted[stage], *self.units[stage + 1 :]]
            self._change(job, stage, operator, after, {"units": units, "resizes": self.resizes + 1})

    def requery(self, job: Job, on_unit: Callable[[int, int], None] | None = None) -> None:
        """Give the state the job's queries; there must be no pending batch.

        Args:
            on_unit: told how many units are done, of how many.
        Raises:
            UnsupportedError: what is stored is not all that a query asks for.
            StateError: the state is not all there.
        """
        assert job.earlier is not None and isinstance(job.plan, SharedPlan)
        version, (operator,) = version_of(job), self.operators(job)
        store: AnyStates
        if self.generation is not None:
            store = ObjectStates(self.generation.begun({0: version}))
        else:
            store = open_states(job.state)
        known = open_states(self.place(job))
        operator = operator.in_batch(partial(known.load, version=version))
        # Those that begin with the next batch have nothing stored.
        units = [unit.number for unit in operator.units if not unit.begins_at(version)]
        before = {unit: known.load(unit, version) for unit in units}
        check_starts(job.plan, job.earlier, operator, all_stored(self.queries.kept, before[0].clocks))
        change = Requery(operator, job.earlier, job.plan)
        after: dict[int, UnitState] = {}
        for unit, state in rewrite.requeried(store, version, self.requeries, change, before):
            after[unit] = state
            if on_unit:
                on_unit(len(after), len(units))
        now = _recorded_of(job)
        ended = {query.name: query for query in (*self.queries.ended, *queries_of(job.earlier))}
        for query in now.queries:
            ended.pop(query.name, None)
        now = replace(now, kept=_kept(self.queries.kept, before, after), ended=tuple(ended.values()))
        noted = {"queries": now.to_json(), "requeries": self.requeries + 1}
        self._change(job, 0, operator, after, noted, store)

    def place(self, job: Job) -> Root:
        """Where a job's states are, as who holds it knows it."""
        return self.generation.root if self.generation else job.state

    def _change(
        self,
        job: Job,
        stage: int,
        operator: Operator,
        after: Mapping[int, UnitState],
        noted: Mapping[str, Any],
        written: AnyStates | None = None,
    ) -> None:
        version = lasting_version(job)
        if self.generation is None:
            assert isinstance(job.state, Path)
            local = StateStore(job.state, stage)
            rewrite.begin(local, version, operator.units, after, noted)
            self.complete(job)
            local.sweep()
            return
        # One generation more: its states take the place of those of before in one step, as it becomes the owner.
        firsts = {number: version + (number != stage) for number in range(len(job.operators))}
        store = written if isinstance(written, ObjectStates) else ObjectStates(self.generation.begun(firsts), stage)
        rewrite.put(store, version, operator.units, after)
        identity_ = {**json.loads((job.checkpoint / IDENTITY_FILE).read_text()), **noted}
        self.generation.become(firsts, version, store.root, {IDENTITY_FILE: json.dumps(identity_, indent=1)})
        self._noted(job, noted)

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
            path = job.checkpoint / IDENTITY_FILE
            write_json(path, {**json.loads(path.read_text()), **noted})
            rewrite.forget(store)
            self._noted(job, noted)


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
    """
    with _locked(job.checkpoint):
        settle(job)
        if isinstance(job.state, ObjectRoot):
            restore(job.state, job.checkpoint)
        else:
            checked_local(job.checkpoint)
        held = _check_identity(job)
        held.complete(job)
        _check_queries(job, held)
        if isinstance(job.state, ObjectRoot):
            held.generation = Generation(job.state, job.checkpoint, len(job.operators), version_of(job))
            held.generation.sweep(held.units, version_of(job))
        else:
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
    mine = json.loads(json.dumps(identity(job)))
    if path.exists():
        try:
            theirs = json.loads(path.read_text())
        except ValueError:
            raise StateError(
                f"{path} is damaged; restore the checkpoint from a copy or start with another one"
            ) from None
        if (format_ := theirs.get("format")) != FORMAT:
            raise InputError(
                f"checkpoint {job.checkpoint} has format {format_} and this version of StreamJoin reads format "
                f"{FORMAT}; {WAY_OUT}",
                field="run.checkpoint",
            )
        kinds = mine.pop(RELATION_COLUMNS, {})
        if said := retyped(theirs.get(RELATION_COLUMNS, {}), kinds):
            raise InputError(
                f"checkpoint {job.checkpoint}: {said}, and what is stored was compared as it was; give it that type "
                "again, or use another run.checkpoint to start anew",
                field="run.checkpoint",
            )
        if changed := [name for name in mine if theirs.get(name) != mine[name]]:
            was = f" ({theirs.get('operator')} and not {mine['operator']})" if "operator" in changed else ""
            raise InputError(
                f"checkpoint {job.checkpoint} belongs to another join, with other {' and '.join(changed)}{was}; use "
                "another run.checkpoint, or remove that one to start anew",
                field="run.checkpoint",
            )
        if theirs.get("keys", 1) != KEYS and any(map(_keys_changed, job.plan.queries)):
            raise InputError(
                f"checkpoint {job.checkpoint} is from an earlier version of StreamJoin, which had other keys for the "
                "decimals or fractions in this query's condition; use another run.checkpoint to start anew",
                field="run.checkpoint",
            )
        if kinds and RELATION_COLUMNS not in theirs:  # it is from before they were recorded
            theirs[RELATION_COLUMNS] = kinds
            write_json(path, theirs)
        units = _recorded_units(theirs.get("units", _units(job.operators)))
        queries = _recorded_in(job.checkpoint) if "query" not in theirs else _recorded_before(job, theirs)
        return Held(str(theirs["id"]), units, queries, theirs.get("resizes", 0), theirs.get("requeries", 0))
    if job.offsets.exists() or (isinstance(job.state, Path) and job.state.exists()):
        raise StateError(f"{path} is missing, so nobody can tell which join this checkpoint belongs to")
    held = Held(uuid.uuid4().hex, _units(job.operators), _recorded_of(job))
    own = {name: value for name, value in asdict(held).items() if name != "generation"}
    order = None if job.order is None else job.order.to_json()
    write_json(path, {**mine, "keys": KEYS, "slots": job.slots, "order": order, **own})
    return held


def _units(operators: Sequence[Operator]) -> tuple[int, ...]:
    return tuple(len(operator.units) for operator in operators)


def _recorded_units(found: int | Sequence[int]) -> tuple[int, ...]:
    """By stage; a checkpoint from before there were stages has the only one's number."""
    return (found,) if isinstance(found, int) else tuple(found)


def _keys_changed(plan: Query) -> bool:
    """Whether a query's keys are others than before `KEYS` was 2."""
    for found in plan.predicate.ranges:
        kind = found.keys[0].type
        fraction = any(bound is not None and bound.denominator != 1 for bound in (found.low, found.high))
        if pa.types.is_decimal(kind) or (fraction and not pa.types.is_floating(kind)):
            return True
    return any(isinstance(key_space(found.keys[0].type), WideSpace) for found in plan.predicate.equalities)


def _check_queries(job: Job, held: Held) -> None:
    """A job was bound to the queries of its checkpoint before it was held."""
    if not held.requeries_for(job):
        return
    if not isinstance(job.plan, SharedPlan):
        raise _another_query(job)
    if job.earlier is None or held.queries.called(job.earlier.names_of_queries[0]).queries != queries_of(job.earlier):
        raise InputError(
            f"the queries of checkpoint {job.checkpoint} have changed since the join file was read; start again",
            field="run.checkpoint",
        )


def _another_query(job: Job) -> InputError:
    return InputError(
        f"checkpoint {job.checkpoint} belongs to another join, with other query; use another run.checkpoint, or "
        "remove that one to start anew",
        field="run.checkpoint",
    )


def _recorded_before(job: Job, theirs: Mapping[str, Any]) -> Recorded:
    """Of a checkpoint from before queries could be started and stopped: its only one has to be the job's."""
    mine = _recorded_of(job)
    (only, *more) = mine.queries
    if more or only.name or (theirs["query"], theirs.get("keyed results")) != (only.text, only.keyed):
        raise _another_query(job)
    return mine


def _recorded_in(checkpoint: Path) -> Recorded:
    if (found := recorded(checkpoint)) is None:
        raise StateError(
            f"{checkpoint / IDENTITY_FILE} is damaged; restore the checkpoint from a copy or start with another one"
        )
    return found


def _recorded_of(job: Job) -> Recorded:
    """What the checkpoint says once its state is of the job's queries."""
    plan = job.plan
    routes_by = job.operator.capabilities.routes_by
    equalities = tuple(map(key_text, plan.predicate.equalities)) if routes_by is RoutesBy.EQUALITY else ()
    known = plan.lasting if isinstance(plan, SharedPlan) else None
    return Recorded(job.operator.name, known or Lasting(plan.names, equalities), queries_of(plan))


def _kept(
    kept: tuple[bool, bool], before: Mapping[int, UnitState], after: Mapping[int, UnitState]
) -> tuple[bool, bool]:
    r, s = (was and _rows(before, side) == _rows(after, side) for side, was in enumerate(kept))
    return r, s


def _rows(states: Mapping[int, UnitState], side: int) -> int:
    return sum(info.rows for state in states.values() for info in state.tuples(side))
