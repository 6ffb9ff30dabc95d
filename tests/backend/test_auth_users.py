"""Logging in, users and keys, over HTTP: who gets in, who does not, and what is never shown."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import delete, select, update

from backend.api import api_keys
from backend.auth import passwords
from backend.auth.keys import hash_of
from backend.auth.sessions import COOKIE
from backend.catalog.ids import now_us
from backend.catalog.models import ApiKey, Event, Idempotency, Session, Stream, User
from backend.context import Context
from backend.settings import Settings
from tests.backend.matrix import PASSWORD, Person, add_person, new_app

pytestmark = pytest.mark.slow

PAGE = {"Origin": "http://127.0.0.1"}
NEW_PASSWORD = "a longer staple"


@pytest.fixture
def app(tmp_path: Path) -> FastAPI:
    """With auth, and without Redis."""
    return new_app(Settings(data=tmp_path, redis_url="redis://127.0.0.1:1/0", auth="on"))


@pytest.fixture
def context(app: FastAPI) -> Context:
    """The app's."""
    found = app.state.context
    assert isinstance(found, Context)
    return found


@pytest.fixture
def api(app: FastAPI) -> Iterator[TestClient]:
    """A browser, on a page of ours."""
    with TestClient(app, base_url="http://127.0.0.1", headers=PAGE, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def admin(context: Context) -> Person:
    """One admin."""
    return add_person(context, "ada", "admin")


@pytest.fixture
def viewer(context: Context) -> Person:
    """One viewer."""
    return add_person(context, "vera", "viewer")


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient, dict[str, str]]]:
    """A client of one app for all requests that change nothing, and an admin's headers."""
    settings = Settings(data=tmp_path_factory.mktemp("still"), redis_url="redis://127.0.0.1:1/0")
    app = new_app(settings)
    owner = add_person(app.state.context, "dora", "admin")
    with TestClient(app, base_url="http://127.0.0.1", headers=PAGE, raise_server_exceptions=False) as client:
        yield client, owner.headers


def log_in(api: TestClient, name: str, password: str = PASSWORD) -> Any:
    return api.post("/api/v1/sessions", json={"name": name, "password": password})


def test_whoever_logs_in_is_who_they_are_until_they_log_out(api: TestClient, viewer: Person) -> None:
    assert api.get("/api/v1/users/me").status_code == 401
    answer = log_in(api, "vera")
    assert answer.status_code == 201
    assert answer.json() == {"id": viewer.id, "name": "vera", "role": "viewer", "key_id": None}
    assert api.get("/api/v1/users/me").json()["name"] == "vera"
    token = api.cookies[COOKIE]
    assert api.delete("/api/v1/sessions/current").status_code == 204
    assert COOKIE not in api.cookies
    # A copy of the cookie is worth nothing either.
    assert api.get("/api/v1/users/me", headers={"Cookie": f"{COOKIE}={token}"}).status_code == 401


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(api: TestClient, viewer: Person) -> None:
    flags = log_in(api, "vera").headers["set-cookie"].lower()
    assert all(flag in flags for flag in ("httponly", "samesite=lax", "path=/", "max-age=43200"))
    assert "secure" not in flags
    secure = api.post(
        "/api/v1/sessions", json={"name": "vera", "password": PASSWORD},
        headers={"Origin": "https://127.0.0.1", "Host": "127.0.0.1"},
    )  # fmt: skip
    assert "secure" in secure.headers["set-cookie"].lower()


def test_a_wrong_password_and_an_unknown_name_get_the_same_answer(api: TestClient, viewer: Person) -> None:
    wrong, unknown = log_in(api, "vera", "not this one"), log_in(api, "nobody", "not this one")
    assert (wrong.status_code, unknown.status_code) == (401, 401)
    assert {**wrong.json(), "request_id": ""} == {**unknown.json(), "request_id": ""}
    assert "set-cookie" not in wrong.headers


def test_a_disabled_user_and_a_right_password_get_that_answer_too(
    api: TestClient, context: Context, viewer: Person
) -> None:
    log_in(api, "vera")
    with context.catalog.begin() as session:
        session.execute(update(User).where(User.id == viewer.id).values(disabled=True))
    assert api.get("/api/v1/users/me").status_code == 401
    answers = [log_in(api, "vera") for _ in range(11)]
    assert [answer.status_code for answer in answers] == [401] * 10 + [429]  # being right is not forgiven either
    assert {**answers[0].json(), "request_id": ""} == {**log_in(api, "nobody").json(), "request_id": ""}


