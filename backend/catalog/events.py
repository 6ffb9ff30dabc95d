"""What happened, for people to read afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from backend.catalog.ids import new_id
from backend.catalog.models import Event

MESSAGE_MAX = 2000
FIRST_BATCH = "job.first_batch"
"""The kind of the event that says what a start took."""


def record(
    session: Session,
    kind: str,
    message: str,
    *,
    job_id: str | None = None,
    severity: str = "info",
    data: Mapping[str, Any] | None = None,
    actor_id: str | None = None,
) -> None:
    """Add an event to the transaction: it is there if, and only if, what it tells of is.

    Args:
        kind: such as `job.started`.
        severity: info, warning or error.
        actor_id: who did it; None for the platform itself.
    """
    session.add(
        Event(
            id=new_id("evt"),
            job_id=job_id,
            kind=kind,
            severity=severity,
            message=message[:MESSAGE_MAX],
            data=dict(data or {}),
            actor_id=actor_id,
        )
    )  # fmt: skip
