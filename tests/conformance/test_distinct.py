"""SELECT DISTINCT: one row for each run of rows that are alike, against plain Python."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.engine.loop import Brought
from streamjoin.operators.aggregate import runs
from streamjoin.plan.join import RESULT_TIME
from streamjoin.plan.stages import Cascade
from streamjoin.query import plan_query

from .groups import STREAMS, Pair, joined, rows
from .loops import cut
from .test_groups import flat, given, loop_of, planned
from .test_outer_docs import PAGE, stream_of, tables_in

WITHIN = 20
QUERY = f"SELECT DISTINCT ONLINE a.k, b.p, b.f FROM a, b WHERE a.k = b.k WITHIN {WITHIN} MICROSECONDS"
Value = tuple[Any, ...]


def on_k(*parts: Any) -> bool:
    return all(part["k"] == parts[0]["k"] is not None for part in parts)


def value_of(pair: Pair) -> Value:
    zero_is_one = pair[-1]["f"]
    return pair[0]["k"], pair[-1]["p"], 0.0 if zero_is_one == 0 else zero_is_one


def end(pair: Pair) -> int:
    return int(min(part["ts"] for part in pair)) + WITHIN


def wanted(
    found: Sequence[tuple[int, Pair]], value: Callable[[Pair], Value], ends: Callable[[Pair], int] | None = end
) -> Counter[Value]:
    """How many runs each value has."""
    spans: dict[Value, list[tuple[int, int]]] = {}
    for hi, pair in found:
        spans.setdefault(value(pair), []).append((hi, ends(pair) if ends else 1 << 60))
    out: Counter[Value] = Counter()
    for of, times in spans.items():
        last = -1
        for hi, until in sorted(times):
            out[of] += hi > last
            last = max(last, until)
    return out


def counted(batches: Sequence[Sequence[dict[str, Any]]]) -> Counter[Value]:
    return Counter(tuple(row.values()) for row in flat(batches))


@pytest.mark.parametrize(("slots", "units", "batches"), [(1, 1, 1), (2, 3, 7), (4, 4, 25)])
def test_each_run_is_given_once_however_it_is_cut(slots: int, units: int, batches: int, tmp_path: Path) -> None:
    streams = [rows(61), rows(62)]
    expected = wanted(joined(streams, on_k, WITHIN), value_of)
    assert max(expected.values()) > 1 and len(expected) > 10
    assert counted(given(loop_of(planned(QUERY), tmp_path, slots, units), streams, batches=batches)) == expected


def test_batches_done_again_and_arrival_in_another_order_change_nothing(tmp_path: Path) -> None:
    streams = [rows(63), rows(64)]
    expected = wanted(joined(streams, on_k, WITHIN), value_of)
    out = given(loop_of(planned(QUERY), tmp_path / "again"), streams, batches=9, repeated=True)
    assert counted(out) == expected
    loop = loop_of(planned(QUERY), tmp_path / "mixed")
    out = []
    for batch, brought in enumerate([*cut(streams, 7, 3), [[], []]]):
        mixed = [random.Random(batch).sample(parts, len(parts)) for parts in brought]
        now = Brought(mixed, 1_000_000 * batch, drains=batch == 7)
        out.append([row for _, part in loop.batch(now) for row in part.to_pylist()])
        loop.commit(now)
    assert counted(out) == expected


def test_without_within_a_row_is_given_once_for_ever(tmp_path: Path) -> None:
    streams = [rows(65), rows(66)]
    query = "SELECT DISTINCT ONLINE a.k, b.t FROM a, b WHERE a.k = b.k"
    expected = wanted(joined(streams, on_k), lambda pair: (pair[0]["k"], pair[1]["t"]), None)
    out = given(loop_of(planned(query), tmp_path / "two"), streams, batches=9, repeated=True)
    assert counted(out) == expected and set(expected.values()) == {1}
    query = "SELECT ONLINE DISTINCT t, p FROM a WHERE id % 3 <> 0"
    alone = joined([streams[0]], lambda row: row["id"] % 3 != 0)
    out = given(loop_of(planned(query), tmp_path / "one"), [streams[0]], batches=9)
    assert counted(out) == wanted(alone, lambda pair: (pair[0]["t"], pair[0]["p"]), None)


def test_rows_without_partner_and_three_streams(tmp_path: Path) -> None:
    streams = [rows(67), rows(68), rows(69)]
    query = "SELECT DISTINCT ONLINE a.k, b.p FROM a LEFT JOIN b ON a.k = b.k AND b.x > 20 WITHIN 20 MICROSECONDS"
    pairs = joined(streams[:2], lambda a, b: on_k(a, b) and b["x"] is not None and b["x"] > 20, WITHIN)
    met = {pair[0]["id"] for _, pair in pairs}
    found = [*pairs, *((row["ts"], (row,)) for row in streams[0].to_pylist() if row["id"] not in met)]
    out = given(loop_of(planned(query), tmp_path / "left"), streams[:2], batches=9, repeated=True)
    assert counted(out) == wanted(found, lambda of: (of[0]["k"], of[1]["p"] if len(of) == 2 else None))
    query = "SELECT DISTINCT ONLINE a.k, c.p FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k WITHIN 20 MICROSECONDS"
    out = given(loop_of(planned(query), tmp_path / "three"), streams, batches=9)
    found = joined(streams, on_k, WITHIN)
    assert counted(out) == wanted(found, lambda of: (of[0]["k"], of[2]["p"]))


def test_a_run_is_given_when_the_watermark_has_passed_its_first_row(tmp_path: Path) -> None:
    loop = loop_of(planned("SELECT DISTINCT ONLINE t FROM a"), tmp_path)
    out = []
    for number, times in enumerate([[10], [25], [26, 12], [40], []]):
        listed = [{"ts": at, "id": at, "t": "x" if at < 30 else "y"} for at in times]
        stream = pa.RecordBatch.from_pylist(listed, schema=STREAMS["a"].columns)
        now = Brought([[stream] if times else []], number, drains=not times)
        out.append([row["t"] for _, part in loop.batch(now) for row in part.to_pylist()])
        loop.commit(now)
    # The allowed delay is 15: the row of 25 makes the watermark 10, which has not passed 10.
    assert out == [[], [], ["x"], [], ["y"]]


def test_state_is_what_may_still_be_seen_again(tmp_path: Path) -> None:
    streams = [rows(70, 1_500, span=1), rows(71, 1_500, span=1)]
    query = f"SELECT DISTINCT ONLINE a.k, b.p FROM a, b WHERE a.k = b.k WITHIN {WITHIN} MICROSECONDS"
    loop = loop_of(planned(query), tmp_path)
    kept = []
    for number, pieces in enumerate(cut(streams, 30)):
        brought = Brought(pieces, 1_000_000 * number)
        list(loop.batch(brought))
        loop.commit(brought)
        kept.append(sum(sum(one.stored_rows) for one in loop.reports if one.label.startswith("G")))
    # Twelve values; of a batch's 50 us and the delay's 15 a view for each hi and end, and as much that is dead.
    assert 0 < max(kept) <= 2 * 12 * (50 + 15) * (WITHIN + 1)
    assert max(kept[20:]) <= 2 * max(kept[5:12])


def _per_unit(patch: pytest.MonkeyPatch) -> None:
    from streamjoin.operators.aggregate.operator import Aggregate

    def apart(self: Aggregate, side: int, tuples: Any) -> Any:
        from streamjoin.engine.routing import STORE, Route, split

        return [Route(found, ((unit, STORE),)) for unit, found in split(tuples.identity % self.count)]

    patch.setattr(Aggregate, "route", apart)


def _forgets(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(runs.RunsStep, "needed", lambda self, one, rows: None)


def _no_end(patch: pytest.MonkeyPatch) -> None:
    begins = runs._begins
    patch.setattr(runs, "_begins", lambda numbers, his, ends: begins(numbers, his, his))


@pytest.mark.parametrize("mutation", [_per_unit, _forgets, _no_end])
def test_an_easy_mistake_is_caught(
    mutation: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = [rows(61), rows(62)]
    mutation(monkeypatch)
    found = counted(given(loop_of(planned(QUERY), tmp_path), streams, batches=7))
    assert found != wanted(joined(streams, on_k, WITHIN), value_of)


def test_the_example_of_the_documents(tmp_path: Path) -> None:
    """docs/query-language.md shows two streams, a query and what it gives, with its times."""
    text = PAGE.split("<!-- example of distinct -->")[1].split("<!-- end -->")[0]
    *streams, (_, _, *shown) = tables_in(text)
    streams_given = [stream_of(table) for table in streams]
    plan = plan_query(text.split("```sql")[1].split("```")[0], {schema.name: schema for schema, _ in streams_given})
    assert isinstance(plan, Cascade)
    found = flat(given(loop_of(plan.keyed(), tmp_path), [some for _, some in streams_given], batches=1))
    times = [dt.datetime.fromtimestamp(row[RESULT_TIME] / 1e6, dt.UTC) for row in found]
    mine = [[row["customer"], time.strftime("%H:%M:%S")] for row, time in zip(found, times, strict=True)]
    assert sorted(mine) == sorted(shown)
