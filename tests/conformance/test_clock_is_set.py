"""A wall clock that is set while a job runs, or between two runs: no result is another one, and no row is late by it.

Through a join file, with the real source, tasks, sinks and checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin.failpoints import FailpointError
from streamjoin.results.reader import Reader
from streamjoin.results.stores.sqlite import SqliteStore
from streamjoin.spark import source
from tests.failing import failing_at

from .alone import SparkLog, run_alone
from .changes import Asked, check_table, moment_of, replayed
from .test_bundles import COLUMNS, Found, bound, rows_in

SECOND, HOUR = 1_000_000, 3_600_000_000
NOON = 1_700_000_000 * SECOND
IDLE_S = 10
LEFT = "SELECT ONLINE a.id AS a, b.id AS b FROM a LEFT JOIN b ON a.k = b.k WITHIN {}"
GROUPS = (
    "SELECT ONLINE a.x AS x, COUNT(*) AS n, COUNT(b.id) AS m FROM a LEFT JOIN b ON a.k = b.k WITHIN 20 MICROSECONDS "
    "GROUP BY a.x EMIT EVERY 10 MICROSECONDS"
)

Times = Mapping[str, Sequence[int]]
HISTORY: list[Times] = [
    {"a": [100, 130], "b": [100, 120]}, {"a": [135]}, {"a": [200, 300]}, {"b": [135, 210]},
    *({"a": [300 + number]} for number in range(4, 20)),
]  # fmt: skip
"""A second after another: b is silent for two seconds, and after its second batch for good."""
BOTH: list[Times] = [
    {"a": [number], "b": [100 * (number + place) for place in range(1 + number * number % 7)]}
    for number in range(len(HISTORY))
]
"""No stream is silent, and groups change all the time."""
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

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, steps: Mapping[int, int], history: list[Times] = HISTORY
    ) -> None:
        self.folder, self.steps, self.history = folder, steps, history
        self.wall_us, self.steady_us = NOON, 0
        monkeypatch.setattr(source, "_clocks", lambda: (self.wall_us, self.steady_us))
        self.found: dict[int, Found] = {}
        self.looked: dict[int, Any] = {}
        self.look: Callable[[], Any] = lambda: None
        self.begun_us: dict[int, int] = {}
        self.brought: set[int] = set()

    def before(self, batch: int) -> bool:
        """A second passes, the clock may be set, and files come; whether there are any."""
        self.found[batch], self.looked[batch] = rows_in(self.folder / "out"), self.look()
        if batch == len(self.history):
            return False
        self.passes(batch, SECOND)
        self.begun_us[batch] = self.steady_us
        if batch not in self.brought:
            self.brought.add(batch)
            for name, times in self.history[batch].items():
                rows = [{"ts": ts, "id": ts, "k": ts, "x": 0} for ts in times]
                hidden = self.folder / f"{name}-{batch}"
                pq.write_table(pa.Table.from_pylist(rows, schema=COLUMNS), hidden)
                hidden.rename(self.folder / name / f"{batch:03d}.parquet")
        return True

    def passes(self, batch: int, passed_us: int) -> None:
        self.wall_us += passed_us + self.steps.get(batch, 0)
        self.steady_us += passed_us

    def by_batch(self) -> list[Found]:
        return [self.found[batch + 1] - self.found[batch] for batch in range(len(self.history))]


def file_of(folder: Path, time: str, query: str, results: str = "parquet: out") -> Path:
    text = "streams:\n"
    for name in "ab":
        (folder / name).mkdir(parents=True, exist_ok=True)
        unit = ", time_unit: us" if time == "ts" else ""
        text += (
            f"  {name}: {{source: parquet, path: {name}, time: {time}{unit}, delay: 0us, "
            f"schema: {{ts: int64, id: int64, k: int64, x: int64}}, idle: {IDLE_S}s}}\n"
        )
    text += f"query: {json.dumps(query)}\nresults: {{{results}}}\n"
    path = folder / "job.yaml"
    path.write_text(f"{text}run: {{checkpoint: checkpoint, slots: 2}}\n")
    return path


def stamp_us(folder: Path) -> int:
    """What the rows of the last batch were stamped with, where they have no time of their own."""
    offset = SparkLog(folder / "checkpoint" / "offsets")
    return int(offset.offset(offset.last("offsets")[0])["arrival_us"]) if offset.last("offsets")[1] else 0


def play(file: Path, clocks: Clocks, killed: int | None = None) -> int:
    """Two runs with an hour in between; how many rows were late.

    Args:
        killed: before this batch is committed; it is done again by the next run.
    """
    job = bound(file)
    if killed is not None:
        with failing_at("batch.before_commit", killed + 1), pytest.raises(FailpointError):
            run_alone(job, clocks.before)
        clocks.passes(-1, HOUR)
    runs = [run_alone(job, lambda batch: batch < STOPPED and clocks.before(batch))]
    clocks.passes(-1, HOUR)
    runs.append(run_alone(job, clocks.before))
    return sum(sum(one.progress.late) for one in runs)


def run(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    steps: Mapping[int, int],
    *,
    killed: int | None = None,
    time: str = "ts",
    query: str = LEFT.format("20 MICROSECONDS"),
) -> tuple[list[Found], int]:
    """What the query gives, batch by batch, and how many rows were late."""
    clocks = Clocks(folder, monkeypatch, steps)
    late = play(file_of(folder, time, query), clocks, killed)
    return clocks.by_batch(), late


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
def test_a_step_changes_no_group(steps: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = run(tmp_path / "stepped", monkeypatch, STEPS[steps], query=GROUPS)
    assert given == run(tmp_path / "steady", monkeypatch, {}, query=GROUPS)
    found, late = given
    assert late == 0 and {row[3] for batch in found for row in batch} == {"upsert", "delete"}


@pytest.mark.parametrize("steps", STEPS)
def test_rows_that_are_stamped_as_they_arrive_are_never_late(
    steps: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, late = run(tmp_path, monkeypatch, STEPS[steps], time="arrival", query=LEFT.format("3 SECONDS"))
    assert late == 0
    matched = {b for batch in found for _, b in batch if b is not None}
    # 135 comes two seconds after its partner, between which the clock is set forward in two of the cases.
    assert matched == ({100} if STEPS[steps].get(2) == HOUR else {100, 135})


@pytest.mark.parametrize(("steps", "stays"), [(steps, turn % 2 == 0) for turn, steps in enumerate(STEPS)])
def test_groups_of_rows_that_are_stamped_as_they_arrive_are_exact_at_every_moment_that_is_given(
    steps: str, stays: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every row of a meets every one of b that came within four seconds of it, as stamps say."""
    query = "SELECT ONLINE a.x AS x, COUNT(*) AS n FROM a, b WHERE a.x = b.x WITHIN 4 SECONDS GROUP BY a.x "
    query += "CUMULATIVE EMIT EVERY 2 SECONDS" if stays else "EMIT EVERY 2 SECONDS"
    clocks = Clocks(tmp_path, monkeypatch, STEPS[steps], BOTH)
    clocks.look = lambda: stamp_us(tmp_path)
    assert play(file_of(tmp_path, "arrival", query), clocks) == 0
    stamps = [clocks.looked[batch + 1] for batch in range(len(BOTH))]
    assert all(before < after for before, after in pairwise(stamps))
    a, b = (
        [{"ts": stamp} for stamp, brought in zip(stamps, BOTH, strict=True) for _ in brought[name]] for name in "ab"
    )
    reach_us = 4 * SECOND
    pairs = [(max(r["ts"], s["ts"]), (r, s)) for r in a for s in b if abs(r["ts"] - s["ts"]) <= reach_us]
    asked = Asked(
        2 * SECOND, lambda pair: 0, lambda of: [len(of)],
        None if stays else lambda pair: min(part["ts"] for part in pair) + reach_us,
    )  # fmt: skip
    table: dict[Any, list[Any]] = {}
    given: list[int] = []
    for rows, stamp in zip(clocks.by_batch(), stamps, strict=True):
        named = [dict(zip(("x", "n", "op", "emit_time"), row, strict=True)) for row in rows]
        given += [moment_of(row) for row in named]
        # The last multiple below the watermark, as no stream is silent.
        moment = (stamp - 1) // (2 * SECOND) * 2 * SECOND
        assert replayed(table, named, 1, lambda one, other: one == other) in (None, moment)
        check_table(table, asked.at(pairs, moment), lambda one, other: one == other)
    assert len(given) > 5 and given == sorted(set(given))


