"""Who may ask what, for every route there is: a new route without a role fails here."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi import FastAPI

from backend.auth.actor import ANYBODY, ROLES, Actor, may_change
from backend.problems import Problem
from backend.settings import Settings
from tests.backend.matrix import ANONYMOUS, SAFE, Asked, add_person, ask_all, demanded, new_app, routes_of

OPEN = {
    ("GET", "/livez"),
    ("GET", "/readyz"),
    ("GET", "/api/v1/openapi.json"),
    ("GET", "/api/v1/problems/{code}"),
    ("POST", "/api/v1/sessions"),
}
"""What nobody needs to log in for."""

VIEWER_MAY = {
    ("DELETE", "/api/v1/sessions/current"),
    ("PUT", "/api/v1/users/me/password"),
    ("POST", "/api/v1/api-keys"),
    ("DELETE", "/api/v1/api-keys/{id}"),
    ("POST", "/api/v1/streams/{id}/sample"),
    ("POST", "/api/v1/relations/{id}/sample"),
    ("POST", "/api/v1/jobs/validate"),
    ("POST", "/api/v1/jobs/explain"),
    ("POST", "/api/v1/jobs/preview"),
    ("POST", "/api/v1/jobs/{id}/diff"),
    ("POST", "/api/v1/queries"),
    ("DELETE", "/api/v1/queries/{id}"),
}
"""Other methods than GET that change nothing but what is a viewer's own."""

WEBSOCKETS = {"/api/v1/ws"}
"""Each asks `actor_of_websocket` by itself, and has tests of its own for that."""

ADMIN_ONLY = {
    ("GET", "/api/v1/users"),
    ("POST", "/api/v1/users"),
    ("GET", "/api/v1/users/{id}"),
    ("PATCH", "/api/v1/users/{id}"),
    ("DELETE", "/api/v1/users/{id}"),
}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    """With auth, and without Redis."""
    return new_app(settings_of(tmp_path_factory.mktemp("matrix")))


@pytest.fixture(scope="module")
def answers(app: FastAPI) -> list[Asked]:
    """Everything that everybody was answered."""
    people = {role: add_person(app.state.context, f"the-{role}", role) for role in ROLES}
    return list(ask_all(app, people))


def settings_of(folder: Path) -> Settings:
    return Settings(data=folder, redis_url="redis://127.0.0.1:1/0", auth="on", rate_limit="100000/minute")


def without_role(app: FastAPI) -> set[tuple[str, str]]:
    """Routes that demand nobody, and are not known to be open."""
    return {
        (method, path) for (method, path), role in demanded(app).items()
        if role is None and (method, path) not in OPEN and not (method == "WEBSOCKET" and path in WEBSOCKETS)
    }  # fmt: skip


def test_every_route_demands_a_role_or_is_known_to_be_open(app: FastAPI) -> None:
    assert without_role(app) == set()
    assert len(demanded(app)) > 15


@pytest.mark.slow
def test_a_route_that_somebody_forgot_is_found(tmp_path: Path) -> None:
    app = new_app(settings_of(tmp_path))

    @app.get("/api/v1/forgotten")
    def forgotten() -> None:
        """Open to everybody."""

    @app.delete("/hidden", include_in_schema=False)
    def hidden() -> None:
        """Not even described."""

    assert without_role(app) == {("GET", "/api/v1/forgotten"), ("DELETE", "/hidden")}
    people = {role: add_person(app.state.context, f"the-{role}", role) for role in ROLES}
    answered = {(one.path, one.role): one.status for one in ask_all(app, people)}
    assert answered["/api/v1/forgotten", ANONYMOUS] == 401  # the guard holds by itself
    assert answered["/hidden", "viewer"] == 200  # and this is what the table below would find


def test_what_changes_things_demands_more_than_a_viewer(app: FastAPI) -> None:
    for (method, path), role in demanded(app).items():
        if method not in (*SAFE, "WEBSOCKET") and (method, path) not in OPEN | VIEWER_MAY:
            assert role in ("operator", "admin"), (method, path)
        if (method, path) in ADMIN_ONLY:
            assert role == "admin", (method, path)
    assert set(demanded(app)) >= ADMIN_ONLY


def test_nothing_fails_whoever_asks(answers: list[Asked]) -> None:
    # Of an empty platform: what needs Redis or a store answers 503 with a problem at most.
    assert [one for one in answers if one.status >= 500 and one.code != "unavailable"] == []
    assert {(one.method, one.path) for one in answers} >= OPEN - {("GET", "/api/v1/problems/{code}")}


def test_nobody_is_let_in_without_a_login(answers: list[Asked]) -> None:
    for one in answers:
        if one.role == ANONYMOUS:
            is_refused = (one.status, one.code) == (401, "unauthenticated")
            assert is_refused != ((one.method, one.path) in OPEN), one


def test_viewers_change_nothing_but_what_is_their_own(answers: list[Asked]) -> None:
    for one in answers:
        if one.role == "viewer" and one.method not in SAFE and (one.method, one.path) not in OPEN:
            assert (one.status == 403) != ((one.method, one.path) in VIEWER_MAY), one


def test_users_are_for_admins(answers: list[Asked]) -> None:
    for one in answers:
        if (one.method, one.path) in ADMIN_ONLY and one.role != ANONYMOUS:
            assert (one.status == 403) == (one.role != "admin"), one


def test_admins_are_refused_nothing_for_their_role(answers: list[Asked]) -> None:
    assert [one for one in answers if one.role == "admin" and one.status in (401, 403)] == []


def test_an_unknown_path_is_not_taken_for_an_allowed_one(app: FastAPI) -> None:
    assert ("GET", "/api/v1/nothing") not in routes_of(app)
    assert demanded(app).get(("GET", "/api/v1/nothing"), "absent") == "absent"


def test_operators_change_what_is_their_own_and_admins_everything() -> None:
    def may(role: str, id: str | None, owner_id: str | None) -> bool:
        try:
            may_change(Actor(id, "somebody", role), owner_id)
        except Problem as refused:
            return refused.code != "forbidden"
        return True

    assert may("operator", "usr_1", "usr_1")
    assert not may("operator", "usr_1", "usr_2")
    assert not may("operator", "usr_1", None)
    assert not may("operator", None, None)
    assert not may("viewer", "usr_1", "usr_1")
    assert may("admin", "usr_1", "usr_2") and may("admin", "usr_1", None)
    may_change(ANYBODY, "usr_1")
