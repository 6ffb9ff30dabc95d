"""The handshake chain on Spark: drained at the end, crashed while it drains, then with other slots and more input."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from streamjoin.errors import UnsupportedError
from streamjoin.operators.handshake.state import ChainState
from streamjoin.plan.ordering import Ordering
from streamjoin.results.question import Question
from streamjoin.results.reader import Reader
from streamjoin.spark.driver import Driver
from streamjoin.spark.kafka import Topic
from streamjoin.spec.joinfile import parse
from streamjoin.spec.outputs import store_job, store_spec
from streamjoin.spec.prepare import bind
from streamjoin.state.store import StateStore, read_manifests
from tests.conformance.check import expected, plan
from tests.conformance.histories import History, history
from tests.conformance.test_ordering import falls, sequence

from .jobs import check_same, crash, join_text, pairs_in_name_order, query, result_rows, run_text, write_history
from .test_store_crashes import rows_of

pytestmark = pytest.mark.spark

BATCHES, MORE, WORKERS = 4, 2, 3
WINDOW = "20 us"


def text(slots: int, ordering: Ordering = Ordering.NONE, workers: int = WORKERS) -> str:
    operator = f"name: handshake, workers: {workers}, block: 4, ordering: {ordering}"
    return join_text(query("equality", WINDOW), operator, delay_us=15, run=f"slots: {slots}")


LEFT = (
    text(2).replace("name: handshake, workers: 3, block: 4", "name: biclique").replace("r, s WHERE", "r LEFT JOIN s ON")
)


def want(given: History, batches: int) -> Counter[tuple[Any, ...]]:
    first = History(
        given.r[: len(given.r) * batches // (BATCHES + MORE)],
        given.s[: len(given.s) * batches // (BATCHES + MORE)],
        given.delay_us,
    )
    return Counter(expected(first, "equality", plan(given, "equality", WINDOW), batches))


@pytest.mark.parametrize(
    ("ordering", "longer", "shorter", "drained"),
    # What was left of the drain, or all of it for a chain of another length, after the batch that is repeated.
    [
        pytest.param(Ordering.NONE, WORKERS, WORKERS, WORKERS, marks=pytest.mark.soak),
        (Ordering.TOTAL, 5, 2, 2 + 5),
    ],
)
def test_a_chain_killed_in_its_drain_goes_on_exactly_and_takes_more(
    ordering: Ordering, longer: int, shorter: int, drained: int, tmp_path: Path, session: SparkSession
) -> None:
    given = history(3, r=120, s=120, time_shape="disordered", delay_us=15)
    write_history(given, tmp_path, BATCHES + MORE, range(BATCHES))
    file = tmp_path / "join.yaml"
    file.write_text(text(2, ordering))
    crash(session, file, f"batch.before_commit:{BATCHES + 2}")  # the second of the batches that drain
    state = tmp_path / "checkpoint" / "state"
    assert any(any(ChainState.of(found).sent) for _, found in read_manifests(state)), "nothing was on its way"
    store = StateStore(state)
    waited = any(
        ChainState.of(store.load(unit, version)).waiting for unit in store.units() for version in store.versions(unit)
    )
    assert waited == (ordering is not Ordering.NONE)
    run_text(session, text(3, ordering, longer), tmp_path)
    found = want(given, BATCHES)
    assert found.total() > 3 * BATCHES
    check_same(result_rows(tmp_path / "results"), found)
    assert {state.version for _, state in read_manifests(state)} == {BATCHES + drained}
    # The end is over once it has been reached, until there is more.
    assert run_text(session, text(1, ordering, longer), tmp_path).batches == 0
    write_history(given, tmp_path, BATCHES + MORE, range(BATCHES, BATCHES + MORE))
    assert run_text(session, text(1, ordering, shorter), tmp_path).batches == MORE + shorter
    check_same(result_rows(tmp_path / "results"), want(given, BATCHES + MORE))
    if ordering is not Ordering.NONE:
        places = sequence(given, counted=False, batches=BATCHES + MORE)
        assert falls(ordering, pairs_in_name_order(tmp_path / "results"), places) == []
    assert store.sweep() == 0


@pytest.mark.soak
@pytest.mark.parametrize(("before", "after"), [(4, 1), (2, 4)])
def test_a_batch_whose_results_a_store_has_is_done_by_the_chain_that_began_it(
    before: int, after: int, tmp_path: Path, session: SparkSession
) -> None:
    """A chain of another length gives other results in that batch, and the store would not take them."""
    given = history(4, r=120, s=120)
    write_history(given, tmp_path, BATCHES)
    file = tmp_path / "join.yaml"

    def of(workers: int) -> str:
        operator = f"name: handshake, workers: {workers}, block: 3"
        results = "{store: sqlite, path: results.db, snapshot: {batches: 1}}"
        return join_text(query("equality", "full history"), operator, results=results)

    file.write_text(of(before))
    crash(session, file, f"batch.after_commit:{BATCHES - 1}")
    progress = run_text(session, of(after), tmp_path)
    assert progress.batches == 1 + 1 + after
    join = parse(of(after), base=tmp_path)
    reader = Reader(store_spec(join).open(), store_job(join))
    wanted = expected(given, "equality", plan(given, "equality", "full history"), BATCHES)
    check_same(rows_of(reader, Question(select=("r_id", "s_id"))), Counter(wanted))


@pytest.mark.parametrize(
    ("file", "way_out"),
    [
        (text(2), "run without --until-end, or choose biclique, matrix or splitjoin$"),
        (LEFT, "run without --until-end$"),
    ],
)
def test_the_end_of_a_kafka_topic_is_refused(file: str, way_out: str, tmp_path: Path) -> None:
    write_history(history(3), tmp_path, 1)
    bound = bind(parse(file, base=tmp_path))
    topic = Topic("localhost:1", "r", "json", "earliest", 100)
    driver = Driver(cast(SparkSession, None), bound.job(heartbeat=False), bound.sinks(), {0: topic})
    with pytest.raises(UnsupportedError, match=way_out):
        driver.run(until_end=True)
