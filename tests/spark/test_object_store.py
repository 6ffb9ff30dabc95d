"""A job whose state is on S3: killed, its cache deleted, moved to another folder, with other slots; exact."""

from __future__ import annotations

import shutil
import signal
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from streamjoin.intake import rejected
from tests.conformance.check import expected, plan
from tests.conformance.histories import History, history
from tests.servers.s3 import S3

from .command import KILLS_S_MAX, Command
from .jobs import check_same, crash, join_text, query, result_rows, run_to_the_end, write_file, write_history

pytestmark = [pytest.mark.spark, pytest.mark.services]

BATCHES = 6
OPERATOR = "name: splitjoin, cores: 3"


def job(folder: Path, s3: S3, operator: str = OPERATOR, checkpoint: str = "checkpoint") -> tuple[Path, History]:
    given = history(5, r=10 * BATCHES, s=9 * BATCHES, time_shape="disordered", delay_us=15)
    if not (folder / "r").exists():
        write_history(given, folder, BATCHES)
        ((rows,), _) = given.cuts(BATCHES)[0]
        rows = rows.slice(0, 3)
        place = rows.schema.get_field_index("ts")
        write_file(folder / "r", BATCHES, rows.set_column(place, "ts", pa.nulls(3, rows.schema.field(place).type)))
    state = s3.uri(f"states/{folder.name}")
    run = f'slots: 2, state: "{state}", cache: {{path: cache, size: 1g}}'
    text = join_text(query("band", "20 us"), operator, delay_us=15, run=run)
    file = folder / f"{checkpoint}.yaml"
    file.write_text(text.replace("checkpoint: checkpoint", f"checkpoint: {checkpoint}"))
    return file, given


def want(given: History) -> Counter[tuple[int, int]]:
    return Counter(expected(given, "band", plan(given, "band", "20 us"), BATCHES))


@pytest.mark.soak
@pytest.mark.kills
@pytest.mark.timeout(KILLS_S_MAX)
def test_a_job_on_s3_goes_on_exactly_wherever_it_goes_on(s3: S3, session: SparkSession, tmp_path: Path) -> None:
    file, given = job(tmp_path, s3)
    with Command(file, "--until-end", "--quiet", failpoints="unit.after_manifest:kill:3") as command:
        status = command.exit_status()
    assert status == -signal.SIGKILL, (tmp_path / "checkpoint.log").read_text()[-2000:]
    assert not (tmp_path / "checkpoint" / "state").exists()
    shutil.rmtree(tmp_path / "cache")
    crash(session, file, "batch.before_commit:1", slots=3)
    crash(session, file, "generation.after_put:2", slots=1)
    # To a host that has nothing of it, with more units.
    shutil.rmtree(tmp_path / "cache")
    (tmp_path / "checkpoint").rename(tmp_path / "left behind")
    moved, _ = job(tmp_path, s3, "name: splitjoin, cores: 4", "elsewhere")
    crash(session, moved, "batch.after_commit:1")
    # Back to the first one, whose folder is older than the state by now.
    shutil.rmtree(tmp_path / "elsewhere")
    (tmp_path / "left behind").rename(tmp_path / "checkpoint")
    run_to_the_end(session, file, 2)
    check_same(result_rows(tmp_path / "results"), want(given))
    assert rejected.read_head(tmp_path / "checkpoint" / "dead-letters").counts["r"] == {"no_time": 3}
