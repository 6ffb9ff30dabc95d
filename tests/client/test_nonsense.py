"""Servers that answer with what no platform says: every method fails with a sentence, and none goes on for ever."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import pytest
from starlette.responses import Response
from starlette.websockets import WebSocket

from streamjoin.client import AnswerError, Client, StreamJoinApiError
from streamjoin.errors import InputError
from tests.client.serve import serve
from tests.client.standin import StandIn

pytestmark = pytest.mark.slow

DEEP = b"[" * 100_000
ODD = [
    b"", b"null", b"[]", b'"x"', b"7", b"NaN", b"{}", b"\xff", DEEP, b'{"a":' * 100_000, b"9" * 5000, b'{"data": [1]}',
    b'{"data": [1], "has_more": true}', b'{"data": [{"id": [], "name": {}}], "has_more": true}', b'{"data": {}}',
    b'{"id": null, "phase": [], "generation": "x", "version": 1, "wanted": 2}', b'{"status": "x", "code": 1}',
    b'{"code": {}, "detail": [], "errors": [1, {"span": 3}], "params": [], "hint": 5, "status": {}}',
]  # fmt: skip
METHODS: dict[str, Callable[[Client], Any]] = {
    "jobs.list": lambda client: list(islice(client.jobs.list(), 500)),
    "jobs.get": lambda client: client.jobs.get("j"),
    "jobs.start": lambda client: client.jobs.start("j", wait_s=0.1),
    "jobs.restart": lambda client: client.jobs.restart("j", wait_s=0.1),
    "jobs.rescale": lambda client: client.jobs.rescale("j", 2, wait_s=0.1),
    "jobs.delete": lambda client: client.jobs.delete("j", wait_s=0.1),
    "jobs.logs": lambda client: client.jobs.logs("j"),
    "jobs.metrics": lambda client: client.jobs.metrics("j"),
    "jobs.rejected_counts": lambda client: client.jobs.rejected_counts("j"),
    "jobs.rejected": lambda client: list(islice(client.jobs.rejected("j"), 500)),
    "relations.versions": lambda client: client.relations.versions("r"),
    "relations.refresh": lambda client: client.relations.refresh("r"),
    "uploads.list": lambda client: list(islice(client.uploads.list(), 500)),
    "streams.push": lambda client: client.streams.push("s", [{"a": 1}]),
    "events": lambda client: list(islice(client.events(), 500)),
    "query": lambda client: client.query("j"),
}


class Always(list[Any]):
    """A fault that stays."""

    def pop(self, _: Any = -1) -> Any:
        return self[0]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("status", [200, 404, 500])
@pytest.mark.parametrize("method", METHODS)
def test_attack_what_no_platform_says_is_an_error_with_a_sentence(
    method: str, status: int, stand_in: StandIn, patient: Client
) -> None:
    said: list[StreamJoinApiError] = []
    for body in ODD:
        stand_in.faults = Always([lambda body=body: Response(body, status, {"Retry-After": "\xb2"})])
        try:
            METHODS[method](patient)
        except StreamJoinApiError as failure:
            said.append(failure)
    assert status == 200 or len(said) == len(ODD)  # a method whose reply is handed over as it came may take any
    assert all(0 < len(str(failure)) < 1000 for failure in said), said
    known = {"not_json", "no_list", "no_sense", "not_arrow", "broke_off", "waited_too_long"}
    assert status != 200 or {failure.code for failure in said} <= known


@dataclass
class Talker(StandIn):
    """Says these frames on each websocket, whatever it is asked."""

    frames: list[str] = field(default_factory=list)

    async def websocket(self, socket: WebSocket) -> None:
        await socket.accept("streamjoin.v1")
        for frame in self.frames:
            await socket.send_text(frame)
        await asyncio.sleep(5)


def frame(kind: str, payload: Any) -> str:
    return json.dumps({"type": kind, "id": "1", "payload": payload})


SCHEMA = frame("schema", {"columns": [{"name": "n", "type": "int64"}], "snapshot": "1.0"})


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "frames",
    [
        ["x"], ["[]"], ["null"], ['{"type": 1}'], [DEEP.decode()], [frame("schema", {})], [frame("schema", [1])],
        [frame("schema", "x")], [frame("schema", {"columns": [1]})], [frame("schema", {"columns": 5})],
        [frame("schema", {"columns": [{}]})], [SCHEMA, frame("next", {})], [SCHEMA, frame("next", {"rows": 5})],
        [SCHEMA, frame("next", {"snapshot": "2.0", "rows": ["x"]})],
        [SCHEMA, frame("next", {"snapshot": "2.0", "rows": [[1, 2]]})], [SCHEMA, frame("next", {"rows": [[1]]})],
        [SCHEMA, frame("next", {"snapshot": "2.0", "rows": [[1]], "dropped": "x"})],
        [SCHEMA, frame("next", {"snapshot": "2.0", "rows": [[1]], "truncated": True, "gap": 5})],
        [frame("next", {"snapshot": "2.0", "rows": [[1]]})], [frame("connection_ack", {"heartbeat_s": "soon"})],
        [frame("connection_ack", {"heartbeat_s": []})], [frame("error", {"status": "x"}), frame("complete", {})],
        [frame("error", 5), frame("complete", 5)], [frame("connection_ack", {"heartbeat_s": float("nan")}), "x"],
    ],
)  # fmt: skip
def test_attack_frames_that_no_platform_sends_are_an_error_with_a_sentence(frames: list[str]) -> None:
    with serve(Talker(frames=frames).app()) as server, Client(server.host, timeout_s=2, deadline_s=2) as client:
        with pytest.raises(StreamJoinApiError) as failure:
            next(client.tail("j", after="1.0"))
        assert 0 < len(str(failure.value)) < 1000


def test_attack_a_snapshot_whose_rest_never_ends_is_given_up(stand_in: StandIn, patient: Client) -> None:
    stand_in.snapshots, stand_in.truncated = [2], {2}
    stand_in.faults = Always([lambda: Response(b'{"rows": [[1]], "cursor": "again"}', 200)])
    with pytest.raises(AnswerError, match="again and again"):
        next(patient.tail("j", after="oldest"))


@pytest.mark.parametrize("host", ["http://[::1", "http://127.0.0.1:x", "http://127.0.0.1:99999999", "http://\x7f"])
def test_attack_an_address_that_is_none_is_wrong_input(host: str) -> None:
    with pytest.raises(InputError, match="is not an address of a platform"):
        Client(host)


def test_a_mistake_of_the_callers_is_not_said_to_be_the_servers(patient: Client) -> None:
    with pytest.raises(TypeError):
        patient.query("j", select=5)  # type: ignore[arg-type]
