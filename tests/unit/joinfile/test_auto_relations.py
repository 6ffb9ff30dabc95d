"""Which operator `auto` takes for a relation: by the room on the disk, by knobs, and as a checkpoint was begun."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from streamjoin.errors import InputError
from streamjoin.explain.plans import explain
from streamjoin.operators import registry
from streamjoin.operators.choosing import RULES, Given
from streamjoin.operators.kind import Joins
from streamjoin.sources.asked import asked_by
from streamjoin.sources.fileread import FileRead
from streamjoin.spec.job import IDENTITY_FILE
from streamjoin.spec.room import given

from .conftest import Changes, Try

ROWS = 5_000
KEPT = ROWS * (8 + 12 + 4 + 16)
"""A number, a text of 12 letters with its offset, and what the index has of each row; less than that by one bit a row
if the columns have no NULL."""
JOIN = "SELECT ONLINE o.id, c.name FROM orders AS o JOIN customers AS c ON o.k = c.id"
BAND = JOIN.replace("o.k = c.id", "o.k < c.id")
MIXED = (
    "SELECT ONLINE o.id, c.name FROM orders AS o JOIN payments AS p ON o.k = p.k JOIN customers AS c ON o.k = c.id "
    "WITHIN 10 SECONDS"
)


@pytest.fixture(autouse=True)
def customers(folder: Path) -> Path:
    """A relation of which two columns are read, and a wide one is not."""
    rows = pa.table({
        "id": list(range(ROWS)), "name": ["abcdefghijkl"] * ROWS, "wide": ["x" * 500] * ROWS,
    })  # fmt: skip
    pq.write_table(rows, folder / "customers.parquet")
    return folder


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The disk as it says how much room it has."""
    said = SimpleNamespace(free=1 << 50)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: said)
    return said


def changes(query: str = JOIN, **operator: Any) -> Changes:
    return {
        "relations": {"customers": {"source": "parquet", "path": "customers.parquet"}}, "query": query,
        **{f"operator/{name}": value for name, value in operator.items()},
    }  # fmt: skip


