"""Rows that are missing from a job's results: how many by stream and reason, and each one that is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from backend.api.shapes import Limit, Page, StartingAfter, link_next
from backend.auth.actor import Viewer
from backend.catalog.models import Job
from backend.context import Context, InContext
from backend.jobs import service
from backend.problems import Place, Problem
from backend.rejected import as_csv, fields_of
from streamjoin.errors import StateError
from streamjoin.intake import rejected
from streamjoin.spec.job import dead_letters_folder

router = APIRouter(prefix="/api/v1/jobs", tags=["jobs"])

OfStream = Annotated[str | None, Query(max_length=100, description="Only rows of this stream.")]
OfReason = Annotated[str | None, Query(max_length=100, description="Only rows with this reason.")]
MEDIA_TYPES = {"ndjson": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}


class RejectedCount(BaseModel):
    """Rows of one stream that are missing for one reason, of all runs of a job since it began or began anew.

    Args:
        kept: how many of them can be looked at; the others are counted only.
        meaning: the reason in words.
    """

    stream: str
    reason: str
    rows: int
    kept: int
    meaning: str


class RejectedRow(BaseModel):
    """A row that was put aside.

    Args:
        batch, at: the batch that read it, and when that began.
        source: the file below its stream's folder, or topic and partition.
        position: its place in the source, in `unit`s: line (from 1), row (from 0) or offset.
        detail: why it could not be joined.
        record: its text; null for a tombstone, and where it is not UTF-8.
        record_base64: its bytes, where it is not UTF-8.
        truncated: only its first 64 KiB are here.
    """

    id: str
    stream: str
    reason: str
    batch: int
    at: str | None
    source: str
    unit: str
    position: int
    detail: str
    record: str | None
    record_base64: str | None
    truncated: bool


class RejectedPage(Page[RejectedRow]):
    """Counts of the whole job, whatever rows were asked for, and a page of rows. It may hold fewer rows than asked for
    although there are more, where they are long."""

    counts: list[RejectedCount]


@router.get("/{id}/rejected")
def list_rejected(
    context: InContext, actor: Viewer, id: str, request: Request, response: Response,
    stream: OfStream = None, reason: OfReason = None, limit: Limit = 50, starting_after: StartingAfter = None,
) -> RejectedPage:  # fmt: skip
    """Rows that are missing from the results, where the job ran on this host: counts, and rows, newest first."""
    job, folder = _found(context, id)
    _check_reason(reason)
    try:
        counts = rejected.as_rows(rejected.read_head(folder))
        _check_stream(job, stream, counts)
        rows, has_more = rejected.page(folder, limit, stream=stream, reason=reason, before=starting_after)
    except StateError as damaged:
        raise _unavailable(context, damaged) from None
    except ValueError as wrong:
        place = Place(pointer="starting_after", detail=str(wrong))
        raise Problem("invalid.bad_page", f"starting_after: {wrong}", errors=[place]) from None
    page = RejectedPage(
        data=[RejectedRow(**fields_of(row)) for row in rows], has_more=has_more,
        counts=[RejectedCount(**row) for row in counts],
    )  # fmt: skip
    link_next(request, response, page.has_more, [row.id for row in page.data])
    return page


@router.get(
    "/{id}/rejected/download",
    response_class=Response,
    responses={
        200: {
            "description": "The rows, as a stream.",
            "content": {"application/x-ndjson": {"schema": {"type": "string"}},
                        "text/csv": {"schema": {"type": "string"}}},
        }
    },
)  # fmt: skip
def download_rejected(
    context: InContext, actor: Viewer, id: str, stream: OfStream = None, reason: OfReason = None,
    format: Annotated[Literal["ndjson", "csv"], Query(description="JSON lines as they were kept, or CSV.")] = "ndjson",
) -> Response:  # fmt: skip
    """All rows that are kept, oldest first.

    In CSV a text that a spreadsheet would take for a formula has a `'` in front; JSON lines have it as it is.
    """
    job, folder = _found(context, id)
    _check_reason(reason)
    try:
        _check_stream(job, stream, rejected.as_rows(rejected.read_head(folder)))
    except StateError as damaged:
        raise _unavailable(context, damaged) from None
    pieces = rejected.lines(folder, stream=stream, reason=reason)
    name = f"{job.name}-rejected.{format}"
    return StreamingResponse(
        as_csv(pieces) if format == "csv" else pieces, media_type=MEDIA_TYPES[format],
        headers={"Content-Disposition": f'attachment; filename="{name}"', "X-Accel-Buffering": "no"},
    )  # fmt: skip


def _found(context: Context, id: str) -> tuple[Job, Path]:
    """A job, and where its driver keeps rows that are missing."""
    with context.catalog.read() as session:
        job = service.find_job(session, id)
    return job, dead_letters_folder(context.settings.checkpoint_folder(job.id, job.incarnation))


def _check_reason(reason: str | None) -> None:
    if reason is not None and reason not in rejected.ALL_REASONS:
        detail = f'"{reason}" is not a reason; reasons are {", ".join(rejected.ALL_REASONS)}'
        raise Problem("invalid.bad_reason", detail, errors=[Place(pointer="reason", detail=detail)])


def _check_stream(job: Job, stream: str | None, counts: Sequence[Mapping[str, Any]]) -> None:
    """What a job read before it was changed has rows, too."""
    known = [*job.streams, *job.relations]
    if stream is not None and stream not in known and all(row["stream"] != stream for row in counts):
        detail = f'job {job.name} reads no stream "{stream[:100]}"; it reads {", ".join(sorted(known))}'
        raise Problem("invalid.unknown_stream", detail, errors=[Place(pointer="stream", detail=detail)])


def _unavailable(context: Context, damaged: StateError) -> Problem:
    """Paths of the host are nothing for clients."""
    return Problem("unavailable.rows_damaged", str(damaged).replace(str(context.settings.data.absolute()), "."))
