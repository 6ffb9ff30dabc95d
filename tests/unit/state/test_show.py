"""What `state ls` and `state show` print of jobs of one stage and of several."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.engine.state import NUMBERS, Table, UnitState
from streamjoin.engine.unit import UnitReport
from streamjoin.errors import InputError
from streamjoin.flow.punctuation import StreamClock
from streamjoin.index.segment import build
from streamjoin.state import show
from streamjoin.state.generation import Generation
from streamjoin.state.objectstore import ObjectStates
from streamjoin.state.places import AnyStates
from streamjoin.state.root import ObjectRoot
from streamjoin.state.show import list_units, show_units
from streamjoin.state.store import StateStore
from tests.servers.objects import folder_root


def put(
    store: AnyStates,
    unit: int,
    label: str,
    rows: int | None,
    values: Mapping[str, Any] | None = None,
    totals: Mapping[str, int] | None = None,
    version: int = 1,
) -> None:
    """A unit's state: with a table of so many rows, or without any."""
    tables = {}
    if rows is not None:
        batch = pa.RecordBatch.from_arrays([pa.array(range(rows), pa.int64())], ["id"])
        writer = store.writer(unit, version)
        tables["R"] = Table(0, (writer.save(*build(batch, np.arange(rows), None, {})),) if rows else ())
        writer.finish()
    if isinstance(store, StateStore):
        store.directory(unit).mkdir(parents=True, exist_ok=True)
    clocks = (StreamClock(rows=rows or 0, mark_us=7), StreamClock())
    state = UnitState(version, tables, values or {}, clocks, totals or {})
    store.commit(unit, state, UnitReport(unit, label))
    store.settle()


def stages_of(folder: Path) -> Path:
    """A join, a join of what it finds, groups without any view now, a lookup, and a later round."""
    root = folder / "state"
    stages = [StateStore(root, number, sync=False) for number in range(5)]
    put(stages[0], 0, "R0", 3, totals={"received_store": 3})
    put(stages[0], 1, "S0", 4, totals={"received_store": 4})
    put(stages[1], 0, "R0", 5, totals={"received_store": 5})
    put(stages[2], 0, "G0", 0)
    put(stages[3], 0, "L0", None, {"relation": "customers", "version": 2}, {"received_probe": 9})
    put(stages[4], 0, "node 0", None, {NUMBERS: [0]}, {"received_probe": 9})
    return root


def table_of(text: str) -> list[tuple[str, int, str]]:
    """Of each line: the unit, its rows, and what is said of its times."""
    head, *lines = text.splitlines()
    end, label = head.index("MiB") + 3, head.index("unit") + 4
    return [(line[:label].strip(), int(line[label:end].split()[2]), line[end:].strip()) for line in lines[:-1]]


def test_every_stage_is_listed_with_the_labels_of_reports(tmp_path: Path) -> None:
    stages_of(tmp_path)
    text = list_units(tmp_path)
    found = table_of(text)
    assert [(unit, rows) for unit, rows, _ in found] == [
        ("1.R0", 3), ("1.S0", 4), ("2.R0", 5), ("3.G0", 0), ("4.L0", 0), ("5.node 0", 0)
    ]  # fmt: skip
    said = [words for _, rows, words in found if not rows]
    assert said == ["-", "- (joins version 2 of customers)", "- (keeps nothing of its own)"]
    assert text.splitlines()[-1].split()[:3] == ["all", "3", "12"]
    # Also by the folder of the state itself.
    assert list_units(tmp_path / "state") == text


def test_one_stage_alone_and_none_that_there_is_not(tmp_path: Path) -> None:
    stages_of(tmp_path)
    text = list_units(tmp_path, 2)
    assert [unit for unit, *_ in table_of(text)] == ["2.R0"] and text.splitlines()[-1].split()[:3] == ["all", "1", "5"]
    for number in (0, 6, -1):
        with pytest.raises(InputError, match=rf"there is no stage {number}; stages are 1, 2, 3, 4, 5$"):
            list_units(tmp_path, number)


