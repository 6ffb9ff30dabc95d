"""The same POST under the same key is done once."""

from __future__ import annotations

import hashlib
import shutil
import threading
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from fastapi.testclient import TestClient
from sqlalchemy import select, update

from backend.app import create_app
from backend.catalog.models import Idempotency
from backend.context import Context
from backend.idempotency import GIVEN_UP_US, KEPT_US, done_once, is_done_once
from backend.settings import Settings
from streamjoin.errors import InputError
from tests.backend.matrix import PASSWORD, Person, add_person

BODY = {"name": "bids", "spec": {"source": "generator", "kind": "nexmark.bid", "time": "ts"}}
URL = "/api/v1/streams"


def key(value: str) -> dict[str, str]:
    return {"Idempotency-Key": value}


def rows(app: FastAPI) -> list[Idempotency]:
    context = app.state.context
    assert isinstance(context, Context)
    with context.catalog.read() as session:
        return list(session.scalars(select(Idempotency)))


def aged(app: FastAPI, by_us: int, **also: object) -> None:
    """As if the requests had come earlier."""
    with app.state.context.catalog.begin() as session:
        session.execute(update(Idempotency).values(created_at_us=Idempotency.created_at_us - by_us, **also))


def test_a_repetition_gets_the_first_reply(api: TestClient) -> None:
    first = api.post(URL, json=BODY, headers=key("a"))
    again = api.post(URL, json=BODY, headers=key("a"))
    assert first.status_code == again.status_code == 201
    assert first.json() == again.json()
    assert [again.headers[name] for name in ("location", "etag", "idempotency-replayed")] == [
        first.headers["location"], first.headers["etag"], "true",
    ]  # fmt: skip
    assert "idempotency-replayed" not in first.headers
    assert api.post(URL, json=BODY, headers=key("b")).status_code == 409


def test_a_mistake_is_answered_the_same_too(api: TestClient) -> None:
    wrong = {**BODY, "name": "no name"}
    assert [api.post(URL, json=wrong, headers=key("a")).status_code for _ in range(2)] == [422, 422]


def test_another_request_under_the_key_is_refused(api: TestClient) -> None:
    api.post(URL, json=BODY, headers=key("a"))
    other = api.post(URL, json={**BODY, "name": "more"}, headers=key("a"))
    assert (other.status_code, other.json()["code"]) == (422, "key_reused")


@pytest.mark.parametrize("value", ["", "two words", "x" * 201])
def test_what_is_no_key_is_refused(api: TestClient, value: str) -> None:
    assert api.post(URL, json=BODY, headers=key(value)).json()["code"] == "bad_request"


def test_a_request_that_is_worked_on_is_not_done_twice(api: TestClient, app: FastAPI) -> None:
    api.post(URL, json=BODY, headers=key("a"))
    aged(app, 0, status=None)
    answer = api.post(URL, json=BODY, headers=key("a"))
    assert (answer.status_code, answer.json()["code"], answer.headers["retry-after"]) == (409, "still_running", "1")


def test_a_request_whose_process_died_is_tried_again(api: TestClient, app: FastAPI) -> None:
    api.post(URL, json=BODY, headers=key("a"))
    aged(app, GIVEN_UP_US + 1, status=None)
    answer = api.post(URL, json=BODY, headers=key("a"))
    assert answer.json()["code"] == "conflict"  # it was tried: the stream is there since the first time


def test_replies_are_forgotten_after_a_day(api: TestClient, app: FastAPI) -> None:
    api.post(URL, json=BODY, headers=key("a"))
    aged(app, KEPT_US + 1)
    assert api.post(URL, json=BODY, headers=key("a")).json()["code"] == "conflict"
    assert len(rows(app)) == 1


def test_a_failure_of_ours_leaves_nothing_behind(api: TestClient, app: FastAPI) -> None:
    @app.post("/api/v1/broken")
    @done_once
    def broken() -> None:
        raise RuntimeError("a bug")

    answer = api.post("/api/v1/broken", headers=key("a"))
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "a bug" not in answer.text
    assert rows(app) == []


def test_of_many_at_once_one_is_done(api: TestClient) -> None:
    statuses: list[int] = []

    def post() -> None:
        statuses.append(api.post(URL, json=BODY, headers=key("a")).status_code)

    threads = [threading.Thread(target=post) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) <= {201, 409}
    assert 201 in statuses
    assert len(api.get(URL).json()["data"]) == 1


# ---- secrets -----------------------------------------------------------------------------------------------------

READS = {
    "/api/v1/queries", "/api/v1/jobs/validate", "/api/v1/jobs/explain", "/api/v1/jobs/preview",
    "/api/v1/jobs/{id}/diff", "/api/v1/streams/test", "/api/v1/streams/{id}/sample",
    "/api/v1/relations/test", "/api/v1/relations/{id}/sample",
}  # fmt: skip
HOLD_SECRETS = {"/api/v1/sessions", "/api/v1/api-keys"}
ONCE_BY_NAME = {"/api/v1/uploads"}
"""What is sent again under its name changes nothing; tests/backend/test_uploads.py."""


