"""Result sinks: a batch appears whole, once, and a repeated one replaces itself."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin.errors import InputError, RunError
from streamjoin.results.jsonlines import json_lines
from streamjoin.results.parts import BatchDone, Discard, JsonLinesSink, ParquetSink, Sink

SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])


def rows(*ids: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"id": number, "at": number} for number in ids], schema=SCHEMA)


def write(sink: Sink, batch: int, slots: dict[int, list[pa.RecordBatch]]) -> list[dict[str, Any]]:
    """What the slots do."""
    summaries = []
    for slot, given in slots.items():
        with sink.part(batch, slot, SCHEMA) as part:
            for found in given:
                part.write(found)
        summaries.append(part.summary())
    return summaries


def read_parquet(folder: Path) -> list[int]:
    return sorted(value for path in folder.glob("*.parquet") for value in pq.read_table(path)["id"].to_pylist())


def test_parquet_parts_are_hidden_until_their_commit(tmp_path: Path) -> None:
    sink = ParquetSink(tmp_path / "out")
    parts = write(sink, 0, {0: [rows(1, 2), rows(3)], 1: [rows(4)]})
    assert read_parquet(tmp_path / "out") == []
    sink.commit(BatchDone(0), parts)
    assert read_parquet(tmp_path / "out") == [1, 2, 3, 4]


def test_committing_a_batch_again_changes_nothing(tmp_path: Path) -> None:
    sink = ParquetSink(tmp_path / "out")
    parts = write(sink, 0, {0: [rows(1)]})
    sink.commit(BatchDone(0), parts)
    sink.commit(BatchDone(0), parts)
    sink.commit(BatchDone(0), write(sink, 0, {0: [rows(1)]}))
    assert read_parquet(tmp_path / "out") == [1]


def test_a_batch_repeated_with_fewer_slots_leaves_nothing_of_its_first_attempt(tmp_path: Path) -> None:
    sink = ParquetSink(tmp_path / "out")
    sink.commit(BatchDone(0), write(sink, 0, {0: [rows(9)]}))
    sink.commit(BatchDone(1), write(sink, 1, {0: [rows(1)], 1: [rows(2)], 2: [rows(3)]}))
    sink.commit(BatchDone(1), write(sink, 1, {0: [rows(1, 2, 3)]}))
    assert read_parquet(tmp_path / "out") == [1, 2, 3, 9]


def test_an_empty_part_leaves_no_file(tmp_path: Path) -> None:
    sink = ParquetSink(tmp_path / "out")
    sink.commit(BatchDone(0), write(sink, 0, {0: [], 1: []}))
    assert list((tmp_path / "out").glob("*")) == []


def test_a_part_that_fails_leaves_no_file(tmp_path: Path) -> None:
    sink = ParquetSink(tmp_path / "out")

    def fail_half_way() -> None:
        with sink.part(0, 0, SCHEMA) as part:
            part.write(rows(1))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert list((tmp_path / "out" / ".staged").glob("*")) == []


def lines(path: Path) -> list[int]:
    return [json.loads(line)["id"] for line in path.read_text().splitlines()]


def test_json_lines_are_appended_batch_by_batch(tmp_path: Path) -> None:
    sink = JsonLinesSink(str(tmp_path / "out.jsonl"), tmp_path / "staged")
    sink.commit(BatchDone(0), write(sink, 0, {0: [rows(1, 2)], 1: [rows(3)]}))
    sink.commit(BatchDone(1), write(sink, 1, {0: [], 1: [rows(4)]}))
    assert lines(tmp_path / "out.jsonl") == [1, 2, 3, 4]


def test_a_json_lines_batch_cut_off_by_a_crash_is_written_again_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    sink = JsonLinesSink(str(path), tmp_path / "staged")
    sink.commit(BatchDone(0), write(sink, 0, {0: [rows(1, 2)]}))
    whole = path.read_text()
    sink.commit(BatchDone(1), write(sink, 1, {0: [rows(3, 4)]}))
    path.write_text(path.read_text()[: len(whole) + 7])  # the crash came in the middle of a line
    sink.commit(BatchDone(1), write(sink, 1, {0: [rows(3)], 1: [rows(4)]}))
    assert lines(path) == [1, 2, 3, 4]


@pytest.mark.parametrize("moved", ["elsewhere", "away"])
def test_a_json_lines_batch_is_done_again_into_another_file(moved: str, tmp_path: Path) -> None:
    path, new = tmp_path / "out.jsonl", tmp_path / ("out.jsonl" if moved == "away" else "new.jsonl")
    sink = JsonLinesSink(str(path), tmp_path / "staged")
    sink.commit(BatchDone(0), write(sink, 0, {0: [rows(1, 2)]}))
    sink.commit(BatchDone(1), write(sink, 1, {0: [rows(3, 4)]}))
    if moved == "away":
        path.rename(tmp_path / "old.jsonl")
    sink = JsonLinesSink(str(new), tmp_path / "staged")
    sink.commit(BatchDone(1), write(sink, 1, {0: [rows(3)], 1: [rows(4)]}))
    assert lines(new) == [3, 4]
    if moved == "elsewhere":
        assert lines(path) == [1, 2]
    sink.commit(BatchDone(1), write(sink, 1, {0: [rows(3, 4)]}))  # and again
    sink.commit(BatchDone(2), write(sink, 2, {0: [rows(5)]}))
    assert lines(new) == [3, 4, 5]


@pytest.mark.parametrize("moved", ["a copy of the job", "the job", "the job without its results"])
def test_a_json_lines_batch_is_done_again_after_its_job_has_moved(moved: str, tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    sink = JsonLinesSink(str(old / "out.jsonl"), old / "checkpoint" / "staged")
    sink.commit(BatchDone(0), write(sink, 0, {0: [rows(1, 2)]}))
    sink.commit(BatchDone(1), write(sink, 1, {0: [rows(3, 4)]}))
    there = new / "out.jsonl"
    if moved == "a copy of the job":
        shutil.copytree(old, new)
    elif moved == "the job":
        old.rename(new)
    else:
        new.mkdir()
        (old / "checkpoint").rename(new / "checkpoint")
        there = old / "out.jsonl"
    sink = JsonLinesSink(str(there), new / "checkpoint" / "staged")
    sink.commit(BatchDone(1), write(sink, 1, {0: [rows(3)], 1: [rows(4)]}))
    assert lines(there) == [1, 2, 3, 4]
    if moved == "a copy of the job":
        assert lines(old / "out.jsonl") == [1, 2, 3, 4]


def test_a_json_lines_batch_whose_parts_are_gone_was_committed_before(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    sink = JsonLinesSink(str(path), tmp_path / "staged")
    parts = write(sink, 0, {0: [rows(1, 2)]})
    sink.commit(BatchDone(0), parts)
    sink.commit(BatchDone(0), parts)
    assert lines(path) == [1, 2]


def sink_in(folder: Path, kind: str) -> Sink:
    if kind == "files":
        return ParquetSink(folder / "out")
    return JsonLinesSink(str(folder / "out.jsonl"), folder / "staged")


def read(folder: Path, kind: str) -> list[int]:
    return read_parquet(folder / "out") if kind == "files" else lines(folder / "out.jsonl")


@pytest.mark.parametrize("kind", ["files", "lines"])
@pytest.mark.parametrize("late", ["fails", "ends", "is killed"])
@pytest.mark.parametrize("begins", ["first", "last"])
def test_a_task_that_was_thought_lost_takes_nothing_from_the_one_that_repeats_it(
    kind: str, late: str, begins: str, tmp_path: Path
) -> None:
    sink = sink_in(tmp_path, kind)
    lost = sink.part(0, 0, SCHEMA).__enter__()
    if begins == "first":
        lost.write(rows(1))
    done = write(sink, 0, {0: [rows(1, 2), rows(3)]})
    if begins == "last":
        lost.write(rows(1))
    if late == "fails":
        lost.__exit__(RuntimeError, RuntimeError(), None)
    elif late == "ends":
        lost.write(rows(2, 3))
        lost.__exit__(None, None, None)
    sink.commit(BatchDone(0), done)
    assert read(tmp_path, kind) == [1, 2, 3]
    assert [path.name for path in tmp_path.rglob("batch-*") if path.suffix != ".parquet"] == []


@pytest.mark.parametrize("kind", ["files", "lines"])
def test_what_a_task_thought_lost_stages_after_the_commit_goes_with_the_next(kind: str, tmp_path: Path) -> None:
    sink = sink_in(tmp_path, kind)
    sink.commit(BatchDone(0), write(sink, 0, {0: [rows(1)]}))
    write(sink, 0, {0: [rows(1)]})
    later = write(sink, 2, {0: [rows(3)]})
    sink.commit(BatchDone(1), write(sink, 1, {0: [rows(2)]}))
    sink.commit(BatchDone(2), later)
    assert read(tmp_path, kind) == [1, 2, 3]
    assert [path.name for path in tmp_path.rglob("batch-*") if path.suffix != ".parquet"] == []


@pytest.mark.parametrize("kind", ["files", "lines"])
def test_a_part_that_is_gone_before_its_commit_is_an_error(kind: str, tmp_path: Path) -> None:
    sink = sink_in(tmp_path, kind)
    sink.commit(BatchDone(0), write(sink, 0, {0: [rows(1)]}))
    parts = write(sink, 1, {0: [rows(2)], 1: [rows(3)]})
    (staged,) = tmp_path.rglob("batch-000000001-0001.*")
    staged.unlink()
    with pytest.raises(RunError, match=r"results of batch 1 are gone: .*batch-000000001-0001.* is not one that all"):
        sink.commit(BatchDone(1), parts)
    assert read(tmp_path, kind) == [1]  # nothing is shown half


def test_json_lines_go_to_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sink = JsonLinesSink("-", tmp_path / "staged")
    sink.commit(BatchDone(0), write(sink, 0, {0: [rows(7)]}))
    assert json.loads(capsys.readouterr().out)["id"] == 7


def test_json_lines_are_json_whatever_the_values_are() -> None:
    table = pa.table(
        {
            "number": pa.array([2**62, None]),
            "float": [float("nan"), float("-inf")],
            "at": pa.array([0, 1_500_000], pa.timestamp("us", tz="UTC")),
            "span": pa.array([None, 7], pa.duration("us")),
            "text": ['"\n', "ä"],
        }
    )
    first, second = (json.loads(line) for line in json_lines(table))
    assert first == {"number": 2**62, "float": None, "at": "1970-01-01T00:00:00.000000Z", "span": None, "text": '"\n'}
    assert second == {"number": None, "float": None, "at": "1970-01-01T00:00:01.500000Z", "span": 7, "text": "ä"}


def test_discarded_results_are_counted(tmp_path: Path) -> None:
    sink = Discard()
    parts = write(sink, 0, {0: [rows(1, 2)], 1: [rows(3)]})
    sink.commit(BatchDone(0), parts)
    assert [part["rows"] for part in parts] == [2, 1]


@pytest.mark.parametrize("kind", ["files", "lines"])
def test_a_folder_that_cannot_be_synced_is_refused_before_anything_is_written(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuses(descriptor: int) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    sink = ParquetSink(tmp_path / "out") if kind == "files" else JsonLinesSink(str(tmp_path / "out/x"), tmp_path / "s")
    monkeypatch.setattr(os, "fsync", refuses)
    with pytest.raises(InputError, match="cannot be made so that results in it outlast a power loss: Invalid argument"):
        sink.begin("")
    monkeypatch.undo()
    assert sink.begin("") is sink and (tmp_path / "out").is_dir()


@pytest.mark.parametrize("name", ["result", "RESULT", "results", "rows"])
def test_a_column_may_be_called_like_a_table(name: str) -> None:
    assert json_lines(pa.table({name: [1], "x": [2]})) == [f'{{"{name}":1,"x":2}}']


def test_a_text_that_is_none_costs_no_line() -> None:
    raw = pa.array([b"caf\xe9", b"ok", None, b"\xff\xfe"])
    text = pa.Array.from_buffers(pa.string(), 4, raw.buffers(), 1)
    found = json_lines(pa.table({"text": text, "n": [1, 2, 3, 4]}))
    assert [json.loads(line) for line in found] == [
        {"text": "caf\\xe9", "n": 1}, {"text": "ok", "n": 2}, {"text": None, "n": 3}, {"text": "\\xff\\xfe", "n": 4},
    ]  # fmt: skip


def test_a_column_without_a_name_has_none_in_json() -> None:
    assert json_lines(pa.table({"": [1], "v2": [2], "x": ["3"]})) == ['{"":1,"v2":2,"x":"3"}']
