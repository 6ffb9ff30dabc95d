"""The command line: `streamjoin run | validate | schema | explain | preview | compare | query | tail | rejected |
state | generate`, and those of the platform, `streamjoin up | streams | jobs | ask | watch | ...`."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import cyclopts

from streamjoin.cli.generating import generate
from streamjoin.cli.joinfile import with_place
from streamjoin.cli.planning import explain, preview, schema, validate
from streamjoin.cli.platform import add_commands
from streamjoin.cli.platform.relations import app as relations_app
from streamjoin.cli.rejected import show_rejected
from streamjoin.cli.relations import refresh_relation, relation_versions
from streamjoin.cli.results import query, tail
from streamjoin.cli.running import compare, run
from streamjoin.cli.state import state_ls, state_show
from streamjoin.cli.terminal import clear_line, write_all_letters
from streamjoin.errors import InputError, StreamJoinError

app = cyclopts.App(name="streamjoin", help="Exact online joins of data streams.", version_flags=["--version"])
state_app = cyclopts.App(name="state", help="Look into the state of a job.")
app.command(state_app)
for command in (run, validate, schema, explain, preview, compare, generate, query, tail):
    app.command(command)
app.command(show_rejected, name="rejected")
state_app.command(state_ls, name="ls")
state_app.command(state_show, name="show")
add_commands(app)
relations_app.command(relation_versions, name="versions")
relations_app.command(refresh_relation, name="refresh")


def main() -> None:
    """The entry point; exit status 2 for wrong input, 1 for a failure while running."""
    write_all_letters()
    try:
        app(sys.argv[1:], exit_on_error=False, print_error=True)
        sys.stdout.flush()
    except cyclopts.CycloptsError:
        sys.exit(2)
    except InputError as wrong:
        _fail(with_place(wrong), 2)
    except StreamJoinError as failure:
        _fail(str(failure), 1)
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as failure:
        place = f"{failure.filename}: " if failure.filename else ""
        _fail(f"{place}{failure.strerror or failure}", 1)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as mistake:
        if os.environ.get("STREAMJOIN_TRACEBACK"):
            raise
        kind = type(mistake).__name__
        _fail(f"this is a mistake in StreamJoin: {kind}: {mistake} (STREAMJOIN_TRACEBACK=1 shows where)", 1)


def _fail(message: str, status: int) -> NoReturn:
    clear_line()
    print(f"streamjoin: {message}", file=sys.stderr)
    sys.exit(status)


if __name__ == "__main__":
    main()
