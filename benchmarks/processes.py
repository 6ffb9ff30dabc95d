"""Running one measured program: in a process of its own, with a log, a time limit, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.footprint import Footprint
from benchmarks.limited import Cgroup
from benchmarks.scale import ROOT

ORDERLY_END_S = 30.0
KILLED_END_S = 15.0
LOG_TAIL_CHARACTERS = 1500


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended.

    Args:
        status: exit status; negative for a signal.
        seconds: from start to end.
        cut_off: it was stopped because its time was over.
        memory: peaks of the tree, see `Footprint`.
    """

    status: int
    seconds: float
    cut_off: bool
    memory: dict[str, int]
    log: Path

    @property
    def tail(self) -> str:
        """The end of its output."""
        return self.log.read_text(errors="replace")[-LOG_TAIL_CHARACTERS:]


def start(
    command: Sequence[str], log: Path, cgroup: Cgroup | None = None, code: Path = ROOT
) -> subprocess.Popen[bytes]:
    """Start a program of the project, as it is in `code`; its output goes to `log`. It begins a session of its own."""
    log.parent.mkdir(parents=True, exist_ok=True)
    given = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    paths = [str(code), *(path for path in given if Path(path).resolve() != ROOT)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)), "PYTHONUNBUFFERED": "1"}
    if cgroup is not None:
        # The shell enters the group, then becomes the program: every process it starts is inside from the first page.
        command = ["/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', str(cgroup.processes), *command]
    with log.open("wb") as out:
        return subprocess.Popen(
            list(command), cwd=code, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
            env=environment, start_new_session=True,
        )  # fmt: skip


def run(
    command: Sequence[str], *, limit_s: float, log: Path, cgroup: Cgroup | None = None, watched: Path | None = None,
    code: Path = ROOT,
) -> Ended:  # fmt: skip
    """Run a program to its end, or for `limit_s`; then it is asked to stop, and killed if it does not.

    Args:
        watched: see `Footprint`.
        code: the checkout that it is a program of.
    """
    begun = time.monotonic()
    process = start(command, log, cgroup, code)
    cut_off = False
    try:
        with Footprint(process.pid, watched) as footprint:
            try:
                process.wait(limit_s)
            except subprocess.TimeoutExpired:
                cut_off = True
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(ORDERLY_END_S)
    finally:
        kill(process)
    return Ended(process.returncode, time.monotonic() - begun, cut_off, footprint.to_json(), log)


def kill(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL for a program and everything it started, all at once as in a crash; waits until they are gone.

    Spark's Python workers leave the group of their parent, so the tree is walked. What outlives its parent is found by
    the session it was started in.
    """
    try:
        tree = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        tree = []
    tree += [one for one in psutil.process_iter() if _session(one.pid) == process.pid and one not in tree]
    with suppress(ProcessLookupError):
        process.kill()
    for one in tree:
        with suppress(psutil.NoSuchProcess):
            one.send_signal(signal.SIGKILL)
    psutil.wait_procs(tree, KILLED_END_S)
    process.wait()


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except (ProcessLookupError, PermissionError):
        return None
