"""What reports tell of tuples that units hand on to one another, of real jobs: the states say what is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from backend.catalog.database import Catalog
from streamjoin.engine.state import UnitState
from streamjoin.operators.ring.state import NodeState
from streamjoin.spark.batchreport import BatchReport
from streamjoin.spark.progress import Progress
from streamjoin.spark.run import report
from streamjoin.state.store import StateStore
from tests.conformance.alone import run_alone
from tests.conformance.test_bundles import bound, file_of, streams, write
from worker.reports import Reporter, merged

FILES = 8
ROUNDS = {
    "ring": ("name: ring, nodes: 3", 3),
    "coordinated": ("name: coordinated, nodes: 4, copies: 2, segment: 30us", 4),
}


def job(folder: Path, query: str, operator: str) -> Any:
    return bound(file_of(folder, "job", [query], f"operator: {{{operator}}}\n"))


def states(folder: Path, units: int, version: int, stage: int = 0) -> list[UnitState]:
    store = StateStore(folder / "job-checkpoint" / "state", stage)
    return [store.load(unit, version) for unit in range(units)]


def imbalances(found: Sequence[UnitState], names: str) -> dict[str, float]:
    """ESJ's IF of each stream that is stored."""
    loads = {
        name: [sum(info.rows for info in state.tuples(side)) for state in found] for side, name in enumerate(names)
    }
    return {name: round(max(of) / (sum(of) / len(of)) - 1, 4) for name, of in loads.items() if any(of)}


def reporter(catalog: Catalog, names: str) -> Reporter:
    return Reporter(catalog, "job_any", 1, tuple(names))


@pytest.mark.parametrize("operator", ROUNDS)
def test_reports_of_rounds_tell_what_is_handed_on_and_how_evenly_nodes_store(
    operator: str, catalog: Catalog, tmp_path: Path
) -> None:
    write(tmp_path, streams(61), FILES)
    knobs, nodes = ROUNDS[operator]
    told, reports = [], reporter(catalog, "abc")

    def on_batch(progress: Progress, batch: BatchReport) -> None:
        reports.add(batch)
        body = reports.take()
        assert body is not None
        told.append(body)
        there = states(tmp_path, nodes, batch.batch + 1)
        assert body["imbalance"] == imbalances(there, "abc")
        moved = (
            sum(NodeState.of(state).sent_on(side) for state in there for side in range(3)) if operator == "ring" else 0
        )
        carried = sum(unit["received"] for unit in body["units"] if unit["stage"] > 1)
        assert body["forwarded"]["tuples"] == (moved if operator == "ring" else carried)

    found = job(tmp_path, "three", knobs)
    driver = run_alone(found, on_batch=on_batch)
    assert len(told) >= FILES and sum(map(bool, (body["imbalance"] for body in told))) >= FILES
    whole = merged(told)
    assert whole["forwarded"] == dict(sum((Counter(body["forwarded"]) for body in told), Counter()))
    assert whole["forwarded"]["tuples"] > 50 and whole["imbalance"] == told[-1]["imbalance"]
    # A tuple that is handed on is received by one more unit, and by that once.
    got = sum(driver.progress.received.values()) + (whole["forwarded"]["tuples"] if operator == "ring" else 0)
    assert report(found, driver.job, driver.progress, 1.0, 0)["replication"] == got / sum(driver.progress.tuples_in)


def test_hosts_of_two_streams_hand_nothing_on(catalog: Catalog, tmp_path: Path) -> None:
    write(tmp_path, streams(62), 2)
    reports = reporter(catalog, "ab")
    run_alone(job(tmp_path, "pairs", ROUNDS["coordinated"][0]), on_batch=lambda progress, batch: reports.add(batch))
    body = reports.take()
    assert body is not None and "forwarded" not in body and "imbalance" not in body
