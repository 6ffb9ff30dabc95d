"""Relations that are read again and again, by `meshjoin` and `ssbj`: each pair is there once, whatever falls where."""

from __future__ import annotations

import random
from collections import Counter, deque
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.engine.loop import Brought
from streamjoin.errors import InputError, StateError
from streamjoin.intake.shedding import kept
from streamjoin.operators import registry
from streamjoin.operators.lookup import Lookup
from streamjoin.operators.meshjoin import MeshJoin
from streamjoin.operators.meshjoin.step import MeshStep
from streamjoin.operators.ssbj.cache import ENTRY_BYTES
from streamjoin.operators.ssbj.step import BalancedStep
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import Cascade
from streamjoin.query import plan_query
from streamjoin.relations.versions import Versions
from streamjoin.spec.joinfile import load
from streamjoin.spec.prepare import bind
from streamjoin.spec.relations import read_relations, refreshed

from .loops import cut
from .semistream import EQUAL, NAMES, PartsJob, drained, in_duckdb, pairs, pieces_of, relation, run, stream, units_of
from .test_relations import DATA, INPUTS, KINDS, QUERIES, RELATION, STREAM, nested_loop, planned

A, C = stream(1, 200), relation(2, 83)
SIZES = (0, 5, 0, 0, 30, 1)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("steps", [1, 2, None])
@pytest.mark.parametrize("partitions", [1, 7, 83])
def test_each_pair_is_there_once_however_parts_and_steps_fall(
    name: str, partitions: int, steps: int | None, tmp_path: Path
) -> None:
    job = PartsJob(planned(EQUAL), tmp_path, units_of(name, 2, partitions=partitions, steps=steps))
    job.take({"c": C})
    assert run(job, A, SIZES) == pairs(A, C)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rows", [0, 1])
def test_a_relation_of_no_row_or_one(name: str, rows: int, tmp_path: Path) -> None:
    job = PartsJob(planned(EQUAL), tmp_path, units_of(name, 2, partitions=4, steps=1))
    small = C.filter(C.column("k").is_valid()).slice(0, rows)
    job.take({"c": small})
    assert run(job, A, SIZES) == pairs(A, small)


@pytest.mark.parametrize("name", NAMES)
def test_a_crash_in_any_step_of_a_round_changes_nothing(name: str, tmp_path: Path) -> None:
    job = PartsJob(planned(EQUAL), tmp_path, units_of(name, 2, partitions=30, steps=1))
    job.take({"c": C})
    assert run(job, A, (4, 0, 9), repeated=True) == pairs(A, C)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("query", ["equality and band", "NULL is NULL", "text", "two relations"])
def test_conditions_beside_the_equality_and_equalities_of_any_type(name: str, query: str, tmp_path: Path) -> None:
    text, condition, within_us = QUERIES[query]
    plan = planned(text)
    job = PartsJob(plan, tmp_path, units_of(name, 2, partitions=3, steps=1))
    job.take(DATA)
    found = sum((job.batch(pieces) for pieces in cut([DATA["a"]])), drained(job))
    for _ in plan.stages:
        found += drained(job)
    assert found == nested_loop(plan, condition, within_us)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["left, then WHERE", "semi", "anti"])
def test_rows_without_a_partner_leave_when_they_have_met_all(name: str, kind: str, tmp_path: Path) -> None:
    text = KINDS[kind].replace("SELECT", "SELECT ONLINE", 1)
    job = PartsJob(planned(text), tmp_path, units_of(name, 2, partitions=5, steps=2))
    job.take({"c": C})
    wanted = in_duckdb(KINDS[kind].replace("LEFT SEMI", "SEMI").replace("LEFT ANTI", "ANTI"), A, C)
    assert run(job, A, SIZES, repeated=True) == wanted and wanted


@pytest.mark.parametrize("name", NAMES)
def test_a_silent_stream_gets_all_results_in_the_next_batch(name: str, tmp_path: Path) -> None:
    job = PartsJob(planned(EQUAL), tmp_path, units_of(name, 1, partitions=50, steps=1))
    job.take({"c": C})
    found = job.batch([[A.slice(0, 100)]])
    assert found != pairs(A.slice(0, 100), C)
    assert found + job.batch([[]]) == pairs(A.slice(0, 100), C)


