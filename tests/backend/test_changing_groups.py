"""Groups that change, over the API: made as jobs, asked as of a moment, and followed while a filter turns false."""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pyarrow as pa
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.testclient import WebSocketTestSession

from backend.jobs.joinfile import result_spec
from backend.problems import Problem
from backend.results import frames
from backend.results.holding import Holding
from backend.results.limits import Limits
from backend.settings import Settings
from streamjoin.cli import commands as cli
from streamjoin.client import Client
from streamjoin.plan.join import RESULT_KEY, RESULT_TIME
from streamjoin.results.block import key_code
from streamjoin.results.description import Description
from streamjoin.results.parts import BatchDone
from streamjoin.results.policy import EpochPolicy
from streamjoin.results.sink import StoreSink
from tests.backend.results_job import add_job, make_app, settings_in
from tests.client.serve import serve

pytestmark = pytest.mark.slow

SCHEMA = pa.schema(
    [
        ("k", pa.string()), ("n", pa.int64()), ("op", pa.string()), ("emit_time", pa.timestamp("us", "UTC")),
        (RESULT_TIME, pa.int64()), (RESULT_KEY, pa.string()),
    ]
)  # fmt: skip


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return settings_in(tmp_path_factory.mktemp("changing"))


@pytest.fixture(scope="module")
def app(settings: Settings) -> FastAPI:
    return make_app(settings, Limits(queue_snapshots=2))


