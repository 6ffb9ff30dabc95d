"""What routes share: settings, the catalog, and who asks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.requests import HTTPConnection

from backend.catalog.database import Catalog
from backend.settings import Settings


@dataclass(slots=True)
class Context:
    """One app's. `shared` holds what a part of the app keeps for itself, by name."""

    settings: Settings
    catalog: Catalog
    shared: dict[str, Any] = field(default_factory=dict)


def context_of(connection: HTTPConnection) -> Context:
    """The app's, for requests and websockets."""
    context = connection.app.state.context
    assert isinstance(context, Context)
    return context


async def of_request(request: Request) -> Context:  # for what is not async goes through a thread each time
    """The app's, for routes."""
    return context_of(request)


InContext = Annotated[Context, Depends(of_request)]
"""Type of a route's parameter."""
