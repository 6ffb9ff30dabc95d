"""What a terminal shows while a command runs, and how counts read there."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Any


def progress_line() -> Any:
    """What shows a line in place of the one before, with the seconds since now."""
    begun = time.monotonic()

    def show(line: str) -> None:
        if sys.stderr.isatty():
            width = shutil.get_terminal_size().columns - 1
            text = f"{time.monotonic() - begun:6.1f} s  {line}"[:width]
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    return show


def clear_line() -> None:
    """Take the progress line away."""
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)


def counted(number: int, one: str, many: str | None = None) -> str:
    """How many of a thing: 1 row, 2 rows."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
