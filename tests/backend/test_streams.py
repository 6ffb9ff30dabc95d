"""Streams: what is registered comes back, what is wrong is named, and pushed rows are kept once."""

from __future__ import annotations

import codecs
import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import SecretStr
from sqlalchemy import update

from backend.auth.kafka_secrets import is_same_servers
from backend.auth.secrets import seal
from backend.catalog.models import Stream
from backend.jobs import service
from backend.jobs.inputs import inputs_of
from backend.jobs.secrets import secrets_of
from backend.settings import Settings
from backend.streams import spool
from backend.streams.times import time_columns
from streamjoin.errors import InputError
from streamjoin.intake.deadletter import DeadLetter
from streamjoin.intake.intake import Intake, Piece
from streamjoin.sources.credentials import MASK
from streamjoin.spec.joinfile import parse
from streamjoin.spec.prepare import bind

BIDS = {"source": "generator", "kind": "nexmark.bid", "rate": "1000/s", "time": "ts", "delay": "2s"}


def registered(api: TestClient, name: str = "bids", **spec: Any) -> dict[str, Any]:
    answer = api.post("/api/v1/streams", json={"name": name, "spec": spec or BIDS})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def auction_house(api: TestClient) -> None:
    """Bids, auctions and people, registered."""
    registered(api)
    registered(api, "auctions", **{**BIDS, "kind": "nexmark.auction"})
    registered(api, "people", **{**BIDS, "kind": "nexmark.person"})


def test_a_stream_comes_back_by_id_and_by_name(api: TestClient) -> None:
    made = registered(api)
    assert made["id"].startswith("str_")
    for key in (made["id"], "bids"):
        answer = api.get(f"/api/v1/streams/{key}")
        assert answer.json() == made
        assert answer.headers["etag"] == f'"{made["id"]}-1"'
    assert made["spec"] == BIDS  # as it was written, not as it was read


def test_streams_are_listed_newest_first_and_page_by_page(api: TestClient) -> None:
    names = [f"s{number}" for number in range(7)]
    ids = [registered(api, name)["id"] for name in names]
    seen: list[str] = []
    url = "/api/v1/streams?limit=3"
    while url:
        answer = api.get(url)
        seen += [item["id"] for item in answer.json()["data"]]
        assert answer.json()["has_more"] == ("link" in answer.headers)
        url = answer.headers["link"].split(">")[0][1:] if answer.json()["has_more"] else ""
    assert seen == sorted(ids, reverse=True)


@pytest.mark.parametrize(
    ("name", "spec", "pointer", "said"),
    [
        ("2bids", BIDS, "/name", "letter"),
        ("b" * 64, BIDS, "/name", "63 at most"),
        ("bids", {**BIDS, "kind": "nexmark.bit"}, "/spec/kind", "not a kind of generated stream"),
        ("bids", {**BIDS, "delay": "soon"}, "/spec/delay", "not a span"),
        ("bids", {**BIDS, "tme": "ts"}, "/spec/tme", "did you mean"),
        ("bids", {**BIDS, "punctuate": {"per": "file"}}, "/spec/punctuate/per", "is for streams of files"),
        ("bids", {**BIDS, "punctuate": {"column": "kind", "value": 1}}, "/spec/punctuate/column", "is no column"),
        ("bids", {**BIDS, "punctuate": {"column": "auction", "value": "x"}}, "/spec/punctuate/value", "is no value"),
        ("bids", {"source": "kafka", "servers": "127.0.0.1:9092", "topic": "t", "format": "json", "time": "ts"},
         "/spec/schema", "is missing"),
        ("bids", {"source": "kafka", "servers": "10.0.0.9:9092", "topic": "t", "format": "json", "time": "ts",
                  "schema": {"ts": "timestamp"}}, "/spec/servers", "STREAMJOIN_ALLOWED_HOSTS"),
        ("bids", {"source": "parquet", "path": "/etc", "time": "ts"}, "/spec/path", "STREAMJOIN_ALLOWED_PATHS"),
        ("bids", {"source": "push", "time": "ts"}, "/spec/schema", "is missing"),
        ("bids", {"source": "push", "time": "price", "schema": {"price": "float64"}}, "/spec/time",
         'column "price" is float64; an event time is a timestamp, a date or an integer with time_unit'),
        ("bids", {"source": "push", "time": "shipped_at", "schema": {"shiped_at": "timestamp"}}, "/spec/time",
         'there is no column "shipped_at"; did you mean "shiped_at"?'),
        ("bids", {"source": "csv", "path": "none", "time": "k", "schema": {"k": "string"}}, "/spec/time",
         'column "k" is string; an event time is'),
        ("bids", {"source": "push", "time": "ts", "schema": {"ts": "timestamp"}, "path": "/etc"}, "/spec/path", "push"),
    ],
)  # fmt: skip
def test_a_wrong_stream_is_told_where_and_what(
    api: TestClient, name: str, spec: dict[str, Any], pointer: str, said: str
) -> None:
    answer = api.post("/api/v1/streams", json={"name": name, "spec": spec})
    assert answer.status_code == 422, answer.text
    (place,) = answer.json()["errors"]
    assert place["pointer"] == pointer
    assert said in answer.json()["detail"]


