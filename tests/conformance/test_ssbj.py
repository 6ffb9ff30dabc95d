"""SSBJ: what its cache joins and what it does not are the pairs, each once, while values come into it and go."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.errors import StateError
from streamjoin.index.segment import Segment
from streamjoin.index.view import CELL, column_of
from streamjoin.operators.meshjoin import waiting
from streamjoin.operators.ssbj import step
from streamjoin.operators.ssbj.cache import ENTRY_BYTES, Cache
from streamjoin.operators.ssbj.moving import Inequality, Moving, Rule, evict
from streamjoin.operators.ssbj.step import BalancedStep
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import Cascade
from streamjoin.query import plan_query

from .semistream import EQUAL, PartsJob, drained, in_duckdb, pairs, pieces_of, relation, run, stream, units_of
from .test_relations import KINDS, RELATION, STREAM, planned

PAPER = Rule(eviction_period=4, inequality=Inequality.PAPER)


def rows_of(keys: list[int]) -> pa.RecordBatch:
    """A stream of these keys, or a relation where it is read as one."""
    numbers = pa.array(range(len(keys)))
    return pa.RecordBatch.from_arrays([numbers, numbers, pa.array(keys), numbers], schema=STREAM)


def few(keys: list[int]) -> pa.RecordBatch:
    """A relation of these keys."""
    numbers = pa.array(range(len(keys)))
    return pa.RecordBatch.from_arrays(
        [numbers, pa.array(keys, pa.int64()), numbers, pa.array([f"n{key}" for key in keys])], schema=RELATION
    )


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each step: cached are all rows of a value or none, and no cached value waits when values are counted."""
    one, begins = BalancedStep._one, BalancedStep.begin_round

    def checking(self: BalancedStep, *, enters: bool = True) -> Any:
        yield from one(self, enters=enters)
        every = np.concatenate([column_of(rows, CELL) for rows in self.reader._files] or [np.zeros(0, np.int64)])
        cached = column_of(self.cache.rows, CELL) if self.cache.rows is not None else np.zeros(0, np.int64)
        assert np.array_equal(np.sort(every[self.cache.found(every)]), np.sort(cached))
        assert self.holding()["empty_values"] == self.cache.cells.size - np.unique(cached).size
        assert self.scan.memory_bytes is None or self.memory_bytes() * self._work.units <= self.scan.memory_bytes

    def beginning(self: BalancedStep) -> None:
        begins(self)
        if self.round % 3 == 1:
            assert not self.cache.found(self._waiting()).any()

    monkeypatch.setattr(step, "LOOKED_FOR", 3)
    monkeypatch.setattr(waiting, "FILE_BYTES_MAX", 200)
    monkeypatch.setattr(BalancedStep, "_one", checking)
    monkeypatch.setattr(BalancedStep, "begin_round", beginning)


def check_a_random_run(seed: int, folder: Path) -> Counter[str]:
    """Random data, sizes, knobs and crashes against a nested loop."""
    chosen = random.Random(seed)
    a, c = stream(seed, chosen.randrange(200, 500)), relation(seed + 1, chosen.randrange(1, 90))
    memory = chosen.choice([None, 6_000, 20_000])
    rule = Rule(chosen.choice([0.5, 1.0, 3.0]), chosen.randrange(1, 6), chosen.choice(list(Inequality)))
    partitions, steps = chosen.randrange(1 if memory is None else 3, 9), chosen.randrange(1, 9)
    operator = units_of("ssbj", chosen.choice([1, 2]), rule, partitions=partitions, steps=steps, memory_bytes=memory)
    job = PartsJob(planned(EQUAL), folder, operator)
    job.take({"c": c})
    sizes = [chosen.choice([0, 1, 4, 9, 25]) for _ in range(4)] + [7]
    assert run(job, a, sizes, repeated=chosen.random() < 0.5) == pairs(a, c)
    return job.totals()


