"""A preview shows rows that the join has, says what it looked at, and why there is no row."""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin.errors import InputError
from streamjoin.explain import overlap, preview
from streamjoin.explain.preview import Preview
from streamjoin.operators import reference
from streamjoin.operators.reference import Row
from streamjoin.plan.evaluation import evaluate
from streamjoin.sources import topic
from streamjoin.spec.joinfile import load
from streamjoin.spec.prepare import Bound, bind

pytestmark = pytest.mark.slow

SECOND = 1_000_000
PRICE = pa.decimal128(10, 2)
COLUMNS = pa.schema([("ts", pa.timestamp("us", "UTC")), ("id", pa.int64()), ("k", pa.int32()), ("price", PRICE),
                     ("word", pa.string())])  # fmt: skip
HEAD = """
streams:
  r: {source: parquet, path: r, time: ts}
  s: {source: parquet, path: s, time: ts}
run: {checkpoint: state}
"""


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a busy machine has no time for is another test's subject."""
    monkeypatch.setattr(preview, "JOIN_S", 120.0)


def some(rows: int, seed: int, begin_s: float = 0.0) -> list[dict[str, Any]]:
    """Rows of ten a second, some of their cells NULL."""
    made = random.Random(seed)

    def cell(value: Any) -> Any:
        return None if made.random() < 0.1 else value

    return [
        {
            "ts": int((begin_s + place / 10) * SECOND) + made.randrange(90_000),
            "id": place,
            "k": cell(made.randrange(8)),
            "price": cell(Decimal(made.randrange(-500, 500)) / 100),
            "word": cell(made.choice(["ab", "b", "cab"])),
        }
        for place in range(rows)
    ]


def files(folder: Path, **streams: list[dict[str, Any]]) -> None:
    for name, rows in streams.items():
        (folder / name).mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows, schema=COLUMNS), folder / name / "1.parquet")


def bound(folder: Path, text: str, **overrides: Any) -> Bound:
    (folder / "join.yaml").write_text(text)
    return bind(load(folder / "join.yaml", overrides))


