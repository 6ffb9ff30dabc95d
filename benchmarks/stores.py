"""Result stores: rows a second into them, commit to visible, and questions by key and by time.

Two processes write blocks as two slots do, and one commits, through the same code as a job's; Spark is not in it.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import systems
from benchmarks.processes import run as run_program
from benchmarks.scale import SLOTS, Scale
from benchmarks.systems import FailedRowError, Rates
from streamjoin.plan.join import RESULT_KEY, RESULT_TIME
from streamjoin.results.answer import ask
from streamjoin.results.block import key_code
from streamjoin.results.description import Description
from streamjoin.results.parts import BatchDone
from streamjoin.results.policy import EpochPolicy
from streamjoin.results.question import Question
from streamjoin.results.reader import Reader
from streamjoin.results.recent import Recent
from streamjoin.results.sink import StoreSink, StoreWriter
from streamjoin.results.stores.memory import MemoryStore
from streamjoin.results.stores.spec import StoreSpec

EXPECTED_S = 600
TARGETS = {"sqlite": 500_000, "cassandra": 100_000}
"""Rows a second that were the aim."""
VISIBLE_MS_TARGET = 50
READ_MS_TARGET = 200
VISIBLE_ROWS = 10_000
DAY_US = 86_400_000_000
KEYS = 4_000_000
REST_S = 40
"""Between writing and asking: a store that has just taken gigabytes still puts them in order."""
TURN_S_MAX = 1800.0
SCHEMA = pa.schema(
    [
        ("r_id", pa.int64()),
        ("s_id", pa.int64()),
        ("val", pa.float64()),
        (RESULT_TIME, pa.int64()),
        (RESULT_KEY, pa.int64()),
    ]
)


class WrongAnswerError(Exception):
    """A store answers with other rows than were written."""


def run(scale: Scale) -> dict[str, Any]:
    """`stores`: by store `rows`, `rows_per_second`, `key` and `time` (ms p50, p95, blocks); `visible`: ms by store."""
    work = systems.folder(scale, "stores")
    rows_a_batch = scale.pick(500_000, 5_000)
    found: dict[str, Any] = {}
    for name, batches in (("sqlite", 200), ("cassandra", 200), ("hbase", 40)):
        with server(name, work) as spec:
            if spec is None:
                found[name] = {
                    "skipped": "its server cannot be started here: its jars are missing and cannot be downloaded"
                }
                continue
            scale.show(f"  {name}: {batches} x {rows_a_batch:,} rows")
            found[name] = _measure(scale, spec, scale.pick(batches, 4), rows_a_batch)
            scale.show(f"  {name}: {found[name]['rows_per_second']:,.0f} rows/s, {found[name]['key']}")
    visible = {
        "memory": _visible(None, scale.pick(100, 5), work),
        "sqlite": _visible(StoreSpec("sqlite", (("path", str(work / "visible.db")),)), scale.pick(100, 5), work),
    }
    return {"stores": found, "visible": visible, "rows_per_batch": rows_a_batch, "keys": KEYS}


@contextlib.contextmanager
def server(name: str, work: Path) -> Iterator[StoreSpec | None]:
    """A store to measure, on a server of its own if it needs one; None if that cannot be started here."""
    if name == "sqlite":
        yield StoreSpec("sqlite", (("path", str(work / "results.db")),))
        return
    # Here and not above: these servers are for tests and benchmarks only.
    from tests.servers.maven import ServerUnavailable

    try:
        if name == "cassandra":
            from tests.servers.cassandra import CassandraNode

            with CassandraNode() as cassandra:
                yield StoreSpec("cassandra", (("hosts", "127.0.0.1"), ("port", cassandra.port)))
        else:
            from tests.servers.hbase import HbaseServer

            with HbaseServer() as hbase:
                yield StoreSpec("hbase", (("host", "127.0.0.1"), ("port", hbase.port)))
    except ServerUnavailable:
        yield None


def _rows(batch: int, unit: int, rows: int, batches: int) -> pa.RecordBatch:
    """Keys uniform; times of a batch lie in its part of a day."""
    rng = np.random.default_rng((batch, unit))
    span_us = DAY_US // batches
    keys = rng.integers(0, KEYS, rows)
    times = batch * span_us + rng.integers(0, span_us, rows)
    ids = np.arange(rows, dtype=np.int64) + (batch * SLOTS + unit) * rows
    return pa.RecordBatch.from_arrays(
        [pa.array(ids), pa.array(ids * 7), pa.array(rng.random(rows)), pa.array(times), pa.array(keys)], schema=SCHEMA
    )


def _write(unit: int, batches: int, rows: int, writer: StoreWriter, begin: Queue[int], done: Queue[Any]) -> None:
    """One slot: makes the rows of a batch, then writes them when told to; what is timed is the writing."""
    while (batch := begin.get()) >= 0:
        given = _rows(batch, unit, rows, batches)
        begun_s = time.perf_counter()
        with writer.part(batch, unit, SCHEMA) as part:
            for start in range(0, rows, 1 << 16):
                part.write(given.slice(start, 1 << 16), unit)
        done.put((part.summary(), time.perf_counter() - begun_s))


def _sink(spec: StoreSpec, rows_a_snapshot: int, recent: Recent | None = None) -> StoreSink:
    code = key_code(pa.int64(), equality=True, buckets=8 if spec.kind == "cassandra" else 1)
    policy = EpochPolicy(span_us=None, threshold_rows=rows_a_snapshot)
    return StoreSink(spec, "benchmark", Description(SCHEMA, code), policy, recent=recent)


def _measure(scale: Scale, spec: StoreSpec, batches: int, rows_a_batch: int) -> dict[str, Any]:
    sink = _sink(spec, rows_a_batch)
    writer = sink.begin("benchmark")
    assert isinstance(writer, StoreWriter)
    context = multiprocessing.get_context("spawn")
    begin: list[Queue[int]] = [context.Queue() for _ in range(SLOTS)]
    done: Queue[Any] = context.Queue()
    rows = rows_a_batch // SLOTS
    slots = [
        context.Process(target=_write, args=(unit, batches, rows, writer, begin[unit], done)) for unit in range(SLOTS)
    ]
    for slot in slots:
        slot.start()
    writing_s = 0.0
    try:
        for batch in range(batches):
            scale.seconds(1)
            for queue in begin:
                queue.put(batch)
            parts = [done.get(timeout=300) for _ in slots]
            begun_s = time.perf_counter()
            sink.commit(BatchDone(batch, batch), [part for part, _ in parts])
            if batch or batches == 1:  # the first one compiles and makes connections
                writing_s += max(seconds for _, seconds in parts) + time.perf_counter() - begun_s
    finally:
        for queue in begin:
            queue.put(-1)
        for slot in slots:
            slot.join(60)
    sink.finish()
    time.sleep(scale.pick(REST_S, 0))
    reader = Reader(spec.open(), "benchmark")
    reader.refresh()
    stored = sum(found.size for found in reader.snapshots())
    keys = [Question(key=int(key)) for key in np.random.default_rng(1).integers(0, KEYS, 100)]
    seconds = [
        Question(from_us=int(at), to_us=int(at) + 999_999)
        for at in np.random.default_rng(2).integers(0, DAY_US - 1_000_000, 100)
    ]
    answer = {
        "rows": batches * rows * SLOTS, "bytes": stored, "snapshots": len(reader.snapshots()),
        "rows_per_second": max(batches - 1, 1) * rows * SLOTS / writing_s,
        "key": _ask(reader, keys),
        "time": _ask(reader, seconds),
    }  # fmt: skip
    check(reader, [keys[0], seconds[0]], batches, rows)
    reader.store.close()
    return answer


def check(reader: Reader, questions: Sequence[Question], batches: int, rows: int) -> None:
    """Make sure that answers have the rows that were written.

    Args:
        rows: of a unit in a batch.
    Raises:
        WrongAnswerError: one has others.
    """
    wanted: list[list[int]] = [[] for _ in questions]
    for batch in range(batches):
        for unit in range(SLOTS):
            given = _rows(batch, unit, rows, batches)
            ids, times, keys = (given[name].to_numpy() for name in ("r_id", RESULT_TIME, RESULT_KEY))
            for question, found in zip(questions, wanted, strict=True):
                if question.key is not None:
                    chosen = keys == question.key
                else:
                    chosen = (times >= question.from_us) & (times <= question.to_us)
                found += ids[chosen].tolist()
    for question, right in zip(questions, wanted, strict=True):
        answered = sorted(one for some in ask(reader, question) for one in some["r_id"].to_pylist())
        if answered != sorted(right):
            raise WrongAnswerError(
                f"{question} is answered with {len(answered)} rows, and {len(right)} others are right"
            )


def _ask(reader: Reader, questions: list[Question]) -> dict[str, Any]:
    """Each question once, after one that loads the manifests and compiles."""
    list(ask(reader, questions[0]))
    milliseconds, read, rows, stored = [], 0, 0, 0
    for question in questions:
        begun_s = time.perf_counter()
        answer = ask(reader, question)
        list(answer)
        milliseconds.append((time.perf_counter() - begun_s) * 1000)
        read, rows, stored = read + answer.blocks_read, rows + answer.rows, answer.blocks_stored
    return {
        "p50_ms": float(np.percentile(milliseconds, 50)), "p95_ms": float(np.percentile(milliseconds, 95)),
        "max_ms": max(milliseconds), "questions": len(questions), "blocks_read": read / len(questions),
        "blocks_stored": stored, "rows": rows / len(questions),
    }  # fmt: skip


def _visible(spec: StoreSpec | None, commits: int, work: Path) -> dict[str, float]:
    """From the start of a commit to the moment another reader has its rows, in ms. Memory: of the same process."""
    if spec is None:
        shutil.rmtree(work / "visible", ignore_errors=True)
        memory = MemoryStore()
        durable = StoreSpec("sqlite", (("path", str(work / "visible" / "durable.db")),))
        sink = _sink(durable, VISIBLE_ROWS, Recent(memory, "benchmark"))
        reader = Reader(memory, "benchmark")
    else:
        sink = _sink(spec, VISIBLE_ROWS)
    writer = sink.begin("benchmark")
    if spec is not None:
        reader = Reader(spec.open(), "benchmark")
    milliseconds = []
    for batch in range(commits):
        with writer.part(batch, 0, SCHEMA) as part:
            part.write(_rows(batch, 0, VISIBLE_ROWS, commits), 0)
        before = reader.refresh().state.last
        begun_s = time.perf_counter()
        sink.commit(BatchDone(batch, batch), [part.summary()])
        reader.refresh()
        new = reader.snapshots(after=before)
        rows = sum(found.num_rows for snapshot in new for _, found in reader.rows(snapshot.blocks))
        milliseconds.append((time.perf_counter() - begun_s) * 1000)
        assert rows == VISIBLE_ROWS
    return {"p50_ms": float(np.percentile(milliseconds, 50)), "p95_ms": float(np.percentile(milliseconds, 95))}


@contextlib.contextmanager
def own(scale: Scale) -> Iterator[Callable[[Scale], Rates]]:
    """This part as often as wanted: rows a second into each store, and how many questions it answers in a second."""
    yield _turn


def _turn(scale: Scale) -> Rates:
    """The part as the checkout has it, in a process of its own: it works on the library's inside, not on a command."""
    work = systems.folder(scale, "stores")
    command = [
        sys.executable, "-m", "benchmarks", "--only", "stores", "--out", str(work / "out"), "--docs",
        str(work / "docs"), "--data", str(work / "data"), *(["--quick"] if scale.quick else []),
    ]  # fmt: skip
    ended = run_program(command, limit_s=scale.seconds(TURN_S_MAX), log=work / "log", code=scale.code)
    result = work / "out" / "stores.json"
    found: dict[str, Any] = json.loads(result.read_text()) if result.exists() else {"error": ended.tail}
    if found.get("error"):
        raise FailedRowError(f"stores: {found['error']}")
    return rates_of(found["stores"])


def rates_of(found: dict[str, Any]) -> Rates:
    """What `run` found of each store that was there, as rates."""
    there = {name: store for name, store in found.items() if "skipped" not in store}
    return {
        row: rate
        for name, store in there.items()
        for row, rate in (
            (f"{name}, rows in", store["rows_per_second"]),
            (f"{name}, a key", 1000 / store["key"]["p50_ms"]),
            (f"{name}, one second", 1000 / store["time"]["p50_ms"]),
        )
    }