@pytest.mark.slow
@pytest.mark.usefixtures("checked")
def test_random_runs_with_drifting_keys_join_exactly_within_their_memory(tmp_path: Path) -> None:
    totals = sum((check_a_random_run(seed, tmp_path / str(seed)) for seed in range(6)), Counter())
    assert totals["cache_hits"] > 100 and totals["values_cached"] > 20 and totals["values_evicted"] > 5


@pytest.mark.soak
@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize("seed", range(1_000, 1_300))
def test_many_random_runs(seed: int, tmp_path: Path) -> None:
    check_a_random_run(seed, tmp_path)


@pytest.mark.usefixtures("checked")
def test_a_crash_in_any_step_of_thirty_rounds_changes_nothing(tmp_path: Path) -> None:
    a, c = stream(5, 100 * 4), relation(6, 30)
    job = PartsJob(planned(EQUAL), tmp_path, units_of("ssbj", 1, Rule(), partitions=3, steps=1))
    job.take({"c": c})
    assert run(job, a, (4,), repeated=True) == pairs(a, c)
    assert job.loop.version > 3 * 30 and job.totals()["values_evicted"] > 0


@pytest.mark.parametrize("steps", [1, 3, None])
def test_steps_change_when_results_come_and_not_which(steps: int | None, tmp_path: Path) -> None:
    a, c = stream(7, 300), relation(8, 70)
    job = PartsJob(planned(EQUAL), tmp_path, units_of("ssbj", 2, partitions=5, steps=steps))
    job.take({"c": c})
    assert run(job, a, (10,)) == pairs(a, c)
    assert job.totals()["cache_hits"] > 30


@pytest.mark.parametrize("kind", ["left, a condition on each side", "anti"])
def test_rows_without_a_partner_are_given_by_the_cache_too(kind: str, tmp_path: Path) -> None:
    a, c = stream(7, 300), relation(8, 20)
    job = PartsJob(planned(KINDS[kind].replace("SELECT", "SELECT ONLINE", 1)), tmp_path,
                   units_of("ssbj", 2, PAPER, partitions=2))  # fmt: skip
    job.take({"c": c})
    wanted = in_duckdb(KINDS[kind].replace("LEFT SEMI", "SEMI").replace("LEFT ANTI", "ANTI"), a, c)
    assert run(job, a, (10,), repeated=True) == wanted and wanted
    assert job.totals()["cache_hits"] > 30


@pytest.mark.usefixtures("checked")
def test_each_row_is_joined_with_one_version_though_the_cache_had_the_one_before(tmp_path: Path) -> None:
    a, c, later = stream(9, 400, drift=False), relation(10, 60), relation(11, 30)
    job = PartsJob(planned(EQUAL), tmp_path, units_of("ssbj", 2, partitions=4, steps=1))
    job.take({"c": c})
    found: Counter[Any] = Counter()
    for pieces in pieces_of(a.slice(0, 200), (10,)):
        found += job.batch(pieces)
    assert job.totals()["cache_hits"] > 10
    job.take({"c": later})
    for pieces in pieces_of(a.slice(200), (10,)):
        job.batch(pieces, commit=False)
        found += job.batch(pieces)
    assert found + drained(job) == pairs(a.slice(0, 200), c) + pairs(a.slice(200), later)


def test_a_row_knows_the_version_that_it_was_joined_with_or_that_had_no_partner(tmp_path: Path) -> None:
    plan = planned("SELECT ONLINE a.id, c.id AS c_id, VERSION(c) AS v FROM a LEFT JOIN c ON a.k = c.k")
    a, c, later = stream(12, 200), relation(13, 20, keys=6), relation(14, 20, keys=6)
    job = PartsJob(plan, tmp_path, units_of("ssbj", 2, PAPER, partitions=3, steps=1))
    found: Counter[Any] = Counter()
    for rows, version in ((a.slice(0, 100), c), (a.slice(100), later)):
        job.take({"c": version})
        for pieces in pieces_of(rows, (10,)):
            found += job.batch(pieces)
    query = "SELECT a.id, c.id AS c_id, {} AS v FROM a LEFT JOIN c ON a.k = c.k"
    wanted = in_duckdb(query.format(1), a.slice(0, 100), c) + in_duckdb(query.format(2), a.slice(100), later)
    assert found + drained(job) == wanted
    assert job.totals()["cache_hits"] > 0