def of(found: Preview, query: int = 0) -> list[tuple[Any, ...]]:
    rows = found.queries[query].rows
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows are shown, so that none can be missing."""
    monkeypatch.setattr(preview, "ROWS", 1 << 30)


SELECT = "SELECT ONLINE r.id AS r_id, s.id AS s_id, r.price + s.price AS paid FROM r, s WHERE"
Match = Callable[[Row, Row], bool]


def there(*values: Any) -> bool:
    return None not in values


CONDITIONS: list[tuple[str, Match]] = [
    ("r.k = s.k", lambda r, s: there(r["k"]) and r["k"] == s["k"]),
    ("r.k IS NOT DISTINCT FROM s.k", lambda r, s: r["k"] == s["k"]),
    ("r.price BETWEEN s.price - 0.5 AND s.price + 0.5",
     lambda r, s: there(r["price"], s["price"]) and abs(r["price"] - s["price"]) <= Decimal("0.5")),
    ("r.price < s.price AND r.word = 'b'",
     lambda r, s: there(r["price"], s["price"]) and r["price"] < s["price"] and r["word"] == "b"),
    ("r.word || s.word LIKE '%bb%'", lambda r, s: there(r["word"], s["word"]) and "bb" in r["word"] + s["word"]),
    ("r.k + s.k = 7 OR r.id = s.id",
     lambda r, s: r["id"] == s["id"] or (there(r["k"], s["k"]) and r["k"] + s["k"] == 7)),
]  # fmt: skip


@pytest.mark.parametrize(("condition", "match"), CONDITIONS, ids=[text for text, _ in CONDITIONS])
@pytest.mark.parametrize(
    ("window", "before_s", "after_s"), [("2 SECONDS", 2, 2), ("(0 SECONDS, 3 SECONDS)", 0, 3), ("", None, None)]
)
def test_rows_are_those_of_a_nested_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, condition: str, match: Match,
    window: str, before_s: int | None, after_s: int | None,
) -> None:  # fmt: skip
    whole(monkeypatch)
    r, s = some(230, 1), some(310, 2)
    files(tmp_path, r=r, s=s)
    within = f" WITHIN {window}" if window else ""
    found = preview.preview(bound(tmp_path, f'{HEAD}query: "{SELECT} {condition}{within}"'))
    if before_s is None or after_s is None:
        pairs = reference.full_history_join(r, s, match)
    else:
        pairs = reference.time_window_join(r, s, match, before_s * SECOND, after_s * SECOND)
    paid = [None if None in (r[i]["price"], s[j]["price"]) else r[i]["price"] + s[j]["price"] for i, j in pairs]
    assert Counter(of(found)) == Counter((*pair, price) for pair, price in zip(pairs, paid, strict=True))
    assert len(pairs) > 20
    assert not found.cut_off


def test_a_window_of_rows_counts_the_rows_as_they_alternate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole(monkeypatch)
    r, s = some(230, 1), some(310, 2)
    files(tmp_path, r=r, s=s)
    found = preview.preview(bound(tmp_path, f'{HEAD}query: "{SELECT} r.k = s.k WITHIN 40 ROWS"'))
    arrivals = [(name, rows[place]) for place in range(310) for name, rows in (("r", r), ("s", s)) if place < len(rows)]
    pairs = reference.count_window_join(arrivals, CONDITIONS[0][1], 40)
    assert Counter((i, j) for i, j, _ in of(found)) == Counter(pairs)


@pytest.mark.parametrize("operator", ["auto", "biclique", "matrix", "splitjoin", "handshake", "spark"])
@pytest.mark.parametrize("index", ["auto", "scan"])
def test_twenty_rows_whatever_operator_is_to_run(tmp_path: Path, operator: str, index: str) -> None:
    files(tmp_path, r=some(500, 1), s=some(500, 2))
    text = f'{HEAD}query: "{SELECT} r.k = s.k WITHIN 2 SECONDS"\noperator: {{name: {operator}, index: {index}}}'
    if operator == "spark":
        text = text.replace(f", index: {index}", "")
    found = preview.preview(bound(tmp_path, text))
    assert found.queries[0].rows.num_rows == 20
    assert [field.name for field in found.queries[0].rows.schema] == ["r_id", "s_id", "paid"]
    assert found.queries[0].reason is None
    assert max(one.rows for one in found.looked) <= 500


def test_each_query_has_rows_or_a_reason_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole(monkeypatch)
    r, s = some(120, 1), some(120, 2)
    files(tmp_path, r=r, s=s)
    text = f"""{HEAD}
queries:
  near: {{query: "{SELECT} r.k = s.k WITHIN 1 SECONDS"}}
  band: {{query: "{SELECT} {CONDITIONS[2][0]} WITHIN 3 SECONDS"}}
  none: {{query: "{SELECT} r.k = s.k AND r.id > 1000 WITHIN 1 SECONDS"}}
