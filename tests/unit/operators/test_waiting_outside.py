"""Tuples that wait outside: in order, in files of which few are opened and written in a batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.engine.state import Table, UnitState
from streamjoin.flow.block import TS
from streamjoin.index.segment import SegmentInfo
from streamjoin.index.view import CELL
from streamjoin.operators.meshjoin import MeshJoin, waiting
from streamjoin.operators.meshjoin.step import BUFFER, QUEUE
from streamjoin.operators.meshjoin.waiting import Buffer, info_of
from streamjoin.plan.window import R

ROW_BYTES = 24
FILE_ROWS = 100
FILE_BYTES = 7 * ROW_BYTES
"""What a file has beside its rows."""


class Folder:
    """Files, and how many rows of them have been written and opened."""

    def __init__(self) -> None:
        self.files: dict[str, pa.RecordBatch] = {}
        self.written = self.opened = 0

    def save(self, rows: pa.RecordBatch) -> SegmentInfo:
        info = info_of(rows)
        info = replace(info, file=f"{len(self.files)}.arrow", bytes=info.bytes + FILE_BYTES)
        self.files[info.file] = rows
        self.written += rows.num_rows
        return info

    def open(self, info: SegmentInfo) -> pa.RecordBatch:
        self.opened += info.rows
        return self.files[info.file]


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "FILE_BYTES_MAX", FILE_ROWS * ROW_BYTES)


def rows_from(first: int, count: int) -> pa.RecordBatch:
    numbers = np.arange(first, first + count)
    return pa.RecordBatch.from_arrays(
        [pa.array(numbers), pa.array(numbers * 7 % 1_000), pa.array(numbers)], ["n", TS, CELL]
    )


def numbers_of(parts: list[pa.RecordBatch]) -> list[int]:
    return [number for part in parts for number in part.column("n").to_pylist()]


def entered(buffer: Buffer, count: int) -> Iterator[pa.RecordBatch]:
    """Take so many, or all there are."""
    while count and (first := buffer.first) is not None:
        some = min(count, first.num_rows)
        yield buffer.take(some)
        count -= some


def test_tuples_enter_once_and_in_order_however_they_were_written() -> None:
    rng, folder = np.random.default_rng(7), Folder()
    kept: tuple[SegmentInfo, ...] = ()
    came = gone = 0
    for batch in range(300):
        buffer = Buffer(kept, folder.open)
        count = int(rng.choice([0, 1, 3, 40, 99, 100, 101, 350]))
        buffer.add(rows_from(came, count))
        came += count
        for _ in range(int(rng.integers(1, 4))):
            taken = numbers_of(list(entered(buffer, int(rng.choice([0, 1, 30, 130])))))
            assert taken == list(range(gone, gone + len(taken))), f"batch {batch}"
            gone += len(taken)
        assert len(buffer) == came - gone
        kept = buffer.saved(folder.save)
        held = [folder.files[info.file] for info in kept]
        assert numbers_of(held) == list(range(gone, came))
        assert all(rows.num_rows <= FILE_ROWS for rows in held)
        for info, rows in zip(kept, held, strict=True):  # the output's mark waits for the oldest tuple that is there
            times = rows.column(TS).to_pylist()
            assert (info.rows, info.ts_min_us, info.ts_max_us) == (rows.num_rows, min(times), max(times))
    assert gone > 1_000
    assert came - gone > 1_000


def test_a_batch_reads_and_writes_what_enters_and_comes_however_much_waits() -> None:
    folder = Folder()
    buffer = Buffer((), folder.open)
    buffer.add(rows_from(0, 1_000 * FILE_ROWS))
    kept = buffer.saved(folder.save)
    assert len(kept) == 1_000
    for batch in range(30):
        folder.written = folder.opened = 0
        buffer = Buffer(kept, folder.open)
        buffer.add(rows_from(10**6 + 90 * batch, 90))
        assert sum(some.num_rows for some in entered(buffer, 70)) == 70
        kept = buffer.saved(folder.save)
        assert folder.opened <= 2 * FILE_ROWS, "more was opened than enters"
        assert folder.written <= 90 + FILE_ROWS, "more was written than came, and one file"


def test_small_files_become_larger_ones() -> None:
    folder, batches = Folder(), 3_000
    kept: tuple[SegmentInfo, ...] = ()
    for batch in range(batches):
        buffer = Buffer(kept, folder.open)
        buffer.add(rows_from(batch, 1))
        kept = buffer.saved(folder.save)
    assert numbers_of([folder.files[info.file] for info in kept]) == list(range(batches))
    assert len(kept) <= 2 * batches / FILE_ROWS + np.log2(FILE_ROWS) + 1
    assert folder.written <= batches * (np.log2(FILE_ROWS) + 1), "a row was written for each time that others came"


def test_where_nothing_enters_and_nothing_comes_nothing_is_opened() -> None:
    folder = Folder()
    buffer = Buffer((), folder.open)
    buffer.add(rows_from(0, 250))
    kept = buffer.saved(folder.save)
    folder.written = 0
    again = Buffer(kept, folder.open)
    assert len(again) == 250
    assert again.saved(folder.save) == kept
    assert (folder.written, folder.opened) == (0, 0)


def test_a_tuple_larger_than_a_file_has_one_of_its_own() -> None:
    folder = Folder()
    numbers = pa.array([0, 1, 2])
    texts = pa.array(["a", "b" * 10 * FILE_ROWS * ROW_BYTES, "c"])
    buffer = Buffer((), folder.open)
    buffer.add(pa.RecordBatch.from_arrays([numbers, numbers, numbers, texts], ["n", TS, CELL, "text"]))
    kept = buffer.saved(folder.save)
    assert [info.rows for info in kept] == [1, 1, 1]
    assert numbers_of(list(entered(Buffer(kept, folder.open), 3))) == [0, 1, 2]


def test_of_what_waits_outside_only_the_beginning_is_fetched_ahead() -> None:
    def files(name: str, count: int) -> Table:
        return Table(R, tuple(SegmentInfo(f"{name}{number}", 1, 1, 0, 0, 0) for number in range(count)))

    state = UnitState(1, {QUEUE: files("queue", 20), BUFFER: files("buffer", 20)})
    ahead = [info.file for info in MeshJoin(1).opened(state)]
    assert ahead == [f"queue{number}" for number in range(20)] + [f"buffer{number}" for number in range(8)]