def test_where_all_that_is_asked_for_is_cached_nothing_waits_and_nothing_is_read(tmp_path: Path) -> None:
    a, c = rows_of([number % 4 for number in range(800)]), few([0, 1, 1, 2, 5, 6, 7])
    job = PartsJob(planned(EQUAL), tmp_path, units_of("ssbj", 1, Rule(), partitions=2, steps=2))
    job.take({"c": c})
    found: Counter[Any] = Counter()
    read = []
    for pieces in pieces_of(a, (80,)):
        found += job.batch(pieces)
        read.append(job.totals()["relation_bytes"])
    assert found == pairs(a, c)  # without the end of the input: the cache has given all
    assert job.loop.reports[0].stored_rows[0] == 0
    assert read[0] < read[1] and read[3] == read[-1]
    assert job.totals()["values_cached"] == 4  # key 3, of which there is no row, included


def test_the_hot_keys_of_now_are_cached_and_those_of_before_are_not(tmp_path: Path) -> None:
    a, c = rows_of([0] * 400 + [1] * 400), few([0, 0, 1, 1, 2])
    job = PartsJob(planned(EQUAL), tmp_path, units_of("ssbj", 1, Rule(), partitions=2))
    job.take({"c": c})
    hits = []
    for pieces in pieces_of(a, (20,)):
        job.batch(pieces)
        hits.append(job.totals()["cache_hits"])
    assert hits[2] == 0 and hits[5] == 3 * 20, hits  # cached from the third round on, and after its first step
    assert hits[20 + 6] > hits[20]  # the new key within six rounds
    job.batch([[a.slice(0, 1)]])
    assert job.totals()["values_evicted"] == 1 and job.totals()["values_cached"] == 2


def counted(rows: list[int], sizes: list[int]) -> Moving:
    """Values 0, 1, ... that have been counted."""
    moving = Moving()
    moving.begin(np.arange(len(rows)))
    moving.rows, moving.sizes = np.array(rows), np.array(sizes)
    return moving


@pytest.mark.parametrize(
    ("tuples", "rows", "tuple_bytes", "row_bytes", "moves"),
    [(3, 4, 10, 10, False), (3, 2, 10, 10, True), (3, 3, 10, 10, False), (6, 1, 20, 120, False), (7, 1, 20, 120, True)],
)
def test_a_value_moves_if_its_rows_take_less_than_its_tuples(
    tuples: int, rows: int, tuple_bytes: int, row_bytes: int, moves: bool
) -> None:
    moving = counted([rows], [rows * row_bytes])
    moving.mark(np.zeros(tuples, np.int64), tuple_bytes, PAPER, None)
    assert moving.marked.tolist() == [moves]


def test_an_entry_counts_by_bytes_and_not_as_in_the_paper() -> None:
    for inequality, moves in ((Inequality.BYTES, False), (Inequality.PAPER, True)):
        moving = counted([0], [0])
        moving.mark(np.zeros(1, np.int64), ENTRY_BYTES - 4, Rule(inequality=inequality), None)
        assert moving.marked.tolist() == [moves]


def test_of_more_than_there_is_room_for_what_saves_most_moves() -> None:
    moving = counted([1, 1, 1], [100, 100, 100])
    waiting = np.repeat([0, 1, 2], [8, 30, 20])
    moving.mark(waiting, 20.0, Rule(), 2 * (100 + ENTRY_BYTES))
    assert moving.marked.tolist() == [False, True, True]


