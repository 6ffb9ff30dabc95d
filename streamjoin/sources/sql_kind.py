"""A table of a database as a relation, as the registry has it."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import pyarrow as pa

from streamjoin.errors import InputError
from streamjoin.plan.schema import left_out
from streamjoin.settings.setting import Settings, setting
from streamjoin.sources.asked import asked
from streamjoin.sources.database import Database
from streamjoin.sources.kind import Columns, Resolve, SourceKind
from streamjoin.sources.sql import SqlTable, columns_of

_NAME_MAX = 200


class SqlSettings(Settings):
    """One table."""

    url: Annotated[
        str, setting("postgresql://user:password@host/database, or sqlite:///a/file.db; the password is never shown")
    ]
    table: Annotated[str, setting("a table or view, with its schema before it where that is needed: sales.rates")]

    def database(self, resolve: Resolve) -> Database:
        """Where it is, with the path of a file as an absolute one.

        Raises:
            InputError: the URL is none.
        """
        found = Database(self.url)
        return found if found.file is None else Database(f"sqlite:///{quote(str(resolve(found.file)))}")


def _check(settings: SqlSettings, has_columns: bool) -> None:
    Database(settings.url)
    parts = settings.table.split(".")
    if len(parts) > 2 or not all(parts) or len(settings.table) > _NAME_MAX or "\0" in settings.table:
        raise InputError("is a table's name, such as rates or sales.rates", field="table")


def _look(settings: SqlSettings, columns: pa.Schema | None, resolve: Resolve) -> pa.Schema:
    found = asked(columns_of, settings.database(resolve).url, settings.table)
    if columns is None:
        return found
    if missing := [name for name in columns.names if name not in found.names and name not in left_out(found)]:
        raise InputError(
            f'{settings.table} has no column "{missing[0]}"; it has {", ".join(found.names[:20])}', field="table"
        )
    return columns


SQL = SourceKind(
    "sql",
    "a table of a database",
    SqlSettings,
    Columns.CARRIED,
    _look,
    check=_check,
    files=lambda given: {} if (file := Database(given.url).file) is None else {"url": file},
    hosts=lambda given: Database(given.url).host,
    table=lambda name, given, columns, refresh_us, resolve: SqlTable(
        name, columns, refresh_us, given.database(resolve), given.table
    ),
    no_relation=None,
)
"""Of relations alone: whose rows end."""
