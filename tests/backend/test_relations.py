"""Relations: what is registered comes back, what is wrong is named, and jobs would be given what their queries name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import update

from backend.catalog.ids import now_us
from backend.catalog.jobspec import JobSpec
from backend.catalog.models import Job
from backend.context import Context
from backend.jobs import service
from backend.jobs.change import ANEW, diff
from backend.jobs.inputs import Inputs, inputs_of
from backend.jobs.joinfile import draft_file, join_file
from backend.jobs.reading import names_of
from backend.problems import Problem
from backend.settings import Settings
from streamjoin.relations.history import History, Reading
from streamjoin.relations.versions import Versions
from streamjoin.spec.prepare import bind
from streamjoin.spec.relations import read_relations
from tests.backend.matrix import add_person

BIDS = {"source": "generator", "kind": "nexmark.bid", "rate": "1000/s", "time": "ts", "delay": "2s"}
URL = "/api/v1/relations"
BIG = 2**60 + 1


@pytest.fixture
def spec(tmp_path: Path) -> dict[str, Any]:
    """Of a relation in two files, five rows together."""
    folder = tmp_path / "customers"
    folder.mkdir()
    pq.write_table(pa.table({"id": [1, 2, BIG], "name": ["Ada", "Bob", "Bob"]}), folder / "1.parquet")
    pq.write_table(pa.table({"id": [4, 5], "name": ["Cyd", None]}), folder / "2.parquet")
    return {"source": "parquet", "path": str(folder)}


@pytest.fixture
def registered(api: TestClient, spec: dict[str, Any]) -> Callable[..., dict[str, Any]]:
    """Registers a relation."""

    def register(name: str = "customers", **fields: Any) -> dict[str, Any]:
        answer = api.post(URL, json={"name": name, "spec": {**spec, **fields}})
        assert answer.status_code == 201, answer.text
        found: dict[str, Any] = answer.json()
        return found

    return register


def test_a_relation_comes_back_by_id_and_by_name(
    api: TestClient, registered: Callable[..., Any], spec: dict[str, Any]
) -> None:
    made = registered()
    assert made["id"].startswith("rel_")
    assert (made["spec"], made["version"]) == (spec, 1)
    for key in (made["id"], "customers"):
        answer = api.get(f"{URL}/{key}")
        assert answer.json() == made
        assert answer.headers["etag"] == f'"{made["id"]}-1"'


def test_a_creation_says_where_the_relation_is_and_repeats_itself(api: TestClient, spec: dict[str, Any]) -> None:
    body, headers = {"name": "customers", "spec": spec}, {"Idempotency-Key": "a"}
    first, again = (api.post(URL, json=body, headers=headers) for _ in range(2))
    assert (first.status_code, first.json()) == (again.status_code, again.json())
    assert first.headers["location"] == f"{URL}/{first.json()['id']}"
    assert len(api.get(URL).json()["data"]) == 1


def test_relations_are_listed_newest_first_and_page_by_page(api: TestClient, registered: Callable[..., Any]) -> None:
    ids = [registered(f"r{number}")["id"] for number in range(5)]
    first = api.get(f"{URL}?limit=3")
    assert [item["id"] for item in first.json()["data"]] == ids[:1:-1]
    rest = api.get(first.headers["link"].split(">")[0][1:]).json()
    assert ([item["id"] for item in rest["data"]], rest["has_more"]) == (ids[1::-1], False)


@pytest.mark.parametrize(
    ("name", "fields", "pointer", "said"),
    [
        ("2customers", {}, "/name", "letter"),
        ("customers", {"time": "ts"}, "/spec/time", "a relation has no time"),
        ("customers", {"delay": "2s"}, "/spec/delay", "a relation has no time"),
        ("customers", {"source": "kafka"}, "/spec/source", "a topic never ends"),
        ("customers", {"source": "push"}, "/spec/source", "rows are pushed into streams only"),
        ("customers", {"pth": "x"}, "/spec/pth", "did you mean"),
        ("customers", {"schema": {"id": "int65"}}, "/spec/schema", "not a column type"),
        ("customers", {"path": "/etc"}, "/spec/path", "STREAMJOIN_ALLOWED_PATHS"),
        ("customers", {"path": "customers"}, "/spec/path", "absolute"),
    ],
)
def test_a_wrong_relation_is_told_where_and_what(
    name: str, fields: dict[str, Any], pointer: str, said: str, api: TestClient, spec: dict[str, Any]
) -> None:
    answer = api.post(URL, json={"name": name, "spec": {**spec, **fields}})
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    (place,) = answer.json()["errors"]
    assert place["pointer"] == pointer
    assert said in answer.json()["detail"]


def test_a_spec_is_a_short_text(api: TestClient, spec: dict[str, Any]) -> None:
    schema = {"c" * 300_000: "int64"}
    assert api.post(URL, json={"name": "customers", "spec": {**spec, "schema": schema}}).status_code == 413


def test_links_to_the_outside_are_refused_whenever_they_come(
    api: TestClient, registered: Callable[..., Any], spec: dict[str, Any]
) -> None:
    registered()
    (Path(spec["path"]) / "3.parquet").symlink_to("/etc/passwd")
    for answer in (api.post(f"{URL}/customers/sample"), api.post(f"{URL}/test", json={"spec": spec})):
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/spec/path")
        assert "STREAMJOIN_ALLOWED_PATHS" in answer.json()["detail"]


# ---- names -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["customers", "Customers"])
def test_a_name_is_given_once_to_streams_and_relations_together(
    name: str, api: TestClient, registered: Callable[..., Any], spec: dict[str, Any]
) -> None:
    registered()
    assert api.post("/api/v1/streams", json={"name": "bids", "spec": BIDS}).status_code == 201
    for url, taken, entry, what in (
        (URL, name, spec, 'relation "customers"'),
        ("/api/v1/streams", name, BIDS, 'relation "customers"'),
        (URL, "BIDS", spec, 'stream "bids"'),
        ("/api/v1/streams", "Bids", BIDS, 'stream "bids"'),
    ):
        answer = api.post(url, json={"name": taken, "spec": entry})
        assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
        assert f"there is a {what} already" in answer.json()["detail"]


def test_of_many_who_want_one_name_at_once_one_gets_it(api: TestClient, spec: dict[str, Any]) -> None:
    together, statuses = Barrier(6), []

    def ask(number: int) -> None:
        url, entry = ((URL, spec), ("/api/v1/streams", BIDS))[number % 2]
        together.wait()
        statuses.append(api.post(url, json={"name": "wanted", "spec": entry}).status_code)

    threads = [Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [201] + [409] * 5


# ---- looking, changing, removing ---------------------------------------------------------------------------------


def test_a_sample_shows_columns_rows_size_and_skew(
    api: TestClient, registered: Callable[..., Any], spec: dict[str, Any]
) -> None:
    registered()
    seen = api.post(f"{URL}/customers/sample").json()
    assert seen == api.post(f"{URL}/test", json={"spec": spec}).json()
    assert seen["columns"] == [{"name": "id", "type": "int64"}, {"name": "name", "type": "string"}]
    assert seen["rows"] == [[1, "Ada"], [2, "Bob"], [str(BIG), "Bob"], [4, "Cyd"], [5, None]]
    assert (seen["rows_seen"], seen["row_count"], seen["files"]) == (5, 5, 2)
    assert seen["bytes"] == sum(file.stat().st_size for file in Path(spec["path"]).iterdir())
    assert seen["skew"]["name"]["top"][0] == {"value": "Bob", "share": 0.4}
    assert seen["skew"]["id"]["distinct"] == 5
    assert "rate_per_s" not in seen


def test_of_text_files_the_number_of_rows_is_not_known_and_bad_records_are_told(
    api: TestClient, tmp_path: Path
) -> None:
    path = tmp_path / "customers.csv"
    path.write_text("id,name\n1,Ada\nx,Bob\n2,Cyd\n")
    spec = {"source": "csv", "path": str(path), "schema": {"id": "int64", "name": "string"}}
    seen = api.post(f"{URL}/test", json={"spec": spec}).json()
    assert (seen["rows"], seen["row_count"], seen["files"]) == ([[1, "Ada"], [2, "Cyd"]], None, 1)
    assert list(seen["bad_records"].values()) == [1]


def test_files_that_cannot_be_read_are_named(api: TestClient, spec: dict[str, Any]) -> None:
    folder = Path(spec["path"])
    wrong = {"path": str(folder / "nothing")}, {"source": "arrow"}, {"schema": {"id": "int64", "nme": "string"}}
    for fields, said in zip(wrong, ("does not exist", "cannot be read as arrow", 'no column "nme"'), strict=True):
        answer = api.post(f"{URL}/test", json={"spec": {**spec, **fields}})
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/spec/path"), answer.text
        assert said in answer.json()["detail"]
    (folder / "2.parquet").write_bytes(b"no table")
    answer = api.post(f"{URL}/test", json={"spec": spec})
    assert (answer.status_code, "2.parquet cannot be read" in answer.json()["detail"]) == (422, True)


def test_a_change_names_the_version_it_changes(
    api: TestClient, registered: Callable[..., Any], spec: dict[str, Any]
) -> None:
    id = registered()["id"]
    change = {"spec": {**spec, "schema": {"id": "int64"}}}
    assert api.patch(f"{URL}/customers", json=change).status_code == 428
    done = api.patch(f"{URL}/customers", json=change, headers={"If-Match": '"1"'})
    assert (done.status_code, done.headers["etag"], done.json()["spec"]) == (200, f'"{id}-2"', change["spec"])
    late = api.patch(f"{URL}/customers", json=change, headers={"If-Match": '"1"'})
    assert (late.status_code, late.json()["code"], late.headers["etag"]) == (412, "changed_meanwhile", f'"{id}-2"')
    wrong = api.patch(f"{URL}/customers", json={"spec": {**spec, "time": "ts"}}, headers={"If-Match": '"2"'})
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "/spec/time")
    assert api.get(f"{URL}/customers").json()["version"] == 2


def test_a_removed_relation_is_gone_its_files_are_not_and_all_of_it_is_told(
    api: TestClient, registered: Callable[..., Any], spec: dict[str, Any]
) -> None:
    registered()
    api.patch(f"{URL}/customers", json={"spec": spec}, headers={"If-Match": '"1"'})
    assert api.delete(f"{URL}/customers").status_code == 204
    assert api.get(f"{URL}/customers").status_code == 404
    assert len(list(Path(spec["path"]).iterdir())) == 2
    kinds = [event["kind"] for event in api.get("/api/v1/events").json()["data"]]
    assert kinds == ["relation.deleted", "relation.changed", "relation.created"]


def test_operators_change_their_own_relations_only(app: FastAPI, api: TestClient, spec: dict[str, Any]) -> None:
    context: Context = app.state.context
    context.settings.auth = "on"
    mine, other, boss, guest = (
        add_person(context, name, role).headers
        for name, role in (("mine", "operator"), ("other", "operator"), ("boss", "admin"), ("guest", "viewer"))
    )
    assert api.post(URL, json={"name": "customers", "spec": spec}, headers=mine).status_code == 201
    change = {"json": {"spec": spec}}
    for headers, allowed in ((guest, False), (other, False), (mine, True), (boss, True)):
        changed = api.patch(f"{URL}/customers", headers=headers | {"If-Match": "*"}, **change)
        assert (changed.status_code == 200) == allowed, changed.text
    assert api.post(f"{URL}/customers/sample", headers=guest).status_code == 200
    asked = [api.post(f"{URL}/customers/refresh", headers=one).status_code for one in (guest, other, mine, boss)]
    assert asked == [403, 403, 200, 200]
    assert [api.delete(f"{URL}/customers", headers=headers).status_code for headers in (other, mine)] == [403, 204]


# ---- jobs --------------------------------------------------------------------------------------------------------

SEMI_STREAM = "SELECT ONLINE bids.price, c.name\nFROM bids, Customers AS c\nWHERE bids.bidder = c.id"
TWO_STREAMS = "SELECT ONLINE a.price FROM bids AS a, bids AS b WHERE a.auction = b.auction WITHIN 1 SECONDS"


@pytest.fixture
def bids(api: TestClient) -> None:
    """A registered stream."""
    assert api.post("/api/v1/streams", json={"name": "bids", "spec": BIDS}).status_code == 201


def test_a_query_joins_a_relation_with_a_stream(api: TestClient, registered: Callable[..., Any], bids: None) -> None:
    registered()
    for streams in (None, ["bids"]):
        found = api.post("/api/v1/jobs/validate", json={"query": SEMI_STREAM, "streams": streams}).json()
        assert found["valid"], found
    explained = api.post("/api/v1/jobs/explain", json={"query": SEMI_STREAM}).json()
    assert explained["plan"]["operator"] == "lookup"
    assert list(explained["plan"]["relations"]) == ["c"]
    assert explained["plan"]["relations"]["c"]["relation"] == "customers"
    made = api.post("/api/v1/jobs", json={"name": "j", "query": SEMI_STREAM})
    assert (made.status_code, made.json()["streams"], made.json()["relations"]) == (201, ["bids"], ["customers"])
    assert api.delete(f"{URL}/customers").status_code == 409


def test_sparks_own_joins_are_there_to_compare_with_and_run_no_job(
    api: TestClient, registered: Callable[..., Any], bids: None
) -> None:
    registered()
    offered = api.get("/api/v1/operators").json()
    assert [one["name"] for one in offered if not one["runs_jobs"]] == ["spark", "spark-broadcast", "spark-shuffled"]
    for name, query in (
        ("spark", TWO_STREAMS), ("spark-broadcast", SEMI_STREAM), ("spark-shuffled", SEMI_STREAM),
    ):  # fmt: skip
        refused = api.post("/api/v1/jobs", json={"name": "j", "query": query, "operator": {"name": name}})
        assert refused.status_code == 422 and "keeps no results in a store" in refused.json()["detail"], name
    explained = api.post("/api/v1/jobs/explain", json={"query": SEMI_STREAM}).json()
    said = {one["name"]: one["refusal"] for one in explained["plan"]["operators"]}
    assert said["spark-broadcast"] == "Spark has no source for stream bids: it is generator; write it to Parquet first"


def test_a_query_of_relations_alone_and_a_within_are_refused_at_their_places(
    api: TestClient, registered: Callable[..., Any], bids: None
) -> None:
    registered()
    for query, span, words in (
        (
            "SELECT ONLINE c.name\nFROM customers AS c, customers AS d\nWHERE c.id = d.id",
            {"line": 2, "column": 6, "end_line": 2, "end_column": 20},
            "a query waits for rows of a stream",
        ),
        (
            f"{SEMI_STREAM}\nWITHIN 10 SECONDS",
            {"line": 4, "column": 1, "end_line": 4, "end_column": 18},
            "rows have no time; leave WITHIN out",
        ),
    ):
        found = api.post("/api/v1/jobs/validate", json={"query": query}).json()
        assert not found["valid"]
        (place,) = found["diagnostics"]
        assert place["span"] == span and words in place["detail"]


def test_a_relation_beside_the_query_is_no_matter(api: TestClient, registered: Callable[..., Any], bids: None) -> None:
    registered()
    made = api.post("/api/v1/jobs", json={"name": "j", "query": TWO_STREAMS})
    assert (made.status_code, made.json()["streams"], made.json()["relations"]) == (201, ["bids"], [])
    assert api.delete(f"{URL}/customers").status_code == 204


def test_a_job_s_join_file_has_the_relations_that_its_query_names(
    app: FastAPI, registered: Callable[..., Any], bids: None, spec: dict[str, Any], settings: Settings
) -> None:
    registered()
    registered("unused")
    with app.state.context.catalog.read() as session:
        inputs = service.entries(session, names_of(None, JobSpec(SEMI_STREAM)), None)
    assert inputs == Inputs({"bids": BIDS}, {"customers": spec})
    file = draft_file(settings, JobSpec(SEMI_STREAM), inputs, {})
    assert {name: relation.path for name, relation in file.relations.items()} == {"customers": spec["path"]}
    job = Job(id="job_1", spec=JobSpec(SEMI_STREAM, results={"store": "sqlite"}), streams={"bids": BIDS},
              relations={"customers": spec}, incarnation=0)  # fmt: skip
    assert list(join_file(settings, job, {}).relations) == ["customers"]
    with pytest.raises(Problem, match="STREAMJOIN_ALLOWED_PATHS"):
        service.bound_draft(settings, job.spec, Inputs({}, {"customers": {**spec, "path": "/etc"}}), {})


def test_a_relation_that_a_job_uses_stays(
    app: FastAPI, api: TestClient, registered: Callable[..., Any], bids: None, spec: dict[str, Any]
) -> None:
    registered()
    api.post("/api/v1/jobs", json={"name": "j", "query": TWO_STREAMS})
    with app.state.context.catalog.begin() as session:
        session.execute(update(Job).values(relations={"customers": spec}))
    assert api.get("/api/v1/jobs/j").json()["relations"] == ["customers"]
    refused = api.delete(f"{URL}/customers")
    assert (refused.status_code, "used by j" in refused.json()["detail"]) == (409, True)
    api.delete("/api/v1/jobs/j")
    assert api.delete(f"{URL}/customers").status_code == 204


def test_a_change_of_a_job_takes_relations_over_when_it_is_asked_to(
    app: FastAPI,
    api: TestClient,
    registered: Callable[..., Any],
    bids: None,
    spec: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registered()
    api.post("/api/v1/jobs", json={"name": "j", "query": TWO_STREAMS})
    asked = api.post("/api/v1/jobs/j/diff", json={"query": SEMI_STREAM})
    assert asked.status_code == 200 and "relations.customers.path" in [
        item["field"] for item in asked.json()["changes"]
    ]
    monkeypatch.setattr(service, "bound_job", lambda settings, job, secrets, elsewhere: None)
    old = {**spec, "schema": {"id": "int64"}}
    with app.state.context.catalog.begin() as session:
        job = service.find_job(session, "j")
        service.change(session, job, replace(job.spec, query=SEMI_STREAM), Inputs(job.streams, {"customers": old}),
                       anew=True, actor_id=None, kept=10)  # fmt: skip
        assert inputs_of(job) == Inputs({"bids": BIDS}, {"customers": old})

    def fields(change: dict[str, Any]) -> list[str]:
        answer = api.post("/api/v1/jobs/j/diff", json=change)
        assert answer.status_code == 200, answer.text
        return [item["field"] for item in answer.json()["changes"]]

    assert fields({"query": SEMI_STREAM}) == []
    assert fields({"refresh_streams": True}) == ["relations.customers.schema.id"]
    assert fields({"query": TWO_STREAMS}) == [
        "query", "relations.customers.path", "relations.customers.schema.id", "relations.customers.source",
    ]  # fmt: skip
    (change,) = diff({"relations": {"customers": spec}}, {"relations": {"customers": {**spec, "path": "/data"}}})
    assert change.effect == ANEW


def test_versions_and_looks_are_those_of_the_jobs_that_join_it(
    api: TestClient, app: FastAPI, registered: Callable[..., Any], spec: dict[str, Any]
) -> None:
    made = registered(refresh="10min")
    assert api.get(f"{URL}/customers/versions").json() == {"data": []}
    assert api.post(f"{URL}/customers/refresh").json() == {"jobs": []}
    bids = {"name": "bids", "spec": BIDS}
    assert api.post("/api/v1/streams", json=bids).status_code == 201
    query = "SELECT ONLINE bids.auction, c.name, VERSION(c) FROM bids JOIN customers AS c ON bids.bidder = c.id"
    job = api.post("/api/v1/jobs", json={"name": "named", "query": query}).json()
    (known,) = api.get(f"{URL}/{made['id']}/versions").json()["data"]
    assert (known["job"], known["versions"], known["refresh"]) == ("named", [], "10min")
    context: Context = app.state.context
    with context.catalog.begin() as session:
        found = service.find_job(session, job["id"])
        found.wanted = found.observed = "running"
        engine = join_file(context.settings, found, {})
    assert api.post(f"{URL}/customers/refresh").json() == {"jobs": []}, "nothing was read yet"
    running = bind(engine).job()
    read_relations(running)
    history = History(running.tables, "customers")
    history.used(Versions(running.tables, "customers").load(1), 7, 2_000_000)
    history.looked(history.look().failed(3_000_000, "customers has no files any more"))
    assert api.post(f"{URL}/customers/refresh").json() == {"jobs": ["named"]} and history.is_asked()
    told = api.get("/api/v1/jobs/named/events").json()["data"][0]
    assert (told["kind"], told["message"]) == (
        "relation.refresh_asked", "named is to look for a new version of customers"
    )  # fmt: skip
    (known,) = api.get("/api/v1/jobs/named/relations").json()["data"]
    assert known == api.get(f"{URL}/customers/versions").json()["data"][0]
    (version,) = known["versions"]
    assert (version["version"], version["rows"], version["batch"], version["state"]) == (1, 5, 7, "in use")
    assert version["used_at"].startswith("1970-01-01T00:00:02")
    assert known["refresh_failures"] == 1 and known["problem"] == "customers has no files any more"
    assert known["reading_version"] is None and known["reading_rows"] is None
    history.reads(Reading(2, 1_200_000, now_us()))
    (known,) = api.get("/api/v1/jobs/named/relations").json()["data"]
    assert (known["reading_version"], known["reading_rows"]) == (2, 1_200_000)
    (history.folder / "1" / "version.json").write_text("{")
    history.folder.joinpath("uses.jsonl").unlink()
    damaged = api.get(f"{URL}/customers/versions")
    assert damaged.status_code == 503 and str(history.folder) not in damaged.text
    assert api.get(f"{URL}/none/versions").status_code == 404
