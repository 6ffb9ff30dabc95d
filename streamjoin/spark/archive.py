"""Make the archive of Java classes: `python -m streamjoin.spark.archive`.

A small job is run, so that the classes it loads are recorded and the kernels it calls are compiled. Takes about as
long as three starts of Spark.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from streamjoin.errors import RunError, StreamJoinError
from streamjoin.spark.java import find_java
from streamjoin.spark.run import run_job
from streamjoin.spark.session import create_session
from streamjoin.spec.joinfile import parse
from streamjoin.spec.prepare import bind

JOIN = """
streams:
  auction: {source: generator, kind: nexmark.auction, rows: 300, time: ts, delay: 1s}
  bid: {source: generator, kind: nexmark.bid, rows: 3000, time: ts, delay: 1s}
query: SELECT ONLINE auction.id, bid.price FROM auction, bid WHERE auction.id = bid.auction WITHIN 1 SECOND
results: {parquet: results}
run: {offsets_per_batch: 1500}
"""
LIMIT_S = 300


def make_archive() -> Path:
    """Make the archive where there is none yet; returns where it is.

    Raises:
        InputError: there is no usable Java.
        RunError: the job failed, or Java could not write the archive.
    """
    archive = find_java().archive
    if archive.exists():
        return archive
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".recording-", dir=archive.parent) as folder:
        recorded = Path(folder) / archive.name
        # Java writes it while it ends, after Python; it has our output pipe, so reading that to its end waits for both.
        command = [sys.executable, "-m", "streamjoin.spark.archive", "--record", str(recorded)]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            raise RunError(f"recording Java's classes took more than {LIMIT_S} s") from None
        if not recorded.exists():
            said = (done.stderr or done.stdout).strip().splitlines()
            raise RunError(f"Java's classes could not be recorded: {said[-1] if said else done.returncode}")
        os.replace(recorded, archive)
    return archive


def record(archive: Path) -> None:
    """Run the job in this process, whose Java writes the archive as it ends."""
    bound = bind(parse(JOIN, base=archive.parent))
    session = create_session(bound.file.slots, record=archive)
    try:
        run_job(session, bound, bound.job(heartbeat=False), bound.sinks(), until_end=True)
    finally:
        session.stop()


if __name__ == "__main__":
    try:
        if sys.argv[1:2] == ["--record"]:
            record(Path(sys.argv[2]))
        else:
            print(f"java: Spark's classes are in {os.path.relpath(make_archive())}")
    except StreamJoinError as failure:
        sys.exit(f"java: {failure}")
