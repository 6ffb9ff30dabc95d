"""For each subcode that is written down, a request that is refused with it. Each sends `CANARY` where it can."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from limits import RateLimitItemPerMinute

from backend import apart
from backend.auth import gate
from backend.auth import limits as login_limits
from backend.auth.limits import limits_of
from backend.auth.sessions import COOKIE
from backend.context import Context
from backend.jobs import previews
from backend.middleware import TEXT_BYTES_MAX
from backend.results.service import Service, service_of
from backend.streams.spool import folder_of
from tests.backend.matrix import Person

CANARY: Final = "canary-that-was-sent"
URL: Final = "/api/v1"
PUSH: Final = {"source": "push", "time": "ts", "schema": {"id": "int64", "ts": "timestamp"}}
GENERATED: Final = {"source": "generator", "kind": "nexmark.bid", "time": "ts"}
TOPIC: Final = {
    "source": "kafka", "servers": "127.0.0.1:9", "topic": CANARY, "format": "json", "time": "ts",
    "schema": {"ts": "timestamp"},
}  # fmt: skip
QUERY: Final = "SELECT ONLINE a.price FROM a, b WHERE a.auction = b.auction WITHIN 1 SECONDS"
SLOTS_MAX: Final = 4
UPLOADS_BYTES_MAX: Final = 1000
UPLOAD_BYTES_MAX: Final = 1500


@dataclass(frozen=True, slots=True)
class World:
    """A platform with a push stream `clicks`, generated streams `a` and `b`, and a job `wins` with groups in its
    results; all of them are kim's.

    Args:
        folder: which streams may read.
    """

    app: FastAPI
    api: TestClient
    people: Mapping[str, Person]
    folder: Path
    patch: pytest.MonkeyPatch

    @property
    def context(self) -> Context:
        found = self.app.state.context
        assert isinstance(found, Context)
        return found

    @property
    def service(self) -> Service:
        return service_of(self.context)

    def ask(self, method: str, path: str, role: str | None = "operator", **sent: Any) -> tuple[int, str]:
        """Status and subcode of what is answered; an event stream's subcode is that of its error."""
        headers = {**(self.people[role].headers if role else {}), **sent.pop("headers", {})}
        return said_of(self.api.request(method, URL + path, headers=headers, **sent))

    def limit(self, **values: int) -> None:
        """Other limits of results, for this test."""
        limits = replace(self.service.limits, **values)
        self.patch.setattr(self.service, "limits", limits)
        self.patch.setattr(self.service.hub, "limits", limits)


def said_of(answer: httpx2.Response) -> tuple[int, str]:
    """The problem of an answer."""
    text = answer.text
    if answer.status_code == 200 and "event: error" in text:
        text = text.partition("event: error\ndata: ")[2].partition("\n")[0]
    document = json.loads(text)
    return document["status"], document["subcode"]


Provoke = Callable[[World], tuple[int, str]]
PROVOKE: Final[dict[str, Provoke]] = {}


def provokes(subcode: str) -> Callable[[Provoke], Provoke]:
    """Say so of a function."""

    def add(found: Provoke) -> Provoke:
        assert subcode not in PROVOKE
        PROVOKE[subcode] = found
        return found

    return add


def asking(subcode: str, method: str, path: str, role: str | None = "operator", **sent: Any) -> None:
    """The same of one request that needs nothing to be prepared."""
    provokes(subcode)(lambda world: world.ask(method, path, role, **sent))


