"""Commands that use, start and examine the platform; `add_commands` puts them on the command line."""

from __future__ import annotations

import cyclopts

from streamjoin.platform_cli.call import call
from streamjoin.platform_cli.jobs import app as jobs_app
from streamjoin.platform_cli.questions import ask, watch
from streamjoin.platform_cli.relations import app as relations_app
from streamjoin.platform_cli.server import config_app, doctor, support_bundle, up
from streamjoin.platform_cli.streams import app as streams_app
from streamjoin.platform_cli.uploads import app as uploads_app
from streamjoin.platform_cli.uploads import files


def add_commands(app: cyclopts.App) -> None:
    """Add all of them."""
    for group in (streams_app, relations_app, uploads_app, jobs_app, config_app):
        app.command(group)
    for command in (ask, watch, call, files, up, doctor, support_bundle):
        app.command(command)
