"""The tests' own Spark cluster: workers that run apart have a disk each, as workers of several machines do."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
from pathlib import Path

import psutil
import pytest
import yaml

from .apart import inside, refusal
from .laptop import NOT_HERE
from .process import ServerProcess, comes_true
from .spark import SparkCluster

FETCHED_S_MAX = 900.0
"""Jars are fetched the first time."""

pytestmark = [pytest.mark.services, pytest.mark.slow]


@pytest.mark.soak
def test_workers_that_run_apart_have_a_disk_each_and_what_the_cluster_was_given(tmp_path: Path) -> None:
    if (reason := refusal()) is not None:
        pytest.skip(reason)
    (own := tmp_path / "own").mkdir()
    with SparkCluster(2, own, {"GIVEN": "to workers"}, java_options="-Xshare:auto -Dgiven=java") as cluster:
        seen = [inside(worker.pid, own) for worker in cluster.workers]
        for number, folder in enumerate(seen):
            (folder / f"of-{number}").touch()
        names = [{file.name for file in folder.iterdir()} for folder in seen]
        assert [{f"of-{number}" for number in (0, 1)} & found for found in names] == [{"of-0"}, {"of-1"}]
        assert list(own.iterdir()) == [], "nor does the driver see what they write"
        for worker in cluster.workers:
            variables = Path(f"/proc/{worker.pid}/environ").read_text().split("\0")
            assert "GIVEN=to workers" in variables
            options = next(one for one in variables if one.startswith("JAVA_TOOL_OPTIONS="))
            assert "-Dgiven=java" in options and f"-Djava.io.tmpdir={own}/tmp" in options
            assert "TieredStopAtLevel" not in options, "options that are given take the place of the tests' own"


def test_one_command_starts_workers_and_a_store_says_what_a_join_file_needs_and_leaves_no_process(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-m", "tests.servers.laptop"]
    with ServerProcess("make cluster", command, tmp_path / "cluster.log") as cluster:
        assert comes_true(lambda: "Ctrl-C ends them" in cluster.output() or not cluster.is_running(), FETCHED_S_MAX)
        if cluster.process.poll() == NOT_HERE:
            pytest.skip(cluster.output())
        said = cluster.output()
        run = yaml.safe_load(said.partition("under run:\n")[2].partition("\n\n")[0])
        assert run["shared"] and run["executors"]["max"] == 2
        bound = [(name, int(port)) for name, port in re.findall(r"(spark|override=)\S*?127\.0\.0\.1:(\d+)", said)]
        assert sorted(name for name, _ in bound) == ["override=", "spark"]
        for _, port in bound:
            socket.create_connection(("127.0.0.1", port), 5).close()
        started = psutil.Process(cluster.pid).children(recursive=True)
        os.kill(cluster.pid, signal.SIGINT)
        assert comes_true(lambda: not cluster.is_running(), 30) and cluster.process.returncode == 0, cluster.output()
        gone, left = psutil.wait_procs(started, 15)
        assert len(gone) > 3 and not [one for one in left if "java" in one.name()], left