def test_a_name_is_given_once(api: TestClient) -> None:
    registered(api)
    answer = api.post("/api/v1/streams", json={"name": "bids", "spec": BIDS})
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


def test_a_change_names_the_version_it_changes(api: TestClient) -> None:
    id = registered(api)["id"]
    change = {"spec": {**BIDS, "rate": "5/s"}}
    assert api.patch("/api/v1/streams/bids", json=change).status_code == 428
    done = api.patch("/api/v1/streams/bids", json=change, headers={"If-Match": '"1"'})
    assert (done.status_code, done.headers["etag"], done.json()["spec"]["rate"]) == (200, f'"{id}-2"', "5/s")
    late = api.patch("/api/v1/streams/bids", json=change, headers={"If-Match": '"1"'})
    assert (late.status_code, late.json()["code"], late.headers["etag"]) == (412, "changed_meanwhile", f'"{id}-2"')
    done = api.patch("/api/v1/streams/bids", json=change, headers={"If-Match": done.headers["etag"]})
    assert (done.status_code, done.headers["etag"]) == (200, f'"{id}-3"')


def test_a_stream_that_a_job_uses_stays(api: TestClient) -> None:
    registered(api)
    registered(api, "more")
    query = "SELECT ONLINE bids.price FROM bids, more WHERE bids.auction = more.auction WITHIN 1 SECONDS"
    assert api.post("/api/v1/jobs", json={"name": "j", "query": query}).status_code == 201
    refused = api.delete("/api/v1/streams/bids")
    assert (refused.status_code, "used by j" in refused.json()["detail"]) == (409, True)


def test_a_sample_shows_columns_rows_rate_and_skew(api: TestClient) -> None:
    registered(api)
    seen = api.post("/api/v1/streams/bids/sample").json()
    assert [column["name"] for column in seen["columns"]] == ["auction", "bidder", "price", "channel", "ts"]
    assert len(seen["rows"]) == 100
    assert seen["rows_seen"] == 20_000
    assert 900 < seen["rate_per_s"] < 1000  # 46 of 50 events are bids
    assert seen["skew"]["channel"]["top"][0]["share"] > 0.05
    assert seen["skew"]["auction"]["distinct"] > 100


def test_files_are_looked_at_where_they_may_be_read(api: TestClient, tmp_path: Path) -> None:
    folder = tmp_path / "orders"
    folder.mkdir()
    big = 2**60 + 1
    pq.write_table(pa.table({"id": [1, big], "ts": pa.array([1, 2], pa.timestamp("us", "UTC"))}), folder / "a.parquet")
    spec = {"source": "parquet", "path": str(folder), "time": "ts"}
    seen = api.post("/api/v1/streams/test", json={"spec": spec})
    assert seen.status_code == 200, seen.text
    assert [row[0] for row in seen.json()["rows"]] == [1, str(big)]
    wrong = api.post("/api/v1/streams/test", json={"spec": {**spec, "time": "when"}})
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "/spec/time")
    assert "columns are id, ts" in wrong.json()["detail"]


MIXED = [{"id": number, "amount": number * 1.5, "ts": f"2026-01-01T00:00:{number:02d}Z"} for number in range(20)]
MIXED[5]["amount"], MIXED[7]["ts"] = "n/a", None
del MIXED[8]["ts"]


