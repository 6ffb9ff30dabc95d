"""The API begins to load before the settings are read, which another core does meanwhile."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Final

from backend.handover import CHANNEL, hand_over
from backend.listener import above_shell
from worker.guarded import guarded, kill_guarded

API: Final = (sys.executable, "-m", "backend")


class HeadStart:
    """A process of the API that loads, and then waits to be told how to serve.

    What it writes before that goes where our output goes.
    """

    def __init__(self, command: Sequence[str]) -> None:
        ours, theirs = socket.socketpair()
        with theirs, above_shell(theirs) as given:
            environment = {**os.environ, CHANNEL: str(given.fileno()), "PYTHONUNBUFFERED": "1"}
            self.process: subprocess.Popen[bytes] | None = guarded(command, environment, [given.fileno()], None)
        self._channel = ours
        self.started_s = time.monotonic()

    def goes_on(self, environment: Mapping[str, str], listener: int, log: IO[bytes]) -> subprocess.Popen[bytes]:
        """Tell it how to serve; the process is the caller's from now on.

        Args:
            environment: as a process that is started now would get it.
        """
        process, self.process = self.process, None
        assert process is not None
        with self._channel, suppress(OSError):  # it has ended, which the caller sees as of any process
            hand_over(self._channel, environment, listener, log.fileno())
        return process

    def give_up(self) -> None:
        """End it, if it was not told."""
        if self.process is not None:
            self._channel.close()
            kill_guarded(self.process)
            self.process = None
