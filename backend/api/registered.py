"""What streams and relations share as resources: names, pages, versions, events, and who may change what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pyarrow as pa
from fastapi import Request, Response
from pydantic import BaseModel
from sqlalchemy import Select, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from backend.api.room import check_room
from backend.api.shapes import (
    TRIES,
    Page,
    changes_always,
    check_version,
    check_version_if_given,
    etag,
    iso,
    link_next,
    page_of,
)
from backend.auth import kafka_secrets
from backend.auth.actor import Actor, may_change
from backend.auth.hosts import check_place
from backend.auth.secrets import open_sealed, seal
from backend.catalog import lifecycle
from backend.catalog.entries import names_in
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
from backend.streams.entry import make_folder
from backend.uploads.names import is_upload
from backend.uploads.readers import hold

Row = TypeVar("Row", Stream, Relation)
SHOWN_ROWS = 100
SECRETS_MAX = 50
"""For one stream or relation."""


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
        used: the column of a job with those that it uses, by name.
        check_secrets: settings, an entry and its secrets; raises where they open nothing.
        check_same_server: an entry before and after a change; raises where its secrets are for another server.
    """

    table: type[Row]
    what: str
    used: InstrumentedAttribute[dict[str, Any]]
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
            make_folder(context.settings, row.id, row.spec)  # last: a refused stream leaves no folder
        response.headers["Location"] = f"/api/v1/{self.table.__tablename__}/{row.id}"
        response.headers["ETag"] = etag(row)

    def change(
        self, context: Context, actor: Actor, id_or_name: str, if_match: str | None, response: Response,
        checked: Callable[[Row], dict[str, Any] | None], secrets: Mapping[str, str] | None,
    ) -> Row:  # fmt: skip
        """Give one another entry, or other secrets; what is None stays, and {} forgets secrets.

        Args:
            checked: gives the entry that one is to have, or None; raises where it is wrong.
        Raises:
            Problem: there is none, it is another's, or it was changed meanwhile; its secrets, which stay, are for
                another server; or as `sealed` does.
        """
        for _ in range(TRIES):
            # Outside of a transaction that writes: it opens files, and asks for the names of servers.
            seen = self.get(context, id_or_name)
            self._check_may_change(actor, seen, if_match)
            spec = checked(seen)
            sealed = self._sealed_anew(context.settings, seen, spec, secrets)
            with context.catalog.begin() as session:
                row = self.find(session, seen.id, held=True)
                self._check_may_change(actor, row, if_match)
                if row.version != seen.version:
                    continue
                if spec is not None and spec != row.spec:
                    row.spec = spec
                    _check_upload_stays(context, session, row)
                if secrets is not None:
                    row.secrets = sealed
                row.version += 1
                row.updated_at_us = now_us()
                record(session, f"{self.what}.changed", f"{self.what} {row.name} was changed", actor_id=actor.id)
                make_folder(context.settings, row.id, row.spec)
            response.headers["ETag"] = etag(row)
            return row
        raise changes_always(seen, f"{self.what} {seen.name}")

    def sealed(self, settings: Settings, spec: Mapping[str, Any], secrets: Mapping[str, str] | None) -> bytes | None:
        """An entry's secrets as the catalog keeps them; None where there are none.

        Raises:
            Problem: they open nothing, or cannot be kept.
        """
        if not secrets:
            return None
        self.check_secrets(settings, spec, secrets)
        return seal(settings, secrets)

    def _check_may_change(self, actor: Actor, row: Row, if_match: str | None) -> None:
        may_change(actor, row.owner_id)
        check_version(if_match, row, f"{self.what} {row.name}")

    def _sealed_anew(
        self, settings: Settings, seen: Row, spec: dict[str, Any] | None, secrets: Mapping[str, str] | None
    ) -> bytes | None:
        """The new secrets, sealed. If there are none, the present ones must be for the same server as before."""
        if secrets is None and seen.secrets is not None and spec is not None:
            self.check_same_server(seen.spec, spec)
        return self.sealed(settings, seen.spec if spec is None else spec, secrets)

    def remove(self, context: Context, actor: Actor, id_or_name: str, if_match: str | None = None) -> Row:
        """Remove one.

        Raises:
            Problem: there is none, it is another's, or a job uses it.
        """
        with context.catalog.begin() as session:
            row = self.find(session, id_or_name, held=True)
            may_change(actor, row.owner_id)
            check_version_if_given(if_match, row, f"{self.what} {row.name}")
            there = select(Job.name, names_in(self.used)).where(Job.wanted != lifecycle.DELETED)
            users = [job for job, used in session.execute(there) if row.name in used]
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
        check_place(context.settings, {"path": row.spec["path"]})


STREAMS = Registry(Stream, "stream", Job.streams, kafka_secrets.check_secrets, kafka_secrets.check_same_servers)
RELATIONS = Registry(
    Relation, "relation", Job.relations, relation_secrets.check_secrets, relation_secrets.check_same_server
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
