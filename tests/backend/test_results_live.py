"""Continuous questions: the websocket's frames, and what it does about wrong ones; server-sent events."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.testclient import WebSocketTestSession
from starlette.websockets import WebSocketDisconnect

from backend.auth.actor import ANYBODY, Actor
from backend.catalog.models import Job
from backend.context import Context
from backend.results import feed, follower, frames, hub
from backend.results.connection import Connection
from backend.results.limits import Limits
from backend.results.places import KNOWN_S
from backend.results.service import service_of
from backend.results.writers import FrameWriter
from backend.settings import Settings
from streamjoin.results.policy import EpochPolicy
from tests.backend.results_job import KEYS, Committer, add_job, make_app, rows, settings_in
from tests.servers.process import comes_true

pytestmark = pytest.mark.slow

LIMITS = Limits(
    heartbeat_s=0.2, linger_s=0.2, subscriptions=3, frames_a_second=5, frame_bytes=4096, sockets_an_actor=3,
    recheck_s=0.2,
)  # fmt: skip


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return settings_in(tmp_path_factory.mktemp("live"))


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "FUTURE_S", 0.1)
    monkeypatch.setattr(hub, "LOOK_S", 0.1)


@pytest.fixture(scope="module")
def app(settings: Settings) -> FastAPI:
    return make_app(settings, LIMITS)


@pytest.fixture(scope="module")
def api(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture(scope="module")
def context(app: FastAPI) -> Context:
    context = app.state.context
    assert isinstance(context, Context)
    return context


@pytest.fixture
def committer(settings: Settings, context: Context, request: pytest.FixtureRequest) -> Iterator[Committer]:
    """Of a job called as the test, with three snapshots of ten rows."""
    job = add_job(context.catalog, request.node.name[:100])
    committer = Committer(settings, job)
    for _ in range(3):
        committer.commit()
    committer.job = job  # type: ignore[attr-defined]
    yield committer
    committer.close()


class Client:
    """A client of the websocket; every frame it gets must be one of the protocol's."""

    def __init__(self, session: WebSocketTestSession) -> None:
        self.session = session

    def send(self, frame: Any) -> None:
        self.session.send_text(json.dumps(frame))

    def subscribe(self, job: str, id: str = "1", **payload: Any) -> None:
        self.send({"type": "subscribe", "id": id, "payload": {"job": job, **payload}})

    def receive(self) -> dict[str, Any]:
        text = self.session.receive_text()
        frames.SERVER_FRAMES.validate_json(text)
        found = json.loads(text)
        assert isinstance(found, dict)
        return found

    def get(self, *kinds: str) -> dict[str, Any]:
        """The next frame of a kind; progress is passed over unless asked for."""
        while True:
            frame = self.receive()
            if frame["type"] in kinds:
                return frame
            assert frame["type"] == "progress", frame

    def rows(self, snapshots: int) -> list[int]:
        return [row[0] for _ in range(snapshots) for row in self.get("next")["payload"]["rows"]]

    def closed(self) -> tuple[int, str]:
        while True:
            try:
                self.receive()
            except WebSocketDisconnect as told:
                return told.code, told.reason


@contextmanager
def connected(api: TestClient, greet: bool = True) -> Iterator[Client]:
    with api.websocket_connect("ws://127.0.0.1/api/v1/ws", subprotocols=["other", frames.SUBPROTOCOL]) as session:
        assert session.accepted_subprotocol == frames.SUBPROTOCOL
        client = Client(session)
        if greet:
            client.send({"type": "connection_init"})
            assert client.receive()["type"] == "connection_ack"
        yield client


def test_the_greeting_names_the_limits(api: TestClient) -> None:
    with connected(api, greet=False) as client:
        client.send({"type": "connection_init", "payload": {}})
        payload = client.receive()["payload"]
        assert payload["heartbeat_s"] == 0.2 and payload["limits"]["subscriptions"] == 3
        client.send({"type": "ping", "payload": {"n": 1}})
        assert client.receive() == {"type": "pong", "payload": {"n": 1}}


