"""The tests' own Spark cluster: workers that run apart have a disk each, as workers of several machines do."""

from __future__ import annotations

from pathlib import Path

import pytest

from .apart import inside, refusal
from .spark import SparkCluster

pytestmark = [pytest.mark.services, pytest.mark.slow]


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