def test_units_are_shown_by_label_and_within_a_stage_by_number(tmp_path: Path) -> None:
    stages_of(tmp_path)
    everything = show_units(tmp_path)
    assert [line.split(",")[0] for line in everything.splitlines() if line.startswith("unit ")] == [
        "unit 1.R0", "unit 1.S0", "unit 2.R0", "unit 3.G0", "unit 4.L0", "unit 5.node 0"
    ]  # fmt: skip
    assert show_units(tmp_path, "2.R0") == show_units(tmp_path, 0, 2) == show_units(tmp_path, "R0", stage=2)
    assert show_units(tmp_path, "2.R0").startswith("unit 2.R0, version 1\n  R: 5 tuples so far")
    assert "5 rows" in show_units(tmp_path, "2.R0")
    # S0 is there once, and nobody has to say where.
    assert show_units(tmp_path, "S0") == show_units(tmp_path, "1.S0")
    assert "S:" not in show_units(tmp_path, "3.G0")
    assert show_units(tmp_path, "5.node 0").splitlines()[0] == "unit 5.node 0, version 1, keeps nothing of its own"
    with pytest.raises(InputError, match=r"several stages have a unit R0; name one of 1.R0, 2.R0, or its --stage"):
        show_units(tmp_path, "R0")
    with pytest.raises(InputError, match=r"there is no unit 99; units are 1.R0, 1.S0, 2.R0, 3.G0, 4.L0, 5.node 0$"):
        show_units(tmp_path, 99)
    with pytest.raises(InputError, match=r"there is no unit 2.R0; units are 1.R0, 1.S0$"):
        show_units(tmp_path, "2.R0", 1)


def test_a_job_of_one_stage_has_numbers(tmp_path: Path) -> None:
    store = StateStore(tmp_path / "state", sync=False)
    put(store, 0, "R0", 3)
    put(store, 1, "S0", None, {"relation": "customers", "version": 2})
    at = "1970-01-01T00:00:00.000Z"
    assert list_units(tmp_path).splitlines() == [
        " unit  version  segments         rows      MiB  oldest and newest event time",
        f"    0        1         1            3      0.0  {at} .. {at}",
        "    1        1         0            0      0.0  -",
        "  all                  1            3      0.0",
    ]
    shown = show_units(tmp_path, "0")
    assert shown == show_units(tmp_path, "R0") and shown.startswith("unit 0, version 1\n")
    assert "  S: 0 tuples so far, watermark none yet" in shown.splitlines()


def test_the_folder_of_a_stage_is_no_state(tmp_path: Path) -> None:
    root = stages_of(tmp_path)
    with pytest.raises(InputError, match=r"is one stage of a state; name the checkpoint or .*/state, with --stage 3$"):
        list_units(root / "2")
    with pytest.raises(InputError, match=r"is not a checkpoint of a job"):
        list_units(root / "2" / "0")
    # A checkpoint may be called by digits.
    put(StateStore(tmp_path / "77" / "state", sync=False), 0, "R0", 3)
    assert "    0        1" in list_units(tmp_path / "77")


def test_units_that_left_a_later_round_are_left_out(tmp_path: Path) -> None:
    first, later = (StateStore(tmp_path / "state", number, sync=False) for number in range(2))
    put(first, 0, "node 0", 3)
    for version, numbers in ((1, [0, 1]), (2, [0])):
        for unit in numbers:
            put(later, unit, f"node {unit}", None, {NUMBERS: numbers}, version=version)
    assert [unit for unit, *_ in table_of(list_units(tmp_path))] == ["1.node 0", "2.node 0"]


def test_every_stage_of_a_store_of_objects_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (checkpoint := tmp_path / "checkpoint").mkdir()
    (checkpoint / "job.json").write_text(json.dumps({"units": [2, 1]}))
    root = folder_root(tmp_path / "store", tmp_path / "cache")
    generation = Generation(root, checkpoint, 2, 0)
    for stage, labels in enumerate((["R0", "S0"], ["G0"])):
        for unit, label in enumerate(labels):
            put(ObjectStates(generation.root, stage), unit, label, 3 + unit)

    def opened(uri: str, *_: Any) -> ObjectRoot:
        assert uri == root.uri
        return root

    monkeypatch.setattr(show, "root_of", opened)
    assert [(unit, rows) for unit, rows, _ in table_of(list_units(root.uri))] == [("1.R0", 3), ("1.S0", 4), ("2.G0", 3)]
    assert show_units(root.uri, "2.G0").startswith("unit 2.G0, version 1\n")
