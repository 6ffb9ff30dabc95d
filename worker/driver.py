"""The driver of one generation of a job: `python -m worker.driver JOB GENERATION`.

It holds the job's lease while it runs, and ends itself before anybody else could take it. Killing it at any moment is
safe: the next generation goes on from the last committed batch.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError

from backend.catalog import lifecycle
from backend.catalog.database import Catalog
from backend.catalog.models import Job
from backend.logs import set_up_logs
from backend.private import keep_private
from backend.settings import Settings, forget_secrets, read_settings
from streamjoin.errors import InputError, StreamJoinError
from worker.decide import LINGER_S
from worker.keeper import LOST_STATUS, Keeper, end_with_platform
from worker.leases import LeaseLostError
from worker.steps import PROCESS, SPARK, Steps

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
    from streamjoin.sources.database import log_in_by_urls_alone
    from worker import joining

    log_in_by_urls_alone()
    ends = job.spec.until_end
    file = joining.read_job(settings, catalog, job)
    bound = joining.bind_job(file, until_end=ends)
    steps.done(PROCESS)
    if keeper.stop.is_set():
        return None
    sinks, recents = joining.open_results(settings, bound, keeper.generation)
    session = joining.take_session(file, keeper, warm)
    afterwards.callback(session.stop)
    steps.done(SPARK)
    try:
        joining.join(session, bound, sinks, keeper, steps, until_end=ends)
        return None if keeper.stop.is_set() or not ends else "reached the end"
    finally:
        for recent in recents:
            recent.close()


if __name__ == "__main__":
    main()
