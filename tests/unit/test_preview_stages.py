"""A preview of a join of three streams and more shows rows that a nested loop finds, within its bounds."""

from __future__ import annotations

import itertools
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin.explain import preview
from streamjoin.explain.preview import Preview
from streamjoin.spec.joinfile import load
from streamjoin.spec.prepare import bind

pytestmark = pytest.mark.slow

SECOND = 1_000_000
COLUMNS = pa.schema([("ts", pa.timestamp("us", "UTC")), ("id", pa.int64()), ("k", pa.int32()), ("x", pa.int64()),
                     ("word", pa.string())])  # fmt: skip
SELECT = "SELECT ONLINE a.id AS a_id, b.id AS b_id, c.id AS c_id, a.x + c.x AS paid, UPPER(b.word) AS said"
Row = dict[str, Any]


def some(rows: int, seed: int, begin_s: float = 0.0) -> list[Row]:
    """Rows of ten a second, out of order, some of their cells NULL."""
    made = random.Random(seed)
    return [
        {
            "ts": int((begin_s + place / 10) * SECOND) + made.randrange(400_000),
            "id": place,
            "k": None if made.random() < 0.1 else made.randrange(5),
            "x": made.randrange(50),
            "word": made.choice(["ab", "b", None]),
        }
        for place in range(rows)
    ]


def previewed(folder: Path, query: str, more: str = "", **streams: list[Row]) -> Preview:
    entries = []
    for name, rows in streams.items():
        (folder / name).mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows, schema=COLUMNS), folder / name / "1.parquet")
        entries.append(f"  {name}: {{source: parquet, path: {name}, time: ts}}")
    text = "\n".join(["streams:", *entries, "run: {checkpoint: state}", f'query: "{query}"', more])
    return preview_of(folder, text)


def preview_of(folder: Path, text: str) -> Preview:
    """A preview of a join file with this text."""
    (folder / "join.yaml").write_text(text)
    return preview.preview(bind(load(folder / "join.yaml")))


def beside_a_relation(folder: Path, query: str) -> Preview:
    """A preview of streams a and b, whose rows are there, and of a relation c with one row."""
    (folder / "c.csv").write_text("k,n\n1,x\n")
    streams = "".join(f"  {name}: {{source: csv, path: {name}.csv, time: ts}}\n" for name in "ab")
    text = f"streams:\n{streams}relations: {{c: {{source: csv, path: c.csv}}}}\nquery: {query!r}\n"
    return preview_of(folder, text)


def rows_of(found: Preview) -> list[tuple[Any, ...]]:
    rows = found.queries[0].rows
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def same(one: Any, other: Any) -> bool:
    return one is not None and one == other


CONDITIONS: list[tuple[str, Callable[..., bool]]] = [
    ("a.k = b.k AND b.k = c.k", lambda a, b, c: same(a["k"], b["k"]) and same(b["k"], c["k"])),
    ("a.k = b.k AND a.x = c.x", lambda a, b, c: same(a["k"], b["k"]) and a["x"] == c["x"]),
    ("ABS(a.x - b.x) <= 3 AND b.word = 'ab' AND a.x + b.x < c.x",
     lambda a, b, c: abs(a["x"] - b["x"]) <= 3 and b["word"] == "ab" and a["x"] + b["x"] < c["x"]),
]  # fmt: skip


@pytest.mark.parametrize(("within_s", "window"), [(2, " WITHIN 2 SECONDS"), (None, "")])
@pytest.mark.parametrize(("condition", "match"), CONDITIONS, ids=[text for text, _ in CONDITIONS])
def test_rows_are_those_of_a_nested_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, condition: str, match: Callable[..., bool],
    within_s: int | None, window: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(preview, "ROWS", 1 << 30)
    monkeypatch.setattr(preview, "JOIN_S", 120.0)
    monkeypatch.setattr(preview, "BATCH_ROWS", 20)
    streams = {"a": some(60, 1), "b": some(75, 2), "c": some(50, 3)}
    found = previewed(tmp_path, f"{SELECT} FROM a, b, c WHERE {condition}{window}", **streams)
    expected: Counter[Any] = Counter()
    for a, b, c in itertools.product(*streams.values()):
        times = [one["ts"] for one in (a, b, c)]
        if (within_s is None or max(times) - min(times) <= within_s * SECOND) and match(a, b, c):
            expected[a["id"], b["id"], c["id"], a["x"] + c["x"], b["word"] and b["word"].upper()] += 1
    assert Counter(rows_of(found)) == expected
    assert expected.total() > 20 and not found.cut_off
    assert [(one.name, one.rows) for one in found.looked] == [("a", 60), ("b", 75), ("c", 50)]


