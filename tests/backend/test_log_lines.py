"""Lines of the platform's logs: what is the process's stands in each of them."""

from __future__ import annotations

import json
import subprocess
import sys

PROGRAM = """
import logging, threading
from backend.logs import set_up_logs
set_up_logs("driver", job_id="job_1", generation=2)
log = logging.getLogger("streamjoin.driver")
log.info("from %s", "here")
thread = threading.Thread(target=log.warning, args=("from another thread",))
thread.start()
thread.join()
"""


def test_a_line_from_any_thread_says_which_process_it_is_from() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["event"] for line in lines] == ["from here", "from another thread"]
    for line in lines:
        assert {name: line[name] for name in ("service", "job_id", "generation")} == {
            "service": "driver",
            "job_id": "job_1",
            "generation": 2,
        }
