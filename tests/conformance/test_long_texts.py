"""Long texts of hot keys: what is taken into one array is bounded by its bytes, and no pair is lost or given twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.engine import emit
from streamjoin.flow import block, portions
from streamjoin.flow.portions import is_text, texts_of
from streamjoin.index import chain
from streamjoin.index.segment import SegmentInfo
from streamjoin.operators.aggregate import views
from streamjoin.operators.asof import step, versions
from streamjoin.operators.asof.versions import Found, Sorted, Versions
from streamjoin.plan.aggregate import AggregatePlan
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query

from .loops import AT_ONCE, OPERATORS, given, joined, loop_of

COLUMNS = pa.schema(
    [("ts", pa.int64()), ("id", pa.int64()), ("k", pa.int64()), ("sym", pa.string()), ("x", pa.string())]
)
STREAMS = {name: StreamSchema(name, COLUMNS, "ts", "us", 0) for name in "abc"}
BYTES = 400
"""Of texts that are taken together, in place of 64 MiB; one text is longer than that."""
KINDS = {
    "inner": "a.id AS a, b.id AS b, a.x AS x, b.x AS y, c.x AS z FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k",
    "left": "a.id AS a, b.id AS b, a.x AS x, c.x AS z FROM a LEFT JOIN b ON a.k = b.k AND b.id > 9 "
    "LEFT JOIN c ON a.k = c.k",
    "semi": "a.id AS a, b.id AS b, a.x AS x FROM a LEFT SEMI JOIN c ON a.k = c.k JOIN b ON a.k = b.k",
    "distinct": "DISTINCT a.k AS k, b.x AS y FROM a JOIN b ON a.k = b.k",
}
BETWEEN = [
    *((kind, "biclique by hash") for kind in KINDS),
    ("inner", "handshake"),
    ("distinct", "handshake"),
    *(("inner", operator) for operator in AT_ONCE),
]
Row = dict[str, Any]


def rows(seed: int, count: int = 30) -> pa.RecordBatch:
    """Two keys, the second of them hot, with texts of 3 to 60 letters and one of 900."""
    made = []
    for number in range(count):
        text = chr(97 + seed) * (900 if number == 7 else 3 + (number * 17) % 58)
        hot = number % 5 > 0
        made.append({"ts": number, "id": number, "k": int(hot), "sym": "hot" * 10 if hot else "cold", "x": text})
    return pa.RecordBatch.from_pylist(made, COLUMNS)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes of each array of texts that was taken, of more than one row; texts are taken by few bytes together."""
    found: list[int] = []
    take = emit.take

    def watched(values: pa.Array, at: np.ndarray) -> pa.Array:
        got = take(values, at)
        if at.size > 1 and is_text(values.type):
            found.append(text_bytes(got))
        return got

    for module in (emit, versions):
        monkeypatch.setattr(module, "take", watched)
    monkeypatch.setattr(portions, "BYTES_A_BATCH", BYTES)
    monkeypatch.setattr(portions, "BYTES_TOGETHER", 4 * BYTES)
    return found


def text_bytes(values: pa.Array) -> int:
    return int(portions.sizes(portions.offsets_of(values), np.arange(len(values))).sum())


def found_by(operator: str, query: str, streams: Sequence[pa.RecordBatch], folder: Path) -> Counter[Any]:
    """All results, of which no batch has more bytes of texts than are taken together, unless it has one row."""
    found: Counter[Any] = Counter()
    batches = 0
    for parts in given(loop_of(plan_query(query, STREAMS), operator, folder), streams):
        for part in parts:
            batches += 1
            assert part.num_rows == 1 or sum(map(text_bytes, texts_of(part))) <= BYTES
            found.update(zip(*(column.to_pylist() for column in part.columns), strict=True))
    assert batches > 10
    return found


def pairs(left: pa.RecordBatch, right: pa.RecordBatch) -> list[tuple[Row, Row]]:
    return [(one, other) for one in left.to_pylist() for other in right.to_pylist() if one["k"] == other["k"]]


@pytest.mark.parametrize("operator", [*OPERATORS, *AT_ONCE])
def test_no_more_is_taken_together_than_there_is_room_for(operator: str, tmp_path: Path, taken: list[int]) -> None:
    a, b = rows(0), rows(1)
    query = "SELECT ONLINE a.id AS a, b.id AS b, a.x AS x, b.x AS y FROM a JOIN b ON a.k = b.k WITHIN 1 SECOND"
    wanted = Counter((one["id"], other["id"], one["x"], other["x"]) for one, other in pairs(a, b))
    assert found_by(operator, query, (a, b), tmp_path) == wanted
    assert wanted.total() > 600 and max(taken) > BYTES // 2 and max(taken) <= BYTES


def test_texts_that_conditions_read_are_taken_in_portions_too(tmp_path: Path, taken: list[int]) -> None:
    a, b = rows(0), rows(1)
    query = (
        "SELECT ONLINE a.id AS a, b.x AS y FROM a JOIN b ON a.sym = b.sym AND a.x || b.x <> 'aaabbb' WITHIN 1 SECOND"
    )
    wanted = Counter((one["id"], other["x"]) for one, other in pairs(a, b) if one["x"] + other["x"] != "aaabbb")
    assert found_by("biclique by hash", query, (a, b), tmp_path) == wanted
    assert max(taken) <= BYTES