"""
    found = preview.preview(bound(tmp_path, text))
    assert [one.query for one in found.queries] == ["near", "band", "none"]
    for number, (match, window_s) in enumerate(((CONDITIONS[0][1], 1), (CONDITIONS[2][1], 3))):
        pairs = reference.time_window_join(r, s, match, window_s * SECOND, window_s * SECOND)
        assert Counter((i, j) for i, j, _ in of(found, number)) == Counter(pairs)
    assert of(found, 2) == []
    assert found.queries[2].reason == "no row of r that was looked at meets (r.id > 1000)"
    assert "query near" in str(found) and "no row: no row of r" in str(found)


def test_what_results_keep_is_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole(monkeypatch)
    files(tmp_path, r=some(120, 1), s=some(120, 2))
    text = f'{HEAD}query: "{SELECT} r.k = s.k WITHIN 1 SECONDS"\n'
    every = of(preview.preview(bound(tmp_path, text)))
    kept = 'results: {store: sqlite, path: r.db, where: "s_id > 50", select: [s_id]}\noperator: {ordering: total}\n'
    found = preview.preview(bound(tmp_path, text + kept))
    assert found.queries[0].rows.schema.names == ["s_id"]
    assert sorted(of(found)) == sorted((s_id,) for _, s_id, _ in every if s_id > 50)
    nothing = preview.preview(bound(tmp_path, text + kept.replace("> 50", "> 5000")))
    assert nothing.queries[0].reason == "no pair of the rows that were looked at meets the condition and results.where"


def test_a_stream_joined_with_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole(monkeypatch)
    r = some(100, 1)
    files(tmp_path, r=r, s=some(1, 1))
    query = "SELECT ONLINE a.id AS x, b.id AS y FROM r AS a, r AS b WHERE a.k = b.k AND a.id < b.id WITHIN 1 SECONDS"
    found = preview.preview(bound(tmp_path, f'{HEAD}query: "{query}"'))
    match: Match = lambda a, b: CONDITIONS[0][1](a, b) and a["id"] < b["id"]  # noqa: E731
    assert Counter(of(found)) == Counter(reference.time_window_join(r, r, match, SECOND, SECOND))


# ---- what is looked at ------------------------------------------------------------------------------------------


def test_a_stream_that_begins_long_before_the_other_is_looked_at_where_that_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overlap, "SAMPLE_ROWS", 200)
    early, late = some(3000, 1), some(3000, 2, begin_s=200)
    files(tmp_path, r=early, s=late)
    text = f'{HEAD}query: "{SELECT} r.k = s.k WITHIN 2 SECONDS"'
    for one in (text, text.replace("FROM r, s", "FROM s, r")):
        found = preview.preview(bound(tmp_path, one))
        assert found.queries[0].rows.num_rows == 20
        looked = {one.name: one for one in found.looked}
        first_us = looked["r"].first_us
        assert first_us is not None and 197.9 * SECOND <= first_us <= 198.4 * SECOND
        assert looked["s"].first_us == late[0]["ts"]


def test_streams_without_a_time_in_common_say_from_when_they_are(tmp_path: Path) -> None:
    files(tmp_path, r=some(100, 1), s=some(100, 2, begin_s=7200))
    found = preview.preview(bound(tmp_path, f'{HEAD}query: "{SELECT} r.k = s.k WITHIN 2 SECONDS"'))
    reason = found.queries[0].reason
    assert reason is not None
    assert reason.startswith("the rows of r are from 1970-01-01T00:00:00.")
    assert "those of s from 1970-01-01T02:00:00." in reason
    assert reason.endswith("; no pair of them is within 2 s")
    assert [one.rows for one in found.looked] == [100, 100]


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("r.id = s.id + 1000", "no value of r.id is among those of (s.id + 1000) in the rows that were looked at"),
        ("r.id = s.id AND s.id > 90 AND r.id > 100", "no row of r that was looked at meets (r.id > 100)"),
        ("r.price > s.price + 100", "no pair of the rows that were looked at meets the condition"),
    ],
)
def test_no_row_has_a_reason(tmp_path: Path, condition: str, reason: str) -> None:
    files(tmp_path, r=some(100, 1), s=some(100, 2))
    found = preview.preview(bound(tmp_path, f'{HEAD}query: "{SELECT} {condition} WITHIN 2 SECONDS"'))
    assert (of(found), found.queries[0].reason) == ([], reason)


@pytest.mark.parametrize(
    ("late_s", "window", "reason"),
    [
        (20, "10 SECONDS", "with equal keys that were looked at are within 10 s; within 20 s there are some"),
        (-20, "10 SECONDS", "with equal keys that were looked at are within 10 s; within 20 s there are some"),
        (20.25, "10 SECONDS", "with equal keys that were looked at are within 10 s; within 21 s there are some"),
        (0.0005, "100 MICROSECONDS",
         "with equal keys that were looked at are within 100 us; within 500 us there are some"),
        (20, "(60 SECONDS, 1 SECONDS)",
         "with equal keys that were looked at are within (1 min before, 1 s after); "
         "within (1 min before, 20 s after) there are some"),
        (-20, "(0 SECONDS, 1 HOURS)",
         "with equal keys that were looked at are within (0 us before, 1 h after); "
         "within (20 s before, 1 h after) there are some"),
    ],
)  # fmt: skip
def test_a_window_that_no_equal_keys_are_within_is_told_with_one_that_has_some(
    tmp_path: Path, late_s: float, window: str, reason: str
) -> None:
    r = [{"ts": place * 60 * SECOND, "id": place, "k": place % 40} for place in range(1, 200)]
    files(tmp_path, r=r, s=[row | {"ts": int(row["ts"] + late_s * SECOND)} for row in r])
    text = f'{HEAD}query: "{SELECT} r.id = s.id AND r.k = s.k WITHIN WINDOW"'
    found = preview.preview(bound(tmp_path, text.replace("WINDOW", window)))
    assert found.queries[0].reason == f"no two rows {reason}"
    wider = reason.split("within ")[-1].removesuffix(" there are some")
    for words, query in ((" before", ""), (" after", ""), ("us", "MICROSECONDS"), ("min", "MINUTES")):
        wider = wider.replace(words, query)
    found = preview.preview(
        bound(
            tmp_path,
            text.replace("WINDOW", re.sub(r" s\b| h\b", lambda one: {" s": " SECONDS", " h": " HOURS"}[one[0]], wider)),
        )
    )
    assert found.queries[0].rows.num_rows == 20


def test_rows_without_a_key_in_common_are_told_how_near_they_are(tmp_path: Path) -> None:
    r = [{"ts": place * 60 * SECOND, "id": place, "price": Decimal(1)} for place in range(100)]
    files(tmp_path, r=r, s=[row | {"ts": row["ts"] + 30 * SECOND} for row in r])
    found = preview.preview(bound(tmp_path, f'{HEAD}query: "{SELECT} r.price <= s.price WITHIN 5 SECONDS"'))
    assert found.queries[0].reason == "no two rows that were looked at are within 5 s; within 30 s there are some"


def test_a_stream_without_rows_a_key_that_is_never_there_and_times_that_are_none(tmp_path: Path) -> None:
    text = f'{HEAD}query: "{SELECT} r.k = s.k WITHIN 2 SECONDS"'
    rows = some(50, 1)
    for mine, reason in (
        ([], "s has no rows to look at yet"),
        ([row | {"k": None} for row in rows], "the key is NULL in every row of s that was looked at"),
        ([row | {"ts": None} for row in rows], "no row of s that was looked at has an event time"),
    ):
        files(tmp_path, r=rows, s=mine)
        found = preview.preview(bound(tmp_path, text))
        assert found.queries[0].reason == reason
    assert found.looked[1].bad == 50 and found.looked[1].first_us is None


def test_a_stream_no_record_of_which_can_be_read_is_not_said_to_be_empty(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("t,k\n01.02.2026,1\n")
    (tmp_path / "s.csv").write_text("t,k\n2026-02-01,1\n")
    text = """