def test_what_was_cached_just_now_is_not_evicted_for_being_young() -> None:
    cache = Cache.empty()
    cache.add(np.array([3, 5]), [], now=9)
    cache.count(np.array([3, 3, 5]))
    assert evict(cache, Rule(), 100.0, now=9) == 0
    assert evict(cache, Rule(), 100.0, now=10) == 0 and cache.hits.tolist() == [0, 0]
    assert evict(cache, Rule(), 100.0, now=20) == 2 and not cache.cells.size


def without_phase_out(self: BalancedStep) -> None:
    """The round after values are moved goes on to switch, while their tuples still wait."""
    moving = self.moving
    match self.round % 3:
        case 1:
            moving.move(self.cache, self.round)
            moving.begin(self._waiting())
        case 2:
            moving.mark(self._waiting(), self.tuple_bytes, self.rule, None)
        case _:
            counted_before = moving.cells, moving.rows, moving.sizes
            moving.move(self.cache, self.round)
            moving.cells, moving.rows, moving.sizes = counted_before
            moving.mark(self._waiting(), self.tuple_bytes, self.rule, None)
    self._segment = self.cache.segment


def look_without_phase_out(self: BalancedStep, segment: Any) -> None:
    if self.round % 3 == 1:
        self.moving.count(segment)
    else:
        self.moving.collect(segment, None)


def as_printed(self: Moving, segment: Segment, room: int | None) -> None:
    """Only the first rows of a value are collected."""
    rows = segment.rows
    if not self.collected and self.cells.size:
        self.collected.append(rows.filter(pa.array(np.isin(column_of(rows, CELL), self.cells[self.marked]))))