def looked_at(api: TestClient, spec: dict[str, Any]) -> dict[str, Any]:
    answer = api.post("/api/v1/streams/test", json={"spec": spec})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_test_counts_the_bad_records_that_a_job_does(api: TestClient, tmp_path: Path) -> None:
    path = tmp_path / "mixed.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in MIXED) + "garbage\n")
    spec = {"source": "jsonl", "path": str(path), "time": "ts"}
    found = looked_at(api, spec)
    assert [(column["name"], column["type"]) for column in found["columns"]] == [
        ("id", "int64"), ("amount", "float64"), ("ts", "timestamp"),
    ]  # fmt: skip
    assert found["rows_seen"] == 17
    assert found["bad_records"]["event time is NULL"] == 2
    # As a job does: every column is asked for, and intake has the last word.
    file = parse(
        json.dumps(
            {
                "streams": {"r": spec, "s": spec},
                "query": (
                    "SELECT ONLINE r.id, r.amount FROM r, s WHERE r.id = s.id AND r.amount = s.amount WITHIN 1 SECONDS"
                ),
            }
        )
    )
    bound = bind(file)
    source = bound.job(tmp_path / "checkpoint").sources[0].open("r", tmp_path / "log.jsonl")
    letters: list[DeadLetter] = []
    intake = Intake(bound.plan, 0, letters.extend)
    for read in source.reads(source.initial(), source.latest(source.initial(), 0), 1):
        for rows, bad in read.rows(source.schema.names):
            intake.bad_records(list(bad))
            intake.take(rows, Piece(read.name, read.router, read.identity, read.position, 0))
    assert Counter(letter.detail for letter in letters) == found["bad_records"]


def test_columns_are_shown_before_the_event_time_is_chosen_and_it_is_proposed(api: TestClient, tmp_path: Path) -> None:
    rows = "".join(f"{number},{1_767_225_600_000 + number},x\n" for number in range(9))
    (tmp_path / "a.csv").write_text(f"id,at,note\n{rows}")
    found = looked_at(api, {"source": "csv", "path": str(tmp_path / "a.csv")})
    assert [column["name"] for column in found["columns"]] == ["id", "at", "note"]
    assert (found["times"], found["bad_records"]) == ([{"name": "at", "time_unit": "ms"}], {})
    unnamed = api.post(
        "/api/v1/streams", json={"name": "a", "spec": {"source": "csv", "path": str(tmp_path / "a.csv")}}
    )
    assert unnamed.json()["errors"][0]["pointer"] == "/spec/time"  # it is left out of a look alone


@pytest.mark.parametrize(
    ("columns", "proposed"),
    [
        ({"seen": pa.timestamp("us", "UTC"), "day": pa.date32(), "at": pa.int64()}, [("seen", None)]),
        ({"day": pa.date32(), "at": pa.int64()}, [("day", None)]),
        ({"phone": pa.int64(), "createdAt": pa.int64()}, [("createdAt", "s")]),
        ({"phone": pa.int64(), "fax": pa.int64()}, [("phone", "s"), ("fax", "s")]),
        ({"name": pa.string(), "price": pa.float64(), "small": pa.int8()}, []),
    ],
)
def test_timestamps_are_proposed_before_dates_and_these_before_whole_numbers(
    columns: dict[str, pa.DataType], proposed: list[tuple[str, str | None]]
) -> None:
    value = {pa.string(): "x", pa.float64(): 1.0, pa.int8(): 1}
    arrays = [pa.array([value.get(kind, 1_767_225_600 if kind == pa.int64() else 1)] * 2, kind)
              for kind in columns.values()]  # fmt: skip
    rows = pa.RecordBatch.from_arrays(arrays, list(columns))
    assert [(one.name, one.time_unit) for one in time_columns(rows)] == proposed
    assert time_columns(rows.slice(0, 0)) == [] or columns.keys() & {"seen", "day"}


