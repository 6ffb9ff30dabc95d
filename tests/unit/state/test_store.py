"""State on disk: versions, damage, collection."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.engine.state import Table, UnitState
from streamjoin.engine.unit import UnitReport
from streamjoin.errors import StateError
from streamjoin.index.segment import SegmentInfo, build
from streamjoin.state import store as state_store
from streamjoin.state.store import KEPT_VERSIONS, StateStore


def a_segment(rows: int = 5) -> tuple[pa.RecordBatch, SegmentInfo]:
    columns = pa.RecordBatch.from_arrays([pa.array(range(rows))], ["id"])
    return build(columns, np.arange(rows), None, {})


def write(store: StateStore, version: int, *, unit: int = 0, dropped: tuple[str, ...] = ()) -> UnitState:
    writer = store.writer(unit, version)
    info = writer.save(*a_segment())
    writer.finish()
    state = UnitState(version, {"R": Table(0, (info,))}, {"taken": [1, "a"]}, dropped=dropped)
    store.commit(unit, state, UnitReport(unit, "R0"))
    return state


def test_a_committed_state_is_read_back(tmp_path: Path) -> None:
    state = write(StateStore(tmp_path), 1)
    fresh = StateStore(tmp_path)
    assert fresh.load(0, 1) == state
    assert fresh.open_segment(0, state.segments("R")[0]).column("id").to_pylist() == list(range(5))


def test_version_zero_is_empty_and_needs_no_file(tmp_path: Path) -> None:
    assert StateStore(tmp_path).load(3, 0) == UnitState(0)


def test_live_tuples_are_those_that_all_units_store(tmp_path: Path) -> None:
    store = StateStore(tmp_path)
    assert store.live_tuples([0, 1, 2], 0) == 0
    for unit in range(3):
        write(store, 1, unit=unit)
    assert (store.live_tuples([0, 1, 2], 1), store.live_tuples([1], 1)) == (15, 5)
    with pytest.raises(StateError, match="unit 3 has no state of version 1"):
        store.live_tuples(range(4), 1)


def test_beginning_anew_over_old_state_is_refused(tmp_path: Path) -> None:
    for version in (1, 2, 3):
        write(StateStore(tmp_path), version)
    with pytest.raises(StateError, match="offsets begin anew"):
        StateStore(tmp_path).load(0, 0)


def test_a_missing_version_says_that_offsets_and_state_do_not_belong_together(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"version 4.*do not belong together"):
        StateStore(tmp_path).load(0, 4)


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"format": 99}', b'{"format": 2}', b"\xff\xfe"])
def test_a_damaged_manifest_is_named(tmp_path: Path, damage: bytes) -> None:
    write(StateStore(tmp_path), 1)
    (tmp_path / "0" / "0" / "1.json").write_bytes(damage)
    with pytest.raises(StateError, match=r"1\.json"):
        StateStore(tmp_path).load(0, 1)


def test_a_lost_segment_is_an_error_and_not_a_silent_hole(tmp_path: Path) -> None:
    state = write(StateStore(tmp_path), 1)
    (tmp_path / "0" / "0" / state.segments("R")[0].file).unlink()
    with pytest.raises(StateError, match="is lost"):
        StateStore(tmp_path).open_segment(0, state.segments("R")[0])


@pytest.mark.parametrize("keep", [0, 10, 300])
def test_a_torn_segment_is_an_error(tmp_path: Path, keep: int) -> None:
    state = write(StateStore(tmp_path), 1)
    path = tmp_path / "0" / "0" / state.segments("R")[0].file
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(StateError, match="damaged"):
        StateStore(tmp_path).open_segment(0, state.segments("R")[0])


def test_a_segment_of_another_length_than_its_manifest_says_is_an_error(tmp_path: Path) -> None:
    state = write(StateStore(tmp_path), 1)
    (info,) = state.segments("R")
    path = tmp_path / "0" / "0" / info.file
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(StateError, match=r"is damaged: it has [0-9,]+ bytes where its manifest says"):
        StateStore(tmp_path).open_segment(0, info)


def test_a_segment_with_other_rows_than_its_manifest_says_is_an_error(tmp_path: Path) -> None:
    state = write(StateStore(tmp_path), 1)
    info = state.segments("R")[0]
    wrong = SegmentInfo(**{**info.to_json(), "rows": 6})
    with pytest.raises(StateError, match="holds 5 rows where its manifest says 6"):
        StateStore(tmp_path).open_segment(0, wrong)


def test_writing_a_version_again_changes_nothing(tmp_path: Path) -> None:
    store = StateStore(tmp_path)
    first = write(store, 1)
    names = sorted(path.name for path in (tmp_path / "0" / "0").iterdir())
    assert write(StateStore(tmp_path), 1) == first
    assert sorted(path.name for path in (tmp_path / "0" / "0").iterdir()) == names


def test_nothing_is_visible_before_the_manifest(tmp_path: Path) -> None:
    store = StateStore(tmp_path)
    writer = store.writer(0, 1)
    writer.save(*a_segment())
    assert store.versions(0) == []
    writer.finish()
    assert store.versions(0) == []


def test_a_task_that_repeats_one_thought_lost_writes_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both write the same segment, on two machines whose processes have one number, and one of them dies half way."""
    store = StateStore(tmp_path)
    writer = store.writer(0, 1)
    info = writer.save(*a_segment(5_000))

    def dies_half_way(path: Path, rows: pa.RecordBatch) -> None:
        path.write_bytes(b"ARROW1")
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(state_store, "write_rows", dies_half_way)
    with pytest.raises(OSError, match="Input/output"):
        StateStore(tmp_path).writer(0, 1).save(*a_segment(5_000))
    writer.finish()
    store.commit(0, UnitState(1, {"R": Table(0, (info,))}), UnitReport(0, "R0"))
    assert StateStore(tmp_path).open_segment(0, info).num_rows == 5_000
    assert store.sweep() == 1, "what the other one left"


