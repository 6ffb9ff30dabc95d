"""SplitJoin's shares: each tuple is stored once, in turn, whatever is dropped before it and however batches are cut."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.engine.routing import Turn
from streamjoin.operators.splitjoin import SplitJoin
from streamjoin.plan.window import R, S
from streamjoin.query import plan_query
from streamjoin.state.store import StateStore, read_manifests

from .check import check, pairs_of, plan
from .histories import History, history
from .local import LocalRun


def shares(folder: Path, side: int) -> list[list[int]]:
    """Ids of the tuples of a side that each core stores."""
    store = StateStore(folder, sync=False)
    return [
        sorted(
            number for info in state.tuples(side) for number in store.open_segment(core, info).column("id").to_pylist()
        )
        for core, state in read_manifests(folder)
    ]


def run(given: History, operator: SplitJoin, folder: Path, batches: int = 5, pieces: int = 2) -> LocalRun:
    """A join that keeps everything."""
    job = LocalRun(plan(given, "band", "full history"), operator, folder, slots=2)
    list(job.run(given.cuts(batches, pieces)))
    return job


@pytest.mark.parametrize(("cores", "turn_tuples"), [(1, 1), (2, 1), (4, 1), (3, 5), (7, 2)])
def test_cores_store_in_turn(cores: int, turn_tuples: int, tmp_path: Path) -> None:
    given = history(3, r=61, s=50)
    run(given, SplitJoin(cores, turn_tuples), tmp_path)
    for side, count in ((R, 61), (S, 50)):
        wanted = [[number for number in range(count) if number // turn_tuples % cores == core] for core in range(cores)]
        assert shares(tmp_path, side) == wanted


def test_turns_count_each_stream_apart_and_only_what_arrives(tmp_path: Path) -> None:
    """With one counter for both streams, or one that counts dropped tuples, half of the cores would store nothing."""
    given = history(5, r=80, s=80)
    even = plan_query(
        "SELECT ONLINE r.id AS r_id, s.id AS s_id FROM r, s WHERE r.x > s.x AND r.id % 2 = 0",
        {"r": given.schema("r"), "s": given.schema("s")},
    )
    list(LocalRun(even, SplitJoin(2), tmp_path, 2).run(given.cuts(7, 2)))
    for side, count in ((R, 40), (S, 80)):
        sizes = [len(share) for share in shares(tmp_path, side)]
        assert sum(sizes) == count and max(sizes) - min(sizes) <= 1


def test_a_tuple_reaches_every_core_and_a_block_each_slot_once(tmp_path: Path) -> None:
    given = history(7, r=40, s=30)
    job = run(given, SplitJoin(4), tmp_path, batches=1, pieces=1)
    (reports,) = job.reports
    assert [sum(report.received.values()) for report in reports] == [70] * 4
    assert sum(sum(report.stored_rows) for report in reports) == 70
    one = run(given, SplitJoin(2), tmp_path / "two", batches=1, pieces=1)
    # Four cores in two slots cost no more to send than two: bytes are slots x input.
    assert job.counts["sent_bytes"] == one.counts["sent_bytes"]


def test_a_nested_loop_compares_each_pair_once_over_all_cores(tmp_path: Path) -> None:
    given = history(9, r=40, s=30)
    for cores in (1, 3):
        scan = plan(given, "band", "full history", index="scan")
        job = LocalRun(scan, SplitJoin(cores), tmp_path / str(cores), slots=2)
        list(job.run(given.cuts(4)))
        assert sum(report.comparisons for batch in job.reports for report in batch) == 40 * 30


@pytest.mark.parametrize(("cores", "window"), [(4, "7 rows"), (3, "7 rows"), (7, "1 row")])
def test_windows_that_cores_do_not_divide_are_exact(cores: int, window: str) -> None:
    """Rings of a k-th of the window each would keep too many tuples."""
    for turn_tuples in (1, 5):
        check(SplitJoin(cores, turn_tuples), history(11, r=90, s=70), "inequality", window, batches=7, pieces=3)


def test_a_wrong_turn_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Turn.takes

    def takes(self: Turn, ranks: np.ndarray) -> np.ndarray:
        return real(self, ranks - ranks[0]) if ranks.size else real(self, ranks)  # counts from each batch's begin

    monkeypatch.setattr(Turn, "takes", takes)
    given = history(3, r=61, s=50)
    run(given, SplitJoin(4), tmp_path, batches=7)
    sizes = [len(share) for share in shares(tmp_path, R)]
    assert max(sizes) - min(sizes) > 1


def test_a_core_that_misses_its_turn_loses_exactly_its_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = history(13, r=60, s=60)
    whole = LocalRun(plan(given, "band", "full history"), SplitJoin(3), tmp_path / "whole", 2)
    every = Counter(pairs_of(list(whole.run(given.cuts(4)))))
    real = Turn.takes

    def takes(self: Turn, ranks: np.ndarray) -> np.ndarray:
        return real(self, ranks)[:0] if self.position == 1 else real(self, ranks)

    monkeypatch.setattr(Turn, "takes", takes)
    broken = LocalRun(plan(given, "band", "full history"), SplitJoin(3), tmp_path / "broken", 2)
    rows: list[pa.RecordBatch] = list(broken.run(given.cuts(4)))
    missing = every - Counter(pairs_of(rows))
    batch_of = {number: number * 4 // 60 for number in range(60)}
    for r, s in missing:
        older = r if batch_of[r] <= batch_of[s] else s  # inside a batch R comes before S
        assert older % 3 == 1
    assert missing
