"""Serve an app over HTTP, as every process of the API does."""

from __future__ import annotations

import gc

import uvicorn
from fastapi import FastAPI

from backend.listener import inherited
from backend.settings import Settings


def serve(app: FastAPI, settings: Settings) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    # Modules, models and routes stay for good. Without this the collector looks through all of them every now and
    # then, which takes a fifth of a second during which nobody is answered.
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
    config = uvicorn.Config(
        app, host=settings.host, port=settings.port, log_config=None, access_log=False, loop="uvloop",
        http="httptools", ws="websockets-sansio", ws_max_size=1 << 20, ws_per_message_deflate=False,
        timeout_graceful_shutdown=5, server_header=False,
    )  # fmt: skip
    shared = inherited()
    uvicorn.Server(config).run(sockets=None if shared is None else [shared])
