"""Lines of the platform's logs: what is the process's stands in each of them."""

from __future__ import annotations

import json
import os
import pty
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


FORGED = """
import logging
from backend.logs import set_up_logs
set_up_logs("api")
log = logging.getLogger("streamjoin.requests")
log.info("%s %s -> %d", "GET", "/x\\n2026-01-01 [info] admin logged in\\x1b[2J\\u202egnp", 404)
try:
    raise ValueError("two\\nlines")
except ValueError:
    log.exception("failed")
"""


def test_attack_what_is_asked_for_makes_no_line_of_its_own_and_tells_a_terminal_nothing() -> None:
    command = [sys.executable, "-c", FORGED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    first, second = (json.loads(line) for line in done.stderr.splitlines())
    assert first["event"] == r"GET /x\n2026-01-01 [info] admin logged in\x1b[2J\u202egnp -> 404"
    assert second["event"] == "failed" and "ValueError: two\nlines" in second["exception"]
    # A terminal, which gets lines for people.
    master, slave = pty.openpty()
    with os.fdopen(slave, "wb") as terminal:
        subprocess.run(command, stderr=terminal, timeout=60, check=True)
    shown = os.read(master, 65536).decode()
    os.close(master)
    (line,) = [line for line in shown.splitlines() if "logged in" in line]
    assert r"GET /x\n2026-01-01" in line and "\x1b[2J" not in shown and "\u202e" not in shown
