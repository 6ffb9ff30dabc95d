"""Requests that other people's web pages make browsers send."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI, WebSocket
from fastapi.testclient import TestClient
from starlette.testclient import WebSocketDenialResponse
from starlette.websockets import WebSocketDisconnect

from backend.auth.actor import actor_of_websocket
from backend.auth.origin import check_host, is_allowed_origin
from backend.problems import Problem
from backend.settings import Settings
from tests.backend.matrix import PASSWORD, Person, add_person, new_app

OUR_PAGE = {"Origin": "http://127.0.0.1"}
THEIR_PAGE = {"Origin": "http://evil.example"}
FOREIGN = (
    "http://evil.example", "null", "http://127.0.0.1:3000", "https://127.0.0.1:1", "http://127.0.0.1.evil.example",
    "file://", "", "http://[", "http://127.0.0.1@evil.example", "http://localhost", "chrome-extension://127.0.0.1",
)  # fmt: skip
SOCKET = "ws://127.0.0.1/api/v1/echo"


def settings_of(tmp_path: Path, auth: str, *origins: str) -> Settings:
    return Settings.model_validate(
        {"data": tmp_path, "redis_url": "redis://127.0.0.1:1/0", "auth": auth, "allowed_origins": origins}
    )


def with_socket(app: FastAPI) -> FastAPI:
    """With a websocket that tells who is there."""

    @app.websocket("/api/v1/echo")
    async def echo(websocket: WebSocket) -> None:
        await websocket.accept()
        while True:
            actor = await actor_of_websocket(websocket)
            if actor is None:
                await websocket.close(4401)
                return
            await websocket.send_text(actor.name)
            if (await websocket.receive())["type"] == "websocket.disconnect":
                return

    return app


@pytest.fixture
def viewer_and_api(tmp_path: Path) -> Iterator[tuple[Person, TestClient]]:
    """Auth is on, and the browser of a viewer is logged in."""
    app = with_socket(new_app(settings_of(tmp_path, "on", "https://join.example.org")))
    viewer = add_person(app.state.context, "vera", "viewer")
    with TestClient(app, base_url="http://127.0.0.1") as client:
        answer = client.post("/api/v1/sessions", json={"name": "vera", "password": PASSWORD}, headers=OUR_PAGE)
        assert answer.status_code == 201
        yield viewer, client


@pytest.fixture
def open_api(tmp_path: Path) -> Iterator[TestClient]:
    """Auth is off."""
    with TestClient(with_socket(new_app(settings_of(tmp_path, "off"))), base_url="http://127.0.0.1") as client:
        yield client


def make_key(api: TestClient, headers: dict[str, str]) -> int:
    return int(api.post("/api/v1/api-keys", json={"name": "csrf"}, headers=headers).status_code)


def test_our_own_page_may_use_the_cookie_and_others_may_not(viewer_and_api: tuple[Person, TestClient]) -> None:
    _, api = viewer_and_api
    assert make_key(api, OUR_PAGE) == 201
    assert make_key(api, {"Origin": "https://join.example.org"}) == 201
    for origin in FOREIGN:
        assert make_key(api, {"Origin": origin}) == 403, origin
    assert make_key(api, {"Sec-Fetch-Site": "same-origin"}) == 201
    assert make_key(api, {"Sec-Fetch-Site": "cross-site"}) == 403
    assert make_key(api, {"Sec-Fetch-Site": "same-site"}) == 403
    assert make_key(api, {}) == 403  # a cookie, and no word on where it comes from
    assert api.delete("/api/v1/sessions/current", headers=THEIR_PAGE).status_code == 403
    assert api.get("/api/v1/users/me").status_code == 200


def test_the_way_out_is_said(viewer_and_api: tuple[Person, TestClient]) -> None:
    _, api = viewer_and_api
    answer = api.post("/api/v1/api-keys", json={"name": "x"}, headers={**THEIR_PAGE, "X-Request-ID": "mine-1"})
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "forbidden"
    assert "STREAMJOIN_ALLOWED_ORIGINS" in answer.json()["detail"]


def test_a_key_counts_whatever_the_page(viewer_and_api: tuple[Person, TestClient]) -> None:
    viewer, api = viewer_and_api
    api.cookies.clear()
    assert make_key(api, {**viewer.headers, **THEIR_PAGE}) == 201
    assert make_key(api, viewer.headers) == 201


def test_other_pages_log_nobody_in(viewer_and_api: tuple[Person, TestClient]) -> None:
    _, api = viewer_and_api
    api.cookies.clear()
    body = {"name": "vera", "password": PASSWORD}
    refused = api.post("/api/v1/sessions", json=body, headers=THEIR_PAGE)
    assert refused.status_code == 403 and "set-cookie" not in refused.headers
    assert api.post("/api/v1/sessions", json=body).status_code == 201  # a program


def test_no_page_is_given_leave_to_read(viewer_and_api: tuple[Person, TestClient]) -> None:
    _, api = viewer_and_api
    for origin in (*FOREIGN, "https://join.example.org"):
        answer = api.get("/api/v1/users/me", headers={"Origin": origin})
        assert not [name for name in answer.headers if name.startswith("access-control")]
    preflight = api.options("/api/v1/users", headers={**THEIR_PAGE, "Access-Control-Request-Method": "POST"})
    assert not preflight.is_success


def test_a_websocket_opens_to_our_page_and_to_keys_only(viewer_and_api: tuple[Person, TestClient]) -> None:
    viewer, api = viewer_and_api
    with api.websocket_connect(SOCKET, headers=OUR_PAGE) as socket:
        assert socket.receive_text() == "vera"
    for origin in FOREIGN:
        with (
            pytest.raises(WebSocketDenialResponse) as denied,
            api.websocket_connect(SOCKET, headers={"Origin": origin}),
        ):
            raise AssertionError(origin)
        assert denied.value.status_code == 403
        assert denied.value.json()["code"] == "forbidden"
    with api.websocket_connect(SOCKET) as socket:  # a cookie from nowhere
        with pytest.raises(WebSocketDisconnect) as closed:
            socket.receive_text()
        assert closed.value.code == 4401
    api.cookies.clear()
    with api.websocket_connect(SOCKET, headers=viewer.headers) as socket:
        assert socket.receive_text() == "vera"


def test_a_websocket_that_looks_again_sees_that_its_key_was_revoked(
    viewer_and_api: tuple[Person, TestClient],
) -> None:
    viewer, api = viewer_and_api
    with api.websocket_connect(SOCKET, headers=viewer.headers) as socket:
        assert socket.receive_text() == "vera"
        assert api.delete(f"/api/v1/api-keys/{viewer.key_id}", headers=viewer.headers).status_code == 204
        socket.send_text("still there?")
        with pytest.raises(WebSocketDisconnect) as closed:
            socket.receive_text()
        assert closed.value.code == 4401


def test_without_auth_no_other_page_drives_the_api(open_api: TestClient) -> None:
    body = {"name": "mallory", "role": "admin", "password": PASSWORD}
    for headers in (
        THEIR_PAGE,
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://127.0.0.1:3000"},
    ):
        assert open_api.post("/api/v1/users", json=body, headers=headers).status_code == 403
    with pytest.raises(WebSocketDenialResponse), open_api.websocket_connect(SOCKET, headers=THEIR_PAGE):
        raise AssertionError
    with open_api.websocket_connect(SOCKET, headers=OUR_PAGE) as socket:
        assert socket.receive_text() == "anybody"
    with open_api.websocket_connect(SOCKET) as socket:
        assert socket.receive_text() == "anybody"
    assert open_api.post("/api/v1/users", json=body).status_code == 201


@pytest.mark.parametrize("path", ["/api/v1/users", "/api/v1/openapi.json", "/livez", "/nothing"])
def test_without_auth_a_page_that_renamed_its_host_reads_nothing(open_api: TestClient, path: str) -> None:
    assert open_api.get(path, headers={"Host": "evil.example:8000"}).status_code == 403
    with (
        pytest.raises(WebSocketDenialResponse),
        open_api.websocket_connect(SOCKET, headers={"Host": "evil.example", "Origin": "http://evil.example"}),
    ):
        raise AssertionError


def test_which_hosts_are_this_machine(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, "off", "https://join.example.org")
    for host in (
        "127.0.0.1",
        "127.0.0.1:8000",
        "localhost:8000",
        "LOCALHOST",
        "[::1]:8000",
        "127.0.0.2",
        "join.example.org",
    ):
        check_host(settings, host)
    for host in (None, "", "127.0.0.1.evil.example", "evil.example", "localhost.evil.example", "0.0.0.0", "[::1",
                 "10.0.0.1", "127.0.0.1@evil.example:80", "localhost:99999999"):  # fmt: skip
        with pytest.raises(Problem, match="STREAMJOIN_ALLOWED_ORIGINS"):
            check_host(settings, host)
    check_host(settings_of(tmp_path, "on"), "evil.example")  # keys and cookies tell who asks


def test_ports_that_are_not_written_are_those_of_the_scheme(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, "on", "https://join.example.org:443/", "http://Other.example.org:8080")
    for origin, host in (
        ("https://a.org", "a.org"), ("https://a.org", "a.org:443"), ("http://a.org", "a.org:80"),
        ("http://A.org", "a.ORG"), ("https://join.example.org", "inner:8000"),
        ("http://other.example.org:8080", "inner:8000"), ("http://[::1]:8000", "[::1]:8000"),
    ):  # fmt: skip
        assert is_allowed_origin(settings, origin, host), (origin, host)
    for origin, host in (
        ("https://a.org", "a.org:80"), ("http://a.org:8080", "a.org"), ("http://join.example.org", "inner"),
        ("https://other.example.org:8080", "inner"), ("null", ""), ("http://", ""), ("https://a.org", None),
    ):  # fmt: skip
        assert not is_allowed_origin(settings, origin, host), (origin, host)