@pytest.mark.parametrize(
    ("cells", "instead", "values", "example"),
    [
        (["1.5"] * 19 + ["n/a"], "float64", 1, "n/a"),
        (["1"] * 19 + ["x"], "int64", 1, "x"),
        (["2026-01-01T00:00:00Z"] * 19 + ["soon"], "timestamp", 1, "soon"),
        (["2026-01-01"] * 30 + ["soon", "later"], "date", 2, "soon"),
        (["1"] * 5 + ["x"] * 5, None, 0, ""),
        (["one", "two", "3"], None, 0, ""),
        (["1", "x"], None, 0, ""),
    ],
)
def test_a_column_that_few_values_made_text_is_told_with_one_of_them(
    api: TestClient, tmp_path: Path, cells: list[str], instead: str | None, values: int, example: str
) -> None:
    (tmp_path / "a.csv").write_text("id,amount\n" + "".join(f"{at},{cell}\n" for at, cell in enumerate(cells)))
    spec = {"source": "csv", "path": str(tmp_path / "a.csv")}
    found = looked_at(api, spec)
    told = [{"column": "amount", "type": "string", "instead": instead, "values": values, "example": example}]
    assert found["widened"] == (told if instead else [])
    assert looked_at(api, {**spec, "schema": {"id": "int64", "amount": "string"}})["widened"] == []  # as it was meant


@pytest.mark.slow
def test_a_broker_that_does_not_answer_is_named(api: TestClient) -> None:
    spec = {"source": "kafka", "servers": "127.0.0.1:9", "topic": "t", "format": "json", "time": "ts",
            "schema": {"ts": "timestamp"}}  # fmt: skip
    answer = api.post("/api/v1/streams/test", json={"spec": spec})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/spec/servers")
    assert "127.0.0.1:9 does not answer" in answer.json()["detail"]


TOPIC = {"source": "kafka", "servers": "127.0.0.1:9", "topic": "t", "format": "json", "time": "ts",
         "schema": {"ts": "timestamp"}}  # fmt: skip
RUNS_CODE = {"plugin.library.paths": "/tmp/anything.so"}


def test_secrets_that_would_run_code_are_refused_wherever_they_come_in(api: TestClient, app: FastAPI) -> None:
    settings = app.state.context.settings
    settings.secret_key = SecretStr("a key of this test and of nobody else")
    for url, body in (("/api/v1/streams", {"name": "t"}), ("/api/v1/streams/test", {})):
        answer = api.post(url, json={**body, "spec": TOPIC, "secrets": RUNS_CODE})
        assert answer.status_code == 422, answer.text
        assert answer.json()["errors"][0]["pointer"] == "/secrets/plugin.library.paths"
    registered(api, "t", **TOPIC)
    changed = api.patch("/api/v1/streams/t", json={"secrets": RUNS_CODE}, headers={"If-Match": '"1"'})
    assert changed.status_code == 422
    with app.state.context.catalog.begin() as session:  # as if it had been kept before it was refused
        session.execute(update(Stream).values(secrets=seal(settings, RUNS_CODE)))
    assert api.post("/api/v1/streams/t/sample").json()["errors"][0]["pointer"] == "/secrets/plugin.library.paths"


def test_attack_a_password_in_a_spec_would_be_shown_to_every_viewer(api: TestClient, app: FastAPI) -> None:
    app.state.context.settings.secret_key = SecretStr("a key of this test and of nobody else")
    told = {"sasl.username": "kim", "sasl.password": "canary", "ssl.key.pem": "canary"}
    for url, body in (("/api/v1/streams", {"name": "t"}), ("/api/v1/streams/test", {})):
        answer = api.post(url, json={**body, "spec": {**TOPIC, "client": told}})
        assert answer.status_code == 422 and "canary" not in answer.text
        assert [place["pointer"] for place in answer.json()["errors"]] == [
            "/spec/client/sasl.password", "/spec/client/ssl.key.pem",
        ]  # fmt: skip
    made = registered(api, "t", **TOPIC, client={"sasl.username": "kim"})
    changed = api.patch("/api/v1/streams/t", json={"spec": {**TOPIC, "client": told}}, headers={"If-Match": '"1"'})
    assert (changed.status_code, made["spec"]["client"]) == (422, {"sasl.username": "kim"})


