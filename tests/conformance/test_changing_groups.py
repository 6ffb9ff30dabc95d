"""GROUP BY without a window: what each group is as of every moment that was given, against plain Python and DuckDB."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from streamjoin.engine.loop import Brought, Loop
from streamjoin.operators.aggregate import changing
from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query

from .changes import Asked, Timed, check_table, moment_of, replayed
from .groups import DISORDER_US, STREAMS, Pair, is_close, joined, present, rows
from .loops import cut
from .test_groups import EVERYTHING, everything, flat, given, loop_of, planned, views_twice
from .test_outer_docs import PAGE, tables_in

WITHIN = 20
EVERY = 10
FROM = f"FROM a, b WHERE a.k = b.k WITHIN {WITHIN} MICROSECONDS"
LEAVING = f"SELECT ONLINE a.k, {EVERYTHING} {FROM} GROUP BY a.k EMIT EVERY {EVERY} MICROSECONDS"
STAYING = LEAVING.replace("GROUP BY a.k", "GROUP BY a.k CUMULATIVE")


def by_k(pair: Pair) -> Any:
    return pair[0]["k"]


def end(pair: Pair) -> int:
    return int(min(part["ts"] for part in pair)) + WITHIN


def on_k(*parts: Any) -> bool:
    return all(part["k"] == parts[0]["k"] is not None for part in parts)


ASKED = {LEAVING: Asked(EVERY, by_k, everything, end), STAYING: Asked(EVERY, by_k, everything)}


def moments(streams: Sequence[pa.RecordBatch], found: Sequence[Timed], batches: int, every: int) -> list[int]:
    """As of when each batch gives groups, the end of input last: the last multiple below the watermark."""
    latest = [0] * len(streams)
    out = []
    for pieces in cut(streams, batches):
        for number, parts in enumerate(pieces):
            latest[number] = max([latest[number], *(at for part in parts for at in part.column("ts").to_pylist())])
        out.append((min(latest) - DISORDER_US - 1) // every * every)
    last = max((time for time, _ in found), default=out[-1])
    return [*out, max(out[-1], -(-last // every) * every)]


def check(
    given_rows: Sequence[Sequence[dict[str, Any]]], found: Sequence[Timed], asked: Asked,
    at: Sequence[int] | None = None, keys: int = 1, same: Callable[[Any, Any], bool] = is_close,
) -> int:  # fmt: skip
    """Compare all groups after each batch with what they are as of its moment; how many rows were given.

    Args:
        at: the moments; None for those that the rows say.
    """
    table: dict[Any, list[Any]] = {}
    for number, batch in enumerate(given_rows):
        moment = replayed(table, batch, keys, same)
        if at is not None:
            moment = at[min(number, len(at) - 1)]
            assert all(moment_of(row) == moment for row in batch)
        if moment is not None:
            check_table(table, asked.at(found, moment), same)
    return len(flat(given_rows))


@pytest.mark.parametrize("query", [LEAVING, STAYING], ids=["leaving", "cumulative"])
@pytest.mark.parametrize("operator", ["biclique", "splitjoin"])
def test_every_group_is_exact_at_every_moment(operator: str, query: str, tmp_path: Path) -> None:
    streams = [rows(31), rows(32)]
    found = joined(streams, on_k, WITHIN)
    batches = given(loop_of(planned(query), tmp_path, operator=operator), streams, batches=12)
    assert check(batches, found, ASKED[query], moments(streams, found, 12, EVERY)) > 10


@pytest.mark.parametrize("query", [LEAVING, STAYING], ids=["leaving", "cumulative"])
@pytest.mark.parametrize(("slots", "units", "batches"), [(1, 1, 1), (2, 2, 5), (4, 4, 25)])
def test_cuts_slots_and_units_change_no_value(query: str, slots: int, units: int, batches: int, tmp_path: Path) -> None:
    streams = [rows(33), rows(34)]
    found = joined(streams, on_k, WITHIN)
    out = given(loop_of(planned(query), tmp_path, slots, units), streams, batches=batches)
    check(out, found, ASKED[query], moments(streams, found, batches, EVERY))


@pytest.mark.parametrize("query", [LEAVING, STAYING], ids=["leaving", "cumulative"])
def test_batches_done_again_with_other_slots_change_nothing(query: str, tmp_path: Path) -> None:
    streams = [rows(35), rows(36)]
    found = joined(streams, on_k, WITHIN)
    out = given(loop_of(planned(query), tmp_path), streams, batches=9, repeated=True)
    check(out, found, ASKED[query], moments(streams, found, 9, EVERY))


def test_arrival_in_another_order_changes_nothing(tmp_path: Path) -> None:
    streams = [rows(37), rows(38)]
    found = joined(streams, on_k, WITHIN)
    loop = loop_of(planned(LEAVING), tmp_path)
    out = []
    for batch, brought in enumerate([*cut(streams, 7, 3), [[], []]]):
        mixed = [random.Random(batch).sample(parts, len(parts)) for parts in brought]
        now = Brought(mixed, 1_000_000 * batch, drains=batch == 7)
        out.append([row for _, part in loop.batch(now) for row in part.to_pylist()])
        loop.commit(now)
    check(out, found, ASKED[LEAVING], moments(streams, found, 7, EVERY))


def test_the_maximum_falls_when_its_pair_has_left(tmp_path: Path) -> None:
    def one(ts: int, x: int) -> dict[str, Any]:
        return {"ts": ts, "id": ts, "k": 1, "x": x}

    r = pa.RecordBatch.from_pylist([one(100, 0), one(115, 0), one(200, 0)], schema=STREAMS["a"].columns)
    s = pa.RecordBatch.from_pylist([one(101, 9), one(118, 3), one(200, 1)], schema=STREAMS["b"].columns)
    query = f"SELECT ONLINE a.k, MAX(b.x) AS m {FROM} GROUP BY a.k EMIT EVERY 1 MICROSECOND"
    loop = loop_of(planned(query), tmp_path, slots=1)
    out = []
    for upto in (118, 120, 121, 138, 139):
        told = [pa.RecordBatch.from_pylist([one(upto + 1 + DISORDER_US, 0) | {"k": None}], schema=r.schema)]
        sent = [[r.slice(0, 2)], [s.slice(0, 2)]] if upto == 118 else [[], []]
        now = Brought([[*sent[0], *told], [*sent[1], *told]], upto)
        out.append([(row["op"], row["m"]) for _, part in loop.batch(now) for row in part.to_pylist()])
        loop.commit(now)
    # Pairs of 100 and 101 with what comes up to 120; (115, 118) counts until 135, and (101, 115) until 121.
    assert out == [[("upsert", 9)], [], [], [("delete", None)], []]


def test_a_group_that_having_drops_ends_and_comes_back(tmp_path: Path) -> None:
    streams = [rows(39, 120, keys=3, span=3), rows(40, 120, keys=3, span=3)]
    query = f"SELECT ONLINE a.k, COUNT(*) AS n {FROM} GROUP BY a.k HAVING COUNT(*) > 6 EMIT EVERY 5 MICROSECONDS"
    found = joined(streams, on_k, WITHIN)
    out = given(loop_of(planned(query), tmp_path), streams, batches=20)
    asked = Asked(5, by_k, lambda pairs: [len(pairs)], end, lambda pairs: len(pairs) > 6)
    check(out, found, asked, moments(streams, found, 20, 5))
    operations = [(row["k"], row["op"]) for row in flat(out)]
    assert sum(operation == "delete" for _, operation in operations) > 5


def test_several_keys_null_and_an_expression(tmp_path: Path) -> None:
    streams = [rows(41), rows(42)]
    query = (
        f"SELECT ONLINE a.t, a.k % 2 AS odd, SUM(b.f) AS s, MAX(b.d) AS m {FROM} GROUP BY a.t, a.k % 2 "
        "EMIT EVERY 7 MICROSECONDS"
    )
    found = joined(streams, on_k, WITHIN)

    def values(pairs: Sequence[Pair]) -> list[Any]:
        return [everything(pairs)[3], max(present([b["d"] for _, b in pairs]), default=None)]

    out = given(loop_of(planned(query), tmp_path), streams, batches=15, repeated=True)
    asked = Asked(7, lambda pair: (pair[0]["t"], pair[0]["k"] % 2), values, end)
    assert check(out, found, asked, moments(streams, found, 15, 7), keys=2) > 10
    assert any(row["t"] is None for row in flat(out))


def test_one_stream_has_no_end(tmp_path: Path) -> None:
    stream = rows(43, 120)
    query = "SELECT ONLINE k, COUNT(*) AS n, SUM(x) AS s FROM a WHERE id % 3 <> 0 GROUP BY k EMIT EVERY 20 MICROSECONDS"
    found = joined([stream], lambda row: row["id"] % 3 != 0)

    def values(pairs: Sequence[Pair]) -> list[Any]:
        x = present([row["x"] for (row,) in pairs])
        return [len(pairs), sum(x) if x else None]

    out = given(loop_of(planned(query), tmp_path), [stream], batches=10)
    assert check(out, found, Asked(20, by_k, values)) > 10


def test_a_reach_for_each_side_and_for_each_of_three_streams(tmp_path: Path) -> None:
    streams = [rows(44, span=4), rows(45, span=4)]
    query = (
        "SELECT ONLINE a.k, COUNT(*) AS n FROM a, b WHERE a.k = b.k WITHIN (5 MICROSECONDS, 30 MICROSECONDS) "
        "GROUP BY a.k EMIT EVERY 3 MICROSECONDS"
    )
    reaches = {"a": 30, "b": 5, "c": 12}

    def ends(pair: Pair, names: str) -> int:
        oldest = min(part["ts"] for part in pair)
        return max(int(oldest) + reaches[name] for name, part in zip(names, pair, strict=True) if part["ts"] == oldest)

    def near(pair: Pair, names: str) -> bool:
        newest = max(part["ts"] for part in pair)
        return all(newest <= part["ts"] + reaches[name] for name, part in zip(names, pair, strict=True))

    found = [(at, pair) for at, pair in joined(streams, on_k) if near(pair, "ab")]
    asked = Asked(3, by_k, lambda pairs: [len(pairs)], lambda pair: ends(pair, "ab"))
    out = given(loop_of(planned(query), tmp_path / "two"), streams, batches=20)
    assert check(out, found, asked, moments(streams, found, 20, 3)) > 10
    three = [*streams, rows(46, span=4)]
    query = (
        "SELECT ONLINE a.k, COUNT(*) AS n FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k WITHIN 30 MICROSECONDS FOR a, "
        "5 MICROSECONDS FOR b, 12 MICROSECONDS FOR c GROUP BY a.k EMIT EVERY 3 MICROSECONDS"
    )
    found = [(at, triple) for at, triple in joined(three, on_k) if near(triple, "abc")]
    asked = Asked(3, by_k, lambda pairs: [len(pairs)], lambda pair: ends(pair, "abc"))
    out = given(loop_of(planned(query), tmp_path / "three"), three, batches=20, repeated=True)
    assert check(out, found, asked, moments(three, found, 20, 3)) > 10


def test_rows_without_partner_count_for_their_own_reach(tmp_path: Path) -> None:
    streams = [rows(47), rows(48)]
    query = (
        "SELECT ONLINE a.k, COUNT(*) AS n, COUNT(b.id) AS m FROM a LEFT JOIN b ON a.k = b.k AND b.x > 20 "
        "WITHIN 20 MICROSECONDS GROUP BY a.k EMIT EVERY 10 MICROSECONDS"
    )
    pairs = joined(streams, lambda a, b: on_k(a, b) and b["x"] is not None and b["x"] > 20, WITHIN)
    met = {pair[0]["id"] for _, pair in pairs}
    found = [*pairs, *((row["ts"], (row,)) for row in streams[0].to_pylist() if row["id"] not in met)]
    asked = Asked(10, by_k, lambda of: [len(of), sum(len(pair) == 2 for pair in of)], end)
    out = given(loop_of(planned(query), tmp_path), streams, batches=15, repeated=True)
    assert check(out, found, asked) > 10


@pytest.mark.parametrize("kind", ["SEMI", "ANTI"])
def test_rows_of_a_semi_and_of_an_anti_join(kind: str, tmp_path: Path) -> None:
    streams = [rows(49), rows(50)]
    query = (
        f"SELECT ONLINE a.k, COUNT(*) AS n, MAX(a.id) AS m FROM a LEFT {kind} JOIN b ON a.k = b.k AND b.x > 20 "
        "WITHIN 20 MICROSECONDS GROUP BY a.k EMIT EVERY 10 MICROSECONDS"
    )
    pairs = joined(streams, lambda a, b: on_k(a, b) and b["x"] is not None and b["x"] > 20, WITHIN)
    met = {pair[0]["id"] for _, pair in pairs}
    found = [(row["ts"], (row,)) for row in streams[0].to_pylist() if (row["id"] in met) == (kind == "SEMI")]
    asked = Asked(10, by_k, lambda of: [len(of), max(row["id"] for (row,) in of)], end)
    out = given(loop_of(planned(query), tmp_path), streams, batches=15)
    assert check(out, found, asked) > 10


def test_it_is_what_duckdb_computes(tmp_path: Path) -> None:
    streams = [rows(53, 150), rows(54, 150)]
    query = (
        f"SELECT ONLINE a.t, COUNT(*) AS n, SUM(b.x) AS s, MAX(b.t) AS m, STDDEV(b.x) AS d {FROM} GROUP BY a.t "
        "EMIT EVERY 10 MICROSECONDS"
    )
    out = given(loop_of(planned(query), tmp_path), streams, batches=20)
    table: dict[Any, list[Any]] = {}
    compared = 0
    with duckdb.connect() as database:
        for name, part in zip("ab", streams, strict=True):
            database.register(name, pa.Table.from_batches([part]))
        for batch in out:
            if (moment := replayed(table, batch, 1, is_close)) is None:
                continue
            theirs = database.execute(
                "SELECT a.t, COUNT(*), SUM(b.x), MAX(b.t), STDDEV(b.x) FROM a, b WHERE a.k = b.k AND "
                f"abs(a.ts - b.ts) <= {WITHIN} AND greatest(a.ts, b.ts) <= {moment} AND "
                f"{moment} <= least(a.ts, b.ts) + {WITHIN} GROUP BY ALL"
            ).fetchall()
            check_table(table, {t: values for t, *values in theirs}, is_close)
            compared += len(theirs)
    assert compared > 10


def batches_of(loop: Loop, *brought: Sequence[int]) -> list[list[tuple[int, int]]]:
    """(emit time, count) of all, for the rows of each batch; the last batch is the end of input if it is empty."""
    out = []
    for number, times in enumerate(brought):
        listed = pa.RecordBatch.from_pylist([{"ts": at, "id": 0, "k": 1} for at in times], schema=STREAMS["a"].columns)
        now = Brought([[listed] if times else []], 1_000_000 * number, drains=not times)
        out.append([(moment_of(row), row["n"]) for _, part in loop.batch(now) for row in part.to_pylist()])
        loop.commit(now)
    return out


def test_a_moment_is_given_once_the_watermark_is_above_it_and_late_rows_count_from_the_next_on(tmp_path: Path) -> None:
    loop = loop_of(planned("SELECT ONLINE k, COUNT(*) AS n FROM a GROUP BY k EMIT EVERY 100 MICROSECONDS"), tmp_path)
    # Allowed delay 15: 115 makes the watermark 100, which is not above 100.
    assert batches_of(loop, [10, 100, 115], [116], [90, 117], [216], []) == [
        [], [(100, 2)], [], [(200, 6)], [(300, 7)]
    ]  # fmt: skip
    assert sum(report.folded.get("late", 0) for report in loop.reports) == 0


def test_late_rows_are_counted(tmp_path: Path) -> None:
    loop = loop_of(planned("SELECT ONLINE k, COUNT(*) AS n FROM a GROUP BY k EMIT EVERY 100 MICROSECONDS"), tmp_path)
    late = 0
    for times in ([10, 116], [90, 95, 117]):
        batches_of(loop, times)
        late += sum(report.folded.get("late", 0) for report in loop.reports)
    assert late == 2


def test_state_is_as_large_as_what_still_counts(tmp_path: Path) -> None:
    streams = [rows(55, 1_500, span=1), rows(56, 1_500, span=1)]
    loop = loop_of(planned(f"SELECT ONLINE a.k, COUNT(*) AS n {FROM} GROUP BY a.k EMIT EVERY 5 MICROSECONDS"), tmp_path)
    kept, files = [], []
    for number, pieces in enumerate(cut(streams, 30)):
        brought = Brought(pieces, 1_000_000 * number)
        list(loop.batch(brought))
        loop.commit(brought)
        reports = [report for report in loop.reports if report.label.startswith("G")]
        kept.append(sum(sum(report.stored_rows) for report in reports))
        files.append(sum(report.segments for report in reports))
    # Four keys; of a batch's 50 us and the delay's 15 views with five last moments each, and as much that is dead.
    assert 0 < max(kept) <= 2 * 4 * (50 + 15 + 20) // 5 * 5
    assert max(files) <= 5 * 3


Mutation = Callable[[pytest.MonkeyPatch], None]


def _no_tombstone(patch: pytest.MonkeyPatch) -> None:
    given_rows = changing.ChangingStep._given
    patch.setattr(
        changing.ChangingStep, "_given",
        lambda self, operation, *rest: iter(()) if operation == "delete" else given_rows(self, operation, *rest),
    )  # fmt: skip


def _at_the_mark(patch: pytest.MonkeyPatch) -> None:
    at_us = changing.ChangingStep._at_us

    def later(self: changing.ChangingStep, clock: Any, kept: Any) -> int | None:
        found = at_us(self, clock, kept)
        return None if found is None or clock.ended else clock.mark_us // self.every_us * self.every_us

    patch.setattr(changing.ChangingStep, "_at_us", later)


@pytest.mark.parametrize("mutation", [views_twice, _no_tombstone, _at_the_mark])
def test_an_easy_mistake_is_caught(mutation: Mutation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    streams = [rows(33), rows(34)]
    found = joined(streams, on_k, WITHIN)
    query = LEAVING.replace("EVERY 10", "EVERY 1")
    asked = Asked(1, by_k, everything, end)

    def run(folder: Path) -> None:
        out = given(loop_of(planned(query), folder), streams, batches=20)
        check(out, found, asked, moments(streams, found, 20, 1))

    run(tmp_path / "right")
    mutation(monkeypatch)
    with pytest.raises(AssertionError):
        run(tmp_path / "wrong")


@pytest.mark.parametrize(("example", "stays"), list(enumerate([False, True])))
def test_the_examples_of_the_documents(example: int, stays: bool, tmp_path: Path) -> None:
    """docs/query-language.md shows two streams, queries and what they give when each row is a batch."""
    text = PAGE.split("<!-- example of changing groups -->")[1].split("<!-- end -->")[0]
    first, second, *every = tables_in(text)
    schemas, arrivals = {}, []
    for number, ((head, *names), _, *listed) in enumerate((first, second)):
        stream, _, time = head.partition(": ")
        kinds = [pa.int64() if cell.isdecimal() else pa.string() for cell in listed[0][1:]]
        columns = pa.schema([(time, pa.timestamp("us", "UTC")), *zip(names, kinds, strict=True)])
        schemas[stream] = StreamSchema(stream, columns, time)
        for at, *cells in listed:
            values = [int(cell) if cell.isdecimal() else cell for cell in cells]
            row = dict(zip(columns.names, [dt.datetime.fromisoformat(f"2026-01-01T{at}+00:00"), *values], strict=True))
            arrivals.append((at, number, pa.RecordBatch.from_pylist([row], schema=columns)))
    query = text.split("```sql")[1 + example].split("```")[0]
    assert ("CUMULATIVE" in query) is stays
    plan = plan_query(query, schemas)
    loop = loop_of(plan, tmp_path)  # type: ignore[arg-type]
    mine: list[list[str]] = []
    arrivals.sort(key=lambda arrival: arrival[0])
    for number in range(len(arrivals) + 1):
        pieces: list[list[pa.RecordBatch]] = [[], []]
        if number < len(arrivals):
            pieces[arrivals[number][1]] = [arrivals[number][2]]
        now = Brought(pieces, 1_000_000 * number, drains=number == len(arrivals))
        for row in (row for _, part in loop.batch(now) for row in part.to_pylist()):
            row["emit_time"] = row["emit_time"].strftime("%H:%M:%S")
            mine.append(["NULL" if value is None else str(value) for value in row.values()])
        loop.commit(now)
    names, _, *expected = every[example]
    assert names == list(plan.queries[0].output.names)
    assert sorted(mine) == sorted(expected) and [row[-1] for row in mine] == [row[-1] for row in expected]
