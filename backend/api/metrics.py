"""Metrics for Prometheus."""

from __future__ import annotations

from fastapi import APIRouter, Response

from backend.auth.actor import Viewer
from backend.context import InContext
from backend.metrics import exposition
from backend.results.service import service_of
from backend.version import VERSION

router = APIRouter(tags=["metrics"])


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def get_metrics(context: InContext, actor: Viewer) -> Response:
    """All metrics in Prometheus' text format; scrape with the key of a viewer."""
    return Response(
        exposition(context.catalog, VERSION, service_of(context).hub.figures()), media_type="text/plain; version=0.0.4"
    )
