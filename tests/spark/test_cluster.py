"""A join on a real standalone cluster: exact, whoever is killed; and a sentence for each way in which there is none."""

from __future__ import annotations

import json
import os
import signal
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyspark
import pytest

from tests import duck
from tests.servers.process import ServerProcess, comes_true
from tests.servers.spark import SparkCluster

from .command import KILLS_S_MAX, RUN_S_MAX, Command
from .jobs import check_same_in_duckdb

pytestmark = [pytest.mark.spark, pytest.mark.services, pytest.mark.slow]

FILES = 6
ROWS = 500
QUERY = "SELECT ONLINE r.id AS r_id, s.id AS s_id FROM r, s WHERE r.k = s.k WITHIN 100 MILLISECONDS"
REFERENCE = (
    "SELECT r.id AS r_id, s.id AS s_id FROM '{0}/r/*.parquet' AS r JOIN '{0}/s/*.parquet' AS s "
    "ON r.k = s.k AND abs(epoch_us(r.ts) - epoch_us(s.ts)) <= 100000"
)
PYTHONS = {
    "bare": f'exec {sys.executable} -S "$@"',
    "later": f'PYTHONPATH="$PYTHONPATH:$(dirname "$0")" exec {sys.executable} "$@"',
}
"""Programs that are another Python than the driver's: one without packages, one of a later version."""
LATER = "import os, sys\nos.register_at_fork(after_in_child=lambda: setattr(sys, 'version_info', (3, 99, 0)))\n"


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkCluster]:
    with SparkCluster(2) as started:
        yield started


def write_streams(folder: Path, files: int = FILES) -> None:
    for stream in "rs":
        (folder / stream).mkdir()
        for number in range(files):
            rows = f"range({number * ROWS}, {(number + 1) * ROWS})"
            duck.rows(f"""
                COPY (SELECT timestamp '2026-01-01' + interval (x) milliseconds AS ts, x AS id, (x * 7919) % 50 AS k
                      FROM {rows} t(x)) TO '{folder}/{stream}/{number:06d}.parquet'""")


def join_file(folder: Path, run: str) -> Path:
    file = folder / "join.yaml"
    file.write_text(f"""\
streams:
  r: {{source: parquet, path: r, time: ts}}
  s: {{source: parquet, path: s, time: ts}}
query: {QUERY}
results: {{parquet: results}}
run: {{checkpoint: checkpoint, files_per_batch: 1, slots: 2, {run}}}
""")
    return file


def pack_python(folder: Path) -> None:
    """An archive with a Python that notes where it is started, and is the driver's otherwise."""
    program = folder / "packed/bin/python"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\npwd >> {folder}/used\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    with tarfile.open(folder / "environment.tar.gz", "w:gz") as archive:
        archive.add(folder / "packed", ".")


def on(cluster: SparkCluster, executors: str, **spark: str | int) -> str:
    """What `run:` says of a cluster."""
    settings = {**cluster.settings, **{name.replace("_", "."): value for name, value in spark.items()}}
    said = json.dumps({"master": cluster.master, "shared": True, "spark": settings})
    return f"{said[1:-1]}, executors: {{{executors}, memory: 512m}}"


def commits(folder: Path) -> int:
    return len(list((folder / "checkpoint/offsets/commits").glob("[0-9]*")))


@pytest.mark.soak
@pytest.mark.timeout(KILLS_S_MAX)
def test_executors_and_the_driver_are_killed_and_results_are_exact(cluster: SparkCluster, tmp_path: Path) -> None:
    write_streams(tmp_path)
    file = join_file(tmp_path, on(cluster, "min: 2, max: 2"))
    with Command(file, "--until-end") as first:
        first.wait_until(lambda: commits(tmp_path) >= 1, "commits no batch", RUN_S_MAX)
        victim, *others = cluster.executors()
        assert len(others) == 1, "both workers take part"
        secret = cluster.settings["spark.authenticate.secret"]
        seen = [process.info["cmdline"] or () for process in psutil.process_iter(["cmdline"])]
        assert not [words for words in seen if secret in " ".join(words)], "every user of the machine sees it"
        os.kill(victim.pid, signal.SIGKILL)
        known = commits(tmp_path)
        first.wait_until(lambda: commits(tmp_path) >= known + 1, "does not go on without an executor", RUN_S_MAX)
        assert first.crash() == -signal.SIGKILL
    assert commits(tmp_path) < FILES, "it was to be killed before its end"
    assert comes_true(lambda: not cluster.executors(), RUN_S_MAX), "executors outlive their driver"
    # It goes on with another Python for executors, which they get as an archive.
    pack_python(tmp_path)
    archive = f"{tmp_path}/environment.tar.gz#environment"
    python = "./environment/bin/python"
    join_file(tmp_path, on(cluster, "min: 2, max: 2", spark_archives=archive, spark_pyspark_python=python))
    with Command(file, "--until-end") as second:
        assert second.exit_status() == 0, second.output()
    started_in = {Path(line) for line in (tmp_path / "used").read_text().splitlines()}
    assert started_in and all(folder.is_relative_to(cluster.home) for folder in started_in), "the driver has its own"
    assert check_same_in_duckdb(tmp_path / "results", REFERENCE.format(tmp_path)) > 10_000


