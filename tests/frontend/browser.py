"""A platform, and a real browser that walks through its dashboard."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from backend.catalog.database import Catalog
from backend.catalog.ids import now_us
from backend.catalog.models import Job, Report
from backend.frontend import BUILT
from tests.servers.process import ServerProcess, free_ports
from tests.spark.command import JAVA_OPTIONS

ROOT = Path(__file__).parents[2]
FRONTEND = ROOT / "frontend"
API = (sys.executable, "-m", "backend")
UP = (sys.executable, "-m", "worker.up")
MAKE_UP = ("make", "-C", str(ROOT), "-o", ".venv/.ready", "up")
"""As people start it; the environment is there."""
UP_S_MAX = 300.0
WALK_S_MAX = 1500.0
TEST_S_MAX = 1800
END_S_MAX = 120.0


@contextmanager
def platform(folder: Path, program: Sequence[str], **variables: str) -> Iterator[str]:
    """A program that serves a platform, with its data in this folder; gives its address."""
    (port,) = free_ports(1)
    rest = [f"{name}=" for name in os.environ if name.startswith("STREAMJOIN_")]
    mine = {"DATA": str(folder / "data"), "PORT": str(port), "FRONTEND": str(BUILT), **variables}
    given = [f"STREAMJOIN_{name}={value}" for name, value in mine.items()]
    unset = [word for name in rest for word in ("-u", name.removesuffix("="))]
    command = ["env", *unset, *given, f"JAVA_TOOL_OPTIONS={JAVA_OPTIONS}", *program]
    (folder / "data").mkdir()
    process = ServerProcess("the platform", command, folder / "platform.log")
    try:
        process.wait_until(lambda: answers(port), "does not answer", UP_S_MAX)
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.stop(END_S_MAX)


def answers(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/livez", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def report(folder: Path, job_id: str, body: dict[str, Any], *, has_run: bool = False) -> None:
    """What a driver does that has just reported, in the catalog of the platform in this folder.

    Args:
        has_run: the job has a state, which a change may keep or not.
    """
    catalog = Catalog(f"sqlite:///{folder / 'data' / 'catalog.db'}")
    with catalog.begin() as session:
        job = session.get_one(Job, job_id)
        job.wanted = job.observed = "running"
        job.generation = max(job.generation, int(has_run))
        session.add(Report(job_id=job_id, at_us=now_us(), span_s=1, generation=1, body=body))
    catalog.close()


def walk(script: str, browser: tuple[str, str], *arguments: str) -> dict[str, float]:
    """Run a walk; what it found is the failure, and the seconds of its steps are what it gives."""
    node, chromium = browser
    command = [node, f"walk/{script}.mjs", arguments[0], chromium, *arguments[1:]]
    done = subprocess.run(command, cwd=FRONTEND, capture_output=True, text=True, timeout=WALK_S_MAX, check=False)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    return {step: float(seconds) for step, seconds in re.findall(r"^(\w+): ([\d.]+) s$", done.stdout, re.MULTILINE)}
