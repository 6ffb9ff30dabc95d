"""What reports tell of tuples that units hand on to one another, of real jobs: the states say what is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from backend.catalog.database import Catalog
from streamjoin.engine.state import UnitState
from streamjoin.failpoints import FailpointError
from streamjoin.operators.ring.state import NodeState
from streamjoin.spark.batchreport import BatchReport
from streamjoin.spark.progress import Progress
from streamjoin.spark.run import report
from streamjoin.state.store import StateStore
from tests.conformance.alone import run_alone
from tests.conformance.test_bundles import bound, file_of, streams, write
from tests.failing import failing_at
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


WORKERS = {"longer": (2, 4), "shorter": (4, 2)}


@pytest.mark.parametrize("change", WORKERS)
@pytest.mark.parametrize("query", ["pairs", "three"])
def test_a_span_in_which_a_chain_gets_another_length_tells_of_the_chain_that_there_is(
    query: str, change: str, catalog: Catalog, tmp_path: Path
) -> None:
    """A batch that was begun by the chain as it was is done first, by the same driver."""
    before, after = (f"name: handshake, workers: {workers}" for workers in WORKERS[change])
    write(tmp_path, streams(63), FILES)
    with failing_at("batch.before_commit", 4), pytest.raises(FailpointError):
        run_alone(job(tmp_path, query, before))
    names = "ab" if query == "pairs" else "abc"
    reports, batches = reporter(catalog, names), list[BatchReport]()

    def on_batch(progress: Progress, batch: BatchReport) -> None:
        batches.append(batch)
        reports.add(batch)

    begun = job(tmp_path, query, after)
    driver = run_alone(begun, lambda batch: batch < 6, on_batch=on_batch)
    stages, (old, new) = len(names) - 1, WORKERS[change]
    assert [len(batch.units) for batch in batches] == [stages * old, stages * new, stages * new]
    body = reports.take()
    assert body is not None
    found = [states(tmp_path, new, 6, stage) for stage in range(stages)]
    # What the second stage stores of the first one's results is no stream.
    of_c = {} if query == "pairs" else {"c": imbalances(found[1], "-c")["c"]}
    assert body["imbalance"] == {**imbalances(found[0], "ab"), **of_c}
    assert body["forwarded"] == dict(
        sum((Counter(unit["forwarded"]) for of in batches for unit in of.units), Counter())
    )
    assert sum(unit["stored_bytes"] for unit in body["units"]) == body["state_bytes"]
    assert sum(unit["segments"] for unit in body["units"]) == body["segments"]
    told = report(begun, driver.job, driver.progress, 1.0, 0)["units"]
    for number in range(1, 1 + stages):
        one = f"{number}." if stages > 1 else ""
        check_units([unit for unit in body["units"] if unit["stage"] == number], number, found[number - 1], batches)
        check_units([unit for unit in told if unit["label"].startswith(one)], number, found[number - 1], batches)


def check_units(units: Sequence[Any], number: int, found: Sequence[UnitState], batches: Sequence[BatchReport]) -> None:
    """Of a stage: counts are of the whole span, and what is stored is so at its end."""
    told = [unit for batch in batches for unit in batch.units if unit.get("stage", 0) + 1 == number]
    for name in ("results", "comparisons"):
        assert sum(unit[name] for unit in units) == sum(unit[name] for unit in told), (number, name)
    rows = [sum(info.rows for info in state.tuples()) for state in found]
    assert [unit["stored_rows"] for unit in units] == [*rows, *[0] * (len(units) - len(rows))], number
