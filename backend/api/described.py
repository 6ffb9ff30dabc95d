"""What the API's description says of all routes alike, beside what FastAPI finds in their functions."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from backend.idempotency import HEADER, REPLAYED, is_done_once

_KEY: Final = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": r"^[\x21-\x7e]+$"},
    "description": "A name of this request of the caller's own. Sent again under it within 24 hours, the same "
    "request gets the first reply and changes nothing. 409 while the first is being worked on, 422 for another "
    "request. What was refused or failed is tried again.",
}
_REPLAYED: Final = {
    "schema": {"type": "string", "enum": ["true"]},
    "description": f"The reply is that of an earlier request with the same {HEADER}.",
}


def install(app: FastAPI) -> None:
    """Describe what all routes share."""
    plain = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = plain()
            for context in iter_route_contexts(app.routes):
                if "POST" in (context.methods or ()) and is_done_once(context.endpoint):
                    _tell_of_key(document["paths"].get(context.path, {}).get("post", {}))
        assert app.openapi_schema is not None
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]


def _tell_of_key(operation: dict[str, Any]) -> None:
    operation.setdefault("parameters", []).append(_KEY)
    for status, reply in operation.get("responses", {}).items():
        if status.startswith("2"):
            reply.setdefault("headers", {})[REPLAYED] = _REPLAYED
