"""What went to the store of a state and came from it: counted by tasks, added up, and said in one line."""

from __future__ import annotations

from typing import Any

from streamjoin.cli.running import _traffic_text
from streamjoin.flow.moment import Moment
from streamjoin.spark.batchreport import batch_report
from streamjoin.spark.progress import Progress
from streamjoin.state.objects import Traffic


def slot(number: int, traffic: dict[str, int]) -> dict[str, Any]:
    return {
        "slot": number, "stage": 0, "units": [], "intake": [], "seconds": {"all": 0.1, "receive": 0.0},
        "traffic": traffic,
    }  # fmt: skip


def test_traffic_of_slots_and_batches_adds_up() -> None:
    counted, progress = Traffic(), Progress()
    counted.count(served=9, put=2, put_bytes=3 << 20)
    first = counted.taken()
    counted.count(fetched=1, fetched_bytes=1 << 20, retries=2)
    for batch in range(2):
        progress.add(batch_report(batch, Moment(), [slot(0, first), slot(1, counted.taken())], 0, []))
    assert counted.taken() == dict.fromkeys(first, 0)
    assert progress.traffic == {
        "served": 18, "fetched": 1, "fetched_bytes": 1 << 20, "put": 4, "put_bytes": 6 << 20, "retries": 2,
    }  # fmt: skip
    said = "state: 94.7 % of 19 openings from the cache, 1.0 MiB fetched, 6.0 MiB put, 2 retries"
    assert _traffic_text(progress.traffic) == said


def test_a_state_in_a_folder_has_no_traffic() -> None:
    progress = Progress()
    without = {name: value for name, value in slot(0, {}).items() if name != "traffic"}
    progress.add(batch_report(0, Moment(), [without], 0, []))
    assert progress.traffic == {}
