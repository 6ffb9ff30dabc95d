"""The same POST under the same key is done once."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from fastapi.testclient import TestClient
from sqlalchemy import select, update
from sqlalchemy.exc import OperationalError

from backend import idempotency
from backend.app import create_app
from backend.catalog import database
from backend.catalog.ids import now_us
from backend.catalog.models import Idempotency
from backend.context import Context
from backend.idempotency import GIVEN_UP_US, KEPT_US, OWN_KEY, done_once, is_done_once
from backend.settings import Settings
from streamjoin.errors import InputError
from tests.backend.matrix import PASSWORD, Person, add_person
from tests.servers.process import comes_true

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
        earlier = {name: getattr(Idempotency, name) - by_us for name in ("created_at_us", "beat_at_us")}
        session.execute(update(Idempotency).values(**earlier, **also))


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


def test_a_refusal_that_another_request_cures_is_not_repeated(api: TestClient, app: FastAPI) -> None:
    query = "SELECT ONLINE bids.price FROM bids, more WHERE bids.auction = more.auction WITHIN 1 SECONDS"
    job = {"name": "j", "query": query}
    assert api.post(URL, json=BODY).status_code == 201
    refused = api.post("/api/v1/jobs", json=job, headers=key("a"))
    assert (refused.status_code, refused.json()["subcode"]) == (422, "unknown_stream")
    assert rows(app) == []
    assert api.post(URL, json={**BODY, "name": "more"}).status_code == 201
    cured = api.post("/api/v1/jobs", json=job, headers=key("a"))
    assert cured.status_code == 201 and "idempotency-replayed" not in cured.headers
    assert api.post("/api/v1/jobs", json=job, headers=key("a")).headers["idempotency-replayed"] == "true"


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
    assert rows(app) == []


def test_a_failure_of_ours_leaves_nothing_behind(api: TestClient, app: FastAPI) -> None:
    @app.post("/api/v1/broken")
    @done_once
    def broken() -> None:
        raise RuntimeError("a bug")

    answer = api.post("/api/v1/broken", headers=key("a"))
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "a bug" not in answer.text
    assert rows(app) == []


def test_a_catalog_that_does_not_answer_is_said_to_be_away_with_a_key_too(
    api: TestClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = app.state.context.catalog
    monkeypatch.setattr(database, "BUSY_MS", 100)
    catalog.engine.dispose()  # connections from now on wait no longer than that
    lock = sqlite3.connect(catalog.url.database, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    try:
        refused = [api.post(URL, json=BODY, headers=headers) for headers in ({}, key("a"))]
    finally:
        lock.execute("ROLLBACK")
        lock.close()
    for answer in refused:
        assert (answer.status_code, answer.json()["subcode"], answer.headers["retry-after"]) == (
            503, "catalog_away", "2",
        ), answer.text  # fmt: skip
        assert answer.json()["can_retry"]
    assert api.post(URL, json=BODY, headers=key("a")).status_code == 201


def test_what_was_done_is_told_where_the_catalog_goes_away_before_the_reply_is_kept(
    api: TestClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away(*_: object) -> None:
        raise OperationalError("UPDATE", {}, Exception("database is locked"))

    monkeypatch.setattr(idempotency.IdempotentPosts, "_end", away)
    answer = api.post(URL, json=BODY, headers=key("a"))
    assert (answer.status_code, answer.json()["name"]) == (201, "bids"), answer.text
    assert "a reply could not be kept" in caplog.text
    monkeypatch.undo()
    assert api.post(URL, json=BODY, headers=key("a")).json()["subcode"] == "in_progress"
    aged(app, GIVEN_UP_US + 1)
    assert api.post(URL, json=BODY, headers=key("a")).json()["code"] == "conflict"  # it was tried, and is there


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


# ---- races -------------------------------------------------------------------------------------------------------


class Slow:
    """A route that is done once, and waits until it is let go."""

    def __init__(self, app: FastAPI) -> None:
        self.begun, self.ends, self.done = threading.Semaphore(0), threading.Event(), 0

        @app.post("/api/v1/slow")
        @done_once
        def slow() -> dict[str, int]:
            self.begun.release()
            assert self.ends.wait(60)
            self.done += 1
            return {"done": self.done}


def test_who_still_works_says_so_and_is_not_taken_over(
    api: TestClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "BEAT_S", 0.1)
    slow = Slow(app)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(api.post, "/api/v1/slow", headers=key("a"))
        assert slow.begun.acquire(timeout=30)
        aged(app, GIVEN_UP_US + 1)  # as if it had begun long ago
        assert comes_true(lambda: rows(app)[0].beat_at_us > now_us() - GIVEN_UP_US, 30)
        assert api.post("/api/v1/slow", headers=key("a")).json()["subcode"] == "in_progress"
        slow.ends.set()
    assert first.result().json() == api.post("/api/v1/slow", headers=key("a")).json() == {"done": 1}


def test_of_many_who_find_a_process_dead_one_takes_over(api: TestClient, app: FastAPI) -> None:
    slow = Slow(app)
    api_rows = Idempotency(
        actor="None/admin", key="a", request_hash="", owner="dead", created_at_us=now_us(), beat_at_us=1
    )
    with app.state.context.catalog.begin() as session:
        session.add(api_rows)
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(api.post, "/api/v1/slow", headers=key("b")) for _ in range(1)]
        assert slow.begun.acquire(timeout=30)
        (mine,) = [row for row in rows(app) if row.key == "b"]
        with app.state.context.catalog.begin() as session:
            known = {"request_hash": mine.request_hash}
            session.execute(update(Idempotency).where(Idempotency.key == "a").values(known))
        asked = [pool.submit(api.post, "/api/v1/slow", headers=key("a")) for _ in range(6)]
        assert slow.begun.acquire(timeout=30)
        assert not slow.begun.acquire(timeout=1)
        assert comes_true(lambda: sum(one.done() for one in asked) == 5, 30)
        slow.ends.set()
    codes = sorted(one.result().json().get("subcode", "done") for one in asked)
    assert codes == ["done", *["in_progress"] * 5]


def test_who_was_taken_over_keeps_nothing(api: TestClient, app: FastAPI) -> None:
    slow = Slow(app)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(api.post, "/api/v1/slow", headers=key("a"))
        assert slow.begun.acquire(timeout=30)
        with app.state.context.catalog.begin() as session:
            session.execute(update(Idempotency).values(owner="another"))
        slow.ends.set()
    assert first.result().json() == {"done": 1}
    (row,) = rows(app)
    assert (row.owner, row.status) == ("another", None)


def test_rows_are_there_once_though_two_processes_pushed_them(api: TestClient, app: FastAPI) -> None:
    spec = {"source": "push", "time": "ts", "schema": {"id": "int64", "ts": "timestamp"}}
    assert api.post(URL, json={"name": "clicks", "spec": spec}).status_code == 201
    pushed = f"{URL}/clicks/rows"
    assert api.post(pushed, content=b'{"id": 1}\n', headers=key("a")).json() == {"rows": 1, "duplicate": False}
    with app.state.context.catalog.begin() as session:  # its process was thought dead, and another one does it again
        session.execute(update(Idempotency).values(status=None, beat_at_us=1))
    assert api.post(pushed, content=b'{"id": 1}\n', headers=key("a")).json() == {"rows": 1, "duplicate": True}
    assert api.post(pushed, content=b'{"id": 1}\n', headers=key("b")).json()["duplicate"] is False


def test_a_repetition_after_logging_in_again_is_one(tmp_path: Path, empty_catalog: Path) -> None:
    shutil.copy(empty_catalog, tmp_path / "catalog.db")
    app = create_app(Settings(data=tmp_path, redis_url="redis://127.0.0.1:1/0", auth="on"))
    ada = add_person(app.state.context, "ada", "operator")
    browser = TestClient(app, base_url="http://127.0.0.1", headers={"Origin": "http://127.0.0.1"})
    made = []
    for _ in range(2):
        browser.cookies.clear()
        assert browser.post("/api/v1/sessions", json={"name": "ada", "password": PASSWORD}).status_code == 201
        made.append(browser.post(URL, json=BODY, headers=key("a")))
    assert [answer.status_code for answer in made] == [201, 201] and made[0].json() == made[1].json()
    bob = add_person(app.state.context, "bob", "operator")
    assert browser.post(URL, json=BODY, headers={**key("a"), **bob.headers}).json()["subcode"] == "name_taken"
    assert (tmp_path / OWN_KEY).stat().st_mode & 0o077 == 0 and ada.id != bob.id


def test_the_description_tells_of_the_header(app: FastAPI) -> None:
    described = app.openapi()["paths"]
    told = {
        path for path, item in described.items()
        if any(given["name"] == "Idempotency-Key" for given in item.get("post", {}).get("parameters", []))
    }  # fmt: skip
    posts = iter_route_contexts(app.routes)
    assert told == {str(one.path) for one in posts if "POST" in (one.methods or ()) and is_done_once(one.endpoint)}
    assert "Idempotency-Replayed" in described[URL]["post"]["responses"]["201"]["headers"]


# ---- secrets -----------------------------------------------------------------------------------------------------

READS = {
    "/api/v1/queries", "/api/v1/jobs/validate", "/api/v1/jobs/explain", "/api/v1/jobs/preview",
    "/api/v1/jobs/{id}/diff", "/api/v1/streams/test", "/api/v1/streams/{id}/sample",
    "/api/v1/relations/test", "/api/v1/relations/{id}/sample", "/api/v1/relations/{id}/refresh",
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
            # A parameter that the route does not have is refused.
            assert made.status_code in (201, 404, 405) or (made.status_code == 422 and "?" in path), made.text
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