def test_four_streams_one_of_them_twice_give_twenty_rows_that_results_keep(tmp_path: Path) -> None:
    query = (
        "SELECT ONLINE p.id AS p, q.id AS q, b.k AS k, c.k AS other FROM a AS p JOIN a AS q ON p.id = q.id "
        "JOIN b ON q.k = b.k JOIN c ON b.k = c.k WITHIN 5 SECONDS"
    )
    kept = "results: {store: sqlite, path: r.db, where: k > 2}"
    found = previewed(tmp_path, query, kept, a=some(200, 1), b=some(200, 2), c=some(200, 3))
    rows = rows_of(found)
    assert len(rows) == 20 and all(p == q and k == other > 2 for p, q, k, other in rows)


@pytest.mark.parametrize(
    ("c", "condition", "said"),
    [
        ([], "b.k = c.k", "c has no rows to look at yet"),
        (some(20, 3, begin_s=9_000), "b.k = c.k", "no pair of them is within 2 s"),
        (some(20, 3), "b.k = c.k AND c.x > 99", "no row of c that was looked at meets"),
        ([{**row, "k": None} for row in some(20, 3)], "b.k = c.k", "the key is NULL in every row of c"),
        ([{**row, "k": 77} for row in some(20, 3)], "b.k = c.k", "no combination of the rows that were looked at"),
    ],
)
def test_without_rows_it_says_why(tmp_path: Path, c: list[Row], condition: str, said: str) -> None:
    query = f"{SELECT} FROM a, b, c WHERE a.k = b.k AND {condition} WITHIN 2 SECONDS"
    found = previewed(tmp_path, query, a=some(30, 1), b=some(30, 2), c=c)
    assert found.queries[0].rows.num_rows == 0
    assert said in (found.queries[0].reason or "")


def test_what_the_first_stage_finds_fills_neither_memory_nor_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = f"{SELECT} FROM a, b, c WHERE a.x + b.x + c.x = 1000"  # every pair of a and b goes on, and none ends well
    streams = {name: some(3_000, seed) for seed, name in enumerate("abc")}
    begun_s = time.monotonic()
    found = previewed(tmp_path, query, **streams)
    assert time.monotonic() - begun_s < 30
    assert found.cut_off and found.queries[0].reason == "time ran out before a combination was found"
    # Room alone ends it, too.
    monkeypatch.setattr(preview, "JOIN_S", 120.0)
    monkeypatch.setattr(preview, "FED_BYTES", 1 << 20)
    begun_s = time.monotonic()
    assert previewed(tmp_path, query, **streams).cut_off
    assert time.monotonic() - begun_s < 30


