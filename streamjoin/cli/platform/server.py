"""Commands for whoever runs the platform: start it, examine its machine, show settings, collect what support needs."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import cyclopts

from streamjoin.cli.places import WrittenIfGiven
from streamjoin.cli.platform.common import HERE, Output, Where, note, platform_part, show

config_app = cyclopts.App(name="config", help="Settings of the platform.")


def up() -> None:
    """Run the platform on this machine until Ctrl-C: the API, a worker, and Redis where none is given.

    Set up by STREAMJOIN_ variables; `streamjoin config show` lists them.
    """
    _platform().up()


def doctor(*, output: Output = "table") -> None:
    """Look whether `streamjoin up` can run here, and say what to do where it cannot; exit status 1 then."""
    platform = _platform()
    found = platform.all_checks(platform.read_up_settings)
    if output == "table":
        for check in found:
            print(
                f"{check.verdict:<5} {check.what:<9} {check.detail}" + (f"\n{'':15} {check.todo}" if check.todo else "")
            )
    else:
        show([check.to_json() for check in found], output, ("what", "verdict", "detail", "todo"))
    if any(check.verdict == "wrong" for check in found):
        sys.exit(1)


@config_app.command(name="show")
def config_show(*, output: Output = "table") -> None:
    """Show the platform's settings as the environment gives them; secrets are masked."""
    from streamjoin.cli.platform.masked import masked_settings

    rows = masked_settings(_platform().read_settings())
    if output in ("json", "yaml"):
        show({row["setting"]: row["value"] for row in rows}, output)
    else:
        show(rows, output, ("setting", "value", "source"))


@config_app.command(name="rotate-key")
def config_rotate_key() -> None:
    """Seal all connection secrets with another key: STREAMJOIN_SECRET_KEY, where STREAMJOIN_FORMER_SECRET_KEY was.

    Stop the platform first, and start it with the new key. Done again it changes nothing.
    """
    _platform().rotate_key()


def support_bundle(file: WrittenIfGiven = None, *, where: Where = HERE) -> None:
    """Collect logs, settings without secrets, events and versions in one archive, for whoever is asked for help.

    Parameters
    ----------
    file
        The archive; streamjoin-support-DATE.zip unless given. One that is there is not replaced.
    """
    from streamjoin.cli.platform.bundle import write_bundle

    if file is None:
        file = Path(f"streamjoin-support-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.zip")
    platform = _platform()
    parts = write_bundle(file, platform.read_up_settings, platform.all_checks, where)
    for part, what in parts.items():
        note(f"{part}: {what}")
    print(file)


def _platform() -> Any:
    """What is not installed is told before anything starts."""
    return platform_part("worker.commands")
