"""What opens the streams and relations of a job."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.auth.kafka_secrets import is_same_servers
from backend.auth.secrets import open_sealed
from backend.catalog.models import Relation, Stream
from backend.jobs.inputs import Inputs
from backend.relations.secrets import is_same_server
from backend.settings import Settings
from streamjoin.errors import InputError

Secrets = Mapping[str, Mapping[str, Any]]
"""What opens streams and relations and is kept apart from their entries, by name."""


def secrets_of(settings: Settings, session: Session, inputs: Inputs) -> dict[str, dict[str, Any]]:
    """What opens streams and relations and is kept apart from their entries, by name.

    Raises:
        InputError: a stream or relation was given secrets for another server than that of its entry here.
        Problem: they cannot be opened.
    """
    streams = _with_secrets(session, Stream, inputs.streams)
    for stream in streams:
        if not is_same_servers(inputs.streams[stream.name], stream.spec):
            raise _elsewhere("stream", stream.name)
    relations = _with_secrets(session, Relation, inputs.relations)
    for relation in relations:
        if not is_same_server(inputs.relations[relation.name], relation.spec):
            raise _elsewhere("relation", relation.name)
    return {row.name: open_sealed(settings, row.secrets or b"") for row in (*streams, *relations)}


def _elsewhere(what: str, name: str) -> InputError:
    return InputError(
        f"reads another server than the {what} is registered for now, so its password is not sent there; "
        "change the job with refresh_streams to read the new one",
        field=f"{what}s.{name}",
    )


Row = TypeVar("Row", Stream, Relation)


def _with_secrets(session: Session, table: type[Row], names: Collection[str]) -> Sequence[Row]:
    if not names:
        return ()
    return session.scalars(select(table).where(table.name.in_(names), table.secrets.is_not(None))).all()