@pytest.mark.parametrize("room", [2.1, 1.9, 0.0])
@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_footers_alone_lead_to_the_same_choice_where_rows_are_not_to_be_read(
    format: str, room: float, folder: Path, disk: SimpleNamespace, validate: Try, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = {"id": list(range(ROWS)), "x": pa.array([1.5] * ROWS), "fits": [True] * ROWS, "wide": ["x" * 99] * ROWS}
    rows = pa.table(columns)
    if format == "parquet":
        pq.write_table(rows, folder / "customers.parquet", row_group_size=ROWS // 3)
    else:
        pa.feather.write_feather(rows, str(folder / "customers.parquet"))
    entry = {"source": format, "path": "customers.parquet"}
    asked = {**changes(JOIN.replace("c.name", "c.x, c.fits")), "relations": {"customers": entry}}
    disk.free = int(room * ROWS * (8 + 8 + 1 / 8 + 16))
    known = validate(asked)
    assert known.operator == ("lookup" if room > 2 else "ssbj")
    monkeypatch.setattr(FileRead, "rows", None)
    with asked_by(nobody):
        bound = validate(asked)
    assert (bound.operator, bound.reason) == (known.operator, known.reason)


@pytest.mark.parametrize(("room", "operator"), [(2.1, "lookup"), (1.9, "ssbj")])
def test_texts_count_as_footers_have_them_where_rows_are_not_to_be_read(
    room: float, operator: str, folder: Path, disk: SimpleNamespace, validate: Try, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.table({"id": list(range(ROWS)), "name": ["abcdefghijkl"] * ROWS, "wide": ["x" * 500] * ROWS})
    pq.write_table(rows, folder / "customers.parquet", use_dictionary=False)
    disk.free = int(room * KEPT)
    monkeypatch.setattr(FileRead, "rows", None)
    with asked_by(nobody):
        assert validate(changes()).operator == operator


def nobody(*given: Any) -> pa.Schema:
    """Answers for servers; no query here names one."""
    raise AssertionError(given)


@pytest.mark.parametrize(("room", "operator"), [(2.1, "lookup"), (1.9, "ssbj"), (0.0, "ssbj")])
def test_a_relation_is_sorted_if_the_disk_has_room_twice(
    room: float, operator: str, disk: SimpleNamespace, validate: Try
) -> None:
    disk.free = int(room * KEPT)
    bound = validate(changes())
    assert bound.operator == operator
    assert [one.name for one in bound.job().operators] == [operator]
    shown = explain(bound)
    assert str(shown).count("chosen by auto; ") == 1
    if operator == "ssbj":
        assert "sorting takes about 0 MiB and the disk has 0 MiB free" in shown.reason
        assert shown.to_json()["operator"] == "ssbj" and shown.to_json()["reason"] == shown.reason
    else:
        assert (
            shown.reason == "chosen by auto; a relation is sorted once, and each row of the stream is looked up in it"
        )


def test_what_is_kept_is_what_the_query_reads(disk: SimpleNamespace, validate: Try) -> None:
    known = given(validate(changes()).file, validate(changes()).plan)
    assert known.kept_bytes == pytest.approx(KEPT, rel=0.02) and known.free_bytes == 1 << 50
    wide = validate(changes(JOIN.replace("c.name", "c.name, c.wide")))
    assert given(wide.file, wide.plan).kept_bytes == pytest.approx(KEPT + 504 * ROWS, rel=0.02)


def test_files_that_do_not_tell_their_rows_count_as_large_as_they_are(
    folder: Path, disk: SimpleNamespace, validate: Try
) -> None:
    (folder / "c.csv").write_text("id,name\n" + "1,Ada\n" * 1_000)
    bound = validate({**changes(), "relations": {"customers": {"source": "csv", "path": "c.csv"}}})
    assert given(bound.file, bound.plan).kept_bytes == 6_008
    disk.free = 12_015
    assert validate({**changes(), "relations": {"customers": {"source": "csv", "path": "c.csv"}}}).operator == "ssbj"


def test_what_cannot_be_read_in_parts_is_sorted_however_little_room_there_is(
    disk: SimpleNamespace, validate: Try
) -> None:
    disk.free = 0
    assert validate(changes(BAND)).operator == "lookup"
    assert validate(changes(index="tree")).operator == "lookup"


def test_streams_beside_a_relation_are_joined_by_an_operator_of_streams(disk: SimpleNamespace, validate: Try) -> None:
    assert [one.name for one in validate(changes(MIXED)).job().operators] == ["biclique", "lookup"]
    disk.free = 0
    assert [one.name for one in validate(changes(MIXED)).job().operators] == ["biclique", "ssbj"]


@pytest.mark.parametrize("knob", [{"memory": 8}, {"rate": 1_000}])
def test_who_bounds_memory_or_gives_a_rate_gets_what_has_these(
    knob: dict[str, int], disk: SimpleNamespace, validate: Try
) -> None:
    bound = validate(changes(**knob))
    assert bound.operator == "ssbj"
    assert f"operator.{next(iter(knob))} is given" in explain(bound).reason
    with pytest.raises(InputError, match="lookup has no such knob"):
        validate(changes(BAND, **knob))


@pytest.mark.parametrize(
    ("lasting", "free", "operator"),
    [
        ("lookup", 0, "lookup"),
        ("ssbj, 2 units", 1 << 50, "ssbj"),
        ("meshjoin, 2 units", 1 << 50, "meshjoin"),
    ],
)
def test_a_checkpoint_keeps_what_it_was_begun_with(
    lasting: str, free: int, operator: str, disk: SimpleNamespace, validate: Try
) -> None:
    used = {"run/checkpoint": f"begun-with-{operator}"}
    checkpoint = validate({**changes(), **used}).file.checkpoint
    checkpoint.mkdir()
    (checkpoint / IDENTITY_FILE).write_text(json.dumps({"operator": lasting}))
    disk.free = free
    bound = validate({**changes(), **used})
    assert bound.operator == operator
    assert "the checkpoint was begun with" in explain(bound).reason
    assert explain(validate({**changes(name="lookup"), **used})).reason == "as the join file says"


def test_rules_are_tried_in_order_and_the_last_always_says_something(validate: Try) -> None:
    streams = validate({}).plan
    assert RULES[-1](streams, Given(), registry.CANDIDATES) is not None
    for rule in RULES:
        known = Given(knobs=["memory"], kept_bytes=9, free_bytes=0, earlier="ssbj")
        said = rule(streams, known, registry.CANDIDATES)
        assert said is None or said.operator == "biclique", rule
    assert registry.chosen(streams).operator == registry.choose(streams) == registry.choose() == "biclique"


def test_the_first_of_a_sort_runs_what_others_leave() -> None:
    assert [registry.usual(joins) for joins in Joins] == ["biclique", "asof", "lookup"]
    assert registry.OF_RELATIONS == ("lookup", "ssbj", "meshjoin")
