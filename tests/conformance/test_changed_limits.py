"""Limits of a job whose units come and go are changed at a start, and it comes inside of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin.errors import InputError
from streamjoin.operators.biclique.scaling import UnitPlan
from streamjoin.operators.ring.planning import RingPlan
from streamjoin.spec.joinfile import of_content
from streamjoin.spec.prepare import Bound, bind
from streamjoin.state.store import StateStore

from .alone import run_alone

ROWS = 12
FIRST = {
    "biclique": {"adaptive": True, "r_units": 2, "s_units": 2, "max_units": 8},
    "ring": {"adaptive": True, "nodes": 2, "max_nodes": 8},
}
AT_ONCE = {"check_every": "0s", "confirmations": 1}
UNITS = {"biclique": "units", "ring": "nodes"}


class LongJob:
    """A job that is started again and again, with more files of each stream each time; its driver is without Spark."""

    def __init__(self, operator: str, folder: Path, **knobs: Any) -> None:
        self.operator = {"name": operator, **FIRST[operator], **AT_ONCE, **knobs}
        self.folder = folder
        self.files = 0
        for name in "ab":
            (folder / name).mkdir()

    def bound(self, changed: Mapping[str, Any]) -> Bound:
        stream = {"source": "parquet", "time": "ts", "time_unit": "ms", "delay": "0s"}
        content = {
            "streams": {name: {**stream, "path": name} for name in "ab"},
            "query": "SELECT ONLINE a.id AS a, b.id AS b FROM a JOIN b ON a.k = b.k WITHIN 1 SECOND",
            "operator": {**self.operator, **changed},
            "results": {"parquet": "out"},
            "run": {"checkpoint": "state", "slots": 2, "files_per_batch": 1},
        }
        return bind(of_content(content, base=self.folder, name="long"))

    def bring(self, files: int) -> None:
        """So many files more of each stream."""
        for number in range(self.files, self.files + files):
            every = range(number * ROWS, (number + 1) * ROWS)
            columns = {"ts": [at * 400 for at in every], "id": every, "k": [at % 3 for at in every]}
            for name in "ab":
                pq.write_table(pa.table({of: pa.array(values) for of, values in columns.items()}),
                               self.folder / name / f"{number:04d}.parquet")  # fmt: skip
        self.files += files

    def run(self, files: int, **changed: Any) -> None:
        """Start with these settings, and do what so many files more bring."""
        self.bring(files)
        run_alone(self.bound(changed))

    def found(self) -> Counter[tuple[int, int]]:
        found: Counter[tuple[int, int]] = Counter()
        for path in (self.folder / "out").glob("*.parquet"):
            rows = pq.read_table(path)
            found.update(zip(rows.column("a").to_pylist(), rows.column("b").to_pylist(), strict=True))
        return found

    def storing(self) -> list[int]:
        """How many units of each stream store, or nodes."""
        version = max(int(path.name) for path in (self.folder / "state" / "offsets" / "commits").glob("[0-9]*")) + 1
        found = StateStore(self.folder / "state" / "state", 0, sync=False).load(0, version).values["units"]
        if self.operator["name"] == "ring":
            return [len(RingPlan.from_json(found).storing)]
        plan = UnitPlan.from_json(found)
        return [sum(map(len, plan.storing(side))) for side in (0, 1)]


@pytest.mark.parametrize("routing", [{"routing": "random"}, {"routing": "hash"}, None])
def test_a_job_goes_on_with_other_limits_and_comes_inside(routing: dict[str, str] | None, tmp_path: Path) -> None:
    operator = "ring" if routing is None else "biclique"
    job, units = LongJob(operator, tmp_path, **(routing or {})), UNITS[operator]
    least, most = f"min_{units}", f"max_{units}"
    job.bring(1)
    for limits in ({least: 3}, {most: 1}):
        with pytest.raises(InputError, match="and the job begins with 2") as wrong:
            job.bound(limits)
        assert wrong.value.field == f"operator.{next(iter(limits))}"
    job.run(2, **{least: 2, most: 2})
    assert set(job.storing()) == {2}
    job.run(8, **{least: 5, most: 6})
    assert all(5 <= count <= 6 for count in job.storing())
    job.run(8, **{least: 3, most: 3})
    assert set(job.storing()) == {3}
    with pytest.raises(InputError, match=f"{least} 4 is above {most} 3"):
        job.bound({least: 4, most: 3})
    times = [at * 400 for at in range(job.files * ROWS)]
    assert job.found() == Counter(
        (a, b)
        for a, at in enumerate(times)
        for b in range(max(a - 3, 0), min(a + 4, len(times)))
        if a % 3 == b % 3 and abs(at - times[b]) <= 1000
    )
