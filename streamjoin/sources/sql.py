"""Tables of databases as relations, read as Arrow columns while they come, by the drivers of Arrow's ADBC.

PostgreSQL sends a table by COPY, and SQLite row after row; neither is ever held as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.errors import InputError, RunError
from streamjoin.plan.schema import SIMPLE_TYPES, left_out, type_name, without
from streamjoin.plan.types import DIGITS_MAX, is_text
from streamjoin.sources.columns import readable
from streamjoin.sources.database import Database
from streamjoin.sources.served import ServedTable, quoted

_BATCH_ROWS = 1 << 16
"""Of SQLite, whose columns have the type that their values have in the first so many rows."""
_BATCH_BYTES = 8 << 20
"""Of PostgreSQL, about."""
_NUMERIC = "numeric"
_AS_TEXT = frozenset(("uuid", "json", "jsonb", "bpchar", "varchar", "name", "inet", "cidr", "macaddr", "xml", "citext"))
_TYPE, _TYPE_OF_OPAQUE, _TYPMOD = b"POSTGRESQL:type", b"ADBC:postgresql:typname", b"POSTGRESQL:typmod"
_TYPMOD_HEAD = 4


@dataclass(frozen=True, slots=True)
class SqlTable(ServedTable):
    """A table or view of a database; its rows are as of the moment in which it is asked.

    Args:
        table: its name there, after that of its schema and a dot where it is not the first one that has it.
    """

    database: Database
    table: str

    @property
    def place(self) -> str:
        """See `ServedTable`."""
        return f"table {self.table} of {self.database}"

    @property
    def guesses_types(self) -> bool:
        """Whether it is of SQLite, whose columns are of what their values are of, and of whole numbers without any."""
        return self.database.file is not None

    def carried(self) -> dict[str, str]:
        """See `Relation`; a column that only a `schema` gives a type has the database's, and one of SQLite has none."""
        found = columns_of(self.database.url, self.table)
        types = {field.name: str(field.type) for field in found} | left_out(found)
        return dict.fromkeys(types, "") if self.guesses_types else types

    def rows(self, schema: pa.Schema, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """See `ServedTable`."""
        yield from _rows(self.database, self.table, schema, limit)


def columns_of(url: str, table: str) -> pa.Schema:
    """The columns of a table; those that no relation can have are left out, and remembered for messages.

    Raises:
        InputError: there is no such database or table, or it may not be read.
    Cost: up to `_BATCH_ROWS` rows of SQLite; of a view, whatever it takes.
    """
    database = Database(url)
    with _asking(database) as ask:
        found = ask(f"SELECT * FROM {_qualified(table)} LIMIT {0 if database.file is None else _BATCH_ROWS}").schema
    fields, others = [], {}
    for field in found:
        kind = _type_of(field)
        if kind is None:
            others[field.name] = _written(field)
        else:
            fields.append(pa.field(field.name, kind))
    return without(pa.schema(fields), others)


def _rows(database: Database, table: str, schema: pa.Schema, limit: int | None = None) -> Iterator[pa.RecordBatch]:
    with _asking(database) as ask:
        names = ", ".join(quoted(name) for name in schema.names)
        if database.file is None:
            there = ask(f"SELECT {names} FROM {_qualified(table)} LIMIT 0").schema
            names = ", ".join(map(_as_sent, there))
        end = "" if limit is None else f" LIMIT {limit}"
        reader = ask(f"SELECT {names} FROM {_qualified(table)}{end}")
        if database.file is not None and any(map(_is_of_texts, reader.schema.types)):
            # The driver writes a real among texts with seven digits, and only it tells which columns have texts.
            names = ", ".join(_with_all_digits(name) if _is_of_texts(field.type) else quoted(name)
                              for name, field in zip(schema.names, reader.schema, strict=True))  # fmt: skip
            reader = ask(f"SELECT {names} FROM {_qualified(table)}{end}")
        for rows in reader:
            yield pa.RecordBatch.from_arrays(
                [_conformed(rows.column(place), field, table) for place, field in enumerate(schema)], schema=schema
            )


def _is_of_texts(kind: pa.DataType) -> bool:
    return is_text(kind) or bool(pa.types.is_binary(kind))


def _with_all_digits(column: str) -> str:
    """A column of SQLite, whose reals are texts: as SQLite writes them, or with 17 digits where these say less."""
    name = quoted(column)
    return (
        f"CASE WHEN typeof({name}) <> 'real' THEN {name} WHEN CAST(CAST({name} AS TEXT) AS REAL) = {name} "
        f"THEN CAST({name} AS TEXT) ELSE printf('%!.17g', {name}) END"
    )


def _as_sent(field: pa.Field) -> str:
    """A column of PostgreSQL in a form that Arrow has."""
    written = _written(field)
    return f"CAST({quoted(field.name)} AS text)" if written == _NUMERIC or written in _AS_TEXT else quoted(field.name)


def _conformed(values: pa.Array, field: pa.Field, table: str) -> pa.Array:
    values = values.storage if isinstance(values, pa.ExtensionArray) else values
    if values.type == field.type:
        return values
    if values.null_count == len(values):  # of SQLite, which has no type for them
        return pa.nulls(len(values), field.type)
    try:
        values = readable(values, field.type) if _is_of_texts(values.type) else values
        return pc.cast(values, field.type)
    except (pa.ArrowNotImplementedError, ValueError) as cause:
        raise RunError(
            f'column "{field.name}" of table {table} cannot be read as {type_name(field.type)}: {str(cause)[:200]}; '
            "give it values of that type, or start the job anew with another type in its schema"
        ) from None


def _written(field: pa.Field) -> str:
    about = field.metadata or {}
    return bytes(about.get(_TYPE, about.get(_TYPE_OF_OPAQUE, str(field.type).encode()))).decode()


def _type_of(field: pa.Field) -> pa.DataType | None:
    """What a column of a database is here; None where it has no place."""
    written = _written(field)
    if written == _NUMERIC:
        modifier = int((field.metadata or {}).get(_TYPMOD, b"-1")) - _TYPMOD_HEAD
        digits, scale = modifier >> 16, modifier & 0x7FF
        return pa.decimal128(digits, scale) if 0 < digits <= DIGITS_MAX and scale <= digits else None
    if written in _AS_TEXT:
        return pa.string()
    if pa.types.is_timestamp(field.type):
        return SIMPLE_TYPES["timestamp"]
    return field.type if field.type in SIMPLE_TYPES.values() else None


def _qualified(table: str) -> str:
    return ".".join(map(quoted, table.split(".")))


@contextmanager
def _asking(database: Database) -> Iterator[Any]:
    """A function from a query to a reader of its rows, in one transaction that only reads.

    Raises:
        InputError: the database cannot be reached, or refuses.
    """
    try:
        import adbc_driver_manager
        import adbc_driver_postgresql.dbapi
        import adbc_driver_sqlite.dbapi
    except ImportError as missing:
        raise InputError(
            f"tables of databases are read with {missing.name}; install streamjoin[sql]", field="url"
        ) from None
    options = {}
    try:
        if database.file is None:
            connection = adbc_driver_postgresql.dbapi.connect(database.for_libpq)
            options["adbc.postgresql.batch_size_hint_bytes"] = str(_BATCH_BYTES)
        else:
            path = Path(database.file)
            if not path.is_file():
                raise InputError(f"{path} does not exist", field="url")
            connection = adbc_driver_sqlite.dbapi.connect(f"{path.absolute().as_uri()}?mode=ro")
            options["adbc.sqlite.query.batch_rows"] = str(_BATCH_ROWS)
        with connection, connection.cursor(adbc_stmt_kwargs=options) as cursor:

            def ask(query: str) -> pa.RecordBatchReader:
                cursor.execute(query)
                return cursor.fetch_record_batch()

            yield ask
    except (adbc_driver_manager.Error, pa.ArrowException, OSError) as cause:
        raise InputError(f"{database} cannot be read: {_said(database, cause)}", field=_field_of(cause)) from None


def _said(database: Database, cause: Exception) -> str:
    """What a driver says, in one line without secrets."""
    line = next((line for line in str(cause).splitlines() if line.strip()), type(cause).__name__)
    return database.without_secrets(line.strip())[:300]


def _field_of(cause: Exception) -> str:
    words = str(cause)
    return "table" if ("does not exist" in words and "relation" in words) or "no such table" in words else "url"
