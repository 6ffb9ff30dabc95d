"""How far a driver is in storing tuples for other queries is written down, and not for every unit."""

from __future__ import annotations

from typing import cast

import pytest

from worker.joining import unit_progress
from worker.keeper import Keeper


class StandIn:
    """Takes what a keeper would write."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []

    def observe(self, after: str, reason: str) -> None:
        self.said.append((after, reason))


def test_progress_is_written_once_a_second_and_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    keeper, units = StandIn(), 500
    on_unit = unit_progress(cast(Keeper, keeper))
    for done in range(1, units + 1):
        monkeypatch.setattr("worker.joining.time.monotonic", lambda done=done: 100 + done * 0.01)
        on_unit(done, units)
    told = [int(reason.split(": ")[1].split()[0]) for _, reason in keeper.said]
    assert told == [1, 101, 201, 301, 401, 500]
    assert keeper.said[0] == ("starting", "storing tuples for other queries: 1 of 500 units")
