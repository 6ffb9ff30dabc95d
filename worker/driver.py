"""The driver of one generation of a job: `python -m worker.driver JOB GENERATION`.

It holds the job's lease while it runs, and ends itself before anybody else could take it. Killing it at any moment is
safe: the next generation goes on from the last committed batch.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from sqlalchemy.exc import SQLAlchemyError

from backend.catalog import lifecycle
from backend.catalog.database import Catalog
from backend.catalog.models import Job
from backend.logs import set_up_logs
from backend.private import keep_private
from backend.problems import Problem
from backend.settings import Settings, forget_secrets, read_settings
from streamjoin.errors import InputError, StreamJoinError, UnsupportedError
from worker.decide import LINGER_S
from worker.keeper import LOST_STATUS, Keeper, end_with_platform
from worker.leases import LeaseLostError
from worker.reports import Reporter
from worker.steps import BATCH, PROCESS, SPARK, STATE, Steps

if TYPE_CHECKING:
    from worker.ready import Warm

_log = logging.getLogger("streamjoin.driver")


def main() -> None:
    """Run one generation of a job, until its end, its stop or its failure."""
    if len(sys.argv) != 3 or not sys.argv[2].isdigit():
        sys.exit("usage: python -m worker.driver JOB GENERATION")
    job_id, generation = sys.argv[1], int(sys.argv[2])
    keep_private()
    try:
        settings = read_settings()
    except InputError as wrong:
        sys.exit(f"streamjoin: {wrong}")
    set_up_logs("driver", job_id=job_id, generation=generation)
    sys.exit(drive(settings, job_id, generation))


def stop_on_signals(stop: threading.Event) -> None:
    """SIGTERM and Ctrl-C ask this process to end after its batch."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())


def drive(settings: Settings, job_id: str, generation: int, warm: Warm | None = None) -> int:
    """Run one generation of a job; gives the exit status: 0 stopped, 1 failed, 3 another one has the lease.

    Args:
        warm: what this process has ready; it goes on as another program where the job does not fit.
    """
    stop = threading.Event()
    stop_on_signals(stop)
    catalog = Catalog(settings.catalog)
    keeper = Keeper(settings, catalog, job_id, generation, stop)
    try:
        if warm is None:  # else it is done already
            end_with_platform(keeper.die)
        job = keeper.enter()
        if warm is not None and not warm.fits(settings, job.spec.run):
            warm.start_cold(job_id, generation)
    except LeaseLostError as lost:
        _log.error("%s", lost)
        return LOST_STATUS
    except SQLAlchemyError as failure:
        _log.error("the catalog does not answer: %s", failure)
        return 1
    forgotten = forget_secrets()  # before Java and Python workers start, which need none
    if warm is not None:
        warm.secrets = forgotten
    # Spark takes a while to end. The next generation need not wait for it: the checkpoint is free by then.
    with ExitStack() as afterwards:
        try:
            steps = Steps(catalog, job_id, generation, warm=warm is not None)
            reason = run(settings, catalog, keeper, job, steps, afterwards, warm)
        except StreamJoinError as failure:
            _log.error("failed: %s", failure)
            keeper.leave(lifecycle.FAILED, str(failure), own_fault=isinstance(failure, InputError))
            return 1
        except Exception as failure:
            _log.exception("failed")
            keeper.leave(lifecycle.FAILED, f"{type(failure).__name__}: {failure}"[:500])
            return 1
        keeper.leave(lifecycle.STOPPED, reason, at_end=reason is not None)
        limit = threading.Timer(LINGER_S, keeper.die, ["it does not end"])
        limit.daemon = True
        limit.start()
    return 0


