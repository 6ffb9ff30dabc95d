"""Jobs: checked before they exist, changed by version, and wanted rather than commanded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from test_streams import BIDS, registered

from backend.catalog.events import FIRST_BATCH, record
from backend.catalog.models import Job, Lease
from backend.context import Context
from backend.jobs import service
from backend.jobs.change import ANEW, KEEPS, diff
from backend.jobs.joinfile import join_file
from backend.settings import Settings
from streamjoin.errors import InputError
from streamjoin.spec.prepare import bind
from worker.leases import version_of

QUERY = (
    "SELECT ONLINE auctions.id, bids.price FROM auctions, bids "
    "WHERE auctions.id = bids.auction AND bids.price >= auctions.reserve WITHIN 10 SECONDS"
)


@pytest.fixture(autouse=True)
def streams(api: TestClient) -> None:
    """The streams of `QUERY`."""
    registered(api)
    registered(api, "auctions", **{**BIDS, "kind": "nexmark.auction"})


def created(api: TestClient, name: str = "wins", **more: Any) -> dict[str, Any]:
    answer = api.post("/api/v1/jobs", json={"name": name, "query": QUERY, **more})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def context_of(app: FastAPI) -> Context:
    found = app.state.context
    assert isinstance(found, Context)
    return found


def has_begun(app: FastAPI, id: str) -> None:
    """As if a driver had run: from then on there is state."""
    with context_of(app).catalog.begin() as session:
        job = session.get(Job, id)
        assert job is not None
        job.generation = 1
        session.add(Lease(job_id=id, generation=1, job_version=job.version, host="here", expires_at_us=0, ended=True))


def test_a_log_says_on_which_machine_the_rest_of_it_is(api: TestClient, app: FastAPI) -> None:
    job = created(api)
    assert api.get(f"/api/v1/jobs/{job['id']}/logs").text == ""
    has_begun(app, job["id"])
    log = context_of(app).settings.job_folder(job["id"]) / "driver.log"
    assert "on here, and its newest log is there" in api.get(f"/api/v1/jobs/{job['id']}/logs").text
    log.parent.mkdir(parents=True)
    log.write_text("begun")  # in a folder that both machines have
    assert api.get(f"/api/v1/jobs/{job['id']}/logs").text == "begun"


def test_a_right_query_is_told_its_columns(api: TestClient) -> None:
    found = api.post("/api/v1/jobs/validate", json={"query": QUERY}).json()
    assert found["valid"]
    assert found["columns"] == [{"name": "id", "type": "int64"}, {"name": "price", "type": "int64"}]
    assert "biclique" in found["summary"]


def test_an_emoji_is_a_letter_like_others_in_queries_names_and_files(
    api: TestClient, app: FastAPI, tmp_path: Path
) -> None:
    folder = tmp_path / "fruit 🍎"
    folder.mkdir()
    (folder / "a.csv").write_text("k,mood 😀,ts\n1,🚀,2026-01-01T00:00:00Z\n2,no,2026-01-01T00:00:01Z\n")
    for name in ("r", "s"):
        registered(api, name, source="csv", path=str(folder), time="ts")
    assert [row[1] for row in api.post("/api/v1/streams/r/sample").json()["rows"]] == ["🚀", "no"]
    query = """SELECT ONLINE r.k AS "k 🍎" FROM r, s WHERE r.k = s.k AND r."mood 😀" = '🚀👩‍🚀' WITHIN 1 SECONDS"""
    found = api.post("/api/v1/jobs/validate", json={"query": query}).json()
    assert (found["valid"], found["columns"]) == (True, [{"name": "k 🍎", "type": "int64"}]), found
    id = api.post("/api/v1/jobs", json={"name": "j", "query": query}).json()["id"]
    with context_of(app).catalog.read() as session:
        bound = bind(join_file(context_of(app).settings, session.get_one(Job, id), {}))
    assert bound.query.text == query


@pytest.mark.parametrize(
    ("query", "said", "span"),
    [
        (
            QUERY.replace("bids.price,", "bids.prise,").replace("id, bids.price", "id, bids.prise"),
            "bids.price?",
            (1, 28),
        ),
        ("SELECT ONLINE x FROM nobody, bids WHERE 1 = 1", "there are auctions, bids", None),
        ("DROP TABLE jobs", "SELECT ONLINE", (1, 1)),
        ("", "", None),
    ],
)
def test_a_wrong_query_is_told_where(api: TestClient, query: str, said: str, span: tuple[int, int] | None) -> None:
    answer = api.post("/api/v1/jobs/validate", json={"query": query})
    assert answer.status_code == 200
    found = answer.json()
    assert not found["valid"]
    assert said in found["diagnostics"][0]["detail"] + str(found)
    if span:
        place = found["diagnostics"][0]
        assert (place["pointer"], place["span"]["line"], place["span"]["column"]) == ("/query", *span)


def test_costs_of_every_operator_come_before_anything_runs(api: TestClient) -> None:
    found = api.post("/api/v1/jobs/explain", json={"query": QUERY}).json()
    costs = {option["name"]: option for option in found["plan"]["operators"]}
    assert costs["matrix"]["memory_bytes"] == pytest.approx(2 * costs["biclique"]["memory_bytes"], rel=0.01)
    assert "WITHIN" not in found["text"] and "operator" in found["text"]


def test_a_wrong_query_makes_no_job(api: TestClient) -> None:
    answer = api.post("/api/v1/jobs", json={"name": "j", "query": QUERY.replace("price", "prise")})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_query")
    assert answer.json()["errors"][0]["span"]["line"] == 1
    assert api.get("/api/v1/jobs").json()["data"] == []


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"run": {"spark": {"spark.jars": "evil.jar"}}}, "run.spark"),
        ({"run": {"checkpoint": "/etc"}}, "run.checkpoint"),
        ({"results": {"parquet": "/etc"}}, "results.parquet"),
        ({"results": {"store": "cassandra"}}, "results.store"),
        ({"results": {"where": "nothing > 1"}}, "results.where"),
        ({"operator": {"name": "magic"}}, "operator.name"),
        ({"operator": {"name": "matrix", "rows": "many"}}, "operator"),
        ({"run": {"slots": 0}}, "run.slots"),
    ],
)
def test_what_a_job_may_not_set_is_named(api: TestClient, more: dict[str, Any], field: str) -> None:
    answer = api.post("/api/v1/jobs", json={"name": "j", "query": QUERY, **more})
    assert answer.status_code == 422, answer.text
    assert field in answer.text.replace("/", ".")


def test_start_and_stop_say_what_is_wanted_and_not_that_it_is_so(api: TestClient) -> None:
    made = created(api)
    started = api.post(f"/api/v1/jobs/{made['id']}/start")
    assert started.status_code == 202
    assert [started.json()[name] for name in ("wanted", "observed", "phase")] == ["running", "stopped", "starting"]
    again = api.post("/api/v1/jobs/wins/start").json()
    assert again["wanted_since"] == started.json()["wanted_since"]
    assert api.post("/api/v1/jobs/wins/stop").json()["wanted"] == "stopped"
    kinds = [event["kind"] for event in api.get("/api/v1/jobs/wins/events").json()["data"]]
    assert sorted(kinds) == ["job.created", "job.started_by_user", "job.stopped_by_user"]


def test_a_job_shows_the_steps_of_its_last_start(api: TestClient, app: FastAPI) -> None:
    made, other = created(api), created(api, "other")
    assert made["last_start"] is None
    steps = {"launch": 0.2, "process": 0.1, "spark": 0.0, "state": 0.9, "first_batch": 0.8}
    with context_of(app).catalog.begin() as session:
        for generation in (1, 2):
            data = {"generation": generation, "cause": "restart", "warm": True, "seconds": 2.0, "steps": steps}
            record(session, FIRST_BATCH, "the first batch is there", job_id=made["id"], data=data)
    found = api.get("/api/v1/jobs/wins").json()["last_start"]
    at = found.pop("at")
    assert found == {"generation": 2, "cause": "restart", "warm": True, "seconds": 2.0, "steps": steps}
    listed = {job["name"]: job["last_start"] for job in api.get("/api/v1/jobs").json()["data"]}
    assert listed == {"wins": {**found, "at": at}, other["name"]: None}
    assert api.post("/api/v1/jobs/wins/start").json()["last_start"] == {**found, "at": at}


def test_a_job_shows_the_steps_of_a_start_that_are_done(api: TestClient, app: FastAPI) -> None:
    id = created(api)["id"]
    has_begun(app, id)
    assert api.get("/api/v1/jobs/wins").json()["last_run"]["steps"] == {}  # as of a driver that does not tell
    with context_of(app).catalog.begin() as session:
        session.get_one(Lease, id).steps = {"launch": 0.2, "process": 0.1}
    found = api.get("/api/v1/jobs/wins").json()
    assert (found["last_run"]["steps"], found["last_start"]) == ({"launch": 0.2, "process": 0.1}, None)


def test_a_deleted_job_cannot_be_started(api: TestClient) -> None:
    created(api)
    assert api.delete("/api/v1/jobs/wins").json()["phase"] == "deleting"
    assert api.delete("/api/v1/jobs/wins").status_code == 202
    assert api.post("/api/v1/jobs/wins/start").status_code == 409


def test_a_job_that_is_being_deleted_is_changed_no_more(api: TestClient) -> None:
    created(api)
    assert api.delete("/api/v1/jobs/wins").status_code == 202
    change = {"run": {"slots": 1}}
    for answer in (
        api.patch("/api/v1/jobs/wins", json=change, headers={"If-Match": "*"}),
        api.post("/api/v1/jobs/wins/diff", json=change),
        api.post("/api/v1/jobs/wins/rescale", json={"slots": 1}),
        api.post("/api/v1/jobs/wins/restart"),
    ):
        assert (answer.status_code, answer.json()["subcode"]) == (409, "being_deleted"), answer.text
    left = api.get("/api/v1/jobs/wins").json()
    assert (left["version"], left["run"], left["phase"]) == (1, {}, "deleting")


def test_a_change_is_a_new_version_and_the_old_one_is_kept(api: TestClient) -> None:
    id = created(api)["id"]
    done = api.patch("/api/v1/jobs/wins", json={"run": {"slots": 1}}, headers={"If-Match": '"1"'})
    assert (done.status_code, done.headers["etag"], done.json()["run"]) == (200, f'"{id}-2"', {"slots": 1})
    (old,) = api.get("/api/v1/jobs/wins/revisions").json()["data"]
    assert (old["version"], old["run"]) == (1, {})
    stale = api.patch("/api/v1/jobs/wins", json={"run": {"slots": 2}}, headers={"If-Match": '"1"'})
    assert stale.json()["code"] == "changed_meanwhile"


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object], times: int = 1) -> None:
    """Somebody acts after a job was checked, and before it is written down."""
    bound, done = service.bound_job, list[int]()

    def slowly(*given: Any, **more: Any) -> Any:
        found = bound(*given, **more)
        if len(done) < times:
            done.append(1)
            act()
        return found

    monkeypatch.setattr(service, "bound_job", slowly)


def test_a_stream_that_is_removed_while_a_job_is_made_leaves_no_job_without_it(
    api: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile(monkeypatch, lambda: api.delete("/api/v1/streams/auctions"))
    refused = api.post("/api/v1/jobs", json={"name": "wins", "query": QUERY})
    assert (refused.status_code, refused.json()["subcode"]) == (422, "unknown_stream"), refused.text
    assert api.get("/api/v1/jobs").json()["data"] == []


def test_a_stream_that_is_removed_while_a_job_comes_to_read_it_leaves_the_job_as_it_was(
    api: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    registered(api, "more", **{**BIDS, "kind": "nexmark.auction"})
    created(api)
    meanwhile(monkeypatch, lambda: api.delete("/api/v1/streams/more"))
    other = {"query": QUERY.replace("auctions", "more")}
    refused = api.patch("/api/v1/jobs/wins", json=other, headers={"If-Match": "*"})
    assert (refused.status_code, refused.json()["subcode"]) == (422, "unknown_stream"), refused.text
    left = api.get("/api/v1/jobs/wins").json()
    assert (left["version"], left["streams"]) == (1, ["auctions", "bids"])


@pytest.mark.parametrize(("times", "status"), [(1, 201), (99, 409)])
def test_a_job_that_is_made_while_its_stream_is_changed_has_the_entry_of_then(
    api: TestClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch, times: int, status: int
) -> None:
    rates = iter(range(2, 100))

    def change() -> None:
        spec = {**BIDS, "kind": "nexmark.auction", "rate": f"{next(rates)}/s"}
        assert api.patch("/api/v1/streams/auctions", json={"spec": spec}, headers={"If-Match": "*"}).status_code == 200

    meanwhile(monkeypatch, change, times)
    answer = api.post("/api/v1/jobs", json={"name": "wins", "query": QUERY})
    assert answer.status_code == status, answer.text
    if status == 409:
        assert answer.json()["subcode"] == "inputs_differ"
        return
    with context_of(app).catalog.read() as session:
        assert session.get_one(Job, answer.json()["id"]).streams["auctions"]["rate"] == "2/s"


@pytest.mark.parametrize(("times", "status"), [(1, 200), (99, 412)])
def test_a_change_of_whatever_version_there_is_keeps_what_others_changed_meanwhile(
    api: TestClient, monkeypatch: pytest.MonkeyPatch, times: int, status: int
) -> None:
    created(api)
    bound, done, anything = service.bound_job, list[int](), {"If-Match": "*"}

    def bound_while_somebody_changes(*given: Any, **more: Any) -> Any:
        if len(done) < times:
            done.append(len(done))
            monkeypatch.setattr(service, "bound_job", bound)
            other = api.patch("/api/v1/jobs/wins", json={"run": {"slots": 2 + len(done)}}, headers=anything)
            assert other.status_code == 200
            monkeypatch.setattr(service, "bound_job", bound_while_somebody_changes)
        return bound(*given, **more)

    monkeypatch.setattr(service, "bound_job", bound_while_somebody_changes)
    answer = api.patch("/api/v1/jobs/wins", json={"results": {"retain": "1h"}}, headers=anything)
    assert answer.status_code == status, answer.text
    job = api.get("/api/v1/jobs/wins").json()
    assert (job["run"], job["version"]) == ({"slots": 2 + len(done)}, 1 + len(done) + (status == 200))
    assert ("retain" in job["results"]) == (status == 200)


def test_a_wrong_change_changes_nothing(api: TestClient) -> None:
    created(api)
    for change, place in (
        ({"results": {"where": "nothing > 1"}}, "/results/where"),
        ({"query": "SELECT"}, "/query"),
        ({"operator": {"name": "magic"}}, "/operator/name"),
        ({"operator": {"name": "spark"}}, "/operator/name"),
        ({"run": {"until_end": "yes"}}, "/run/until_end"),
    ):
        answer = api.patch("/api/v1/jobs/wins", json=change, headers={"If-Match": '"1"'})
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, place), answer.text
        shown = api.post("/api/v1/jobs/wins/diff", json=change)
        assert shown.json() == {**answer.json(), "instance": shown.json()["instance"],
                                "request_id": shown.json()["request_id"]}  # fmt: skip
    assert api.get("/api/v1/jobs/wins").json()["version"] == 1


def test_how_often_batches_begin_may_change_while_a_job_runs(api: TestClient, app: FastAPI, settings: Settings) -> None:
    made = created(api, run={"every": "2s"})
    has_begun(app, made["id"])

    def every_us() -> int:
        with context_of(app).catalog.read() as session:
            return bind(join_file(settings, session.get_one(Job, made["id"]), {})).job().every_us

    assert every_us() == 2_000_000
    change = {"run": {"every": "500ms"}}
    assert not api.post("/api/v1/jobs/wins/diff", json=change).json()["starts_anew"]
    assert api.patch("/api/v1/jobs/wins", json=change, headers={"If-Match": '"1"'}).status_code == 200
    assert every_us() == 500_000


def test_a_change_that_does_not_fit_the_state_needs_consent(api: TestClient, app: FastAPI, settings: Settings) -> None:
    made = created(api)
    has_begun(app, made["id"])
    change = {"query": QUERY.replace("10 SECONDS", "20 SECONDS")}
    seen = api.post("/api/v1/jobs/wins/diff", json=change).json()
    assert seen["starts_anew"]
    assert [item["field"] for item in seen["changes"]] == ["query"]
    refused = api.patch("/api/v1/jobs/wins", json=change, headers={"If-Match": '"1"'})
    assert (refused.status_code, "start_anew" in refused.json()["hint"]) == (409, True)
    done = api.patch("/api/v1/jobs/wins", json={**change, "start_anew": True}, headers={"If-Match": '"1"'})
    assert done.status_code == 200
    with context_of(app).catalog.read() as session:
        job = session.get(Job, made["id"])
    assert job is not None
    assert job.incarnation == 1
    file = join_file(settings, job, {})
    assert file.results.job == job.results_name == f"{job.id}-1"
    assert file.checkpoint.name == "checkpoint-1"


CHAIN = {"name": "handshake"}
BY_PERIOD = {"snapshot": {"punctuation": True}}


def test_a_chain_may_keep_results_by_period_wherever_it_enters(
    api: TestClient, app: FastAPI, settings: Settings
) -> None:
    for name in ("bids", "auctions"):
        spec = {**api.get(f"/api/v1/streams/{name}").json()["spec"], "punctuate": {"every": "1s"}}
        done = api.patch(f"/api/v1/streams/{name}", json={"spec": spec}, headers={"If-Match": '"1"'})
        assert done.status_code == 200, done.text
    created(api, operator=CHAIN)
    created(api, "by period", results=BY_PERIOD)
    both = {"query": QUERY, "operator": CHAIN, "results": BY_PERIOD}
    assert api.post("/api/v1/jobs/validate", json=both).json()["valid"]
    made = created(api, "other", operator=CHAIN, results=BY_PERIOD)
    if_match = {"If-Match": '"1"'}
    for answer in (
        api.post("/api/v1/jobs/explain", json=both),
        api.patch("/api/v1/jobs/wins", json={"results": BY_PERIOD}, headers=if_match),
        api.patch("/api/v1/jobs/by period", json={"operator": CHAIN}, headers=if_match),
    ):
        assert answer.status_code == 200, answer.text
    with context_of(app).catalog.read() as session:
        job = session.get(Job, made["id"])
        assert job is not None
        assert bind(join_file(settings, job, {})).operator == "handshake"
    has_begun(app, made["id"])
    seen = api.post("/api/v1/jobs/other/diff", json={"results": {"snapshot": {"epoch": "1s"}}}).json()
    assert seen["starts_anew"], "blocks of the results so far hold one period each"


def test_a_job_says_when_its_periods_close_and_begins_anew_with_others(api: TestClient, app: FastAPI) -> None:
    marked = {"column": "auction", "value": "7"}
    for name, rule in (("bids", marked), ("auctions", {"column": "id", "value": 7})):
        spec = {**api.get(f"/api/v1/streams/{name}").json()["spec"], "punctuate": rule}
        done = api.patch(f"/api/v1/streams/{name}", json={"spec": spec}, headers={"If-Match": '"1"'})
        assert done.status_code == 200, done.text
        assert done.json()["spec"]["punctuate"] == rule
    plan = api.post("/api/v1/jobs/explain", json={"query": QUERY, "results": BY_PERIOD}).json()["plan"]
    assert "in auctions at a row whose id is 7, in bids at a row whose auction is 7" in plan["snapshots_close"]
    assert api.post("/api/v1/jobs/explain", json={"query": QUERY}).json()["plan"]["snapshots_close"] is None
    created(api, "by rows", results=BY_PERIOD)


def test_rescaling_keeps_state(api: TestClient, app: FastAPI) -> None:
    made = created(api)
    has_begun(app, made["id"])
    done = api.post("/api/v1/jobs/wins/rescale", json={"slots": 1})
    assert (done.status_code, done.json()["run"], done.json()["version"]) == (202, {"slots": 1}, 2)
    with context_of(app).catalog.read() as session:
        job = session.get(Job, made["id"])
    assert job is not None
    assert (job.incarnation, job.restart_version) == (0, 2)


def test_versions_have_no_holes_whatever_is_refused_and_each_restart_is_seen(api: TestClient, app: FastAPI) -> None:
    made = created(api)
    has_begun(app, made["id"])
    url = f"/api/v1/jobs/{made['id']}"

    def asked_for() -> int:
        with context_of(app).catalog.read() as session:
            return version_of(session.get_one(Job, made["id"]))

    seen = [asked_for()]
    steps: tuple[tuple[Callable[[], Any], int, bool], ...] = (
        (lambda: api.post(f"{url}/restart"), 202, True),
        (lambda: api.post(f"{url}/restart"), 202, True),
        (lambda: api.patch(url, json={"run": {"slots": 1}}, headers={"If-Match": '"1"'}), 200, True),
        (lambda: api.patch(url, json={"query": "nonsense"}, headers={"If-Match": '"2"'}), 422, False),
        (lambda: api.patch(url, json={"run": {"slots": 2}}, headers={"If-Match": '"1"'}), 412, False),
        (lambda: api.patch(url, json={"operator": {"name": "matrix"}}, headers={"If-Match": '"2"'}), 409, False),
        (lambda: api.post(f"{url}/rescale", json={"slots": 0}), 422, False),
        (lambda: api.post(f"{url}/restart"), 202, True),
        (lambda: api.post(f"{url}/stop"), 202, False),
        (lambda: api.post(f"{url}/rescale", json={"slots": 2}), 202, True),
        (lambda: api.patch(url, json={"run": {"slots": 1}}, headers={"If-Match": '"3"'}), 200, True),
    )
    for act, status, restarts in steps:
        assert (answer := act()).status_code == status, answer.text
        seen.append(asked_for())
        assert (seen[-1] > seen[-2]) is restarts, "a driver of an earlier definition would go on"
    page = api.get(f"{url}/revisions", params={"limit": 2})
    assert ([row["version"] for row in page.json()["data"]], page.json()["has_more"]) == ([3, 2], True)
    rest = api.get(page.links["next"]["url"]).json()
    assert ([row["version"] for row in rest["data"]], rest["has_more"]) == ([1], False)
    assert api.get(f"{url}/revisions").json() == {"data": page.json()["data"] + rest["data"], "has_more": False}
    assert api.get(url).json()["version"] == 4


CHEAP = f"{QUERY} ".replace(" WITHIN", " AND bids.price < 1000 WITHIN")


def test_queries_beside_a_jobs_own_come_and_go(api: TestClient, app: FastAPI, settings: Settings) -> None:
    made = created(api)
    assert made["queries"] == {}
    has_begun(app, made["id"])
    change = {"queries": {"cheap": {"query": CHEAP}}}
    seen = api.post("/api/v1/jobs/wins/diff", json=change).json()
    assert [(item["field"], item["effect"]) for item in seen["changes"]] == [
        ("queries.cheap.query", KEEPS), ("queries.cheap.stopped", KEEPS),
    ]  # fmt: skip
    done = api.patch("/api/v1/jobs/wins", json=change, headers={"If-Match": '"1"'})
    assert (done.status_code, done.json()["queries"]) == (200, {"cheap": {"query": CHEAP, "stopped": False}})
    more = {"queries": {"other": {"query": QUERY}, "cheap": {"query": CHEAP, "stopped": True}}}
    assert not api.post("/api/v1/jobs/wins/diff", json=more).json()["starts_anew"]
    assert api.patch("/api/v1/jobs/wins", json=more, headers={"If-Match": '"2"'}).status_code == 200
    with context_of(app).catalog.read() as session:
        job = session.get(Job, made["id"])
    assert job is not None and job.incarnation == 0
    file = join_file(settings, job, {})
    assert file.queries is not None and {
        name: (query.stopped, query.results.job) for name, query in file.queries.items()
    } == {"main": (False, job.id), "cheap": (True, f"{job.id}.cheap"), "other": (False, f"{job.id}.other")}
    assert list(api.get("/api/v1/jobs/wins/revisions").json()["data"][0]["queries"]) == ["cheap"]
    # Another query under its name belongs to other results.
    other = {"queries": {"cheap": {"query": CHEAP.replace("1000", "900")}}}
    refused = api.patch("/api/v1/jobs/wins", json=other, headers={"If-Match": '"3"'})
    assert (refused.status_code, "queries.cheap.query" in refused.text) == (409, True)


def test_a_wrong_query_beside_a_jobs_own_is_named(api: TestClient) -> None:
    created(api)
    for queries, pointer in (
        ({"main": {"query": CHEAP}}, "/queries/main"),
        ({"a b": {"query": CHEAP}}, "/queries/a b"),
        ({"cheap": {"query": CHEAP.replace("bids.price <", "bids.prize <")}}, "/queries/cheap/query"),
    ):
        for answer in (
            api.patch("/api/v1/jobs/wins", json={"queries": queries}, headers={"If-Match": '"1"'}),
            api.post("/api/v1/jobs", json={"name": "other", "query": QUERY, "queries": queries}),
        ):
            assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer), answer.text


def test_null_removes_no_query_and_says_what_ends_one(api: TestClient) -> None:
    for answer in (
        api.post("/api/v1/jobs/validate", json={"query": QUERY, "queries": {"x": None}}),
        api.patch("/api/v1/jobs/none", json={"queries": {"x": None}}, headers={"If-Match": '"1"'}),
    ):
        assert answer.status_code == 422
        (wrong,) = answer.json()["errors"]
        assert wrong["pointer"] == "/queries/x" and '"stopped": true' in wrong["detail"]


@pytest.mark.parametrize(
    ("path", "rest", "limit", "said"),
    [
        ("jobs", {"query": QUERY}, 100, "name: a name has up to 100 of a-z, A-Z, 0-9, blank, ., _ and -, and begins"),
        ("streams", {"spec": BIDS}, 63, "63 at most"),
        ("relations", {"spec": {"source": "csv"}}, 63, "63 at most"),
    ],
)
def test_a_name_s_limit_is_said_in_one_way(
    path: str, rest: dict[str, Any], limit: int, said: str, api: TestClient
) -> None:
    answers = [api.post(f"/api/v1/{path}", json={"name": "x" * length, **rest}) for length in (limit + 1, 201, 5000)]
    details = {answer.json()["detail"] for answer in answers}
    assert len(details) == 1 and said in details.pop()


def test_a_draft_of_several_queries_is_checked_and_explained(api: TestClient) -> None:
    draft = {"query": QUERY, "queries": {"cheap": {"query": CHEAP}}}
    found = api.post("/api/v1/jobs/validate", json=draft).json()
    assert found["valid"] and found["summary"].startswith("main, cheap: "), found
    assert [column["name"] for column in found["columns"]] == ["id", "price"]
    explained = api.post("/api/v1/jobs/explain", json=draft).json()
    assert list(explained["plan"]["queries"]) == ["main", "cheap"]
    draft["queries"] = {"cheap": {"query": CHEAP.replace("bids.price <", "bids.prize <")}}
    (place,) = api.post("/api/v1/jobs/validate", json=draft).json()["diagnostics"]
    assert place["pointer"] == "/queries/cheap/query" and "bids.price?" in place["detail"]


def test_results_of_a_query_beside_are_asked_by_its_name(api: TestClient) -> None:
    created(api, "two", queries={"cheap": {"query": CHEAP}})
    missing = api.post("/api/v1/queries", json={"job": "two:dear"})
    assert missing.status_code == 404
    assert missing.json()["detail"] == 'job two has no query "dear" beside its own; there are: cheap'
    # No driver has run, so neither has results yet.
    own, beside = (api.post("/api/v1/queries", json={"job": name}) for name in ("two", "two:cheap"))
    assert own.status_code == beside.status_code


def test_a_stream_changed_later_is_taken_over_when_asked(api: TestClient) -> None:
    created(api)
    api.patch("/api/v1/streams/bids", json={"spec": {**BIDS, "rate": "7/s"}}, headers={"If-Match": '"1"'})
    assert api.post("/api/v1/jobs/wins/diff", json={}).json()["changes"] == []
    (change,) = api.post("/api/v1/jobs/wins/diff", json={"refresh_streams": True}).json()["changes"]
    assert (change["field"], change["after"], change["effect"]) == ("streams.bids.rate", "7/s", "keeps_state")


def test_effects_of_changes() -> None:
    before = {"query": "SELECT  ONLINE a", "streams": {"s": {"delay": "1s", "rate": 1}}, "run": {}, "results": None}
    after = {"query": "SELECT ONLINE a", "streams": {"s": {"delay": "2s", "rate": 2}},
             "run": {"slots": 2}, "results": {"retain": "1d", "where": "x > 1"}}  # fmt: skip
    assert {change.field: change.effect for change in diff(before, after)} == {
        "query": KEEPS, "streams.s.delay": ANEW, "streams.s.rate": KEEPS, "run.slots": KEEPS,
        "results.retain": KEEPS, "results.where": ANEW,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("operator", "knob", "effect"),
    [("lookup", "units", KEEPS), ("asof", "units", ANEW), ("ssbj", "units", ANEW), ("ssbj", "memory", KEEPS),
     ("ring", "nodes", KEEPS), ("aligned", "nodes", ANEW), ("coordinated", "nodes", ANEW)],
)  # fmt: skip
def test_effects_of_a_knob_are_those_of_the_operator_that_has_it(operator: str, knob: str, effect: str) -> None:
    before, after = ({"operator": {"name": operator, knob: value}} for value in (2, 3))
    assert [change.effect for change in diff(before, after)] == [effect]


@pytest.mark.parametrize(
    ("after", "effect"),
    [
        ("SELECT a\n  FROM R\n WHERE n  =  'a  b' GROUP  BY a ", KEEPS),
        ("SELECT a FROM R -- the first\n WHERE n = 'a  b' GROUP BY a", ANEW),
        ("SELECT a FROM R WHERE n='a  b' GROUP BY a", ANEW),
        ("SELECT a FROM R WHERE n = 'a b' GROUP BY a", ANEW),
        ("SELECT a FROM R WHERE n = 'a  b' -- GROUP BY a", ANEW),
        ("SELECT \"a\" FROM R WHERE n = 'a  b' GROUP BY a", ANEW),
        ("SELECT a FROM R WHERE n = 'a  b GROUP BY a", ANEW),
    ],
)
def test_only_the_length_of_blanks_in_a_query_may_change(after: str, effect: str) -> None:
    before = "SELECT a FROM R WHERE n = 'a  b' GROUP BY a"
    (change,) = diff({"query": before}, {"query": after})
    assert change.effect == effect
    (change,) = diff({"queries": {"x": {"query": before}}}, {"queries": {"x": {"query": after}}})
    assert change.effect == effect


def test_a_query_that_cannot_be_read_is_compared_as_it_is() -> None:
    (change,) = diff({"query": "SELECT 'a  b"}, {"query": "SELECT 'a b"})
    assert change.effect == ANEW


@pytest.mark.parametrize(
    ("before", "after", "effect"),
    [
        ({"cores": 2}, {"cores": 3}, KEEPS),
        ({}, {"turn_tuples": 5}, KEEPS),
        ({"name": "handshake", "workers": 2}, {"name": "handshake", "workers": 5}, KEEPS),
        ({"ordering": "outer"}, {"ordering": "total"}, KEEPS),
        ({"ordering": "none"}, {"ordering": "total"}, ANEW),
        ({"ordering": "outer"}, {}, ANEW),
        ({"r_units": 2}, {"r_units": 3}, ANEW),
    ],
)
def test_effects_of_changes_of_an_operator(before: dict[str, Any], after: dict[str, Any], effect: str) -> None:
    (change,) = diff({"operator": before}, {"operator": after})
    assert change.effect == effect


@pytest.mark.parametrize(
    ("snapshot", "after", "every", "anew"),
    [
        ({"punctuation": True}, {"epoch": "1s"}, "1s", ["results.snapshot.punctuation"]),
        ({"punctuation": False}, {"epoch": "1s"}, "2s", []),
        ({"punctuation": True}, {"punctuation": True}, "2s", ["streams.s.punctuate.every"]),
    ],
)
def test_results_by_period_stay_so(
    snapshot: dict[str, Any], after: dict[str, Any], every: str, anew: list[str]
) -> None:
    def job(snapshot: dict[str, Any], every: str) -> dict[str, Any]:
        return {"streams": {"s": {"punctuate": {"every": every}}}, "results": {"snapshot": snapshot}}

    changes = diff(job(snapshot, "1s"), job(after, every))
    assert [change.field for change in changes if change.effect == ANEW] == anew


def test_results_by_period_stay_with_those_who_end_the_periods() -> None:
    def job(punctuate: dict[str, Any]) -> dict[str, Any]:
        return {"streams": {"s": {"punctuate": punctuate}}, "results": {"snapshot": {"punctuation": True}}}

    marked = {"column": "k", "value": 1}
    for after in ({"every": "1s"}, {"per": "file"}, {"column": "k", "value": 2}):
        changes = diff(job(marked), job(after))
        assert changes and {change.effect for change in changes} == {ANEW}


def test_results_go_where_the_kind_of_query_wants_them(app: FastAPI, api: TestClient, settings: Settings) -> None:
    made = created(api)
    with context_of(app).catalog.read() as session:
        job = session.get(Job, made["id"])
    assert job is not None
    both = settings.model_copy(
        update={"result_store": "auto", "cassandra_hosts": ("127.0.0.1",), "hbase_host": "127.0.0.1"}
    )
    assert join_file(both, job, {}).results.store == "sqlite"  # where they are, whatever the platform is set to now
    changed = api.patch(f"/api/v1/jobs/{job.id}", json={"results": {"retain": "1h"}}, headers={"If-Match": '"1"'})
    assert changed.status_code == 200, changed.text
    assert changed.json()["results"] == {"store": "sqlite", "retain": "1h"}
    job.spec = replace(job.spec, results={})
    assert join_file(both, job, {}).results.store == "cassandra"
    assert service.spec_of_new(both, job, {}).results == {"store": "cassandra"}
    job.spec = replace(job.spec, query=QUERY.replace("auctions.id = bids.auction AND ", ""), results={})
    assert join_file(both, job, {}).results.store == "hbase"
    job.spec = job.spec.with_store("nowhere")
    with pytest.raises(InputError, match="sqlite"):
        join_file(both, job, {})