streams:
  r: {source: csv, path: r.csv, time: t, schema: {t: timestamp, k: int64}}
  s: {source: csv, path: s.csv, time: t}
query: SELECT ONLINE r.k FROM r, s WHERE r.k = s.k WITHIN 3 SECONDS
"""
    found = preview.preview(bound(tmp_path, text))
    assert found.looked[0].bad == 1 and found.queries[0].reason == "r has no row that can be read"


def test_bad_records_are_counted_and_good_ones_joined(tmp_path: Path) -> None:
    good = [json.dumps({"t": place, "k": place % 5}) for place in range(50)]
    (tmp_path / "r.jsonl").write_text("\n".join([*good[:20], '{"t": "no time"', '{"t": 3, "k": "x"}', *good[20:]]))
    (tmp_path / "s.csv").write_text("t,k\n0,1\nnever,1\n1,\n2,3\n")
    text = """
streams:
  r: {source: jsonl, path: r.jsonl, time: t, time_unit: s, schema: {t: int64, k: int64}}
  s: {source: csv, path: s.csv, time: t, time_unit: s, schema: {t: int64, k: int64}}
query: SELECT ONLINE r.t AS rt, s.t AS st, r.k FROM r, s WHERE r.k = s.k WITHIN 3 SECONDS
run: {checkpoint: state}
"""
    found = preview.preview(bound(tmp_path, text))
    assert sorted(of(found)) == [(1, 0, 1), (3, 2, 3)]
    assert [(one.rows, one.bad) for one in found.looked] == [(50, 2), (3, 1)]
    assert "r: 50 rows from 1970-01-01T00:00:00Z to 1970-01-01T00:00:49Z, 2 that cannot be read" in str(found)


def test_generators_that_begin_now_meet_and_those_of_arrival_do(tmp_path: Path) -> None:
    text = """
