"""Files of a relation are mapped, and the kernel is told when nearly all of one is going to be looked at."""

from __future__ import annotations

import mmap
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.engine.loop import Brought, Loop
from streamjoin.errors import StateError
from streamjoin.index.files import MappedFile, mapped_file, write_rows
from streamjoin.operators.lookup import Lookup
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import Cascade
from streamjoin.query import plan_query
from streamjoin.relations.versions import Tables, Versions
from streamjoin.state.memory import MemoryStates

ROWS = 20_000
STREAM = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.int64())])
RELATION = pa.schema([("k", pa.int64()), ("name", pa.string())])
INPUTS = {"s": StreamSchema("s", STREAM, "ts"), "r": StreamSchema.of_relation("r", RELATION)}


class Advised:
    """In place of a mapping: what the kernel was told of it."""

    def __init__(self, bytes: int, refuses: bool = False) -> None:
        self.bytes = bytes
        self.refuses = refuses
        self.told: list[int] = []

    def __len__(self) -> int:
        return self.bytes

    def madvise(self, option: int) -> None:
        self.told.append(option)
        if self.refuses:
            raise OSError("Invalid argument")


def relation() -> pa.RecordBatch:
    names = pa.array([f"{number:0100d}" for number in range(ROWS)])
    return pa.RecordBatch.from_arrays([pa.array(np.arange(ROWS)), names], schema=RELATION)


@pytest.mark.parametrize("refuses", [False, True])
def test_the_kernel_is_told_when_it_changes_how_much_is_looked_at(tmp_path: Path, refuses: bool) -> None:
    write_rows(tmp_path / "rows", relation())
    file: Any = mapped_file(tmp_path / "rows", ROWS, "version")
    assert file.rows.equals(relation())
    file._map = Advised(1 << 20, refuses)
    for places in (15, 1, 16, 1_000, 3, 0, 20):  # of 64 KiB there are 16
        file.expect(places)
    assert file._map.told == [mmap.MADV_HUGEPAGE, mmap.MADV_NOHUGEPAGE, mmap.MADV_HUGEPAGE]


def test_a_system_without_large_pages_is_told_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_rows(tmp_path / "rows", relation())
    file: Any = mapped_file(tmp_path / "rows", ROWS, "version")
    file._map = Advised(1 << 20)
    monkeypatch.delattr(mmap, "MADV_HUGEPAGE")
    file.expect(1_000)
    assert file._map.told == []


def test_a_batch_says_of_each_file_how_many_of_its_rows_meet_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected: list[tuple[int, int]] = []
    real = MappedFile.expect

    def expect(file: MappedFile, places: int) -> None:
        real(file, places)
        expected.append((file.rows.num_rows, places))

    monkeypatch.setattr(MappedFile, "expect", expect)
    plan = plan_query("SELECT ONLINE s.k, r.name FROM s JOIN r ON s.k = r.k", INPUTS)
    assert isinstance(plan, Cascade)
    (joins,) = (stage.plan for stage in plan.stages)
    assert isinstance(joins, JoinPlan)
    assert Versions(tmp_path, "r", sync=False).read([(relation(), 0)], {0: joins}, "made") is not None
    states = MemoryStates()
    loop = Loop(plan, (Lookup(1),), lambda stage: states, tables=Tables(tmp_path))
    for number, keys in enumerate(([3], range(0, ROWS, 5), [ROWS + 1])):
        times = pa.array(np.arange(len(keys))).cast(STREAM.field("ts").type)
        rows = pa.RecordBatch.from_arrays([times, pa.array(list(keys), pa.int64())], schema=STREAM)
        brought = Brought([[rows]], number, versions={"r": 1})
        found = sum(part.num_rows for _, part in loop.batch(brought))
        assert found == (0 if number == 2 else len(keys))
        loop.commit(brought)
    assert expected == [(ROWS, 1), (ROWS, ROWS // 5)]


def test_a_file_that_is_empty_cut_or_gone_is_named(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows", relation())
    whole = (tmp_path / "rows").read_bytes()
    for content, words in ((b"", "is damaged: cannot mmap an empty file"), (whole[: len(whole) // 2], "is damaged: ")):
        (tmp_path / "rows").write_bytes(content)
        with pytest.raises(StateError, match=f"segment .*rows {words}"):
            mapped_file(tmp_path / "rows", ROWS, "version")
    (tmp_path / "rows").unlink()
    with pytest.raises(StateError, match=r"segment .*rows is lost; without it"):
        mapped_file(tmp_path / "rows", ROWS, "version")
    write_rows(tmp_path / "rows", relation().slice(1))
    with pytest.raises(StateError, match=f"holds {ROWS - 1} rows where its version says {ROWS}"):
        mapped_file(tmp_path / "rows", ROWS, "version")


def test_another_checkpoint_at_the_same_place_has_versions_of_its_own(tmp_path: Path) -> None:
    """Workers of a Spark session outlive a checkpoint that is removed, and the next one counts from 1 again."""
    plan = plan_query("SELECT ONLINE s.k, r.name FROM s JOIN r ON s.k = r.k", INPUTS)
    assert isinstance(plan, Cascade)
    (joins,) = (stage.plan for stage in plan.stages)
    assert isinstance(joins, JoinPlan)
    opened = Tables(tmp_path)
    for name in ("old", "new"):
        shutil.rmtree(tmp_path / "r", ignore_errors=True)
        rows = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([name])], schema=RELATION)
        Versions(tmp_path, "r", sync=False).read([(rows, 0)], {0: joins}, "made")
        first = opened.open("r", 0, 1, joins)
        assert first.segments[0].rows.column("name").to_pylist() == [name]
        assert opened.open("r", 0, 1, joins) is first
