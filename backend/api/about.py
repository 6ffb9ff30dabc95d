"""What clients may want to know of the platform itself: its limits, operators, generators and problems."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel

from backend.auth.actor import Viewer
from backend.columns import Column, columns_of
from backend.context import InContext
from backend.problems import PASSES, TITLES, Problem
from backend.subcodes import SUBCODES
from backend.version import VERSION
from streamjoin.generate import GENERATORS
from streamjoin.operators import registry
from streamjoin.spec.schema import schema_of_operator

router = APIRouter(prefix="/api/v1", tags=["about"])


class ProblemOut(BaseModel):
    """What a problem's code or subcode means; a subcode has no status and no retry of its own."""

    code: str
    status: int | None
    title: str
    can_retry: bool | None


class OperatorOut(BaseModel):
    """An operator that a job may ask for.

    Args:
        settings: its knobs: the JSON Schema of `operator` in a join file that names it.
        runs_jobs: whether a job may run on it; others are there to be compared with.
    """

    name: str
    system: str
    settings: dict[str, Any]
    runs_jobs: bool


class GeneratorOut(BaseModel):
    """A kind of made-up stream."""

    kind: str
    columns: list[Column]


@router.get("/problems/{code}")
def get_problem(code: str) -> ProblemOut:
    """What a problem's `type` points to."""
    if code in SUBCODES:
        return ProblemOut(code=code, status=None, title=SUBCODES[code].meaning, can_retry=None)
    if code not in TITLES:
        raise Problem("not_found.no_problem", f'there is no problem "{code[:100]}"')
    status, title = TITLES[code]
    return ProblemOut(code=code, status=status, title=title, can_retry=code in PASSES)


@router.get("/operators")
def list_operators(actor: Viewer) -> list[OperatorOut]:
    """The join operators."""
    return [
        OperatorOut(name=name, system=kind.system, settings=schema_of_operator(name), runs_jobs=not kind.is_sparks)
        for name, kind in registry.REGISTRY.items()
    ]


@router.get("/generators")
def list_generators(actor: Viewer) -> list[GeneratorOut]:
    """The kinds of generated streams, with their columns."""
    return [GeneratorOut(kind=kind, columns=columns_of(made.schema)) for kind, made in GENERATORS.items()]


@router.get("/config")
def get_config(context: InContext, actor: Viewer) -> dict[str, Any]:
    """What a client must know of how this platform is set up; nothing secret."""
    settings = context.settings
    return {
        "version": VERSION,
        "auth": settings.auth,
        "result_store": settings.result_store,
        "jobs_max": settings.jobs_max,
        "body_bytes_max": settings.body_bytes_max,
        "upload_bytes_max": settings.upload_bytes_max,
        "job_slots": settings.job_slots,
        "lease_s": settings.lease_s,
    }
