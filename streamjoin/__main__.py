"""The program `streamjoin`."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec


def main() -> None:
    """The entry point of every command; a platform is started without loading what the others need."""
    if sys.argv[1:] == ["up"] and find_spec("fastapi") is not None:  # else the command line says what to install
        import_module("worker.up").main()
        return
    from streamjoin.cli.commands import main as command_line

    command_line()


if __name__ == "__main__":
    main()
