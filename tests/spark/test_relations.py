"""Streams joined with relations on Spark: exact, after crashes, and with one version of a relation for each batch."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from streamjoin.errors import InputError, RunError
from streamjoin.results.question import Question
from streamjoin.spark.run import report, run_job
from streamjoin.spec.joinfile import load
from streamjoin.spec.prepare import bind
from tests.conformance.test_relations import BATCHES, DATA, QUERIES, cut, nested_loop, planned, relation

from .jobs import check_same, crash, result_rows, run_text, run_to_the_end, write_file
from .test_store_crashes import reader_of, rows_of

pytestmark = pytest.mark.spark

SUFFIXES = {"parquet": "parquet", "arrow": "arrow", "csv": "csv", "jsonl": "jsonl"}


def write_relation(folder: Path, name: str, rows: pa.RecordBatch, source: str = "parquet") -> None:
    """A relation of two files."""
    (folder / name).mkdir(exist_ok=True)
    for number, part in enumerate((rows.slice(0, 30), rows.slice(30))):
        path, table = folder / name / f"{number}.{source}", pa.Table.from_batches([part])
        match source:
            case "parquet":
                pq.write_table(table, path)
            case "arrow":
                pa.feather.write_feather(table, path, compression="uncompressed")
            case "csv":
                pa.csv.write_csv(table, path)
            case _:
                path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


def write_streams(folder: Path, names: str, numbers: range = range(BATCHES)) -> None:
    for number, pieces in enumerate(cut([DATA[name] for name in names], BATCHES)):
        if number in numbers:
            for name, parts in zip(names, pieces, strict=True):
                write_file(folder / name, number, pa.Table.from_batches(parts).combine_chunks().to_batches()[0])


def text(query: str, streams: str, relations: Mapping[str, str], results: str = "{parquet: results}") -> str:
    schema = "{id: int64, k: int64, x: int64, name: string}"
    lines = ["streams:"]
    lines += [f"  {name}: {{source: parquet, path: {name}, time: ts, delay: 15us}}" for name in streams]
    lines += ["relations:"]
    lines += [f"  {name}: {{source: {source}, path: {name}, schema: {schema}}}" for name, source in relations.items()]
    lines += [f"query: {QUERIES[query][0]!r}", f"results: {results}"]
    return "\n".join([*lines, "run: {checkpoint: checkpoint, files_per_batch: 1, slots: 2}"])


def want(query: str, data: Mapping[str, pa.RecordBatch] = DATA) -> Counter[Any]:
    written, condition, within_us = QUERIES[query]
    return nested_loop(planned(written), condition, within_us, data)


@pytest.mark.parametrize(
    "source",
    [pytest.param(name, marks=[pytest.mark.soak] if name in ("arrow", "csv", "jsonl") else []) for name in SUFFIXES],
)
def test_every_format_is_joined_exactly_and_restarts_read_it_once(
    source: str, session: SparkSession, tmp_path: Path
) -> None:
    write_relation(tmp_path, "c", DATA["c"], source)
    content = text("equality", "a", {"c": source})
    write_streams(tmp_path, "a", range(2))
    assert run_text(session, content, tmp_path).batches == 2
    write_streams(tmp_path, "a", range(2, BATCHES))
    progress = run_text(session, content.replace("slots: 2", "slots: 3"), tmp_path)
    assert progress.batches == 2
    check_same(result_rows(tmp_path / "results"), want("equality"))
    assert progress.relations["c"]["version"] == 1 and progress.relations["c"]["rows"] == DATA["c"].num_rows
    assert run_text(session, content, tmp_path).batches == 0


@pytest.mark.soak
@pytest.mark.parametrize(
    ("query", "streams", "relations"), [("between two streams", "ab", "c"), ("two relations", "a", "cd")]
)
def test_they_stand_anywhere_among_streams_and_results_go_to_stores(
    query: str, streams: str, relations: str, session: SparkSession, tmp_path: Path
) -> None:
    for name in relations:
        write_relation(tmp_path, name, DATA[name])
    write_streams(tmp_path, streams)
    names = [name for name, _ in planned(QUERIES[query][0]).select]
    store = "{store: sqlite, path: results.db, snapshot: {batches: 1}}"
    content = text(query, streams, dict.fromkeys(relations, "parquet"), store)
    (tmp_path / "join.yaml").write_text(content)
    crash(session, tmp_path / "join.yaml", "batch.before_commit:2")
    crash(session, tmp_path / "join.yaml", "batch.after_commit:1", 3)
    run_to_the_end(session, tmp_path / "join.yaml", 1)
    check_same(rows_of(reader_of(tmp_path / "join.yaml"), Question(select=tuple(names))), want(query))


def replaced_after_a_crash(session: SparkSession, folder: Path, knobs: str = "") -> dict[str, Any]:
    """The report of a job whose relation is replaced between a crash and its next start, once its rows are checked."""
    write_relation(folder, "c", DATA["c"])
    write_streams(folder, "a")
    file = folder / "join.yaml"
    file.write_text(knobs + text("equality", "a", {"c": "parquet"}))
    crash(session, file, "batch.before_commit:2")
    later = {**DATA, "c": relation(33, 90)}
    write_relation(folder, "c", later["c"])
    bound = bind(load(file))
    job = bound.job(heartbeat=False)
    progress = run_job(session, bound, job, bound.sinks(), until_end=True)
    assert progress.relations["c"]["version"] == 2
    halves = [pa.concat_batches([rows for pieces in some for rows in pieces[0]]) for some in _halves()]
    wanted = want("equality", {**DATA, "a": halves[0]}) + want("equality", {**later, "a": halves[1]})
    check_same(result_rows(folder / "results"), wanted)
    return report(bound, job, progress, 1.0, 0)


def test_a_batch_that_is_repeated_joins_the_version_that_it_began_with(session: SparkSession, tmp_path: Path) -> None:
    figures = replaced_after_a_crash(session, tmp_path)
    assert figures["tuples_in"] == {"a": 45} and figures["relations"]["c"]["rows"] == 90
    reading = figures["reading"]
    assert 30 < reading["tuples"] <= 45 and reading["rate_per_s"] > 0 and reading["rows_read_per_tuple"] is None
    assert reading["predicted"]["rate_per_s"] > 0
    offsets = tmp_path / "checkpoint" / "offsets" / "offsets"
    joined = [json.loads((offsets / str(batch)).read_text().splitlines()[2])["relations"] for batch in range(BATCHES)]
    assert joined == [{"c": 1}, {"c": 1}, {"c": 2}, {"c": 2}]


def _halves() -> tuple[list[Any], list[Any]]:
    every = list(cut([DATA["a"]], BATCHES))
    return every[:2], every[2:]


def test_a_relation_that_is_gone_or_changes_while_it_is_read_is_said(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from streamjoin.sources.relation import Relation

    write_relation(tmp_path, "c", DATA["c"])
    write_streams(tmp_path, "a", range(1))
    content = text("equality", "a", {"c": "parquet"})
    origin, changes = Relation.origin, iter(range(100))
    monkeypatch.setattr(Relation, "origin", lambda self: f"{origin(self)}{next(changes)}")
    with pytest.raises(RunError, match="relation c has changed 3 times while it was read"):
        run_text(session, content, tmp_path)
    monkeypatch.undo()
    for file in (tmp_path / "c").iterdir():
        file.unlink()
    (tmp_path / "c").rmdir()
    with pytest.raises(InputError, match="c does not exist") as refused:
        run_text(session, content, tmp_path)
    assert refused.value.field == "relations.c.path"
