"""Groups that change and DISTINCT over ASOF JOIN: what it brings has no say in how long a row counts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from .changes import Asked, Timed
from .groups import Pair, rows
from .test_changing_groups import check
from .test_distinct import counted, wanted
from .test_groups import given, loop_of, planned

JOINED_US = 40
AGE_US = 6
ON = "a.k = c.k"
AT = "a.k = b.k AND a.ts >= b.ts"
REACHES = f"WITHIN {JOINED_US} MICROSECONDS FOR a, {AGE_US} MICROSECONDS FOR b, {JOINED_US} MICROSECONDS FOR c"
QUERIES = {
    "as-of first": (f"FROM a ASOF JOIN b ON {AT} JOIN c ON {ON}", False, False),
    "as-of last": (f"FROM a JOIN c ON {ON} ASOF JOIN b ON {AT}", False, False),
    "all are kept": (f"FROM a LEFT JOIN c ON {ON} ASOF LEFT JOIN b ON {AT}", True, True),
    "as-of keeps": (f"FROM a ASOF LEFT JOIN b ON {AT} JOIN c ON {ON}", True, False),
    "as-of in brackets": (f"FROM c JOIN (a ASOF JOIN b ON {AT}) ON {ON}", False, False),
}
"""FROM, and whether the as-of join and the other one are LEFT."""


def same_k(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one["k"] == other["k"] is not None


def brought(row: dict[str, Any], stream: pa.RecordBatch, age_us: int) -> dict[str, Any] | None:
    """What an as-of join finds for a row."""
    older = [one for one in stream.to_pylist() if same_k(row, one) and 0 <= row["ts"] - one["ts"] <= age_us]
    return max(older, key=lambda one: one["ts"]) if older else None


def nested_loops(streams: Sequence[pa.RecordBatch], keeps_old: bool, keeps_joined: bool) -> list[Timed]:
    """(time, parts that count, as-of row) of all rows, by the newest part that counts."""
    found: list[Timed] = []
    a, b, c = streams
    for row in a.to_pylist():
        old = brought(row, b, AGE_US)
        if old is None and not keeps_old:
            continue
        near = [one for one in c.to_pylist() if same_k(row, one) and abs(row["ts"] - one["ts"]) <= JOINED_US]
        found += [(max(row["ts"], one["ts"]), (row, one, old)) for one in near]
        if not near and keeps_joined:
            found.append((row["ts"], (row, None, old)))
    return found


def end(parts: Pair) -> int:
    return min(part["ts"] for part in parts[:2] if part is not None) + JOINED_US


@pytest.mark.parametrize("case", QUERIES)
@pytest.mark.parametrize("seed", range(3))
def test_groups_of_an_as_of_join_beside_another(seed: int, case: str, tmp_path: Path) -> None:
    text, keeps_old, keeps_joined = QUERIES[case]
    streams = [rows(10 * seed + number, 60, keys=3) for number in range(3)]
    query = (
        f"SELECT ONLINE a.k, COUNT(*) AS n, COUNT(b.ts) AS old, MAX(c.x) AS x {text} {REACHES} GROUP BY a.k "
        "EMIT EVERY 7 MICROSECONDS"
    )

    def values(of: Sequence[Pair]) -> list[Any]:
        met = [part["x"] for _, part, _ in of if part is not None and part["x"] is not None]
        return [len(of), sum(old is not None for *_, old in of), max(met, default=None)]

    asked = Asked(7, lambda parts: parts[0]["k"], values, end)
    plan = planned(query)
    streams = [streams["abc".index(stream.name)] for stream in plan.streams]
    out = given(loop_of(plan, tmp_path), streams, batches=12, repeated=seed == 0)
    by_name = dict(zip((stream.name for stream in plan.streams), streams, strict=True))
    found = nested_loops([by_name[name] for name in "abc"], keeps_old, keeps_joined)
    assert any(old is not None and old["ts"] + AGE_US < time for time, (_, _, old) in found)
    assert check(out, found, asked) > 10


@pytest.mark.parametrize(("kind", "above"), [("SEMI", 20), ("ANTI", 45)])
def test_groups_of_an_as_of_join_behind_a_semi_and_an_anti_join(kind: str, above: int, tmp_path: Path) -> None:
    named = {name: rows(90 + number, 90, keys=3) for number, name in enumerate("abc")}
    plan = planned(
        f"SELECT ONLINE a.k, COUNT(*) AS n FROM a LEFT {kind} JOIN c ON {ON} AND c.x > {above} ASOF JOIN b ON {AT} "
        f"{REACHES} GROUP BY a.k EMIT EVERY 7 MICROSECONDS"
    )
    found: list[Timed] = []
    for row in named["a"].to_pylist():
        near = [one for one in named["c"].to_pylist() if same_k(row, one) and abs(row["ts"] - one["ts"]) <= JOINED_US]
        met = any(one["x"] is not None and one["x"] > above for one in near)
        if met == (kind == "SEMI") and brought(row, named["b"], AGE_US) is not None:
            found.append((row["ts"], (row, None)))
    out = given(loop_of(plan, tmp_path), [named[stream.name] for stream in plan.streams], batches=12)
    assert check(out, found, Asked(7, lambda parts: parts[0]["k"], lambda of: [len(of)], end)) > 5


@pytest.mark.parametrize("case", QUERIES)
def test_distinct_rows_of_an_as_of_join_beside_another(case: str, tmp_path: Path) -> None:
    text, keeps_old, keeps_joined = QUERIES[case]
    named = {name: rows(70 + number, 40, keys=3) for number, name in enumerate("abc")}
    plan = planned(f"SELECT DISTINCT ONLINE a.k, c.p {text} {REACHES}")
    out = given(loop_of(plan, tmp_path), [named[stream.name] for stream in plan.streams], batches=9, repeated=True)
    found = nested_loops(list(named.values()), keeps_old, keeps_joined)
    expected = wanted(found, lambda of: (of[0]["k"], of[1] and of[1]["p"]), end)
    assert counted(out) == expected and expected.total() > 10


def test_a_row_of_an_as_of_join_alone_counts_for_its_own_time(tmp_path: Path) -> None:
    streams = [rows(51), rows(52)]
    query = (
        "SELECT ONLINE a.k, COUNT(*) AS n FROM a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts WITHIN 20 MICROSECONDS "
        "GROUP BY a.k EMIT EVERY 10 MICROSECONDS"
    )
    with_older = [row for row in streams[0].to_pylist() if brought(row, streams[1], 20) is not None]
    found: list[Timed] = [(row["ts"], (row,)) for row in with_older]
    asked = Asked(10, lambda parts: parts[0]["k"], lambda of: [len(of)], lambda parts: int(parts[0]["ts"]) + 20)
    out = given(loop_of(planned(query), tmp_path / "groups", operator="asof"), streams, batches=15)
    assert check(out, found, asked) > 10
    plan = planned(query.replace("SELECT ONLINE a.k, COUNT(*) AS n", "SELECT DISTINCT ONLINE a.k").split(" GROUP")[0])
    out = given(loop_of(plan, tmp_path / "distinct", operator="asof"), streams, batches=15)
    expected = wanted(found, lambda of: (of[0]["k"],), lambda parts: int(parts[0]["ts"]) + 20)
    assert counted(out) == expected and expected.total() > 5
