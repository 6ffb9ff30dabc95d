"""A driver without Spark that is started before it has a job; with one it does what `stand_in` does.

`WARM_STAND_IN=slow` is never ready, `WARM_STAND_IN=broken` cannot get ready, `WARM_STAND_IN=unfit` gets a job that it
does not fit after all.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

from backend.settings import read_settings
from tests.worker import stand_in
from worker.ready import Warm, own_token


class WithoutSpark(Warm):
    def _made(self) -> Any:
        how = os.environ.get("WARM_STAND_IN", "")
        subprocess.Popen(["sleep", "600"], process_group=0)  # as Java
        if how == "slow":
            time.sleep(600)
        if how == "broken":
            raise OSError("there is no Java")
        return object()


if __name__ == "__main__":
    warm = WithoutSpark(read_settings(), own_token(), lambda: None)
    given = warm.job()
    if os.environ.get("WARM_STAND_IN") == "unfit":
        warm.start_cold(*given)
    sys.exit(stand_in.main(*given))