def test_old_versions_and_their_last_segments_are_collected(tmp_path: Path) -> None:
    store = StateStore(tmp_path)
    before = ""
    for version in range(1, KEPT_VERSIONS + 6):
        state = write(store, version, dropped=(before,) if before else ())
        before = state.segments("R")[0].file
        store.collect(0, version)
    assert store.versions(0) == list(range(6, KEPT_VERSIONS + 6))
    for version in store.versions(0):  # whatever is kept can still be read in full
        for info in StateStore(tmp_path).load(0, version).segments("R"):
            StateStore(tmp_path).open_segment(0, info)
    assert len(list((tmp_path / "0" / "0").glob("*.arrow"))) <= KEPT_VERSIONS + 1


def test_a_sweep_removes_what_no_manifest_names_and_nothing_else(tmp_path: Path) -> None:
    store = StateStore(tmp_path)
    write(store, 1)
    write(store, 2)
    folder = tmp_path / "0" / "0"
    for name in ("7-0.arrow", ".2-1.arrow.123", ".3.json.9"):
        (folder / name).write_bytes(b"left behind")
    assert StateStore(tmp_path).sweep() == 3
    assert sorted(path.name for path in folder.iterdir()) == ["1-0.arrow", "1.json", "2-0.arrow", "2.json"]


def test_a_sweep_meets_a_task_that_takes_its_own_file_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(StateStore(tmp_path), 1)
    folder = tmp_path / "0" / "0"
    for name in (".2.json.7", ".2.json.8"):
        (folder / name).write_bytes(b"not whole")
    unlink = Path.unlink

    def both_gone(path: Path, missing_ok: bool = False) -> None:
        for name in (".2.json.7", ".2.json.8"):
            unlink(folder / name, missing_ok=True)
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", both_gone)
    StateStore(tmp_path).sweep()
    assert sorted(path.name for path in folder.iterdir()) == ["1-0.arrow", "1.json"]


def test_two_processes_share_one_copy_of_a_segment(tmp_path: Path) -> None:
    state = write(StateStore(tmp_path), 1)
    rows = StateStore(tmp_path).open_segment(0, state.segments("R")[0])
    # Memory-mapped: Arrow's own pool holds nothing of it.
    before = pa.total_allocated_bytes()
    StateStore(tmp_path).open_segment(0, state.segments("R")[0])
    assert pa.total_allocated_bytes() - before < 1_000
    assert rows.num_rows == 5


def test_a_manifest_of_the_format_before_is_refused_with_the_way_out(tmp_path: Path) -> None:
    """`format_1.json` was written by a chain when manifests had its fields."""
    path = tmp_path / "0" / "1" / "3.json"
    path.parent.mkdir(parents=True)
    path.write_bytes((Path(__file__).parent / "format_1.json").read_bytes())
    with pytest.raises(
        StateError, match=r"^manifest 3\.json has format 1 .* reads format 2; use another run\.checkpoint"
    ):
        StateStore(tmp_path).load(1, 3)


def test_tables_and_values_come_back_whatever_their_names(tmp_path: Path) -> None:
    store = StateStore(tmp_path, sync=False)
    writer = store.writer(0, 1)
    infos = [writer.save(*a_segment(rows)) for rows in (1, 2, 3, 4)]
    writer.finish()
    tables = {
        "left": Table(0, tuple(infos[:2])),
        "right, late": Table(1, (infos[2],)),
        "answers": Table(None, (infos[3],)),
    }
    state = UnitState(1, tables, {"windows": [[1, "a"], [2, None]], "open": {"k": 1.5}})
    store.commit(0, state, UnitReport(0, "R0"))
    assert StateStore(tmp_path).load(0, 1) == state
    assert list(state.tuples()) == infos[:3] and list(state.tuples(1)) == infos[2:3]
    assert store.live_tuples([0], 1) == 1 + 2 + 3
    assert store.sweep() == 0, "a file of a table was taken for one that nothing names"
