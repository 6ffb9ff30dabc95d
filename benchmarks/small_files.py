"""How long a join of many small files takes, from the start of the command to its end.

python -m benchmarks.small_files                          10,000 files of 100 rows for each of two streams, as Parquet
python -m benchmarks.small_files --format jsonl           the same as JSON lines
python -m benchmarks.small_files --files 300 --files-per-batch 1

It prints what it measured; docs/join-file.md has the figures of one machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 100
SPAN_US = 1_000
"""Event time between two rows of a stream."""
KEYS = 1_000
WINDOW_S = 10
LIMIT_S = 3_600


def main() -> int:
    """Measure and print; exit status 1 where the join fails."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.small_files", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--files", type=int, default=10_000, help="files of each stream")
    parser.add_argument("--format", choices=("parquet", "jsonl", "csv"), default="parquet")
    parser.add_argument("--files-per-batch", type=int, help="run.files_per_batch of the join file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="small-files-") as work:
        folder = Path(work)
        for seed, name in enumerate("rs"):
            write(folder / name, options.files, options.format, seed)
        begun = time.monotonic()
        command = [sys.executable, "-m", "streamjoin", "run", "join.yaml", "--until-end", "--quiet"]
        (folder / "join.yaml").write_text(json.dumps(join(options.format, options.files_per_batch)))
        done = subprocess.run([*command, "--report", "report.json"], cwd=folder, timeout=LIMIT_S, check=False)
        if done.returncode:
            return 1
        report = json.loads((folder / "report.json").read_text())
        print(
            f"{2 * options.files:,} files of {ROWS} rows as {options.format}: {time.monotonic() - begun:.1f} s in all, "
            f"{report['seconds']:.1f} s in {report['batches']} batches, {report['results']:,} results"
        )
    return 0


def join(format: str, files_per_batch: int | None) -> dict[str, object]:
    """The content of the join file."""
    run = {"checkpoint": "state", **({} if files_per_batch is None else {"files_per_batch": files_per_batch})}
    return {
        "streams": {name: {"source": format, "path": name, "time": "ts"} for name in "rs"},
        "query": f"SELECT ONLINE r.id AS r, s.id AS s FROM r, s WHERE r.k = s.k WITHIN {WINDOW_S} SECONDS",
        "results": {"discard": True},
        "run": run,
    }


def write(folder: Path, files: int, format: str, seed: int) -> None:
    """One stream."""
    folder.mkdir()
    drawn = np.random.default_rng(seed)
    for number in range(files):
        ids = np.arange(number * ROWS, (number + 1) * ROWS)
        times = pa.array(ids * SPAN_US).cast(pa.timestamp("us", "UTC"))
        rows = pa.table({"id": ids, "k": drawn.integers(0, KEYS, ROWS), "ts": times})
        path = folder / f"{number:06d}.{format}"
        if format == "parquet":
            pq.write_table(rows, path)
            continue
        texts = [{**row, "ts": row["ts"].isoformat()} for row in rows.to_pylist()]
        lines = [json.dumps(row) for row in texts]
        if format == "csv":
            lines = ["id,k,ts", *(",".join(map(str, row.values())) for row in texts)]
        path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
