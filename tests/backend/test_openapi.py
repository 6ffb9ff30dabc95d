"""The API's description: every route has one, its examples work, and the committed copy is up to date."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from fastapi.testclient import TestClient
from pydantic import TypeAdapter

from backend.api.queries import AnswerOut
from backend.problems import ProblemDocument

COPY = Path(__file__).resolve().parents[2] / "docs" / "openapi.json"
ACTIONS = {"get", "post", "put", "patch", "delete"}


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method in ACTIONS & item.keys():
            yield method, path, item[method]


def test_every_route_says_what_it_does_and_how_it_fails(app: FastAPI) -> None:
    names = set()
    for method, path, operation in operations(app.openapi()):
        where = f"{method} {path}"
        assert operation.get("description"), where
        assert "4XX" in operation["responses"], where
        assert operation["operationId"] not in names, where
        names.add(operation["operationId"])


def test_the_committed_description_is_up_to_date(app: FastAPI) -> None:
    document = app.openapi()
    assert json.loads(COPY.read_text()) == json.loads(json.dumps(document)), (
        "run `python -m backend.openapi` and commit docs/openapi.json"
    )


def test_examples_of_bodies_are_accepted(api: TestClient, app: FastAPI, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "name": ["Ada"]}), tmp_path / "customers")
    bids = {"source": "generator", "kind": "nexmark.bid", "time": "ts"}
    api.post("/api/v1/streams", json={"name": "bids", "spec": bids})
    api.post("/api/v1/streams", json={"name": "auctions", "spec": {**bids, "kind": "nexmark.auction"}})
    schemas = app.openapi()["components"]["schemas"]
    sent = 0
    for path in ("/api/v1/streams/test", "/api/v1/relations/test", "/api/v1/relations", "/api/v1/jobs/validate",
                 "/api/v1/jobs/explain", "/api/v1/jobs"):  # fmt: skip
        body = app.openapi()["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        for example in schemas[body["$ref"].rsplit("/", 1)[1]]["examples"]:
            # Of a file the test has one, at a place of its own.
            here = json.loads(json.dumps(example).replace("/data/", f"{tmp_path}/"))
            answer = api.post(path, json=here)
            assert answer.status_code in (200, 201), answer.text
            sent += 1
    assert sent >= 6


@pytest.mark.parametrize("code", ["invalid_query", "not_found", "rate_limited"])
def test_a_problem_s_type_leads_to_its_meaning(api: TestClient, code: str) -> None:
    answer = api.get(f"/api/v1/problems/{code}")
    assert answer.json()["code"] == code


WITHOUT = {"Explanation", "PreviewOut", "SampleOut", "RelationSampleOut", "Metrics", "DemoOut"}
"""Replies that are pages long; docs/api.md says what is in them."""


def test_replies_have_examples_that_are_right(app: FastAPI) -> None:
    document = app.openapi()
    checked = 0
    for context in iter_route_contexts(app.routes):
        for method in context.methods or ():
            operation = document["paths"].get(context.path, {}).get(method.lower())
            if operation is None:
                continue
            for status, reply in operation["responses"].items():
                content = reply.get("content", {}).get("application/json", {})
                schema = content.get("schema", {})
                named = (schema.get("$ref") or schema.get("items", {}).get("$ref", "")).rpartition("/")[2]
                if status.startswith("2") and named and named not in WITHOUT:
                    model = context.response_model or AnswerOut
                    TypeAdapter(model).validate_python(renamed(content["example"]), strict=False)
                    known = document["components"]["schemas"][named]["properties"].keys()
                    shown = content["example"][0] if isinstance(content["example"], list) else content["example"]
                    assert shown.keys() <= known, (context.path, shown.keys() - known)
                    checked += 1
    assert checked > 40
    wrong = document["paths"]["/api/v1/jobs/{id}"]["get"]["responses"]["4XX"]["content"]
    assert ProblemDocument.model_validate(next(iter(wrong.values()))["example"]).subcode == "unknown_name"


def renamed(example: Any) -> Any:
    """`schema` is a method of pydantic's models, so the field is called otherwise there."""
    if isinstance(example, dict) and "schema" in example:
        return {"schema_" if name == "schema" else name: value for name, value in example.items()}
    return example
