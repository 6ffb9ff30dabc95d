"""The archive of Java's classes: it is made once, mapped by a session, and a damaged one costs time only."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from streamjoin.spark.archive import make_archive
from streamjoin.spark.java import Java, find_java

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MAPPED = """
from pathlib import Path
from streamjoin.spark.session import create_session
session = create_session(1)
java = session.sparkContext._jvm.ProcessHandle.current().pid()
print(session.range(10).count(), ".jsa" in Path(f"/proc/{java}/maps").read_text().replace("classes.jsa", ""))
session.stop()
"""


def mapped(prefix: Path | None = None) -> str:
    """What a new process with a session counts, and whether its Java maps an archive of ours."""
    script = MAPPED if prefix is None else f"import sys\nsys.prefix = {str(prefix)!r}\n{MAPPED}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=True)
    return done.stdout.strip()


@pytest.mark.soak
def test_an_archive_is_made_once_and_mapped() -> None:
    archive = make_archive()
    made_ns = archive.stat().st_mtime_ns
    assert make_archive() == archive
    assert archive.stat().st_mtime_ns == made_ns
    assert not list(archive.parent.glob(".recording-*"))
    if not os.path.exists("/proc/self/maps"):
        pytest.skip("needs /proc")
    assert mapped() == "10 True"


@pytest.mark.soak
def test_a_damaged_archive_costs_time_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamjoin.spark.java.sys.prefix", str(tmp_path))
    java = find_java()
    archive = Java(java.program, java.version).archive
    archive.parent.mkdir(parents=True, exist_ok=True)
    archive.write_bytes(b"no archive")
    assert mapped(tmp_path) == "10 False"


@pytest.mark.soak
def test_python_processes_of_spark_find_the_package_and_not_the_zip(session: SparkSession) -> None:
    def where(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyspark

        yield pa.RecordBatch.from_pydict({"path": [pyspark.__file__]})

    [row] = session.range(1, numPartitions=1).mapInArrow(where, "path string").collect()
    assert "pyspark.zip" not in row.path