def test_rows_without_a_partner_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What no row that was looked at matches is shown as unmatched, and a semi join's rows once."""
    monkeypatch.setattr(preview, "ROWS", 1 << 30)
    monkeypatch.setattr(preview, "JOIN_S", 120.0)
    monkeypatch.setattr(preview, "BATCH_ROWS", 7)
    a, b = some(40, 4), some(50, 5)
    found = previewed(
        tmp_path,
        "SELECT ONLINE a.id AS a, b.id AS b FROM a LEFT JOIN b ON a.k = b.k AND a.x > 25 WITHIN 1 SECOND",
        a=a,
        b=b,
    )
    expected: Counter[Any] = Counter()
    semi: Counter[Any] = Counter()
    for one in a:
        met = [other["id"] for other in b if same(one["k"], other["k"]) and abs(one["ts"] - other["ts"]) <= SECOND]
        expected.update((one["id"], other) for other in ((met or [None]) if one["x"] > 25 else [None]))
        semi.update([(one["id"], one["x"])] if met else [])
    assert Counter(rows_of(found)) == expected and any(other is None for _, other in expected)
    found = previewed(
        tmp_path,
        "SELECT ONLINE a.id, c.id AS c, a.x FROM a LEFT SEMI JOIN b ON a.k = b.k LEFT JOIN c ON a.id = c.x + 1000 "
        "WITHIN 1 SECOND",
        a=a,
        b=b,
        c=some(5, 6),
    )
    assert Counter((one, x) for one, none, x in rows_of(found) if none is None) == semi and semi


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("SELECT ONLINE c.n, COUNT(*) AS q FROM a JOIN c ON a.k = c.k GROUP BY c.n, TUMBLE(1 MINUTE)", [("x", 1)]),
        ("SELECT ONLINE a.k, c.n FROM a JOIN c ON a.k = c.k LEFT JOIN b ON a.k = b.k WITHIN 1 SECOND", [(1, "x")]),
        ("SELECT ONLINE a.k, c.n FROM a SEMI JOIN b ON a.k = b.k LEFT JOIN c ON a.k = c.k WITHIN 1 SECOND", [(1, "x")]),
    ],
)
def test_what_waits_and_a_relation_go_together(query: str, wanted: list[Any], tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("ts,k\n2026-01-01T12:00:00Z,1\n")
    assert rows_of(beside_a_relation(tmp_path, query)) == wanted


LOOKED_UP = "FROM a LEFT JOIN c ON a.k = c.k"


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        (f"SELECT ONLINE a.k, c.n, VERSION(c) AS v {LOOKED_UP}", [(1, "x", 1), (2, None, 1)]),
        (f"SELECT ONLINE a.k, c.n {LOOKED_UP} WHERE VERSION(c) = 1", [(1, "x"), (2, None)]),
        ("SELECT ONLINE a.k, VERSION(c) + 1 AS v FROM a JOIN c ON a.k = VERSION(c)", [(1, 2)]),
        ("SELECT ONLINE a.k FROM a LEFT SEMI JOIN c ON a.k = c.k AND VERSION(c) = 1", [(1,)]),
        ("SELECT ONLINE b.k, VERSION(c) AS v FROM a JOIN c ON a.k = c.k RIGHT JOIN b ON a.k = b.k WITHIN 1 SECOND",
         [(1, 1), (2, None)]),
        ("SELECT ONLINE a.k, VERSION(c) AS v, VERSION(d) AS w FROM a LEFT JOIN c ON a.k = c.k JOIN b ON a.k = b.k "
         "JOIN c AS d ON d.k < b.k + a.k WITHIN 1 SECOND", [(1, 1, 1), (2, 1, 1)]),
        (f"SELECT DISTINCT ONLINE VERSION(c) AS v {LOOKED_UP}", [(1,)]),
        (f"SELECT ONLINE a.k, c.n {LOOKED_UP} WHERE VERSION(c) = 2", "meets the condition"),
        ("SELECT ONLINE a.k, c.n FROM a JOIN c ON a.k = c.k WHERE VERSION(c) = 2",
         "no row of c that was looked at meets (VERSION(c) = 2)"),
    ],
)  # fmt: skip
def test_rows_know_the_version_of_the_relation_that_they_met(query: str, wanted: Any, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("ts,k\n2026-01-01T12:00:00Z,1\n2026-01-01T12:00:00Z,2\n")
    found = beside_a_relation(tmp_path, query)
    if isinstance(wanted, str):
        assert wanted in str(found.queries[0].reason)
    else:
        assert sorted(rows_of(found)) == wanted


def test_a_relation_without_a_byte_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts,k\n2026-01-01T12:00:00Z,1\n")
    (tmp_path / "c.csv").write_text("")
    text = (
        "streams: {a: {source: csv, path: a.csv, time: ts}}\n"
        "relations: {c: {source: csv, path: c.csv, schema: {k: int64, n: string}}}\n"
        "query: SELECT ONLINE a.k, c.n FROM a LEFT JOIN c ON a.k = c.k\n"
    )
    assert rows_of(preview_of(tmp_path, text)) == [(1, None)]


def test_rows_that_end_their_key_are_known_beside_another_join(tmp_path: Path) -> None:
    """What tells an end is read, whether or not the query asks for it."""
    (tmp_path / "t.csv").write_text("ts,k\n2026-01-01T12:00:01Z,1\n2026-01-01T12:00:03Z,1\n")
    (tmp_path / "b.csv").write_text("ts,k\n2026-01-01T12:00:02Z,1\n")
    (tmp_path / "m.csv").write_text("ts,id,name,rank\n2026-01-01T12:00:00Z,1,Ada,7\n2026-01-01T12:00:02Z,1,,\n")
    text = (
        "streams:\n  t: {source: csv, path: t.csv, time: ts}\n  b: {source: csv, path: b.csv, time: ts}\n"
        "  m: {source: csv, path: m.csv, time: ts, key: [id], deletes: true}\n"
        "query: SELECT ONLINE t.ts, m.name FROM t ASOF LEFT JOIN m ON t.k = m.id AND t.ts >= m.ts JOIN b ON b.k = t.k "
        "WITHIN 1 MINUTE\n"
    )
    found = preview_of(tmp_path, text)
    assert [name for _, name in sorted(rows_of(found))] == ["Ada", None]
