"""`streamjoin run` as a process under test, which is interrupted, killed, and looked after."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import psutil

from tests.servers import apart
from tests.servers.process import ServerProcess, comes_true

RUN_S_MAX = 600.0
"""A start takes ten seconds on a quiet machine of two cores."""

JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A Java that lives for seconds only is not worth being optimised: this halves what it costs."""

KILLS_S_MAX = 1800
"""A whole test that kills: up to six starts of Spark, on a machine that may be busy."""

GONE_S_MAX = 90.0
"""Java ends when the driver's pipe closes, and Python workers when Java's does."""


class Command(ServerProcess):
    """One `streamjoin run`.

    Args:
        file: the join file; the log is kept beside it.
        failpoints: see `streamjoin.failpoints`.
        own: it runs apart, and has no other folder to write to; see `tests.servers.apart`.
    """

    def __init__(self, file: Path, *arguments: str, failpoints: str = "", own: Path | None = None) -> None:
        java = JAVA_OPTIONS if own is None else f"{JAVA_OPTIONS} {apart.java_options(own)}"
        environment = ["env", f"STREAMJOIN_FAILPOINTS={failpoints}", f"JAVA_TOOL_OPTIONS={java}"]
        if own is not None:
            variables = apart.variables(own).items()
            environment = [*apart.apart(own), *environment, *(f"{name}={value}" for name, value in variables)]
        command = [*environment, sys.executable, "-m", "streamjoin.cli.commands", "run", str(file), *arguments]
        super().__init__("streamjoin run", command, file.with_suffix(".log"))

    def exit_status(self) -> int:
        """Wait for the driver to end by itself, and for everything it started; the exit status, -9 if it was killed."""
        assert comes_true(lambda: not self.is_running(), RUN_S_MAX), self.with_log_tail("the driver does not end")
        assert comes_true(lambda: not self.survivors(), GONE_S_MAX), f"still there: {self.survivors()}"
        status = self.process.poll()
        assert status is not None
        self.kill()
        return status

    def crash(self) -> int:
        """Kill the driver and nothing else; the exit status."""
        os.kill(self.pid, signal.SIGKILL)
        return self.exit_status()

    def survivors(self) -> list[str]:
        """Command lines of what the driver started and still runs."""
        found = []
        for process in psutil.process_iter():
            try:
                # Workers have process groups of their own, and all of them the driver's session.
                if os.getsid(process.pid) != self.pid or process.status() == psutil.STATUS_ZOMBIE:
                    continue
                line = process.cmdline()
            except (psutil.Error, ProcessLookupError):
                continue
            # The shell is the guard of ServerProcess.
            if process.pid != self.pid and line[:2] != ["/bin/sh", "-c"]:
                found.append(" ".join(line)[:100])
        return found
