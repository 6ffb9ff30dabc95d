"""Results of an earlier checkpoint do not stand beside those of a new one, as the command line and readers see it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from .command import Command
from .jobs import result_rows, run_to_the_end

pytestmark = pytest.mark.spark

JOIN = """\
streams:
  a: {source: csv, path: a, time: ts, delay: 1s, schema: {ts: timestamp, id: int64, v: int64}}
  b: {source: csv, path: b, time: ts, delay: 1s, schema: {ts: timestamp, id: int64, w: int64}}
query: SELECT ONLINE a.id, a.v, b.w FROM a JOIN b ON a.id = b.id WITHIN 10 SECONDS
results: {parquet: out}
run: {checkpoint: state, slots: 2"""


def test_a_removed_checkpoint_leaves_its_results_to_nobody_else(session: SparkSession, tmp_path: Path) -> None:
    for name, value in (("a", "v"), ("b", "w")):
        (tmp_path / name).mkdir()
        for number in range(2):
            text = f"ts,id,{value}\n2024-01-01 00:00:0{number},{number},{number}\n"
            (tmp_path / name / f"{number}.csv").write_text(text)
    file = tmp_path / "join.yaml"
    file.write_text(JOIN + ", files_per_batch: 1}\n")
    run_to_the_end(session, file, 2)
    assert result_rows(tmp_path / "out").total() == 2
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    shutil.rmtree(tmp_path / "state")
    file.write_text(JOIN + "}\n")
    with Command(file, "--until-end") as command:
        status = command.exit_status()
    said = file.with_suffix(".log").read_text()
    assert status == 2 and f"{tmp_path / 'out'} has results of the checkpoint that was in {tmp_path / 'state'}" in said
    assert "starting Spark" not in said and not (tmp_path / "state").exists()
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()} == before
    shutil.rmtree(tmp_path / "out")
    run_to_the_end(session, file, 2)
    assert result_rows(tmp_path / "out").total() == 2
    # Readers pass the mark over.
    assert (tmp_path / "out" / ".owner.json").exists()
    assert session.read.parquet(str(tmp_path / "out")).count() == 2
