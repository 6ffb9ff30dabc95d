"""A few result rows of a job that need not exist: how many previews run at once, and what clients are told of one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from pydantic import BaseModel

from backend.apart import bounded
from backend.catalog.jobspec import JobSpec
from backend.cells import table_cells
from backend.columns import Column, columns_of
from backend.context import Context
from backend.jobs.inputs import Inputs
from backend.jobs.secrets import Secrets
from backend.jobs.service import bound_draft
from backend.problems import Place, Problem
from backend.settings import Settings
from streamjoin.errors import RunError
from streamjoin.explain.no_row import time_text
from streamjoin.explain.preview import NOTE, Looked, Preview, Rows, preview

AT_ONCE = 2
"""Previews that one process of the API makes side by side: each has two samples and their pairs in memory."""
_SHARED = "jobs.previews"
_lock = threading.Lock()


class LookedOut(BaseModel):
    """What was looked at of a stream; `first` and `last` are event times."""

    name: str
    rows: int
    bad_records: int
    large_rows: int
    first: str | None
    last: str | None


class RowsOut(BaseModel):
    """Rows that a query would give, 20 at most, with values as results have them; without any, `reason` says why.

    Args:
        query: its name, where there are several.
        large_rows: rows that were found and left out for their size.
    """

    query: str
    columns: list[Column]
    rows: list[list[object]]
    large_rows: int
    reason: str | None


class PreviewOut(BaseModel):
    """A preview; `cut_off` where time ran out before all sampled rows were joined, and `text` is for people."""

    note: str
    streams: list[LookedOut]
    cut_off: bool
    queries: list[RowsOut]
    text: str


def previewed(
    context: Context, spec: JobSpec, inputs: Inputs, secrets: Secrets,
    actor: str | None,
) -> PreviewOut:  # fmt: skip
    """Make a preview of a job that need not exist, in a process of its own.

    Args:
        secrets: see `inputs.secrets_of`.
        actor: for whom: each has one at a time. None where everybody is the same.
    Raises:
        InputError: it is wrong, or a stream cannot be reached.
        Problem: others are being made, or a file is damaged.
    """
    with _one_of_few(context, actor):
        return bounded(actor, _made, context.settings, spec, inputs, secrets)


def _made(settings: Settings, spec: JobSpec, inputs: Inputs, secrets: Secrets) -> PreviewOut:
    bound = bound_draft(settings, spec, inputs, secrets)
    try:
        return _shape(preview(bound))
    except RunError as failure:
        raise Problem(
            "invalid.file_damaged", str(failure), errors=[Place(pointer="/streams", detail=str(failure))]
        ) from None


@contextmanager
def _one_of_few(context: Context, actor: str | None) -> Iterator[None]:
    making = context.shared.setdefault(_SHARED, [])
    with _lock:
        is_theirs = actor is not None and actor in making
        if is_theirs or len(making) >= AT_ONCE:
            what = "a preview of yours is" if is_theirs else f"{AT_ONCE} previews are"
            raise Problem("rate_limited.too_many_previews", f"{what} being made; ask again in a moment",
                          headers={"Retry-After": "1"})  # fmt: skip
        making.append(actor)
    try:
        yield
    finally:
        with _lock:
            making.remove(actor)


def _shape(found: Preview) -> PreviewOut:
    return PreviewOut(note=NOTE, streams=[_looked(one) for one in found.looked], cut_off=found.cut_off,
                      queries=[_rows(one) for one in found.queries], text=str(found))  # fmt: skip


def _looked(of: Looked) -> LookedOut:
    return LookedOut(name=of.name, rows=of.rows, bad_records=of.bad, large_rows=of.large,
                     first=time_text(of.first_us), last=time_text(of.last_us))  # fmt: skip


def _rows(of: Rows) -> RowsOut:
    return RowsOut(query=of.query, columns=columns_of(of.rows.schema), large_rows=of.large, reason=of.reason,
                   rows=table_cells(pa.Table.from_batches([of.rows])))  # fmt: skip