@pytest.mark.parametrize("name", NAMES)
def test_the_mark_waits_for_the_oldest_tuple_that_waits(name: str, tmp_path: Path) -> None:
    job = PartsJob(planned(EQUAL), tmp_path, units_of(name, 1, partitions=5, steps=1))
    job.take({"c": C})
    marks: list[int] = []
    for pieces in pieces_of(A, (20,)):
        job.batch(pieces)
        marks.append(job.loop.reports[0].output_mark_us or 0)
    # Chunks of 20 rows enter at 0, 20, 40 ... us, and each waits for five batches.
    waiting = [max(20 * (batch - 3), 0) for batch in range(len(marks))]
    assert all(oldest <= mark < oldest + 20 for oldest, mark in zip(waiting, marks, strict=True)), marks


@pytest.mark.parametrize("name", NAMES)
def test_memory_bounds_what_enters_and_the_rest_waits_outside(name: str, tmp_path: Path) -> None:
    operator = units_of(name, 1, partitions=6, steps=6, memory_bytes=4_000)
    job = PartsJob(planned(EQUAL), tmp_path, operator)
    job.take({"c": relation(2, 60)})
    found = job.batch([[A]])
    assert len(job.loop.reports) == 1 and job.loop.reports[0].stored_rows[0] > 20
    assert found + drained(job) == pairs(A, relation(2, 60))
    assert 2_000 < job.values()[0]["memory_bytes_max"] <= 4_000


