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
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from backend.catalog import lifecycle
from backend.catalog.database import Catalog
from backend.catalog.models import Job, Stream
from backend.logs import set_up_logs
from backend.private import keep_private
from backend.problems import Problem
from backend.settings import Settings, read_settings
from streamjoin.errors import InputError, StreamJoinError, UnsupportedError
from worker.keeper import LOST_STATUS, Keeper, end_with_platform
from worker.leases import LeaseLostError
from worker.reports import Reporter

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


def drive(settings: Settings, job_id: str, generation: int) -> int:
    """Run one generation of a job; gives the exit status: 0 stopped, 1 failed, 3 another one has the lease."""
    stop = threading.Event()
    stop_on_signals(stop)
    catalog = Catalog(settings.catalog)
    keeper = Keeper(settings, catalog, job_id, generation, stop)
    try:
        end_with_platform(keeper.die)
        job = keeper.enter()
    except LeaseLostError as lost:
        _log.error("%s", lost)
        return LOST_STATUS
    except SQLAlchemyError as failure:
        _log.error("the catalog does not answer: %s", failure)
        return 1
    try:
        reason = run(settings, catalog, keeper, job)
    except StreamJoinError as failure:
        _log.error("failed: %s", failure)
        keeper.leave(lifecycle.FAILED, str(failure), own_fault=isinstance(failure, InputError))
        return 1
    except Exception as failure:
        _log.exception("failed")
        keeper.leave(lifecycle.FAILED, f"{type(failure).__name__}: {failure}"[:500])
        return 1
    keeper.leave(lifecycle.STOPPED, reason, at_end=reason is not None)
    return 0


def run(settings: Settings, catalog: Catalog, keeper: Keeper, job: Job) -> str | None:
    """Join until told to stop; gives the reason why it ended by itself, if it did.

    Raises:
        InputError: the job is wrong.
        StreamJoinError: it failed; the message is the first cause.
    """
    # The engine takes seconds to import, and a lease must be entered before.
    from backend.jobs.inputs import inputs_of
    from backend.jobs.joinfile import check_places, join_file, until_end
    from backend.results.memory import recent_for
    from streamjoin.operators import registry
    from streamjoin.prepare import bind, require_ends, store_sink
    from streamjoin.spark import run as engine
    from streamjoin.spark.driver import Driver, first_cause

    ends = until_end(job)
    secrets = _secrets(settings, catalog, job)
    try:
        check_places(settings, inputs_of(job), secrets)
    except Problem as refused:
        raise InputError(refused.detail) from None
    file = join_file(settings, job, secrets)
    if ends:
        require_ends(file)
    bound = bind(file)
    if bound.operator == registry.SPARK:
        raise UnsupportedError("Spark's own join keeps no results in a store; take biclique", field="operator.name")
    if keeper.stop.is_set():
        return None
    sinks = [store_sink(query) for query in bound.queries]
    recents = []
    for sink in sinks:
        recent, sink.memory = recent_for(settings, sink.job)
        sink.recent = recent
        recents.append(recent)
    session = engine.open_session(file, settings.spark_master)
    try:
        with Reporter(catalog, job.id, keeper.generation, bound.plan.names) as reporter:
            session.streams.addListener(_listener(keeper, reporter))

            def on_batch(_: Any, batch: Any) -> None:
                reporter.add(batch)

            topics = engine.topics_of(bound)
            join = bound.job(heartbeat=not ends)
            driver = Driver(session, join, sinks, topics, on_batch, bound.ending(), unit_progress(keeper))
            try:
                driver.run(until_end=ends, stop=keeper.stop)
            except Exception as failure:
                raise first_cause(failure) from failure
        return None if keeper.stop.is_set() or not ends else "reached the end"
    finally:
        for recent in recents:
            recent.close()
        session.stop()


def _secrets(settings: Settings, catalog: Catalog, job: Job) -> dict[str, dict[str, Any]]:
    """What connects to a job's streams, by stream."""
    from backend.auth.secrets import open_sealed

    with catalog.read() as session:
        streams = session.scalars(select(Stream).where(Stream.name.in_(list(job.streams))))
        return {stream.name: open_sealed(settings, stream.secrets) for stream in streams if stream.secrets}


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


def _listener(keeper: Keeper, reporter: Reporter) -> Any:
    from pyspark.sql.streaming.listener import StreamingQueryListener

    class Listener(StreamingQueryListener):
        """Tells when the query runs, and how long each batch took."""

        def onQueryStarted(self, event: Any) -> None:  # noqa: N802
            reporter.begin()
            keeper.observe(lifecycle.RUNNING)

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