SHOWN = {**TOPIC, "client": {"sasl.password": CANARY}}
asking("role_too_low", "POST", "/streams", "viewer", json={"name": CANARY})
asking("not_owner", "DELETE", "/streams/clicks", "other")
asking("key_role_too_high", "POST", "/api-keys", json={"name": CANARY, "role": "admin"})
asking("keys_of_others", "GET", "/api-keys?all=true")
asking("no_login", "GET", "/jobs", None, headers={"Authorization": f"Bearer sj_{CANARY:x<43}"})
asking("foreign_page", "POST", "/jobs/validate", None, headers={"Origin": f"http://{CANARY}.example"}, json={})
asking("origin_missing", "POST", "/jobs/validate", None, headers={"Cookie": f"{COOKIE}={CANARY}"}, json={})
asking("wrong_password", "PUT", "/users/me/password", json={"old": CANARY, "new": "a longer staple"})
asking("not_allowed", "POST", "/streams/test", json={"spec": {"source": "csv", "path": f"/etc/{CANARY}"}})
asking("bad_place", "POST", "/streams/test", json={"spec": {"source": "csv", "path": CANARY, "time": "ts"}})
asking("secret_in_spec", "POST", "/streams", json={"name": "t", "spec": SHOWN})
asking("over_limit", "POST", "/jobs", json={"name": CANARY, "query": QUERY, "run": {"slots": SLOTS_MAX + 1}})
asking("texts_too_large", "POST", "/jobs", json={"name": CANARY, "query": QUERY, "results": {"where": CANARY * 3300}})
asking("spec_too_large", "POST", "/streams", json={"name": "t", "spec": {"source": CANARY * 3300}})
asking("body_too_large", "POST", "/queries", content=CANARY.encode() * TEXT_BYTES_MAX)
asking("upload_too_large", "POST", f"/uploads?name={CANARY}", content=b"x" * (UPLOAD_BYTES_MAX + 1))
asking("space_used_up", "POST", f"/uploads?name={CANARY}", content=b"x" * (UPLOADS_BYTES_MAX + 1))
asking("space_share_used_up", "POST", f"/uploads?name={CANARY}", content=b"x" * (UPLOADS_BYTES_MAX // 2 + 1))
asking("not_plain", "POST", "/streams/clicks/rows", content=b"PK\x03\x04" + CANARY.encode())
asking("value_unfit", "POST", "/queries", content=f'{{"job": "{CANARY}", "timeout_s": NaN}}',
       headers={"Content-Type": "application/json"})  # fmt: skip
asking("nul_in_address", "GET", f"/streams?owner={CANARY}%00")


@provokes("key_role_too_low")
def _(world: World) -> tuple[int, str]:
    kim = world.people["operator"]
    asked = {"name": "weak", "role": "viewer"}
    weak = world.api.post(f"{URL}/api-keys", json=asked, headers=kim.headers).json()["key"]
    return said_of(world.api.delete(f"{URL}/api-keys/{kim.key_id}", headers={"Authorization": f"Bearer {weak}"}))


@provokes("own_password")
def _(world: World) -> tuple[int, str]:
    admin = world.people["admin"]
    return world.ask("PATCH", f"/users/{admin.id}", "admin", json={"password": CANARY})


@provokes("jobs_share_used_up")
def _(world: World) -> tuple[int, str]:
    world.patch.setattr(world.context.settings, "user_job_memory_mib_max", 1)
    busy = {"name": "busy", "query": QUERY, "start": True}
    world.api.post(f"{URL}/jobs", json=busy, headers=world.people["operator"].headers)
    return world.ask("POST", "/jobs", json={**busy, "name": CANARY})


@provokes("loopback_only")
def _(world: World) -> tuple[int, str]:
    world.patch.setattr(world.context.settings, "auth", "off")
    return world.ask("GET", "/jobs", None, headers={"Host": f"{CANARY}.example"})


@provokes("secrets_of_other_servers")
def _(world: World) -> tuple[int, str]:
    kim = world.people["operator"].headers
    topic = {"name": "t", "spec": TOPIC, "secrets": {"sasl.password": CANARY}}
    made = world.api.post(f"{URL}/streams", json=topic, headers=kim)
    assert made.status_code in (201, 409), made.text
    moved = {"spec": {**TOPIC, "servers": "localhost:9"}}
    return world.ask("PATCH", "/streams/t", json=moved, headers={"If-Match": '"1"'})


@provokes("link_in_data")
def _(world: World) -> tuple[int, str]:
    kim = world.people["operator"]
    id = world.api.get(f"{URL}/streams/clicks", headers=kim.headers).json()["id"]
    spool = folder_of(world.context.settings.data, id)
    if not spool.is_symlink():
        spool.rmdir()
        spool.symlink_to(world.folder)
    return world.ask("POST", "/streams/clicks/rows", content=json.dumps({"id": CANARY}))


@provokes("too_many_requests")
def _(world: World) -> tuple[int, str]:
    world.patch.setattr(limits_of(world.context), "_of_requests", [RateLimitItemPerMinute(0)])
    return world.ask("GET", "/jobs", "viewer")


@provokes("too_many_logins")
def _(world: World) -> tuple[int, str]:
    world.patch.setattr(login_limits, "LOGINS_OF_NAME_AND_ADDRESS", RateLimitItemPerMinute(0))
    return world.ask("POST", "/sessions", None, json={"name": CANARY, "password": CANARY})


@provokes("too_many_at_once")
def _(world: World) -> tuple[int, str]:
    world.patch.setattr(gate, "AT_ONCE", 0)
    world.patch.setattr(gate, "WAIT_S", 0.01)
    return world.ask("GET", "/jobs")


@provokes("too_many_looks")
def _(world: World) -> tuple[int, str]:
    world.patch.setattr(apart, "OF_ONE", 0)
    world.patch.setattr(apart, "WAIT_OF_ONE", 0)
    (world.folder / "there.csv").write_text("ts\n1\n")
    spec = {"source": "csv", "path": f"{world.folder}/there.csv", "time": "ts"}
    return world.ask("POST", "/streams/test", json={"spec": spec})


@provokes("too_many_previews")
def _(world: World) -> tuple[int, str]:
    world.patch.setitem(world.context.shared, previews._SHARED, [world.people["operator"].id])
    return world.ask("POST", "/jobs/preview", json={"query": QUERY})


@provokes("too_many_streams")
def _(world: World) -> tuple[int, str]:
    world.patch.setattr(world.context.settings, "streams_max", 0)
    return world.ask("POST", "/streams", json={"name": CANARY.replace("-", "_"), "spec": GENERATED})


@provokes("too_many_relations")
def _(world: World) -> tuple[int, str]:
    world.patch.setattr(world.context.settings, "relations_max", 0)
    (world.folder / "there.csv").write_text("ts\n1\n")
    spec = {"source": "csv", "path": f"{world.folder}/there.csv"}
    return world.ask("POST", "/relations", json={"name": CANARY.replace("-", "_"), "spec": spec})


@provokes("too_many_jobs")
def _(world: World) -> tuple[int, str]:
    world.patch.setattr(world.context.settings, "jobs_max", 0)
    return world.ask("POST", "/jobs", json={"name": CANARY, "query": QUERY})


@provokes("too_many_keys")
def _(world: World) -> tuple[int, str]:
    world.patch.setattr("backend.api.api_keys.KEYS_MAX", 0)
    return world.ask("POST", "/api-keys", json={"name": CANARY})


@provokes("too_many_saved_queries")
def _(world: World) -> tuple[int, str]:
    world.patch.setattr(world.context.settings, "saved_queries_max", 0)
    return world.ask("POST", "/saved-queries", json={"name": CANARY, "question": {"job": "wins"}})


@provokes("too_many_uploads")
def _(world: World) -> tuple[int, str]:
    world.patch.setattr(world.context.settings, "uploads_max", 0)
    return world.ask("POST", "/uploads", params={"name": f"{CANARY}.csv"}, content=b"id\n1\n")


@provokes("too_many_answers")
def _(world: World) -> tuple[int, str]:
    world.patch.setattr(world.service.answerer.slots, "most", 0)
    return world.ask("POST", "/queries", json={"job": "wins"})


@provokes("too_many_answers_of_yours")
def _(world: World) -> tuple[int, str]:
    world.patch.setattr(world.service.answerer.slots, "most_of_one", 0)
    return world.ask("POST", "/queries", json={"job": "wins"})


@provokes("too_much_held")
def _(world: World) -> tuple[int, str]:
    world.patch.setattr(world.service.answerer.holding, "bytes_max", 10)
    return world.ask("POST", "/queries", json={"job": "wins", "where": f"k <> '{CANARY}'"})


@provokes("too_many_sockets")
def _(world: World) -> tuple[int, str]:
    world.limit(sockets_an_actor=0)
    return world.ask("GET", "/jobs/wins/stream")


@provokes("all_sockets_taken")
def _(world: World) -> tuple[int, str]:
    world.limit(sockets=0)
    return world.ask("GET", "/jobs/wins/stream")


@provokes("too_many_views")
def _(world: World) -> tuple[int, str]:
    world.limit(views_an_actor=0)
    return world.ask("GET", "/jobs/wins/stream", params={"where": f"k = '{CANARY}'"})


@provokes("condition_too_large")
def _(world: World) -> tuple[int, str]:
    world.limit(condition_parts_an_actor=1, linger_s=0)  # the next to follow the job has other limits
    return world.ask("GET", "/jobs/wins/stream", params={"where": f"k = '{CANARY}'"})


@provokes("too_many_subscriptions")
def _(world: World) -> tuple[int, str]:
    world.limit(subscriptions=0)
    return on_a_websocket(world)


def on_a_websocket(world: World, role: str = "operator") -> tuple[int, str]:
    """The problem of a subscription with a condition of its own."""
    headers = world.people[role].headers
    with world.api.websocket_connect(
        f"ws://127.0.0.1{URL}/ws", subprotocols=["streamjoin.v1"], headers=headers
    ) as socket:
        socket.send_json({"type": "connection_init"})
        socket.send_json({"type": "subscribe", "id": "1", "payload": {"job": "wins", "where": f"k = '{CANARY}'"}})
        while (frame := socket.receive_json())["type"] != "error":
            pass
        while socket.receive_json()["type"] != "complete":  # what comes after it was written down
            pass
    return frame["payload"]["status"], frame["payload"]["subcode"]
