"""A new driver takes over while units come and go: those that the old one added or let go meanwhile are nobody's."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin.engine.loop import Brought, Loop
from streamjoin.errors import RunError
from streamjoin.operators.adapting.step import PLAN
from streamjoin.operators.biclique.scaling import UnitPlan
from streamjoin.plan.window import R, S
from streamjoin.spark import driver
from streamjoin.spec.joinfile import JoinFile, parse
from streamjoin.spec.prepare import bind
from streamjoin.state.generation import newest_head
from streamjoin.state.objectstore import ObjectStates
from streamjoin.state.store import StateStore
from tests.servers.objects import FolderRoot, folder_root

from .alone import run_alone
from .check import expected, plan
from .elastic import ROUTED, Scripted
from .histories import history
from .local import LocalRun
from .test_moved_results import TEXT, kept, wanted
from .test_object_store import BATCHES, Far

SCRIPT = {2: [(R, 0, 1), (S, 0, 1)], 4: [(R, 0, -1)], 5: [(S, 0, 2)], 7: [(R, 0, 2)], 8: [(S, 0, -2)]}
OTHER = {**SCRIPT, 5: [(R, 0, 3), (S, 0, -1)], 6: [(R, 0, -2)]}
"""What a driver decides that joins other batches than those that were done."""


@pytest.mark.parametrize("routed", ["hash", "random"])
def test_what_a_driver_decides_that_does_not_know_of_the_next_one_counts_for_nobody(
    routed: str, tmp_path: Path
) -> None:
    given = history(3, r=140, s=120, time_shape="disordered", delay_us=20)
    made, batches = plan(given, "equality", "20 us"), given.cuts(BATCHES)
    job = Far(made, Scripted(*ROUTED[routed], script=SCRIPT), tmp_path)
    first = len(job.operator.units)
    for batch in batches[:5]:
        job.batch(batch)
    old, states = job.generation, job.kept
    job.move()
    for batch in batches[5:7]:
        job.batch(batch)
    with pytest.raises(RunError, match=r"another driver has taken over the state at folder://.*; this one stops"):
        old.check()
    late = Loop(made, (Scripted(*ROUTED[routed], script=OTHER),), lambda stage: states[stage], 2, version=5)
    for number, batch in enumerate((batches[9], batches[10])):
        list(late.batch(brought := Brought(batch, 1_000_000 * (5 + number))))
        late.commit(brought)
    assert states[0].load(0, 7).values[PLAN] != job.states(0).load(0, 7).values[PLAN]
    old.put(7)
    job.move()  # to where nothing is known but what is in the store
    for batch in batches[7:10]:
        job.batch(batch)
    job.move()
    job.generation.sweep([first], job.version)
    job.generation.swept()
    for batch in batches[10:]:
        job.batch(batch)
    assert Counter(job.pairs) == Counter(expected(given, "equality", made, BATCHES))
    alone = LocalRun(made, job.operator, tmp_path / "alone")
    list(alone.run(batches))
    assert units_of(job) == [unit.number for unit in alone.now.units]
    there = dict(ObjectStates(job.generation.root).staying(first, job.version))
    assert there[0].values[PLAN] == StateStore(tmp_path / "alone").load(0, BATCHES).values[PLAN]


def units_of(job: Far) -> list[int]:
    return [unit.number for unit in job.operator.in_batch(lambda unit: job.states(0).load(unit, job.version)).units]


# Through a join file, with the real drivers.

ROWS = [30] * 2 + [150] * 3 + [15] * 8
KNOBS = "adaptive: true, capacity: 0.012, check_every: 0s, confirmations: 1, max_units: 6"


def come(folder: Path) -> None:
    """A file of each stream for each batch, of eight seconds and of more rows or fewer."""
    for side, stream in enumerate("rs"):
        (folder / stream).mkdir()
        for number, rows in enumerate(ROWS):
            dice = np.random.default_rng((side, number))
            columns = {
                "id": np.arange(rows) + 1000 * number,
                "k": dice.integers(0, 60, rows),
                "ts": pa.array(((8 * number + dice.uniform(0, 8, rows)) * 1e6).astype(np.int64), pa.timestamp("us")),
            }
            pq.write_table(pa.table(columns), folder / stream / f"{number:03d}.parquet")


def file_on(folder: Path, host: str, files_per_batch: int = 1, store: str = "kept.db") -> JoinFile:
    results = f"store: sqlite, path: {store}, job: pairs, snapshot: {{batches: 1}}"
    text = TEXT.format(results=results).replace("checkpoint: checkpoint", f"checkpoint: {host}")
    text = text.replace("r_units: 2, s_units: 2", f"r_units: 2, s_units: 2, {KNOBS}")
    return parse(text.replace("files_per_batch: 1", f"files_per_batch: {files_per_batch}"), base=folder)


def changes_in(state: UnitPlan) -> dict[str, int]:
    """In which batch units were first added, and let go."""
    found: dict[str, int] = {}
    for one in reversed(state.decisions):
        for what in ("added", "drained", "left"):
            if getattr(one, what):
                found[what] = one.batch - 1
    return found


def plan_at(place: FolderRoot) -> UnitPlan:
    """The units of the next batch, as the owner of a place knows them."""
    found = newest_head(place)
    assert found is not None
    root, head = found
    known: Any = ObjectStates(root).load(0, head.version).values[PLAN]
    return UnitPlan.from_json(known)


@pytest.mark.slow
@pytest.mark.parametrize("change", ["added", "drained", "left"])
@pytest.mark.parametrize("moment", ["generation.after_put", "batch.before_commit"])
def test_a_batch_that_changes_units_is_the_next_drivers_where_that_takes_over_in_it(
    moment: str, change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    come(tmp_path)
    usual = folder_root(tmp_path / "usual")
    run_alone(bind(file_on(tmp_path, "zero", store="usual.db")), None, usual)
    batch = changes_in(plan_at(usual))[change]
    place, reached, written = folder_root(tmp_path / "store"), 0, set[str]()

    def look() -> None:
        """Which generations have done the batch."""
        found = (tmp_path / "store" / "0" / "0").glob(f"{batch + 1}.*.json")
        written.update(path.name.partition("-")[0] for path in found)

    def meanwhile(name: str) -> None:
        nonlocal reached
        if name == moment:
            reached += 1
            if reached == batch + 1:
                look()
                run_alone(bind(file_on(tmp_path, "two", files_per_batch=2)), lambda number: number < batch + 2, place)

    first = bind(file_on(tmp_path, "one"))
    monkeypatch.setattr(driver, "failpoint", meanwhile)
    with pytest.raises(RunError, match="another driver has taken over the state"):
        run_alone(first, None, place)
    look()
    assert written == {f"{batch + 1}.g1", f"{batch + 1}.g2"}, "both did the batch"
    run_alone(bind(file_on(tmp_path, "two")), None, place)
    assert Counter(kept(file_on(tmp_path, "two"))) == wanted(tmp_path)
    assert {"added", "drained"} <= changes_in(plan_at(place)).keys()
