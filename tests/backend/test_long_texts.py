"""Long queries hold up nobody: they are read and bound in a process apart, and all texts of a draft have one limit."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import update

from backend import apart
from backend.api import drafts
from backend.catalog.jobspec import JobSpec
from backend.catalog.models import Job
from backend.jobs import joinfile
from backend.jobs.texts import TEXTS_BYTES_MAX
from backend.problems import from_validation
from backend.settings import Settings
from tests.backend.matrix import new_app

GENERATED = {"source": "generator", "kind": "nexmark.bid", "time": "ts"}
SHORT = "SELECT ONLINE a.price FROM a, b WHERE a.auction = b.auction WITHIN 1 SECONDS"
OTHER = "SELECT ONLINE a.price FROM a, c WHERE a.auction = c.auction WITHIN 1 SECONDS"
IF_MATCH = {"If-Match": "*"}


def long(size: int, query: str = SHORT) -> str:
    """The query with conditions of so many bytes in all."""
    head, tail = query.split(" WITHIN ")
    missing = size - len(query)
    more = " AND a.price < 12345" * (missing // 20)
    return f"{head}{more}{' ' * (missing % 20)} WITHIN {tail}"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Busy machines have time for long queries, too."""
    monkeypatch.setattr(apart, "SECONDS", 300.0)


