"""Ids: their form, their order, and that no two processes make the same."""

from __future__ import annotations

import os
import random
import re
import time

import pytest

from backend.catalog import ids
from backend.catalog.ids import new_id


def test_ids_say_what_they_name_and_sort_by_time() -> None:
    first = new_id("job")
    assert re.fullmatch(r"job_[0-7][0-9a-hjkmnp-tv-z]{25}", first)
    time.sleep(0.002)
    assert new_id("job") > first
    random.seed(0)  # which somebody's library may do
    some = {new_id("job") for _ in range(1000)}
    random.seed(0)
    assert len(some | {new_id("job") for _ in range(1000)}) == 2000


def test_ids_of_one_millisecond_and_of_a_clock_that_is_set_back_sort_as_they_were_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    some = [new_id("job") for _ in range(1000)]
    monkeypatch.setattr(time, "time_ns", lambda: 1_000_000)
    some += [new_id("job") for _ in range(1000)]
    assert some == sorted(set(some))


def test_a_forked_process_makes_ids_of_its_own() -> None:
    here, there = os.pipe()
    child = os.fork()
    if not child:
        os.write(there, str(ids._random.getrandbits(80)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert int(os.read(here, 100)) != ids._random.getrandbits(80)
    os.close(here)
    os.close(there)
