"""The whole platform on one machine: `python -m worker.up`.

Redis where none is given, the API, a Celery worker and a reconciler, each as a child that is started again when it
dies. However this process ends, everything that it started ends with it, the drivers of jobs too; jobs that were wanted
to run go on at the next start.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from backend.private import keep_private
from worker.head_start import API, HeadStart


def main() -> None:
    """Run the platform until Ctrl-C, SIGTERM or SIGHUP; a second one ends it at once."""
    keep_private()
    stop = threading.Event()

    def ask(number: int, frame: object) -> None:
        if stop.is_set():
            os._exit(130)  # the guards end everything else
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, ask)
    head_start = HeadStart(API)
    try:
        # Reading settings takes a fifth of what the API needs to load: not before it has begun.
        from streamjoin.errors import InputError, RunError
        from worker.platform import read_up_settings, run

        try:
            run(read_up_settings(), stop, lambda line: print(line, flush=True), head_start)
        except (InputError, RunError) as failure:
            sys.exit(f"streamjoin: {failure}")
    finally:
        head_start.give_up()


if __name__ == "__main__":
    main()
