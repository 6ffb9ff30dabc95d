"""The snapshots of a job: what was committed, when, and how much."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel

from backend.api.reads import ReadRoute
from backend.api.shapes import Limit, Page, StartingAfter, link_next
from backend.auth.actor import Viewer
from backend.cells import time_text
from backend.context import InContext
from backend.problems import from_engine
from backend.results.at_once import NotAtOnce
from backend.results.question import JOB_MAX
from backend.results.readers import SHOWN_MAX, Opened
from backend.results.service import Service, service_of
from backend.results.trouble import NoResults, store_problem
from backend.results.watch import Watch
from streamjoin.errors import InputError, StreamJoinError
from streamjoin.results.snapshot import Snapshot, SnapshotId

router = APIRouter(prefix="/api/v1", tags=["results"], route_class=ReadRoute)


class SnapshotOut(BaseModel):
    """A committed snapshot.

    Args:
        hash: the sum of its rows' hashes, as hexadecimal digits.
        time_min, time_max: of its results' times; null without rows, and for what no calendar has.
        closed_at: the start of the batch that closed it.
        marks: the watermark of each stream with it.
        batches: the first and the last batch whose results may be in it.
        shed: tuples of all streams that were dropped under overload while it was collected; above 0 its results are
            partial.
        late: it has results that are older than the watermarks of the snapshot before: tuples came late.
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
    id: Annotated[str, Path(max_length=JOB_MAX)],
    limit: Limit = 50,
    starting_after: StartingAfter = None,
) -> Response:
    """The snapshots that are kept, newest first."""
    service = service_of(context)
    page = _at_once(service, id, limit, starting_after)
    if page is None:
        act = partial(_page, service, id, limit, starting_after)
        page = await asyncio.get_running_loop().run_in_executor(None, act)
    response = Response(page.text, media_type="application/json")
    link_next(request, response, page.has_more, page.ids)
    return response


@dataclass(frozen=True, slots=True)
class _Shown:
    """A page as JSON."""

    text: str
    ids: list[str]
    has_more: bool


def _at_once(service: Service, id: str, limit: int, starting_after: str | None) -> _Shown | None:
    """The page, in the event loop; None where it has to be waited for."""
    if (place := service.places.known(id)) is None:
        return None
    with suppress(NotAtOnce), service.readers.lent(place, Watch(in_loop=True)) as opened:
        return _shown(opened, limit, starting_after)
    return None


def _page(service: Service, id: str, limit: int, starting_after: str | None) -> _Shown:
    with service.readers.lent(service.places.find(id)) as opened:
        return _shown(opened, limit, starting_after)


def _shown(opened: Opened, limit: int, starting_after: str | None) -> _Shown:
    try:
        before = None if starting_after is None else SnapshotId.parse(starting_after)
    except InputError as wrong:
        raise from_engine(wrong, "starting_after") from None
    try:
        opened.describe()
        opened.durable.refresh()
        opened.durable.index()  # without one nothing is answered at once
        found = opened.durable.snapshots()
    except NoResults:  # the list of a job that is new, or begins anew just now
        found = []
    except StreamJoinError as failure:
        raise store_problem(opened.place, failure) from None
    end = len(found) if before is None else bisect_left([one.id for one in found], before)
    first = max(end - limit, 0)
    places = range(end - 1, first - 1, -1)
    texts = [_text(opened, found[at], found[at - 1] if at else None) for at in places]
    # As a `Page` of them would be written.
    text = f'{{"data":[{",".join(texts)}],"has_more":{"true" if first else "false"}}}'
    return _Shown(text, [str(found[at].id) for at in places], first > 0)


def _text(opened: Opened, snapshot: Snapshot, before: Snapshot | None) -> str:
    """A snapshot as JSON; those that were shown lately are not written anew."""
    known = opened.shown.get(snapshot.id)
    if known is not None and known[0] is snapshot and known[1] is before:
        return known[2]
    text = _shape(snapshot, before).model_dump_json()
    if len(opened.shown) >= SHOWN_MAX:
        opened.shown.clear()
    opened.shown[snapshot.id] = snapshot, before, text
    return text


def _shape(snapshot: Snapshot, before: Snapshot | None) -> SnapshotOut:
    marks = [mark for mark in (before.marks_us if before else ()) if mark is not None]
    is_known = before is not None and len(marks) == len(before.marks_us)
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
        late=is_known and oldest_us is not None and oldest_us < min(marks),
    )