@pytest.fixture
def streams(api: TestClient) -> None:
    for name in "abc":
        assert api.post("/api/v1/streams", json={"name": name, "spec": GENERATED}).status_code == 201


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The words of each text that this process parses; processes apart have lists of their own."""
    found: list[int] = []
    module = import_module("streamjoin.query.parse")  # which may be on its way in another thread
    parse = module.parse_tokens

    def noted(words: Any, text: str) -> Any:
        found.append(len(text))
        return parse(words, text)

    monkeypatch.setattr(module, "parse_tokens", noted)
    return found


ASKED: list[Callable[[TestClient, dict[str, Any]], Any]] = [
    lambda api, draft: api.post("/api/v1/jobs/validate", json=draft),
    lambda api, draft: api.post("/api/v1/jobs/explain", json=draft),
    lambda api, draft: api.post("/api/v1/jobs/preview", json=draft),
    lambda api, draft: api.post("/api/v1/jobs", json={"name": "j", **draft}),
    lambda api, draft: api.post("/api/v1/jobs/known/diff", json=draft),
    lambda api, draft: api.patch("/api/v1/jobs/known", json=draft, headers=IF_MATCH),
]


@pytest.fixture
def known(api: TestClient, streams: None, parsed: list[int]) -> None:
    """A job that there is, and nothing parsed since."""
    assert api.post("/api/v1/jobs", json={"name": "known", "query": SHORT}).status_code == 201
    parsed.clear()


@pytest.mark.slow
@pytest.mark.usefixtures("known")
def test_attack_a_long_query_is_neither_read_nor_bound_by_the_process_that_answers_others(
    api: TestClient, parsed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    bound: list[Any] = []
    bind = joinfile.bind
    monkeypatch.setattr(joinfile, "bind", lambda *given, **named: [bound.append(given), bind(*given, **named)][1])
    draft = {"query": long(20_000), "queries": {"more": {"query": long(3000, OTHER)}}}
    for ask in ASKED:
        answer = ask(api, draft)
        assert answer.status_code < 300, answer.text
        assert (parsed, bound) == ([], [])
    assert api.post("/api/v1/jobs/validate", json=draft).json()["valid"]
    assert api.get("/api/v1/jobs/known").json()["streams"] == ["a", "b", "c"]
    wrong = api.post(
        "/api/v1/jobs/validate", json={**draft, "query": long(3000).replace("FROM a, b", "FROM a, nobody")}
    )
    assert "nobody" in wrong.json()["diagnostics"][0]["detail"] and not parsed
    short = api.post("/api/v1/jobs/validate", json={"query": SHORT})
    assert short.json()["valid"] and (len(parsed), len(bound)) == (2, 1)  # what is counted, where it is counted


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    "more",
    [
        {"queries": {f"q{n}": {"query": long(22_000, OTHER)} for n in range(2)}},
        {"queries": {f"q{n}": {"query": long(1500, OTHER)} for n in range(63)}, "query": SHORT},
        {"results": {"where": "price < 1 " + "AND price < 1 " * 3200}},
        {"results": {"select": [f"price AS {'x' * 60}{n}" for n in range(700)]}},
    ],
)
def test_attack_many_texts_in_one_draft_are_refused_before_one_is_read(
    api: TestClient, parsed: list[int], monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]
) -> None:
    def never(*given: Any, **named: Any) -> Any:
        raise AssertionError("a process was begun for it")

    monkeypatch.setattr(apart, "bounded", never)
    monkeypatch.setattr(drafts, "bounded", never)
    draft = {"query": long(22_000), **more}
    for ask in ASKED[1:]:
        answer = ask(api, draft)
        assert (answer.status_code, answer.json()["subcode"]) == (413, "texts_too_large"), answer.text
        assert answer.json()["params"] == {"limit": 65_536} and "65,536" in answer.json()["detail"]
        assert "make several jobs" in answer.json()["detail"]
    checked = ASKED[0](api, draft).json()
    assert not checked["valid"] and "65,536" in checked["diagnostics"][0]["detail"]
    assert not parsed and api.get("/api/v1/jobs/known").json()["version"] == 1


@pytest.mark.slow
@pytest.mark.usefixtures("streams")
def test_one_query_may_have_all_that_a_draft_may_have(api: TestClient) -> None:
    longest = long(TEXTS_BYTES_MAX - 20_000) + " " * 20_000
    assert len(longest) == TEXTS_BYTES_MAX
    assert api.post("/api/v1/jobs/validate", json={"query": longest}).json()["valid"]
    over = api.post("/api/v1/jobs/validate", json={"query": longest, "results": {"where": "true"}}).json()
    assert not over["valid"] and "4 bytes" not in over["diagnostics"][0]["detail"]
    assert over["diagnostics"][0]["pointer"] == "/query" and "65,540" in over["diagnostics"][0]["detail"]
    letters = {"query": longest[:-1] + "é"}  # bytes count, and not letters
    assert not api.post("/api/v1/jobs/validate", json=letters).json()["valid"]


@pytest.mark.slow
@pytest.mark.usefixtures("known")
def test_a_job_with_longer_texts_from_an_earlier_version_can_be_changed_but_not_grow(
    app: FastAPI, api: TestClient
) -> None:
    long_ones = {f"q{n}": {"query": long(34_000), "stopped": n > 0} for n in range(2)}
    with app.state.context.catalog.begin() as session:
        session.execute(
            update(Job).where(Job.name == "known").values(spec=JobSpec(SHORT, long_ones, results={"store": "sqlite"}))
        )

    def change(**body: Any) -> Any:
        return api.post("/api/v1/jobs/known/diff", json=body)

    assert change(run={"slots": 1}).status_code == 200
    shorter = {"q1": {"query": long(33_000), "stopped": True}}
    assert change(queries=shorter).status_code == 200  # still above the limit
    grown = change(query=long(4000))
    assert (grown.status_code, grown.json()["subcode"]) == (413, "texts_too_large")


@pytest.mark.usefixtures("streams")
def test_a_short_query_is_bound_once_and_read_outside_of_transactions_that_write(
    app: FastAPI, api: TestClient, parsed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    bound: list[Any] = []
    bind = joinfile.bind
    monkeypatch.setattr(joinfile, "bind", lambda *given, **named: [bound.append(given), bind(*given, **named)][1])
    assert api.post("/api/v1/jobs", json={"name": "j", "query": SHORT}).status_code == 201
    assert (len(parsed), len(bound)) == (2, 1)  # for its names, and to be bound
    changed = api.patch("/api/v1/jobs/j", json={"query": OTHER}, headers=IF_MATCH)
    assert changed.json()["streams"] == ["a", "c"] and (len(parsed), len(bound)) == (4, 2)


@pytest.mark.slow
def test_a_query_whose_binding_says_which_store_it_has_is_bound_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = new_app(
        Settings(
            data=tmp_path, redis_url="redis://127.0.0.1:1/0", auth="off", result_store="auto",
            cassandra_hosts=("127.0.0.1",), hbase_host="127.0.0.1",
        )
    )  # fmt: skip
    bound: list[Any] = []
    bind = joinfile.bind
    monkeypatch.setattr(joinfile, "bind", lambda *given, **named: [bound.append(given), bind(*given, **named)][1])
    ranges = SHORT.replace("a.auction = b.auction", "a.auction < b.auction")
    with TestClient(app, base_url="http://127.0.0.1") as api:
        for name in "ab":
            assert api.post("/api/v1/streams", json={"name": name, "spec": GENERATED}).status_code == 201
        for query, store in ((SHORT, "cassandra"), (ranges, "hbase"), (long(3000, ranges), "hbase")):
            made = api.post("/api/v1/jobs", json={"name": store + str(len(query)), "query": query})
            assert made.json()["results"] == {"store": store}, made.text
    assert len(bound) == 2  # the long one elsewhere


@pytest.mark.usefixtures("streams")
def test_a_draft_that_nobody_has_time_for_is_not_called_wrong(api: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "OF_ONE", 0)
    monkeypatch.setattr(apart, "WAIT_OF_ONE", 0)
    answer = api.post("/api/v1/jobs/validate", json={"query": long(3000)})
    assert (answer.status_code, answer.json()["subcode"], answer.json()["can_retry"]) == (429, "too_many_looks", True)
    assert api.post("/api/v1/jobs/validate", json={"query": SHORT}).json()["valid"]


def test_one_query_that_is_too_long_is_told_its_length(api: TestClient) -> None:
    draft = {"query": "x" * 71_010}
    for path, more in (("/jobs/validate", {}), ("/jobs", {"name": "j"})):
        answer = api.post(f"/api/v1{path}", json={**draft, **more})
        assert answer.status_code == 422
        assert answer.json()["detail"] == "the query has 71,010 characters, and 65,536 is the most"
        assert answer.json()["errors"] == [{"pointer": "/query", "detail": answer.json()["detail"]}]
    named = api.post("/api/v1/saved-queries", json={"name": "x" * 101})
    said = "`name` has 101 characters, and 100 is the most"
    assert said in [place["detail"] for place in named.json()["errors"]]


def test_a_text_that_is_too_long_is_told_where_it_is_not_kept() -> None:
    error = {"type": "string_too_long", "loc": ("body", "payload", "where"), "msg": "", "ctx": {"max_length": 1000}}
    problem = from_validation([error])
    assert problem.detail == "/payload/where: `where` has more than 1,000 characters"
