"""A parameter that no route knows is a mistake, such as a filter that is written wrong and would filter nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fastapi.dependencies.models import Dependant
from starlette.requests import HTTPConnection

from backend.problems import Place, Problem

_KNOWN: Final = "known_parameters"


async def check_parameters(connection: HTTPConnection) -> None:
    """A dependency of all routes.

    Raises:
        Problem: the request has a parameter that its route does not.
    """
    if connection.scope["type"] == "http" and connection.scope["query_string"]:
        check_names(connection.query_params.keys(), known_to(connection.scope["route"]))


def check_names(given: Iterable[str], known: frozenset[str]) -> None:
    """Refuse parameters that are not known.

    Raises:
        Problem: names the first, and those that there are.
    """
    unknown = [name for name in given if name not in known]
    if unknown:
        others = ", ".join(sorted(known)) or "none"
        detail = f"there is no parameter {unknown[0][:100]!r} here; there are: {others}"
        places = [Place(pointer=name[:100], detail="is no parameter of this request") for name in unknown[:20]]
        raise Problem("invalid.unknown_parameter", detail, params={"name": unknown[0][:100]}, errors=places)


def known_to(route: Any) -> frozenset[str]:
    """The parameters of a route, in its query; looked for once."""
    found: frozenset[str] | None = getattr(route, _KNOWN, None)
    if found is None:
        told = (getattr(route, "openapi_extra", None) or {}).get("parameters", [])
        names = {given["name"] for given in told if given["in"] == "query"}
        found = frozenset(names | _names(route.dependant))
        setattr(route, _KNOWN, found)
    return found


def _names(dependant: Dependant) -> set[str]:
    names = {field.alias for field in dependant.query_params}
    return names.union(*(_names(inner) for inner in dependant.dependencies))
