"""Bodies with values that no catalog keeps or no reply shows: refused before anything is kept of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from backend.api.bodies import check_values
from backend.problems import Problem

JSON = {"Content-Type": "application/json"}
PUSHED = '{"source": "push", "time": "ts", "schema": {"ts": "timestamp", "k": "float64", "name": "string"}'
UNFIT = {
    "streams": [
        '{"name": "s", "spec": {"source": "push", "time": "ts", "schema": {"ts": "timestamp", "k\\ud800": "string"}}}',
        f'{{"name": "s", "spec": {PUSHED}, "punctuate": {{"column": "k", "value": 1e400}}}}}}',
        f'{{"name": "s", "spec": {PUSHED}, "punctuate": {{"column": "k", "value": NaN}}}}}}',
        f'{{"name": "s", "spec": {PUSHED}}}, "\\udc00": 1}}',
    ],
    "saved-queries": [
        '{"name": "q", "question": {"job": "j", "key": -1e400}}',
        '{"name": "q", "question": {"job": "j", "timeout_s": Infinity}}',
        '{"name": "q", "question": {"job": "j", "where": "name = \'\\ud83d\'"}}',
        '{"name": "q\\udfff", "question": {"job": "j"}}',
    ],
    "jobs/validate": ['{"query": "SELECT ONLINE", "run": {"slots": 1e999}}'],
    "queries": ['{"job": "\\ud800"}'],
}


@pytest.mark.parametrize(("path", "body"), [(path, body) for path, bodies in UNFIT.items() for body in bodies])
def test_attack_no_value_breaks_the_lists_that_would_show_it(api: TestClient, path: str, body: str) -> None:
    answer = api.post(f"/api/v1/{path}", content=body, headers=JSON)
    assert (answer.status_code, answer.json()["subcode"]) == (422, "value_unfit"), answer.text
    for shown in ("streams", "saved-queries"):
        found = api.get(f"/api/v1/{shown}")
        assert (found.status_code, found.json()["data"]) == (200, [])


def test_attack_half_a_pair_in_an_entry_would_be_in_every_list_of_streams(api: TestClient, tmp_path: Path) -> None:
    spec = f'{{"source": "csv", "path": "{tmp_path}/a.csv", "time": "ts\\ud800"}}'
    answer = api.post("/api/v1/streams", content=f'{{"name": "s", "spec": {spec}}}', headers=JSON)
    assert api.get("/api/v1/streams").status_code == 200
    assert (answer.status_code, answer.json()["subcode"]) == (422, "value_unfit")


def test_bytes_that_are_half_of_a_pair_are_no_way_around_it(api: TestClient) -> None:
    body = PUSHED.replace("name", "\ud800").encode("utf-8", "surrogatepass")
    body = b'{"name": "s", "spec": ' + body + b"}}"
    answer = api.post("/api/v1/streams", content=body, headers=JSON)
    assert answer.status_code in (400, 422)
    assert api.get("/api/v1/streams").json()["data"] == []


@pytest.mark.parametrize(
    "fit",
    ["\U0001f600", "\0", "\\u0000", "\\ud800", 1e308, -0.0, 10**400, "\ufffe\x7f\u2028", {"a": [None, True, ""]}, []],
)
def test_all_else_is_taken(fit: object) -> None:
    check_values(json.loads(json.dumps({"value": fit})))


@pytest.mark.parametrize("unfit", ["\ud83d", "a\udfff", float("nan"), float("-inf")])
def test_it_is_found_wherever_it_is(unfit: object) -> None:
    for body in (unfit, [unfit], {"a": {"b": [1, unfit]}}, {str(unfit): 1}):
        if isinstance(body, dict) and str(unfit) in ("nan", "-inf") and "a" not in body:
            continue  # as a name it is a text as any other
        with pytest.raises(Problem) as refused:
            check_values(body)
        assert refused.value.subcode == "value_unfit"