def test_as_much_is_hashed_for_names_that_do_not_exist(
    api: TestClient, viewer: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[str] = []
    real = passwords._hasher.verify

    def counting(password: str, known: str) -> bool:
        hashed.append(known)
        return real(password, known)

    monkeypatch.setattr(passwords._hasher, "verify", counting)
    for name in ("vera", "nobody", "no\0body"):
        log_in(api, name, "wrong")
    costs = [re.findall(r"m=\d+,t=\d+,p=\d+", known) for known in hashed]
    assert len(costs) == 3 and costs[0] == costs[1] == costs[2] and costs[0]


def test_a_planted_cookie_is_not_taken_over_and_ends(api: TestClient, context: Context, viewer: Person) -> None:
    planted = "x" * 43
    api.cookies.set(COOKIE, planted, domain="127.0.0.1", path="/")
    log_in(api, "vera")
    first = api.cookies[COOKIE]
    assert first != planted
    assert api.get("/api/v1/users/me", headers={"Cookie": f"{COOKIE}={planted}"}).status_code == 401
    log_in(api, "vera")
    assert api.get("/api/v1/users/me", headers={"Cookie": f"{COOKIE}={first}"}).status_code == 401
    with context.catalog.read() as session:
        assert len(session.scalars(select(Session)).all()) == 1


def test_a_login_expires(api: TestClient, context: Context, viewer: Person) -> None:
    log_in(api, "vera")
    with context.catalog.begin() as session:
        session.execute(update(Session).values(expires_at_us=now_us() - 1))
    assert api.get("/api/v1/users/me").status_code == 401
    log_in(api, "vera")
    with context.catalog.read() as session:  # the expired one was cleared away
        assert len(session.scalars(select(Session)).all()) == 1


@pytest.mark.parametrize(
    "header",
    ["Bearer", "Bearer ", "Bearer sj_", "Bearer sj_" + "A" * 43, "Bearer sj_" + "A" * 10_000, "bearer \x7f",
     "Bearer a b", "Basic YWRhOmFkYQ==", "sj_" + "A" * 43],
)  # fmt: skip
def test_what_is_no_key_opens_nothing(still: tuple[TestClient, dict[str, str]], header: str) -> None:
    assert still[0].get("/api/v1/users/me", headers={"Authorization": header}).status_code == 401


def test_a_key_opens_until_it_is_revoked(api: TestClient, viewer: Person) -> None:
    made = api.post("/api/v1/api-keys", json={"name": "ci", "role": "viewer"}, headers=viewer.headers)
    assert made.status_code == 201
    key = made.json()["key"]
    assert re.fullmatch(r"sj_[A-Za-z0-9_-]{43}", key)
    own = {"Authorization": f"Bearer {key}"}
    me = api.get("/api/v1/users/me", headers=own).json()
    assert (me["id"], me["key_id"]) == (viewer.id, made.json()["id"])
    for _ in range(2):
        assert api.delete(f"/api/v1/api-keys/{made.json()['id']}", headers=viewer.headers).status_code == 204
    assert api.get("/api/v1/users/me", headers=own).status_code == 401
    shown = {row["id"]: row for row in api.get("/api/v1/api-keys", headers=viewer.headers).json()["data"]}
    assert shown[made.json()["id"]]["revoked_at"].endswith("Z")


def test_a_key_with_less_than_its_owner_s_role_is_told_what_its_owner_can_do(
    api: TestClient, context: Context, viewer: Person
) -> None:
    def refused(who: Person, path: str) -> str:
        key = api.post("/api/v1/api-keys", json={"name": "ci", "role": "viewer"}, headers=who.headers).json()["key"]
        answer = api.post(path, json={}, headers={"Authorization": f"Bearer {key}"})
        assert answer.status_code == 403
        return str(answer.json()["detail"])

    operator = add_person(context, "olga", "operator")
    begins = "this needs the role operator, and this key has viewer"
    assert refused(operator, "/api/v1/streams") == f"{begins}; make a key with the role operator"
    assert refused(viewer, "/api/v1/streams") == f"{begins}; an admin can change that"
    assert refused(operator, "/api/v1/users").endswith("this key has viewer; an admin can change that")


def test_a_wrong_key_is_not_made_good_by_a_cookie(api: TestClient, viewer: Person) -> None:
    log_in(api, "vera")
    wrong = {"Authorization": "Bearer sj_" + "A" * 43}
    assert api.get("/api/v1/users/me", headers=wrong).status_code == 401


def test_a_key_may_not_do_more_than_its_user_at_the_time_of_use(
    api: TestClient, context: Context, admin: Person
) -> None:
    boss = add_person(context, "bob", "admin")
    assert api.get("/api/v1/users", headers=boss.headers).status_code == 200
    api.patch(f"/api/v1/users/{boss.id}", json={"role": "viewer"}, headers=admin.headers)
    assert api.get("/api/v1/users", headers=boss.headers).status_code == 403
    assert api.get("/api/v1/users/me", headers=boss.headers).json()["role"] == "viewer"


def test_a_key_makes_no_key_that_may_more(api: TestClient, admin: Person) -> None:
    weak = api.post("/api/v1/api-keys", json={"name": "weak", "role": "viewer"}, headers=admin.headers).json()["key"]
    own = {"Authorization": f"Bearer {weak}"}
    assert api.post("/api/v1/api-keys", json={"name": "more", "role": "operator"}, headers=own).status_code == 403
    assert api.get("/api/v1/users", headers=own).status_code == 403
    assert api.get("/api/v1/api-keys?all=true", headers=own).status_code == 403
    assert api.delete(f"/api/v1/api-keys/{admin.key_id}", headers=own).status_code == 403


def test_disabling_a_user_ends_everything_of_theirs_at_once(api: TestClient, admin: Person, viewer: Person) -> None:
    log_in(api, "vera")
    token = api.cookies[COOKIE]
    api.cookies.clear()
    assert api.patch(f"/api/v1/users/{viewer.id}", json={"disabled": True}, headers=admin.headers).status_code == 200
    assert api.get("/api/v1/users/me", headers=viewer.headers).status_code == 401
    assert api.get("/api/v1/users/me", headers={"Cookie": f"{COOKIE}={token}"}).status_code == 401
    api.patch(f"/api/v1/users/{viewer.id}", json={"disabled": False}, headers=admin.headers)
    assert api.get("/api/v1/users/me", headers=viewer.headers).status_code == 200
    assert api.get("/api/v1/users/me", headers={"Cookie": f"{COOKIE}={token}"}).status_code == 401


def test_the_use_of_a_key_is_noted_at_most_once_a_minute(api: TestClient, context: Context, viewer: Person) -> None:
    def used() -> int | None:
        with context.catalog.read() as session:
            return session.scalars(select(ApiKey.used_at_us).where(ApiKey.id == viewer.key_id)).one()

    assert used() is None
    api.get("/api/v1/users/me", headers=viewer.headers)
    first = used()
    assert first is not None
    api.get("/api/v1/users/me", headers=viewer.headers)
    assert used() == first
    with context.catalog.begin() as session:
        session.execute(update(ApiKey).values(used_at_us=first - 61_000_000))
    api.get("/api/v1/users/me", headers=viewer.headers)
    assert (used() or 0) >= first


def test_ones_own_password_needs_the_old_one_and_ends_the_other_logins(
    app: FastAPI, api: TestClient, viewer: Person
) -> None:
    log_in(api, "vera")
    with TestClient(app, base_url="http://127.0.0.1", headers=PAGE) as other:
        log_in(other, "vera")
        wrong = api.put("/api/v1/users/me/password", json={"old": "guess", "new": NEW_PASSWORD})
        assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "/old")
        right = api.put("/api/v1/users/me/password", json={"old": PASSWORD, "new": NEW_PASSWORD})
        assert right.status_code == 204
        assert api.get("/api/v1/users/me").status_code == 200
        assert other.get("/api/v1/users/me").status_code == 401
        assert log_in(other, "vera").status_code == 401
        assert log_in(other, "vera", NEW_PASSWORD).status_code == 201


