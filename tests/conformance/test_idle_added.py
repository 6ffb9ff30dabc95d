"""`idle` that a start adds to a job of three streams: every stage goes on as if it had been there all along."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin.engine.loop import Loop
from streamjoin.spark import source

from .alone import run_alone
from .loops import loop_of
from .test_bundles import COLUMNS, Found, bound, rows_in
from .test_idle_streams import IDLE_US, Step, brought, planned

SECOND, IDLE_S = 1_000_000, 10
BEGUN_US = 1_700_000_000 * SECOND
WAITS = (
    "SELECT ONLINE a.id AS a, b.id AS b, c.id AS c FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON a.k = c.k "
    "WITHIN 20 MICROSECONDS"
)


def rows_of(*times: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"ts": ts, "id": ts, "k": ts, "x": 0} for ts in times], schema=COLUMNS)


def file_of(folder: Path, idle_s: Mapping[str, int]) -> Path:
    text = "streams:\n"
    for name in "abc":
        idle = f", idle: {idle_s[name]}s" if name in idle_s else ""
        text += (
            f"  {name}: {{source: parquet, path: {name}, time: ts, time_unit: us, delay: 0us, "
            f"schema: {{ts: int64, id: int64, k: int64, x: int64}}{idle}}}\n"
        )
        (folder / name).mkdir(exist_ok=True)
    path = folder / "job.yaml"
    text += f"query: {json.dumps(WAITS)}\nresults: {{parquet: out}}\n"
    path.write_text(f"{text}run: {{checkpoint: checkpoint, slots: 2}}\n")
    return path


def test_a_stream_that_gets_idle_is_so_though_another_sends_nothing_after_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """b is far ahead and has nothing more to bring; rows of a wait for c alone."""
    now = [BEGUN_US]
    monkeypatch.setattr(source, "_clocks", lambda: (now[0], now[0]))

    def bring(number: int, times: Mapping[str, list[int]]) -> None:
        for name, mine in times.items():
            hidden = tmp_path / f"{name}-{number}"
            pq.write_table(pa.Table.from_batches([rows_of(*mine)]), hidden)
            hidden.rename(tmp_path / name / f"{number:03d}.parquet")

    def first(batch: int) -> bool:
        if not batch:
            bring(batch, {"a": [100, 120], "b": [100, 900], "c": [100]})
        return batch < 1

    def second(batch: int) -> bool:
        now[0] = BEGUN_US + (3600 + batch) * SECOND
        bring(batch, {"a": [200 + batch]})
        return batch < IDLE_S + 5

    run_alone(bound(file_of(tmp_path, {})), first)
    assert not rows_in(tmp_path / "out") - Found({(100, 100, 100): 1})
    run_alone(bound(file_of(tmp_path, {"c": IDLE_S})), second)
    assert rows_in(tmp_path / "out")[120, None, None] == 1


def marks(loop: Loop) -> list[tuple[int | None, ...]]:
    return [report.marks_us for report in loop.reports]


@pytest.mark.parametrize("operator", ["biclique by hash", "handshake"])
@pytest.mark.parametrize("streams", [3, 4])
@pytest.mark.parametrize("silent", [0, 1, 2])
def test_watermarks_are_those_of_a_job_that_had_idle_all_along(
    operator: str, streams: int, silent: int, tmp_path: Path
) -> None:
    """One stream is silent from the start on, and the one after it brings its last rows before it."""
    idle_us = [IDLE_US if stream == silent else None for stream in range(streams)]
    always = loop_of(planned(streams, idle_us), operator, tmp_path / "always")
    added = loop_of(planned(streams, [None] * streams), operator, tmp_path / "added")
    found: list[list[list[tuple[int, ...]]]] = [[], []]
    last = (silent + 1) % streams
    for number in range(14):
        begins = number in (0, 4)
        rows = [{"ts": 10 * number + at, "id": 10 * number + at, "k": at % 3, "x": 0} for at in range(10)]
        mine: list[list[dict[str, int]] | None] = [list(rows) for _ in range(streams)]
        if number >= 3:
            mine[silent] = None
            mine[last] = [{**rows[0], "ts": 1000}] if number == 3 else None
        step = Step((number + 3600 * (number >= 4)) * SECOND, mine, begins)
        if number == 4:
            again = loop_of(planned(streams, idle_us), operator, tmp_path / "added")
            again.version, again.positions = added.version, added.positions
            added = again
        for place, loop in enumerate((always, added)):
            given = [tuple(row.values()) for _, part in loop.batch(brought(step)) for row in part.to_pylist()]
            found[place].append(sorted(given))
            loop.commit(brought(step))
        assert marks(always) == marks(added)
    assert found[0] == found[1] and any(found[0])