def test_from_now_on_only_what_is_committed_afterwards_comes(api: TestClient, committer: Committer) -> None:
    with connected(api) as client:
        client.subscribe(committer.job.name)  # type: ignore[attr-defined]
        schema = client.get("schema")["payload"]
        assert [column["name"] for column in schema["columns"]] == ["n", "price", "name", "sent_us"]
        assert schema["snapshot"] == "5.0" and schema["key"] == {"name": "a.auction", "type": "int64"}
        before = len(committer.numbers)
        id = committer.commit()
        news = client.get("next")["payload"]
        assert (news["snapshot"], news["dropped"], news["more"], news["truncated"]) == (id, 0, False, False)
        assert [row[0] for row in news["rows"]] == committer.numbers[before:]


def test_from_the_oldest_on_history_and_news_are_one(api: TestClient, committer: Committer) -> None:
    with connected(api) as client:
        client.subscribe(committer.job.id, **{"from": "oldest"})  # type: ignore[attr-defined]
        assert client.get("schema")["payload"]["snapshot"] is None
        committer.commit()
        assert client.rows(4) == committer.numbers


def test_after_a_snapshot_everything_later_comes_once(api: TestClient, committer: Committer) -> None:
    with connected(api) as client:
        client.subscribe(committer.job.id, **{"from": "1.0"})  # type: ignore[attr-defined]
        client.get("schema")
        committer.commit()
        assert client.rows(3) == committer.numbers[10:]


def test_a_filter_and_columns_are_each_subscriptions_own(api: TestClient, committer: Committer) -> None:
    name = committer.job.name  # type: ignore[attr-defined]
    with connected(api) as client:
        client.subscribe(name, "odd", where="n % 2 = 1", select=["name", "n"])
        assert [column["name"] for column in client.get("schema")["payload"]["columns"]] == ["name", "n"]
        client.subscribe(name, "none", where="n < 0")
        client.get("schema")
        before = len(committer.numbers)
        id = committer.commit()
        news = client.get("next")
        assert news["id"] == "odd"
        assert [row[1] for row in news["payload"]["rows"]] == [n for n in committer.numbers[before:] if n % 2]
        # Nothing passed the other's filter; it is told where it is all the same, and can resume there.
        while (progress := client.get("progress"))["id"] != "none" or progress["payload"]["snapshot"] != id:
            pass


def test_progress_comes_while_nothing_else_does(api: TestClient, committer: Committer) -> None:
    with connected(api) as client:
        client.subscribe(committer.job.id)  # type: ignore[attr-defined]
        client.get("schema")
        seen = [client.get("progress")["payload"]]
        while len(seen) < 8 or seen[-1]["phase"] != "running":
            seen.append(client.get("progress")["payload"])
        assert seen[0]["snapshot"] == "5.0" and seen[0]["mark"] == "1970-01-01T00:00:02.000000Z"
        assert seen[-1]["lag_ms"] > seen[0]["lag_ms"] >= 0


def test_who_asks_before_the_first_snapshot_waits_for_it(api: TestClient, context: Context, settings: Settings) -> None:
    job = add_job(context.catalog, "early")
    with connected(api) as client:
        client.subscribe("early")
        assert client.get("progress")["payload"]["snapshot"] is None
        committer = Committer(settings, job)
        committer.commit()
        client.get("schema")
        assert client.rows(1) == committer.numbers
        committer.close()


def test_a_subscription_that_is_not_wanted_any_more_is_completed(
    api: TestClient, committer: Committer, context: Context
) -> None:
    with connected(api) as client:
        client.subscribe(committer.job.id)  # type: ignore[attr-defined]
        client.get("schema")
        client.send({"type": "complete", "id": "1"})
        assert client.get("complete")["payload"] == {"reason": "asked"}
        client.send({"type": "complete", "id": "1"})  # the two may have crossed
        client.subscribe(committer.job.id)  # type: ignore[attr-defined]
        client.get("schema")
    assert comes_true(lambda: not service_of(context).hub.figures()["jobs"], 5)


def test_the_follower_ends_some_time_after_its_last_client(
    api: TestClient, committer: Committer, context: Context
) -> None:
    all_feeds = service_of(context).hub
    with connected(api) as client:
        client.subscribe(committer.job.id)  # type: ignore[attr-defined]
        client.subscribe(committer.job.id, "2")  # type: ignore[attr-defined]
        client.get("schema")
        client.get("schema")
        found = [
            one
            for one in all_feeds.figures()["jobs"]
            if one["job"] == committer.job.id  # type: ignore[attr-defined]
        ]
        assert [(one["followers"], one["views"]) for one in found] == [(2, 1)]
    assert comes_true(lambda: not all_feeds.figures()["jobs"], 5)
    assert all_feeds.figures()["sockets"] == 0