def test_passwords_that_earlier_versions_let_into_a_spec_are_masked(api: TestClient, app: FastAPI) -> None:
    registered(api, "t", **TOPIC)
    registered(api, "u", **{**TOPIC, "topic": "u"})
    query = "SELECT ONLINE t.ts FROM t, u WHERE t.ts = u.ts WITHIN 1 SECONDS"
    api.post("/api/v1/jobs", json={"name": "j", "query": query})
    with app.state.context.catalog.begin() as session:
        session.execute(update(Stream).values(spec={**TOPIC, "client": {"sasl.password": "canary", "client.id": "c"}}))
    assert api.get("/api/v1/streams/t").json()["spec"]["client"] == {"sasl.password": MASK, "client.id": "c"}
    diff = api.post("/api/v1/jobs/j/diff", json={"refresh_streams": True}).json()
    masked = {"before": None, "after": MASK, "effect": "keeps_state", "reason": None}
    assert {"field": "streams.t.client.sasl.password", **masked} in diff["changes"]
    assert "canary" not in api.get("/api/v1/streams").text + json.dumps(diff)


def test_attack_secrets_do_not_follow_a_stream_to_other_servers(api: TestClient, app: FastAPI) -> None:
    app.state.context.settings.secret_key = SecretStr("a key of this test and of nobody else")
    app.state.context.settings.allowed_hosts = ("127.0.0.1", "theirs")
    spec = {"name": "t", "spec": TOPIC, "secrets": {"sasl.password": "canary"}}
    assert api.post("/api/v1/streams", json=spec).status_code == 201
    moved = {"spec": {**TOPIC, "servers": "theirs:9092"}}
    refused = api.patch("/api/v1/streams/t", json=moved, headers={"If-Match": '"1"'})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/spec/servers")
    other = {"spec": {**TOPIC, "topic": "other"}}
    assert api.patch("/api/v1/streams/t", json=other, headers={"If-Match": '"1"'}).json()["has_secrets"]
    forgot = api.patch("/api/v1/streams/t", json={**moved, "secrets": {}}, headers={"If-Match": '"2"'})
    assert forgot.status_code == 200 and not forgot.json()["has_secrets"]


def test_servers_in_another_order_are_the_same_servers() -> None:
    def of(servers: str | None, source: str = "kafka") -> dict[str, Any]:
        return {"source": source, "servers": servers}

    same = ("a:9092,b:9092", "b:9092,a:9092", " a:9092 , b:9092", "A:9092,b:9092,a:9092")
    assert all(is_same_servers(of(one), of(other)) for one in same for other in same)
    for others in ("a:9092", "a:9092,b:9093", "a:9092,b:9092,c:9092", "a:9092b:9092", None):
        assert not is_same_servers(of(same[0]), of(others)), others
    assert not is_same_servers(of(same[0]), of(same[0], source="jsonl"))


def test_attack_a_job_does_not_send_a_new_password_to_the_servers_where_the_stream_was_before(
    api: TestClient, app: FastAPI
) -> None:
    settings = app.state.context.settings
    settings.secret_key = SecretStr("a key of this test and of nobody else")
    settings.allowed_hosts = ("127.0.0.1", "theirs")
    old, new = {"sasl.password": "canary of the old"}, {"sasl.password": "canary of the new"}
    assert api.post("/api/v1/streams", json={"name": "t", "spec": TOPIC, "secrets": old}).status_code == 201
    registered(api, "u", **{**TOPIC, "topic": "u"})
    query = "SELECT ONLINE t.ts FROM t, u WHERE t.ts = u.ts WITHIN 1 SECONDS"
    assert api.post("/api/v1/jobs", json={"name": "j", "query": query}).status_code == 201

    def opened() -> dict[str, dict[str, Any]]:
        with app.state.context.catalog.read() as session:
            return secrets_of(settings, session, inputs_of(service.find_job(session, "j")))

    assert opened() == {"t": old}
    topic = {"spec": {**TOPIC, "topic": "other"}, "secrets": new}
    assert api.patch("/api/v1/streams/t", json=topic, headers={"If-Match": '"1"'}).status_code == 200
    assert opened() == {"t": new}
    moved = {"spec": {**TOPIC, "servers": "theirs:9092"}, "secrets": new}
    assert api.patch("/api/v1/streams/t", json=moved, headers={"If-Match": '"2"'}).status_code == 200
    with pytest.raises(InputError, match="refresh_streams") as refused:
        opened()
    assert refused.value.field == "streams.t"
    body: dict[str, Any] = {"run": {"slots": 1}}
    answer = api.patch("/api/v1/jobs/j", json=body, headers={"If-Match": '"1"'})
    assert answer.status_code == 422 and "its password is not sent there" in answer.text, answer.text
    body |= {"refresh_streams": True, "start_anew": True}
    answer = api.patch("/api/v1/jobs/j", json=body, headers={"If-Match": '"1"'})
    assert answer.status_code == 200 and opened() == {"t": new}, answer.text


