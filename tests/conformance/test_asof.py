"""As-of joins against a nested loop and DuckDB: disorder, several slots and cuts, repeated batches."""

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
from streamjoin.flow.punctuation import lowest_mark_us
from streamjoin.operators.asof import step, versions
from streamjoin.plan.join import RESULT_TIME, JoinPlan
from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query

from .loops import cut, joined, loop_of

DISORDER_US = 9
COLUMNS = pa.schema(
    [("ts", pa.int64()), ("id", pa.int64()), ("k", pa.int64()), ("sym", pa.string()), ("x", pa.decimal128(9, 2))]
)
STREAMS = {name: StreamSchema(name, COLUMNS, "ts", "us", DISORDER_US) for name in "tq"}
Row = dict[str, Any]

ON = {
    "one key": ("t.k = q.k", ("k",)),
    "text": ("t.sym = q.sym", ("sym",)),
    "two": ("t.k = q.k AND q.sym = t.sym", ("k", "sym")),
}
WITHIN = {"any age": ("", None), "not older than 25": ("WITHIN 25 MICROSECONDS", 25), "as old": ("WITHIN 0 SECONDS", 0)}


def text(on: str, within: str, *, keeps: bool, older: bool, where: str = "") -> str:
    comparison = "q.ts < t.ts" if older else "t.ts >= q.ts"
    return (
        f"SELECT ONLINE t.id AS t, q.id AS q, q.x AS x FROM t ASOF {'LEFT ' if keeps else ''}JOIN q "
        f"ON {ON[on][0]} AND {comparison} {where} {WITHIN[within][0]}"
    )


def planned(query: str) -> JoinPlan:
    found = plan_query(query, STREAMS)
    assert isinstance(found, JoinPlan)
    return found


def rows(seed: int, count: int = 150, keys: int = 4) -> pa.RecordBatch:
    """Rows out of order by less than the allowed delay; many times are equal, and some keys NULL."""
    chosen = random.Random(seed)
    times = sorted(chosen.randrange(3 * count) for _ in range(count))
    made = []
    for number, time in enumerate(times):
        k = chosen.choice([None, *range(keys), *range(keys)])
        sym = chosen.choice([None, "a", "bb", "a", "bb", "c"])
        made.append({"ts": max(time - chosen.randrange(DISORDER_US), 0), "id": number, "k": k, "sym": sym, "x": number})
    return pa.RecordBatch.from_pylist(made, COLUMNS)


def latest_of_each(
    left: pa.RecordBatch, right: pa.RecordBatch, keys: Sequence[str], age_us: int | None, *, older: bool
) -> Iterator[tuple[Row, Row | None]]:
    """Each left row with the last one, by time and then arrival, of those that it may get."""
    quotes = right.to_pylist()
    for row in left.to_pylist():
        best: Row | None = None
        for quote in quotes:
            alike = all(row[key] is not None and row[key] == quote[key] for key in keys)
            reached = quote["ts"] < row["ts"] if older else quote["ts"] <= row["ts"]
            young = age_us is None or row["ts"] - quote["ts"] <= age_us
            if alike and reached and young and (best is None or quote["ts"] >= best["ts"]):
                best = quote
        yield row, best


def nested_loop(
    left: pa.RecordBatch, right: pa.RecordBatch, keys: Sequence[str], age_us: int | None, *, keeps: bool, older: bool
) -> Counter[Any]:
    """What each left row gives."""
    found: Counter[Any] = Counter()
    for row, best in latest_of_each(left, right, keys, age_us, older=older):
        if best is not None or keeps:
            found[row["id"], best["id"] if best else None, best["x"] if best else None] += 1
    return found


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("within", WITHIN)
@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("older", [False, True])
def test_each_row_gets_the_latest_of_its_key(on: str, within: str, keeps: bool, older: bool, tmp_path: Path) -> None:
    plan = planned(text(on, within, keeps=keeps, older=older))
    for seed, (batches, pieces, slots) in enumerate([(6, 2, 2), (23, 1, 3)]):
        streams = rows(10 * seed), rows(10 * seed + 1)
        wanted = nested_loop(*streams, ON[on][1], WITHIN[within][1], keeps=keeps, older=older)
        loop = loop_of(plan, "asof", tmp_path / str(seed), slots, 3)
        assert joined(loop, streams, batches, pieces, repeated=seed == 1) == wanted
        assert sum(wanted.values()) > (2 if within == "as old" else 30) or (within == "as old" and older)


