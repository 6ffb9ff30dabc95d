"""GROUP BY with a window over joins and over one stream, against plain Python and DuckDB."""

from __future__ import annotations

import datetime as dt
import random
import re
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from streamjoin.engine.loop import Brought, Loop
from streamjoin.generate import generator
from streamjoin.operators.aggregate import step, views
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import Cascade
from streamjoin.query import plan_query

from . import loops
from .groups import (
    HARD_FLOATS,
    STREAMS,
    Pair,
    Windowed,
    exact_sum,
    is_close,
    joined,
    middle,
    present,
    quantile,
    rows,
    variance,
    windowed,
)
from .loops import cut
from .test_outer_docs import PAGE, tables_in

EVERYTHING = (
    "COUNT(*) AS n, COUNT(b.x) AS nx, SUM(b.x) AS sx, SUM(b.f) AS sf, SUM(b.d) AS sd, AVG(b.x) AS ax, AVG(b.f) AS af, "
    "MIN(b.f) AS lf, MAX(b.f) AS mf, MIN(b.t) AS lt, MAX(b.d) AS md, VARIANCE(b.x) AS vx, VAR_POP(b.f) AS pf, "
    "STDDEV(b.x) AS ox, STDDEV_POP(b.x) AS px, BOOL_AND(b.p) AS every, BOOL_OR(b.p) AS any_p, "
    "ARG_MIN(b.t, b.x) AS at, ARG_MAX(b.id, b.f) AS aid, COUNT(DISTINCT b.t) AS dt, COUNT(DISTINCT b.f) AS df, "
    "APPROX_COUNT_DISTINCT(b.t) AS et, APPROX_QUANTILE(b.x, 0.5) AS qx, APPROX_QUANTILE(b.f, 0.9) AS qf"
)
PAIRS = "FROM a, b WHERE a.k = b.k WITHIN 20 MICROSECONDS"
TUMBLING = (
    f"SELECT ONLINE a.k, WINDOW_START() AS since, WINDOW_END() AS until, {EVERYTHING} {PAIRS} "
    "GROUP BY a.k, TUMBLE(40 MICROSECONDS)"
)


def by_k(pair: Pair) -> Any:
    return pair[0]["k"]


def everything(pairs: Sequence[Pair]) -> list[Any]:
    """The columns of `EVERYTHING`."""
    of = [pair[-1] for pair in pairs]
    x, f, t, d, p = (present([row[name] for row in of]) for name in "xftdp")
    at = sorted((row["x"], row["t"]) for row in of if row["x"] is not None and row["t"] is not None)
    most = max((row["f"] for row in of if row["f"] is not None), default=None)
    mean = sum(x) / len(x) if x else None
    sample, whole = variance(x, 1), variance(x, 0)
    return [
        len(of), len(x), sum(x) if x else None, exact_sum(f) if f else None, sum(d) if d else None, mean,
        exact_sum(f) / len(f) if f else None, min(f, default=None), max(f, default=None), min(t, default=None),
        max(d, default=None), sample, variance(f, 0), sample and sample**0.5, whole and whole**0.5,
        all(p) if p else None, any(p) if p else None, at[0][1] if at else None,
        min((row["id"] for row in of if row["f"] == most and most is not None), default=None), len(set(t)), len(set(f)),
        len(set(t)), quantile(x, 0.5), middle(quantile(f, 0.9)),
    ]  # fmt: skip


def planned(query: str) -> Cascade:
    found = plan_query(query, STREAMS)
    assert isinstance(found, Cascade)
    return found


def loop_of(plan: Cascade, folder: Path, slots: int = 2, units: int = 3, operator: str = "matrix") -> Loop:
    return loops.loop_of(plan, operator, folder, slots, units)


def given(loop: Loop, streams: Sequence[pa.RecordBatch], **how: Any) -> list[list[dict[str, Any]]]:
    """The groups that each batch gives; see `loops.given`."""
    return [[row for part in parts for row in part.to_pylist()] for parts in loops.given(loop, streams, **how)]


