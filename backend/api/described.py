"""What the API's description says of all routes alike, beside what FastAPI finds in their functions."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import iter_route_contexts

from backend.api.examples import example_of
from backend.auth.actor import ROLES, AtLeast, is_owned
from backend.idempotency import HEADER, is_done_once
from backend.kept import REPLAYED

ROLE: Final = "x-role"
"""The least role that may ask; null for anybody, logged in or not."""
OWNER: Final = "x-owner"
"""Whether of operators only the owner may."""
_KEY: Final = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": r"^[\x21-\x7e]+$"},
    "description": "A name of this request of the caller's own. Sent again under it within 24 hours, the same "
    "request gets the first reply and changes nothing. 409 while the first is being worked on, or where its reply "
    "was too long to keep, 422 for another request. What was refused or failed is tried again.",
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
                for method in context.methods or ():
                    operation = document["paths"].get(context.path, {}).get(method.lower())
                    if operation is not None:
                        _tell(operation, method, context)
        assert app.openapi_schema is not None
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]


def _tell(operation: dict[str, Any], method: str, context: Any) -> None:
    dependant = getattr(context, "dependant", None)
    if isinstance(dependant, Dependant):
        operation[ROLE] = role_of(dependant)
    operation[OWNER] = is_owned(context.endpoint)
    if method == "POST" and is_done_once(context.endpoint):
        _tell_of_key(operation)
    for reply in operation.get("responses", {}).values():
        for content in reply.get("content", {}).values():
            if (example := example_of(content.get("schema", {}))) is not None:
                content["example"] = example


def role_of(dependant: Dependant) -> str | None:
    """The role that a route demands by its dependencies; None where it demands nobody."""
    roles = [dependant.call.role] if isinstance(dependant.call, AtLeast) else []
    roles += [role for inner in dependant.dependencies if (role := role_of(inner)) is not None]
    return max(roles, key=ROLES.index, default=None)


def _tell_of_key(operation: dict[str, Any]) -> None:
    operation.setdefault("parameters", []).append(_KEY)
    for status, reply in operation.get("responses", {}).items():
        if status.startswith("2"):
            reply.setdefault("headers", {})[REPLAYED] = _REPLAYED