def test_rows_without_a_partner_are_given_in_portions(tmp_path: Path, taken: list[int]) -> None:
    a, b = rows(0, 120), rows(1, 1)
    query = "SELECT ONLINE a.id AS a, b.id AS b, a.x AS x FROM a LEFT JOIN b ON a.k = b.id WITHIN 1 SECOND"
    wanted = Counter((one["id"], 0 if one["k"] == 0 else None, one["x"]) for one in a.to_pylist())
    assert found_by("biclique by hash", query, (a, b), tmp_path) == wanted


@pytest.mark.parametrize("merged", [None, 3_000], ids=["in one segment", "in several"])
@pytest.mark.parametrize("on", ["a.k = b.k", "a.sym = b.sym"])
def test_an_as_of_join_gives_a_long_text_to_many_rows(
    on: str, merged: int | None, tmp_path: Path, taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (step, versions) if merged else ():
        monkeypatch.setattr(module, "MERGED_BYTES_MAX", merged)
    a, b = rows(0, 150), rows(1, 150)
    query = f"SELECT ONLINE a.id AS a, b.x AS y FROM a ASOF LEFT JOIN b ON {on} AND a.ts >= b.ts WHERE b.x <> 'none'"
    wanted: Counter[Any] = Counter()
    for one in a.to_pylist():
        best = max(other["id"] for other in b.to_pylist() if other["k"] == one["k"] and other["id"] <= one["id"])
        wanted[one["id"], b.column("x")[best].as_py()] += 1
    assert found_by("asof", query, (a, b), tmp_path) == wanted
    assert max(taken, default=0) <= BYTES


def test_an_as_of_join_looks_at_what_it_has_found_and_not_at_all_that_there_is() -> None:
    """Two segments that have more together than one array of texts holds; their pages are never touched."""
    count, size = 1_100, 1 << 20
    letters = pa.py_buffer(np.zeros(count * size, np.uint8))
    offsets = pa.py_buffer((np.arange(count + 1) * size).astype(np.int32))
    column = pa.Array.from_buffers(pa.string(), count, [None, offsets, letters])
    numbers = pa.array(np.arange(count))
    plan = plan_query(
        "SELECT ONLINE a.k AS k, b.x AS x FROM a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts",
        {name: STREAMS[name] for name in "ab"},
    )
    assert isinstance(plan, JoinPlan)
    segment = Sorted(pa.RecordBatch.from_arrays([column, numbers], ["x", "id"]), SegmentInfo("", count, 0, 0, 0, 0))
    kept = Versions(plan, [segment, segment])
    found = Found(np.array([1, -1, 0, 1]), np.array([7, -1, 5, 6]))
    got = kept.columns(found, ["x", "id"])
    assert got["id"].to_pylist() == [7, None, 5, 6]
    assert [text and len(text) for text in got["x"].to_pylist()] == [size, None, size, size]
    assert kept.sizes(found, ["x", "id"]).tolist() == [size, 0, size, size]
    nothing = kept.columns(Found(np.full(2, -1), np.full(2, -1)), ["x"])
    assert nothing["x"].to_pylist() == [None, None] and nothing["x"].type == pa.string()


@pytest.mark.parametrize(("kind", "operator"), BETWEEN)
def test_what_is_put_together_is_bounded_between_stages_too(
    kind: str, operator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hot key's pairs all come to one unit of the next stage; in more blocks than one they give the same."""
    streams = [rows(place, 12) for place in range(3)]
    plan = plan_query(f"SELECT ONLINE {KINDS[kind]} WITHIN 1 SECOND", STREAMS)
    streams = streams[: len(plan.streams)]
    wanted = joined(loop_of(plan, operator, tmp_path / "at once"), streams)
    sizes: list[int] = []
    concat = pa.concat_batches

    def watched(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        sizes.append(sum(rows.nbytes for rows in batches))
        return concat(batches)

    monkeypatch.setattr(portions, "BYTES_A_BATCH", BYTES)
    monkeypatch.setattr(portions, "BYTES_TOGETHER", 4 * BYTES)
    monkeypatch.setattr(block.pa, "concat_batches", watched)
    loop = loop_of(plan, operator, tmp_path / "in parts")
    monkeypatch.setattr(chain, "MERGED_BYTES_MAX", 4 * BYTES)
    assert joined(loop, streams, repeated=True) == wanted
    assert wanted.total() > 10 and (kind == "distinct" or max(sizes) <= 4 * BYTES)


def test_views_of_long_texts_are_merged_before_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "_HELD_BYTES", 4 * BYTES)
    plan = plan_query("SELECT ONLINE DISTINCT a.x AS x, b.x AS y FROM a JOIN b ON a.k = b.k WITHIN 1 SECOND", STREAMS)
    groups = plan.stages[-1].plan
    assert isinstance(groups, AggregatePlan)
    folding, sent, held = views.Folding(groups), 0, []
    for number in range(60):
        text = "x" * 80 + str(number % 3)
        columns = [pa.array([text if is_text(one.type) else 9] * 4, one.type) for one in groups.streams[0].columns]
        rows = pa.RecordBatch.from_arrays(columns, groups.streams[0].columns.names)
        for ready in folding.add(block.Block(rows, np.zeros(4, np.int64))):
            sent += len(ready)
        held.append(sum(one.rows.nbytes for one in folding._held))
    assert max(held) < 6 * BYTES and sent + sum(map(len, folding.rest())) == 3
