"""The platform as a child of the demo: `python -m worker.up` with a data folder of its own, which goes when we go."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from streamjoin.errors import RunError
from tests.servers import ServerFailed
from tests.servers.process import ServerProcess, free_ports
from worker import processes

PORT: Final = 8000
"""Where people look for the platform first."""
START_S_MAX: Final = 90.0
LOG_TAIL_LINES: Final = 15
END_S_MAX: Final = 40.0
"""The platform lets its drivers finish a batch, and kills what then still runs."""


class Platform:
    """A platform that may be started inside the `with` block, at `url`, and does not outlive it.

    Args:
        data: its folder.
        log: takes what it says.
        settings: further variables of its environment, without STREAMJOIN_ in front.
    """

    def __init__(self, data: Path, log: Path, settings: Mapping[str, str]) -> None:
        self.data = data.absolute()
        self.log = log
        port = os.environ.get("STREAMJOIN_PORT") or str(free_port())
        self.url = f"http://127.0.0.1:{port}"
        self.is_at_home = port == str(PORT)
        self.settings = {"DATA": str(self.data), "PORT": port, **settings}
        self._process: ServerProcess | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def start(self) -> None:
        """Start it, and wait until it is up.

        Raises:
            RunError: it does not start; the message has its own reason.
        """
        self._process = ServerProcess(
            "the platform", [*self._environment(), sys.executable, "-m", "worker.up"], self.log
        )
        try:
            self._process.wait_for_output("streamjoin is up", START_S_MAX)
        except ServerFailed:
            raise RunError(f"the platform did not start: {_reason(self._process)}") from None

    def check(self) -> None:
        """Raise if it has ended.

        Raises:
            RunError: it has; the message has its own reason.
        """
        if self._process is not None and not self._process.is_running():
            raise RunError(f"the platform ended with {self._process.process.returncode}: {_reason(self._process)}")

    def end(self) -> None:
        """Let it end as by Ctrl-C, then make sure that nothing of it is left.

        Raises:
            RunError: something is.
        """
        if self._process is None:
            return
        if self._process.is_running():
            print("ending the platform ...", flush=True)
            self._process.process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self._process.process.wait(END_S_MAX)
        self._process.kill()
        if left := processes.kill_all(lambda: processes.members(self.data)):
            raise RunError(f"processes {left} of the platform cannot be ended")
        print("everything has ended", flush=True)

    def _environment(self) -> list[str]:
        # A platform that somebody has set up for other work must not be touched: its catalog, its Redis.
        others = [name for name in os.environ if name.startswith("STREAMJOIN_") and name != "STREAMJOIN_CACHE"]
        unset = [word for name in others for word in ("-u", name)]
        return ["env", *unset, *(f"STREAMJOIN_{name}={value}" for name, value in self.settings.items())]


def free_port() -> int:
    """8000, or another one where that is taken."""
    # Unlike a bare bind this gets along with the connections of a platform that ended a moment ago.
    with suppress(OSError), socket.create_server(("127.0.0.1", PORT)):
        return PORT
    return free_ports(1)[0]


def _reason(process: ServerProcess) -> str:
    """Why a platform ended or did not start: its own sentence, else the end of its log."""
    lines = process.output().splitlines()
    said = next((number for number, line in enumerate(lines) if line.startswith("streamjoin: ")), None)
    if said is None:
        return f"{process.log} ends with:\n" + "\n".join(lines[-LOG_TAIL_LINES:])
    return "\n".join(lines[said:]).removeprefix("streamjoin: ")
