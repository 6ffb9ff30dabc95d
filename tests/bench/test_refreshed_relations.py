"""A relation that is read anew beside a job: measured at toy size, and what is wrong with results is found."""

from __future__ import annotations

import json
import math
from pathlib import Path

import duckdb
import pytest
from test_benchmarks import result, scale

from benchmarks import refresh
from benchmarks.page import page
from streamjoin.spec.joinfile import load
from streamjoin.spec.prepare import bind
from tests.servers import ServerUnavailable
from tests.servers.postgres import PostgresServer

RIGHT = {"lost": 0, "repeated": 0, "of_no_version": 0, "mixed": 0, "without_a_version": 0}


@pytest.mark.services
def test_the_jobs_that_are_measured_are_right_and_the_view_is_turned_as_a_whole(tmp_path: Path) -> None:
    """Without Spark: the tables, the view and the join files."""
    try:
        with PostgresServer() as server:
            refresh.make_tables(server, 9)
            for name, rows in (("fastest", 50_000), ("half", None)):
                file = refresh.join_file(tmp_path, name, server, refresh.QUICK, 1e9, rows)
                bound = bind(load(file))
                (query,) = bound.plan.queries
                assert query.emitted.names[:5] == ["id", "k", "said", "letters", "version"]
                (relation,) = bound.job(heartbeat=True).relations.values()
                for version in (1, 2):
                    refresh.turn(server, version)
                    found = [row for block, _ in relation.blocks(["id", "said", "name"]) for row in block.to_pylist()]
                    assert [row["id"] for row in found] == list(range(1, 10))
                    assert {row["said"] for row in found} == {version}
                    assert {len(row["name"]) for row in found} == {refresh.NAME_LETTERS}
    except ServerUnavailable as reason:
        pytest.skip(str(reason))


@pytest.mark.spark
@pytest.mark.services
@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_refresh_beside_a_job_is_measured_and_all_its_results_are_right(tmp_path: Path) -> None:
    found = refresh.run(scale(tmp_path, seconds=800.0))
    if "skipped" in found:
        pytest.skip(found["skipped"])
    assert found["wrong"] == RIGHT and found["exact"] and "error" not in found
    assert found["highest"] == pytest.approx(2 * found["rate"]) and found["results"] > 0
    assert found["alone"]["batches"] > 0 and found["beside"]["batches"] > 0
    assert found["alone"]["p50_ms"] <= found["alone"]["p95_ms"] <= found["alone"]["max_ms"]
    assert found["rise"] == pytest.approx(found["beside"]["p95_ms"] / found["alone"]["p95_ms"] - 1)
    assert 0 < found["seconds"] < 600
    assert not (tmp_path / "work" / "refresh").exists()
    json.dumps(found)
    said = list(refresh.lines(found))
    assert said[-1] == f"{found['results']:,} results, each checked: none is wrong"
    text = page({"refresh": result("refresh", **found)}, {})
    assert "No figures" not in text and "2,000 rows" in text


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Of 100 rows of a stream; from the 61st on they have joined the second version. Key 0 has no partner."""
    folder = tmp_path / "results"
    folder.mkdir()
    write(folder, "SELECT * FROM right_ones")
    return folder


def write(folder: Path, query: str) -> None:
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE VIEW right_ones AS SELECT id, id % 10 AS k, CASE WHEN k > 0 THEN version END AS said, "
            f"CASE WHEN k > 0 THEN {refresh.NAME_LETTERS} END AS letters, version "
            "FROM (SELECT range AS id, CASE WHEN range < 60 THEN 1 ELSE 2 END AS version FROM range(100))"
        )
        connection.execute(f"COPY ({query}) TO '{folder}/a.parquet' (FORMAT parquet)")


def test_right_results_have_no_mistakes(results: Path) -> None:
    assert refresh.mistakes(results, 9) == {"results": 100, **RIGHT}


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("SELECT * FROM right_ones WHERE id <> 17", {"lost": 1}),
        ("SELECT * FROM right_ones UNION ALL SELECT * FROM right_ones WHERE id = 17", {"repeated": 1}),
        ("SELECT * REPLACE (CASE WHEN id = 17 THEN 2 ELSE said END AS said) FROM right_ones", {"of_no_version": 1}),
        ("SELECT * REPLACE (CASE WHEN id <> 17 THEN said END AS said) FROM right_ones", {"of_no_version": 1}),
        ("SELECT * REPLACE (CASE WHEN id <> 17 THEN letters ELSE 3 END AS letters) FROM right_ones",
         {"of_no_version": 1}),
        ("SELECT * REPLACE (CASE WHEN k = 0 AND id < 60 THEN 1 ELSE said END AS said) FROM right_ones",
         {"of_no_version": 6}),
        ("SELECT * REPLACE (CASE WHEN id = 80 THEN 1 ELSE version END AS version) FROM right_ones", {"mixed": 1}),
        ("SELECT * FROM right_ones WHERE id < 60", {"without_a_version": 1}),
    ],
)  # fmt: skip
def test_each_mistake_is_found(query: str, wrong: dict[str, int], results: Path) -> None:
    write(results, query)
    found = refresh.mistakes(results, 9)
    assert {what: count for what, count in found.items() if count and what != "results"} == wrong


def test_times_are_of_the_batches_that_came() -> None:
    found = refresh.times_of([refresh.Batch(10.0, 10.0 + number / 1000) for number in range(1, 101)])
    assert found["batches"] == 100 and math.isclose(found["p95_ms"], 95.05, abs_tol=0.01)
    with pytest.raises(refresh.NotMeasuredError, match="no batch came"):
        refresh.times_of([])


def test_the_page_says_whether_the_aims_are_reached() -> None:
    times = {"batches": 9, "p50_ms": 90.0, "p95_ms": 100.0, "max_ms": 110.0}
    found = {
        "rows": 10_000_000, "highest": 400_000.0, "rate": 200_000.0, "alone": times,
        "beside": {**times, "p95_ms": 121.0}, "rise": 0.21, "seconds": 599.0, "told": [65_536, 131_072],
        "results": 30_000_000, "exact": True, "wrong": RIGHT,
    }  # fmt: skip
    text = " ".join(page({"refresh": result("refresh", **found)}, {}).split())
    assert "A rise of at most 20% was the aim: missed, 21%" in text
    assert "600 s was the aim for the time until a batch joins what was read: reached, 599.0 s" in text
    assert "told 2 times" in text
    skipped = page({"refresh": result("refresh", skipped="PostgreSQL is not installed")}, {})
    assert "was not measured: PostgreSQL is not installed" in skipped