@pytest.mark.parametrize("older", [False, True])
def test_it_is_what_duckdb_joins(older: bool, tmp_path: Path) -> None:
    """Without equal times in a key, of which DuckDB may take any."""
    left, right = rows(5, 400), rows(6, 400)
    seen: set[tuple[Any, Any]] = set()
    chosen = []
    for place, row in enumerate(right.to_pylist()):
        if (row["k"], row["ts"]) not in seen:
            seen.add((row["k"], row["ts"]))
            chosen.append(place)
    right = right.take(pa.array(chosen))
    with duckdb.connect() as database:
        database.register("t", pa.Table.from_batches([left]))
        database.register("q", pa.Table.from_batches([right]))
        wanted = database.execute(
            f"SELECT t.id, q.id, q.x FROM t ASOF LEFT JOIN q ON t.k = q.k AND t.ts {'>' if older else '>='} q.ts"
        ).fetchall()
    plan = planned(text("one key", "any age", keeps=True, older=older))
    assert joined(loop_of(plan, "asof", tmp_path, units=3), (left, right)) == Counter(wanted)


def test_where_chooses_among_what_comes_out(tmp_path: Path) -> None:
    streams = rows(7), rows(8)
    query = text("one key", "any age", keeps=True, older=False, where="WHERE q.x > 40 AND t.id > 9")
    every = nested_loop(*streams, ("k",), None, keeps=True, older=False)
    wanted = Counter({row: n for row, n in every.items() if row[2] is not None and row[2] > 40 and row[0] > 9})
    assert joined(loop_of(planned(query), "asof", tmp_path, units=3), streams) == wanted
    assert 20 < wanted.total() < every.total()


def test_a_stream_meets_its_own_past(tmp_path: Path) -> None:
    plan = planned(
        "SELECT ONLINE a.id AS a, b.id AS b, b.x AS x FROM t AS a ASOF JOIN t AS b ON a.k = b.k AND a.ts > b.ts"
    )
    own = rows(9)
    wanted = nested_loop(own, own, ("k",), None, keeps=False, older=True)
    assert joined(loop_of(plan, "asof", tmp_path, units=3), (own, own)) == wanted


def test_keys_that_fall_into_one_cell_stay_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = versions.equality_cells
    monkeypatch.setattr(versions, "equality_cells", lambda values: cells(values) % 2)
    for on in ("text", "two"):
        streams = rows(11), rows(12)
        plan = planned(text(on, "any age", keeps=True, older=False))
        wanted = nested_loop(*streams, ON[on][1], None, keeps=True, older=False)
        assert joined(loop_of(plan, "asof", tmp_path / on, units=3), streams, 20) == wanted


def long_history(batches: int, keys: int = 7) -> Iterator[list[list[pa.RecordBatch]]]:
    for number in range(batches):
        made = [
            [{"ts": 20 * number + at, "id": number, "k": (number + at) % keys, "sym": "a", "x": 0} for at in range(20)]
            for _ in range(2)
        ]
        yield [[pa.RecordBatch.from_pylist(mine, COLUMNS)] for mine in made]


@pytest.mark.parametrize("within", ["any age", "not older than 25"])
def test_state_is_flat(within: str, tmp_path: Path) -> None:
    loop = loop_of(planned(text("one key", within, keeps=True, older=False)), "asof", tmp_path, units=3)
    kept = []
    for number, pieces in enumerate(long_history(200)):
        brought = Brought(pieces, 1_000_000 * number)
        list(loop.batch(brought))
        loop.commit(brought)
        kept.append(sum(sum(report.stored_rows) for report in loop.reports))
    assert max(kept[100:]) <= max(kept[20:100]) < 200


