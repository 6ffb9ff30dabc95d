"""The password of a relation's database: given apart from the entry, sealed, shown to nobody, sent to one server."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import SecretStr

from backend.catalog.jobspec import JobSpec
from backend.catalog.models import Job, Relation
from backend.jobs import service
from backend.jobs.inputs import inputs_of
from backend.jobs.joinfile import join_file
from backend.jobs.secrets import secrets_of
from backend.relations.secrets import with_secrets
from backend.settings import Settings
from streamjoin.errors import InputError
from streamjoin.sources.credentials import split_relation
from streamjoin.sources.database import Database
from streamjoin.spec.inputs import open_relation
from streamjoin.spec.prepare import bind
from tests.servers.postgres import PostgresServer

URL = "/api/v1/relations"
CANARY = "canary :/@%#?&=é 1"
BIDS = {"source": "generator", "kind": "nexmark.bid", "time": "ts"}
QUERY = "SELECT ONLINE b.price, t.said FROM b JOIN t ON b.bidder = t.k"
AWAY = {"source": "sql", "url": "postgresql://me@127.0.0.1:1/x", "table": "t"}

RING = {"source": "cassandra", "hosts": ["127.0.0.1"], "keyspace": "k", "table": "t", "username": "me"}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Secrets can be sealed, and databases of this machine be read."""
    return settings.model_copy(
        update={
            "secret_key": SecretStr("a key of this test and of nobody else"),
            "allowed_hosts": ["127.0.0.1", "127.0.0.2"],
        }
    )


@pytest.mark.parametrize("password", [CANARY, "x", "%41", "a:b@c/d"])
@pytest.mark.parametrize("url", ["postgresql://me@h:5/d?sslmode=require", "postgres://h/d", "postgresql+psycopg://h/d"])
def test_a_password_is_put_into_a_url_and_taken_out_of_it(url: str, password: str) -> None:
    whole = Database(url).with_password(password)
    assert Database(whole).secrets[0] in (password, urlsplit(whole).password)
    assert password in Database(whole).secrets
    assert password not in Database(whole).shown or password == "x"
    shown, found = Database(whole).without_password()
    assert found == password and Database(shown).login == Database(url).login
    entry = {"source": "sql", "url": whole, "table": "t"}
    assert split_relation(entry) == ({**entry, "url": shown}, {"password": password})
    assert split_relation({**entry, "url": url}) == ({**entry, "url": url}, {})


@pytest.mark.parametrize("entry", [{"source": "csv", "path": "x"}, {"url": 5}, {"url": "no url"}, {}])
def test_what_has_no_password_stays_as_it_is(entry: dict[str, Any]) -> None:
    assert split_relation(entry) == (entry, {})


@pytest.mark.parametrize(
    ("spec", "secrets", "place", "says"),
    [
        ({"source": "parquet", "path": "{folder}"}, {"password": CANARY}, "/secrets", "only relations of a database"),
        ({"source": "sql", "url": "sqlite:///{folder}/x.db", "table": "t"}, {"password": CANARY}, "/secrets", "only"),
        (AWAY, {"passwort": CANARY}, "/secrets/passwort", "the only one is password"),
        (AWAY, {"password": ""}, "/secrets/password", "is empty"),
        (AWAY, {"password": "canary\x00"}, "/secrets/password", "that cannot be printed"),
    ],
)
@pytest.mark.parametrize("place_of", ["", "/test"])
def test_secrets_that_open_nothing_are_refused(
    api: TestClient, settings: Settings, spec: dict[str, Any], secrets: dict[str, str], place: str, says: str,
    place_of: str,
) -> None:  # fmt: skip
    (settings.allowed_paths[0] / "x.db").touch()
    spec = {name: value.replace("{folder}", str(settings.allowed_paths[0])) for name, value in spec.items()}
    body = {"spec": spec, "secrets": secrets} | ({} if place_of else {"name": "t"})
    answer = api.post(URL + place_of, json=body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"] == place and says in answer.json()["detail"]
    assert "canary" not in answer.text


def register(api: TestClient, spec: dict[str, Any], secrets: dict[str, str] | None, name: str = "t") -> dict[str, Any]:
    answer = api.post(URL, json={"name": name, "spec": spec, "secrets": secrets})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def change(api: TestClient, **body: Any) -> Any:
    version = api.get(f"{URL}/t").json()["version"]
    return api.patch(f"{URL}/t", json=body, headers={"If-Match": f'"{version}"'})


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me@127.0.0.1:2/x", "postgresql://you@127.0.0.1:1/x", "postgresql://127.0.0.1:1/x",
        "postgresql://me@127.0.0.1:1/x?sslmode=disable",
    ],
)  # fmt: skip
def test_attack_a_password_does_not_follow_a_relation_to_another_server(api: TestClient, url: str) -> None:
    made = register(api, AWAY, {"password": CANARY})
    assert made["has_secrets"] and "canary" not in str(made)
    answer = change(api, spec={**AWAY, "url": url})
    assert answer.status_code == 422 and answer.json()["subcode"] == "secrets_of_other_servers", answer.text
    assert change(api, spec={**AWAY, "url": "postgresql://me@127.0.0.1:1/other", "table": "s"}).json()["has_secrets"]
    assert change(api, spec={**AWAY, "url": url}, secrets={"password": "new"}).json()["has_secrets"]
    assert not change(api, secrets={}).json()["has_secrets"]
    assert change(api, spec=AWAY).status_code == 200


