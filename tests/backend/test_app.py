"""What every request gets: an id, limits, and problem documents."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.middleware import TEXT_BYTES_MAX


def test_it_lives_and_says_what_is_missing(api: TestClient) -> None:
    assert api.get("/livez").json() == {"status": "alive"}
    ready = api.get("/readyz")
    assert ready.status_code == 200
    assert ready.json()["checks"]["catalog"] == "ok"
    assert "does not answer" in ready.json()["checks"]["redis"]


def test_an_unknown_path_is_a_problem_document_with_the_request_id(api: TestClient) -> None:
    answer = api.get("/api/v1/nothing", headers={"X-Request-ID": "mine-1"})
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-request-id"] == "mine-1"
    body = answer.json()
    assert (body["code"], body["status"], body["request_id"]) == ("not_found", 404, "mine-1")


def test_a_body_that_is_too_large_is_refused(api: TestClient) -> None:
    answer = api.post("/api/v1/nothing", content=b"x" * (TEXT_BYTES_MAX + 1))
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def test_what_browsers_take_over_tls_only_is_sent_there(app: FastAPI) -> None:
    for scheme, sent in (("http", False), ("https", True)):
        headers = TestClient(app, base_url=f"{scheme}://127.0.0.1").get("/livez").headers
        assert ("strict-transport-security" in headers, "cross-origin-opener-policy" in headers) == (sent, sent)
        assert headers["x-frame-options"] == "DENY"