def test_attack_a_copied_cookie_opens_nothing_after_the_password_was_changed_with_it(
    app: FastAPI, api: TestClient, viewer: Person
) -> None:
    log_in(api, "vera")
    copied = {"Cookie": f"{COOKIE}={api.cookies[COOKIE]}"}
    key = made_with(api)
    changed = api.put("/api/v1/users/me/password", json={"old": PASSWORD, "new": NEW_PASSWORD})
    assert changed.status_code == 204 and "httponly" in changed.headers["set-cookie"].lower()
    assert api.get("/api/v1/users/me").status_code == 200  # by the new cookie
    assert not opens(api, key)
    api.cookies.clear()
    assert api.get("/api/v1/users/me", headers=copied).status_code == 401


def test_a_password_that_is_changed_with_a_key_logs_nobody_in(api: TestClient, viewer: Person) -> None:
    log_in(api, "vera")
    passwords = {"old": PASSWORD, "new": NEW_PASSWORD}
    changed = api.put("/api/v1/users/me/password", json=passwords, headers=viewer.headers)
    assert changed.status_code == 204 and "set-cookie" not in changed.headers
    assert api.get("/api/v1/users/me").status_code == 401
    assert api.get("/api/v1/users/me", headers=viewer.headers).status_code == 200


def test_guessing_ones_own_password_is_limited_too(api: TestClient, viewer: Person) -> None:
    statuses = [
        api.put(
            "/api/v1/users/me/password", json={"old": f"guess {i}", "new": NEW_PASSWORD}, headers=viewer.headers
        ).status_code
        for i in range(12)
    ]
    assert statuses == [422] * 10 + [429] * 2


