"""A power loss on Spark, whose own logs nobody syncs: see `tests/conformance/power`, which has the rest of it."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.conformance.check import expected, plan
from tests.conformance.histories import history
from tests.conformance.power.disk import Tree, build, everything, names_only, nothing_more
from tests.conformance.power.record import Replay, needs_strace, record

from .command import JAVA_OPTIONS, KILLS_S_MAX, RUN_S_MAX
from .jobs import check_same, join_text, query, result_rows, run_to_the_end, write_history

pytestmark = pytest.mark.spark

BATCHES = 4
LOSSES = (nothing_more, names_only)


def join_file(folder: Path, place: str) -> Path:
    text = join_text(query("equality", "20 us"), "name: biclique, r_units: 2, s_units: 2", delay_us=15)
    text = text.replace("checkpoint: checkpoint", f"checkpoint: {place}/checkpoint")
    file = folder / f"{place}.yaml"
    file.write_text(text.replace("parquet: results", f"parquet: {place}/results"))
    return file


def left(trace: Path, root: Path) -> list[tuple[str, Tree]]:
    """What losses leave once each batch's offsets are synced, and once its results are."""
    found: list[tuple[str, Tree]] = []
    replay = Replay(root)
    for call in replay.changes(trace):
        path = Path(call.descriptor[1]) if call.descriptor is not None else None
        if call.name == "fsync" and path is not None and path.name in ("offsets", "results"):
            found += [(f"{loss.__name__} at {path.name}", loss(replay.disk)) for loss in LOSSES]
    logs = everything(replay.disk)["checkpoint"]
    assert isinstance(logs, dict) and isinstance(logs["offsets"], dict)
    assert {"metadata", "offsets", "commits"} <= set(logs["offsets"])
    return found


@pytest.mark.soak
@pytest.mark.kills
@pytest.mark.timeout(KILLS_S_MAX)
def test_a_job_on_spark_goes_on_exactly_after_a_power_loss(session: SparkSession, tmp_path: Path) -> None:
    needs_strace()
    given = history(7, r=10 * BATCHES, s=9 * BATCHES, time_shape="disordered", delay_us=15)
    write_history(given, tmp_path, BATCHES)
    (tmp_path / "job").mkdir()
    command = [sys.executable, "-m", "streamjoin.cli.commands", "run", str(join_file(tmp_path, "job")), "--until-end"]
    record(command, tmp_path / "trace", {**os.environ, "JAVA_TOOL_OPTIONS": JAVA_OPTIONS}, RUN_S_MAX)
    want = Counter(expected(given, "equality", plan(given, "equality", "20 us"), BATCHES))
    check_same(result_rows(tmp_path / "job/results"), want)
    trees = left(tmp_path / "trace", tmp_path / "job")
    assert len(trees) >= 2 * 2 * BATCHES
    # Not all of them: a start takes seconds.
    for number, (name, tree) in enumerate(trees[:2] + trees[2::5]):
        place = f"left-{number}"
        build(tree, tmp_path / place)
        file = join_file(tmp_path, place)
        run_to_the_end(session, file, 2)
        assert result_rows(tmp_path / place / "results") == want, name
