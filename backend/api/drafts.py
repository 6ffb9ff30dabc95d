"""Drafts of jobs: check a query, see what it would cost, and a few rows that it would give. Nothing is started."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel

from backend.apart import bounded
from backend.api.job_shapes import Draft, spec_of
from backend.auth.actor import Actor, Viewer
from backend.catalog.jobspec import JobSpec
from backend.columns import Column, columns_of
from backend.context import Context, InContext
from backend.jobs import service
from backend.jobs.inputs import Inputs
from backend.jobs.previews import PreviewOut, previewed
from backend.jobs.reading import names_of, where_it_fits
from backend.jobs.secrets import Secrets, secrets_of
from backend.problems import Place, Problem
from backend.settings import Settings
from streamjoin.errors import StreamJoinError
from streamjoin.explain.bundle import explain, summary
from streamjoin.spec.prepare import Bound

router = APIRouter(prefix="/api/v1/jobs", tags=["jobs"])


class Diagnostics(BaseModel):
    """What is wrong with a draft, for an editor; empty where it is right."""

    valid: bool
    diagnostics: list[Place]
    columns: list[Column]
    summary: str | None


class Explanation(BaseModel):
    """How a draft would run, and what each operator would cost."""

    plan: dict[str, Any]
    text: str
    columns: list[Column]


@router.post("/validate")
def validate_job(context: InContext, actor: Viewer, body: Draft) -> Diagnostics:
    """Check a query against what is registered. Mistakes are the answer, so the status is 200.

    A draft is of no job yet: whether a job that has begun may become it, `POST /jobs/{id}/diff` tells.
    """
    try:
        spec = spec_of(body)
        inputs, secrets = _read(context, actor, spec, body)
        return where_it_fits(actor.id, spec, _validated, context.settings, spec, inputs, secrets)
    except (StreamJoinError, Problem) as wrong:
        if isinstance(wrong, Problem) and wrong.can_retry:  # nothing has been found wrong with the draft
            raise
        return Diagnostics(valid=False, diagnostics=service.diagnose(wrong), columns=[], summary=None)


def _validated(settings: Settings, spec: JobSpec, inputs: Inputs, secrets: Secrets) -> Diagnostics:
    bound = service.bound_draft(settings, spec, inputs, secrets)
    return Diagnostics(valid=True, diagnostics=[], columns=_columns(bound), summary=summary(bound))


@router.post("/explain")
def explain_job(context: InContext, actor: Viewer, body: Draft) -> Explanation:
    """Show how a query would run, and what every operator would cost, from a sample of the streams."""
    spec = spec_of(body)
    inputs, secrets = _read(context, actor, spec, body)
    return bounded(actor.id, _explained, context.settings, spec, inputs, secrets)


def _explained(settings: Settings, spec: JobSpec, inputs: Inputs, secrets: Secrets) -> Explanation:
    bound = service.bound_draft(settings, spec, inputs, secrets)
    found = explain(bound)
    return Explanation(plan=found.to_json(), text=str(found), columns=_columns(bound))


@router.post("/preview")
def preview_job(context: InContext, actor: Viewer, body: Draft) -> PreviewOut:
    """Show a few rows that a query would give, from samples of the streams, or why there are none. Nothing is started.

    Samples, time and the answer are bounded, and so are previews side by side: one too many answers 429.
    """
    spec = spec_of(body)
    inputs, secrets = _read(context, actor, spec, body)
    return previewed(context, spec, inputs, secrets, actor.id)


def _read(context: Context, actor: Actor, spec: JobSpec, body: Draft) -> tuple[Inputs, Secrets]:
    """What a draft reads, as it is registered now."""
    named = names_of(actor.id, spec)
    with context.catalog.read() as session:
        inputs = service.entries(session, named, body.streams)
        return inputs, secrets_of(context.settings, session, inputs)


def _columns(bound: Bound) -> list[Column]:
    """The result columns of the job's own query."""
    return columns_of(bound.queries[0].query.output)
