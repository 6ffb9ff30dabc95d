"""A driver without Spark: it keeps the lease of its generation, and does nothing else until it is to stop.

`STAND_IN=deaf` never stops, `STAND_IN=fails` fails with a mistake of the job's, `STAND_IN=dies` ends without a word.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

from backend.catalog.database import Catalog
from backend.settings import read_settings
from worker.driver import stop_on_signals
from worker.keeper import LOST_STATUS, Keeper, end_with_platform
from worker.leases import LeaseLostError


def main(job_id: str, generation: int) -> int:
    settings, how = read_settings(), os.environ.get("STAND_IN", "")
    stop = threading.Event()
    stop_on_signals(stop)
    keeper = Keeper(settings, Catalog(settings.catalog), job_id, generation, stop)
    try:
        end_with_platform(keeper.die)
        keeper.enter()
    except LeaseLostError:
        return LOST_STATUS
    if how == "dies":
        return 1
    if how == "fails":
        keeper.leave("failed", "query: there is no column x", own_fault=True)
        return 1
    child = subprocess.Popen(["sleep", "600"], process_group=0)  # as Python workers: in the session, not in the group
    keeper.observe("running")
    while how == "deaf" or not stop.is_set():
        time.sleep(0.05)
        if how == "deaf":
            stop.clear()
    child.kill()
    child.wait()
    keeper.leave("stopped", None)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
