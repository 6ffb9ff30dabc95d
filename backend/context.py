"""What routes share: settings, the catalog, and who asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.requests import HTTPConnection

from backend.catalog.database import Catalog
from backend.settings import Settings


@dataclass(slots=True)
class Ending:
    """Tells responses without an end of their own that the server is to end.

    Args:
        wake: called when it begins.
    """

    has_begun: bool = False
    wake: set[Callable[[], None]] = field(default_factory=set)

    def begin(self) -> None:
        """On the app's event loop."""
        self.has_begun = True
        for call in list(self.wake):
            call()


@dataclass(slots=True)
class Context:
    """One app's. `shared` holds what a part of the app keeps for itself, by name."""

    settings: Settings
    catalog: Catalog
    shared: dict[str, Any] = field(default_factory=dict)
    ending: Ending = field(default_factory=Ending)


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
