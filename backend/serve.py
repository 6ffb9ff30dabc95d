"""Serve an app over HTTP, as every process of the API does."""

from __future__ import annotations

import gc
import socket
from contextlib import suppress

import uvicorn
from fastapi import FastAPI

from backend.context import Ending
from backend.listener import inherited
from backend.paced import PacedBodies
from backend.settings import Settings


class _Server(uvicorn.Server):
    """Waits for responses as it ends, but not for those that would never end by themselves."""

    def __init__(self, config: uvicorn.Config, ending: Ending) -> None:
        super().__init__(config)
        self._ending = ending

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """uvicorn's."""
        self._ending.begin()
        await super().shutdown(sockets)


def serve(app: FastAPI, settings: Settings) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    # Modules, models and routes stay for good. Without this the collector looks through all of them every now and
    # then, which takes a fifth of a second during which nobody is answered.
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
    config = uvicorn.Config(
        app, host=settings.host, port=settings.port, log_config=None, access_log=False, loop="uvloop",
        http=PacedBodies, ws="websockets-sansio", ws_max_size=1 << 20, ws_per_message_deflate=False,
        timeout_graceful_shutdown=5, server_header=False,
        # Whoever is not named here could choose the address that limits are counted for.
        proxy_headers=bool(settings.trusted_proxies), forwarded_allow_ips=list(settings.trusted_proxies),
    )  # fmt: skip
    shared = inherited()
    with suppress(KeyboardInterrupt):  # which uvicorn raises again when all is done
        _Server(config, app.state.context.ending).run(sockets=None if shared is None else [shared])
