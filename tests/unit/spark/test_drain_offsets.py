"""Which batches the source offers at the end of the input, without Spark's Java."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.streaming.datasource import ReadAllAvailable

from streamjoin.job import Job, SourceSpec
from streamjoin.operators.biclique import Biclique
from streamjoin.operators.handshake import Handshake
from streamjoin.operators.operator import Operator
from streamjoin.spark.source import StreamJoinReader, Task, pack
from tests.conformance.check import plan
from tests.conformance.histories import COLUMNS, history
from tests.spark.jobs import write_history

FILES = 2


def reader(
    folder: Path, operator: Operator, *, ends: bool = True, heartbeat_us: int = 0, resizes: int = 0
) -> StreamJoinReader:
    found = plan(history(0), "equality", "20 us")
    sources = {
        side: SourceSpec("parquet", {"path": folder / name, "files_per_batch": 1}, COLUMNS)
        for side, name in ((0, "r"), (1, "s"))
    }
    job = Job(found, operator, 2, folder / "checkpoint", sources, heartbeat_us=heartbeat_us, resizes=resizes)
    made = StreamJoinReader(pack(job))
    if ends:
        made.prepareForTriggerAvailableNow()
    return made


def offered(made: StreamJoinReader, start: dict[str, Any]) -> list[dict[str, Any]]:
    """All offsets that Spark would log."""
    offsets: list[dict[str, Any]] = []
    while (end := made.latestOffset(start, ReadAllAvailable())) != start:
        offsets.append(end)
        start = end
        assert len(offsets) < 20, "no end"
    return offsets


@pytest.mark.parametrize(("operator", "batches"), [(Handshake(3), 3), (Handshake(1), 0), (Biclique(2, 2), 0)])
def test_the_input_is_followed_by_the_batches_that_the_operator_asks_for(
    operator: Operator, batches: int, tmp_path: Path
) -> None:
    write_history(history(0), tmp_path, FILES + 1, range(FILES))
    made = reader(tmp_path, operator)
    start = made.initialOffset()
    offsets = offered(made, start)
    assert [end.get("drained", 0) for end in offsets] == [0] * FILES + list(range(1, batches + 1))
    for before, end in zip([start, *offsets], offsets, strict=False):
        for task in made.partitions(before, end):
            assert isinstance(task, Task)
            assert task.drains == ("drained" in end) == (not task.reads)
    # From any of them on a new start offers the rest, and after the last one nothing.
    for number, end in enumerate(offsets):
        assert [later.get("drained", 0) for later in offered(reader(tmp_path, operator), end)] == [
            later.get("drained", 0) for later in offsets[number + 1 :]
        ]
    # More input is drained anew.
    write_history(history(0), tmp_path, FILES + 1, [FILES])
    again = offered(reader(tmp_path, operator), offsets[-1])
    assert [end.get("drained", 0) for end in again] == [0, *range(1, batches + 1)]


def test_a_job_without_an_end_does_not_drain(tmp_path: Path) -> None:
    write_history(history(0), tmp_path, FILES)
    made = reader(tmp_path, Handshake(3), ends=False)
    assert [end.get("drained", 0) for end in offered(made, made.initialOffset())] == [0] * FILES


def test_a_chain_of_another_length_drains_from_the_beginning(tmp_path: Path) -> None:
    write_history(history(0), tmp_path, FILES)
    made = reader(tmp_path, Handshake(3))
    *_, middle, end = offered(made, made.initialOffset())

    def drained(workers: int, resizes: int, start: dict[str, Any]) -> list[int]:
        return [found["drained"] for found in offered(reader(tmp_path, Handshake(workers), resizes=resizes), start)]

    assert drained(3, 0, middle) == [3] and drained(3, 0, end) == []
    assert drained(5, 1, middle) == [1, 2, 3, 4, 5]
    # As long as before, but with another length in between.
    assert drained(3, 2, middle) == [1, 2, 3]
    # One worker needs no batch, but it was several.
    assert drained(1, 1, middle) == [1]