# ---- pushed rows -------------------------------------------------------------------------------------------------

PUSH = {"source": "push", "time": "ts", "schema": {"id": "int64", "ts": "timestamp"}}


def lines(*ids: int) -> bytes:
    return b"".join(json.dumps({"id": id, "ts": "2026-01-01T00:00:00Z"}).encode() + b"\n" for id in ids)


def test_pushed_rows_are_kept_and_can_be_looked_at(api: TestClient) -> None:
    made = registered(api, "clicks", **PUSH)
    assert made["spec"] == PUSH  # the spool folder is nobody's business
    assert api.post("/api/v1/streams/clicks/sample").json()["rows"] == []
    assert api.post("/api/v1/streams/clicks/rows", content=lines(1, 2)).json() == {"rows": 2, "duplicate": False}
    assert api.post("/api/v1/streams/clicks/rows", content=lines(3)).status_code == 202
    assert [row[0] for row in api.post("/api/v1/streams/clicks/sample").json()["rows"]] == [1, 2, 3]


def test_rows_under_a_name_are_kept_once(api: TestClient, settings: Settings) -> None:
    made = registered(api, "clicks", **PUSH)
    url = "/api/v1/streams/clicks/rows?batch_id=a1"
    assert api.post(url, content=lines(1)).json() == {"rows": 1, "duplicate": False}
    assert api.post(url, content=lines(1)).json() == {"rows": 1, "duplicate": True}
    other = api.post(url, content=lines(2))
    assert (other.status_code, other.json()["code"]) == (422, "key_reused")
    files = list((settings.data.absolute() / "spool" / made["id"]).glob("*.jsonl"))
    assert [file.read_bytes() for file in files] == [lines(1)]


def test_a_crash_between_the_mark_and_the_file_is_mended_by_the_next_attempt(tmp_path: Path) -> None:
    assert spool.add(tmp_path, lines(1), "a1") == (1, True)
    (file,) = tmp_path.glob("*.jsonl")
    file.unlink()  # as if it had not been renamed yet
    assert spool.add(tmp_path, lines(1), "a1") == (1, False)
    assert [found.name for found in tmp_path.glob("*.jsonl")] == [file.name]
    assert file.read_bytes() == lines(1)


def test_a_job_can_be_made_before_the_first_row_is_pushed(api: TestClient) -> None:
    for name in ("a", "b"):
        assert api.post("/api/v1/streams", json={"name": name, "spec": PUSH}).status_code == 201
    query = "SELECT ONLINE a.id FROM a, b WHERE a.id = b.id WITHIN 10 SECONDS"
    answer = api.post("/api/v1/jobs", json={"name": "j", "query": query})
    assert answer.status_code == 201, answer.text


