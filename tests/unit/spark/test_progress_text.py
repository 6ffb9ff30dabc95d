"""What `streamjoin run` shows of each batch while it runs."""

from __future__ import annotations

import time
from typing import Any
from unittest.mock import MagicMock

from streamjoin.spark.batchreport import BatchReport
from streamjoin.spark.progress import Progress
from streamjoin.spark.run import _progress_text, _reading


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


def joined(number: int, tuples: int) -> dict[str, Any]:
    """What a unit tells that joined so many tuples with a relation, or had none to join."""
    unit = {
        "unit": number, "label": f"L{number}", "comparisons": 0, "search_steps": 0, "results": 0,
        "expired_rows": 0, "stored_bytes": 0,
        "segments": 0, "open_rows": 0, "unmatched_rows": 0, "late_after_final": 0, "waiting_results": 0,
        "late": [0, 0], "stored_rows": [0, 0], "received": {}, "received_bytes": {}, "queries": [],
        "seconds": {"probe": 0.5, "store": 0.0, "expire": 0.0},
    }  # fmt: skip
    return {**unit, "reading": {"tuples": tuples} if tuples else {}}


def test_the_rate_of_a_join_with_a_relation_stays_when_a_batch_has_no_rows_for_it() -> None:
    progress = Progress()
    for batch, counts in enumerate([(100, 0), (0, 300), (0, 0)]):
        progress.add(BatchReport(batch, 0, [joined(unit, count) for unit, count in enumerate(counts)], {}, {}))
    assert progress.reading == {"tuples": 400, "work_us": 1_000_000}
    rates = [_reading(MagicMock(file=MagicMock(slots=slots)), progress)["reading"]["rate_per_s"] for slots in (1, 2, 5)]
    # Two units joined, each at one time or another: 400 tuples in a second of one of them.
    assert rates == [400.0, 800.0, 800.0]
