"""A server process under test: started, watched until it is ready, stopped or killed, and never left behind.

The server leads a session and a process group of its own, so an interrupt from the terminal reaches the tests only and
a kill reaches everything the server started.

It also dies with us, however we die. A guard in its group reads a pipe whose other end only we hold; when we are gone
the read ends and the guard kills the group. The kernel's parent-death signal would not do: it is sent when the thread
that started the child ends, and asking for it takes Python code between fork and exec, which may deadlock in a process
with threads.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

PAUSE_S = 0.02
LOG_TAIL_LINES = 20

# The ports that the system hands to outgoing connections start here. One of those could take a port between the moment
# we find it free and the moment the server listens on it.
EPHEMERAL_PORT_MIN = 32768
LISTEN_PORT_MIN = 20000

# The shell becomes the server, so the process id is the server's own. The guard is a child of it in the same group.
GUARDED = 'exec 3<&0; (read -r _ <&3; kill -s KILL -- "-$$") & exec "$@" 3<&- </dev/null'


class ServerFailed(Exception):
    """A server ended, or did not do what was waited for in time. The message ends with the last lines of its log."""


class ServerProcess:
    """One run of a server, from start to end. To run it again make a new one; a log file may be shared by the runs.

    Args:
        name: what messages call it.
        command: program and arguments.
        log: file that takes its output, appended to.
    """

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name = name
        self.log = log
        self.group_is_gone = False
        with log.open("ab") as output:
            self.log_start = output.tell()
            self.process = subprocess.Popen(
                ["/bin/sh", "-c", GUARDED, "sh", *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        return self.process.pid

    def is_running(self) -> bool:
        return self.process.poll() is None

    def output(self) -> str:
        """What this run has written so far."""
        with self.log.open("rb") as log:
            log.seek(self.log_start)
            return log.read().decode(errors="replace")

    def wait_for_output(self, text: str, deadline_s: float) -> None:
        """Wait until this run has written `text`; for the errors see `wait_until`."""
        self.wait_until(lambda: text in self.output(), f'did not write "{text}"', deadline_s)

    def wait_until(self, condition: Callable[[], bool], otherwise: str, deadline_s: float) -> None:
        """Wait until `condition` holds and the server still runs.

        Args:
            otherwise: what to say when it never holds, after the server's name: "does not listen".
            deadline_s: seconds from now.
        Raises:
            ServerFailed: the server ended first, or the deadline passed. The server is left as it is.
        """

        def holds_while_running() -> bool:
            # In this order: a server that writes its line and ends at once is not a ready server.
            held = condition()
            if not self.is_running():
                raise ServerFailed(self.with_log_tail(f"{self.name} ended with {self.process.returncode}"))
            return held

        if not comes_true(holds_while_running, deadline_s):
            raise ServerFailed(self.with_log_tail(f"{self.name} {otherwise} within {deadline_s:g} s"))

    def stop(self, grace_s: float = 10.0) -> None:
        """Ask the server to end, then make it. Afterwards nothing of its group runs. It may have ended already."""
        if self.is_running():
            self.process.terminate()
            # One that takes longer is not asked again.
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(grace_s)
        self.kill()

    def kill(self) -> None:
        """End the whole group at once, as a crash would, and wait for the server to be gone."""
        if self.group_is_gone:
            return
        # The group's id cannot belong to strangers yet: the guard stays in the group until this very signal.
        with suppress(ProcessLookupError):  # Someone else killed all of it, guard and all.
            os.killpg(self.pid, signal.SIGKILL)
        self.group_is_gone = True
        self.process.wait()
        if self.process.stdin:
            self.process.stdin.close()

    def with_log_tail(self, sentence: str) -> str:
        tail = "\n".join(self.output().splitlines()[-LOG_TAIL_LINES:])
        return f"{sentence}; its log ends with:\n{tail}"


def comes_true(condition: Callable[[], bool], deadline_s: float) -> bool:
    """Look at `condition` until it holds or the deadline, in seconds from now, has passed; tell which it was."""
    deadline = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(PAUSE_S)
    return True


def free_ports(count: int) -> list[int]:
    """Different ports of 127.0.0.1 on which nobody listens just now."""
    ports: list[int] = []
    while len(ports) < count:
        # Random rather than the lowest free one, so that test runs side by side seldom choose the same.
        port = random.randrange(LISTEN_PORT_MIN, EPHEMERAL_PORT_MIN)
        if port not in ports and is_free(port):
            ports.append(port)
    return ports


def kept_ports(file: Path, count: int) -> list[int]:
    """The ports that `file` names, for servers that come back where they were; `free_ports` when there is no file."""
    if not file.exists():
        file.write_text(json.dumps(free_ports(count)))
    return list(json.loads(file.read_text()))


def is_free(port: int) -> bool:
    with socket.socket() as listener:
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