def test_a_deleted_job_completes_and_a_stopped_one_goes_on(
    api: TestClient, committer: Committer, context: Context
) -> None:
    job = committer.job  # type: ignore[attr-defined]
    with connected(api) as client:
        client.subscribe(job.id)
        client.get("schema")
        with context.catalog.begin() as session:
            row = session.get(Job, job.id)
            assert row is not None
            row.wanted = row.observed = "stopped"
        while client.get("progress")["payload"]["phase"] != "stopped":
            pass
        with context.catalog.begin() as session:
            row = session.get(Job, job.id)
            assert row is not None
            row.wanted = "deleted"
        assert client.get("complete")["payload"] == {"reason": "deleted"}


def test_a_job_that_begins_anew_completes(api: TestClient, committer: Committer, context: Context) -> None:
    job = committer.job  # type: ignore[attr-defined]
    with connected(api) as client:
        client.subscribe(job.id)
        client.get("schema")
        with context.catalog.begin() as session:
            row = session.get(Job, job.id)
            assert row is not None
            row.incarnation += 1
        assert client.get("complete")["payload"] == {"reason": "restarted"}


def test_what_is_no_longer_kept_is_said_and_the_way_on(api: TestClient, settings: Settings, context: Context) -> None:
    job = add_job(context.catalog, "short")
    committer = Committer(settings, job, retain_us=1)
    for _ in range(4):
        committer.commit()
        time.sleep(0.002)
    with connected(api) as client:
        client.subscribe("short", **{"from": "1.0"})
        client.get("schema")
        error = client.get("error")["payload"]
        assert error["code"] == "conflict" and "no longer kept" in error["detail"] and "oldest" in error["hint"]
        assert client.get("complete")["payload"] == {"reason": "resync"}
        client.subscribe("short", **{"from": "oldest"})
        client.get("schema")
        assert client.rows(1)
    committer.close()


def test_a_failure_that_nobody_foresaw_ends_a_subscription_aloud(
    api: TestClient, committer: Committer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError("/a/path")

    name = committer.job.name  # type: ignore[attr-defined]
    with connected(api) as client:
        with monkeypatch.context() as broken:
            broken.setattr(feed.Feed, "make", fail)
            client.subscribe(name, where="n >= 0", **{"from": "1.0"})
            client.get("schema")
            error = client.get("error")["payload"]
            assert error["code"] == "internal" and "path" not in error["detail"]
            assert client.get("complete")["payload"] == {"reason": "failed"}
        client.subscribe(name, where="n >= 0", **{"from": "1.0"})
        client.get("schema")
        assert client.rows(2) == committer.numbers[10:]
        monkeypatch.setattr(FrameWriter, "write", fail)
        client.send({"type": "query", "id": "2", "payload": {"job": name}})
        error = client.get("error")
        assert error["id"] == "2" and error["payload"]["code"] == "internal"
        assert client.get("complete")["id"] == "2"


@pytest.mark.parametrize(
    ("payload", "code", "said"),
    [
        ({"job": "nobody"}, "not_found", "no job"),
        ({"where": "prise > 1"}, "invalid", "prise"),
        ({"where": "("}, "invalid", ""),
        ({"select": ["__key"]}, "invalid", "no result column"),
        ({"select": []}, "invalid", "select"),
        ({"from": "yesterday"}, "invalid", "not a snapshot id"),
        ({"from": "999999.0"}, "invalid", "not been committed"),
        ({"max_rate": 0}, "invalid", "max_rate"),
        ({"backpressure": "block"}, "invalid", "backpressure"),
        ({"rubbish": 1}, "invalid", "rubbish"),
    ],
)
def test_a_wrong_subscription_is_refused_under_its_id(
    api: TestClient, committer: Committer, payload: dict[str, Any], code: str, said: str
) -> None:
    job = committer.job.id  # type: ignore[attr-defined]
    with connected(api) as client:
        client.subscribe(**{"job": job, **payload})
        error = client.get("error")
        assert error["id"] == "1" and error["payload"]["code"] == code and said in error["payload"]["detail"]
        assert client.get("complete")["payload"] == {"reason": "failed"}
        client.subscribe(job)
        client.get("schema")  # the websocket itself is well


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "null", "[]", '"x"', "{}", '{"type": "nothing"}', '{"type": "subscribe"}',
        '{"type": "subscribe", "id": "", "payload": {}}', '{"type": "subscribe", "id": 1, "payload": {}}',
        '{"type": "complete", "id": "1", "rubbish": 1}', "[" * 3000, '{"type":' * 400, "\x00", "NaN",
        '{"type": "ping", "payload": 1e999}', "x" * 5000, "\ud800",
    ],
)  # fmt: skip
def test_what_is_no_frame_closes_the_websocket_and_nothing_else(api: TestClient, text: str) -> None:
    with connected(api) as client:
        try:
            client.session.send_text(text)
        except UnicodeError:
            pytest.skip("cannot be sent")
        assert client.closed()[0] == frames.BAD_FRAME
    with connected(api):
        pass


