"""Relations that are read anew while their job runs: every row is joined with one version, and results say which."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from streamjoin.relations.history import History
from streamjoin.spark.progress import Progress
from streamjoin.spark.run import report, run_job
from streamjoin.spec.joinfile import load
from streamjoin.spec.prepare import bind
from tests import duck

from .jobs import crash, run_to_the_end, write_file

pytestmark = pytest.mark.spark

WAIT_S = 300.0


def write_rates(path: Path, version: int, rows: int = 6) -> None:
    """A relation whose rows all say which version they are of, in place of the one that is there."""
    path.mkdir(exist_ok=True)
    hidden = path / ".hidden"
    table = pa.table({"k": pa.array(range(rows)), "said": pa.array([version] * rows)})
    pq.write_table(table, hidden)
    hidden.rename(path / "rates.parquet")


def write_rows(folder: Path, number: int, stream: str = "a", rows: int = 40) -> None:
    """A file of a stream; half of its keys are in the relation."""
    ids = range(number * rows, (number + 1) * rows)
    times = pa.array([one * 1_000 for one in ids])
    write_file(folder / stream, number, pa.RecordBatch.from_arrays(
        [times, pa.array(ids), pa.array([one % 12 for one in ids])], ["ts", "id", "k"]
    ))  # fmt: skip


LEFT = "SELECT ONLINE a.id, rates.said, VERSION(rates) FROM a LEFT JOIN rates ON a.k = rates.k"
TREE = (
    "SELECT ONLINE a.id, b.id AS b, rates.said, VERSION(rates) AS version, VERSION(r) AS other FROM a JOIN b ON a.id = "
    "b.id LEFT JOIN rates ON a.k = rates.k JOIN rates AS r ON b.k = r.k OR b.k >= 6 AND r.k = 0 WITHIN 1 SECOND"
)


def text(query: str = LEFT, streams: str = "a", every: str = "1s") -> str:
    lines = ["streams:"]
    lines += [f"  {name}: {{source: parquet, path: {name}, time: ts, delay: 1s}}" for name in streams]
    lines += [f"relations: {{rates: {{source: parquet, path: rates, refresh: {every}}}}}", f"query: {query!r}"]
    return "\n".join([*lines, "results: {parquet: results}", "run: {checkpoint: checkpoint, heartbeat: 1s, slots: 3}"])


class Live:
    """A job that runs in this process, in another thread."""

    def __init__(self, session: SparkSession, file: Path) -> None:
        self.file = file
        self.bound = bind(load(file))
        self.job = self.bound.job(heartbeat=True)
        self.stop = threading.Event()
        self.progress: Progress | None = None
        self.failure: BaseException | None = None
        self.thread = threading.Thread(target=self._run, args=(session,))
        self.thread.start()

    def _run(self, session: SparkSession) -> None:
        try:
            self.progress = run_job(session, self.bound, self.job, self.bound.sinks(), until_end=False, stop=self.stop)
        except BaseException as failure:
            self.failure = failure

    def until(self, holds: Callable[[], bool]) -> None:
        until = time.monotonic() + WAIT_S
        while not holds():
            assert self.thread.is_alive(), self.failure
            assert time.monotonic() < until, "it does not come to that"
            time.sleep(0.05)


@contextmanager
def live(session: SparkSession, file: Path) -> Iterator[Live]:
    job = Live(session, file)
    try:
        yield job
    finally:
        job.stop.set()
        job.thread.join(WAIT_S)
    assert job.failure is None, job.failure


def rows_in(folder: Path) -> list[tuple[Any, ...]]:
    if not list((folder / "results").glob("*.parquet")):
        return []
    return duck.rows(f"SELECT * FROM '{folder}/results/*.parquet'")


def joined_by_batch(folder: Path) -> dict[int, Mapping[str, int]]:
    """By batch, the versions that its offsets name."""
    found = {}
    for path in (folder / "checkpoint" / "offsets" / "offsets").iterdir():
        if path.name.isdecimal():
            found[int(path.name)] = json.loads(path.read_text().splitlines()[2])["relations"]
    return found


def check_one_version_each(rows: list[tuple[Any, ...]], versions: Mapping[int, int]) -> None:
    """Every row is there once, with the version that its file was joined with.

    Args:
        versions: by number of the file of 40 rows, the version that rows of it met.
    """
    wanted = Counter(
        (id, version if id % 12 < 6 else None, version)
        for number, version in versions.items()
        for id in range(number * 40, (number + 1) * 40)
    )
    assert Counter(rows) == wanted


def test_a_new_version_is_taken_whole_by_every_unit_at_every_stage_in_the_same_batch(
    session: SparkSession, tmp_path: Path
) -> None:
    file = tmp_path / "join.yaml"
    file.write_text(text(TREE, "ab"))
    write_rates(tmp_path / "rates", 1)
    history = History(tmp_path / "checkpoint" / "relations", "rates")
    for stream in "ab":
        (tmp_path / stream).mkdir()
        write_rows(tmp_path, 0, stream)
    with live(session, file) as job:
        for number in range(3):
            for stream in "ab" if number else "":
                write_rows(tmp_path, number, stream)
            job.until(lambda number=number: len(rows_in(tmp_path)) == 40 * (number + 1))
            if number == 0:
                write_rates(tmp_path / "rates", 2)
                job.until(lambda: len(history.uses()) == 2)  # though nothing has come meanwhile
            if number == 1:
                (tmp_path / "rates" / "rates.parquet").unlink()
                job.until(lambda: history.look().problem is not None)
    wanted = Counter(
        (id, id, version if id % 12 < 6 else None, version, version)
        for number, version in enumerate((1, 2, 2))
        for id in range(number * 40, (number + 1) * 40)
    )
    assert Counter(rows_in(tmp_path)) == wanted
    assert job.progress is not None
    told = report(job.bound, job.job, job.progress, 1.0, 0)["relations"]["rates"]
    assert told["version"] == told["joined"] == 2 and told["refreshes"] == 1
    assert told["refresh_failures"] >= 1 and "has no files any more" in told["problem"]
    by_batch = joined_by_batch(tmp_path)
    assert [use.version for use in history.uses()] == [1, 2]
    kept = [use for use in history.uses() if use.batch in by_batch]  # Spark forgets those of long ago
    assert kept and all(by_batch[use.batch] == {"rates": use.version} for use in kept)


@pytest.mark.soak
def test_a_batch_that_is_repeated_keeps_its_version_though_a_newer_one_is_there(
    session: SparkSession, tmp_path: Path
) -> None:
    file = tmp_path / "join.yaml"
    file.write_text(text().replace("heartbeat", "files_per_batch: 1, heartbeat"))
    write_rates(tmp_path / "rates", 1)
    write_rows(tmp_path, 0)
    write_rows(tmp_path, 1)
    crash(session, file, "batch.before_commit:1", 3)
    write_rates(tmp_path / "rates", 2)
    run_to_the_end(session, file, 2)
    check_one_version_each(rows_in(tmp_path), {0: 1, 1: 2})
