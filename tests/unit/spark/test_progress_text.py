"""What `streamjoin run` shows of each batch while it runs."""

from __future__ import annotations

import time

from streamjoin.spark.batchreport import BatchReport
from streamjoin.spark.progress import Progress
from streamjoin.spark.run import _progress_text


def test_a_lag_is_told_of_tuples_that_came_and_does_not_rise_while_none_come() -> None:
    shown: list[str] = []
    on_batch = _progress_text(shown.append)
    progress = Progress()
    now_us = int(time.time() * 1e6)
    for batch in (
        BatchReport(0, 1, [], {0: {"rows": 3}}, {}, {0: now_us - 5_000_000, 1: now_us}),
        BatchReport(1, 0, [], {}, {}),
    ):
        progress.add(batch)
        on_batch(progress, batch)
    came, heartbeat = shown
    assert "lag 5." in came
    assert "lag" not in heartbeat


def test_relations_that_are_read_anew_meanwhile_are_told() -> None:
    shown: list[str] = []
    progress, batch = Progress(), BatchReport(0, 1, [], {0: {"rows": 3}}, {}, {})
    progress.add(batch)
    progress.relations |= {"rates": {"reading_rows": 1_200_000}, "customers": {"reading_rows": None}, "new": {}}
    _progress_text(shown.append)(progress, batch)
    (line,) = shown
    assert line.endswith("  reading relation rates: 1,200,000 rows") and line.count("reading") == 1
