"""Whoever follows a job whose results have an order gets each snapshot's rows in it, however blocks lie."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from result_jobs import SCHEMA, Job, ids, rows

from streamjoin.engine import arranging
from streamjoin.engine.arranging import arranged, in_order, places
from streamjoin.flow import portions
from streamjoin.plan.ordering import NEWER, OLDER, Ordering
from streamjoin.plan.window import R, S
from streamjoin.results.policy import EpochPolicy
from streamjoin.results.reader import Reader
from streamjoin.results.stores.memory import MemoryStore

ORDERED = pa.schema([*SCHEMA, (NEWER, pa.int64()), (OLDER, pa.int64())])


def numbered(n: int, seed: int) -> pa.RecordBatch:
    """Rows with sequence numbers at random, many newer ones alike."""
    rng = np.random.default_rng(seed)
    numbers = [pa.array(rng.integers(0, n // 4, n) + seed * n), pa.array(rng.permutation(n))]
    return pa.RecordBatch.from_arrays([*rows(n, seed).columns, *numbers], schema=ORDERED)


@pytest.mark.parametrize("together", [1 << 30, 20_000, 1])
def test_results_of_long_texts_are_brought_into_order_in_portions(
    together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arranging, "ROWS_A_BATCH", 100)
    monkeypatch.setattr(portions, "BYTES_A_BATCH", 500)
    monkeypatch.setattr(portions, "BYTES_TOGETHER", together)
    given = [numbered(300, seed) for seed in range(4)]
    texts = [pa.array(["x" * (number * 7 % 90) for number in range(seed, seed + 300)]) for seed in range(4)]
    given = [rows.append_column("text", values) for rows, values in zip(given, texts, strict=True)]
    wanted = pa.Table.from_batches(given).sort_by([(NEWER, "ascending"), (OLDER, "ascending")])
    found = list(in_order(Ordering.TOTAL, given))
    assert pa.Table.from_batches(found).to_pylist() == wanted.to_pylist()
    assert max(sum(map(len, rows.column("text").to_pylist())) for rows in found) <= 500


def test_a_snapshot_is_read_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arranging, "ROWS_A_BATCH", 100)
    store = MemoryStore()
    job = Job(store, EpochPolicy(span_us=None, batches=2, whole_batches=True), schema=ORDERED).start()
    given = [numbered(700, seed) for seed in range(4)]
    for number, batch in enumerate(given):
        job.batch(number, batch)
    job.ledger.finish()
    reader = Reader(store, "j")
    reader.refresh()
    found = [batch for snapshot in reader.snapshots() for batch in reader.snapshot_rows(snapshot)]
    assert len(reader.snapshots()) == 2 and ids(found) == ids(given)
    pairs = [
        pair
        for batch in found
        for pair in zip(*(batch.column(name).to_pylist() for name in (NEWER, OLDER)), strict=True)
    ]
    assert pairs == sorted(pairs)
    lying = [batch for snapshot in reader.snapshots() for _, batch in reader.rows(snapshot.blocks)]
    assert [batch.column(NEWER)[0] for batch in lying] != sorted(batch.column(NEWER)[0].as_py() for batch in lying)


def test_outer_order_leaves_the_results_of_one_tuple_as_they_are() -> None:
    newer, older = np.array([5, 3, 5, 3, 4]), np.array([2, 2, 1, 1, 0])
    assert arranged(Ordering.OUTER, newer, older).tolist() == [1, 3, 4, 0, 2]
    for finer in (Ordering.INNER, Ordering.TOTAL):
        assert arranged(finer, newer, older).tolist() == [3, 1, 4, 2, 0]


@pytest.mark.parametrize("arrived", [(0, 0), (3, 0), (0, 3), (3, 3), (2, 5), (5, 2)])
@pytest.mark.parametrize("alternate", [False, True])
def test_every_tuple_of_a_batch_has_a_place_of_its_own(arrived: tuple[int, int], alternate: bool) -> None:
    of = [places(side, np.arange(arrived[side]), arrived, alternate=alternate) for side in (R, S)]
    assert sorted(np.concatenate(of).tolist()) == list(range(sum(arrived)))
    assert all((np.diff(side) > 0).all() for side in of)
    if alternate and arrived[R] and arrived[S]:
        assert (of[R][0], of[S][0]) == (0, 1)
