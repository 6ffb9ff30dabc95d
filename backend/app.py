"""The HTTP application: `create_app(settings)`; `python -m backend` serves it."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module

from fastapi import Depends, FastAPI

from backend import frontend, problems
from backend.api import described, routers
from backend.api.bodies import check_body
from backend.api.parameters import check_parameters
from backend.catalog.database import Catalog
from backend.context import Context
from backend.middleware import install as install_middleware
from backend.settings import Settings
from backend.version import VERSION


def create_app(settings: Settings) -> FastAPI:
    """The app; the catalog must have been migrated (`backend.catalog.migrate.migrate`)."""
    context = Context(settings, Catalog(settings.catalog))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        # Nobody has to wait for the parser of queries until the first query comes.
        threading.Thread(target=import_module, args=("streamjoin.query",), name="load-parser", daemon=True).start()
        async with routers.background(context):
            yield
        context.catalog.close()

    app = FastAPI(
        title="StreamJoin",
        version=VERSION,
        description="Register streams, join them with one query, and ask the results.",
        lifespan=lifespan,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        responses={
            "4XX": {"model": problems.ProblemDocument, "description": "What is wrong, and the way out."},
            "5XX": {"model": problems.ProblemDocument, "description": "What failed."},
        },
        dependencies=[Depends(check_parameters), Depends(check_body)],
        generate_unique_id_function=lambda route: route.name,
        separate_input_output_schemas=False,
    )
    app.state.context = context
    problems.install(app)
    install_middleware(app, context)
    routers.include_all(app)
    described.install(app)
    frontend.install(app, settings)
    return app
