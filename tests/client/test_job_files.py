"""Join files as jobs of the platform: which query is the job's own, what the platform decides, where paths lead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamjoin.cli.platform.jobfile import change_of, draft_of
from streamjoin.cli.platform.registering import entries_of
from streamjoin.errors import InputError

HERE = "http://127.0.0.1:8000"
THERE = "https://joins.example.org"


def several(**queries: dict[str, Any]) -> dict[str, Any]:
    return {"streams": {"a": {"source": "csv", "path": "a.csv"}}, "queries": queries}


def one(text: str, **more: Any) -> dict[str, Any]:
    return {"query": text, **more}


@pytest.mark.parametrize(
    ("queries", "own", "expected"),
    [
        ({"p": one("P"), "q": one("Q")}, None, "P"),
        ({"p": one("P"), "q": one("Q")}, "q", "Q"),
        ({"p": one("P"), "main": one("M")}, None, "M"),
        ({"p": one("P", stopped=True), "q": one("Q")}, None, "Q"),
        ({"main": one("M", stopped=True), "q": one("Q")}, None, "Q"),
    ],
)
def test_one_of_the_queries_is_the_job_s_own(queries: dict[str, Any], own: str | None, expected: str) -> None:
    found = draft_of(several(**queries), own)
    assert found.sections["query"] == expected
    assert [query["query"] for query in found.sections["queries"].values()] == [
        query["query"] for query in queries.values() if query["query"] != expected
    ]


def test_one_query_alone_leaves_none_beside_it() -> None:
    assert draft_of(several(p=one("P")), None).sections == {"query": "P"}


def test_results_are_the_platform_s_and_what_it_can_take_is_taken() -> None:
    found = draft_of(
        several(
            p=one("P", results={"parquet": "out/p", "retain": "3d", "where": "n > 1"}),
            q=one("Q", stopped=True, results={"store": "sqlite", "path": "x.db", "retain": "3d"}),
        )
        | {"run": {"slots": 2, "checkpoint": "state"}},
        None,
    )
    assert found.sections == {
        "query": "P", "queries": {"q": {"query": "Q", "stopped": True}}, "run": {"slots": 2},
        "results": {"retain": "3d", "where": "n > 1"},
    }  # fmt: skip
    assert [sentence.split(": ")[0] for sentence in found.told[:3]] == [
        "p is the job's own query", "queries.p.results.parquet is not taken",
        "queries.q.results.store and queries.q.results.path are not taken",
    ]  # fmt: skip
    assert "run.checkpoint" in found.told[3]


def test_a_change_takes_away_what_the_results_of_a_file_no_longer_say() -> None:
    job = {"name": "j", "query": "P", "queries": {}}
    for results in ({"parquet": "out/p"}, {}):
        for document in ({"query": "P", "results": results}, several(p=one("P", results=results))):
            assert change_of(document, job, None).sections == {"query": "P", "results": {}}
    assert change_of({"results": {}}, None, None).sections == {"results": {}}
    for document in ({"query": "P"}, {"query": "P", "results": None}, several(p=one("P"))):
        assert change_of(document, job, None).sections == {"query": "P"}


@pytest.mark.parametrize(
    ("document", "own", "said"),
    [
        ({"name": "x"}, None, "needs a query"),
        ({"queries": []}, None, "needs a query"),
        ({"queries": ["P"]}, None, "a mapping for each name"),
        ({"queries": {"p": None}}, None, "a mapping for each name"),
        (several(p=one("P")), "q", "there is no query q in the file"),
        (several(p=one("P", stopped=True)), None, "all queries are stopped"),
        (several(p=one("P", stopped=True), q=one("Q")), "p", "a job's own query runs"),
        ({"query": "P"}, "p", "leave --own out"),
        (several(p=one("P")) | {"results": {"jsonl": "-"}}, None, "queries.NAME.results"),
        (several(p=one("P"), q=one("Q", results={"where": "n > 1"})), None, "queries.q.results.where cannot go"),
        (several(p=one("P"), q=one("Q", results={"retain": "1d"})), None, "write the same in all queries"),
    ],
)
def test_what_cannot_go_is_said(document: dict[str, Any], own: str | None, said: str) -> None:
    with pytest.raises(InputError) as refused:
        draft_of(document, own)
    assert said in str(refused.value)


JOB: dict[str, Any] = {"name": "two", "query": "SELECT  P", "queries": {"q": {"query": "Q", "stopped": False}}}


def test_the_file_that_made_a_job_changes_its_own_query_and_the_others() -> None:
    found = change_of({"name": "two", **several(q=one("Q2"), p=one("SELECT P"))}, JOB, None)
    assert (found.sections, found.own) == ({"query": "SELECT P", "queries": {"q": {"query": "Q2"}}}, "p")
    changed = change_of(several(q=one("Q"), p=one("SELECT R")), JOB, None)
    assert (changed.sections["query"], changed.own) == ("SELECT R", "p")
    assert change_of(several(q=one("Q"), r=one("R"), p=one("S")), JOB, "r").sections["query"] == "R"


def test_of_two_new_queries_the_one_that_has_its_text_is_the_job_s_own() -> None:
    changed = change_of(several(r=one("R"), p=one("SELECT  P"), q=one("Q")), JOB, None)
    assert (changed.sections["query"], changed.own) == ("SELECT  P", "p")
    assert list(changed.sections["queries"]) == ["r", "q"]


@pytest.mark.parametrize("queries", [{"main": one("M", stopped=True)}, {"p": one("SELECT P", stopped=True)}])
def test_a_query_that_is_stopped_in_the_file_is_not_started_as_the_job_s_own(queries: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="is stopped, and a job's own query runs"):
        change_of(several(**queries, q=one("Q")), JOB, None)


def test_queries_without_streams_are_further_ones() -> None:
    assert change_of({"queries": {"r": one("R")}}, JOB, None).sections == {"queries": {"r": {"query": "R"}}}
    assert change_of({"run": {"slots": 2}}, None, None).sections == {"run": {"slots": 2}}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"name": "other", "query": "P"}, 'the file is of job "other", and this is "two"'),
        (several(q=one("Q"), r=one("R"), p=one("S")), "say --own and one of r, p"),
        ({"slots": 3}, "not slots"),
    ],
)
def test_a_change_that_leaves_something_open_is_refused(document: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as refused:
        change_of(document, JOB, None)
    assert said in str(refused.value)


def test_relative_paths_start_from_the_file_s_folder(tmp_path: Path) -> None:
    document = {
        "streams": {
            "a": {"source": "csv", "path": "in/a.csv"}, "b": {"source": "csv", "path": "/srv/b.csv"},
            "c": {"source": "csv", "path": "upload:c.csv"}, "d": {"source": "kafka", "topic": "t"},
        },
        "relations": {"r": {"source": "sql", "url": "sqlite:///r.db", "table": "t"}},
    }  # fmt: skip
    a, b, c, d, r = entries_of(document, str(tmp_path / "join.yaml"), HERE)
    assert a.spec["path"] == str(tmp_path / "in" / "a.csv")
    assert (b.spec["path"], c.spec["path"], d.spec) == ("/srv/b.csv", "upload:c.csv", document["streams"]["d"])
    assert r.spec["url"] == f"sqlite:///{tmp_path / 'r.db'}"
    del document["relations"]["r"]
    with pytest.raises(InputError, match=r"streams\.a\.path: in/a\.csv is relative, and the platform at https://joins"):
        entries_of(document, "join.yaml", THERE)
    del document["streams"]["a"]
    assert [entry.name for entry in entries_of(document, "join.yaml", THERE)] == ["b", "c", "d"]


@pytest.mark.parametrize("host", ["http://localhost:8000", "http://127.0.0.2:1", "http://[::1]:8000"])
def test_this_machine_s_addresses_are_here(host: str) -> None:
    assert entries_of({"streams": {"a": {"path": "a.csv"}}}, "-", host)[0].spec["path"] == str(Path("a.csv").absolute())
