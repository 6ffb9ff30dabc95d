"""The baselines answer as DuckDB does, and DuckDB as nested loops do, on data small enough for a test."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import aggregate, outer
from benchmarks.baselines import flink_env
from benchmarks.baselines.duckdb_join import (
    AT_LATER,
    AT_R,
    count_and_hash,
    count_asof,
    count_three,
    groups,
    last_us,
    lone,
    same_groups,
)
from benchmarks.baselines.spark_join import STATE_FORMATS
from benchmarks.data import STREAMS, make_band, make_equi, stream_files
from tests import duck

ROOT = Path(__file__).parents[2]
FILES, ROWS_PER_FILE, WINDOW_S = 2, 2000, 1
WINDOW_US = WINDOW_S * 1_000_000
THREE_FILES, THREE_ROWS, THREE = 4, 1500, ("r", "s", "t")
GROUPS = 7


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("baselines") / "equi"
    make_equi(out, files=FILES, rows_per_file=ROWS_PER_FILE, keys=500, span_ms_per_file=2000, seed=7)
    return out


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three streams with groups, in which half of the rows have no partner."""
    out = tmp_path_factory.mktemp("baselines") / "three"
    make_equi(
        out, files=THREE_FILES, rows_per_file=THREE_ROWS, keys=1500, span_ms_per_file=2000, seed=7, groups=GROUPS,
        streams=THREE,
    )  # fmt: skip
    return out


def report_of(module: str, data: Path, out: Path, *options: str) -> dict[str, Any]:
    """Run `module` on `data`, expect that nothing fails, and return the report."""
    command = [sys.executable, "-m", f"benchmarks.baselines.{module}", "--data", str(data), "--out", str(out)]
    done = subprocess.run([*command, "--window-s", str(WINDOW_S), *options], cwd=ROOT, check=False)
    report: dict[str, Any] = json.loads(out.read_text())
    assert report["error"] is None
    assert done.returncode == 0
    return report


def check(module: str, data: Path, out: Path, *options: str) -> dict[str, Any]:
    """As `report_of`, with DuckDB's count."""
    report = report_of(module, data, out, *options)
    count, _ = count_and_hash(data, WINDOW_US)
    assert count > ROWS_PER_FILE  # Otherwise equal counts would say little.
    assert report["results"] == count
    assert report["rows_in"] == sum(report["batch_rows"]) == len(STREAMS) * FILES * ROWS_PER_FILE
    return report


