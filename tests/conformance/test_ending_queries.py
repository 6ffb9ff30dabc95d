"""Queries of any kind end in a job that goes on: the others give what they give alone; nothing is stored for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from streamjoin.explain.bundle import explain
from streamjoin.explain.preview import preview
from streamjoin.spark.driver import Driver
from streamjoin.spec.prepare import Bound
from streamjoin.state.show import list_units
from streamjoin.state.store import stages_in

from .alone import run_alone
from .test_bundles import FILED, bound, file_of, rows_in, streams, write


def stopping(folder: Path, queries: Sequence[str], stopped: Sequence[str]) -> Path:
    """The join file of the job `together`, some of whose queries are stopped."""
    path = file_of(folder, "together", queries)
    text = path.read_text()
    for name in stopped:
        called = name.replace(" ", "-")
        begun = text.index(f"  {called}: {{query:")
        end = text.index("\n", begun)
        text = f"{text[: end - 1]}, stopped: true}}{text[end:]}"
    path.write_text(text)
    return path


def go_on(path: Path, until: int | None = None) -> Driver:
    return run_alone(bound(path), None if until is None else lambda batch: batch < until)


def check(folder: Path, queries: Sequence[str], ended: dict[str, int]) -> None:
    """Each query gave what it gives alone, to its end or until so many batches were done."""
    for name in queries:
        called = name.replace(" ", "-")
        alone = file_of(folder, f"{called}-alone", [name])
        go_on(alone, ended.get(name))
        assert rows_in(folder / f"{called}-alone") == rows_in(folder / "together" / called), name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stopped", "resting"),
    [
        (["left"], 1),
        (["near"], 0),
        (["pairs", "near"], 1),
        (["three"], 1),
        (["windows", "three"], 3),
        (["left", "anti", "windows", "of one", "three", "latest"], 7),
        (["pairs", "near", "left", "anti", "windows", "of one", "latest"], 6),
    ],
    ids=["outer", "one of pairs", "all pairs", "a stage is left", "a shared stage", "all but pairs", "all but one"],
)
def test_queries_end_between_two_starts(stopped: Sequence[str], resting: int, tmp_path: Path) -> None:
    write(tmp_path, streams(70))
    go_on(stopping(tmp_path, FILED, ()), 2)
    before = stages_in(tmp_path / "together-checkpoint" / "state")
    job = go_on(stopping(tmp_path, FILED, stopped), 3).job
    assert len(job.plan.resting) == resting
    assert set(stages_in(tmp_path / "together-checkpoint" / "state")) == set(before) - job.plan.resting
    go_on(stopping(tmp_path, FILED, stopped))  # a start later nothing changes any more
    check(tmp_path, FILED, dict.fromkeys(stopped, 2))


def test_who_looks_at_a_job_sees_what_is_left_of_it(tmp_path: Path) -> None:
    write(tmp_path, streams(71))
    go_on(stopping(tmp_path, FILED, ()), 2)
    stopped = ["windows", "three"]
    for found in (bound(stopping(tmp_path, FILED, stopped)), go_on_bound(tmp_path, stopped)):
        told = explain(found)
        assert "no query reads c any more; the job only keeps its place in it" in str(told)
        assert [stage["stage"] for stage in told.to_json()["stages"]] == [1, 2, 3, 6, 8]
        assert {part["names"][0] for part in told.to_json()["parts"]} == {"pairs", "left", "anti", "of-one", "latest"}
        assert {one.query for one in preview(found).queries} == {"pairs", "near", "left", "anti", "of-one", "latest"}
    left = list_units(tmp_path / "together-checkpoint")
    assert "1.R0" in left and "4.R0" not in left


def go_on_bound(folder: Path, stopped: Sequence[str]) -> Bound:
    """The job as its file is bound once these have ended."""
    go_on(path := stopping(folder, FILED, stopped), 3)
    return bound(path)
