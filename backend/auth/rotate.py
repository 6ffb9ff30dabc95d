"""Seal all connection secrets with another key: `streamjoin config rotate-key`, or `python -m backend.auth.rotate`."""

from __future__ import annotations

import sys

from pydantic import SecretStr
from sqlalchemy import select

from backend.auth.secrets import is_sealed_with, open_sealed, seal
from backend.catalog.database import Catalog
from backend.catalog.events import record
from backend.catalog.models import Relation, Stream
from backend.problems import Problem
from backend.settings import Settings, read_settings
from streamjoin.errors import InputError


def rotate(settings: Settings, former: SecretStr, catalog: Catalog) -> int:
    """Open what was sealed with the former key, and seal it with that of the settings; gives how many there were.

    All of them in one transaction. What has the new key already stays, so it may be done again.

    Raises:
        InputError: a key is missing, or something was sealed with neither.
    """
    before = settings.model_copy(update={"secret_key": former})
    changed = 0
    with catalog.begin() as session:
        for table in (Stream, Relation):
            for row in session.scalars(select(table).where(table.secrets.is_not(None)).with_for_update()):
                try:
                    if not is_sealed_with(settings, row.secrets or b""):
                        row.secrets = seal(settings, open_sealed(before, row.secrets or b""))
                        changed += 1
                except Problem as wrong:
                    raise InputError(
                        f"{table.__name__.lower()} {row.name}: {wrong.detail}; nothing was changed"
                    ) from None
        if changed:
            record(session, "secrets.rotated", f"{_secrets_of(changed)} were sealed with another key")
    return changed


def _secrets_of(count: int) -> str:
    return f"secrets of {count} streams and relations"


def main() -> None:
    """Rotate, as the environment says."""
    try:
        settings = read_settings()
        if settings.former_secret_key is None:
            raise InputError("set STREAMJOIN_FORMER_SECRET_KEY, or its _FILE, to the key that was used until now")
        catalog = Catalog(settings.catalog)
        changed = rotate(settings, settings.former_secret_key, catalog)
        catalog.close()
    except InputError as wrong:
        sys.exit(f"streamjoin: {wrong}")
    print(f"{_secrets_of(changed)} have the new key now; start the platform with it", file=sys.stderr)


if __name__ == "__main__":
    main()
