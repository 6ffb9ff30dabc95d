"""What `explain` says of rounds: each stream's order, and who meets whom in each of them (PSP, section 2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamjoin.explain.plans import explain
from streamjoin.spec.joinfile import parse
from streamjoin.spec.prepare import bind

STREAM = "{source: csv, path: rows.csv, time: ts, time_unit: us, schema: {ts: int64, id: int64, k: int64, x: int64}}"
EQUAL = "a.k = b.k AND b.k = c.k AND c.k = d.k AND a.x + b.x = d.x"


def lines_of(operator: str, folder: Path) -> list[str]:
    """The lines of `explain`, each with a single blank between its words."""
    streams = "\n".join(f"  {name}: {STREAM}" for name in "abcd")
    query = f"SELECT ONLINE a.id AS a, d.id AS d FROM a, b, c, d WHERE {EQUAL} WITHIN 5 SECONDS"
    text = f"streams:\n{streams}\nquery: {query}\noperator: {operator}\nresults: {{parquet: out}}\n"
    (folder / "rows.csv").write_text("ts,id,k,x\n")
    return [" ".join(line.split()) for line in str(explain(bind(parse(text, base=folder)))).splitlines()]


@pytest.mark.parametrize("operator", ["ring", "aligned", "coordinated"])
def test_partial_results_of_the_same_streams_go_where_their_origin_s_order_says(operator: str, tmp_path: Path) -> None:
    """b, c and what both make: of an origin b it meets d next, of an origin c it meets a."""
    more = "" if operator == "ring" else ", nodes: 2, segment: 1s"
    orders = "{a: [b, c, d], b: [c, d, a], c: [b, a, d], d: [c, b, a]}"
    lines = lines_of(f"{{name: {operator}, orders: {orders}{more}}}", tmp_path)
    at = lines.index("order a meets b, then c, then d (as the join file says)")
    assert lines[at + 1 : at + 4] == [
        "b meets c, then d, then a",
        "c meets b, then a, then d",
        "d meets c, then b, then a",
    ]
    if operator != "ring":
        return  # their rounds are one stage
    assert [line for line in lines if line.startswith("meet ")] == [
        "meet a with b, b with c, c with b, d with c",
        "meet (a, b) with c, (b, c) with d, (b, c) with a, (c, d) with b",
        "meet (a, b, c) with d, (b, c, d) with a, (a, b, c) with d, (b, c, d) with a",
    ]


def test_an_order_that_nobody_wrote_is_shown_with_its_rule(tmp_path: Path) -> None:
    lines = lines_of("{name: ring}", tmp_path)
    assert "order a meets b, then c, then d (by equalities first, then any condition, shorter reach)" in lines
    assert "d meets c, then b, then a" in lines
