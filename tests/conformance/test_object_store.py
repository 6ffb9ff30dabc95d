"""States as objects, without Spark: killed at every place, caches deleted, other slots, and the pairs stay the same."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from streamjoin import failpoints
from streamjoin.engine.loop import Brought, Loop
from streamjoin.engine.operator import Operator
from streamjoin.errors import RunError
from streamjoin.operators.splitjoin import SplitJoin
from streamjoin.plan.stages import Plan
from streamjoin.plan.window import R
from streamjoin.query import plan_query
from streamjoin.state import rewrite
from streamjoin.state.generation import Generation
from streamjoin.state.objectstore import ObjectStates
from streamjoin.state.restored import restore
from streamjoin.state.root import ObjectRoot
from streamjoin.state.store import KEPT_VERSIONS
from tests.failing import failing_at
from tests.servers.objects import folder_root

from .check import OPERATORS, expected, pairs_of, plan
from .elastic import ROUTED, Scripted, scripted
from .histories import History, history, make_rows
from .local import Batch
from .ring_nodes import Scripted as ScriptedRing
from .ring_nodes import random_script
from .test_ring import MIXED, STREAMS, cut, nested_loop, rows_of, text_of

BATCHES = 14
Pieces = Sequence[Sequence[pa.RecordBatch]]
"""What each stream brings in one batch."""
PLACES = (
    "unit.before_probe:3", "unit.mid_results:2", "unit.before_segments:2", "unit.after_segments:3",
    "unit.before_manifest:2", "unit.after_manifest:2", "state.before_collect:3",
)  # fmt: skip


@dataclass
class Far:
    """A job whose states are objects; a driver's start is `begin`, and its checkpoint is what `commits` says.

    Attributes:
        machines: whose caches there are; a batch runs on the last one.
    """

    plan: Plan
    operator: Operator
    folder: Path
    slots: int = 2
    machines: int = 1
    version: int = 0
    pairs: list[tuple[int, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.loop = Loop(self.plan, self.operators, self.states, self.slots)
        self.begin()

    @property
    def operators(self) -> tuple[Operator, ...]:
        """By stage."""
        return (self.operator,)

    @property
    def root(self) -> ObjectRoot:
        return folder_root(self.folder / "store", self.folder / f"cache-{self.machines}")

    def begin(self) -> None:
        """A start: what is known of the run before is in the store."""
        checkpoint = self.folder / f"checkpoint-{self.machines}"
        checkpoint.mkdir(exist_ok=True)
        restore(self.root, checkpoint)
        self.generation = Generation(self.root, checkpoint, len(self.operators), self.version)
        self.kept: dict[int, ObjectStates] = {}

    def move(self) -> None:
        """On to another machine, which has nothing."""
        self.machines += 1
        self.begin()

    def states(self, stage: int) -> ObjectStates:
        return self.kept.setdefault(stage, ObjectStates(self.generation.root, stage))

    def batch(self, pieces: Pieces, *, commit: bool = True) -> None:
        brought = Brought(pieces, 1_000_000 * self.version)
        self.loop.operators, self.loop.slots, self.loop.version = self.operators, self.slots, self.version
        self.generation.put_checked(self.version)
        found = [rows for _, rows in self.loop.batch(brought)]
        if not commit:
            return
        self.generation.check()
        self.pairs += self.ids(found)
        self.loop.commit(brought)
        self.version = self.loop.version

    def ids(self, found: list[pa.RecordBatch]) -> Sequence[tuple[int, ...]]:
        """Of the rows that each result is of."""
        return pairs_of(found)

    def resize(self, operator: Operator, before: int) -> None:
        after = rewrite.resized(self.states(0), self.version, before, operator)
        firsts = {0: self.version}
        store = ObjectStates(self.generation.begun(firsts))
        rewrite.put(store, self.version, operator.units, after)
        self.generation.become(firsts, self.version, store.root)
        self.operator, self.kept = operator, {}


def far(
    folder: Path, operator: str = "biclique 2+3", condition: str = "band", window: str = "20 us"
) -> tuple[Far, list[Batch], Counter[tuple[int, int]]]:
    given = history(3, r=140, s=120, time_shape="disordered", delay_us=20)
    made = plan(given, condition, window)
    return (
        Far(made, OPERATORS[operator], folder),
        given.cuts(BATCHES),
        Counter(expected(given, condition, made, BATCHES)),
    )


def crash(job: Far, place: str, batch: Pieces) -> bool:
    """Do a batch that does not count; whether it came to the place, and died there."""
    name, _, visit = place.partition(":")
    with failing_at(name, int(visit)):
        try:
            job.batch(batch, commit=False)
        except failpoints.FailpointError:
            return True
    return False


@pytest.mark.parametrize(
    ("operator", "condition"),
    [("biclique 2+3", "band"), ("splitjoin 4", "band"), ("handshake 3", "band"), ("biclique by hash 3+2", "equality")],
)
def test_a_job_that_dies_everywhere_and_moves_gives_the_same_pairs(
    operator: str, condition: str, tmp_path: Path
) -> None:
    job, batches, want = far(tmp_path, operator, condition)
    deaths = 0
    for number, batch in enumerate(batches):
        if number:
            deaths += crash(job, PLACES[number % len(PLACES)], batch)
            job.slots = 1 + number % 3
            (job.move if number % 2 else job.begin)()
            if number % 4 == 0:
                shutil.rmtree(job.root.cache, ignore_errors=True)
        job.batch(batch)
    for _ in range(job.operator.drain_batches):
        brought = Brought(((), ()), 1_000_000 * job.version, drains=True)
        job.loop.version = job.version
        job.pairs += pairs_of([rows for _, rows in job.loop.batch(brought)])
        job.loop.commit(brought)
        job.version = job.loop.version
    assert Counter(job.pairs) == want and want.total() > BATCHES
    assert deaths > BATCHES // 2


@pytest.mark.parametrize("routed", ROUTED)
def test_units_come_and_go_while_a_job_dies_everywhere_and_moves(routed: str, tmp_path: Path) -> None:
    given = history(3, r=140, s=120, time_shape="disordered", delay_us=20)
    made = plan(given, "equality", "20 us")
    operator = scripted(ROUTED[routed], 5, BATCHES)
    first = len(operator.units)
    job = Far(made, operator, tmp_path)
    seen: list[frozenset[int]] = []
    deaths = 0
    for number, batch in enumerate(given.cuts(BATCHES)):
        if number:
            deaths += crash(job, PLACES[number % len(PLACES)], batch)
            job.slots = 1 + number % 3
            (job.move if number % 2 else job.begin)()
            job.generation.sweep([first], job.version)
            job.generation.swept()
            if number % 4 == 0:
                shutil.rmtree(job.root.cache, ignore_errors=True)
        job.batch(batch)
        # Who knows nothing of operators finds the units that there are, on another machine as well.
        there = dict(ObjectStates(replace(job.generation.root, cache=tmp_path / "other")).staying(first, job.version))
        look = {unit.number for unit in operator.in_batch(there.__getitem__).units if not unit.begins_at(job.version)}
        assert there.keys() == look
        seen.append(frozenset(look))
    assert Counter(job.pairs) == Counter(expected(given, "equality", made, BATCHES))
    assert deaths > BATCHES // 2 and set().union(*seen) - seen[0] and any(a - b for a, b in pairwise(seen))


@dataclass
class FarRing(Far):
    """A job of an adaptive ring, whose rounds are stages."""

    @property
    def operators(self) -> tuple[Operator, ...]:
        return tuple(self.operator.at(stage.plan) for stage in self.plan.stages)

    def ids(self, found: list[pa.RecordBatch]) -> Sequence[tuple[int, ...]]:
        return [one for rows in found for one in zip(*(column.to_pylist() for column in rows.columns), strict=True)]


@pytest.mark.parametrize("later", [0, 1])
def test_nodes_of_a_ring_come_and_go_while_a_job_dies_everywhere_and_moves(later: int, tmp_path: Path) -> None:
    """The places are those of the first round and of the next one."""
    reaches, given = (20, 10, 30), [rows_of(place, 70) for place in range(3)]
    ring = ScriptedRing(2, script=random_script(random.Random(later), BATCHES))
    made = ring.planned(plan_query(text_of(3, MIXED, reaches), STREAMS))
    job, seen, deaths = FarRing(made, ring, tmp_path), [], 0
    for number, pieces in enumerate(cut(given, BATCHES)):
        if number:
            name, _, visit = PLACES[number % len(PLACES)].partition(":")
            nodes = len(seen[-1])
            deaths += crash(job, f"{name}:{int(visit) + nodes * later}", pieces)
            job.slots = 1 + number % 3
            (job.move if number % 2 else job.begin)()
            job.generation.sweep([2, 2], job.version)
            job.generation.swept()
            if number % 4 == 0:
                shutil.rmtree(job.root.cache, ignore_errors=True)
        job.batch(pieces)
        # Who knows nothing of operators finds the nodes that there are, in each round.
        root = replace(job.generation.root, cache=tmp_path / "other")
        there = [dict(ObjectStates(root, stage).staying(2, job.version)) for stage in range(2)]
        look = {one.number for one in ring.in_batch(there[0].__getitem__).at(made.stages[0].plan).units
                if not one.begins_at(job.version)}  # fmt: skip
        assert there[0].keys() == there[1].keys() == look
        seen.append(frozenset(look))
    wanted = nested_loop(given, MIXED, reaches)
    assert Counter(job.pairs) == wanted and wanted.total() > 40
    assert deaths > BATCHES // 2 and set().union(*seen) - seen[0] and any(a - b for a, b in pairwise(seen))


def test_what_units_that_left_had_is_removed(tmp_path: Path) -> None:
    rows = make_rows(np.random.default_rng(0), range(0, 240, 10), [1] * 24)
    given = History(rows, rows)
    job = Far(plan(given, "equality", "20 us"), Scripted(2, 1, script={2: [(R, 0, -1)]}), tmp_path, slots=1)
    there = []
    for number, batch in enumerate(given.cuts(24)):
        job.batch(batch)
        job.states(0).collected()
        there.append({path.parent.name for path in (tmp_path / "store" / "0").rglob("*.*")})
        if number == 12:
            job.move()
            job.generation.sweep([3], job.version)
            job.generation.swept()
    assert "1" in there[9] and all("1" not in names for names in there[-5:])
    assert len({*(tmp_path / "store" / "0" / "0").glob("*.json")}) <= KEPT_VERSIONS + 1


def test_a_driver_that_was_taken_over_from_stops_and_what_it_writes_counts_for_nobody(tmp_path: Path) -> None:
    job, batches, want = far(tmp_path)
    for batch in batches[:5]:
        job.batch(batch)
    old, old_states = job.generation, job.kept
    job.move()
    for batch in batches[5:8]:
        job.batch(batch)
    with pytest.raises(RunError, match=r"another driver has taken over the state at folder://.*; this one stops"):
        old.check()
    # It does not know yet, and joins another batch in place of the one that was done.
    late = Loop(job.plan, (job.operator,), lambda stage: old_states[stage], 2, version=5)
    list(late.batch(Brought(batches[9], 5_000_000)))
    old.put(6)
    for batch in batches[8:10]:
        job.batch(batch)
    job.move()
    for batch in batches[10:]:
        job.batch(batch)
    assert Counter(job.pairs) == want


@pytest.mark.parametrize("dies", [None, "generation.before_owner", "generation.after_owner"])
def test_other_units_take_over_in_one_step(dies: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    job, batches, want = far(tmp_path, "splitjoin 4")
    for batch in batches[:6]:
        job.batch(batch)
    monkeypatch.setattr(failpoints, "_points", {dies: ("raise", 1)} if dies else {})
    monkeypatch.setattr(failpoints, "_reached", {})
    changed = dies != "generation.before_owner"
    if dies:
        with pytest.raises(failpoints.FailpointError):
            job.resize(SplitJoin(6), 4)
        job.operator = SplitJoin(6) if changed else SplitJoin(4)
        job.move()
    else:
        job.resize(SplitJoin(6), 4)
    for batch in batches[6:]:
        job.batch(batch)
    assert Counter(job.pairs) == want
    assert [unit for unit in range(8) if job.states(0).find(unit, BATCHES)] == list(range(6 if changed else 4))


def test_what_nobody_needs_is_removed_and_nothing_else(tmp_path: Path) -> None:
    job, batches, _ = far(tmp_path, "biclique by hash 3+2", "equality")
    for batch in batches[:4]:
        job.batch(batch)
    job.begin()
    for batch in batches[3:5]:  # the last one is done again, so the old generation's is litter
        job.version = 3 if batch is batches[3] else job.version
        job.batch(batch)
    store = tmp_path / "store"
    litter = store / "0" / "1" / "9.g1-dead-0.arrow"
    litter.write_bytes(b"of a batch that was never done")
    other = store / "0" / "1" / "notes.txt"
    other.write_bytes(b"somebody's")
    later = store / "0" / "1" / "9.g77-live-0.arrow"
    later.write_bytes(b"of a generation after this one")
    job.begin()
    states = job.states(0)
    assert states.sweep(5, job.version, job.generation.number) >= 1
    assert not litter.exists() and other.exists() and later.exists()
    fresh = ObjectStates(folder_root(store, tmp_path / "cache-of-nobody", lines=job.generation.root.lines))
    for unit in range(5):
        for info in fresh.load(unit, job.version).named():
            assert fresh.open_segment(unit, info).num_rows == info.rows
    for batch in batches[5:]:
        job.batch(batch)
    states.collected()
    files = sorted(path.name for path in (store / "0" / "0").glob("*.json"))
    assert len(files) <= 12, files


def test_nothing_is_litter_where_the_newest_state_is_not_found(tmp_path: Path) -> None:
    job, batches, _ = far(tmp_path, "biclique by hash 3+2", "equality")
    for batch in batches[:13]:
        job.batch(batch)
    states, newest = job.states(0), job.version
    states.collected()
    before = {path for path in (tmp_path / "store").rglob("*") if path.is_file()}
    job.version = 1  # as an old copy of the checkpoint has it
    job.begin()
    job.generation.sweep([5], 1)
    job.generation.swept()
    assert before <= {path for path in (tmp_path / "store").rglob("*") if path.is_file()}
    assert all(states.find(unit, newest) for unit in range(5))