def flat(batches: Sequence[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch]


def by_group(found: Sequence[dict[str, Any]]) -> dict[Any, list[Any]]:
    """Values by (start in us, key); each group is there once."""
    out: dict[Any, list[Any]] = {}
    for row in found:
        key, since, until, *values = row.values()
        at = round(since.timestamp() * 1e6), key
        assert at not in out, f"{at} was given twice"
        assert round(until.timestamp() * 1e6) > at[0]
        out[at] = values
    return out


def check(found: dict[Any, list[Any]], wanted: dict[Any, list[Any]]) -> None:
    assert found.keys() == wanted.keys()
    for at, values in wanted.items():
        for mine, theirs in zip(found[at], values, strict=True):
            assert is_close(mine, theirs), (at, mine, theirs)


def bits(found: dict[Any, list[Any]]) -> dict[Any, list[Any]]:
    """Floats as their bits."""
    return {
        at: [struct.pack("<d", value) if isinstance(value, float) else value for value in values]
        for at, values in found.items()
    }


def wanted(streams: Sequence[pa.RecordBatch], by: Windowed, within_us: int = 20) -> dict[Any, list[Any]]:
    pairs = joined(streams, lambda *parts: all(part["k"] == parts[0]["k"] is not None for part in parts), within_us)
    found = {at: everything(pairs) for at, pairs in windowed(pairs, by).items()}
    assert len(found) > 10
    return found


@pytest.mark.parametrize("operator", ["biclique", "matrix", "splitjoin", "handshake"])
def test_every_aggregate_of_a_join_is_exact(operator: str, tmp_path: Path) -> None:
    streams = [rows(1), rows(2)]
    found = by_group(flat(given(loop_of(planned(TUMBLING), tmp_path, operator=operator), streams)))
    check(found, wanted(streams, Windowed(40, 40, by_k)))


def test_windows_that_overlap(tmp_path: Path) -> None:
    streams = [rows(3), rows(4)]
    plan = planned(TUMBLING.replace("TUMBLE(40", "HOP(30 MICROSECONDS, 80"))
    found = by_group(flat(given(loop_of(plan, tmp_path), streams, batches=9)))
    check(found, wanted(streams, Windowed(30, 80, by_k)))


def test_crashes_and_rescaling_change_nothing(tmp_path: Path) -> None:
    streams = [rows(5), rows(6)]
    plan = planned(TUMBLING.replace("TUMBLE(40", "HOP(20 MICROSECONDS, 60"))
    found = by_group(flat(given(loop_of(plan, tmp_path), streams, batches=7, repeated=True)))
    check(found, wanted(streams, Windowed(20, 60, by_k)))


def test_no_bit_depends_on_slots_units_cuts_or_the_order_of_arrival(tmp_path: Path) -> None:
    streams = [rows(7, 200, span=2), rows(8, 200, span=2)]
    every = []
    for number, (slots, units, batches, pieces) in enumerate([(1, 1, 1, 1), (2, 2, 5, 2), (4, 4, 13, 3), (3, 2, 2, 5)]):
        loop = loop_of(planned(TUMBLING), tmp_path / str(number), slots, units)
        found = []
        for batch, brought in enumerate([*cut(streams, batches, pieces), [[], []]]):
            mixed = [random.Random(number).sample(parts, len(parts)) for parts in brought]
            now = Brought(mixed, 1_000_000 * batch, drains=batch == batches)
            found.append([row for _, part in loop.batch(now) for row in part.to_pylist()])
            loop.commit(now)
        every.append(bits(by_group(flat(found))))
    assert every[0] and all(one == every[0] for one in every)


def test_floats_that_cancel_are_added_exactly(tmp_path: Path) -> None:
    """1e40 + 1e20 + 1 - 1e40 - 1e20 is 1, however it is cut."""
    values = list(HARD_FLOATS[:5])
    for number, (slots, order) in enumerate([(1, values), (2, values[::-1]), (4, values[2:] + values[:2])]):
        listed = [{"ts": place, "id": place, "f": value} for place, value in enumerate(order)]
        stream = pa.RecordBatch.from_pylist(listed, schema=STREAMS["a"].columns)
        plan = planned("SELECT ONLINE SUM(f) AS total FROM a GROUP BY TUMBLE(1 SECOND)")
        assert flat(given(loop_of(plan, tmp_path / str(number), slots, slots), [stream])) == [{"total": 1.0}]


def test_groups_of_one_stream(tmp_path: Path) -> None:
    stream = rows(9, 120)
    plan = planned(
        "SELECT ONLINE b.t, WINDOW_START(), WINDOW_END(), "
        f"{EVERYTHING} FROM a AS b WHERE b.id % 3 <> 0 GROUP BY b.t, TUMBLE(50 MICROSECONDS)"
    )
    groups = windowed(joined([stream], lambda row: row["id"] % 3 != 0), Windowed(50, 50, lambda pair: pair[0]["t"]))
    found = by_group(flat(given(loop_of(plan, tmp_path), [stream], repeated=True)))
    check(found, {at: everything(of) for at, of in groups.items()})


@pytest.mark.parametrize("operator", ["biclique", "handshake"])
def test_groups_of_three_streams(operator: str, tmp_path: Path) -> None:
    streams = [rows(10), rows(11), rows(12)]
    text = TUMBLING.replace(PAIRS, "FROM a JOIN c ON a.k = c.k JOIN b ON c.k = b.k WITHIN 25 MICROSECONDS")
    found = by_group(flat(given(loop_of(planned(text), tmp_path, operator=operator), streams)))
    check(found, wanted(streams, Windowed(40, 40, by_k), 25))


def test_expressions_having_and_a_key_that_is_computed(tmp_path: Path) -> None:
    streams = [rows(13), rows(14)]
    plan = planned(
        "SELECT ONLINE a.k % 2 AS odd, WINDOW_START() AS since, SUM(b.x + a.x) * 2 + COUNT(*) AS total "
        f"{PAIRS} GROUP BY a.k % 2, TUMBLE(40 MICROSECONDS) HAVING COUNT(*) > 2 AND MAX(b.x) > 10"
    )
    found = {
        (round(row["since"].timestamp() * 1e6), row["odd"]): row["total"]
        for row in flat(given(loop_of(plan, tmp_path), streams))
    }
    pairs = joined(streams, lambda a, b: a["k"] == b["k"] is not None, 20)
    expected = {}
    for at, of in windowed(pairs, Windowed(40, 40, lambda pair: pair[0]["k"] % 2)).items():
        sums = present([None if None in (a["x"], b["x"]) else a["x"] + b["x"] for a, b in of])
        if len(of) > 2 and max(present([b["x"] for _, b in of]), default=0) > 10:
            expected[at] = sum(sums) * 2 + len(of) if sums else None
    assert len(expected) > 5 and found == expected


def test_it_is_what_duckdb_computes(tmp_path: Path) -> None:
    streams = [rows(15, 150), rows(16, 150)]
    plan = planned(
        "SELECT ONLINE a.t, WINDOW_START() AS since, COUNT(*) AS n, SUM(b.x) AS s, AVG(b.d) AS ad, STDDEV(b.x) AS sx, "
        "MAX(b.t) AS mt, COUNT(DISTINCT b.k) AS dk, BOOL_AND(b.p) AS p, ARG_MAX(b.id, b.id) AS aid "
        "FROM a, b WHERE a.k = b.k WITHIN 20 MICROSECONDS GROUP BY a.t, TUMBLE(100 MICROSECONDS)"
    )
    with duckdb.connect() as database:
        for name, part in zip("ab", streams, strict=True):
            database.register(name, pa.Table.from_batches([part]))
        theirs = database.execute(
            "SELECT a.t, greatest(a.ts, b.ts) // 100 * 100 AS since, COUNT(*), SUM(b.x), AVG(b.d), STDDEV(b.x), "
            "MAX(b.t), COUNT(DISTINCT b.k), BOOL_AND(b.p), ARG_MAX(b.id, b.id) FROM a, b WHERE a.k = b.k "
            "AND abs(a.ts - b.ts) <= 20 GROUP BY ALL"
        ).fetchall()
    mine = {}
    for row in flat(given(loop_of(plan, tmp_path), streams)):
        mine[row["t"], round(row["since"].timestamp() * 1e6)] = list(row.values())[2:]
    assert len(theirs) > 30 and mine.keys() == {(t, since) for t, since, *_ in theirs}
    for t, since, *values in theirs:
        assert all(is_close(one, float(other) if isinstance(one, float) else other)
                   for one, other in zip(mine[t, since], values, strict=True)), (t, since)  # fmt: skip


def test_a_window_is_given_when_the_watermark_reaches_its_end_and_not_before(tmp_path: Path) -> None:
    plan = planned("SELECT ONLINE WINDOW_START() AS since, COUNT(*) AS n FROM a GROUP BY TUMBLE(100 MICROSECONDS)")
    loop = loop_of(plan, tmp_path)

    def batch(*times: int, ends: bool = False) -> list[tuple[int, int]]:
        listed = pa.RecordBatch.from_pylist([{"ts": time, "id": 0} for time in times], schema=STREAMS["a"].columns)
        brought = Brought([[listed] if times else []], 1_000_000 * loop.version, drains=ends)
        found = [row for _, part in loop.batch(brought) for row in part.to_pylist()]
        loop.commit(brought)
        return [(round(row["since"].timestamp() * 1e6), row["n"]) for row in found]

    late = {"late": 0}

    def count_late() -> int:
        late["late"] += sum(report.folded.get("late", 0) for report in loop.reports)
        return late["late"]

    assert batch(10, 50, 114) == []  # allowed delay 15: the mark is 99
    assert batch(95) == []
    assert batch(115) == [(0, 3)]
    assert count_late() == 0
    assert batch(90, 99, 116) == [] and count_late() == 2
    assert batch(ends=True) == [(100, 3)]
    # What comes after the end is of windows that were given, or of new ones.
    assert batch(117, 250) == [] and count_late() == 3
    assert batch(ends=True) == [(200, 1)]
    assert batch(ends=True) == []


def test_state_is_dropped_when_its_windows_were_given(tmp_path: Path) -> None:
    plan = planned(
        "SELECT ONLINE k, COUNT(*) AS n, COUNT(DISTINCT id) AS m FROM a "
        "GROUP BY k, HOP(50 MICROSECONDS, 200 MICROSECONDS)"
    )
    stream = rows(17, 3_000)
    loop = loop_of(plan, tmp_path)
    kept, files = [], []
    for number, pieces in enumerate(cut([stream], 60)):
        brought = Brought(pieces, 1_000_000 * number)
        list(loop.batch(brought))
        loop.commit(brought)
        kept.append(sum(sum(report.stored_rows) for report in loop.reports))
        files.append(sum(report.segments for report in loop.reports))
    # Five keys with NULL, panes of 50 us over 200 us and a batch's 300 us, and as much again that is not needed.
    assert max(kept) <= 2 * 5 * (200 + 300) // 50
    assert max(files) <= 4 * len(loop.reports)
    assert sum(1 for path in tmp_path.rglob("*.arrow")) <= 4 * 12 * len(loop.reports)


def test_views_travel_and_not_pairs(tmp_path: Path) -> None:
    streams = [rows(18, 400, span=1), rows(19, 400, span=1)]
    plan = planned(f"SELECT ONLINE a.k, SUM(b.x) AS s {PAIRS} GROUP BY a.k, TUMBLE(1 SECOND)")
    loop = loop_of(plan, tmp_path)
    counts: dict[str, int] = {}
    for number, pieces in enumerate(cut(streams, 2)):
        brought = Brought(pieces, 1_000_000 * number)
        list(loop.batch(brought))
        loop.commit(brought)
        for report in loop.reports:
            for name, value in report.folded.items():
                counts[name] = counts.get(name, 0) + value
    pairs = joined(streams, lambda a, b: a["k"] == b["k"] is not None, 20)
    assert counts["tuples"] == len(pairs) > 2_000
    assert counts["views"] <= 2 * 2 * 4 and counts["view_bytes"] < counts["tuple_bytes"]


Mutation = Callable[[pytest.MonkeyPatch], None]


def views_twice(patch: pytest.MonkeyPatch) -> None:
    """A mutation: each view is given twice."""
    rest = views.Folding.rest

    def again(self: views.Folding) -> Any:
        for block in rest(self):
            yield block
            yield block

    patch.setattr(views.Folding, "rest", again)


def one_view_twice(patch: pytest.MonkeyPatch) -> None:
    """A mutation: of all views one is given twice."""
    rest = views.Folding.rest
    doubled: list[bool] = []

    def again(self: views.Folding) -> Any:
        for block in rest(self):
            yield block
            if len(block) and not doubled:
                doubled.append(True)
                yield block.take(np.array([0]))

    patch.setattr(views.Folding, "rest", again)


def _early(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(step, "last_given_us", lambda windows, until_us: until_us // windows.size_us * windows.size_us + 40)
    ending = step.Ending
    patch.setattr(step, "Ending", lambda windows, after, until: ending(windows, after, until + windows.size_us))


@pytest.mark.parametrize("mutation", [views_twice, one_view_twice, _early])
def test_a_view_that_is_added_twice_or_a_window_given_early_is_caught(
    mutation: Mutation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = [rows(1), rows(2)]
    mutation(monkeypatch)
    found = flat(given(loop_of(planned(TUMBLING), tmp_path), streams))
    with pytest.raises(AssertionError):
        check(by_group(found), wanted(streams, Windowed(40, 40, by_k)))


def test_the_groups_of_the_readme(tmp_path: Path) -> None:
    """README.md shows how its streams are made, a query, and what it gives."""
    page = (Path(__file__).parents[2] / "README.md").read_text()
    text = page.split("**Groups in windows of time**")[1].split("**Enrich")[0]
    made = re.findall(r"generate (\S+) --rows (\d+) (?:--seed (\d+) )?--rate (\d+) .*--out data/(\w+)", page)
    streams = {
        name: generator(kind).rows(0, int(count), seed=int(seed or 1), rate=float(rate))
        for kind, count, seed, rate, name in made
        if name in ("orders", "payments")
    }
    schemas = {
        name: StreamSchema(name, one.schema, "ts", "us", 2_000_000 * (name == "payments"))
        for name, one in streams.items()
    }
    query = text.split("query: |\n")[1].split("results:")[0]
    plan = plan_query(query, schemas)
    assert isinstance(plan, Cascade)
    each = flat(given(loop_of(plan, tmp_path), [streams["orders"], streams["payments"]]))
    found = [(row["half"], row["since"], row["n"], row["mean"]) for row in each]
    shown = re.findall(r"│ +(\d+) │ (\S+ \S+)\+00 +│ +(\d+) │ +([0-9.]+) │", text)
    rows_found = [(str(half), f"{since:%Y-%m-%d %H:%M:%S}", str(n), repr(mean)) for half, since, n, mean in found]
    assert sorted(rows_found) == sorted(shown) and len(shown) == 4


@pytest.mark.parametrize(("example", "window"), list(enumerate(["TUMBLE(", "HOP("])))
def test_the_examples_of_the_documents(example: int, window: str, tmp_path: Path) -> None:
    """docs/query-language.md shows two streams, queries and what they give."""
    text = PAGE.split("<!-- example of groups -->")[1].split("<!-- end -->")[0]
    query = text.split("```sql")[1 + example].split("```")[0]
    assert window in query
    first, second, *every = tables_in(text)
    day = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)

    def time_of(cell: str) -> dt.datetime:
        return dt.datetime.combine(day, dt.time.fromisoformat(cell), dt.UTC)

    given_rows, schemas = [], {}
    for (head, *names), _, *listed in (first, second):
        stream, _, time = head.partition(": ")
        cells = [
            {time: time_of(at)} | {name: int(cell) if cell.isdecimal() else cell for name, cell in zip(names, row)}  # noqa: B905
            for at, *row in listed
        ]
        table = pa.Table.from_pylist(cells)
        columns = pa.schema([(name, pa.timestamp("us", "UTC") if name == time else table.field(name).type)
                             for name in table.column_names])  # fmt: skip
        schemas[stream] = StreamSchema(stream, columns, time, delay_us=60_000_000)
        given_rows.append(table.cast(columns).to_batches()[0])
    plan = plan_query(query, schemas)
    assert isinstance(plan, Cascade)
    found = flat(given(loop_of(plan, tmp_path), given_rows, batches=1))
    (names, _, *expected) = every[example]
    mine = [[row[name].strftime("%H:%M:%S") if name == "since" else str(row[name]) for name in names] for row in found]
    assert sorted(mine) == sorted(expected)


def test_rows_without_partner_are_grouped_by_their_own_time(tmp_path: Path) -> None:
    streams = [rows(20), rows(21)]
    plan = planned(
        "SELECT ONLINE a.k, WINDOW_START() AS since, WINDOW_END(), COUNT(*) AS n, COUNT(b.id) AS paired, SUM(b.x) AS s "
        "FROM a LEFT JOIN b ON a.k = b.k AND b.x > 20 WITHIN 20 MICROSECONDS GROUP BY a.k, TUMBLE(40 MICROSECONDS)"
    )
    found = by_group(flat(given(loop_of(plan, tmp_path), streams, batches=7, repeated=True)))
    pairs = joined(streams, lambda a, b: a["k"] == b["k"] is not None and b["x"] is not None and b["x"] > 20, 20)
    met = {pair[0]["id"] for _, pair in pairs}
    nothing = dict.fromkeys(streams[1].schema.names)
    alone = [(row["ts"], (row, nothing)) for row in streams[0].to_pylist() if row["id"] not in met]
    wanted = {}
    for at, of in windowed([*pairs, *alone], Windowed(40, 40, by_k)).items():
        values = present([b["x"] for _, b in of])
        wanted[at] = [len(of), sum(b["id"] is not None for _, b in of), sum(values) if values else None]
    assert len(alone) > 10 and len(pairs) > 10 and found == wanted


def test_what_an_as_of_join_finds_is_grouped(tmp_path: Path) -> None:
    streams = [rows(22), rows(23)]
    plan = planned(
        "SELECT ONLINE a.k, WINDOW_START() AS since, WINDOW_END(), COUNT(*) AS n, SUM(b.x) AS s "
        "FROM a ASOF JOIN b ON a.k = b.k AND a.ts > b.ts GROUP BY a.k, TUMBLE(40 MICROSECONDS)"
    )
    found = by_group(flat(given(loop_of(plan, tmp_path, operator="asof"), streams, batches=7, repeated=True)))
    pairs = []
    for row in streams[0].to_pylist():
        older = [
            other for other in streams[1].to_pylist() if other["k"] == row["k"] is not None and other["ts"] < row["ts"]
        ]
        latest = max((other["ts"] for other in older), default=None)
        if latest is not None:
            pairs.append((row["ts"], (row, [other for other in older if other["ts"] == latest][-1])))
    wanted = {}
    for at, of in windowed(pairs, Windowed(40, 40, by_k)).items():
        values = present([b["x"] for _, b in of])
        wanted[at] = [len(of), sum(values) if values else None]
    assert len(wanted) > 10 and found == wanted
