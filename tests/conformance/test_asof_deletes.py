"""Rows that end their key, against a nested loop and DuckDB: disorder, several slots and cuts, repeated batches."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from streamjoin.engine.loop import Brought
from streamjoin.intake import intake
from streamjoin.operators.asof import step, versions
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query

from .loops import joined, loop_of
from .test_asof import COLUMNS, DISORDER_US, ON, WITHIN, latest_of_each, rows

Row = dict[str, Any]


def text(on: str, within: str, *, keeps: bool, older: bool, where: str = "") -> str:
    comparison = "q.ts < t.ts" if older else "t.ts >= q.ts"
    return (
        f"SELECT ONLINE t.id AS t, q.id AS q, q.x AS x, q.ts AS at, q.k AS k FROM t ASOF {'LEFT ' if keeps else ''}"
        f"JOIN q ON {ON[on][0]} AND {comparison} {where} {WITHIN[within][0]}"
    )


def planned(query: str, key: Sequence[str]) -> JoinPlan:
    found = plan_query(
        query,
        {
            "t": StreamSchema("t", COLUMNS, "ts", "us", DISORDER_US),
            "q": StreamSchema("q", COLUMNS, "ts", "us", DISORDER_US, key=tuple(key)),
        },
    )
    assert isinstance(found, JoinPlan)
    return found


def changes(seed: int, key: Sequence[str], count: int = 150) -> pa.RecordBatch:
    """Rows of which three in ten end their key, and others lack some of their values."""
    chosen = random.Random(seed)
    made = [
        {name: value for name, value in row.items() if chosen.random() > 0.3 or name in (*key, "ts", "id")}
        for row in rows(seed, count).to_pylist()
    ]
    for row in made:
        if chosen.random() < 0.3:
            for name in set(row) - {"ts", *key}:
                row[name] = None
    return pa.RecordBatch.from_pylist(made, COLUMNS)


def nested_loop(
    left: pa.RecordBatch, right: pa.RecordBatch, keys: Sequence[str], age_us: int | None, *, keeps: bool, older: bool
) -> Counter[Any]:
    """What each left row gives, which is nothing of a row that ends its key."""
    found: Counter[Any] = Counter()
    for row, best in latest_of_each(left, right, keys, age_us, older=older):
        if best is not None and all(best[name] is None for name in set(best) - {"ts", *keys}):
            best = None
        if best is not None or keeps:
            found[row["id"], *((best[name] if best else None) for name in ("id", "x", "ts", "k"))] += 1
    return found


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("within", WITHIN)
@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("older", [False, True])
def test_a_key_that_was_ended_has_no_row(on: str, within: str, keeps: bool, older: bool, tmp_path: Path) -> None:
    keys = ON[on][1]
    plan = planned(text(on, within, keeps=keeps, older=older), keys)
    for seed, (batches, pieces, slots) in enumerate([(6, 2, 2), (23, 1, 3)]):
        streams = rows(10 * seed), changes(10 * seed + 1, keys)
        wanted = nested_loop(*streams, keys, WITHIN[within][1], keeps=keeps, older=older)
        loop = loop_of(plan, "asof", tmp_path / str(seed), slots, 3)
        assert joined(loop, streams, batches, pieces, repeated=seed == 1) == wanted


@pytest.mark.parametrize("older", [False, True])
def test_it_is_what_duckdb_joins(older: bool, tmp_path: Path) -> None:
    """Without equal times in a key, of which DuckDB may take any."""
    left, right = rows(5, 400), changes(6, ("k",), 400)
    seen: set[tuple[Any, Any]] = set()
    places = []
    for place, row in enumerate(right.to_pylist()):
        if (row["k"], row["ts"]) not in seen:
            seen.add((row["k"], row["ts"]))
            places.append(place)
    right = right.take(pa.array(places))
    with duckdb.connect() as database:
        database.register("t", pa.Table.from_batches([left]))
        database.register("q", pa.Table.from_batches([right]))
        wanted = database.execute(
            "WITH got AS (SELECT t.id AS t, q.id AS q, q.x AS x, q.ts AS since, q.k AS k, q.sym AS sym FROM t "
            f"ASOF LEFT JOIN q ON t.k = q.k AND t.ts {'>' if older else '>='} q.ts) "
            "SELECT t, q, x, CASE WHEN ends THEN NULL ELSE since END, CASE WHEN ends THEN NULL ELSE k END "
            "FROM (SELECT *, q IS NULL AND x IS NULL AND sym IS NULL AS ends FROM got)"
        ).fetchall()
    plan = planned(text("one key", "any age", keeps=True, older=older), ("k",))
    assert joined(loop_of(plan, "asof", tmp_path, units=3), (left, right)) == Counter(wanted)
    assert sum(row[3] is None for row in wanted) > 80


def test_where_asks_for_rows_after_the_end_too(tmp_path: Path) -> None:
    streams = rows(7), changes(8, ("k",))
    query = text("one key", "any age", keeps=True, older=False, where="WHERE q.ts IS NULL OR q.k = 2")
    every = nested_loop(*streams, ("k",), None, keeps=True, older=False)
    wanted = Counter({row: n for row, n in every.items() if row[3] is None or row[4] == 2})
    assert joined(loop_of(planned(query, ("k",)), "asof", tmp_path, units=3), streams) == wanted
    assert 20 < wanted.total() < every.total()


def test_a_row_that_ends_its_key_is_a_row_like_any_other_on_the_left(tmp_path: Path) -> None:
    own = changes(9, ("k",))
    stream = StreamSchema("q", COLUMNS, "ts", "us", DISORDER_US, key=("k",))
    plan = plan_query(
        "SELECT ONLINE a.id AS t, b.id AS q, b.x AS x, b.ts AS at, b.k AS k FROM q AS a ASOF LEFT JOIN q AS b "
        "ON a.k = b.k AND a.ts > b.ts",
        {"q": stream},
    )
    wanted = nested_loop(own, own, ("k",), None, keeps=True, older=True)
    assert joined(loop_of(plan, "asof", tmp_path, units=3), (own, own)) == wanted
    assert sum(n for row, n in wanted.items() if row[0] is None) > 20


def test_keys_that_fall_into_one_cell_are_ended_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = versions.equality_cells
    monkeypatch.setattr(versions, "equality_cells", lambda values: cells(values) % 2)
    for on in ("text", "two"):
        for seed in range(4):
            keys = ON[on][1]
            streams = rows(11 + 2 * seed), changes(12 + 2 * seed, keys)
            plan = planned(text(on, "any age", keeps=True, older=False), keys)
            wanted = nested_loop(*streams, keys, None, keeps=True, older=False)
            assert joined(loop_of(plan, "asof", tmp_path / f"{on} {seed}", units=3), streams, 40, 1) == wanted


def row(time: int, id: int | None = None, key: int = 1) -> pa.RecordBatch:
    """A row with this id, or one that ends its key."""
    values: Row = {"id": id, "sym": None if id is None else "a", "x": id}
    return pa.RecordBatch.from_pylist([{"ts": time, "k": key, **values}], COLUMNS)


def run_of(folder: Path, batches: Sequence[list[list[pa.RecordBatch]]]) -> list[tuple[int, Any, Any]]:
    """(batch, id of t, id of q) of each result."""
    loop = loop_of(planned(text("one key", "any age", keeps=True, older=False), ("k",)), "asof", folder, units=1)
    got: list[tuple[int, Any, Any]] = []
    for number, pieces in enumerate(batches):
        brought = Brought(pieces, number)
        for _, part in loop.batch(brought):
            got += [(number, t, q) for t, q in zip(*(part.column(at).to_pylist() for at in (0, 1)), strict=True)]
        loop.commit(brought)
    return got


def test_an_end_that_comes_out_of_order_counts_from_its_own_time(tmp_path: Path) -> None:
    """The key ends at 15, which comes after a row of 20; a row of 10 comes after that."""
    batches = [
        [[], [row(8, 0)]],
        [[row(9, 1), row(12, 2), row(16, 3), row(25, 4)], [row(20, 5)]],
        [[], [row(15)]],
        [[], [row(12, 6)]],
        [[], [row(40, 7)]],
    ]
    assert run_of(tmp_path, batches) == [(1, 1, 0), (4, 2, 6), (4, 3, None), (4, 4, 5)]


def hides_what_comes_before_it(folder: Path) -> bool:
    """An end does, although the right watermark has not reached it: the left stream is at 100 and no row waits; the end
    at 50 is there, and the mark of the right one is at 41."""
    batches = [
        [[row(3, 1), row(100, 2)], [row(2, 0)]],
        [[], [row(50)]],
        [[], [row(49, 3)]],
        [[], [row(51, 4, key=2)]],
        [[row(101, 5)], [row(150, 6, key=2)]],
    ]
    return sorted(run_of(folder, batches)) == [(1, 1, 0), (4, 2, None), (4, 5, None)]


def test_an_end_that_the_right_watermark_has_not_reached_hides_what_comes_before_it(tmp_path: Path) -> None:
    assert hides_what_comes_before_it(tmp_path)


def comings_and_goings(batches: int) -> Iterator[list[list[pa.RecordBatch]]]:
    """Each batch begins ten keys that there never were, and ends those of the batch before."""
    for number in range(batches):
        at = 20 * number
        begun = [{"ts": at, "id": number, "k": 10 * number + key, "sym": "a", "x": 0} for key in range(10)]
        ended = [{"ts": at + 10, "k": 10 * (number - 1) + key} for key in range(10)]
        left = [{"ts": at + 5, "id": number, "k": 10 * number + key, "sym": "a", "x": 0} for key in range(10)]
        yield [[pa.RecordBatch.from_pylist(left, COLUMNS)], [pa.RecordBatch.from_pylist([*begun, *ended], COLUMNS)]]


@pytest.mark.parametrize("older", [False, True])
def test_keys_that_come_and_go_leave_nothing(older: bool, tmp_path: Path) -> None:
    loop = loop_of(planned(text("one key", "any age", keeps=True, older=older), ("k",)), "asof", tmp_path, units=3)
    kept, given = [], 0
    for number, pieces in enumerate(comings_and_goings(200)):
        brought = Brought(pieces, 1_000_000 * number)
        given += sum(part.column("q").drop_null().__len__() for _, part in loop.batch(brought))
        loop.commit(brought)
        kept.append(sum(sum(report.stored_rows) for report in loop.reports))
    assert given > 1_900 and max(kept[100:]) <= max(kept[20:100]) < 250


@pytest.mark.parametrize(
    "broken", ["a value like others", "any value missing", "let go by the left alone", "let go early"]
)
def test_easy_mistakes_are_caught(broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if broken == "a value like others":
        monkeypatch.setattr(
            intake, "with_ends", lambda query, side, sent, rows: _flagged(side, sent, rows, lambda _: 0)
        )
    elif broken == "any value missing":
        monkeypatch.setattr(
            intake, "with_ends", lambda query, side, sent, rows: _flagged(side, sent, rows, lambda found: found.any(0))
        )
    elif broken == "let go by the left alone":
        settle = versions.Versions.settle
        monkeypatch.setattr(versions.Versions, "settle", lambda self, oldest, mark: settle(self, oldest, 1 << 60))
    else:
        merge = versions.Versions._merge
        monkeypatch.setattr(
            versions.Versions, "_merge", lambda self, group, *marks: _as_if_all(self, group, merge, *marks)
        )
    wrong = 0 if hides_what_comes_before_it(tmp_path / "end") else 1
    for seed in range(6):
        streams = rows(15 + seed), changes(16 + seed, ("k",))
        wanted = nested_loop(*streams, ("k",), None, keeps=True, older=False)
        plan = planned(text("one key", "any age", keeps=True, older=False), ("k",))
        wrong += joined(loop_of(plan, "asof", tmp_path / str(seed), units=1), streams, 50, 1) != wanted
    assert wrong


def _flagged(side: int, sent: pa.RecordBatch, rows: pa.RecordBatch, ends: Any) -> pa.RecordBatch:
    if side == 0:
        return sent
    missing = np.array([np.asarray(rows.column(name).is_null()) for name in ("id", "sym", "x")])
    found = np.broadcast_to(np.asarray(ends(missing), bool), rows.num_rows)
    return sent.append_column(step.ENDS, pa.array(found))


def _as_if_all(self: versions.Versions, group: Any, merge: Any, *marks: Any) -> None:
    """Merges some segments as if there were no others."""
    others = [segment for segment in self.segments if all(segment is not one for one in group)]
    self.segments = list(group)
    merge(self, group, *marks)
    self.segments = others + self.segments
