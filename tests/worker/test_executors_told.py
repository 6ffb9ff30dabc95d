"""What is told of executors is told until it is past."""

from __future__ import annotations

from typing import cast

from worker.joining import Executors
from worker.keeper import Keeper

from .test_unit_progress import StandIn


def test_that_executors_are_there_again_is_told_until_a_batch_is_done() -> None:
    keeper, count = StandIn(), [1]
    executors = Executors(cast(Keeper, keeper), "tasks run on yarn", lambda: count[0])
    executors.worked()
    assert keeper.said == []
    count[0] = 0
    executors.tell("no executor of yarn is left, and batches wait for one")
    executors.worked()  # of a batch that was done when they went
    count[0] = 2
    executors.tell("there are executors of yarn again")
    executors.worked()
    executors.worked()
    assert [reason for _, reason in keeper.said] == [
        "no executor of yarn is left, and batches wait for one",
        "there are executors of yarn again",
        "tasks run on yarn",
    ]
    assert {after for after, _ in keeper.said} == {"running"}
