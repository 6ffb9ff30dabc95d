"""Every route of an app, asked by everybody: nobody, a viewer, an operator and an admin."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import iter_route_contexts
from fastapi.testclient import TestClient

from backend.api.reads import ReadsFirst
from backend.app import create_app
from backend.auth.actor import ROLES, AtLeast
from backend.auth.keys import make_key
from backend.auth.passwords import hash_password
from backend.catalog.ids import new_id, now_us
from backend.catalog.models import User
from backend.context import Context
from backend.settings import Settings
from tests.catalogs import migrated

ANONYMOUS = "anonymous"
EVERYBODY = (ANONYMOUS, *ROLES)
SAFE = ("GET", "HEAD", "OPTIONS")
PASSWORD = "correct horse battery"


@dataclass(frozen=True, slots=True)
class Person:
    """A user of a test, with a key of their own role."""

    id: str
    name: str
    key_id: str
    key: str

    @property
    def headers(self) -> dict[str, str]:
        """What their programs send."""
        return {"Authorization": f"Bearer {self.key}"}


@dataclass(frozen=True, slots=True)
class Asked:
    """One route, who asked, and the answer."""

    method: str
    path: str
    role: str
    status: int
    code: str | None


def add_person(context: Context, name: str, role: str, password: str | None = PASSWORD) -> Person:
    """A user in the catalog."""
    user = User(
        id=new_id("usr"), name=name, role=role, password=password and _hash_of(password), disabled=False,
        created_at_us=now_us(),
    )  # fmt: skip
    row, key = make_key(user.id, f"{name}'s", role)
    with context.catalog.begin() as session:
        session.add(user)
        session.flush()
        session.add(row)
    return Person(user.id, user.name, row.id, key)


def new_app(settings: Settings) -> FastAPI:
    """An app on a migrated catalog."""
    migrated(settings)
    return create_app(settings)


def routes_of(app: FastAPI) -> list[tuple[str, str]]:
    """Method and path of every operation that the API's description has, and of those it hides."""
    described = {
        (method.upper(), path)
        for path, operations in app.openapi()["paths"].items()
        for method in operations
        if method in ("get", "put", "post", "delete", "patch", "head", "options")
    }
    hidden = {
        (method, str(context.path)) for context in iter_route_contexts(app.routes) for method in context.methods or ()
        if method != "HEAD"
    }  # fmt: skip
    return sorted(described | hidden)


def demanded(app: FastAPI) -> dict[tuple[str, str], str | None]:
    """The role that each route demands by its dependencies; None where it demands nobody."""
    found: dict[tuple[str, str], str | None] = {}
    for context in iter_route_contexts(app.routes):
        if isinstance(context.original_route, ReadsFirst):  # it answers for routes that are there themselves
            continue
        dependant = getattr(context, "dependant", None)
        role = _role_of(dependant) if isinstance(dependant, Dependant) else None
        for method in context.methods or ("WEBSOCKET",):
            if method != "HEAD":
                found[method, str(context.path)] = role
    return found


def ask_all(app: FastAPI, people: Mapping[str, Person], ids: Mapping[str, str] | None = None) -> Iterator[Asked]:
    """Ask every route, with an empty object as its body.

    Args:
        people: by role.
        ids: what stands for a parameter of a path; something that does not exist, unless given.
    """
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        for method, path in routes_of(app):
            filled = re.sub(r"{([^}:]+)[^}]*}", lambda match: (ids or {}).get(match[1], "0"), path)
            for role in EVERYBODY:
                headers = people[role].headers if role in people else {}
                body: dict[str, Any] = {} if method in SAFE else {"json": {}}
                answer = client.request(method, filled, headers=headers, follow_redirects=False, **body)
                is_problem = answer.headers.get("content-type", "").startswith("application/problem+json")
                code = answer.json()["code"] if is_problem else None
                yield Asked(method, path, role, answer.status_code, code)


@lru_cache
def _hash_of(password: str) -> str:
    return hash_password(password)


def _role_of(dependant: Dependant) -> str | None:
    roles = [dependant.call.role] if isinstance(dependant.call, AtLeast) else []
    roles += [role for inner in dependant.dependencies if (role := _role_of(inner)) is not None]
    return max(roles, key=ROLES.index, default=None)