def test_rows_go_into_push_streams_only_and_must_be_some(api: TestClient) -> None:
    registered(api)
    assert api.post("/api/v1/streams/bids/rows", content=lines(1)).status_code == 409
    registered(api, "clicks", **PUSH)
    assert api.post("/api/v1/streams/clicks/rows", content=b"\n \n").status_code == 422


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (gzip.compress(b'{"id": 1}\n', mtime=0), "a gzip archive"),
        (b"\x28\xb5\x2f\xfd...", "a zstd archive"),
        (b"PK\x03\x04...", "a zip archive"),
        ('{"id": 1}\n'.encode("utf-16"), "UTF-16 text"),
        ('{"id": 1}\n'.encode("utf-16-le"), "UTF-16 text"),
        ('{"id": 1}\n'.encode("utf-32"), "UTF-32 text"),
    ],
)
def test_attack_posted_rows_that_are_no_plain_text_are_refused(
    body: bytes, what: str, api: TestClient, settings: Settings
) -> None:
    made = registered(api, "clicks", **PUSH)
    answer = api.post("/api/v1/streams/clicks/rows", content=body)
    assert (answer.status_code, answer.json()["subcode"]) == (422, "not_plain")
    assert answer.json()["detail"].startswith(f"the body is {what}; post JSON lines in UTF-8")
    marked = codecs.BOM_UTF8 + lines(1) + b"\xff\n" + lines(2)  # a bad line costs itself only
    assert api.post("/api/v1/streams/clicks/rows", content=marked).json()["rows"] == 3
    assert [row[0] for row in api.post("/api/v1/streams/clicks/sample").json()["rows"]] == [1, 2]
    (kept,) = (settings.data.absolute() / "spool" / made["id"]).glob("*.jsonl")
    kept.write_bytes(body + b"\n" + lines(3))  # as an earlier version took it
    found = api.post("/api/v1/streams/clicks/sample")
    assert [row[0] for row in found.json()["rows"]] == [3], found.text


def of_others(tmp_path: Path) -> Path:
    """Somebody else's files, in a folder that may be read."""
    folder = tmp_path / "others"
    folder.mkdir()
    (folder / "orders.jsonl").write_bytes(lines(1))
    return folder


def spools(settings: Settings) -> list[str]:
    return sorted(folder.name for folder in (settings.data / "spool").glob("*"))


@pytest.mark.parametrize("mark", [True, False, None, 1, "yes"])
def test_attack_an_entry_cannot_make_a_folder_of_others_its_spool(
    api: TestClient, tmp_path: Path, settings: Settings, mark: object
) -> None:
    folder = of_others(tmp_path)
    spec = {"source": "jsonl", "path": str(folder), "time": "ts", "schema": PUSH["schema"], "push": mark}
    harmless = registered(api, "harmless", **PUSH)
    entries = [
        api.post("/api/v1/streams", json={"name": "mine", "spec": spec}),
        api.post("/api/v1/streams", json={"name": "mine", "spec": {**PUSH, "push": mark}}),
        api.post("/api/v1/streams/test", json={"spec": spec}),
        api.patch("/api/v1/streams/harmless", json={"spec": spec}, headers={"If-Match": '"1"'}),
        api.post("/api/v1/relations", json={"name": "mine", "spec": {"source": "jsonl", "path": "/x", "push": mark}}),
    ]
    for answer in entries:
        assert answer.status_code == 422, answer.text
        assert answer.json()["errors"][0]["pointer"] == "/spec/push"
    assert 'set "source": "push"' in entries[0].json()["detail"]
    assert api.post("/api/v1/streams/mine/rows", content=lines(6)).status_code == 404
    assert [file.name for file in folder.iterdir()] == ["orders.jsonl"]
    assert spools(settings) == [harmless["id"]]


def test_attack_rows_and_removal_follow_the_id_and_not_the_entry(
    api: TestClient, app: FastAPI, tmp_path: Path, settings: Settings
) -> None:
    folder = of_others(tmp_path)
    made = registered(api, "mine", **PUSH)
    with app.state.context.catalog.begin() as session:  # as if it had been kept before it was refused
        entry = {**PUSH, "source": "jsonl", "path": str(folder), "push": True}
        session.execute(update(Stream).values(spec=entry))
    assert api.post("/api/v1/streams/mine/rows", content=lines(6)).status_code == 202
    own = settings.data.absolute() / "spool" / made["id"]
    assert [file.read_bytes() for file in own.glob("*.jsonl")] == [lines(6)]
    assert api.delete("/api/v1/streams/mine").status_code == 204
    assert not own.exists()
    assert [file.read_bytes() for file in folder.iterdir()] == [lines(1)]