RETAIN_S = 4


@pytest.mark.parametrize(("steps", "killed"), [(steps, (None, 5)[turn % 2]) for turn, steps in enumerate(STEPS)])
def test_results_are_kept_for_as_long_as_stamps_say_and_for_no_less_time_after_a_step_back(
    steps: str, killed: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clocks, store = Clocks(tmp_path, monkeypatch, STEPS[steps]), SqliteStore(tmp_path / "kept.db")

    def look() -> tuple[int, list[int]]:
        """The stamp of the last batch, and when those snapshots closed that are there."""
        reader = Reader(store, "job")
        floor = reader.refresh().floor
        return stamp_us(tmp_path), [one.closed_us for one in reader.snapshots(after=floor)]

    clocks.look = look
    query = "SELECT ONLINE a.id AS a, b.id AS b FROM a, b WHERE a.x = b.x"
    results = f"store: sqlite, path: kept.db, retain: {RETAIN_S}s, snapshot: {{batches: 1}}"
    play(file_of(tmp_path, "ts", query, results), clocks, killed)
    closed_in: dict[int, int] = {}
    for batch in range(len(HISTORY)):
        stamp, there = clocks.looked[batch + 1]
        closed_in |= {at: batch for at in there if at not in closed_in}
        assert there == [at for at in closed_in if at >= stamp - RETAIN_S * SECOND], batch
        if all(step < 0 for step in STEPS[steps].values()):
            ages_us = {at: clocks.begun_us[batch] - clocks.begun_us[of] for at, of in closed_in.items()}
            assert {at for at, age_us in ages_us.items() if age_us <= RETAIN_S * SECOND} <= set(there), batch
    assert len(closed_in) == len(HISTORY) - 1 > 3 * len(there)