streams:
  r: {source: generator, kind: zipf.r, time: ts, begin: now, rate: 1000/s}
  s: {source: generator, kind: zipf.s, time: TIME, begin: now, rate: 1000/s}
query: SELECT ONLINE r.k, s.k AS other FROM r, s WHERE r.k = s.k WITHIN 5 SECONDS
run: {checkpoint: state}
"""
    for given in ("ts", "arrival"):
        found = preview.preview(bound(tmp_path, text.replace("TIME", given)))
        assert found.queries[0].rows.num_rows == 20
        assert all(one == other for one, other in of(found))
        first_us = found.looked[0].first_us
        assert first_us is not None and abs(first_us - time.time_ns() // 1000) < 600 * SECOND
    old = preview.preview(bound(tmp_path, text.replace("TIME", "arrival").replace("begin: now, ", "")))
    assert "(s would arrive now)" in str(old.queries[0].reason)


KAFKA = """
streams:
  r: {source: kafka, servers: "127.0.0.1:9", topic: rs, format: json, time: t, time_unit: s,
      schema: {t: int64, k: int64}, client: {sasl.password: hush}}
  s: {source: csv, path: s.csv, time: t, time_unit: s, schema: {t: int64, k: int64}}
query: SELECT ONLINE r.t AS rt, s.t AS st, r.k FROM r, s WHERE r.k = s.k WITHIN 1 SECONDS
run: {checkpoint: state}
"""


def test_the_newest_records_of_a_topic_meet_rows_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker is `tests/servers`' affair."""
    asked: list[tuple[Any, ...]] = []

    def newest(*given: Any) -> pa.Array:
        asked.append(given)
        return pa.array([b'{"t": 9000, "k": 1}', b"no json", b'{"t": 9001, "k": 2}'])

    monkeypatch.setattr(overlap, "newest_values", newest)
    monkeypatch.setattr(overlap, "SAMPLE_ROWS", 100)
    (tmp_path / "s.csv").write_text("t,k\n" + "".join(f"{t},{t % 3}\n" for t in range(9100)))
    found = preview.preview(bound(tmp_path, KAFKA))
    assert asked == [("127.0.0.1:9", "rs", {"sasl.password": "hush"}, overlap.TOPIC_ROWS)]
    # A row of k 1 comes every third second: 9,001 is one. For k 2 it is 9,002.
    assert sorted(of(found)) == [(9000, 9001, 1), (9001, 9002, 2)]
    assert found.looked[0].bad == 1


def test_what_kafkas_client_does_not_understand_is_named_without_its_value(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        topic.newest_values("127.0.0.1:9", "rs", {"security.protocol": "hush", "sasl.password": "hushed"}, 1)
    assert "security.protocol" in refused.value.message and "hush" not in refused.value.message


# ---- attacks ----------------------------------------------------------------------------------------------------


def test_attack_a_join_of_everything_with_everything_ends_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preview, "JOIN_S", 0.2)
    text = """
streams:
  r: {source: generator, kind: zipf.r, time: ts}
  s: {source: generator, kind: zipf.s, time: ts}
query: SELECT ONLINE r.k FROM r, s WHERE CAST(r.k AS STRING) || CAST(s.k AS STRING) LIKE '%x%y%z%'
run: {checkpoint: state}
"""
    begun = time.monotonic()
    found = preview.preview(bound(tmp_path, text))
    assert found.cut_off and found.queries[0].reason == "time ran out before a pair was found"
    assert 0 < found.looked[0].rows < overlap.SAMPLE_ROWS
    assert "then time ran out" in str(found)
    assert time.monotonic() - begun < 30


def test_attack_large_rows_are_left_out_and_samples_have_a_bounded_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overlap, "SAMPLE_BYTES", 100_000)
    rows = some(100, 1)
    large = [row | {"word": "x" * (20_000 if place == 3 else 10_000), "k": 1} for place, row in enumerate(rows)]
    files(tmp_path, r=large, s=[row | {"k": 1} for row in some(100, 2)])
    query = SELECT.replace("SELECT ONLINE", "SELECT ONLINE r.word,")
    found = preview.preview(bound(tmp_path, f'{HEAD}query: "{query} r.k = s.k"'))
    assert (found.looked[0].rows, found.looked[0].large) == (9, 1)
    assert "1 left out as larger than 16 KiB" in str(found)
    assert 3 not in {row[1] for row in of(found)}
    assert found.queries[0].rows.num_rows == 20