def run(
    settings: Settings,
    catalog: Catalog,
    keeper: Keeper,
    job: Job,
    steps: Steps,
    afterwards: ExitStack,
    warm: Warm | None = None,
) -> str | None:
    """Join until told to stop; gives the reason why it ended by itself, if it did.

    Args:
        afterwards: ends what no other generation waits for.
    Raises:
        InputError: the job is wrong.
        StreamJoinError: it failed; the message is the first cause.
    """
    # The engine takes seconds to import, and a lease must be entered before.
    from backend.jobs.inputs import inputs_of, secrets_of
    from backend.jobs.joinfile import check_places, check_store, join_file
    from backend.jobs.limits import check_limits
    from backend.results.memory import recent_for
    from streamjoin.explain.drift import Watch
    from streamjoin.explain.order import ordered
    from streamjoin.explain.stages import stage_inputs
    from streamjoin.operators import registry
    from streamjoin.spark import run as engine
    from streamjoin.spark.checkpoint import brought
    from streamjoin.spark.cluster import watched
    from streamjoin.spark.driver import Driver
    from streamjoin.spark.failures import first_cause
    from streamjoin.spark.session import log_of, open_session
    from streamjoin.spec.inputs import require_ends
    from streamjoin.spec.outputs import store_sink
    from streamjoin.spec.prepare import bind, bounded_names

    ends = job.spec.until_end
    with catalog.read() as reading:
        secrets = secrets_of(settings, reading, inputs_of(job))
    try:
        check_places(settings, inputs_of(job), secrets)
        check_store(settings, job.spec)
        file = join_file(settings, job, secrets)
        check_limits(settings, file.slots, file.run.driver_memory)  # which may be lower than when it was made
    except Problem as refused:
        raise InputError(refused.detail) from None
    if ends:
        require_ends(file)
    brought(file)
    bound = ordered(bind(file))
    if bound.operator == registry.SPARK:
        raise UnsupportedError("Spark's own join keeps no results in a store; take biclique", field="operator.name")
    steps.done(PROCESS)
    if keeper.stop.is_set():
        return None
    sinks = [store_sink(query.file, query.plan) for query in bound.queries]
    recents = []
    for sink in sinks:
        recent, sink.memory = recent_for(settings, sink.job)
        if file.cluster:
            sink.memory = None  # the platform's Redis is for this machine; blocks are read back from the store
        sink.recent = recent
        sink.lease = keeper.generation
        recents.append(recent)
    session = None if warm is None else warm.session(log_of(file))
    if session is None:
        if warm is not None:
            warm.start_cold(job.id, keeper.generation)
        session = open_session(file, lambda text: keeper.observe(lifecycle.STARTING, text))
    afterwards.callback(session.stop)
    steps.done(SPARK)
    try:
        names, stages = bound.plan.names, stage_inputs(bound.plan)
        bounded = bounded_names(bound)
        with Reporter(catalog, job.id, keeper.generation, names, bounded=bounded, stages=stages) as reporter:
            where = f"tasks run on {file.run.master}" if file.cluster else None
            session.streams.addListener(_listener(keeper, reporter, steps, where))

            order = Watch(bound.order)

            def on_batch(progress: Any, batch: Any) -> None:
                steps.done(BATCH)
                reporter.order = order.look(lambda: progress.rates.per_s(names))
                reporter.add(batch)

            topics = engine.topics_of(bound)
            join = bound.job(heartbeat=not ends)
            driver = Driver(session, join, sinks, topics, on_batch, bound.ending(), unit_progress(keeper))
            reporter.predicted, reporter.slots = engine.foretold(bound), file.slots
            reporter.relations = driver.progress.relations
            try:
                with watched(session, file.cluster, lambda text: keeper.observe(lifecycle.RUNNING, text)):
                    driver.run(until_end=ends, stop=keeper.stop)
            except Exception as failure:
                raise first_cause(failure) from failure
        return None if keeper.stop.is_set() or not ends else "reached the end"
    finally:
        for recent in recents:
            recent.close()


def unit_progress(keeper: Keeper) -> Callable[[int, int], None]:
    """Writes down how far a start is in storing tuples for other queries, at most once a second."""
    from streamjoin.spark.run import change_text

    tell = change_text(lambda text: keeper.observe(lifecycle.STARTING, text))
    told_s = 0.0

    def on_unit(done: int, units: int) -> None:
        nonlocal told_s
        if time.monotonic() - told_s >= 1 or done == units:
            told_s = time.monotonic()
            tell(done, units)

    return on_unit


def _listener(keeper: Keeper, reporter: Reporter, steps: Steps, where: str | None) -> Any:
    from pyspark.sql.streaming.listener import StreamingQueryListener

    class Listener(StreamingQueryListener):
        """Tells when the query runs, and how long each batch took."""

        def onQueryStarted(self, event: Any) -> None:  # noqa: N802
            steps.done(STATE)
            reporter.begin()
            keeper.observe(lifecycle.RUNNING, where)

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802
            if "addBatch" in event.progress.durationMs:
                reporter.took(event.progress.batchDuration)

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802
            pass

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
            pass

    return Listener()


if __name__ == "__main__":
    main()
