"""Replies kept for repetitions have a limit per actor. A request whose reply is not kept is still done only once."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import event, func, select, update

from backend import kept
from backend.app import create_app
from backend.catalog.database import Catalog
from backend.catalog.ids import new_id, now_us
from backend.catalog.migrate import migrate
from backend.catalog.models import Idempotency
from backend.idempotency import GIVEN_UP_US, done_once
from backend.kept import ACTOR_BYTES_MAX, REPLY_BYTES_MAX, Room
from backend.settings import Settings
from tests.backend.matrix import Person, add_person

URL = "/api/v1"
GENERATED = {"source": "generator", "kind": "nexmark.bid", "time": "ts"}
SOME_BYTES = 16 << 10
"""Of a reply, where a stream's is to be too long."""
QUERY = "SELECT ONLINE a.price FROM a, b WHERE a.auction = b.auction WITHIN 1 SECONDS"


def wide(columns: int) -> dict[str, Any]:
    """A spec of so many times 250 bytes."""
    many = {f"c{place:03d}{'x' * 230}": "int64" for place in range(columns)}
    return {"source": "push", "time": "ts", "schema": {"ts": "timestamp", **many}}


def post(api: TestClient, path: str, key: str, body: Any = None, **headers: str) -> Any:
    return api.post(URL + path, json=body, headers={"Idempotency-Key": key, **headers})


def bytes_kept(app: FastAPI) -> tuple[int, int]:
    """How many replies are kept, and how many bytes of them."""
    with app.state.context.catalog.read() as session:
        found = select(func.count(Idempotency.status), func.coalesce(func.sum(func.length(Idempotency.reply)), 0))
        count, size = session.execute(found).one()
    return count, size


def refused(answer: Any, status: int, location: str) -> None:
    said = answer.json()
    assert (answer.status_code, said["subcode"], said["can_retry"]) == (409, "reply_not_kept", False), answer.text
    assert said["params"] == {"status": status, "location": location}
    assert location in said["detail"] and answer.headers["idempotency-replayed"] == "true"


def test_attack_streams_that_are_made_and_removed_leave_no_large_replies(
    api: TestClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "REPLY_BYTES_MAX", SOME_BYTES)
    body = {"name": "s", "spec": wide(100)}
    for place in range(10):
        made = post(api, "/streams", f"k{place}", body)
        assert made.status_code == 201 and len(made.content) > SOME_BYTES
        assert api.delete(f"{URL}/streams/s").status_code == 204
    assert bytes_kept(app) == (10, 0)
    again = post(api, "/streams", "k9", body)  # is done once all the same
    refused(again, 201, made.headers["location"])
    assert [again.headers[name] for name in ("location", "etag")] == [
        made.headers[name] for name in ("location", "etag")
    ]
    assert api.get(f"{URL}/streams").json()["data"] == []


