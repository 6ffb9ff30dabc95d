"""What streams and relations share as resources: names, pages, versions, events, and who may change what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pyarrow as pa
from fastapi import Request, Response
from pydantic import BaseModel
from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from backend.api.room import check_room
from backend.api.shapes import Page, check_version, check_version_if_given, etag, iso, link_next, page_of
from backend.auth import kafka_secrets
from backend.auth.actor import Actor, may_change
from backend.auth.hosts import check_place
from backend.auth.secrets import open_sealed, seal
from backend.catalog import lifecycle
from backend.catalog.events import record
from backend.catalog.ids import now_us
from backend.catalog.models import Job, Relation, Stream
from backend.cells import table_cells
from backend.columns import Column, columns_of
from backend.context import Context
from backend.lookup import by_id_or_name, check_free
from backend.problems import Problem
from backend.relations import secrets as relation_secrets
from backend.settings import Settings
from backend.skew import skew_of
from backend.uploads.names import is_upload
from backend.uploads.readers import hold

Row = TypeVar("Row", Stream, Relation)
SHOWN_ROWS = 100
SECRETS_MAX = 50
"""Of one stream or relation."""


class RegisteredOut(BaseModel):
    """What both show of themselves."""

    id: str
    name: str
    version: int
    spec: dict[str, Any]
    owner_id: str | None
    created_at: str | None
    updated_at: str | None


class Seen(BaseModel):
    """What a look at either shows. Whole numbers beyond 2**53 and decimals are texts."""

    columns: list[Column]
    rows: list[list[Any]]
    rows_seen: int
    bad_records: dict[str, int]
    skew: dict[str, Any]


Out = TypeVar("Out", bound=RegisteredOut)


@dataclass(frozen=True, slots=True)
class Registry(Generic[Row]):
    """One table of registered things.

    Args:
        what: what messages and events call one.
        used: those that a job uses, by name.
        check_secrets: settings, an entry and its secrets; raises where they open nothing.
        check_same_server: an entry before and after a change; raises where its secrets are for another server.
    """

    table: type[Row]
    what: str
    used: Callable[[Job], Mapping[str, Any]]
    check_secrets: Callable[[Settings, Mapping[str, Any], Mapping[str, str]], None]
    check_same_server: Callable[[Mapping[str, Any], Mapping[str, Any]], None]

    def find(self, session: Session, id_or_name: str, *, held: bool = False) -> Row:
        """One, by its id or name.

        Args:
            held: see `by_id_or_name`.
        Raises:
            Problem: there is none.
        """
        return by_id_or_name(session, self.table, id_or_name, self.what, held=held)

    def get(self, context: Context, id_or_name: str) -> Row:
        """The same, in a transaction of its own."""
        with context.catalog.read() as session:
            return self.find(session, id_or_name)

    def page(
        self, context: Context, request: Request, response: Response, limit: int, starting_after: str | None,
        shape: Callable[[Row], Out], rows: Select[Any],
    ) -> Page[Out]:  # fmt: skip
        """A page of `rows`, newest first."""
        with context.catalog.read() as session:
            page = page_of(session, rows, self.table.id, limit, starting_after, shape)
        link_next(request, response, page.has_more, [row.id for row in page.data])
        return page

    def add(self, context: Context, actor: Actor, row: Row, response: Response) -> None:
        """Register one.

        Raises:
            Problem: its name is taken, the upload that it reads is gone, or there are as many as may be.
        """
        with context.catalog.begin() as session:
            check_free(session, row.name)
            check_room(context.settings, session, self.table, actor, held=True)
            _check_upload_stays(context, session, row)
            session.add(row)
            record(session, f"{self.what}.created", f"{self.what} {row.name} was registered", actor_id=actor.id)
        response.headers["Location"] = f"/api/v1/{self.table.__tablename__}/{row.id}"
        response.headers["ETag"] = etag(row)

    @contextmanager
    def changing(
        self, context: Context, actor: Actor, id_or_name: str, if_match: str | None, response: Response
    ) -> Iterator[Row]:
        """Change one in the block; nothing is changed unless the block ends well.

        Raises:
            Problem: there is none, it is another's, or it was changed meanwhile.
        """
        with context.catalog.begin() as session:
            row = self.find(session, id_or_name, held=True)
            may_change(actor, row.owner_id)
            check_version(if_match, row, f"{self.what} {row.name}")
            former = row.spec
            yield row
            if row.spec != former:
                _check_upload_stays(context, session, row)
            row.version += 1
            row.updated_at_us = now_us()
            record(session, f"{self.what}.changed", f"{self.what} {row.name} was changed", actor_id=actor.id)
        response.headers["ETag"] = etag(row)

    def sealed(self, settings: Settings, spec: Mapping[str, Any], secrets: Mapping[str, str] | None) -> bytes | None:
        """An entry's secrets as the catalog keeps them; None where there are none.

        Raises:
            Problem: they open nothing, or cannot be kept.
        """
        if not secrets:
            return None
        self.check_secrets(settings, spec, secrets)
        return seal(settings, secrets)

    def change(
        self, settings: Settings, row: Row, spec: dict[str, Any] | None, secrets: Mapping[str, str] | None
    ) -> None:
        """Give one another entry, which was checked, or other secrets; what is None stays, and {} forgets secrets.

        Raises:
            Problem: its secrets, which stay, are for another server; or as `sealed` does.
        """
        if spec is not None:
            former, row.spec = row.spec, spec
            if secrets is None and row.secrets is not None:
                self.check_same_server(former, spec)
        if secrets is not None:
            row.secrets = self.sealed(settings, row.spec, secrets)

    def remove(self, context: Context, actor: Actor, id_or_name: str, if_match: str | None = None) -> Row:
        """Remove one.

        Raises:
            Problem: there is none, it is another's, or a job uses it.
        """
        with context.catalog.begin() as session:
            row = self.find(session, id_or_name, held=True)
            may_change(actor, row.owner_id)
            check_version_if_given(if_match, row, f"{self.what} {row.name}")
            users = [job.name for job in session.scalars(select(Job).where(Job.wanted != lifecycle.DELETED))
                     if row.name in self.used(job)]  # fmt: skip
            if users:
                raise Problem(
                    "conflict.in_use",
                    f"{self.what} {row.name} is used by {', '.join(users[:5])}; delete those jobs first",
                    params={"users": ", ".join(users[:5])},
                )
            session.delete(row)
            record(session, f"{self.what}.deleted", f"{self.what} {row.name} was removed", actor_id=actor.id)
        return row


def _check_upload_stays(context: Context, session: Session, row: Stream | Relation) -> None:
    """Refuse to read an upload that was removed since the entry was checked.

    Raises:
        Problem: it is gone.
    """
    if is_upload(row.spec.get("path")):
        hold(session)
        check_place(context.settings, row.spec)


STREAMS = Registry(
    Stream, "stream", lambda job: job.streams, kafka_secrets.check_secrets, kafka_secrets.check_same_servers
)
RELATIONS = Registry(
    Relation, "relation", lambda job: job.relations, relation_secrets.check_secrets, relation_secrets.check_same_server
)


def opened(settings: Settings, row: Stream | Relation) -> dict[str, Any] | None:
    """The secrets of one; None where it has none.

    Raises:
        Problem: they cannot be opened.
    """
    return open_sealed(settings, row.secrets) if row.secrets else None


def shown(row: Stream | Relation) -> dict[str, Any]:
    """The fields of `RegisteredOut`, but its spec."""
    return {
        "id": row.id, "name": row.name, "version": row.version, "owner_id": row.owner_id,
        "created_at": iso(row.created_at_us), "updated_at": iso(row.updated_at_us),
    }  # fmt: skip


def seen(schema: pa.Schema, rows: pa.RecordBatch, bad: Mapping[str, int]) -> dict[str, Any]:
    """The fields of `Seen`."""
    return {
        "columns": columns_of(schema), "rows": table_cells(pa.Table.from_batches([rows.slice(0, SHOWN_ROWS)])),
        "rows_seen": rows.num_rows, "bad_records": bad, "skew": skew_of(rows),
    }  # fmt: skip
