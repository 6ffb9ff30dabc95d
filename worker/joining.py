"""What a driver does with the engine: from a job as the catalog has it to the end of its join.

It imports the engine, which takes seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from backend.catalog import lifecycle
from backend.catalog.database import Catalog
from backend.catalog.models import Job
from backend.jobs.inputs import inputs_of
from backend.jobs.joinfile import check_places, check_store, join_file
from backend.jobs.limits import check_limits
from backend.jobs.secrets import secrets_of
from backend.problems import Problem
from backend.results.memory import SharedRecent, recent_for
from backend.settings import Settings
from streamjoin.errors import InputError, UnsupportedError
from streamjoin.explain.drift import Watch
from streamjoin.explain.order import ordered
from streamjoin.explain.stages import stage_inputs
from streamjoin.operators import registry
from streamjoin.results.sink import StoreSink
from streamjoin.spark import run as engine
from streamjoin.spark.checkpoint import brought
from streamjoin.spark.cluster import executors_of, watched
from streamjoin.spark.driver import Driver
from streamjoin.spark.failures import first_cause
from streamjoin.spark.session import log_of, open_session
from streamjoin.spec.inputs import require_ends
from streamjoin.spec.joinfile import JoinFile
from streamjoin.spec.outputs import store_sink
from streamjoin.spec.prepare import Bound, bind, bounded_names
from worker.keeper import Keeper
from worker.reports import Reporter
from worker.steps import BATCH, LOOK, STATE, Steps

if TYPE_CHECKING:
    from worker.ready import Warm


def read_job(settings: Settings, catalog: Catalog, job: Job) -> JoinFile:
    """The join file of a job that may run here.

    Raises:
        InputError: it may not, or not any more.
    """
    try:
        with catalog.read() as reading:
            secrets = secrets_of(settings, reading, inputs_of(job))
        check_places(settings, inputs_of(job), secrets)
        check_store(settings, job.spec)
        file = join_file(settings, job, secrets)
        check_limits(settings, file.slots, file.run.driver_memory)  # which may be lower than when it was made
    except Problem as refused:
        raise InputError(refused.detail) from None
    return file


def bind_job(file: JoinFile, *, until_end: bool) -> Bound:
    """The queries of a join file, bound to its streams, in the order in which they are joined.

    Raises:
        InputError: they do not fit the streams, or the checkpoint.
        UnsupportedError: its operator keeps no results.
    """
    if until_end:
        require_ends(file)
    brought(file)
    bound = ordered(bind(file))
    if registry.is_sparks(bound.operator):
        raise UnsupportedError(
            "Spark's own join keeps no results in a store; take another operator", field="operator.name"
        )
    return bound


def open_results(settings: Settings, bound: Bound, generation: int) -> tuple[list[StoreSink], list[SharedRecent]]:
    """Where the results of each query go, and the newest ones in memory, to be closed at the end."""
    sinks = [store_sink(query.file, query.plan) for query in bound.queries]
    recents = []
    for sink in sinks:
        recent, sink.memory = recent_for(settings, sink.job)
        if bound.file.cluster:
            sink.memory = None  # the platform's Redis is for this machine; blocks are read back from the store
        sink.recent = recent
        sink.lease = generation
        recents.append(recent)
    return sinks, recents


def take_session(file: JoinFile, keeper: Keeper, warm: Warm | None) -> SparkSession:
    """The session that is ready, or a new one.

    Where one was to be ready and is not, this process goes on as another program.
    """
    session: SparkSession | None = None if warm is None else warm.session(log_of(file))
    if session is None:
        if warm is not None:
            warm.start_cold(keeper.job_id, keeper.generation)
        session = open_session(file, lambda text: keeper.observe(lifecycle.STARTING, text))
    return session


def join(
    session: SparkSession, bound: Bound, sinks: Sequence[StoreSink], keeper: Keeper, steps: Steps, *, until_end: bool
) -> None:
    """Join until the end or until told to stop, and report of each batch.

    Raises:
        StreamJoinError: it failed; the message is the first cause.
    """
    file, names, stages = bound.file, bound.plan.names, stage_inputs(bound.plan)
    bounded, catalog = bounded_names(bound), keeper.catalog
    with Reporter(catalog, keeper.job_id, keeper.generation, names, bounded=bounded, stages=stages) as reporter:
        where = f"tasks run on {file.run.master}" if file.cluster else None
        executors = Executors(keeper, where, lambda: executors_of(session))
        session.streams.addListener(_Listener(keeper, reporter, steps, where))
        order = Watch(bound.order)

        def on_batch(progress: Any, batch: Any) -> None:
            steps.done(BATCH)
            reporter.order = order.look(lambda: progress.rates.per_s(names))
            reporter.late_files = late.look(progress.late)
            reporter.add(batch, progress.reconnects)
            executors.worked()

        topics = engine.topics_of(bound)
        job = bound.job(heartbeat=not until_end)
        late = engine.LateFiles(job)
        driver = Driver(
            session, job, sinks, topics, on_batch, bound.ending(), unit_progress(keeper),
            on_quiet=lambda: steps.done(LOOK),
        )  # fmt: skip
        reporter.predicted, reporter.slots = engine.foretold(bound), file.slots
        reporter.relations = driver.progress.relations
        try:
            with watched(session, file.cluster, executors.tell):
                driver.run(until_end=until_end, stop=keeper.stop)
        except Exception as failure:
            raise first_cause(failure) from failure


def unit_progress(keeper: Keeper) -> Callable[[int, int], None]:
    """Writes down how far a start is in storing tuples for other queries, at most once a second."""
    tell = engine.change_text(lambda text: keeper.observe(lifecycle.STARTING, text))
    told_s = 0.0

    def on_unit(done: int, units: int) -> None:
        nonlocal told_s
        if time.monotonic() - told_s >= 1 or done == units:
            told_s = time.monotonic()
            tell(done, units)

    return on_unit


class Executors:
    """Tells of executors that are gone or there again, until a batch shows that the job runs as before.

    Args:
        where: what is told of a job whose executors are there; None where it has none.
        count: how many there are.
    """

    def __init__(self, keeper: Keeper, where: str | None, count: Callable[[], int]) -> None:
        self._keeper, self._where, self._count = keeper, where, count
        self._is_told = False

    def tell(self, text: str) -> None:
        """They are gone, or there again."""
        self._is_told = True
        self._keeper.observe(lifecycle.RUNNING, text)

    def worked(self) -> None:
        """A batch was done."""
        if self._is_told and self._count() > 0:
            self._is_told = False
            self._keeper.observe(lifecycle.RUNNING, self._where)


class _Listener(StreamingQueryListener):
    """Tells when the query runs, and how long each batch took."""

    def __init__(self, keeper: Keeper, reporter: Reporter, steps: Steps, where: str | None) -> None:
        self._keeper, self._reporter, self._steps, self._where = keeper, reporter, steps, where

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        self._steps.done(STATE)
        self._reporter.begin()
        self._keeper.observe(lifecycle.RUNNING, self._where)

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        if "addBatch" in event.progress.durationMs:
            self._reporter.took(event.progress.batchDuration)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        pass