def test_attack_many_smaller_replies_of_one_actor_have_so_many_bytes(
    app: FastAPI, api: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "ACTOR_BYTES_MAX", 100_000)
    made = [post(api, "/streams", f"k{place}", {"name": f"s{place}", "spec": wide(100)}) for place in range(8)]
    size = len(made[0].content)
    assert 20_000 < size < REPLY_BYTES_MAX and bytes_kept(app) == (8, 100_000 // size * size)
    for place, first in enumerate(made):
        again = post(api, "/streams", f"k{place}", {"name": f"s{place}", "spec": wide(100)})
        assert (again.status_code, again.json()) == (201, first.json())
        for name in ("location", "etag", "content-type", "content-length"):
            assert again.headers[name] == first.headers[name]
        assert again.headers["idempotency-replayed"] == "true"
    assert len(api.get(f"{URL}/streams").json()["data"]) == 8


def test_what_is_known_of_the_room_is_looked_up_now_and_then(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    migrate(url)
    catalog = Catalog(url)
    asked: list[str] = []

    def note(*given: Any) -> None:
        if given[2].startswith("SELECT coalesce(sum("):
            asked.append(given[2])

    event.listen(catalog.engine, "before_cursor_execute", note)
    monkeypatch.setattr(kept, "LOOK_S", 1e9)
    room = Room(catalog)
    assert [room.takes("kim", size) for size in (0, 256, REPLY_BYTES_MAX + 1)] == [True, True, False]
    assert asked == []  # of those nothing has to be known
    taken = [room.takes("kim", REPLY_BYTES_MAX) for _ in range(ACTOR_BYTES_MAX // REPLY_BYTES_MAX + 1)]
    assert taken == [True] * (len(taken) - 1) + [False] and len(asked) == 1
    assert room.takes("kim", 256) and room.takes("lee", REPLY_BYTES_MAX) and len(asked) == 2
    with catalog.begin() as session:
        for actor, size in (("kim", ACTOR_BYTES_MAX - 1000), ("kim", 200), ("lee", ACTOR_BYTES_MAX)):
            session.add(Idempotency(actor=actor, key=new_id("x"), request_hash="", reply=b"x" * size, status=201,
                                    created_at_us=now_us()))  # fmt: skip
    assert not room.takes("kim", 257)
    monkeypatch.setattr(kept, "LOOK_S", 0.0)  # others have written by now, and of what this wrote nothing is there
    assert [room.takes("kim", size) for size in (1001, 1000)] == [False, True]
    catalog.close()


def test_what_a_request_made_is_read_again_as_long_as_it_is_that_version(
    api: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "REPLY_BYTES_MAX", SOME_BYTES)
    body = {"name": "s", "spec": wide(100)}
    first = post(api, "/streams", "k", body)
    again = post(api, "/streams", "k", body, **{"If-None-Match": "*"})
    assert (again.status_code, again.json(), again.headers["etag"]) == (201, first.json(), first.headers["etag"])
    changed = api.patch(f"{URL}/streams/s", json={"spec": wide(101)}, headers={"If-Match": '"1"'})
    assert changed.status_code == 200, changed.text
    refused(post(api, "/streams", "k", body), 201, first.headers["location"])


def test_a_job_and_what_was_done_to_it_are_done_once_without_their_replies(
    app: FastAPI, api: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "ACTOR_BYTES_MAX", 0)
    for name in "ab":
        assert api.post(f"{URL}/streams", json={"name": name, "spec": GENERATED}).status_code == 201
    body = {"name": "j", "query": QUERY}
    made, again = (post(api, "/jobs", "k", body) for _ in range(2))
    assert (made.status_code, again.status_code, again.json()) == (201, 201, made.json())
    assert post(api, "/jobs/j/restart", "l").status_code == 202
    refused(post(api, "/jobs/j/restart", "l"), 202, f"{URL}/jobs/j")
    asked = [one["kind"] for one in api.get(f"{URL}/jobs/j/events").json()["data"]]
    assert asked.count("job.restart_asked") == 1
    assert bytes_kept(app) == (2, 0)


def test_a_small_reply_is_kept_though_there_is_no_room(
    app: FastAPI, api: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "ACTOR_BYTES_MAX", 0)
    assert api.post(f"{URL}/streams", json={"name": "s", "spec": wide(1)}).status_code == 201
    rows = {"ts": 1}
    pushed = [post(api, "/streams/s/rows", "k", rows) for _ in range(2)]
    assert [answer.json() for answer in pushed] == [{"rows": 1, "duplicate": False}] * 2
    assert pushed[1].headers["idempotency-replayed"] == "true" and bytes_kept(app)[0] == 1


def test_who_took_a_request_over_keeps_no_large_reply_either(api: TestClient, app: FastAPI) -> None:
    done: list[int] = []

    @app.post(f"{URL}/large")
    @done_once
    def large() -> str:
        done.append(1)
        return "x" * (2 << 20)

    assert post(api, "/large", "k").status_code == 200
    with app.state.context.catalog.begin() as session:  # its process died before it said that it was done
        session.execute(update(Idempotency).values(status=None, beat_at_us=now_us() - GIVEN_UP_US))
    assert post(api, "/large", "k").status_code == 200
    refused(post(api, "/large", "k"), 200, URL)
    assert len(done) == 2 and bytes_kept(app) == (1, 0)


@pytest.fixture(params=["/joins", "/api"])
def below(request: pytest.FixtureRequest, tmp_path: Path, empty_catalog: Path) -> tuple[TestClient, Person, str]:
    """A platform that a proxy shows below a path, and an operator of it."""
    settings = Settings(data=tmp_path, auth="on", redis_url="redis://127.0.0.1:1/0", root_path=request.param)
    shutil.copy(empty_catalog, tmp_path / "catalog.db")
    app = create_app(settings)
    kim = add_person(app.state.context, "kim", "operator")
    return TestClient(app, base_url="http://127.0.0.1"), kim, request.param


def test_what_was_made_is_read_again_below_a_path_too(
    below: tuple[TestClient, Person, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    api, kim, root = below
    monkeypatch.setattr(kept, "ACTOR_BYTES_MAX", 0)
    body = {"name": "s", "spec": wide(2)}
    asked, headers = f"{root}{URL}/streams", {**kim.headers, "Idempotency-Key": "k"}
    made, again = (api.post(asked, json=body, headers=headers) for _ in range(2))
    assert (made.status_code, again.status_code, again.json()) == (201, 201, made.json()), again.text
    location = made.headers["location"]
    assert again.headers["location"] == location and location.startswith(f"{root}{URL}/streams/")
    assert api.delete(location, headers=kim.headers).status_code == 204
    refused(api.post(asked, json=body, headers=headers), 201, location)
