"""Commands that use, start and examine the platform; `add_commands` puts them on the command line."""

from __future__ import annotations

import cyclopts

from streamjoin.cli.platform.call import call
from streamjoin.cli.platform.jobs import app as jobs_app
from streamjoin.cli.platform.machines import machines
from streamjoin.cli.platform.questions import ask, watch
from streamjoin.cli.platform.relations import app as relations_app
from streamjoin.cli.platform.server import config_app, doctor, support_bundle, up
from streamjoin.cli.platform.streams import app as streams_app
from streamjoin.cli.platform.uploads import app as uploads_app
from streamjoin.cli.platform.uploads import files


def add_commands(app: cyclopts.App) -> None:
    """Add all of them."""
    for group in (streams_app, relations_app, uploads_app, jobs_app, config_app):
        app.command(group)
    for command in (ask, watch, call, files, machines, up, doctor, support_bundle):
        app.command(command)
