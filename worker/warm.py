"""A driver that is started before it has a job: `python -m worker.warm`.

It does what every start takes seconds for, Java, Spark's session, Python's workers and a first small join, and waits
then. It gets one job, as soon as it listens, runs it as any driver does, and ends.
"""

from __future__ import annotations

import sys

from backend.private import keep_private
from backend.settings import forget_secrets, read_settings
from streamjoin.errors import InputError
from worker.ready import Warm, own_token


def main() -> None:
    """Wait for a job, and run it."""
    keep_private()
    try:
        settings = read_settings()
    except InputError as wrong:
        sys.exit(f"streamjoin: {wrong}")
    forget_secrets()  # before Java starts; the job's come with it
    warm = Warm(settings, own_token(), _load)
    job_id, generation = warm.job()

    from backend.logs import set_up_logs
    from worker.driver import drive

    set_up_logs("driver", job_id=job_id, generation=generation)
    sys.exit(drive(read_settings(), job_id, generation, warm))


def _load() -> None:
    import worker.driver
    import worker.joining  # noqa: F401


if __name__ == "__main__":
    main()