def test_no_result_comes_below_the_watermark_that_was_stated_before(tmp_path: Path) -> None:
    plan = planned(text("one key", "any age", keeps=True, older=False))
    plan = JoinPlan(**{**{name: getattr(plan, name) for name in JoinPlan.__dataclass_fields__}, "keyed": True})
    loop = loop_of(plan, "asof", tmp_path, units=3)
    stated: int | None = None
    seen = risen = 0
    for number, pieces in enumerate([*cut((rows(13), rows(14)), 15, 1), [[], []]]):
        brought = Brought(pieces, 1_000_000 * number, drains=number == 15)
        for _, part in loop.batch(brought):
            times = part.column(RESULT_TIME).to_numpy()
            seen += times.size
            assert stated is None or int(np.min(times)) >= stated
        loop.commit(brought)
        before, stated = stated, lowest_mark_us(report.output_mark_us for report in loop.reports)
        risen += stated != before
    assert seen == 150 and risen > 8


def test_a_version_that_a_waiting_row_needs_is_kept(tmp_path: Path) -> None:
    """q@0, t@5 waits, t@40 moves the left mark: q@0 is still what t@5 gets."""

    def row(time: int, id: int) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([{"ts": time, "id": id, "k": 1, "sym": "a", "x": 0}], COLUMNS)

    loop = loop_of(planned(text("one key", "any age", keeps=True, older=False)), "asof", tmp_path, units=1)
    got: list[Any] = []
    batches = [[[], [row(0, 0)]], [[row(5, 1)], []], [[row(40, 2)], []], [[], [row(39, 3)]], [[], [row(60, 4)]]]
    for number, pieces in enumerate(batches):
        brought = Brought(pieces, number)
        for _, part in loop.batch(brought):
            got += [(number, t, q) for t, q in zip(*(part.column(at).to_pylist() for at in (0, 1)), strict=True)]
        loop.commit(brought)
    assert got == [(3, 1, 0), (4, 2, 3)]


@pytest.mark.parametrize(
    "broken", ["first of equal times", "drop by the mark alone", "one version of each key", "early"]
)
def test_easy_mistakes_are_caught(broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if broken == "first of equal times":
        monkeypatch.setattr(versions, "sorted_by", lambda cells, times, n: np.lexsort((-np.arange(n), times, cells)))
    elif broken == "drop by the mark alone":
        monkeypatch.setattr(step, "_lowest", lambda times: times[0])
    elif broken == "one version of each key":
        needed = versions.Versions._needed
        monkeypatch.setattr(versions.Versions, "_needed", lambda self, segment, oldest: needed(self, segment, 1 << 60))
    else:
        ready = step.AsOfStep._ready
        monkeypatch.setattr(
            step.AsOfStep, "_ready", lambda self, clock: ready(self, type(clock)(mark_us=(clock.mark_us or 0) + 9))
        )
    streams = rows(15), rows(16)
    wanted = nested_loop(*streams, ("k",), None, keeps=True, older=False)
    plan = planned(text("one key", "any age", keeps=True, older=False))
    assert joined(loop_of(plan, "asof", tmp_path, units=1), streams, 25, 1) != wanted


def test_event_times_of_two_kinds_are_compared_as_times(tmp_path: Path) -> None:
    """Seconds beside a timestamp: CAST says that they are to be compared, and the unit of the stream what they mean."""
    stamps = pa.schema([("at", pa.timestamp("us")), ("k", pa.int64())])
    seconds = pa.schema([("s", pa.int64()), ("k", pa.int64()), ("n", pa.int64())])
    streams = {"t": StreamSchema("t", stamps, "at", "us", 0), "q": StreamSchema("q", seconds, "s", "s", 0)}
    query = "SELECT ONLINE q.n FROM t ASOF LEFT JOIN q ON t.k = q.k AND t.at >= CAST(q.s AS TIMESTAMP)"
    left = [{"at": at, "k": 1} for at in (1_999_999, 2_000_000, 5_500_000)]
    right = [{"s": at, "k": 1, "n": at} for at in (2, 5, 6)]
    given = [pa.RecordBatch.from_pylist(left, stamps), pa.RecordBatch.from_pylist(right, seconds)]
    found = joined(loop_of(plan_query(query, streams), "asof", tmp_path, units=2), given, 2)
    assert found == {(None,): 1, (2,): 1, (5,): 1}
