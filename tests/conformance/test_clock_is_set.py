"""A wall clock that is set while a job runs, or between two runs: no result is another one, and no row is late by it.

Through a join file, with the real source, tasks, sinks and checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin.failpoints import FailpointError
from streamjoin.spark import source
from tests.failing import failing_at

from .alone import run_alone
from .test_bundles import COLUMNS, Found, bound, rows_in

SECOND, HOUR = 1_000_000, 3_600_000_000
NOON = 1_700_000_000 * SECOND
IDLE_S = 10
LEFT = "SELECT ONLINE a.id AS a, b.id AS b FROM a LEFT JOIN b ON a.k = b.k WITHIN {}"

Times = Mapping[str, Sequence[int]]
HISTORY: list[Times] = [
    {"a": [100, 130], "b": [100, 120]}, {"a": [135]}, {"a": [200, 300]}, {"b": [135, 210]},
    *({"a": [300 + number]} for number in range(4, 20)),
]  # fmt: skip
"""A second after another: b is silent for two seconds, and after its second batch for good."""
STOPPED = 7
"""The job is stopped before this batch."""
STEPS: dict[str, dict[int, int]] = {
    "forward": {2: HOUR},
    "back": {2: -HOUR},
    "ahead at the start": {0: HOUR, 2: -HOUR},
    "there and back": {2: HOUR, 5: -HOUR},
    "back while it is stopped": {STOPPED: -HOUR},
    "forward while it is stopped": {STOPPED: HOUR},
}
"""Before which batches the wall clock is set, and by how much."""


class Clocks:
    """The clocks of a machine whose streams have rows of their own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, steps: Mapping[int, int]) -> None:
        self.folder, self.steps = folder, steps
        self.wall_us, self.steady_us = NOON, 0
        monkeypatch.setattr(source, "_clocks", lambda: (self.wall_us, self.steady_us))
        self.found: dict[int, Found] = {}
        self.brought: set[int] = set()

    def before(self, batch: int) -> bool:
        """A second passes, the clock may be set, and files come; whether there are any."""
        self.found[batch] = rows_in(self.folder / "out")
        if batch == len(HISTORY):
            return False
        self.passes(batch, SECOND)
        if batch not in self.brought:
            self.brought.add(batch)
            for name, times in HISTORY[batch].items():
                rows = [{"ts": ts, "id": ts, "k": ts, "x": 0} for ts in times]
                hidden = self.folder / f"{name}-{batch}"
                pq.write_table(pa.Table.from_pylist(rows, schema=COLUMNS), hidden)
                hidden.rename(self.folder / name / f"{batch:03d}.parquet")
        return True

    def passes(self, batch: int, passed_us: int) -> None:
        self.wall_us += passed_us + self.steps.get(batch, 0)
        self.steady_us += passed_us

    def by_batch(self) -> list[Found]:
        return [self.found[batch + 1] - self.found[batch] for batch in range(len(HISTORY))]


def file_of(folder: Path, time: str, within: str) -> Path:
    text = "streams:\n"
    for name in "ab":
        (folder / name).mkdir(parents=True, exist_ok=True)
        unit = ", time_unit: us" if time == "ts" else ""
        text += (
            f"  {name}: {{source: parquet, path: {name}, time: {time}{unit}, delay: 0us, "
            f"schema: {{ts: int64, id: int64, k: int64, x: int64}}, idle: {IDLE_S}s}}\n"
        )
    text += f"query: {json.dumps(LEFT.format(within))}\nresults: {{parquet: out}}\n"
    path = folder / "job.yaml"
    path.write_text(f"{text}run: {{checkpoint: checkpoint, slots: 2}}\n")
    return path


def run(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    steps: Mapping[int, int],
    *,
    killed: int | None = None,
    time: str = "ts",
    within: str = "20 MICROSECONDS",
) -> tuple[list[Found], int]:
    """What the query gives, batch by batch, and how many rows were late.

    Args:
        killed: before this batch is committed; it is done again by the next run.
    """
    job = bound(file_of(folder, time, within))
    clocks = Clocks(folder, monkeypatch, steps)
    if killed is not None:
        with failing_at("batch.before_commit", killed + 1), pytest.raises(FailpointError):
            run_alone(job, clocks.before)
        clocks.passes(-1, HOUR)
    runs = [run_alone(job, lambda batch: batch < STOPPED and clocks.before(batch))]
    clocks.passes(-1, HOUR)
    runs.append(run_alone(job, clocks.before))
    return clocks.by_batch(), sum(sum(one.progress.late) for one in runs)


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("killed", [None, 3])
def test_a_step_changes_no_result(
    steps: str, killed: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = run(tmp_path / "stepped", monkeypatch, STEPS[steps], killed=killed)
    assert given == run(tmp_path / "steady", monkeypatch, {}, killed=killed)
    found, late = given
    assert late == 0 and found[3][135, 135] == 1
    # A batch after b has been silent for more than its idle, without the time between two runs.
    runs = 1 if killed is None else 2
    assert [batch for batch, rows in enumerate(found) if (200, None) in rows] == [3 + IDLE_S + 2 + runs]


@pytest.mark.parametrize("steps", STEPS)
def test_rows_that_are_stamped_as_they_arrive_are_never_late(
    steps: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, late = run(tmp_path, monkeypatch, STEPS[steps], time="arrival", within="3 SECONDS")
    assert late == 0
    matched = {b for batch in found for _, b in batch if b is not None}
    # 135 comes two seconds after its partner, between which the clock is set forward in two of the cases.
    assert matched == ({100} if STEPS[steps].get(2) == HOUR else {100, 135})
