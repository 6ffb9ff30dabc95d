"""Which path and which route a request means. Whatever looks at either asks here, and gets the router's own answer.

A path as it arrives may begin with `root_path` or not, as the proxy in front of us likes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi.routing import iter_route_contexts
from starlette._utils import get_route_path
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send


def path_of(scope: Scope) -> str:
    """The path that routes are compared with: decoded, and without `root_path`."""
    return get_route_path(scope)


def endpoint_of(scope: Scope) -> Callable[..., Any] | None:
    """The function that will answer; None where no route does.

    Cost: compares the path with every route.
    """
    for context in iter_route_contexts(scope["app"].routes):
        match, found = context.matches(scope)
        if match is Match.FULL:
            endpoint: Callable[..., Any] | None = found.get("endpoint")
            return endpoint
    return None


class Below:
    """ASGI middleware around everything else: tells it the `root_path` that the platform is shown below."""

    def __init__(self, app: ASGIApp, root_path: str) -> None:
        self.app = app
        self.root_path = root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI's."""
        await self.app({**scope, "root_path": self.root_path}, receive, send)
