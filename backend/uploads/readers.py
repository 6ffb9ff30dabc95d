"""Who reads an upload: registered streams and relations, and the jobs that were made with them."""

from __future__ import annotations

from collections import defaultdict
from fnmatch import fnmatchcase

from sqlalchemy import Text, cast, or_, select
from sqlalchemy.orm import Session

from backend.catalog import database, lifecycle
from backend.catalog.database import Lock
from backend.catalog.models import Job, Relation, Stream
from backend.uploads.names import PREFIX, WILDCARDS, composed, is_upload


def hold(session: Session) -> None:
    """Nobody else removes an upload, or comes to read one, until this transaction, which may write, ends."""
    database.hold(session, Lock.READING_UPLOADS)


class Readers:
    """All that read uploads at this moment.

    Cost: the catalog looks through all streams, relations and jobs, and sends what reads uploads: of a stream or
    relation its name and path, of a job what it reads.
    """

    def __init__(self, session: Session) -> None:
        self._named: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        self._patterns: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        self._count = 0
        for what, table in (("stream", Stream), ("relation", Relation)):
            path = table.spec["path"].as_string()
            found = select(table.name, path).where(path.startswith(PREFIX, autoescape=True)).order_by(table.name)
            for name, read in session.execute(found):
                self._add(f"{what} {name}", read)
        may_read = or_(*(cast(of, Text).contains(f'"{PREFIX}', autoescape=True) for of in (Job.streams, Job.relations)))
        jobs = select(Job.name, Job.streams, Job.relations).where(Job.wanted != lifecycle.DELETED, may_read)
        for name, streams, relations in session.execute(jobs.order_by(Job.name)):
            for entry in (*streams.values(), *relations.values()):
                self._add(f"job {name}", entry.get("path"))

    def _add(self, who: str, path: object) -> None:
        if not is_upload(path):
            return
        self._count += 1
        read = composed(path.removeprefix(PREFIX))
        known = self._patterns if any(mark in read for mark in WILDCARDS) else self._named
        known[read].append((self._count, who))

    def of(self, name: str) -> list[str]:
        """Those of one upload, such as `stream orders`.

        Cost: a match for each different pattern.
        """
        name = composed(name)
        found = list(self._named.get(name, ()))
        for pattern, readers in self._patterns.items():
            if fnmatchcase(name, pattern):
                found += readers
        return list(dict.fromkeys(who for _, who in sorted(found)))
