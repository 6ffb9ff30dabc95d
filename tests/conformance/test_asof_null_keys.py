"""As-of joins whose keys are compared by IS NOT DISTINCT FROM, against a nested loop: NULL is a key like others."""

from __future__ import annotations

import datetime
import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.engine.loop import Brought
from streamjoin.operators.asof import versions
from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query

from .loops import joined, loop_of

DISORDER_US = 9
_DAY = datetime.date(2023, 11, 14)
_NS = 1_700_000_000_000_000_000
KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "whole": (pa.int64(), [0, 1, 2**53, 2**53 + 1, -(2**63)]),
    "small": (pa.int8(), [0, 1, -128]),
    "truth": (pa.bool_(), [False, True]),
    "number": (pa.float64(), [math.nan, 0.0, -0.0, 1.0]),
    "half": (pa.float32(), [0.0, 1.0, math.inf]),
    "money": (pa.decimal128(5, 2), [Decimal("0.00"), Decimal("0.10")]),
    "wide": (pa.decimal128(38, 20), [Decimal(0), Decimal("1.00000000000000000001"), Decimal("1.00000000000000000002")]),
    "words": (pa.string(), ["", "aaaaaaaaX", "aaaaaaaaY", "é"]),
    "bytes": (pa.binary(), [b"", b"\0", b"\0\0"]),
    "day": (pa.date32(), [datetime.date(1970, 1, 1), _DAY]),
    "moment": (pa.timestamp("us", tz="UTC"), [0, _NS // 1_000]),
    "nanos": (pa.timestamp("ns", tz="UTC"), [0, _NS, _NS + 1]),
}
"""By name a column's type and values of which some lie in one cell of an index, or in that of NULL."""
COLUMNS = pa.schema([("ts", pa.int64()), ("id", pa.int64()), *((name, kind) for name, (kind, _) in KEYS.items())])
STREAMS = {name: StreamSchema(name, COLUMNS, "ts", "us", DISORDER_US) for name in "tqn"}
ON: dict[str, tuple[str, ...]] = {
    **{name: (name,) for name in KEYS},
    "two": ("whole", "words"),
    "three": ("truth", "small", "moment"),
}
Row = dict[str, Any]


def rows(seed: int, count: int = 80, ends: Sequence[str] | None = None) -> pa.RecordBatch:
    """Rows out of order by less than the allowed delay; three in ten keys are NULL.

    Args:
        ends: the key that three in ten rows end, as they have nothing else.
    """
    chosen = random.Random(seed)
    times = sorted(chosen.randrange(2 * count) for _ in range(count))
    made = []
    for number, time in enumerate(times):
        row: Row = {"ts": max(time - chosen.randrange(DISORDER_US), 0), "id": number}
        row |= {name: None if chosen.random() < 0.3 else chosen.choice(values) for name, (_, values) in KEYS.items()}
        if ends is not None and chosen.random() < 0.3:
            row = {name: value for name, value in row.items() if name in ("ts", *ends)}
        made.append(row)
    return pa.RecordBatch.from_pylist(made, COLUMNS)


def plain(given: pa.RecordBatch) -> list[Row]:
    """Rows with nanoseconds as numbers, which Python's times have none of, and NaN as a text."""
    place = COLUMNS.names.index("nanos")
    found = given.set_column(place, "nanos", given.column("nanos").cast(pa.int64())).to_pylist()
    return [
        {name: "NaN" if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}
        for row in found
    ]


def nested_loop(
    left: pa.RecordBatch, right: pa.RecordBatch, nulls: Sequence[str], others: Sequence[str] = (), *, older: bool,
    ended: Callable[[Row], bool] = lambda _: False,
) -> Counter[Any]:  # fmt: skip
    """What each left row gives.

    Args:
        nulls: keys of which NULL equals NULL.
        others: those of which it equals nothing.
    """
    found: Counter[Any] = Counter()
    quotes = plain(right)
    for row in plain(left):
        best: Row | None = None
        for quote in quotes:
            alike = all(row[key] == quote[key] for key in (*nulls, *others))
            alike = alike and all(row[key] is not None for key in others)
            reached = quote["ts"] < row["ts"] if older else quote["ts"] <= row["ts"]
            if alike and reached and (best is None or quote["ts"] >= best["ts"]):
                best = quote
        found[row["id"], None if best is None or ended(best) else best["id"]] += 1
    return found


def text(nulls: Sequence[str], others: Sequence[str] = (), *, older: bool) -> str:
    equal = [f"t.{key} IS NOT DISTINCT FROM q.{key}" for key in nulls] + [f"t.{key} = q.{key}" for key in others]
    return (
        f"SELECT ONLINE t.id AS t, q.id AS q FROM t ASOF LEFT JOIN q ON {' AND '.join(equal)} "
        f"AND t.ts {'>' if older else '>='} q.ts"
    )


@pytest.mark.parametrize("on", ON)
def test_null_is_a_key_like_others(on: str, tmp_path: Path) -> None:
    for seed, older in enumerate([False, True]):
        streams = rows(10 * seed), rows(10 * seed + 1)
        wanted = nested_loop(*streams, ON[on], older=older)
        loop = loop_of(plan_query(text(ON[on], older=older), STREAMS), "asof", tmp_path / str(seed), 1, 2)
        assert joined(loop, streams, 4, 1, repeated=on == "two") == wanted


@pytest.mark.parametrize("on", KEYS)
def test_beside_it_null_of_another_key_equals_nothing(on: str, tmp_path: Path) -> None:
    other = "small" if on != "small" else "truth"
    streams = rows(21), rows(22)
    wanted = nested_loop(*streams, (on,), (other,), older=False)
    plan = plan_query(text((on,), (other,), older=False), STREAMS)
    assert joined(loop_of(plan, "asof", tmp_path, 1, 2), streams, 4, 1) == wanted


@pytest.mark.parametrize("on", ON)
def test_the_key_that_is_null_can_end(on: str, tmp_path: Path) -> None:
    keys = ON[on]
    streams = rows(31), rows(32, ends=keys)
    wanted = nested_loop(*streams, keys, older=False, ended=lambda row: row["id"] is None)
    stream = StreamSchema("q", COLUMNS, "ts", "us", DISORDER_US, key=keys)
    plan = plan_query(text(keys, older=False), {**STREAMS, "q": stream})
    assert joined(loop_of(plan, "asof", tmp_path, 1, 2), streams, 6, 1) == wanted


def test_keys_that_fall_into_one_cell_stay_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = versions.key_cells
    monkeypatch.setattr(versions, "key_cells", lambda plan, keys: cells(plan, keys) % 2)
    for on in ("whole", "words", "two"):
        for ends in (None, ON[on]):
            streams = rows(41), rows(42, ends=ends)
            wanted = nested_loop(*streams, ON[on], older=False, ended=lambda row: row["id"] is None)
            stream = StreamSchema("q", COLUMNS, "ts", "us", DISORDER_US, key=ends or ())
            plan = plan_query(text(ON[on], older=False), {**STREAMS, "q": stream})
            loop = loop_of(plan, "asof", tmp_path / f"{on} {ends}", 1, 2)
            assert joined(loop, streams, 8, 1) == wanted


def test_a_row_that_a_left_join_gave_nothing_gets_the_latest_without_a_key(tmp_path: Path) -> None:
    """The key that ON compares is of n, which has no row for any of t."""
    query = (
        "SELECT ONLINE t.id AS t, q.id AS q FROM t LEFT JOIN n ON t.id = n.id + 1000 "
        "ASOF LEFT JOIN q ON n.whole IS NOT DISTINCT FROM q.whole AND t.ts >= q.ts WITHIN 1 SECOND"
    )
    left, right = rows(51), rows(53)
    place = COLUMNS.names.index("whole")
    without = left.set_column(place, "whole", pa.nulls(left.num_rows, pa.int64()))
    wanted = nested_loop(without, right, ("whole",), older=False)
    loop = loop_of(plan_query(query, STREAMS), "biclique by hash", tmp_path, 1)
    assert joined(loop, (left, rows(52, 10), right), 4, 1) == wanted


def test_null_beside_the_value_in_its_place_is_let_go(tmp_path: Path) -> None:
    """The two come in turns, and of both only the latest can be needed."""
    loop = loop_of(plan_query(text(("whole",), older=False), STREAMS), "asof", tmp_path, units=1)
    kept = []
    for number in range(60):
        made = [{"ts": 20 * number + at, "id": at, "whole": 0 if at % 2 else None} for at in range(20)]
        brought = Brought([[pa.RecordBatch.from_pylist(made, COLUMNS)]] * 2, number)
        list(loop.batch(brought))
        loop.commit(brought)
        kept.append(sum(loop.reports[0].stored_rows))
    assert max(kept[20:]) <= max(kept[5:20]) < 150


def test_easy_mistakes_are_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    streams = rows(61), rows(62)
    wanted = nested_loop(*streams, ("whole",), older=False)
    plan = plan_query(text(("whole",), older=False), STREAMS)
    monkeypatch.setattr(versions, "unsettled", lambda plan: None)
    monkeypatch.setattr(versions, "key_cells", lambda plan, keys: versions.equality_cells(list(keys)))
    assert joined(loop_of(plan, "asof", tmp_path, 1, 1), streams, 8, 1) != wanted
