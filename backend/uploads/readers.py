"""Who reads an upload: registered streams and relations, and the jobs that were made with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.catalog import database, lifecycle
from backend.catalog.models import Job, Relation, Stream
from backend.uploads.names import is_upload, reads

_LOCK = 7310571484


def hold(session: Session) -> None:
    """Nobody else removes an upload, or comes to read one, until this transaction, which may write, ends."""
    database.hold(session, _LOCK)


class Readers:
    """All that read uploads at this moment.

    Cost: reads the entries of all streams, relations and jobs.
    """

    def __init__(self, session: Session) -> None:
        self._entries: list[tuple[str, Mapping[str, Any]]] = []
        for what, table in (("stream", Stream), ("relation", Relation)):
            for row in session.scalars(select(table).order_by(table.name)):
                self._add(f"{what} {row.name}", row.spec)
        for job in session.scalars(select(Job).where(Job.wanted != lifecycle.DELETED).order_by(Job.name)):
            for entry in (*job.streams.values(), *job.relations.values()):
                self._add(f"job {job.name}", entry)

    def _add(self, who: str, entry: Mapping[str, Any]) -> None:
        if is_upload(entry.get("path")):
            self._entries.append((who, entry))

    def of(self, name: str) -> list[str]:
        """Those of one upload, such as `stream orders`."""
        return list(dict.fromkeys(who for who, entry in self._entries if reads(entry, name)))
