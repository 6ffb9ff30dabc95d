"""What a run says of files whose order makes rows late."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamjoin.cli import running
from streamjoin.spark.progress import Progress
from streamjoin.spark.run import LateFiles, report
from streamjoin.spec.joinfile import parse
from streamjoin.spec.prepare import bind

FILE = """
streams:
  a: {source: csv, path: a, time: ts, time_unit: s}
  b: {source: csv, path: b, time: ts, time_unit: s}
  c: {source: csv, path: c/1.csv, time: ts, time_unit: s}
query: SELECT ONLINE a.k FROM a, b, c WHERE a.k = b.k AND b.k = c.k WITHIN 1 SECOND
"""


def test_the_summary_says_that_files_of_late_rows_were_read_in_the_order_of_letters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for stream in "abc":
        (tmp_path / stream).mkdir()
        for number in (1, 2, 10):
            (tmp_path / stream / f"{number}.csv").write_text(f"ts,k\n{number},1\n")
    bound = bind(parse(FILE, base=tmp_path))
    job = bound.job()
    for number in range(3):
        job.open_source(number).freeze(0)
    progress = Progress(streams=3)
    assert "late_files" not in report(bound, job, progress, 1.0, 0)
    watch = LateFiles(job)
    assert watch.look(progress.late) == {}
    progress.late = [3, 0, 4]
    figures = report(bound, job, progress, 1.0, 0)
    said = "files of a are read in the order of their names, 10.csv before 2.csv, which may be why rows are late: "
    assert list(figures["late_files"]) == ["a"] and figures["late_files"]["a"].startswith(said)
    assert watch.look(progress.late) == figures["late_files"]
    looks: list[list[int]] = []
    monkeypatch.setattr("streamjoin.spark.run.late_files", lambda job, late: looks.append([*late]) or {})
    monkeypatch.setattr("time.monotonic", lambda: 1e12)
    assert watch.look(progress.late) == watch.look([5, 0, 4]) == figures["late_files"]
    assert looks == [], "nothing is looked for where nothing new came late, or all is said"
    watch.look([5, 0, 6])
    assert looks == [[0, 0, 6]]
    assert f"late: a 3, c 4\n{said}" in running._summary(figures)