def test_an_admin_sets_the_password_of_others_only(api: TestClient, admin: Person, viewer: Person) -> None:
    log_in(api, "vera")
    token = api.cookies[COOKIE]
    api.cookies.clear()
    change = {"password": NEW_PASSWORD}
    assert api.patch(f"/api/v1/users/{admin.id}", json=change, headers=admin.headers).status_code == 403
    assert api.patch("/api/v1/users/vera", json=change, headers=admin.headers).status_code == 200
    assert api.get("/api/v1/users/me", headers={"Cookie": f"{COOKIE}={token}"}).status_code == 401
    assert log_in(api, "vera", NEW_PASSWORD).status_code == 201


def test_brute_force_is_slowed_down_and_says_when_to_come_again(api: TestClient, viewer: Person) -> None:
    answers = [log_in(api, "vera", f"guess {i}") for i in range(13)]
    assert [answer.status_code for answer in answers] == [401] * 10 + [429] * 3
    last = answers[-1]
    assert last.json()["code"] == "rate_limited"
    assert 1 <= int(last.headers["retry-after"]) <= 60
    assert log_in(api, "vera").status_code == 429  # the right one does not get through either
    assert log_in(api, "nobody", "guess").status_code == 401  # others are not locked out


def test_mistyped_passwords_are_forgiven_by_the_right_one(api: TestClient, viewer: Person) -> None:
    for _ in range(3):
        assert [log_in(api, "vera", "mistyped").status_code for _ in range(5)] == [401] * 5
        assert log_in(api, "vera").status_code == 201


def test_guesses_at_the_same_moment_do_not_slip_through(api: TestClient, viewer: Person) -> None:
    together = threading.Barrier(24)

    def guess(i: int) -> int:
        together.wait()
        return int(log_in(api, "vera", f"guess {i}").status_code)

    with ThreadPoolExecutor(24) as pool:
        statuses = list(pool.map(guess, range(24)))
    assert statuses.count(401) == 10 and statuses.count(429) == 14


def test_keys_that_are_guessed_count_for_the_address(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path, redis_url="redis://127.0.0.1:1/0", rate_limit="5/minute")
    with TestClient(new_app(settings), base_url="http://127.0.0.1") as api:
        statuses = [
            api.get("/api/v1/users/me", headers={"Authorization": f"Bearer sj_{'A' * 42}{i}"}).status_code
            for i in range(7)
        ]
        assert statuses == [401] * 5 + [429] * 2
        assert api.get("/livez").status_code == 200


