"""What a state in a store costs that is 30 ms away and gives 200 MB/s a connection.

    python -m benchmarks.far_state [--batches N] [--rows N] [--turns N]

The equi join of `equi_large`, with two slots, its state in a folder and in such a store by turns, in one session. What
counts of a run is the median of its batches after the first four. The store is a folder with pauses: a real one on this
machine would use its processors, too.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs
from pyspark.sql import SparkSession

from benchmarks.data import make_equi
from benchmarks.equi import QUERY
from benchmarks.scale import ROOT
from streamjoin.spark.run import run_job
from streamjoin.spark.session import open_session
from streamjoin.spec.joinfile import of_content
from streamjoin.spec.prepare import bind
from streamjoin.state.root import ObjectRoot
from tests.servers.objects import Moods, ObjectHandler

CALL_S = 0.03
BYTES_A_SECOND = 200e6
WARM = 4


class _Far(ObjectHandler):
    """Each call takes a while, and so does what it carries."""

    def open_input_stream(self, path: str) -> pa.PythonFile:
        size = (self.folder / path).stat().st_size
        time.sleep(CALL_S + size / BYTES_A_SECOND)
        return super().open_input_stream(path)

    def carried(self, path: str, size: int) -> None:
        """What a put takes."""
        time.sleep(CALL_S + size / BYTES_A_SECOND)

    def delete_file(self, path: str) -> None:
        time.sleep(CALL_S)
        super().delete_file(path)


@dataclass(frozen=True, slots=True)
class FarRoot(ObjectRoot):
    """Objects in a folder, far away."""

    def filesystem(self) -> tuple[fs.FileSystem, str]:
        """See `ObjectRoot`."""
        return fs.PyFileSystem(_Far(Path("/"), Moods())), self.uri.removeprefix("far:///")


def run(session: SparkSession, bound: Any, folder: Path, *, far: bool) -> tuple[float, dict[str, int]]:
    """Milliseconds of a batch, and what went to the store."""
    job = bound.job(folder / "checkpoint", heartbeat=False)
    if far:
        job = replace(job, states=FarRoot(f"far://{folder}/store", folder / "cache"))
    progress = run_job(session, bound, job, bound.sinks(folder / "checkpoint"), until_end=True)
    return statistics.median(progress.batch_ms[WARM:]), progress.traffic


def main() -> None:
    """Print both rates, turn by turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=14)
    parser.add_argument("--rows", type=int, default=524_288, help="of each stream in a batch")
    parser.add_argument("--turns", type=int, default=2)
    asked = parser.parse_args()
    data = ROOT / "benchmarks" / "data" / f"far-{asked.rows}x{asked.batches}"
    if not data.exists():
        make_equi(
            data, files=asked.batches, rows_per_file=asked.rows, keys=2 * asked.rows, span_ms_per_file=1000, seed=1
        )
    content = {
        "streams": {name: {"source": "parquet", "path": str(data / name), "time": "ts"} for name in "rs"},
        "query": QUERY.format(window_s=4),
        "operator": {"name": "biclique", "routing": "hash"},
        "results": {"discard": True},
        "run": {"slots": 2, "files_per_batch": 1},
    }
    with tempfile.TemporaryDirectory(prefix="far-") as scratch:
        bound = bind(of_content(content, base=Path(scratch), name="far"))
        session = open_session(bound.file)
        try:
            for turn in range(asked.turns):
                found = {}
                for far in (False, True):
                    folder = Path(scratch) / f"{turn}-{far}"
                    found[far], traffic = run(session, bound, folder, far=far)
                    shutil.rmtree(folder)
                rate = {far: 2 * asked.rows / ms * 1000 for far, ms in found.items()}
                print(
                    f"turn {turn}: {rate[False]:,.0f} rows/s in a folder, {rate[True]:,.0f} in the store: "
                    f"{100 * rate[True] / rate[False]:.0f} %; {traffic}",
                    flush=True,
                )
        finally:
            session.stop()


if __name__ == "__main__":
    main()