@pytest.mark.soak
def test_a_cluster_without_a_free_executor_is_waited_for_a_while(cluster: SparkCluster, tmp_path: Path) -> None:
    write_streams(tmp_path, files=1)
    file = join_file(tmp_path, on(cluster, "cores: 2"))
    program = "import streamjoin.spark.cluster as c, streamjoin.cli.commands as cli; c.EXECUTORS_S = 3; cli.main()"
    command = [sys.executable, "-c", program, "run", str(file), "--until-end"]
    with ServerProcess("streamjoin run", command, tmp_path / "join.log") as process:
        assert comes_true(lambda: not process.is_running(), RUN_S_MAX)
        said = process.output()
    assert f"streamjoin: {cluster.master} gave no executor within 3 s; it may have no free core, or no worker" in said
    assert "one with 2 cores and 512m of memory" in said and "Traceback" not in said


def fails(folder: Path, run: str) -> str:
    """The one sentence by which a run ends."""
    with Command(join_file(folder, run), "--until-end", "--quiet") as command:
        assert command.exit_status() in (1, 2)
        (said,) = [line for line in command.output().splitlines() if not line.startswith("Picked up")]
    return said


@pytest.mark.soak
@pytest.mark.parametrize(
    ("python", "says"),
    [
        (
            "bare",
            "Python cannot start a worker (ModuleNotFoundError: No module named 'numpy'); executors need a Python",
        ),
        ("later", f"executors run Python 3.99 and the driver 3.{sys.version_info.minor}; executors need a Python"),
    ],
)
def test_an_executor_with_another_python_ends_the_run_in_one_sentence(
    cluster: SparkCluster, tmp_path: Path, python: str, says: str
) -> None:
    write_streams(tmp_path, files=1)
    (tmp_path / "sitecustomize.py").write_text(LATER)
    program = tmp_path / python
    program.write_text(f"#!/bin/sh\n{PYTHONS[python]}\n")
    program.chmod(0o755)
    said = fails(tmp_path, on(cluster, "min: 1, max: 1", spark_pyspark_python=str(program), spark_task_maxFailures=1))
    assert said.startswith(f"streamjoin: {says}"), said
    assert "spark.pyspark.python" in said
    if python == "bare":  # which finds nothing but what it is given
        log = (tmp_path / "checkpoint/spark.log").read_text()
        assert "/streamjoin-package/streamjoin/spark/daemon.py" in log, "executors get the package from the driver"


@pytest.mark.soak
def test_executors_of_another_spark_end_the_run_in_one_sentence(cluster: SparkCluster, tmp_path: Path) -> None:
    write_streams(tmp_path, files=1)
    # Executors are what a cluster's own Spark is; here they are ours, and only say that they are older.
    (tmp_path / "older").mkdir()
    words = ("user", "revision", "branch", "date", "url", "docroot")
    older = "".join(f"{word}=none\n" for word in words) + "version=4.1.7\n"
    (tmp_path / "older" / "spark-version-info.properties").write_text(older)
    said = fails(tmp_path, on(cluster, "min: 1, max: 1", spark_executor_extraClassPath=str(tmp_path / "older")))
    drivers = pyspark.__version__
    assert said.startswith(f"streamjoin: executors of {cluster.master} run Spark 4.1.7 and the driver {drivers}; start")
    assert not (tmp_path / "checkpoint/offsets").exists(), "it ends before the first batch"
