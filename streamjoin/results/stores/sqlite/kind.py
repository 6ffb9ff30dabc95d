"""sqlite, as the registry has it."""

from __future__ import annotations

from typing import Annotated

from streamjoin.results.stores.kind import StoreKind
from streamjoin.settings.setting import Settings, setting


class SqliteSettings(Settings):
    """One file."""

    path: Annotated[str, setting("the file of the store, such as results.db; it is made if it is not there")]


SQLITE = StoreKind(
    "sqlite",
    "one file on this machine",
    SqliteSettings,
    lambda settings, resolve: {"path": str(resolve(settings.path))},
    files=lambda settings: {"path": settings.path},
)