@pytest.mark.parametrize(
    "more",
    [{"hosts": ["127.0.0.1", "127.0.0.2"]}, {"username": "you"}, {"port": 9043}, AWAY],
    ids=lambda more: min(more),
)
def test_attack_a_password_does_not_follow_a_table_of_cassandra(api: TestClient, more: dict[str, Any]) -> None:
    made = register(api, RING, {"password": CANARY})
    assert made["has_secrets"] and "canary" not in str(made)
    other = more if "source" in more else {**RING, **more}
    answer = change(api, spec=other)
    assert answer.status_code == 422 and answer.json()["subcode"] == "secrets_of_other_servers", answer.text
    assert change(api, spec={**RING, "keyspace": "other", "table": "s"}).json()["has_secrets"]


@pytest.mark.parametrize(
    ("entry", "place", "says"),
    [
        ({**RING, "password": CANARY}, "/spec/password", "give it in `secrets`"),
        ({**RING, "hosts": ["10.9.8.7"]}, "/spec/hosts", "is not one of the hosts that may be reached"),
        ({**RING, "hosts": []}, "/spec/hosts", "names no host"),
        ({**RING, "keyspace": 'k"; DROP'}, "/spec/keyspace", "letters, digits and _"),
        ({**RING, "username": None, "password": "x"}, "/spec/username", "is missing"),
    ],
)
def test_a_table_of_cassandra_that_may_not_be_read_is_refused(
    api: TestClient, entry: dict[str, Any], place: str, says: str
) -> None:
    answer = api.post(URL, json={"name": "t", "spec": entry})
    assert answer.status_code in (403, 422) and says in answer.text and "canary" not in answer.text, answer.text
    assert answer.json()["errors"][0]["pointer"] == place
    no_user = {name: value for name, value in RING.items() if name != "username"}
    answer = api.post(URL, json={"name": "t", "spec": no_user, "secrets": {"password": CANARY}})
    assert answer.status_code == 422 and "only with a username" in answer.text


def test_a_password_of_cassandra_s_is_no_part_of_the_entry() -> None:
    assert split_relation({**RING, "password": CANARY}) == (RING, {"password": CANARY})
    assert with_secrets(RING, {"password": CANARY}) == {**RING, "password": CANARY}
    assert with_secrets(RING, None) == RING


def test_attack_a_job_does_not_send_a_password_to_where_the_relation_was_before(
    app: FastAPI, api: TestClient, settings: Settings
) -> None:
    register(api, {**AWAY, "url": "postgresql://me@127.0.0.1:2/x"}, {"password": CANARY})
    catalog = app.state.context.catalog
    job = Job(id="job_1", spec=JobSpec(QUERY), streams={"b": BIDS}, relations={"t": AWAY}, incarnation=0)
    with catalog.read() as session, pytest.raises(InputError, match=r"refresh_streams") as refused:
        secrets_of(settings, session, inputs_of(job))
    assert refused.value.field == "relations.t"
    job.relations = {"t": {**AWAY, "url": "postgresql://me@127.0.0.1:2/elsewhere"}}
    with catalog.read() as session:
        assert secrets_of(settings, session, inputs_of(job)) == {"t": {"password": CANARY}}


@pytest.fixture
def table(postgres: PostgresServer) -> Callable[[], dict[str, Any]]:
    """Makes a table of a role that must give its password."""

    def make() -> dict[str, Any]:
        name = f"t_{os.urandom(6).hex()}"
        url = postgres.guard(name, CANARY, query="SELECT g::bigint AS k, 'x' AS said FROM generate_series(1, 9) g")
        return {"source": "sql", "url": url, "table": name}

    return make


@pytest.mark.services
def test_a_table_behind_a_password_is_looked_at_bound_and_opened_and_nobody_sees_it(
    app: FastAPI, api: TestClient, settings: Settings, table: Callable[[], dict[str, Any]]
) -> None:
    spec = table()
    for secrets in (None, {"password": "canary wrong"}):
        answer = api.post(f"{URL}/test", json={"spec": spec, "secrets": secrets})
        assert answer.status_code == 422 and "password" in answer.text and "canary" not in answer.text, answer.text
    assert api.post(f"{URL}/test", json={"spec": spec, "secrets": {"password": CANARY}}).json()["rows_seen"] == 9
    register(api, spec, {"password": CANARY})
    assert api.post(f"{URL}/t/sample").json()["rows_seen"] == 9
    assert api.post("/api/v1/streams", json={"name": "b", "spec": BIDS}).status_code == 201
    checked = api.post("/api/v1/jobs/validate", json={"query": QUERY})
    assert checked.json()["valid"], checked.text
    answers = [
        checked, api.post("/api/v1/jobs/explain", json={"query": QUERY}),
        api.post("/api/v1/jobs/preview", json={"query": QUERY}),
        api.post("/api/v1/jobs", json={"name": "j", "query": QUERY}),
        change_job := api.patch("/api/v1/jobs/j", json={"run": {"slots": 1}}, headers={"If-Match": '"1"'}),
        *(api.get(f"/api/v1/{what}") for what in ("relations", "jobs", "events", "jobs/j/revisions")),
    ]  # fmt: skip
    assert change_job.json()["version"] == 2
    for answer in answers:
        assert answer.status_code < 300 and "canary" not in answer.text, answer.text
    catalog = app.state.context.catalog
    with catalog.read() as session:
        job = service.find_job(session, "j")
        secrets = secrets_of(settings, session, inputs_of(job))
        assert CANARY.encode() not in (session.query(Relation).one().secrets or b"")
    file = join_file(settings, job, secrets)
    assert open_relation(file, "t").first_rows(20)[0].num_rows == 9
    # What goes to Spark's workers, and what is written down of a job, has no password.
    assert b"canary" not in pickle.dumps(bind(file).job(heartbeat=False))
    # A second look finds nothing that the first left behind.
    assert change(api, secrets={}).status_code == 200
    assert api.post(f"{URL}/t/sample").status_code == 422
