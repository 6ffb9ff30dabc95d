"""A biclique whose units come and go on Spark, killed around its changes: exact, and by the same decisions."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from streamjoin.spark.run import run_job
from streamjoin.spec.joinfile import parse
from streamjoin.spec.prepare import bind
from streamjoin.state.store import StateStore
from tests.conformance.check import expected, plan
from tests.conformance.histories import History, make_rows, to_batch

from .jobs import check_same, crash, join_text, query, result_rows, write_file

pytestmark = pytest.mark.spark

SIZES = [60] * 3 + [180] * 4 + [30] * 8
"""Rows of each stream, by batch."""
KNOBS: dict[str, Any] = {"adaptive": True, "routing": "hash", "r_units": 2, "s_units": 2, "capacity": 0.01,
                         "check_every": "0s", "confirmations": 1, "max_units": 8}  # fmt: skip


def streams() -> History:
    """More rows for a while, then few."""
    rng = np.random.default_rng(5)
    times = [at for batch, size in enumerate(SIZES) for at in np.sort(rng.integers(10 * batch, 10 * batch + 10, size))]
    r, s = (make_rows(rng, times, rng.integers(0, 40, len(times))) for _ in "rs")
    return History(r, s)


def cuts(given: History) -> list[tuple[Any, Any]]:
    ends = np.cumsum([0, *SIZES])
    return [(to_batch(given.r[begin:end]), to_batch(given.s[begin:end])) for begin, end in pairwise(ends)]


def decided(state: Path, version: int) -> list[dict[str, Any]]:
    """The decisions that the state of a version remembers, oldest first."""
    found: list[dict[str, Any]] = StateStore(state).load(0, version).values["units"]["decisions"]
    return found


def test_killed_around_a_change_of_units(session: SparkSession, tmp_path: Path) -> None:
    given = streams()
    for number, (r, s) in enumerate(cuts(given)):
        write_file(tmp_path / "r", number, r)
        write_file(tmp_path / "s", number, s)
    knobs = ", ".join(f"{name}: {json.dumps(value)}" for name, value in KNOBS.items())
    file = tmp_path / "join.yaml"
    file.write_text(join_text(query("equality", "20 us"), f"name: biclique, {knobs}"))
    state, attempted = tmp_path / "checkpoint" / "state", []
    # Units come and go by the state of these batches, which are done twice: the second time by other slots.
    for place, slots, version in (("batch.before_commit:7", 2, 7), ("batch.before_commit:5", 1, 11)):
        crash(session, file, place, slots)
        attempted.append(decided(state, version))
    bound = bind(parse(file.read_text(), base=tmp_path))
    progress = run_job(session, bound, bound.job(heartbeat=False), bound.sinks(), until_end=True)
    found_plan = plan(given, "equality", "20 us")
    check_same(result_rows(tmp_path / "results"), Counter(expected(given, "equality", found_plan, len(SIZES))))
    told = decided(state, len(SIZES))
    for earlier in attempted:
        assert earlier and earlier == told[: len(earlier)]
    assert {name for one in told for name in ("added", "drained", "left") if one[name]} == {"added", "drained", "left"}
    assert len(attempted[0]) < len(attempted[1]) < len(told)
    # The last run did the batch before 11 again, and all that came after it.
    of_run = [one for one in told if one["batch"] >= 11]
    assert [*progress.adapting.decisions] == [{"stage": 1, **one} for one in of_run]
    assert progress.adapting.units[0]["units"] == {"R": 3, "S": 3}
