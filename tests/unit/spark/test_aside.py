"""Rows that tasks put aside beside a state in a store, and the driver keeps in its checkpoint."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamjoin.errors import StateError
from streamjoin.intake import rejected
from streamjoin.intake.deadletter import BAD_VALUE, DeadLetter
from streamjoin.spark.aside import put_aside, take_aside
from streamjoin.state.generation import ASIDE, Generation
from tests.servers.objects import folder_root

COUNTS: rejected.Counts = {"r": {BAD_VALUE: 1}}


def job(folder: Path, machine: str) -> Any:
    return SimpleNamespace(
        state=folder_root(folder / "store"), dead_letters=folder / machine / "dead-letters", sync=False
    )


def test_rows_come_from_one_machine_to_another_once(tmp_path: Path) -> None:
    task, driver = job(tmp_path, "task"), job(tmp_path, "driver")
    letter = DeadLetter("r", "a.csv", 3, BAD_VALUE, "the text is no int64", b"x,y", "line")
    put_aside(task, 4, "0-a", [letter], 1)
    put_aside(task, 4, "0-a", [letter], 1)
    assert not task.dead_letters.exists()
    taken = [rejected.Taken(rejected.file_of(driver.dead_letters, 4, "0-a"), COUNTS)]
    take_aside(driver, 4, COUNTS, taken)
    take_aside(driver, 4, COUNTS, taken)  # the batch is done again
    rows, more = rejected.page(driver.dead_letters, 10)
    assert [row["position"] for row in rows] == [3] and not more
    assert rejected.read_head(driver.dead_letters).counts == COUNTS
    assert list(task.state.opened()[0].listed(ASIDE)) == []


def test_rows_that_are_gone_are_not_left_out(tmp_path: Path) -> None:
    driver = job(tmp_path, "driver")
    taken = [rejected.Taken(rejected.file_of(driver.dead_letters, 4, "0-a"), COUNTS)]
    with pytest.raises(StateError, match="is gone; it had rows that this batch put aside"):
        take_aside(driver, 4, COUNTS, taken)


def test_a_start_sweeps_what_no_batch_will_take(tmp_path: Path) -> None:
    driver = job(tmp_path, "driver")
    letter = DeadLetter("r", "a.csv", 3, BAD_VALUE, "the text is no int64", b"x,y", "line")
    for batch in (3, 4):
        put_aside(driver, batch, "0-a", [letter], 1)
    made = Generation(driver.state, tmp_path, 1, 4)
    made.sweep([0], 4)
    made.swept()
    assert list(made.objects.listed(ASIDE)) == [f"{ASIDE}/000000004-0-a.jsonl"]
