"""Bodies, frames and questions that are wrong in thousands of places: a few are reported, the rest costs nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute, iter_route_contexts
from fastapi.testclient import TestClient
from pydantic import TypeAdapter, ValidationError

from backend.given import Given
from backend.middleware import OPEN_BYTES_MAX
from backend.results.frames import CLIENT_FRAMES
from backend.settings import Settings
from tests.backend.matrix import new_app

MANY = 5000
MISTAKES_MAX = 200
"""Of one body. Its fields may all be wrong, and so may those of as many queries as a job may have."""
UNKNOWN = {f"f{i}": 0 for i in range(MANY)}


def models(kind: type[Given] = Given) -> Iterator[type[Given]]:
    for model in kind.__subclasses__():
        yield model
        yield from models(model)


def mistakes(model: Any, given: Any) -> int:
    try:
        TypeAdapter(model).validate_python(given)
    except ValidationError as wrong:
        return wrong.error_count()
    return 0


def bodies(app: FastAPI) -> set[Any]:
    return {
        field.field_info.annotation
        for context in iter_route_contexts(app.routes)
        if isinstance(context.original_route, APIRoute)
        for field in context.original_route.dependant.body_params
    }


def test_whatever_a_body_is_comes_from_there(app: FastAPI) -> None:
    found = bodies(app)
    assert len(found) > 15
    assert all(issubclass(body, Given) for body in found)


def test_attack_thousands_of_mistakes_are_not_made_into_errors(app: FastAPI) -> None:
    found = list(models())
    assert bodies(app) < set(found)
    for model in found:
        assert 0 < mistakes(model, UNKNOWN) <= len(model.model_fields) + 1, model
        for name, field in model.model_fields.items():
            for wrong in ([[]] * MANY, {name: [] for name in UNKNOWN}):
                assert mistakes(model, {field.alias or name: wrong}) <= MISTAKES_MAX, (model, name)
            for inner in ({"a": UNKNOWN}, {str(i): UNKNOWN for i in range(63)}, UNKNOWN):
                assert mistakes(model, {field.alias or name: inner}) <= MISTAKES_MAX, (model, name)


@pytest.mark.parametrize(
    "payload",
    [
        {"job": "j", **UNKNOWN},
        {"job": "j", "select": [0] * MANY},
        {"job": "j", "select": [0] * 900},
        UNKNOWN,
    ],
)
def test_attack_thousands_of_mistakes_in_a_frame(payload: dict[str, Any]) -> None:
    for frame in ({"type": "subscribe", "id": "a", "payload": payload}, {"type": "query", "id": "a", **payload}):
        with pytest.raises(ValidationError) as refused:
            CLIENT_FRAMES.validate_json(json.dumps(frame))
        assert refused.value.error_count() < 10


@pytest.mark.parametrize(("path", "body"), [("queries", {"job": "j"}), ("jobs/validate", {"query": "q"})])
def test_of_many_unknown_fields_the_first_is_told_as_of_one(api: TestClient, path: str, body: dict[str, Any]) -> None:
    one, many = (api.post(f"/api/v1/{path}", json=body | unknown).json() for unknown in ({"f0": 0}, UNKNOWN))
    assert one["errors"] == [{"pointer": "/f0", "detail": "extra inputs are not permitted"}]
    assert {**many, "request_id": 0} == {**one, "request_id": 0}


def test_a_few_unknown_fields_are_all_told(api: TestClient) -> None:
    said = api.post("/api/v1/queries", json={"job": "j", "frm": 1, "too": 2}).json()
    assert [place["pointer"] for place in said["errors"]] == ["/frm", "/too"]


def test_both_names_of_a_field_are_known(api: TestClient) -> None:
    (told,) = api.post("/api/v1/queries", json={"job": "j", "from": "a", **UNKNOWN}).json()["errors"][1:]
    assert told["pointer"] == "/f0"


def test_attack_strangers_send_short_bodies(settings: Settings, tmp_path: Path) -> None:
    app = new_app(settings.model_copy(update={"auth": "on"}))
    with TestClient(app, base_url="http://127.0.0.1") as anybody:
        for body in (json.dumps(UNKNOWN), "[" * (OPEN_BYTES_MAX + 1), '{"a":' * 20_000):
            answer = anybody.post("/api/v1/sessions", content=body, headers={"Content-Type": "application/json"})
            assert (answer.status_code, answer.json()["subcode"]) == (413, "body_too_large")
            assert answer.json()["params"] == {"limit": OPEN_BYTES_MAX}
        longest = {"name": "\U0001f600" * 100, "password": "\U0001f600" * 200}  # twelve bytes for each letter
        assert anybody.post("/api/v1/sessions", json=longest).json()["subcode"] == "wrong_login"
        escaped = json.dumps(longest)
        answer = anybody.post("/api/v1/sessions", content=escaped, headers={"Content-Type": "application/json"})
        assert answer.json()["subcode"] == "wrong_login"
