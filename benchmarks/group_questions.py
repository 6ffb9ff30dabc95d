"""How long questions about groups that change take, once a store holds many changes of few groups.

python -m benchmarks.group_questions                      10,000,000 changes of 1,000 groups in SQLite
python -m benchmarks.group_questions --store cassandra    on a node of its own, which it starts
python -m benchmarks.group_questions --changes 20000      toy size: shows that it works, its times mean nothing

As a part of `python -m benchmarks` it asks every store, one after the other.

Each batch gives one change of each group and closes a snapshot, through the same code as a job's; Spark is not in it.
It prints how long writing took, with the longest commit, and the p50 and p95 of each kind of question: asked of a
reader that has read the manifests before, as the platform's has, and by a reader that begins, as the command line does.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import systems
from benchmarks.scale import Scale
from benchmarks.stores import WrongAnswerError, server
from streamjoin.plan.changing import EMIT_TIME, OPERATION, UPSERT
from streamjoin.plan.join import RESULT_KEY, RESULT_TIME
from streamjoin.results.answer import ask
from streamjoin.results.block import key_code
from streamjoin.results.description import Description
from streamjoin.results.parts import BatchDone
from streamjoin.results.policy import EpochPolicy
from streamjoin.results.question import Question
from streamjoin.results.reader import Reader
from streamjoin.results.sink import StoreSink, StoreWriter
from streamjoin.results.stores.spec import StoreSpec

EXPECTED_S = 1500
P95_MS_TARGET = 200
"""Of each question to a reader that has read the manifests before."""
STORES = ("sqlite", "cassandra", "hbase")
FIRST_READ = "all groups now, first read"
EMIT_US = 1_000_000
JOB = "benchmark"
PAGE_ROWS = 100
SCHEMA = pa.schema(
    [
        ("g", pa.int64()), ("n", pa.int64()), ("total", pa.float64()), (OPERATION, pa.string()),
        (EMIT_TIME, pa.timestamp("us", "UTC")), (RESULT_TIME, pa.int64()), (RESULT_KEY, pa.int64()),
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Size:
    """Changes of so many groups, and how often each kind of question is asked.

    Args:
        retain_s: of the changes' own clock; None keeps all.
    """

    changes: int
    groups: int
    times: int
    retain_s: int | None = None


FULL = Size(changes=10_000_000, groups=1_000, times=40)
QUICK = Size(changes=4_000, groups=100, times=3)


@dataclass(frozen=True, slots=True)
class Asked:
    """One kind of question, asked some times.

    Args:
        milliseconds: of each, float64 of shape (times,).
        blocks, rows: that an answer read, and gave, on average.
    """

    name: str
    milliseconds: np.ndarray
    blocks: float
    rows: float


@dataclass(frozen=True, slots=True)
class Written:
    """How the changes came in.

    Args:
        writing_s, commit_ms: spent on blocks, and on each commit.
    """

    changes: int
    writing_s: float
    commit_ms: np.ndarray


def batch(number: int, groups: int) -> pa.RecordBatch:
    """A change of each group, as of one moment."""
    keys, at = np.arange(groups), np.full(groups, number * EMIT_US)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(keys), pa.array(keys * 7 + number), pa.array(np.random.default_rng(number).normal(size=groups)),
            pa.array([UPSERT] * groups), pa.array(at, pa.timestamp("us", "UTC")), pa.array(at), pa.array(keys),
        ],
        schema=SCHEMA,
    )  # fmt: skip


def written(spec: StoreSpec, changes: int, groups: int, retain_s: int | None) -> Written:
    """Write so many changes, one of each group a batch."""
    code = key_code(pa.int64(), equality=True, buckets=8 if spec.kind == "cassandra" else 1)
    policy = EpochPolicy(span_us=None, batches=1)
    retain_us = None if retain_s is None else retain_s * EMIT_US
    sink = StoreSink(spec, JOB, Description(SCHEMA, code, identity=("g",)), policy, retain_us=retain_us)
    writer = sink.begin(JOB)
    assert isinstance(writer, StoreWriter)
    writing_s, commits = 0.0, []
    for number in range(max(changes // groups, 2)):
        rows = batch(number, groups)
        begun_s = time.perf_counter()
        with writer.part(number, 0, SCHEMA) as part:
            part.write(rows)
        put_s = time.perf_counter()
        sink.commit(BatchDone(number, number * EMIT_US), [part.summary()])
        writing_s += put_s - begun_s
        commits.append(1000 * (time.perf_counter() - put_s))
    sink.finish()
    return Written(len(commits) * groups, writing_s, np.array(commits))


def questions(last_us: int, first_us: int, groups: int, times: int) -> dict[str, list[Question]]:
    """What is asked, by its name."""
    chosen = np.random.default_rng(1)
    keys = chosen.integers(0, groups, times).tolist()
    moments = chosen.integers(first_us, last_us, times, endpoint=True).tolist()
    return {
        "all groups now": [Question()] * times,
        "all groups as of a time": [Question(as_of=at) for at in moments],
        "one group now": [Question(key=key) for key in keys],
        "one group as of a time": [Question(key=key, as_of=at) for key, at in zip(keys, moments, strict=True)],
        "a page of a group's history": [Question(key=key, history=True, limit=PAGE_ROWS) for key in keys],
    }


def check(rows: Sequence[dict[str, Any]], question: Question, groups: int, last: int) -> None:
    """Make sure that an answer has the groups that were asked for, as they were then.

    Args:
        last: the number of the newest batch.
    Raises:
        WrongAnswerError: it has not.
    """
    keys = range(groups) if question.key is None else [question.key]
    if question.history:
        right = min(last + 1, PAGE_ROWS)
        numbers = {row["n"] - 7 * row["g"] for row in rows if row["g"] == question.key}
        is_right = len(rows) == len(numbers & set(range(last + 1))) == right
    else:
        number = last if question.as_of is None else int(question.as_of) // EMIT_US
        is_right = sorted((row["g"], row["n"]) for row in rows) == [(key, key * 7 + number) for key in keys]
    if not is_right:
        raise WrongAnswerError(
            f"{question} is answered with {len(rows)} rows, and they are not those that were written"
        )


def asked(name: str, readers: Callable[[], Reader], wanted: Sequence[Question], groups: int, last: int) -> Asked:
    """Ask each question once, after one that compiles and whose answer is checked."""
    check([row for some in ask(readers(), wanted[0]) for row in some.to_pylist()], wanted[0], groups, last)
    spent, blocks, rows = [], 0, 0
    for question in wanted:
        begun_s = time.perf_counter()
        answer = ask(readers(), question)
        for _ in answer:
            pass
        spent.append(1000 * (time.perf_counter() - begun_s))
        blocks, rows = blocks + answer.blocks_read, rows + answer.rows
    return Asked(name, np.array(spent), blocks / len(wanted), rows / len(wanted))


def measured(spec: StoreSpec, size: Size) -> Iterator[Written | Asked]:
    """First how the changes came in, then each kind of question."""
    came = written(spec, size.changes, size.groups, size.retain_s)
    yield came
    reader = Reader(spec.open(), JOB)
    head = reader.refresh()
    last = came.changes // size.groups - 1
    first_us = head.below_time_max_us or 0 if head.base else 0
    wanted = questions(last * EMIT_US, first_us, size.groups, size.times)
    for name, some in wanted.items():
        yield asked(name, lambda: reader, some, size.groups, last)
    yield asked(FIRST_READ, lambda: Reader(reader.store, JOB), wanted["all groups now"][:5], size.groups, last)
    reader.store.close()


def run(scale: Scale) -> dict[str, Any]:
    """`stores`: by store `written` and `asked`, by kind of question ms p50 and p95, blocks and rows; or `skipped`."""
    work = systems.folder(scale, "group_questions")
    size = scale.pick(FULL, QUICK)
    found: dict[str, Any] = {}
    for name in STORES:
        scale.seconds(1)
        with server(name, work) as spec:
            if spec is None:
                found[name] = {
                    "skipped": "its server cannot be started here: its jars are missing and cannot be downloaded"
                }
                continue
            scale.show(f"  {name}: {size.changes:,} changes")
            found[name] = _found(scale, spec, size)
    return {"changes": size.changes, "groups": size.groups, "times": size.times, "stores": found}


def _found(scale: Scale, spec: StoreSpec, size: Size) -> dict[str, Any]:
    came: dict[str, float] = {}
    answers: dict[str, dict[str, float]] = {}
    for one in measured(spec, size):
        for text in line(one).splitlines():
            scale.show(f"    {text}")
        if isinstance(one, Written):
            p50, p95, most = map(float, np.percentile(one.commit_ms, (50, 95, 100)))
            rate = one.changes / (one.writing_s + float(one.commit_ms.sum()) / 1000)
            came = {"changes_per_second": rate, "p50_ms": p50, "p95_ms": p95, "max_ms": most}
        else:
            p50, p95 = map(float, np.percentile(one.milliseconds, (50, 95)))
            answers[one.name] = {"p50_ms": p50, "p95_ms": p95, "blocks": one.blocks, "rows": one.rows}
    return {"written": came, "asked": answers}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", choices=STORES, default="sqlite")
    parser.add_argument("--changes", type=int, default=FULL.changes)
    parser.add_argument("--groups", type=int, default=FULL.groups)
    parser.add_argument("--times", type=int, default=FULL.times, help="how often each kind of question is asked")
    parser.add_argument("--retain-s", type=int, help="of the changes' own clock; keeps all unless given")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        spec = stack.enter_context(server(arguments.store, work))
        if spec is None:
            raise SystemExit(f"no {arguments.store} can be started here: its jars are missing and cannot be downloaded")
        size = Size(arguments.changes, arguments.groups, arguments.times, arguments.retain_s)
        for found in measured(spec, size):
            print(line(found), flush=True)


def line(found: Written | Asked) -> str:
    """What was found, for people."""
    if isinstance(found, Written):
        seconds = found.writing_s + found.commit_ms.sum() / 1000
        return (
            f"{found.changes:,} changes in {len(found.commit_ms):,} snapshots, {found.changes / seconds:,.0f} a second;"
            f" a commit took {_spread(found.commit_ms)}\n"
            f"{'':<30}{'p50 ms':>10}{'p95 ms':>10}{'blocks':>10}{'rows':>10}"
        )
    p50, p95 = np.percentile(found.milliseconds, (50, 95))
    return f"{found.name:<30}{p50:>10.1f}{p95:>10.1f}{found.blocks:>10,.0f}{found.rows:>10,.0f}"


def _spread(milliseconds: np.ndarray) -> str:
    p50, p95, most = np.percentile(milliseconds, (50, 95, 100))
    return f"{p50:.1f} ms in the median, {p95:.1f} ms at p95 and {most:.0f} ms at most"


if __name__ == "__main__":
    main()