def test_frames_that_cannot_come_now_close_the_websocket(api: TestClient, committer: Committer) -> None:
    job = committer.job.id  # type: ignore[attr-defined]
    with connected(api, greet=False) as client:
        client.subscribe(job)
        assert client.closed() == (frames.BAD_FRAME, "the first frame must be connection_init")
    with connected(api) as client:
        client.session.send_bytes(b"{}")
        assert client.closed()[0] == frames.BAD_FRAME
    with connected(api) as client:
        client.subscribe(job)
        client.subscribe(job)
        assert client.closed()[0] == frames.BAD_FRAME
    with connected(api) as client:
        client.send({"type": "connection_init"})
        assert client.closed()[0] == frames.TOO_MANY


def test_who_does_not_greet_in_time_is_closed(tmp_path: Any) -> None:
    app = make_app(settings_in(tmp_path), replace(LIMITS, init_s=0.3))
    with TestClient(app, base_url="http://127.0.0.1") as api, connected(api, greet=False) as client:
        assert client.closed()[0] == frames.TOO_LATE


def test_who_does_not_offer_the_protocol_is_closed(api: TestClient) -> None:
    with api.websocket_connect("ws://127.0.0.1/api/v1/ws") as session:
        assert Client(session).closed()[0] == frames.BAD_FRAME


def test_a_flood_of_frames_closes_the_websocket(api: TestClient) -> None:
    with connected(api) as client:
        for _ in range(60):
            client.send({"type": "pong"})
        assert client.closed()[0] == frames.TOO_MANY


def test_too_many_subscriptions_are_refused_one_by_one(api: TestClient, committer: Committer) -> None:
    job = committer.job.id  # type: ignore[attr-defined]
    with connected(api) as client:
        for number in range(3):
            client.subscribe(job, str(number))
            client.get("schema")
        client.subscribe(job, "more")
        assert client.get("error")["payload"]["code"] == "rate_limited"


def test_too_many_websockets_are_closed(api: TestClient) -> None:
    with connected(api), connected(api), connected(api), connected(api, greet=False) as client:
        assert client.closed()[0] == frames.TOO_MANY
    with connected(api):
        pass


