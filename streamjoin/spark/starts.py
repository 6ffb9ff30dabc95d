"""The first state of queries that start in a job that goes on, made of what it stores; see `engine.rebuilding`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

import pyarrow as pa

from streamjoin.durable import have_folder
from streamjoin.engine.operator import Operator
from streamjoin.engine.rebuilding import Rebuilding, Taking, job_clocks
from streamjoin.engine.recovering import Giver
from streamjoin.engine.slot import states_before
from streamjoin.engine.state import UnitState
from streamjoin.engine.unit import UnitReport
from streamjoin.errors import UnsupportedError
from streamjoin.index.chain import Save
from streamjoin.plan.stages import Stage, parts_at
from streamjoin.spec.job import Job
from streamjoin.state.places import AnyStates, open_states
from streamjoin.state.root import Root
from streamjoin.state.show import time_text
from streamjoin.state.store import StateStore


@dataclass(slots=True)
class Starts:
    """The queries of a job that start now.

    Args:
        job: with the plan so far as `earlier`.
        place: where its state is.
        version: of that state; no batch is pending.
        operators: of the stages that there is state of.
    """

    job: Job
    place: Root
    version: int
    operators: Sequence[Operator]
    _known: dict[int, Mapping[int, UnitState]] = field(default_factory=dict)

    def write(self, root: Root, name: str, on_unit: Callable[[int, int], None] | None = None) -> None:
        """Write the state of their stages; nothing knows of it yet.

        Args:
            root: where it is to be.
            name: by which files of two such changes differ.
            on_unit: told how many units are done, of how many.
        Raises:
            UnsupportedError: what is stored is not all that one of them needs.
            StateError: a state cannot be read.
        """
        assert self.job.earlier is not None
        count = sum(len(operator.units) for operator in self.job.operators[len(self.job.earlier.stages) :])
        if not self.version or not count:
            return
        with _aside(self.job.checkpoint) as folder:
            rebuilding = self._rebuilding(folder)
            for taking in rebuilding.taken:
                self._check_reaches(rebuilding, taking)
            rebuilding.run(self._rows)
            written = (one for stage in rebuilding.stages for one in self._written(rebuilding, root, stage, name))
            for done, _ in enumerate(written, 1):
                if on_unit:
                    on_unit(done, count)

    def _rebuilding(self, folder: Path) -> Rebuilding:
        earlier = self.job.earlier
        assert earlier is not None
        clocks = job_clocks(earlier, lambda stage: self._states(stage)[0])
        states = cache(lambda stage: StateStore(folder, stage, sync=False))
        # Stages whose units become more or fewer with this start still have as many as their state is of.
        operators = (*self.operators, *self.job.operators[len(self.operators) :])
        return Rebuilding(self.job.plan, earlier, operators, clocks, states)

    def _check_reaches(self, rebuilding: Rebuilding, taking: Taking) -> None:
        """Tuples that a stream needs, whose companions may be slow, must not have expired where they are stored."""
        if taking.giver is None:
            return
        there_us = taking.giver.since_us(self._states(taking.giver.stage.number)[0])
        needed_us = rebuilding.since_us(taking)
        if there_us is not None and (needed_us is None or needed_us < there_us):
            stream = taking.giver.join.streams[taking.giver.side].name
            needed = "the first one" if needed_us is None else time_text(needed_us)
            (name, *_) = parts_at(self.job.plan, taking.stage.number)[0].names
            raise UnsupportedError(
                f"tuples of {stream} are stored from {time_text(there_us)} on, and this needs them from {needed} on, "
                "as the streams that it joins have come no further; start it once they have, or run it as a job of its "
                "own",
                field=f"queries.{name}.query",
            )

    def _states(self, stage: int) -> Mapping[int, UnitState]:
        if stage not in self._known:
            units = self.operators[stage].units
            look = states_before(open_states(self.place, stage), units, self.version)
            self._known[stage] = {unit.number: look(unit.number) for unit in units}
        return self._known[stage]

    def _rows(self, giver: Giver) -> Iterator[pa.RecordBatch]:
        store = open_states(self.place, giver.stage.number)
        return giver.rows(self._states(giver.stage.number), lambda unit: partial(store.open_segment, unit))

    def _written(self, rebuilding: Rebuilding, root: Root, stage: Stage, name: str) -> Iterator[None]:
        store: AnyStates = open_states(root, stage.number)
        if isinstance(store, StateStore):
            shutil.rmtree(store.directory(0).parent, ignore_errors=True)  # of a start that was killed
        writer = cache(lambda unit: store.writer(unit, f"{self.version}-s{name}"))

        def save(unit: int) -> Save:
            return writer(unit).save

        labels = {unit.number: unit.label for unit in self.job.operators[stage.number].units}
        for unit, state in rebuilding.states(stage, self.version, save):
            writer(unit).finish()
            if isinstance(store, StateStore):
                have_folder(store.directory(unit))
            store.commit(unit, state, UnitReport(unit, labels[unit]))
            yield
        store.settle()


@contextmanager
def _aside(checkpoint: Path) -> Iterator[Path]:
    """A folder for what is stored meanwhile; that of a start which was killed makes room for it."""
    folder = checkpoint / "starting"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
