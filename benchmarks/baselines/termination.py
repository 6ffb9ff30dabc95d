"""Orderly end on SIGTERM: a benchmark that is stopped must not leave a cluster or a JVM behind."""

import signal
import sys
from types import FrameType


def exit_on_terminate() -> None:
    """From now on SIGTERM leaves the main thread's `with` blocks as an error would, then ends the process."""

    def leave(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, leave)