def test_users_are_made_found_changed_and_removed(api: TestClient, context: Context, admin: Person) -> None:
    made = api.post(
        "/api/v1/users", json={"name": "olga", "role": "operator", "password": NEW_PASSWORD}, headers=admin.headers
    )
    assert made.status_code == 201
    olga = made.json()
    assert set(olga) == {"id", "name", "role", "disabled", "created_at"}
    assert made.headers["location"] == f"/api/v1/users/{olga['id']}"
    assert api.get("/api/v1/users/olga", headers=admin.headers).json() == olga
    with context.catalog.begin() as session:
        session.add(Stream(id="str_1", name="bids", owner_id=olga["id"], spec={}, secrets=None))
    assert api.delete(f"/api/v1/users/{olga['id']}", headers=admin.headers).status_code == 204
    assert api.get(f"/api/v1/users/{olga['id']}", headers=admin.headers).status_code == 404
    with context.catalog.read() as session:
        assert session.scalars(select(Stream.owner_id)).one() is None
        kinds = [event.kind for event in session.scalars(select(Event)) if event.actor_id == admin.id]
    assert kinds == ["user.created", "user.deleted"]


def test_a_name_is_taken_once(api: TestClient, admin: Person, viewer: Person) -> None:
    body = {"name": "vera", "role": "viewer", "password": NEW_PASSWORD}
    answer = api.post("/api/v1/users", json=body, headers=admin.headers)
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


@pytest.mark.parametrize(
    "name",
    ["", "A", "a b", "../../etc", "a/b", "%2e%2e", "a\u202eb", "a\0", "a\n", "me", "-a", "a" * 64, "ü", 1, None, True],
)
def test_a_name_that_is_none_is_refused(still: tuple[TestClient, dict[str, str]], name: object) -> None:
    body = {"name": name, "role": "viewer", "password": NEW_PASSWORD}
    answer = still[0].post("/api/v1/users", json=body, headers=still[1])
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/name")


