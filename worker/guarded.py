"""Start a program that ends when its parent does, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO

# The shell becomes the program. A guard in its process group reads a pipe whose other end only this process holds, and
# kills the group when the pipe ends: also when this process is killed.
_GUARDED = 'exec 3<&0; (read -r _ <&3; kill -s KILL -- "-$$") & exec "$@" 3<&- </dev/null'


def guarded(
    command: Sequence[str], environment: Mapping[str, str], inherits: Sequence[int], log: IO[bytes] | None
) -> subprocess.Popen[bytes]:
    """Start a program in a process group of its own.

    Args:
        inherits: numbers of open files that it gets; from 50 on, for lower ones are the shell's.
        log: where its output goes; where ours goes unless given.
    """
    return subprocess.Popen(
        ["/bin/sh", "-c", _GUARDED, "sh", *command],
        stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment, start_new_session=True, pass_fds=inherits,
    )  # fmt: skip


def kill_guarded(process: subprocess.Popen[bytes]) -> None:
    """Make sure that nothing of it is left."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # the guard is in the group, so the number is still its own
    process.wait()
    if process.stdin is not None:
        process.stdin.close()
