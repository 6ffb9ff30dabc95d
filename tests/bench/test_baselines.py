"""The baselines answer as DuckDB does, on data small enough for a test."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.baselines import flink_env
from benchmarks.baselines.duckdb_join import count_and_hash
from benchmarks.baselines.spark_join import STATE_FORMATS
from benchmarks.data import STREAMS, make_band, make_equi, stream_files

ROOT = Path(__file__).parents[2]
FILES, ROWS_PER_FILE, WINDOW_S = 2, 2000, 1


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("baselines") / "equi"
    make_equi(out, files=FILES, rows_per_file=ROWS_PER_FILE, keys=500, span_ms_per_file=2000, seed=7)
    return out


def check(module: str, data: Path, out: Path, *options: str) -> dict[str, Any]:
    """Run `module` on `data`, expect DuckDB's count, and return the report."""
    command = [sys.executable, "-m", f"benchmarks.baselines.{module}", "--data", str(data), "--out", str(out)]
    done = subprocess.run([*command, "--window-s", str(WINDOW_S), *options], cwd=ROOT, check=False)
    report: dict[str, Any] = json.loads(out.read_text())
    assert report["error"] is None
    assert done.returncode == 0
    count, _ = count_and_hash(data, WINDOW_S * 1_000_000)
    assert count > ROWS_PER_FILE  # Otherwise equal counts would say little.
    assert report["results"] == count
    assert report["rows_in"] == sum(report["batch_rows"]) == len(STREAMS) * FILES * ROWS_PER_FILE
    return report


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
@pytest.mark.skipif(not flink_env.is_ready(), reason="run benchmarks.baselines.flink_env to make Flink's environment")
def test_flink_counts_what_duckdb_counts(data: Path, tmp_path: Path) -> None:
    check("flink_join", data, tmp_path / "report.json", "--memory-mb", "512")


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