@pytest.mark.parametrize("name", NAMES)
def test_too_little_memory_is_refused_with_the_least(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = PartsJob(planned(EQUAL), tmp_path, units_of(name, 1, partitions=1, memory_bytes=1_000))
    with pytest.raises(InputError, match="give at least 1 MiB, or more partitions"):
        job.take({"c": C})
    job = PartsJob(planned(EQUAL), tmp_path / "b", units_of(name, 1, partitions=83, memory_bytes=20))
    monkeypatch.setattr(MeshJoin, "check_relation", lambda self, parts: None)
    job.take({"c": C.slice(0, 3)})
    with pytest.raises(StateError, match=r"no room for a tuple of .* bytes; give operator.memory at least"):
        job.batch([[A]])


@pytest.mark.parametrize("name", NAMES)
def test_a_new_version_is_joined_by_what_comes_with_it_and_not_by_what_waits(name: str, tmp_path: Path) -> None:
    job = PartsJob(planned(EQUAL), tmp_path, units_of(name, 2, partitions=7, steps=1))
    later, found = relation(9, 40), pairs(A.slice(0, 0), C)
    job.take({"c": C})
    for pieces in pieces_of(A.slice(0, 100), (10,)):
        found += job.batch(pieces)
    job.take({"c": later})
    for pieces in pieces_of(A.slice(100), (10,)):
        found += job.batch(pieces)
    assert found + drained(job) == pairs(A.slice(0, 100), C) + pairs(A.slice(100), later)


@pytest.mark.parametrize("name", NAMES)
def test_parts_steps_and_memory_may_change_from_start_to_start(name: str, tmp_path: Path) -> None:
    job = PartsJob(planned(EQUAL), tmp_path, units_of(name, 2, partitions=7, steps=1))
    job.take({"c": C})
    found: Counter[Any] = Counter()
    scans: list[dict[str, int]] = [
        {"partitions": 7, "steps": 1},
        {"partitions": 3, "steps": 2},
        {"memory_bytes": 9_000},
    ]
    for number, pieces in enumerate(pieces_of(A, (10,))):
        operator = units_of(name, 2, **scans[number // 5 % 3])
        assert operator.lasting == job.loop.operators[0].lasting
        job.loop.operators = (operator,)
        found += job.batch(pieces)
    assert found + drained(job) == pairs(A, C)


@pytest.mark.parametrize("mutation", ["a version in mid-cycle", "removed by value", "removed a step early"])
def test_mutations_are_caught(mutation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = MeshStep._one

    def by_value(self: MeshStep, *, enters: bool = True):  # type: ignore[no-untyped-def]
        before = list(self.queue)
        yield from one(self, enters=enters)
        gone = {int(cell) for chunk in before if chunk not in self.queue for cell in chunk.cells}
        self.queue = deque(chunk for chunk in self.queue if not gone & set(map(int, chunk.cells)))

    if mutation == "a version in mid-cycle":
        monkeypatch.setattr(MeshStep, "_done_with", lambda self, version: iter(()))
    elif mutation == "removed by value":
        monkeypatch.setattr(MeshStep, "_one", by_value)
    else:
        entered = MeshStep.append

        def early(self: MeshStep, rows):  # type: ignore[no-untyped-def]
            entered(self, rows)
            if self.queue:
                self.queue[-1].entered = self.step - 1

        monkeypatch.setattr(MeshStep, "append", early)
    with pytest.raises(AssertionError):
        test_a_new_version_is_joined_by_what_comes_with_it_and_not_by_what_waits("meshjoin", tmp_path)


@pytest.mark.parametrize(
    ("query", "knobs", "message"),
    [
        (QUERIES["band"][0], {}, "needs an equality between a and c.*lookup joins by any condition"),
        ("SELECT ONLINE a.id FROM a, b WHERE a.k = b.k WITHIN 1 SECONDS", {}, "this query reads none"),
        (EQUAL, {"memory": 1, "rate": 5}, "give a memory or a rate"),
        (EQUAL, {"partitions": 0}, "0 is not a whole number from 1"),
        (EQUAL, {"buckets": 3}, "no such knob; its knobs are units, memory, rate, partitions, steps,"),
    ],
)
@pytest.mark.parametrize("name", NAMES)
def test_what_it_cannot_run_is_refused(name: str, query: str, knobs: dict[str, int], message: str) -> None:
    plan = plan_query(query, INPUTS)
    with pytest.raises(InputError, match=message):
        registry.build_all(name, knobs, plan, 2)
    with pytest.raises(InputError, match="finds partners by their equal values only"):
        registry.build_all(name, {}, plan_query(EQUAL, INPUTS, index="tree"), 2)


def test_other_stages_are_joined_by_the_usual_operator() -> None:
    first, last = registry.build_all("meshjoin", {"units": 3}, planned(QUERIES["after two streams"][0]), 2)
    assert (first.name, last.name, len(last.units)) == ("biclique", "meshjoin", 3)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("query", ["between two streams", "after two streams"])
def test_streams_beside_it_wait_for_what_waits(name: str, query: str, tmp_path: Path) -> None:
    text, condition, within_us = QUERIES[query]
    plan = planned(text)
    job = PartsJob(plan, tmp_path, units_of(name, 2, partitions=6, steps=1))
    of_streams = registry.build_all("biclique", {}, plan, 2)
    parts = job.loop.operators[0]
    job.loop.operators = tuple(
        parts if stage.table is not None else one for stage, one in zip(plan.stages, of_streams, strict=True)
    )
    job.take(DATA)
    found: Counter[Any] = Counter()
    for pieces in cut([DATA[one.name] for one in plan.streams], 12):
        job.batch(pieces, commit=False)
        found += job.batch(pieces)
    for _ in plan.stages:
        found += drained(job)
    assert found == nested_loop(plan, condition, within_us)


@pytest.mark.parametrize("name", NAMES)
def test_a_window_of_time_is_given_when_all_of_it_has_met_the_relation(name: str, tmp_path: Path) -> None:
    text = (
        "SELECT ONLINE WINDOW_START() AS since, COUNT(*) AS n FROM a JOIN c ON a.k = c.k "
        "GROUP BY TUMBLE(20 MICROSECONDS)"
    )
    plan = planned(text)
    job = PartsJob(plan, tmp_path, units_of(name, 2, partitions=6, steps=1))
    job.loop.operators = (job.loop.operators[0], registry.build_all(name, {}, plan, 2)[1])
    job.take({"c": C})
    found: Counter[Any] = Counter()
    for pieces in pieces_of(A, (10,)):
        found += job.batch(pieces)
    for _ in range(2):  # for what waits for the relation, and for windows
        found += drained(job)
    wanted = Counter(20 * (row[0] // 20) for row in pairs(A, C).elements())
    assert Counter({since.microsecond: n for since, n in found}) == wanted and len(found) == len(wanted)


def test_a_version_that_is_too_large_for_the_memory_never_appears(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "0.csv").write_text("ts,k\n2026-01-01T12:00:00Z,1\n")
    (tmp_path / "c.csv").write_text("k,name\n1,one\n")
    knobs = "operator: {name: ssbj, memory: 1, partitions: 1, units: 1}\n"
    text = (
        f"{knobs}streams: {{a: {{source: csv, path: {tmp_path}/a, time: ts}}}}\n"
        f"relations: {{c: {{source: csv, path: {tmp_path}/c.csv}}}}\n"
        "query: SELECT ONLINE a.k, c.name FROM a JOIN c ON a.k = c.k\n"
        f"results: {{jsonl: {tmp_path}/out.jsonl}}\nrun: {{checkpoint: {tmp_path}/checkpoint}}\n"
    )
    (tmp_path / "join.yaml").write_text(text)
    job = bind(load(tmp_path / "join.yaml")).job()
    assert read_relations(job)["c"].number == 1
    (tmp_path / "c.csv").write_text("k,name\n" + f"2,{'x' * 100}\n" * 6_000)
    with pytest.raises(InputError, match=r"memory of 1 MiB is not enough.*give at least 2 MiB, or more partitions"):
        refreshed(job, job.relations["c"])
    assert Versions(job.tables, "c").numbers() == [1]
    with pytest.raises(InputError, match="give at least 2 MiB"):
        read_relations(job)


@pytest.mark.parametrize("name", [*NAMES, "lookup"])
def test_of_what_is_shed_nothing_is_joined_and_of_the_rest_everything(name: str, tmp_path: Path) -> None:
    operator = Lookup(2) if name == "lookup" else units_of(name, 2, partitions=3, steps=1)
    job = PartsJob(planned(EQUAL), tmp_path, operator)
    job.parts = None if name == "lookup" else 2
    job.take({"c": relation(2, 60)})
    found: Counter[Any] = Counter()
    for number, first in enumerate(range(0, A.num_rows, 50)):
        brought = Brought(
            [[A.slice(first, 50)]], 1_000_000 * number, versions=job.versions, shed=(0.0 if number % 2 else 0.6,)
        )
        found += Counter(
            row for _, part in job.loop.batch(brought) for row in zip(*part.to_pydict().values(), strict=True)
        )
        job.loop.commit(brought)
    found += drained(job)
    places = np.arange(A.num_rows)
    stays = kept(0.6, "a", "history", places) | (places // 50 % 2 == 1)
    stayed = A.filter(pa.array(stays))
    assert found == pairs(stayed, relation(2, 60)) != pairs(A, relation(2, 60))
    keys = A.column("k").is_valid()
    assert job.loop.counts[0]["shed"] == np.count_nonzero(~stays & keys.to_numpy(zero_copy_only=False))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
def test_long_values_of_any_length_never_exceed_the_memory(name: str, kind: pa.DataType, tmp_path: Path) -> None:
    """Texts of up to 3,000 bytes on both sides, the longest of the relation in one part of it."""
    chosen = random.Random(4)
    inputs = {
        "a": StreamSchema("a", STREAM.append(pa.field("note", kind)), "ts", "us", 0),
        "c": StreamSchema.of_relation("c", RELATION.append(pa.field("text", kind))),
    }
    query = "SELECT ONLINE a.id, a.note, c.id, c.text FROM a JOIN c ON a.k = c.k"
    plan = plan_query(query, inputs)
    assert isinstance(plan, Cascade)

    def long(rows: pa.RecordBatch, field: str) -> pa.RecordBatch:
        texts = [chosen.choice(["", "é", "x" * chosen.choice([5, 300, 3_000])]) for _ in range(rows.num_rows)]
        return rows.append_column(pa.field(field, kind), pa.array([text.encode() for text in texts]).cast(kind))

    a, c = long(A, "note"), long(relation(2, 60), "text")
    c = c.take(pa.array(sorted(range(c.num_rows), key=lambda row: len(c.column("text")[row].as_py()))))
    memory, seen, entries = 60_000, list[int](), list[int]()
    job = PartsJob(plan, tmp_path, units_of(name, 1, partitions=12, steps=5, memory_bytes=memory))
    job.take({"c": c})
    one = MeshStep._one

    def metered(self: MeshStep, *, enters: bool = True) -> Any:
        yield from one(self, enters=enters)
        there = [chunk.rows for chunk in self.queue]
        if isinstance(self, BalancedStep):
            there += [*self.moving.collected, *([self.cache.rows] if self.cache.rows is not None else [])]
            entries.append(ENTRY_BYTES * self.cache.cells.size)
        part = sum(rows.nbytes for rows in self.reader._rows_of((self.step - 1) % self.reader.parts))
        seen.append(part + sum(rows.nbytes for rows in there) + sum(entries[-1:]))
        assert seen[-1] <= self.memory_bytes()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(MeshStep, "_one", metered)
        found = sum((job.batch(pieces) for pieces in pieces_of(a, (100,))), Counter())
        found += drained(job)
    want = Counter(
        (left["id"], str(left["note"]), right["id"], str(right["text"]))
        for left in a.to_pylist() for right in c.to_pylist() if left["k"] is not None and left["k"] == right["k"]
    )  # fmt: skip
    assert Counter((row[0], str(row[1]), row[2], str(row[3])) for row in found.elements()) == want
    assert memory / 2 < max(seen) <= memory