@pytest.fixture(scope="module")
def api(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield client


class Driver:
    """Of a job whose groups change; each commit is one snapshot, as of so many seconds."""

    def __init__(self, settings: Settings, app: FastAPI, name: str) -> None:
        job = add_job(app.state.context.catalog, name)
        self.name = name
        described = Description(SCHEMA, key_code(pa.string(), equality=True, buckets=1), identity=("k",))
        policy = EpochPolicy(span_us=None, threshold_rows=1, whole_batches=True)
        self.sink = StoreSink(result_spec(settings, job), job.results_name, described, policy)
        self.writer = self.sink.begin("checkpoint")
        self.commits = 0

    def commit(self, **groups: int | None) -> str:
        self.commits += 1
        at = self.commits * 1_000_000
        rows = [
            {
                "k": k, "n": n, "op": "delete" if n is None else "upsert", "emit_time": at, RESULT_TIME: at,
                RESULT_KEY: k,
            }
            for k, n in groups.items()
        ]  # fmt: skip
        with self.writer.part(self.commits, 0, SCHEMA) as part:
            part.write(pa.RecordBatch.from_pylist(rows, SCHEMA), 0)
        self.sink.commit(BatchDone(self.commits, time.time_ns() // 1000, (at,), output_mark_us=at), [part.summary()])
        return str(self.sink.ledger.head.state.last)


@pytest.fixture
def driver(settings: Settings, app: FastAPI, request: pytest.FixtureRequest) -> Driver:
    made = Driver(settings, app, request.node.name[:100])
    made.commit(art=1, cars=5)
    made.commit(art=2)
    made.commit(cars=None, toys=7)
    return made


def asked(api: TestClient, job: str, **question: Any) -> list[list[Any]]:
    reply = api.post("/api/v1/queries", json={"job": job, "select": ["k", "n", "op"], **question})
    assert reply.status_code == 200, reply.text
    assert reply.json()["groups"] == ["k"]
    return list(reply.json()["rows"])


def test_the_last_value_of_each_group_is_the_answer(api: TestClient, driver: Driver) -> None:
    job = driver.name
    assert asked(api, job) == [["art", 2, "upsert"], ["toys", 7, "upsert"]]
    assert asked(api, job, as_of="1970-01-01T00:00:02Z") == [["art", 2, "upsert"], ["cars", 5, "upsert"]]
    assert asked(api, job, as_of=1_999_999) == [["art", 1, "upsert"], ["cars", 5, "upsert"]]
    assert asked(api, job, as_of="2.0") == [["art", 1, "upsert"], ["cars", 5, "upsert"]]
    assert asked(api, job, where="n < 2") == []
    assert asked(api, job, key="toys") == [["toys", 7, "upsert"]]
    assert len(asked(api, job, history=True)) == 5
    shell = api.get(f"/api/v1/jobs/{job}/results", params={"as_of": "3.0", "format": "csv"})
    assert shell.text.replace('"', "").splitlines()[1:] == [
        "art,2,upsert,1970-01-01T00:00:02.000000Z", "cars,5,upsert,1970-01-01T00:00:01.000000Z",
    ]  # fmt: skip
    wrong = api.post("/api/v1/queries", json={"job": job, "as_of": "yesterday"})
    assert wrong.status_code == 422 and "is not a timestamp" in wrong.text


ODD_MOMENTS = [
    True, 1.5, -0.0, 1e300, 10**30, -(10**30), 2**63, "NaN", "inf", "-", "--5", "\u00b2", "\u0663.\u0660", "5.-1",
    "0.-1", "9" * 19 + ".0", "9" * 38 + ".0", "9" * 5000 + ".0", "9999-12-31T23:59:59+14:00", "\x00",
    "0001-01-01T00:00:00+14:00", "2.0\n", " 2.0 ", [], {"a": 1}, "2.0.0", "-1.0",
]  # fmt: skip


def test_attack_odd_moments_are_refused_or_answered_and_nothing_fails(api: TestClient, driver: Driver) -> None:
    refused = 0
    for field in ("as_of", "upto", "after", "cursor", "from", "to"):
        for odd in ODD_MOMENTS:
            for history in (False, True):
                body = {"job": driver.name, field: odd, "history": history}
                reply = api.post("/api/v1/queries", json=body)
                assert reply.status_code in (200, 422), (body, reply.text)
                assert len(reply.content) < 20_000, body  # what was sent is not sent back whole
                refused += reply.status_code == 422
    assert refused > 100
    reply = api.post(
        "/api/v1/queries", content='{"job": "x", "as_of": NaN}', headers={"content-type": "application/json"}
    )
    assert reply.status_code == 422


def test_attack_groups_that_take_more_memory_than_an_answer_may_are_refused(
    app: FastAPI, api: TestClient, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    holding = app.state.context.shared["results"].answerer.holding
    question = {"job": driver.name, "select": ["k", "n"]}
    with monkeypatch.context() as bounds:
        bounds.setattr(holding, "of_answer", 10)
        refused = api.post("/api/v1/queries", json=question)
        assert refused.status_code == 422 and "ask for one key" in refused.json()["detail"]
        counted = api.post("/api/v1/queries", json={"job": driver.name, "aggregate": "count"})
        assert counted.status_code == 422 and "ask for one key" in counted.json()["detail"]
        assert len(asked(api, driver.name, history=True)) == 5  # is given as it is read
    with monkeypatch.context() as bounds:
        bounds.setattr(holding, "bytes_max", 10)
        full = api.post("/api/v1/queries", json=question)
        assert (full.status_code, full.json()["subcode"]) == (429, "too_much_held")
    assert len(asked(api, driver.name)) == 2
    assert holding.bytes == 0


def test_attack_one_actor_holds_half_of_what_all_may() -> None:
    holding = Holding(of_answer=10, of_actor=12, bytes_max=24)
    holding.change("ada", 0, 10)
    with pytest.raises(Problem, match="of yours"):
        holding.change("ada", 0, 10)
    holding.change("bob", 0, 10)
    with pytest.raises(Problem, match="of all users"):
        holding.change("cleo", 0, 10)
    holding.change("ada", 10, 0)
    holding.change("cleo", 0, 10)
    assert holding.bytes == 20


class Follower:
    """Of a websocket."""

    def __init__(self, session: WebSocketTestSession, **question: Any) -> None:
        self.session = session
        session.send_text(json.dumps({"type": "connection_init"}))
        session.send_text(json.dumps({"type": "subscribe", "id": "1", "payload": question}))
        assert self.get("schema")["groups"] == ["k"]

    def get(self, *kinds: str) -> dict[str, Any]:
        while True:
            text = self.session.receive_text()
            frames.SERVER_FRAMES.validate_json(text)
            frame = json.loads(text)
            if frame["type"] in kinds:
                return dict(frame["payload"])


@contextmanager
def following(api: TestClient, job: str, **question: Any) -> Iterator[Follower]:
    with api.websocket_connect("ws://127.0.0.1/api/v1/ws", subprotocols=[frames.SUBPROTOCOL]) as session:
        yield Follower(session, job=job, **question)


def test_a_filter_that_turns_false_sends_the_end_of_the_group(api: TestClient, driver: Driver) -> None:
    with following(api, driver.name, where="n >= 5", select=["k", "n", "op"]) as client:
        driver.commit(art=9, toys=8)
        assert sorted(client.get("next")["rows"]) == [["art", 9, "upsert"], ["toys", 8, "upsert"]]
        driver.commit(art=4)
        assert client.get("next")["rows"] == [["art", None, "delete"]]
        driver.commit(toys=None)
        assert client.get("next")["rows"] == [["toys", None, "delete"]]


@pytest.mark.parametrize(("backpressure", "reason"), [("drop", "resync"), ("disconnect", "too_slow")])
def test_who_is_too_slow_is_told_to_begin_anew_and_misses_no_group(
    backpressure: str, reason: str, api: TestClient, driver: Driver
) -> None:
    with following(api, driver.name, max_rate=1, backpressure=backpressure) as client:
        for number in range(10):
            driver.commit(art=number)
        while "rows" in (payload := client.get("next", "complete")):
            assert payload["dropped"] == 0
        assert payload == {"reason": reason}


def test_the_client_the_command_line_and_an_event_stream_say_the_same(
    settings: Settings, app: FastAPI, driver: Driver, monkeypatch: pytest.MonkeyPatch, capfdbinary: Any
) -> None:
    def said(*arguments: str) -> list[dict[str, Any]]:
        monkeypatch.setattr(sys, "argv", ["streamjoin", *arguments, "-o", "ndjson", "--quiet"])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capfdbinary.readouterr()
        assert not ended.value.code, err
        return [json.loads(line) for line in out.splitlines()]

    job, columns = driver.name, ["k", "n", "op"]
    with serve(make_app(settings)) as server, Client(server.host) as client:
        monkeypatch.setenv("STREAMJOIN_HOST", server.host)
        tail = client.tail(job, after="oldest", select=columns)
        followed = [sorted((tuple(row.values()) for row in news), key=str) for news in itertools.islice(tail, 3)]
        tail.close()
        with httpx2.stream("GET", f"{server.host}/api/v1/jobs/{job}/stream?from=oldest&select=k,n,op") as answer:
            data = (json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: {"))
            shown = [sorted(map(tuple, one["rows"]), key=str) for one in itertools.islice(filter(_has_rows, data), 3)]
        assert shown == followed == [
            [("art", 1, "upsert"), ("cars", 5, "upsert")], [("art", 2, "upsert")],
            [("cars", None, "delete"), ("toys", 7, "upsert")],
        ]  # fmt: skip
        for more, wanted in (
            ({}, LIVING),
            ({"as_of": "2.0"}, [["art", 1, "upsert"], ["cars", 5, "upsert"]]),
            ({"history": True}, [list(row) for rows in followed for row in rows]),
        ):
            options = ["--as-of", more["as_of"]] if "as_of" in more else ["--history"] if more else []
            rows = [list(row.values()) for row in client.query(job, select=columns, **more).table.to_pylist()]
            assert sorted(rows, key=str) == sorted(wanted, key=str)
            lines = [list(row.values()) for row in said("ask", job, "--select", "k,n,op", *options)]
            assert sorted(lines, key=str) == sorted(wanted, key=str)


def _has_rows(data: dict[str, Any]) -> bool:
    return bool(data.get("rows"))


LIVING = [["art", 2, "upsert"], ["toys", 7, "upsert"]]


def fold(driver: Driver) -> str:
    """What retention does with all that there is: a base stands for it."""
    assert driver.sink.ledger.expire(2**62) > 0
    return str(driver.sink.ledger.head.floor)


@pytest.mark.parametrize("where", [None, "n > 0"])
def test_from_the_oldest_on_each_living_group_comes_once_however_long_ago_it_changed(
    api: TestClient, driver: Driver, where: str | None
) -> None:
    floor = fold(driver)
    later = driver.commit(toys=8)
    with following(api, driver.name, where=where, select=["k", "n", "op"], **{"from": "oldest"}) as client:
        base = client.get("next")
        assert (base["snapshot"], sorted(base["rows"]), base["dropped"]) == (floor, LIVING, 0)
        assert client.get("next") == {**base, "snapshot": later, "rows": [["toys", 8, "upsert"]]}
        driver.commit(art=None)
        assert client.get("next")["rows"] == [["art", None, "delete"]]


def test_who_lost_the_connection_before_the_base_gets_it_all_the_same(api: TestClient, driver: Driver) -> None:
    floor = fold(driver)
    with api.websocket_connect("ws://127.0.0.1/api/v1/ws", subprotocols=[frames.SUBPROTOCOL]) as session:
        session.send_text(json.dumps({"type": "connection_init"}))
        asked = {"job": driver.name, "from": "oldest", "select": ["k", "n", "op"]}
        session.send_text(json.dumps({"type": "subscribe", "id": "1", "payload": asked}))
        while (frame := json.loads(session.receive_text()))["type"] != "schema":
            pass
        assert frame["payload"]["snapshot"] is None  # a client goes on from there, and has nothing of the base yet
    with following(api, driver.name, select=["k", "n", "op"], **{"from": floor}) as client:
        driver.commit(art=3)
        assert client.get("next")["rows"] == [["art", 3, "upsert"]]


def test_a_base_has_no_group_that_is_not_asked_for_and_ends_none(api: TestClient, driver: Driver) -> None:
    fold(driver)
    with following(api, driver.name, where="n > 5", select=["k", "n", "op"], **{"from": "oldest"}) as client:
        assert client.get("next")["rows"] == [["toys", 7, "upsert"]]


def test_attack_a_place_below_the_fold_is_said_to_be_gone_and_no_group_is_missed(
    api: TestClient, driver: Driver
) -> None:
    fold(driver)
    with following(api, driver.name, select=["k", "n", "op"], **{"from": "1.0"}) as client:
        gone = client.get("error", "next")
        assert gone["subcode"] == "expired" and "last value of each group" in gone["hint"]
        assert client.get("complete") == {"reason": "resync"}
