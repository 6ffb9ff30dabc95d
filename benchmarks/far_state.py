"""What a state in a store costs that is 30 ms away and gives 200 MB/s a connection.

    python -m benchmarks.far_state [--batches N] [--rows N] [--turns N] [--out F.json]

The equi join of `equi_large`, with two slots, its state in a folder and in such a store by turns, in one session. What
counts of a run is the median of its batches once a window is full, after the first four. The part `cluster` of
`python -m benchmarks` runs this, too. The store is a folder with pauses: a real one on this
machine would use its processors, too.
"""

from __future__ import annotations

import argparse
import json
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
WINDOW_S = WARM = 4
"""A window is as many batches: each is a second long."""


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


def run(session: SparkSession, bound: Any, folder: Path, *, far: bool) -> dict[str, Any]:
    """`ms` of a batch, `results`, and the `traffic` with the store."""
    job = bound.job(folder / "checkpoint", heartbeat=False)
    if far:
        job = replace(job, states=FarRoot(f"far://{folder}/store", folder / "cache"))
    progress = run_job(session, bound, job, bound.sinks(folder / "checkpoint"), until_end=True)
    ms = statistics.median(progress.batch_ms[WARM:])
    return {"ms": ms, "results": progress.results, "traffic": progress.traffic, "batches": progress.batches}


def make(data: Path, batches: int, rows: int) -> Path:
    """The streams, unless they are there: files of a second with so many rows, of as many keys as a second brings."""
    folder = data / f"far-{rows}x{batches}"
    make_equi(folder, files=batches, rows_per_file=rows, keys=2 * rows, span_ms_per_file=1000, seed=1)
    return folder


def main() -> None:
    """Print both rates, turn by turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=14)
    parser.add_argument("--rows", type=int, default=524_288, help="of each stream in a batch")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--data", type=Path, default=ROOT / "benchmarks" / "data", help="where inputs are kept")
    parser.add_argument("--out", type=Path, help="takes the turns as JSON")
    asked = parser.parse_args()
    data = make(asked.data, asked.batches, asked.rows)
    content = {
        "streams": {name: {"source": "parquet", "path": str(data / name), "time": "ts"} for name in "rs"},
        "query": QUERY.format(window_s=WINDOW_S),
        "operator": {"name": "biclique", "routing": "hash"},
        "results": {"discard": True},
        "run": {"slots": 2, "files_per_batch": 1},
    }
    turns = []
    with tempfile.TemporaryDirectory(prefix="far-") as scratch:
        bound = bind(of_content(content, base=Path(scratch), name="far"))
        session = open_session(bound.file)
        try:
            for turn in range(asked.turns):
                found = {}
                for far in (False, True):
                    folder = Path(scratch) / f"{turn}-{far}"
                    found[far] = run(session, bound, folder, far=far)
                    shutil.rmtree(folder)
                rate = {far: 2 * asked.rows / one["ms"] * 1000 for far, one in found.items()}
                turns.append({"rate": rate[True], "folder_rate": rate[False], **found[True],
                              "folder_results": found[False]["results"]})  # fmt: skip
                print(
                    f"turn {turn}: {rate[False]:,.0f} rows/s in a folder, {rate[True]:,.0f} in the store: "
                    f"{100 * rate[True] / rate[False]:.0f} %; {found[True]['traffic']}",
                    flush=True,
                )
        finally:
            session.stop()
    if asked.out:
        asked.out.write_text(json.dumps(turns, indent=1))


if __name__ == "__main__":
    main()
