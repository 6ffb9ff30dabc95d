"""The snapshots of a job: what was committed, when, and how much."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel

from backend.api.reads import ReadRoute
from backend.api.shapes import Limit, Page, StartingAfter, link_next
from backend.auth.actor import Viewer
from backend.context import InContext
from backend.problems import from_engine
from backend.results.cells import time_text
from backend.results.readers import store_problem
from backend.results.service import Service, service_of
from streamjoin.errors import InputError, StreamJoinError
from streamjoin.results.snapshot import Snapshot, SnapshotId

router = APIRouter(prefix="/api/v1", tags=["results"], route_class=ReadRoute)


class SnapshotOut(BaseModel):
    """A committed snapshot.

    Args:
        hash: the sum of its rows' hashes, as hexadecimal digits.
        time_min, time_max: of its results' times; null without rows, and for what no calendar has.
        closed_at: the start of the batch that closed it.
        marks: how far the streams had come with it.
        batches: the first and the last batch whose results may be in it.
        shed: tuples of both streams that were dropped under overload while it was collected; above 0 its results are
            partial.
        late: it has results that are older than the marks of the snapshot before: tuples came late.
    """

    id: str
    rows: int
    bytes: int
    blocks: int
    hash: str
    time_min: str | None
    time_max: str | None
    closed_at: str | None
    marks: list[str | None]
    batches: list[int]
    generation: int
    shed: int
    late: bool


@router.get("/jobs/{id}/snapshots", response_model=Page[SnapshotOut])
async def list_snapshots(
    context: InContext,
    actor: Viewer,
    request: Request,
    id: Annotated[str, Path(max_length=100)],
    limit: Limit = 50,
    starting_after: StartingAfter = None,
) -> Response:
    """The snapshots that are kept, newest first."""
    act = partial(_page, service_of(context), id, limit, starting_after)
    page = await asyncio.get_running_loop().run_in_executor(None, act)
    response = Response(page.model_dump_json(), media_type="application/json")
    link_next(request, response, page, [one.id for one in page.data])
    return response


def _page(service: Service, id: str, limit: int, starting_after: str | None) -> Page[SnapshotOut]:
    place = service.places.find(id)
    with service.readers.lent(place) as opened:
        try:
            before = None if starting_after is None else SnapshotId.parse(starting_after)
        except InputError as wrong:
            raise from_engine(wrong, "starting_after") from None
        try:
            opened.describe()
            opened.durable.refresh()
            found = opened.durable.snapshots()
        except StreamJoinError as failure:
            raise store_problem(place, failure) from None
    end = len(found) if before is None else bisect_left([one.id for one in found], before)
    first = max(end - limit, 0)
    shown = [_shape(found[at], found[at - 1] if at else None) for at in range(end - 1, first - 1, -1)]
    return Page[SnapshotOut](data=shown, has_more=first > 0)


def _shape(snapshot: Snapshot, before: Snapshot | None) -> SnapshotOut:
    marks = [mark for mark in (before.marks_us if before else ()) if mark is not None]
    oldest_us = snapshot.time_min_us
    return SnapshotOut(
        id=str(snapshot.id),
        rows=snapshot.rows,
        bytes=snapshot.size,
        blocks=len(snapshot.blocks),
        hash=f"{snapshot.hash_sum:016x}",
        time_min=time_text(oldest_us),
        time_max=time_text(snapshot.time_max_us),
        closed_at=time_text(snapshot.closed_us),
        marks=[time_text(mark) for mark in snapshot.marks_us],
        batches=list(snapshot.batches),
        generation=snapshot.generation,
        shed=snapshot.shed,
        late=len(marks) == 2 and oldest_us is not None and oldest_us < min(marks),
    )