@pytest.mark.parametrize("mutation", ["no phase-out", "a part of a value's rows", "the cache outlives its version"])
def test_mutations_are_caught(mutation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if mutation == "no phase-out":
        monkeypatch.setattr(BalancedStep, "begin_round", without_phase_out)
        monkeypatch.setattr(BalancedStep, "look", look_without_phase_out)
        monkeypatch.setattr(BalancedStep, "reads_anyway", lambda self: True)
    elif mutation == "a part of a value's rows":
        monkeypatch.setattr(Moving, "collect", as_printed)
    else:
        monkeypatch.setattr(BalancedStep, "forget", lambda self: None)
    with pytest.raises(AssertionError):
        check_two_versions(tmp_path)


def check_two_versions(folder: Path) -> None:
    a, c, later = stream(7, 500), relation(8, 40), relation(9, 40)
    job = PartsJob(planned(EQUAL), folder, units_of("ssbj", 1, partitions=5, steps=1))
    found: Counter[Any] = Counter()
    for version, rows in ((c, a.slice(0, 300)), (later, a.slice(300))):
        job.take({"c": version})
        for pieces in pieces_of(rows, (10,)):
            found += job.batch(pieces)
    assert found + drained(job) == pairs(a.slice(0, 300), c) + pairs(a.slice(300), later)


def test_what_mutations_are_run_with_passes_without_them(tmp_path: Path) -> None:
    check_two_versions(tmp_path)


def test_what_enters_is_the_same_however_few_of_the_rows_outside_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, c, found = stream(3, 600), relation(4, 60), []
    for looked in (1, 10_000):
        monkeypatch.setattr(step, "LOOKED_FOR", looked)
        job = PartsJob(
            planned(EQUAL), tmp_path / str(looked), units_of("ssbj", 1, partitions=8, steps=4, memory_bytes=2_500)
        )
        job.take({"c": c})
        results, outside = [], []
        for pieces in pieces_of(a, (60,)):
            results.append(job.batch(pieces))
            outside.append(job.loop.reports[0].holding["outside_rows"])
        found.append((results, outside, job.values(), job.totals()))
        assert max(outside) > 20 and job.totals()["cache_hits"] > 20
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["ssbj", "meshjoin"])
def test_what_enters_is_the_same_however_many_files_hold_what_waits_outside(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, c, found = stream(3, 600), relation(4, 60), []
    for size in (1, 130, 1 << 20):
        monkeypatch.setattr(waiting, "FILE_BYTES_MAX", size)
        job = PartsJob(
            planned(EQUAL), tmp_path / str(size), units_of(name, 1, partitions=8, steps=4, memory_bytes=2_500)
        )
        job.take({"c": c})
        results, outside, counted = [], [], []
        for pieces in pieces_of(a, (60,)):
            results.append(sorted(job.batch(pieces)))
            outside.append(job.loop.reports[0].holding["outside_rows"])
            counted.append(job.loop.reports[0].holding["memory_bytes_max"])
        assert max(outside) > 20 and max(counted) <= 2_500
        # Each file is searched by itself.
        totals = {name: count for name, count in job.totals().items() if name != "search_steps"}
        found.append((results, outside, counted, totals))
    assert found[0] == found[1] == found[2]


def planned_with_notes() -> Cascade:
    """Tuples of the stream that are as large as their notes."""
    inputs = {
        "a": StreamSchema("a", STREAM.append(pa.field("note", pa.string())), "ts", "us", 0),
        "c": StreamSchema.of_relation("c", RELATION),
    }
    plan = plan_query("SELECT ONLINE a.id, a.note, c.id FROM a JOIN c ON a.k = c.k", inputs)
    assert isinstance(plan, Cascade)
    return plan


def test_a_tuple_without_room_beside_the_cache_empties_it(tmp_path: Path) -> None:
    """Else it would wait until what is cached is looked at again, and all that comes behind it."""
    plan = planned_with_notes()
    a, c = rows_of([number % 9 for number in range(2_000)] + [11] * 3 + [3] * 50), few([*range(9), 11, 11])
    notes = pa.array(["" if number < 2_000 or number > 2_002 else "x" * 3_050 for number in range(a.num_rows)])
    a = a.append_column(pa.field("note", pa.string()), notes)
    rule = Rule(eviction_period=1_000, inequality=Inequality.PAPER)
    job = PartsJob(plan, tmp_path, units_of("ssbj", 1, rule, partitions=8, steps=8, memory_bytes=3_900))
    job.take({"c": c})
    found: Counter[Any] = Counter()
    cached = []
    for pieces in pieces_of(a, (50,)):
        found += Counter((one[0], one[-1]) for one in job.batch(pieces))
        cached.append(job.loop.reports[0].holding["cached_values"])
        assert job.loop.reports[0].holding["memory_bytes_max"] <= 3_900
        assert job.loop.reports[0].holding["outside_rows"] < 53 or not cached[-1]
    found += Counter((one[0], one[-1]) for one in drained(job))
    rows = Counter((one, other) for one, key in enumerate(a.column("k").to_pylist())
                   for other, there in enumerate(c.column("k").to_pylist()) if key == there)  # fmt: skip
    assert found == rows
    assert max(cached) >= 9 and job.totals()["values_evicted"] >= 9


@pytest.mark.parametrize("partitions", [None, 400])
def test_a_tuple_without_room_says_the_memory_that_has_it(partitions: int | None, tmp_path: Path) -> None:
    plan = planned_with_notes()
    a, c = rows_of([1]), few([*range(60_000)])
    a = a.append_column(pa.field("note", pa.string()), pa.array(["x" * (20 << 20)]))

    def joined(memory_mib: int) -> int:
        operator = units_of("ssbj", 1, partitions=partitions, memory_bytes=memory_mib << 20)
        job = PartsJob(plan, tmp_path / str(memory_mib), operator)
        job.take({"c": c})
        return (job.batch([[a]]) + drained(job)).total()

    with pytest.raises(StateError, match=r"a memory of 1 MiB has no room for a tuple") as refused:
        joined(1)
    least = int(str(refused.value).rpartition(" ")[2])
    assert joined(least) == 1
    with pytest.raises(StateError):
        joined(least - 3)