def written(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    """What DuckDB finds `sql` of the results that Spark left."""
    with duckdb.connect() as connection:
        return connection.execute(sql.format(results=f"read_parquet('{folder}/*.parquet')")).fetchall()


@pytest.mark.slow
@pytest.mark.parametrize(
    "state", ["default", *(pytest.param(name, marks=pytest.mark.soak) for name in STATE_FORMATS if name != "default")]
)
def test_spark_counts_what_duckdb_counts(state: str, data: Path, tmp_path: Path) -> None:
    report = check("spark_join", data, tmp_path / "report.json", "--state", state, "--memory-mb", "1024")
    assert len(report["batch_ms"]) == FILES
    assert report["rows_late"] == 0


@pytest.mark.slow
@pytest.mark.soak
def test_spark_counts_the_same_through_its_parquet_sink(data: Path, tmp_path: Path) -> None:
    check("spark_join", data, tmp_path / "report.json", "--sink", "parquet", "--memory-mb", "1024")


@pytest.mark.slow
@pytest.mark.soak
def test_spark_gives_rows_without_partners_once_the_watermark_has_passed_their_windows(
    three: Path, tmp_path: Path
) -> None:
    report = report_of("spark_join", three, tmp_path / "report.json", "--query", "left", "--memory-mb", "1024")
    inner, _ = count_and_hash(three, WINDOW_US)
    before_us = outer.given_before_us(three, WINDOW_US)
    given = lone(three, "r", WINDOW_US, before_us)
    assert 0 < given < lone(three, "r", WINDOW_US)
    assert report["results"] == inner + given
    assert report["rows_late"] == 0
    assert report["rows_in"] == len(STREAMS) * THREE_FILES * THREE_ROWS
    assert len(report["batch_ms"]) == THREE_FILES


@pytest.mark.slow
@pytest.mark.soak
def test_spark_gives_duckdbs_groups_but_those_of_the_last_windows(three: Path, tmp_path: Path) -> None:
    kept = ("--query", "groups", "--sink", "parquet", "--results", str(tmp_path / "groups"))
    report = report_of("spark_join", three, tmp_path / "report.json", *kept, "--memory-mb", "1024")
    ours = written(tmp_path / "groups", "select g, epoch_us(since), n, total, mean, top from {results} order by 2, 1")
    theirs = groups(three, WINDOW_US, AT_R)
    assert GROUPS < len(ours) == report["results"] < len(theirs)
    assert same_groups(ours, theirs[: len(ours)])
    assert report["results"] in aggregate.possible(three, WINDOW_US)
    assert report["rows_late"] == 0


@pytest.mark.slow
@pytest.mark.soak
def test_spark_joins_three_streams_in_one_query(three: Path, tmp_path: Path) -> None:
    kept = ("--query", "three", "--sink", "parquet", "--results", str(tmp_path / "results"))
    report = report_of("spark_join", three, tmp_path / "report.json", *kept, "--memory-mb", "1024")
    assert report["results"] == count_three(three, WINDOW_US) > 1000
    assert report["rows_late"] == 0
    assert report["rows_in"] == len(THREE) * THREE_FILES * THREE_ROWS
    apart = "select count(*) from {results} where s_key <> t_key or abs(r_us - epoch_us(t_ts)) > " + str(WINDOW_US)
    assert written(tmp_path / "results", apart) == [(0,)]


@pytest.mark.slow
@pytest.mark.skipif(not flink_env.is_ready(), reason="run benchmarks.baselines.flink_env to make Flink's environment")
def test_flink_counts_what_duckdb_counts(data: Path, tmp_path: Path) -> None:
    check("flink_join", data, tmp_path / "report.json", "--memory-mb", "512")


@pytest.mark.slow
@pytest.mark.skipif(not flink_env.is_ready(), reason="run benchmarks.baselines.flink_env to make Flink's environment")
def test_flink_joins_three_streams_in_one_query(three: Path, tmp_path: Path) -> None:
    report = report_of("flink_join", three, tmp_path / "report.json", "--query", "three", "--memory-mb", "512")
    assert report["results"] == count_three(three, WINDOW_US) > 1000
    assert report["rows_in"] == len(THREE) * THREE_FILES * THREE_ROWS


@pytest.mark.slow
@pytest.mark.skipif(not flink_env.is_ready(), reason="run benchmarks.baselines.flink_env to make Flink's environment")
def test_flinks_temporal_join_counts_what_duckdbs_asof_join_counts(data: Path, tmp_path: Path) -> None:
    report = report_of("flink_join", data, tmp_path / "report.json", "--query", "temporal", "--memory-mb", "512")
    assert 0 < report["results"] == count_asof(data) < FILES * ROWS_PER_FILE


@pytest.mark.slow
@pytest.mark.skipif(not flink_env.is_ready(), reason="run benchmarks.baselines.flink_env to make Flink's environment")
def test_flinks_lookup_join_counts_what_duckdb_counts(tmp_path: Path) -> None:
    """Each key of the table is there twice, in two files, some are NULL, and some of the stream's are not there."""
    data = tmp_path / "data"
    make_equi(data, files=FILES, rows_per_file=ROWS_PER_FILE, keys=500, span_ms_per_file=2000, seed=1, streams=("r",))
    (data / "c").mkdir()
    ids = pa.array([None, *range(250)], pa.int64())
    for number in range(2):
        table = pa.table({"id": ids, "city": pa.array(range(len(ids))), "name": [f"name {one}" for one in ids]})
        pq.write_table(table, data / "c" / f"{number}.parquet")
    report = report_of("flink_join", data, tmp_path / "report.json", "--query", "lookup", "--memory-mb", "512")
    sql = f"select count(*) from '{data}/r/*.parquet' r join '{data}/c/*.parquet' c on r.key = c.id"
    assert report["results"] == duck.rows(sql)[0][0] > ROWS_PER_FILE
    assert report["rows_in"] == FILES * ROWS_PER_FILE


def test_duckdb_counts_what_nested_loops_count(tmp_path: Path) -> None:
    data, window_us = tmp_path / "data", 20_000
    make_equi(data, files=2, rows_per_file=40, keys=9, span_ms_per_file=100, seed=2, groups=3, streams=THREE)
    r, s, t = (
        [row | {"us": row["ts"].timestamp() * 1e6} for file in stream_files(data, stream) for row in rows(file)]
        for stream in THREE
    )

    def near(one: dict[str, Any], other: dict[str, Any]) -> bool:
        return one["key"] == other["key"] and abs(one["us"] - other["us"]) <= window_us

    pairs = [(one, other) for one in r for other in s if near(one, other)]
    assert count_and_hash(data, window_us)[0] == len(pairs)
    assert count_three(data, window_us) == sum(near(one, row) and near(other, row) for one, other in pairs for row in t)
    alone = [one for one in r if not any(near(one, other) for other in s)]
    middle_us = int(r[40]["us"])
    assert lone(data, "r", window_us) == len(alone) > 0
    assert lone(data, "r", window_us, middle_us) == sum(one["us"] < middle_us for one in alone)
    assert lone(data, "s", window_us) == sum(not any(near(one, other) for one in r) for other in s)
    latest = [one for one in r if any(one["key"] == other["key"] and one["us"] >= other["us"] for other in s)]
    assert count_asof(data) == len(latest) < len(r)
    assert last_us(data) == min(r[-1]["us"], s[-1]["us"])
    for at, time in ((AT_R, lambda one, other: one["us"]), (AT_LATER, lambda one, other: max(one["us"], other["us"]))):
        found: dict[tuple[int, int], list[dict[str, Any]]] = {}
        for one, other in pairs:
            found.setdefault((int(time(one, other)) // window_us * window_us, one["g"]), []).append(other)
        wanted = [
            (
                g, since_us, len(some), sum(row["x"] for row in some), sum(row["val"] for row in some) / len(some),
                max(row["val"] for row in some),
            )
            for (since_us, g), some in sorted(found.items())
        ]  # fmt: skip
        assert same_groups(groups(data, window_us, at), wanted)
        assert not same_groups(groups(data, window_us, at), wanted[1:])
    assert groups(data, window_us, AT_R) != groups(data, window_us, AT_LATER)


def rows(file: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(file).to_pylist()
    return found


@pytest.mark.slow
def test_a_run_that_fails_says_why(tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    command = [sys.executable, "-m", "benchmarks.baselines.spark_join", "--data", str(tmp_path / "missing")]
    done = subprocess.run(
        [*command, "--window-s", "1", "--out", str(out), "--memory-mb", "1024"], cwd=ROOT, check=False
    )
    assert done.returncode == 1
    assert "missing" in json.loads(out.read_text())["error"]


def test_the_same_parameters_write_nothing_and_others_replace_all(tmp_path: Path) -> None:
    out = tmp_path / "band"
    make_band(out, files=2, rows_per_file=10, span_ms_per_file=10, seed=1)
    first = stream_files(out, "r")[0]
    inode = first.stat().st_ino
    make_band(out, files=2, rows_per_file=10, span_ms_per_file=10, seed=1)
    assert first.stat().st_ino == inode
    make_band(out, files=1, rows_per_file=10, span_ms_per_file=10, seed=1)
    assert stream_files(out, "r") == [first]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["band"]