def test_a_websocket_ends_when_its_login_does(
    api: TestClient, committer: Committer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected(api) as client:
        client.subscribe(committer.job.id)  # type: ignore[attr-defined]
        client.get("schema")

        async def nobody(websocket: Any) -> None:
            return None

        monkeypatch.setattr("backend.api.live.actor_of_websocket", nobody)
        assert client.closed()[0] == frames.NOT_AUTHENTICATED
    with connected(api, greet=False) as client:
        assert client.closed()[0] == frames.NOT_AUTHENTICATED


def test_attack_who_reads_slowly_stays_no_longer_than_the_login(
    settings: Settings, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot in a hundred frames, of which a client takes one every tenth of a second."""
    settings = settings_in(tmp_path)
    app = make_app(settings, replace(LIMITS, part_bytes=1000))
    job = add_job(app.state.context.catalog, "slow")
    committer = Committer(settings, job)
    first = committer.commit()
    committer.commit(50_000)
    is_over = threading.Event()

    async def somebody(*_: Any) -> Actor | None:
        return None if is_over.is_set() else ANYBODY

    monkeypatch.setattr("backend.api.live.actor_of_websocket", somebody)
    monkeypatch.setattr("backend.api.live.identify", somebody)
    sends = Connection._send

    async def slowly(self: Connection, text: str) -> None:
        await asyncio.sleep(0.1)
        await sends(self, text)

    def slow(send: Any, send_s: float) -> Any:
        async def one(message: Any) -> None:
            await asyncio.sleep(0.1)
            await send(message)

        return one

    monkeypatch.setattr(Connection, "_send", slowly)
    monkeypatch.setattr("backend.api.live.patient", slow)
    with TestClient(app, base_url="http://127.0.0.1") as api:
        with connected(api) as client:
            client.subscribe("slow", **{"from": first})
            client.get("schema")
            client.get("next")
            is_over.set()
            begun_s = time.monotonic()
            assert client.closed()[0] == frames.NOT_AUTHENTICATED
            assert time.monotonic() - begun_s < 5
        is_over.clear()
        threading.Timer(1.0, is_over.set).start()
        answer = api.get("/api/v1/jobs/slow/stream", headers={"Last-Event-ID": first})
        found = events(answer.text)
        assert found[-1][0] == "error" and found[-1][2]["subcode"] == "no_login"
        news = [id for kind, id, _ in found if kind == "next"]
        assert 0 < len(news) < 50 and set(news) == {None}  # none of them is the last of the snapshot
    committer.close()


def test_a_one_time_question_is_answered_on_the_same_websocket(api: TestClient, committer: Committer) -> None:
    job = committer.job  # type: ignore[attr-defined]
    with connected(api) as client:
        client.send({"type": "query", "id": "q", "payload": {"job": job.name, "key": 7}})
        assert client.get("schema")["payload"]["job"] == job.id
        found = [row[0] for row in client.get("next")["payload"]["rows"]]
        assert sorted(found) == [n for n in committer.numbers if n % KEYS == 7]
        end = client.get("complete")["payload"]
        assert end["reason"] == "answered" and end["end"]["rows_given"] == len(found)
        client.send({"type": "query", "id": "q", "payload": {"job": job.name, "limit": 2}})
        while (frame := client.receive())["type"] != "complete":
            pass
        assert frame["payload"]["end"]["cursor"]
        for wrong in ({"job": "nobody"}, {"job": job.name, "where": "x"}, {"job": job.name, "format": "csv"}, {}):
            client.send({"type": "query", "id": "q", "payload": wrong})
            assert client.get("error")["id"] == "q"
            assert client.get("complete")["payload"]["reason"] == "failed"


def test_attack_letters_that_some_take_for_ends_of_lines_stay_in_an_answer(
    api: TestClient, committer: Committer
) -> None:
    job = committer.job  # type: ignore[attr-defined]
    odd = rows(9, 3)
    text = "a\u2028b\u2029c\x85d\ve\ff\x1cg\nh\r\ni"
    committer.commit(content=odd.set_column(2, "name", pa.array([text, "\n", ""])))
    with connected(api) as client:
        client.send(
            {"type": "query", "id": "q", "payload": {"job": job.name, "select": ["name"], "where": "n >= 9000000"}}
        )
        client.get("schema")
        assert client.get("next")["payload"]["rows"] == [[text], ["\n"], [""]]


def test_attack_a_place_in_other_results_is_none_in_these(
    api: TestClient, settings: Settings, context: Context
) -> None:
    job = add_job(context.catalog, "anew")
    policy = EpochPolicy(threshold_rows=1)  # ids are moments, as they are unless somebody counts batches
    committer = Committer(settings, job, policy=policy)
    old = committer.commit()
    committer.close()
    time.sleep(1.1)
    with context.catalog.begin() as session:
        session.get_one(Job, job.id).incarnation = 1
        anew = session.get_one(Job, job.id)
    committer = Committer(settings, anew, policy=policy)
    first = committer.commit()
    time.sleep(1.1)
    last = committer.commit()
    assert old < first < last
    time.sleep(KNOWN_S)
    with connected(api) as client:
        client.subscribe("anew", **{"from": old})
        error = client.get("error")["payload"]
        assert (error["code"], error["subcode"]) == ("conflict", "other_results") and "oldest" in error["hint"]
        assert client.get("complete")["payload"] == {"reason": "resync"}
        client.subscribe("anew", **{"from": first})
        client.get("schema")
        assert client.rows(1) == committer.numbers[10:]
        client.send({"type": "complete", "id": "1"})
        client.get("complete")
        client.subscribe("anew", **{"from": "0.-1"})
        client.get("schema")
        assert client.rows(2) == committer.numbers
    committer.close()


def test_a_place_in_results_whose_ids_came_again_is_none_in_these(
    api: TestClient, settings: Settings, context: Context
) -> None:
    job = add_job(context.catalog, "counted")
    policy = EpochPolicy(span_us=None, batches=1)  # the first batch of each life has the same id
    committer = Committer(settings, job, policy=policy)
    old = [committer.commit() for _ in range(2)]
    with connected(api) as client:
        client.subscribe("counted", **{"from": old[0]})
        before = client.get("schema")["payload"]["results"]
    committer.close()
    with context.catalog.begin() as session:
        session.get_one(Job, job.id).incarnation = 1
        anew = session.get_one(Job, job.id)
    committer = Committer(settings, anew, policy=policy)
    assert [committer.commit() for _ in range(3)][:2] == old
    time.sleep(KNOWN_S)
    with connected(api) as client:
        client.subscribe("counted", **{"from": old[1], "results": before})
        error = client.get("error")["payload"]
        assert (error["code"], error["subcode"]) == ("conflict", "other_results") and "oldest" in error["hint"]
        assert client.get("complete")["payload"] == {"reason": "resync"}
        client.subscribe("counted", **{"from": old[1]})
        now = client.get("schema")["payload"]["results"]
        assert client.rows(1) == committer.numbers[20:]
        client.send({"type": "complete", "id": "1"})
        client.get("complete")
        client.subscribe("counted", **{"from": old[1], "results": now})
        client.get("schema")
        assert client.rows(1) == committer.numbers[20:]
        client.send({"type": "query", "id": "q", "payload": {"job": "counted"}})
        assert client.get("schema")["payload"]["results"] == now != before
    answer = api.get("/api/v1/jobs/counted/stream", headers={"Last-Event-ID": f"{old[1]}@{before}"})
    assert "event: next" not in answer.text and '"subcode":"other_results"' in answer.text
    committer.close()


def test_a_large_snapshot_comes_in_parts_and_a_huge_one_is_cut(
    settings: Settings, context: Context, tmp_path: Any
) -> None:
    settings = settings_in(tmp_path)
    app = make_app(settings, replace(LIMITS, part_bytes=10_000, snapshot_bytes=100_000))
    job = add_job(app.state.context.catalog, "large")
    committer = Committer(settings, job)
    committer.commit()
    with TestClient(app, base_url="http://127.0.0.1") as api, connected(api) as client:
        client.subscribe("large")
        client.get("schema")
        for count, is_cut in ((1000, False), (10_000, True)):
            id = committer.commit(count)
            parts = [client.get("next")["payload"]]
            while parts[-1]["more"]:
                parts.append(client.get("next")["payload"])
            assert len(parts) > 1 and {part["snapshot"] for part in parts} == {id}
            assert {part["truncated"] for part in parts} == {is_cut}
            rows = [row[0] for part in parts for row in part["rows"]]
            assert len(set(rows)) == len(rows) and set(rows) <= set(committer.numbers[-count:])
            assert (len(rows) == count) != is_cut
    committer.close()


def test_a_rate_is_kept_and_what_does_not_fit_is_dropped(settings: Settings, tmp_path: Any) -> None:
    settings = settings_in(tmp_path)
    app = make_app(settings, replace(LIMITS, queue_snapshots=4))
    job = add_job(app.state.context.catalog, "fast")
    committer = Committer(settings, job)
    committer.commit()
    with TestClient(app, base_url="http://127.0.0.1") as api, connected(api) as client:
        client.subscribe("fast", max_rate=1, where="n % 2 = 0")
        client.get("schema")
        begun_s = time.monotonic()
        sent = [committer.commit() for _ in range(30)]
        got = []
        dropped = 0
        while not got or got[-1] != sent[-1]:
            news = client.get("next")["payload"]
            got.append(news["snapshot"])
            dropped += news["dropped"]
            if news["dropped"]:
                first, last = sent.index(news["gap"]["first"]), sent.index(news["gap"]["last"])
                assert last - first + 1 == news["dropped"] and news["gap"]["rows"] == 5 * news["dropped"]
                assert sent.index(news["snapshot"]) == last + 1
        assert len(got) + dropped == 30 and dropped > 0
        assert time.monotonic() - begun_s >= len(got) - 1
    committer.close()


def test_who_would_rather_end_than_miss_something_is_ended(settings: Settings, tmp_path: Any) -> None:
    settings = settings_in(tmp_path)
    app = make_app(settings, replace(LIMITS, queue_snapshots=2))
    job = add_job(app.state.context.catalog, "strict")
    committer = Committer(settings, job)
    committer.commit()
    with TestClient(app, base_url="http://127.0.0.1") as api, connected(api) as client:
        client.subscribe("strict", max_rate=1, backpressure="disconnect")
        client.get("schema")
        sent = [committer.commit() for _ in range(10)]
        # How many still went out before the queue was full is the machine's affair; they have no gap.
        got: list[str] = []
        while (frame := client.get("next", "complete"))["type"] == "next":
            assert frame["payload"]["dropped"] == 0
            got.append(frame["payload"]["snapshot"])
        assert got == sent[: len(got)] and len(got) < len(sent)
        assert frame["payload"] == {"reason": "too_slow"}
    committer.close()


# The twin: server-sent events. The test client reads a response to its end, so these are of subscriptions that end.


def events(text: str) -> list[tuple[str, str | None, Any]]:
    """(event, id, data) of each."""
    found = []
    for part in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in part.splitlines() if line and not line.startswith(":"))
        if "data" in fields:
            found.append((fields["event"], fields.get("id"), json.loads(fields["data"])))
    return found


def test_events_have_snapshots_as_their_ids_and_resume(api: TestClient, committer: Committer, context: Context) -> None:
    job = committer.job  # type: ignore[attr-defined]

    def is_sent() -> bool:
        feeds = [feed for feed in tuple(service_of(context).hub._feeds.values()) if feed.place.job_id == job.id]
        return any(str(one.position) == "5.0" for feed in feeds for one in tuple(feed.followers))

    def delete_when_sent() -> None:
        comes_true(is_sent, 60)
        with context.catalog.begin() as session:
            row = session.get(Job, job.id)
            assert row is not None
            row.wanted = "deleted"

    threading.Thread(target=delete_when_sent).start()
    answer = api.get(f"/api/v1/jobs/{job.id}/stream?select=n", headers={"Last-Event-ID": "1.0"})
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["x-accel-buffering"] == "no"
    found = events(answer.text)
    assert found[0][0] == "schema" and found[0][2]["columns"] == [{"name": "n", "type": "int64"}]
    news = [(id, [row[0] for row in data["rows"]]) for kind, id, data in found if kind == "next"]
    assert news == [(f"3.0@{job.id}", committer.numbers[10:20]), (f"5.0@{job.id}", committer.numbers[20:30])]
    assert found[-1] == ("complete", None, {"reason": "deleted"})


@pytest.mark.parametrize(
    "query", ["max_rate=0", "backpressure=x", "select=", "from=" + "9" * 50, "where=" + "x" * 20000]
)
def test_a_wrong_stream_is_a_problem(api: TestClient, committer: Committer, query: str) -> None:
    answer = api.get(f"/api/v1/jobs/{committer.job.id}/stream?{query}")  # type: ignore[attr-defined]
    assert (answer.status_code, answer.json()["status"]) == (422, 422)
    assert api.get("/api/v1/jobs/nobody/stream").status_code == 404


def test_attack_a_column_is_followed_once(api: TestClient, committer: Committer) -> None:
    job = committer.job.id  # type: ignore[attr-defined]
    found = events(api.get(f"/api/v1/jobs/{job}/stream?select=n,price,n").text)
    assert [kind for kind, *_ in found] == ["error", "complete"]
    with connected(api) as client:
        client.subscribe(job, select=["n"] * 100)
        for refused in (found[0][2], client.get("error")["payload"]):
            assert refused["errors"] == [{"pointer": "/select", "detail": '"n" is given twice; ask for it once'}]


def test_a_wrong_condition_of_a_stream_is_an_event(api: TestClient, committer: Committer, context: Context) -> None:
    found = events(api.get(f"/api/v1/jobs/{committer.job.id}/stream?where=prise").text)  # type: ignore[attr-defined]
    assert [kind for kind, *_ in found] == ["error", "complete"]
    assert "prise" in found[0][2]["detail"]
    assert comes_true(lambda: service_of(context).hub.figures()["sockets"] == 0, 5)