def test_every_route_that_creates_is_done_once_unless_its_reply_holds_a_secret(app: FastAPI) -> None:
    posts = {
        str(context.path): context for context in iter_route_contexts(app.routes) if "POST" in (context.methods or ())
    }
    unmarked = {path for path, context in posts.items() if not is_done_once(context.endpoint)}
    assert unmarked == READS | HOLD_SECRETS | ONCE_BY_NAME, "mark what creates with done_once, and list here what reads"
    described = app.openapi()
    for path in posts.keys() - unmarked:
        reply = described["paths"][path]["post"]["responses"]
        (schema,) = [
            one["content"]["application/json"]["schema"]["$ref"] for code, one in reply.items() if code[0] == "2"
        ]
        fields = described["components"]["schemas"][schema.rpartition("/")[2]]["properties"]
        assert not fields.keys() & {"key", "token", "password", "secret", "secrets"}, path


@pytest.fixture(params=["", "/joins", "/joins/", "/api"])
def below(request: pytest.FixtureRequest, tmp_path: Path, empty_catalog: Path) -> tuple[TestClient, FastAPI, Person]:
    """A platform that a proxy shows below a path, and an admin of it."""
    settings = Settings(data=tmp_path, auth="on", redis_url="redis://127.0.0.1:1/0", root_path=request.param)
    shutil.copy(empty_catalog, tmp_path / "catalog.db")
    app = create_app(settings)
    return TestClient(app, base_url="http://127.0.0.1"), app, add_person(app.state.context, "ada", "admin")


WRITTEN = (
    "/api/v1/api-keys", "/api/v1/api%2Dkeys", "/api/v1/api-keys/", "/API/v1/api-keys", "/%61pi/v1/api-keys",
    "//api/v1/api-keys", "/api/v1/./api-keys", "/api/v1/api-keys?x=1",
)  # fmt: skip


def test_attack_no_way_to_write_an_address_gets_a_secret_kept(
    below: tuple[TestClient, FastAPI, Person], tmp_path: Path
) -> None:
    client, app, ada = below
    root = app.state.context.settings.root_path
    secrets = [PASSWORD]
    for path in WRITTEN:
        for prefix in {"", root, root + root}:
            made = client.post(f"{prefix}{path}", json={"name": "k"}, headers={**ada.headers, **key(f"{prefix}{path}")})
            assert made.status_code in (201, 404, 405), made.text
            secrets += [made.json()["key"]] if made.status_code == 201 else []
    login = client.post(f"{root}/api/v1/sessions", json={"name": "ada", "password": PASSWORD}, headers=key("a"))
    assert login.status_code == 201, login.text
    assert len(secrets) > len(WRITTEN) / 2
    assert rows(app) == []
    kept = b"".join(file.read_bytes() for file in tmp_path.glob("catalog.db*"))
    assert [secret for secret in secrets if secret.encode() in kept] == []


def test_attack_a_password_cannot_be_guessed_from_what_is_kept_of_a_request(
    below: tuple[TestClient, FastAPI, Person],
) -> None:
    client, app, ada = below
    root = app.state.context.settings.root_path
    body = b'{"name": "bob", "role": "viewer", "password": "guessed in a second"}'
    for _ in range(2):
        answer = client.post(f"{root}/api/v1/users", content=body,
                             headers={**ada.headers, **key("a"), "Content-Type": "application/json"})  # fmt: skip
        assert answer.status_code == 201, answer.text
    assert answer.headers["idempotency-replayed"] == "true"
    (row,) = rows(app)
    guess = b"\n".join((f"{root}/api/v1/users".encode(), b"", b"application/json", body))
    assert row.request_hash != hashlib.sha256(guess).hexdigest()


def test_nobody_is_let_in_by_the_way_an_address_is_written(below: tuple[TestClient, FastAPI, Person]) -> None:
    client, app, ada = below
    root = app.state.context.settings.root_path
    for prefix in {"", root, root + root, "/"}:
        assert client.get(f"{prefix}/api/v1/jobs").status_code in (401, 404)
    assert client.get(f"{root}/api/v1/jobs", headers=ada.headers).status_code == 200


def test_a_root_path_begins_with_a_slash() -> None:
    from backend.settings import read_settings

    with pytest.raises(InputError, match="STREAMJOIN_ROOT_PATH: joins does not begin with /; write /joins"):
        read_settings(root_path="joins")
    assert [read_settings(root_path=path).root_path for path in ("", "/", "/a/b/")] == ["", "", "/a/b"]
