"""Whether the process lives, and whether what it needs answers."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from anyio.to_thread import run_sync
from fastapi import APIRouter, Response
from sqlalchemy import text

from backend.context import Context, InContext

router = APIRouter(tags=["health"])
KEPT_S: Final = 1.0
"""So long an answer of /readyz is given again. Nobody needs to log in for it, so it must cost next to nothing."""
_SHARED: Final = "health"


class _Known:
    """What was found last, and the turn of who looks next."""

    def __init__(self) -> None:
        self.looking = asyncio.Lock()
        self.checks: dict[str, str] = {}
        self.until_s = 0.0


@router.get("/livez")
async def livez() -> dict[str, str]:
    """The process answers; nothing else is looked at."""
    return {"status": "alive"}


@router.get("/readyz")
async def readyz(context: InContext, response: Response) -> dict[str, Any]:
    """200 where requests can be served, else 503; what is checked is named one by one, at most once a second."""
    known = context.shared.setdefault(_SHARED, _Known())
    async with known.looking:
        if time.monotonic() >= known.until_s:
            known.checks = await run_sync(_checks, context)
            known.until_s = time.monotonic() + KEPT_S
    ready = known.checks["catalog"] == "ok"
    response.status_code = 200 if ready else 503
    return {"status": "ready" if ready else "not ready", "checks": known.checks}


def _checks(context: Context) -> dict[str, str]:
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
    return checks
