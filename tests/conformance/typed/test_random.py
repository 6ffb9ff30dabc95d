"""Random conditions over random types: the engine against oracle 1, and oracle 1 against DuckDB.

`make soak` runs 100,000 of them.
"""

from __future__ import annotations

import runpy
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from . import in_duckdb
from .case import STREAMS, WAYS, Case, Difference
from .casting import with_casts
from .check import check, check_in_duckdb, seeded
from .generator import generate
from .kinds import KINDS, plain
from .shrinking import script, shrunk
from .terms import NULL_SAFE, Node, Number, walk

CONDITIONS = 2_000
SHARD = 50
SHARDS = [range(first, first + SHARD) for first in range(0, CONDITIONS, SHARD)]


@pytest.mark.parametrize("seeds", SHARDS, ids=lambda seeds: f"from {seeds.start}")
def test_random_conditions_join_exactly(seeds: range) -> None:
    check(seeded(seeds))


@pytest.mark.parametrize("seeds", SHARDS[1::2], ids=lambda seeds: f"from {seeds.start}")
def test_random_conditions_with_casts_join_exactly(seeds: range) -> None:
    check(map(with_casts, seeds))


@pytest.mark.parametrize("seeds", SHARDS[::4], ids=lambda seeds: f"from {seeds.start}")
def test_the_oracles_agree(seeds: range) -> None:
    assert check_in_duckdb(seeded(range(seeds.start, seeds.start + 4 * SHARD))) >= SHARD // 2


@pytest.mark.slow
def test_random_cases_cover_what_there_is() -> None:
    cases = list(seeded(range(CONDITIONS)))
    kinds = Counter(kind for case in cases for stream in STREAMS for _, kind in case.columns[stream])
    assert set(kinds) == set(KINDS)
    assert {case.operator for case in cases} == set(WAYS)
    operators = Counter(
        part.operator for case in cases for term in case.conjuncts for part in walk(term) if isinstance(part, Node)
    )
    assert {"=", "<=", "<", "BETWEEN", "ABS", "IN", "OR", "NOT", "%", "/", "FLOOR", "IS NULL", *NULL_SAFE} <= set(
        operators
    )
    # Rows are near the places where conditions turn: most joins have some of their pairs, and not all.
    some = sum(0 < case.wanted().total() < len(case.rows["r"]) * len(case.rows["s"]) for case in cases[:400])
    assert some > 200
    reasons = Counter(filter(None, map(in_duckdb.otherwise, cases)))
    assert {what for what, _, _ in in_duckdb.OTHERWISE} <= set(reasons)


def test_a_seed_gives_the_same_case_again() -> None:
    for one, other in zip(seeded(range(20)), seeded(range(20)), strict=True):
        assert (one.query, repr(one.rows)) == (other.query, repr(other.rows))


def losing_ones(case: Case) -> Difference | None:
    """An engine that goes wrong where a row of R has a 1 and a condition a constant."""
    ones = any(1 in row.values() for row in case.rows["r"])
    constants = any(isinstance(part, Number) for term in case.conjuncts for part in walk(term))
    return Difference("missing", "") if ones and constants else None


def test_a_difference_is_made_small() -> None:
    case = next(
        case for case in seeded(range(500)) if len(case.conjuncts) > 2 and len(case.rows["r"]) > 6 and losing_ones(case)
    )
    small = shrunk(case, losing_ones)
    assert losing_ones(small)
    assert len(small.conjuncts) == 1 and len(small.rows["r"]) == 1 and not small.rows["s"]
    assert (small.operator, small.index, small.batches) == ("biclique", "auto", 1)


def test_scripts_write_the_rows_of_their_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for seed in range(30):
        case = generate(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        monkeypatch.chdir(folder)
        Path("show.py").write_text(script(case))
        runpy.run_path("show.py")
        for stream in STREAMS:
            written = pa.concat_tables([pq.read_table(path) for path in sorted(Path(stream).glob("*.parquet"))])
            rows = pa.Table.from_batches(case.pieces(stream))
            assert written.schema == rows.schema
            for ours, theirs in zip(rows.columns, written.columns, strict=True):
                assert plain(ours.combine_chunks()) == plain(theirs.combine_chunks())
        assert case.query in Path("join.yaml").read_text()
