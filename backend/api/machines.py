"""Machines whose workers run jobs."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel
from sqlalchemy import select

from backend.api.shapes import Limit, Page, iso, link_next
from backend.auth.actor import Viewer
from backend.catalog.ids import now_us
from backend.catalog.machines import takes_jobs
from backend.catalog.models import Lease, Machine
from backend.context import InContext

router = APIRouter(prefix="/api/v1/machines", tags=["machines"])


class MachineOut(BaseModel):
    """A machine whose worker said in the last day that it runs jobs.

    Args:
        takes_jobs: it said so in the last few seconds.
        jobs: so many have a driver there now.
        free_bytes: of its memory, when it said so last.
        folder: which data folder it has; machines that share one have the same.
    """

    name: str
    takes_jobs: bool
    jobs: int
    free_bytes: int
    folder: str
    seen_at: str | None


@router.get("")
def list_machines(
    context: InContext, actor: Viewer, request: Request, response: Response, limit: Limit = 50,
    starting_after: Annotated[str | None, Query(max_length=200, description="The last name before this page.")] = None,
) -> Page[MachineOut]:  # fmt: skip
    """All machines, by name."""
    at_us = now_us()
    with context.catalog.read() as session:
        after = select(Machine).where(Machine.name > (starting_after or "")).order_by(Machine.name)
        found = session.scalars(after.limit(limit + 1)).all()
        held = select(Lease.host).where(Lease.ended.is_(False), Lease.expires_at_us > at_us)
        jobs = Counter(session.scalars(held))
    page = Page[MachineOut](
        data=[
            MachineOut(
                name=machine.name, takes_jobs=takes_jobs(machine, at_us), jobs=jobs[machine.name],
                free_bytes=machine.free_bytes, folder=machine.folder, seen_at=iso(machine.seen_at_us),
            )
            for machine in found[:limit]
        ],
        has_more=len(found) > limit,
    )  # fmt: skip
    link_next(request, response, page.has_more, [machine.name for machine in page.data])
    return page