def test_attack_nobody_reads_the_pushed_rows_of_others_by_their_path(api: TestClient, settings: Settings) -> None:
    made = registered(api, "clicks", **PUSH)
    registered(api, "others", **PUSH)
    assert api.post("/api/v1/streams/clicks/rows", content=lines(1)).status_code == 202
    spool = settings.data.absolute() / "spool"
    for path in (spool / made["id"], spool / "*" / "*.jsonl", spool / made["id"] / "*.jsonl"):
        stream = {"source": "jsonl", "path": str(path), "time": "ts", "schema": PUSH["schema"]}
        relation = {"source": "jsonl", "path": str(path)}
        for answer in (
            api.post("/api/v1/streams", json={"name": "mine", "spec": stream}),
            api.post("/api/v1/streams/test", json={"spec": stream}),
            api.patch("/api/v1/streams/others", json={"spec": stream}, headers={"If-Match": "*"}),
            api.post("/api/v1/relations", json={"name": "mine", "spec": relation}),
            api.post("/api/v1/relations/test", json={"spec": relation}),
        ):
            assert (answer.status_code, answer.json()["subcode"]) == (422, "not_allowed"), answer.text
    for folder in (spool, spool / made["id"]):
        assert api.get("/api/v1/files", params={"path": str(folder)}).status_code == 422
    query = "SELECT ONLINE c.id FROM clicks c, others o WHERE c.id = o.id WITHIN 10 SECONDS"
    assert api.post("/api/v1/jobs/validate", json={"query": query}).json()["valid"]
    assert api.post("/api/v1/jobs", json={"name": "j", "query": query}).status_code == 201


@pytest.mark.parametrize("link", ["", ".seen"])
def test_attack_a_link_in_the_spool_leads_nowhere(
    api: TestClient, tmp_path: Path, settings: Settings, link: str
) -> None:
    folder = of_others(tmp_path)
    made = registered(api, "mine", **PUSH)
    own = settings.data / "spool" / made["id"]
    if not link:
        own.rmdir()
    (own / link).symlink_to(folder)
    refused = api.post("/api/v1/streams/mine/rows?batch_id=a", content=lines(6))
    assert (refused.status_code, "remove the link" in refused.json()["detail"]) == (409, True)
    assert api.delete("/api/v1/streams/mine").status_code == 204
    assert [file.name for file in folder.iterdir()] == ["orders.jsonl"]


@pytest.mark.parametrize("id", ["..", ".", "test", "str_../../x", "str_" + "0" * 25 + "/", "str_" + "0" * 26 + "\n"])
def test_attack_only_ids_of_the_platforms_own_have_a_spool(tmp_path: Path, id: str) -> None:
    with pytest.raises(ValueError, match="is not the id of a stream"):
        spool.folder_of(tmp_path, id)


@pytest.mark.parametrize("name", [".", "..", ".rows_1.jsonl", "a/b", "..%2f..%2fx", "a\n", ""])
def test_attack_a_name_of_rows_is_no_way_out_of_the_spool(api: TestClient, settings: Settings, name: str) -> None:
    made = registered(api, "clicks", **PUSH)
    answer = api.post("/api/v1/streams/clicks/rows", params={"batch_id": name}, content=lines(1))
    assert answer.status_code == 422, answer.text
    assert list((settings.data / "spool" / made["id"]).rglob("*")) == []


def test_a_test_of_a_stream_leaves_no_folder_behind(api: TestClient, settings: Settings) -> None:
    assert api.post("/api/v1/streams/test", json={"spec": PUSH}).json()["rows"] == []
    assert spools(settings) == []


def test_a_stream_that_was_a_push_stream_takes_its_rows_along(api: TestClient, settings: Settings) -> None:
    registered(api, "clicks", **PUSH)
    api.post("/api/v1/streams/clicks/rows", content=lines(1))
    assert api.patch("/api/v1/streams/clicks", json={"spec": BIDS}, headers={"If-Match": '"1"'}).status_code == 200
    assert api.delete("/api/v1/streams/clicks").status_code == 204
    assert spools(settings) == []


def test_a_removed_stream_takes_its_rows_along(api: TestClient, settings: Settings) -> None:
    made = registered(api, "clicks", **PUSH)
    api.post("/api/v1/streams/clicks/rows", content=lines(1))
    folder = settings.data.absolute() / "spool" / made["id"]
    assert folder.exists()
    assert api.delete("/api/v1/streams/clicks").status_code == 204
    assert not folder.exists()
    assert api.get("/api/v1/streams/clicks").status_code == 404
