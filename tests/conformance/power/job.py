"""A job whose writes are recorded, and what it is to give.

Run as a process: `python -m tests.conformance.power.job FOLDER KIND`.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin import failpoints
from streamjoin.intake.rejected import read_head
from streamjoin.results.answer import ask
from streamjoin.results.question import Question
from streamjoin.results.reader import Reader
from streamjoin.spec.job import dead_letters_folder
from streamjoin.spec.joinfile import parse
from streamjoin.spec.outputs import store_job, store_spec
from streamjoin.spec.prepare import bind
from tests import duck
from tests.conformance.alone import run_alone

FILES = 6
ROWS = 30
JOINS = "SELECT ONLINE r.id AS r_id, s.id AS s_id FROM r, s WHERE r.k = s.k WITHIN 40 SECONDS"
NEAR = "SELECT ONLINE r.id AS r_id, s.id AS s_id FROM r, s WHERE r.k = s.k WITHIN 5 SECONDS"
TEXT = """\
streams:
  r: {{source: parquet, path: {input}/r, time: ts, delay: 60s}}
  s: {{source: parquet, path: {input}/s, time: ts, delay: 60s}}
queries:
  files: {{query: '{joins}', results: {{parquet: out/files}}}}
  lines: {{query: '{near}', results: {{jsonl: out/lines.jsonl}}}}
  store: {{query: '{joins}', results: {{store: sqlite, path: out/results.db}}}}
operator: {{{operator}}}
run: {{checkpoint: checkpoint, files_per_batch: 1, slots: 2}}
"""

OPERATORS = {
    "biclique": ("name: biclique, routing: hash, r_units: 2, s_units: 2",) * 2,
    "splitjoin that grows": ("name: splitjoin, cores: 2", "name: splitjoin, cores: 3"),
}
"""By the name of a job, its operator in the first run and in later ones."""
DIES = {0: ("unit.after_manifest", 9), 1: ("batch.mid_commit", 5)}
"""By run, the place and the visit at which it ends by a failure; what is on disk then is what a kill leaves."""


def text_of(folder: Path, kind: str, *, first: bool = False) -> str:
    """The join file."""
    return TEXT.format(input=folder / "input", joins=JOINS, near=NEAR, operator=OPERATORS[kind][not first])


def write_input(folder: Path) -> None:
    """The files of both streams, beside the folders that a job reads; each has a row without a time."""
    for side, stream in enumerate("rs"):
        (folder / "input" / stream).mkdir(parents=True)
        (folder / "later" / stream).mkdir(parents=True)
        for number in range(FILES):
            chance = np.random.default_rng((side, number))
            times = (1_700_000_000 + 10 * number + chance.uniform(0, 10, ROWS)) * 1e6
            pq.write_table(
                pa.table(
                    {
                        "id": np.arange(ROWS) + ROWS * number,
                        "k": chance.integers(0, 12, ROWS),
                        "ts": pa.array(times.astype(np.int64), pa.timestamp("us"), mask=np.arange(ROWS) == number),
                    }
                ),
                # Names fall as times rise: who forgot in which order files came, and lists them again, has another one.
                folder / "later" / stream / f"{FILES - number}.parquet",
            )
    arrive(folder)


def arrive(folder: Path, files: int = 1) -> None:
    """So many files of each stream come."""
    for stream in "rs":
        for path in sorted((folder / "later" / stream).iterdir(), reverse=True)[:files]:
            shutil.move(path, folder / "input" / stream / path.name)


def wanted(folder: Path) -> dict[str, Counter[Any]]:
    """What each query gives in the end, and how many rows are put aside."""
    r, s = (f"'{folder}/*/{stream}/*.parquet'" for stream in "rs")
    found = {}
    for name, seconds in (("files", 40), ("lines", 5), ("store", 40)):
        rows = duck.rows(
            f"SELECT r.id, s.id FROM {r} r, {s} s "
            f"WHERE r.k = s.k AND abs(epoch_us(r.ts) - epoch_us(s.ts)) <= {seconds}e6"
        )
        found[name] = Counter(rows)
        assert len(rows) > 20
    found["aside"] = Counter({"r": FILES, "s": FILES})
    return found


def results(folder: Path, text: str) -> dict[str, Counter[Any]]:
    """What there is of it in the job's folder."""
    out, files, lines = folder / "out", list((folder / "out" / "files").glob("*.parquet")), folder / "out/lines.jsonl"
    printed = lines.read_text().splitlines() if lines.exists() else []
    head = read_head(dead_letters_folder(folder / "checkpoint"))
    return {
        "files": Counter(duck.rows(f"SELECT r_id, s_id FROM '{out}/files/*.parquet'") if files else ()),
        "lines": Counter((row["r_id"], row["s_id"]) for row in map(json.loads, printed)),
        "store": Counter(_stored(folder, text)),
        "aside": Counter({name: sum(by_reason.values()) for name, by_reason in head.kept.items()}),
    }


def _stored(folder: Path, text: str) -> list[tuple[int, int]]:
    if not (folder / "out" / "results.db").exists():
        return []
    kept = parse(text, base=folder).of("store")
    rows = ask(Reader(store_spec(kept).open(), store_job(kept)), Question())
    return [(row["r_id"], row["s_id"]) for part in rows for row in part.to_pylist()]


def run(folder: Path, text: str, before: Callable[[int], bool] | None = None) -> None:
    """Run the job in `folder`."""
    run_alone(bind(parse(text, base=folder)), before)


def main(folder: Path, kind: str) -> None:
    """Three runs, of which two die in the middle of a batch; files come while they work."""
    (folder / "job").mkdir()
    arrived = 1

    def before(batch: int) -> bool:
        nonlocal arrived
        if batch >= arrived:
            arrive(folder)
            arrived += 1
        return batch < FILES

    for number in range(3):
        with pytest.MonkeyPatch.context() as patch:
            if number in DIES:
                name, visit = DIES[number]
                patch.setattr(failpoints, "_points", {name: ("raise", visit)})
                patch.setattr(failpoints, "_reached", {})
            try:
                run(folder / "job", text_of(folder, kind, first=number == 0), before)
                assert number not in DIES, "it was to die"
            except failpoints.FailpointError:
                assert number in DIES


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
