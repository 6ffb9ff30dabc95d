"""Whether the process lives, and whether what it needs answers."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response
from sqlalchemy import text

from backend.context import InContext

router = APIRouter(tags=["health"])


@router.get("/livez")
def livez() -> dict[str, str]:
    """The process answers; nothing else is looked at."""
    return {"status": "alive"}


@router.get("/readyz")
def readyz(context: InContext, response: Response) -> dict[str, Any]:
    """200 where requests can be served, else 503; what is checked is named one by one."""
    checks: dict[str, str] = {}
    try:
        with context.catalog.read() as session:
            session.execute(text("SELECT 1"))
        checks["catalog"] = "ok"
    except Exception as failure:
        checks["catalog"] = f"does not answer ({type(failure).__name__})"
    try:
        import redis

        redis.Redis.from_url(context.settings.redis_url, socket_connect_timeout=1, socket_timeout=1).ping()
        checks["redis"] = "ok"
    except Exception as failure:
        checks["redis"] = f"does not answer ({type(failure).__name__})"
    ready = checks["catalog"] == "ok"
    response.status_code = 200 if ready else 503
    return {"status": "ready" if ready else "not ready", "checks": checks}
