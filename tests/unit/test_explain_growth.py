"""Up to how many slots operators are worth having, as explain says it of units that come and go, and of bundles."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from streamjoin.explain.bundle import explain
from streamjoin.explain.options import HEAD
from streamjoin.operators.costs.growth import Growth, growth
from streamjoin.operators.costs.slots import (
    contrand_layout,
    hash_layout,
    matrix_layout,
    random_layout,
    splitjoin_layout,
)
from streamjoin.spec.joinfile import parse
from streamjoin.spec.prepare import bind

PAIRS = "SELECT ONLINE a.id AS x, b.id AS y FROM a, b WHERE a.k = b.k WITHIN 5 SECONDS"
NEAR = PAIRS.replace("WITHIN 5", "AND a.id < b.id WITHIN 2")
LATEST = "SELECT ONLINE a.id AS x, b.id AS y FROM a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts WITHIN 5 SECONDS"
COUNTED = "SELECT ONLINE a.k AS k, COUNT(*) AS n FROM a GROUP BY a.k, TUMBLE(1 SECOND)"
LAYOUTS = {"biclique": hash_layout, "matrix": matrix_layout, "splitjoin": splitjoin_layout}
ADAPTIVE = "adaptive: true, r_units: 4, s_units: 4, capacity: 0.5"


def explained(folder: Path, queries: str | Mapping[str, str], operator: str = "") -> Any:
    text = "streams:\n" + "".join(
        f"  {name}: {{source: generator, kind: zipf.{kind}, time: ts, rows: 5000}}\n" for name, kind in ("ar", "bs")
    )
    if isinstance(queries, str):
        text += f"query: {json.dumps(queries)}\nresults: {{parquet: out}}\n"
    else:
        text += "queries:\n" + "".join(
            f"  {name}: {{query: {json.dumps(query)}, results: {{parquet: {name}}}}}\n"
            for name, query in queries.items()
        )
    return explain(bind(parse(f"{text}operator: {{{operator}}}\n", base=folder)))


def in_json(found: Mapping[str, Any]) -> dict[str, Growth | None]:
    """What is told of each operator that has costs here."""
    assert all(one["growth"] is None for one in found["operators"] if one["memory_bytes"] is None)
    return {
        one["name"]: one["growth"] and Growth(**one["growth"])
        for one in found["operators"]
        if one["memory_bytes"] is not None
    }


def in_table(text: str) -> dict[str, str]:
    """The last column of each operator with costs."""
    lines = text.splitlines()
    head = next(number for number, line in enumerate(lines) if line.split()[:2] == ["operator", "memory"])
    assert lines[head].endswith(HEAD[-1])
    rows = [line.split("  ") for line in lines[head + 1 : lines.index("", head)]]
    return {row[0].strip(): row[-1].strip() for row in rows if not row[-1].strip().startswith(("cannot", "can run"))}


def words(found: Growth | None) -> str:
    if found is None:
        return "-"
    return "over 4,096" if found.slots is None else f"{found.slots:,}"


@pytest.mark.parametrize(
    ("operator", "layout", "described"),
    [
        (f"name: biclique, {ADAPTIVE}", hash_layout, "hash routing"),
        (f"name: biclique, routing: random, {ADAPTIVE}", random_layout, "random routing"),
        (f"name: biclique, routing: contrand, r_groups: 2, s_groups: 2, {ADAPTIVE}", contrand_layout, "contrand"),
        ("name: biclique, routing: contrand, r_units: 6, s_units: 4", contrand_layout, "contrand"),
    ],
    ids=["adaptive", "adaptive at random", "adaptive contrand", "contrand"],
)
def test_a_biclique_is_told_by_its_routing_whether_its_units_stay_or_not(
    operator: str, layout: Any, described: str, tmp_path: Path
) -> None:
    found = explained(tmp_path, PAIRS, operator)
    wanted = {name: growth(of) for name, of in {**LAYOUTS, "biclique": layout}.items()}
    assert described in found.operator and ("adaptive" in found.operator) == ("adaptive" in operator)
    told = in_json(found.to_json())
    assert "handshake" in told and told == {**dict.fromkeys(told), **wanted}
    assert in_table(str(found)) == {name: words(one) for name, one in told.items()}
    # What each layout ends at differs, so that one cannot be told in place of another.
    assert len({str(asdict(growth(of))) for of in (hash_layout, random_layout, contrand_layout)}) == 3


@pytest.mark.parametrize("operator", ["", f"name: biclique, {ADAPTIVE}"], ids=["auto", "adaptive"])
def test_queries_that_share_their_tuples_are_told_once(operator: str, tmp_path: Path) -> None:
    found = explained(tmp_path, {"pairs": PAIRS, "near": NEAR}, operator)
    told = in_json(found.to_json())
    wanted = {name: growth(of) for name, of in LAYOUTS.items()}
    assert {name: told[name] for name in wanted} == wanted
    assert in_table(str(found)) == {name: words(one) for name, one in told.items()}


def test_each_part_of_a_job_is_told_what_it_can_have_in_this_job(tmp_path: Path) -> None:
    found = explained(tmp_path, {"pairs": PAIRS, "latest": LATEST, "counted": COUNTED})
    told = found.to_json()
    assert told["operators"] == []
    pairs, latest, counted = (told["parts"][place] for place in range(3))
    assert in_json(pairs) == {"biclique": growth(hash_layout)}, "an operator named for all could not be a matrix"
    assert set(in_json(latest).values()) <= {None} and counted["operators"] == []
    tables = str(found).split("\n\n")
    of_pairs = next(place for place, text in enumerate(tables) if "in the job stage 1\n" in text)
    assert in_table("\n\n".join(tables[of_pairs : of_pairs + 3])) == {"biclique": words(growth(hash_layout))}
