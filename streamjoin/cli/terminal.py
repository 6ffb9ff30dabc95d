"""What a terminal shows while a command runs, and how counts read there."""

from __future__ import annotations

import codecs
import io
import json
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


def write_all_letters() -> None:
    """Where a terminal is not UTF-8, write letters that it does not have as \\u20ac, and do not fail at them."""
    codecs.register_error("streamjoin.letters", _as_json_does)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
            stream.reconfigure(errors="streamjoin.letters")


def _as_json_does(error: UnicodeError) -> tuple[str, int]:
    """Letters as JSON has them in ASCII, so that what is written as JSON stays JSON."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


def clear_line() -> None:
    """Take the progress line away."""
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)


def counted(number: int, one: str, many: str | None = None) -> str:
    """How many of a thing: 1 row, 2 rows."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
