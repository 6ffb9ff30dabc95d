"""Serve the API: `python -m backend`, set up by STREAMJOIN_ variables."""

from __future__ import annotations

import gc
import logging
import sys


def main() -> None:
    """Migrate the catalog, and serve until SIGTERM or Ctrl-C."""
    gc.disable()  # while so much is made that stays, looking through it would take a third of the start
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import SQLAlchemyError

    from backend.app import create_app
    from backend.auth.first_password import welcome
    from backend.auth.first_user import ensure_admin
    from backend.catalog.version import is_newest
    from backend.handover import take_over
    from backend.logs import set_up_logs
    from backend.private import keep_private, tighten
    from backend.serve import serve
    from backend.settings import read_settings
    from streamjoin.errors import InputError
    from streamjoin.sources.database import log_in_by_urls_alone

    take_over()
    keep_private()
    log_in_by_urls_alone()
    try:
        settings = read_settings()
        set_up_logs("api")
        if closed := tighten(settings.data):
            logging.getLogger("streamjoin.data").warning("%s", closed)
        try:
            if not is_newest(settings.catalog):
                from backend.catalog.migrate import migrate

                migrate(settings.catalog)
        except SQLAlchemyError as failure:
            shown = make_url(settings.catalog).render_as_string(hide_password=True)
            raise InputError(f"the catalog {shown} cannot be used: {failure}") from None
        app = create_app(settings)
    except InputError as wrong:
        sys.exit(f"streamjoin: {wrong}")
    context = app.state.context
    if ensure_admin(settings, context.catalog):
        print(f"streamjoin: {welcome(settings.data, to_terminal=sys.stdout.isatty())}", flush=True)
    serve(app, settings)


if __name__ == "__main__":
    main()