def test_attack_a_select_list_that_multiplies_large_values_is_evaluated_a_few_pairs_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def measured(*given: Any) -> Any:
        sizes.append(given[2])
        return evaluate(*given)

    monkeypatch.setattr(preview, "evaluate", measured)
    rows = [row | {"word": "x" * 10_000, "k": 1} for row in some(60, 1)]
    files(tmp_path, r=rows, s=rows)
    many = ", ".join(f"r.word AS w{place}" for place in range(200))
    found = preview.preview(bound(tmp_path, f'{HEAD}query: "SELECT ONLINE {many} FROM r, s WHERE r.k = s.k"'))
    # 200 mentions of 10 kB a pair are 2 MB: 16 MiB have room for eight pairs at a time.
    assert max(sizes) <= 8
    (only,) = found.queries
    assert only.rows.num_rows == 0 and only.large > 0
    assert only.reason == "every row that was found is larger than 192 KiB"
    assert f"{only.large:,} left out as larger than 192 KiB" in str(found)
    assert found.to_json()["queries"][0]["large_rows"] == only.large
    few = preview.preview(bound(tmp_path, f'{HEAD}query: "SELECT ONLINE r.word FROM r, s WHERE r.k = s.k"'))
    assert (few.queries[0].rows.num_rows, few.queries[0].large) == (20, 0)


def test_attack_a_condition_on_results_that_keeps_none_of_a_million_pairs_ends_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preview, "JOIN_S", 0.5)
    monkeypatch.setattr(preview, "BATCH_ROWS", 2_000)
    monkeypatch.setattr(preview, "SHOWN_PAIRS", 10)
    rows = [row | {"k": 1} for row in some(2_000, 1)]
    files(tmp_path, r=rows, s=rows)
    text = f"""{HEAD}
query: "{SELECT} r.k = s.k"
results: {{store: sqlite, path: r.db, where: "r_id + s_id < 0"}}
"""
    wanted = bound(tmp_path, text)
    preview.preview(wanted)  # what is compiled once is
    evaluated: list[int] = []

    def slow(*given: Any) -> Any:
        evaluated.append(given[2])
        time.sleep(0.01)
        return evaluate(*given)

    monkeypatch.setattr(preview, "evaluate", slow)
    begun = time.monotonic()
    found = preview.preview(wanted)
    # All of the pairs would take 400,000 x 3 x 10 ms.
    assert time.monotonic() - begun < 30
    assert 0 < sum(evaluated) < 5_000
    assert found.cut_off and found.queries[0].reason == "time ran out before a pair was found"


def test_columns_may_be_called_as_the_preview_calls_its_own(tmp_path: Path) -> None:
    text = """
streams:
  r: {source: csv, path: r.csv, time: t, time_unit: s, schema: {t: int64, row: int64, row_: int64}}
  s: {source: csv, path: r.csv, time: t, time_unit: s, schema: {t: int64, row: int64, row_: int64}}
query: SELECT ONLINE r.row, s.row_ AS r FROM r, s WHERE r.row = s.row AND r.row_ = s.row_ WITHIN 3 SECONDS
run: {checkpoint: state}
"""
    (tmp_path / "r.csv").write_text("t,row,row_\n0,7,8\n1,9,8\n")
    assert sorted(of(preview.preview(bound(tmp_path, text)))) == [(7, 8), (9, 8)]


def test_a_join_that_reads_no_column_at_all(tmp_path: Path) -> None:
    text = """
streams:
  r: {source: csv, path: r.csv, time: arrival, schema: {v: int64}}
  s: {source: csv, path: r.csv, time: arrival, schema: {v: int64}}
query: SELECT ONLINE 1 AS one FROM r, s WITHIN 3 SECONDS
run: {checkpoint: state}
"""
    (tmp_path / "r.csv").write_text("v\n7\n8\n")
    assert of(preview.preview(bound(tmp_path, text))) == [(1,)] * 4
