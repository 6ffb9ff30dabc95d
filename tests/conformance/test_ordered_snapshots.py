"""Results in an order, in snapshots by every rule: whoever follows has them in it, from the first snapshot to the last.

Through a join file, with the real source, tasks, store and checkpoint; a driver dies in between.
"""

from __future__ import annotations

import threading
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from streamjoin.errors import UnsupportedError
from streamjoin.failpoints import FailpointError
from streamjoin.plan.ordering import NEWER, Ordering
from streamjoin.results.follow import follow
from streamjoin.results.reader import Reader
from streamjoin.results.snapshot import FIRST
from streamjoin.spark import source
from streamjoin.spec.joinfile import JoinFile, parse
from streamjoin.spec.outputs import store_job, store_spec
from streamjoin.spec.prepare import bind
from tests.failing import failing_at
from tests.spark.jobs import join_text, query, write_history

from .alone import run_alone
from .check import expected, plan
from .histories import history
from .test_ordering import Pair, falls, sequence

BATCHES, DIES = 8, 4
SECOND, NOON = 1_000_000, 1_700_000_000_000_000
OPERATORS = {
    "biclique": "name: biclique, r_units: 2, s_units: 3",
    "splitjoin": "name: splitjoin, cores: 3",
    "chain": "name: handshake, workers: 3, block: 7",
}
RULES = {
    "batches": "{batches: 3}",
    "a span": "{epoch: 3s}",
    "a size": "{epoch: 1h, threshold_rows: 25}",
    "a size in bytes": "{batches: 5, threshold_bytes: 2000}",
    "delayed": "{batches: 1, threshold_rows: 300, delayed: 0.5, delays: 2}",
    "nothing": "",
}
ORDERINGS = (Ordering.TOTAL, Ordering.OUTER, Ordering.INNER)


def file_of(folder: Path, operator: str, window: str, snapshot: str, slots: int = 2) -> JoinFile:
    results = f"{{store: sqlite, path: kept.db{f', snapshot: {snapshot}' if snapshot else ''}}}"
    text = join_text(query("band", window), operator, delay_us=15, results=results, run=f"slots: {slots}")
    return parse(text, base=folder)


def shown(file: JoinFile) -> list[list[tuple[int, Pair]]]:
    """By snapshot, the number of each result's newer tuple and its ids, as a follower gets them."""
    reader, stop = Reader(store_spec(file).open(), store_job(file)), threading.Event()
    last, found = reader.refresh().state.last, []
    for news in follow(reader, after=FIRST, stop=stop):
        snapshot = list(reader.snapshot_rows(news.snapshot))
        numbers = [number for batch in snapshot for number in batch.column(NEWER).to_pylist()]
        rows = [row for batch in news.rows for row in batch.to_pylist()]
        found.append([(number, (row["r_id"], row["s_id"])) for number, row in zip(numbers, rows, strict=True)])
        if news.snapshot.id == last:
            stop.set()
    return found


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("operator", OPERATORS)
def test_snapshots_follow_each_other_in_the_promised_order(
    operator: str, rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 0

    def before(batch: int) -> bool:
        nonlocal now_s
        now_s += 1
        return True

    monkeypatch.setattr(source, "_clocks", lambda: (NOON + now_s * SECOND, now_s * SECOND))
    turn = list(OPERATORS).index(operator) + list(RULES).index(rule)
    ordering, window = ORDERINGS[turn % 3], ("20 us", "7 rows")[turn % 2]
    given = history(turn, r=160, s=150, time_shape="disordered", delay_us=15)
    write_history(given, tmp_path, BATCHES)
    knobs = f"{OPERATORS[operator]}, ordering: {ordering}"
    with failing_at("batch.before_commit", DIES), pytest.raises(FailpointError):
        run_alone(bind(file_of(tmp_path, knobs, window, RULES[rule])), before)
    file = file_of(tmp_path, knobs, window, RULES[rule], slots=3)
    run_alone(bind(file), lambda batch: batch < DIES + 2 and before(batch))
    run_alone(bind(file))
    snapshots = shown(file)
    pairs = [pair for snapshot in snapshots for _, pair in snapshot]
    assert Counter(pairs) == Counter(expected(given, "band", plan(given, "band", window), BATCHES))
    assert falls(ordering, pairs, sequence(given, window == "7 rows", BATCHES)) == []
    numbers = [[number for number, _ in snapshot] for snapshot in snapshots if snapshot]
    assert all(max(one) < min(other) for one, other in pairwise(numbers)), "no batch is divided"
    assert len(numbers) > 1


def test_a_period_of_event_time_closes_no_snapshot_of_results_in_order(tmp_path: Path) -> None:
    write_history(history(1, r=20, s=20), tmp_path, 2)
    for rule in ("every: 1s", "per: file", "column: id, value: 3"):
        text = join_text(
            query("band", "20 us"), f"{OPERATORS['splitjoin']}, ordering: total",
            delay_us=15, results="{store: sqlite, path: kept.db, snapshot: {punctuation: true}}",
        ).replace("delay: 15us", f"delay: 15us, punctuate: {{{rule}}}")  # fmt: skip
        with pytest.raises(UnsupportedError, match="closes a snapshot by event time") as refused:
            bind(parse(text, base=tmp_path))
        assert refused.value.field == "results.snapshot.punctuation"
        bind(parse(text.replace("ordering: total", "ordering: none"), base=tmp_path))
