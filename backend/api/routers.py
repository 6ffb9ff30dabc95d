"""All routers of the app, and what runs beside them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from backend.api import (
    about,
    api_keys,
    demos,
    drafts,
    events,
    files,
    health,
    job_history,
    jobs,
    live,
    machines,
    metrics,
    queries,
    rejected,
    relation_versions,
    relations,
    saved_queries,
    sessions,
    snapshots,
    streams,
    uploads,
    users,
)
from backend.api.reads import ReadRoute, ReadsFirst
from backend.auth.limits import limits_of
from backend.context import Context
from backend.results import service

MODULES = (
    queries, snapshots, drafts, jobs, job_history, rejected, streams, relations, relation_versions, live, saved_queries,
    events, demos, health, about, sessions, users, api_keys, metrics, uploads, files, machines,
)  # fmt: skip
"""What is asked most comes first: they are looked through one after the other."""


def include_all(app: FastAPI) -> None:
    """Every route of the platform."""
    for module in MODULES:
        app.include_router(module.router)
    reads = [route for module in MODULES for route in module.router.routes if isinstance(route, ReadRoute)]
    app.router.routes.insert(0, ReadsFirst(reads))


@asynccontextmanager
async def background(context: Context) -> AsyncIterator[None]:
    """What lives as long as the app."""
    async with service.running(context):
        try:
            yield
        finally:
            await limits_of(context).close()