@pytest.mark.parametrize("password", ["", "short", "x" * 201, "x" * 2000, "dora-the-user", 12345678, None])
def test_a_password_that_is_none_is_refused_and_not_echoed(
    still: tuple[TestClient, dict[str, str]], password: object
) -> None:
    body = {"name": "dora-the-user", "role": "viewer", "password": password}
    answer = still[0].post("/api/v1/users", json=body, headers=still[1])
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/password")
    assert not password or str(password) not in answer.text


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'{"name": "x", "password": "y", "admin": true}', b'{"name": 1, "password": "y"}',
     b'{"name": "\\ud800", "password": "y"}', b'{"name": "x", "password": "\\ud800"}', b"\xff\xfe", b"[" * 4000],
)  # fmt: skip
def test_a_login_that_is_none_is_a_named_mistake(still: tuple[TestClient, dict[str, str]], body: bytes) -> None:
    answer = still[0].post("/api/v1/sessions", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.json()["code"] in ("bad_request", "invalid")


def test_a_login_must_be_json_and_not_a_form(api: TestClient, viewer: Person) -> None:
    text = f'{{"name": "vera", "password": "{PASSWORD}"}}'
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        answer = api.post("/api/v1/sessions", content=text, headers={"Content-Type": kind})
        assert answer.status_code in (415, 422)
        assert "set-cookie" not in answer.headers


def test_the_last_admin_stays(api: TestClient, context: Context, admin: Person) -> None:
    for change in ({"role": "viewer"}, {"disabled": True}):
        answer = api.patch(f"/api/v1/users/{admin.id}", json=change, headers=admin.headers)
        assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert api.delete(f"/api/v1/users/{admin.id}", headers=admin.headers).status_code == 409
    disabled = add_person(context, "bob", "admin")
    assert api.patch(f"/api/v1/users/{disabled.id}", json={"disabled": True}, headers=admin.headers).status_code == 200
    assert api.delete(f"/api/v1/users/{admin.id}", headers=admin.headers).status_code == 409
    assert api.patch(f"/api/v1/users/{disabled.id}", json={"disabled": False}, headers=admin.headers).status_code == 200
    assert api.delete(f"/api/v1/users/{admin.id}", headers=admin.headers).status_code == 204


def test_lists_come_in_pages(api: TestClient, context: Context, admin: Person) -> None:
    for number in range(4):
        add_person(context, f"user{number}", "viewer")
    seen: list[str] = []
    path = "/api/v1/users?limit=2"
    while path:
        answer = api.get(path, headers=admin.headers)
        seen += [user["name"] for user in answer.json()["data"]]
        assert answer.json()["has_more"] == ("link" in answer.headers)
        path = answer.links["next"]["url"] if "link" in answer.headers else ""
    assert seen == ["user3", "user2", "user1", "user0", "ada"]
    for wrong in ("limit=0", "limit=201", "limit=-1", "limit=x", "starting_after=" + "x" * 200):
        assert api.get(f"/api/v1/users?{wrong}", headers=admin.headers).status_code == 422
    assert api.get("/api/v1/users?starting_after=%00", headers=admin.headers).status_code == 400
    assert api.get("/api/v1/users/%00", headers=admin.headers).status_code == 400


def test_keys_of_others_are_neither_listed_nor_revoked_nor_there(
    api: TestClient, context: Context, admin: Person, viewer: Person
) -> None:
    other = add_person(context, "olga", "operator")
    mine = api.get("/api/v1/api-keys", headers=viewer.headers).json()["data"]
    assert [key["id"] for key in mine] == [viewer.key_id]
    theirs = api.delete(f"/api/v1/api-keys/{other.key_id}", headers=viewer.headers)
    absent = api.delete("/api/v1/api-keys/key_0", headers=viewer.headers)
    assert (theirs.status_code, absent.status_code) == (404, 404)
    assert theirs.json()["detail"].replace(other.key_id, "key_0") == absent.json()["detail"]
    everyone = api.get("/api/v1/api-keys?all=true", headers=admin.headers).json()["data"]
    assert len(everyone) == 3
    assert api.delete(f"/api/v1/api-keys/{other.key_id}", headers=admin.headers).status_code == 204


@pytest.mark.parametrize("body", [{}, {"name": ""}, {"name": "  "}, {"name": "a\u202eb"}, {"name": "x" * 101},
                                  {"name": "x", "role": "owner"}, {"name": "x", "more": 1}])  # fmt: skip
def test_a_key_that_is_none_is_not_made(still: tuple[TestClient, dict[str, str]], body: dict[str, Any]) -> None:
    assert still[0].post("/api/v1/api-keys", json=body, headers=still[1]).status_code == 422


def test_nobody_has_more_than_a_hundred_keys(api: TestClient, viewer: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backend.api.api_keys.KEYS_MAX", 2)
    statuses = [api.post("/api/v1/api-keys", json={"name": "k"}, headers=viewer.headers).status_code for _ in range(2)]
    assert statuses == [201, 409]


def test_no_answer_and_no_row_of_the_catalog_shows_a_secret(
    app: FastAPI, api: TestClient, context: Context, admin: Person, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    secret = "canary password 1"
    texts = [api.post("/api/v1/users", json={"name": "cleo", "role": "admin", "password": secret},
                      headers=admin.headers).text]  # fmt: skip
    texts.append(log_in(api, "cleo", secret).text)
    token = api.cookies[COOKIE]
    made = api.post("/api/v1/api-keys", json={"name": "canary", "role": "admin"})
    key = made.json()["key"]
    for path in ("users", "users/me", "users/cleo", "api-keys", "api-keys?all=true", "openapi.json"):
        texts.append(api.get(f"/api/v1/{path}").text)
    with context.catalog.engine.connect() as connection:
        tables = (User, Session, ApiKey, Event)
        rows = [str(tuple(row)) for table in tables for row in connection.execute(select(table.__table__))]
    hashes = [hash_of(token), hash_of(key), "$argon2"]
    for hidden in (secret, token, key):
        assert not any(hidden in text for text in [*texts, *rows, caplog.text])
    assert not any(hidden in text for hidden in hashes for text in [*texts, caplog.text])
    assert made.text.count(key) == 1


def test_without_auth_everybody_is_an_admin_and_there_are_no_logins(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path, redis_url="redis://127.0.0.1:1/0", auth="off")
    with TestClient(new_app(settings), base_url="http://127.0.0.1") as api:
        assert api.get("/api/v1/users/me").json() == {"id": None, "name": "anybody", "role": "admin", "key_id": None}
        assert log_in(api, "admin").status_code == 409
        assert api.post("/api/v1/api-keys", json={"name": "x"}).status_code == 409
        assert api.put("/api/v1/users/me/password", json={"old": "x", "new": NEW_PASSWORD}).status_code == 409
        assert api.get("/api/v1/users").json() == {"data": [], "has_more": False}
        assert api.delete("/api/v1/sessions/current").status_code == 204


def test_a_catalog_that_is_gone_is_unavailable_and_not_a_failure(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path, redis_url="redis://127.0.0.1:1/0")
    app = new_app(settings)
    viewer = add_person(app.state.context, "vera", "viewer")
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as api:
        app.state.context.catalog.close()
        for file in tmp_path.glob("catalog.db*"):
            file.unlink()
        answer = api.get("/api/v1/users/me", headers=viewer.headers)
        assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
        assert answer.headers["retry-after"]
        assert api.get("/livez").status_code == 200


def test_a_key_that_was_revoked_is_not_answered_again(api: TestClient, viewer: Person) -> None:
    asked = {**viewer.headers, "Idempotency-Key": "once"}
    assert api.post("/api/v1/jobs/validate", json={}, headers=asked).status_code != 401
    assert api.delete(f"/api/v1/api-keys/{viewer.key_id}", headers=viewer.headers).status_code == 204
    assert api.post("/api/v1/jobs/validate", json={}, headers=asked).status_code == 401


def test_a_new_key_is_not_kept_to_be_answered_again(api: TestClient, context: Context, viewer: Person) -> None:
    asked = {**viewer.headers, "Idempotency-Key": "once"}
    key = api.post("/api/v1/api-keys", json={"name": "ci"}, headers=asked).json()["key"]
    with context.catalog.read() as session:
        assert not any(key.encode() in (row.reply or b"") for row in session.scalars(select(Idempotency)))


def test_strangers_leave_nothing_in_the_catalog(api: TestClient, context: Context) -> None:
    asked = {"Authorization": "Bearer sj_" + "A" * 43, "Idempotency-Key": "x", "Content-Type": "application/json"}
    for _ in range(3):
        assert api.post("/api/v1/jobs/validate", content=b"{", headers=asked).status_code == 401
    with context.catalog.read() as session:
        assert session.scalars(select(Idempotency)).all() == []
        # But for one line that tells of it, however often they come.
        assert [event.kind for event in session.scalars(select(Event))] == ["request.refused"]


# ---- how long keys hold ------------------------------------------------------------------------------------------


def made_with(api: TestClient, headers: dict[str, str] | None = None, **body: Any) -> dict[str, Any]:
    answer = api.post("/api/v1/api-keys", json={"name": "k", **body}, headers=headers or {})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def opens(api: TestClient, key: dict[str, Any]) -> bool:
    return api.get("/api/v1/users/me", headers=bearer(key)).status_code == 200


def bearer(key: dict[str, Any]) -> dict[str, str]:
    return {"Authorization": f"Bearer {key['key']}"}


def test_a_key_holds_as_long_as_was_said_and_no_longer_than_admins_say(
    api: TestClient, context: Context, viewer: Person
) -> None:
    made = made_with(api, viewer.headers, days=2)
    year = made_with(api, viewer.headers)
    long = api.post("/api/v1/api-keys", json={"name": "k", "days": 366}, headers=viewer.headers)
    assert (long.status_code, long.json()["subcode"], long.json()["params"]) == (422, "key_too_long", {"limit": 365.0})
    assert opens(api, made)
    with context.catalog.begin() as session:
        spans = {
            row.id: row.expires_at_us - row.created_at_us
            for row in session.scalars(select(ApiKey).where(ApiKey.id.in_([made["id"], year["id"]])))
            if row.expires_at_us is not None
        }
        assert [round(spans[key["id"]] / 86_400e6) for key in (made, year)] == [2, 365]
        session.execute(update(ApiKey).where(ApiKey.id == made["id"]).values(expires_at_us=now_us() - 1))
    assert not opens(api, made) and opens(api, year)


def test_attack_a_key_that_leaked_leaves_no_key_behind(api: TestClient, viewer: Person) -> None:
    leaked = made_with(api, viewer.headers, days=3)
    child = made_with(api, bearer(leaked))
    grandchild = made_with(api, bearer(child))
    assert child["made_by_key"] == leaked["id"] and child["expires_at"] == leaked["expires_at"]
    assert grandchild["expires_at"] == leaked["expires_at"]  # nor one that holds longer
    assert opens(api, grandchild)
    assert api.delete(f"/api/v1/api-keys/{leaked['id']}", headers=viewer.headers).status_code == 204
    assert [opens(api, key) for key in (leaked, child, grandchild)] == [False] * 3
    assert api.post("/api/v1/api-keys", json={"name": "k"}, headers=bearer(child)).status_code == 401


@pytest.mark.parametrize("by_admin", [False, True])
def test_attack_a_login_that_was_stolen_leaves_no_key_behind(
    api: TestClient, app: FastAPI, admin: Person, viewer: Person, by_admin: bool
) -> None:
    thief = TestClient(app, base_url="http://127.0.0.1", headers=PAGE)
    for browser in (api, thief):
        browser.post("/api/v1/sessions", json={"name": viewer.name, "password": PASSWORD})
    theirs, mine = made_with(thief, ends_with_login=False), made_with(api)
    further = made_with(thief, bearer(theirs))
    assert thief.delete("/api/v1/sessions/current").status_code == 204
    assert opens(api, theirs)
    if by_admin:
        change = {"password": NEW_PASSWORD}
        assert api.patch(f"/api/v1/users/{viewer.id}", json=change, headers=admin.headers).status_code == 200
    else:
        passwords = {"old": PASSWORD, "new": NEW_PASSWORD}
        assert api.put("/api/v1/users/me/password", json=passwords).status_code == 204
    assert [opens(api, key) for key in (theirs, further, mine)] == [False] * 3
    api.cookies.clear()
    assert api.get("/api/v1/users/me", headers=viewer.headers).status_code == 200  # which no login made


def test_attack_a_key_that_a_login_made_ends_with_its_logout(
    api: TestClient, app: FastAPI, context: Context, viewer: Person
) -> None:
    other = TestClient(app, base_url="http://127.0.0.1", headers=PAGE)
    for browser in (api, other):
        log_in(browser, viewer.name)
    usual, program, others = made_with(api), made_with(api, ends_with_login=False), made_with(other)
    further = made_with(other, bearer(usual))
    assert [key["ends_with_login"] for key in (usual, program, others, further)] == [True, False, True, False]
    assert all(opens(other, key) for key in (usual, program, others, further))
    assert api.delete("/api/v1/sessions/current").status_code == 204
    assert [opens(other, key) for key in (usual, further)] == [False, False]
    assert [opens(other, key) for key in (program, others)] == [True, True]
    log_in(other, viewer.name)  # again, which ends the login before
    assert not opens(other, others)
    with context.catalog.read() as session:
        told = [event.message for event in session.scalars(select(Event)) if event.kind == "session.closed"]
    assert told == ["vera logged out, which ended 2 keys"]


def test_a_key_that_ends_with_its_login_holds_no_longer_than_that(
    api: TestClient, context: Context, viewer: Person
) -> None:
    log_in(api, viewer.name)
    usual, short, program = made_with(api), made_with(api, days=0.25), made_with(api, ends_with_login=False)
    with context.catalog.read() as session:
        login_ends_us = session.scalars(select(Session.expires_at_us)).one()
        ends_us = {row.id: row.expires_at_us for row in session.scalars(select(ApiKey))}
    assert ends_us[usual["id"]] == login_ends_us
    assert (ends_us[short["id"]] or 0) < login_ends_us < (ends_us[program["id"]] or 0)


def test_a_login_that_ends_meanwhile_makes_no_key(
    api: TestClient, context: Context, viewer: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_in(api, viewer.name)
    real = api_keys.make_key

    def ended_first(*given: Any, **named: Any) -> Any:
        with context.catalog.begin() as session:
            session.execute(delete(Session))
        return real(*given, **named)

    monkeypatch.setattr(api_keys, "make_key", ended_first)
    assert api.post("/api/v1/api-keys", json={"name": "k", "ends_with_login": False}).status_code == 401
