"""Uploaded files: whole or not at all, under names that lead nowhere else, and read as `upload:NAME`."""

from __future__ import annotations

import asyncio
import gzip
import os
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.api import relations, streams
from backend.auth.actor import ROLES
from backend.auth.hosts import check_place
from backend.catalog.jobspec import JobSpec
from backend.jobs.inputs import Inputs
from backend.jobs.joinfile import draft_file
from backend.settings import Settings
from backend.uploads import store
from backend.uploads.names import folder_of
from backend.uploads.store import content_of
from tests.backend.matrix import add_person, new_app

ORDERS = b"id,price,at\n1,2.5,2026-01-01T00:00:00Z\n2,3.5,2026-01-01T00:00:01Z\n"
CSV = {"source": "csv", "time": "at", "delay": "2s"}


def upload(api: TestClient, name: str = "orders.csv", content: Any = ORDERS, **given: Any) -> Any:
    return api.post("/api/v1/uploads", params={"name": name}, content=content, **given)


def kept(settings: Settings) -> dict[str, bytes]:
    """All files below the folder of uploads, but those that tell the owner."""
    folder = folder_of(settings)
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*")
        if path.is_file() and path.parent.name != ".owners"
    }  # fmt: skip


def test_an_upload_is_kept_listed_read_and_removed(api: TestClient, settings: Settings) -> None:
    answer = upload(api)
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert (made["path"], made["bytes"], made["format"]) == ("upload:orders.csv", len(ORDERS), "csv")
    assert kept(settings) == {"orders.csv": ORDERS}
    spec = {**CSV, "path": "upload:orders.csv"}
    seen = api.post("/api/v1/streams/test", json={"spec": spec}).json()
    assert [row[:2] for row in seen["rows"]] == [[1, 2.5], [2, 3.5]]
    assert api.get("/api/v1/uploads").json() == {"data": [made], "has_more": False}
    assert api.delete("/api/v1/uploads/orders.csv").status_code == 204
    assert kept(settings) == {}
    assert api.delete("/api/v1/uploads/orders.csv").json()["code"] == "not_found"
    gone = api.post("/api/v1/streams/test", json={"spec": spec}).json()
    assert gone["errors"][0]["pointer"] == "/spec/path" and "there is no upload:orders.csv" in gone["detail"]
    kinds = [event["kind"] for event in api.get("/api/v1/events").json()["data"]]
    assert kinds == ["request.refused", "upload.deleted", "upload.added"], (
        "what was not there may be somebody who looks around"
    )


def test_what_reads_an_upload_keeps_it(api: TestClient, settings: Settings) -> None:
    upload(api)
    upload(api, "orders-2.csv")
    spec = {**CSV, "path": "upload:orders.csv"}
    stream = api.post("/api/v1/streams", json={"name": "orders", "spec": spec}).json()
    assert stream["spec"] == spec  # shown as it was written
    both = {"source": "csv", "path": "upload:orders*.csv"}
    assert api.post("/api/v1/relations", json={"name": "prices", "spec": both}).status_code == 201
    refused = api.delete("/api/v1/uploads/orders.csv")
    assert refused.status_code == 409
    assert "stream orders, relation prices" in refused.json()["detail"]
    read_by = {one["name"]: one["read_by"] for one in api.get("/api/v1/uploads").json()["data"]}
    assert read_by == {"orders-2.csv": ["relation prices"], "orders.csv": ["stream orders", "relation prices"]}
    api.delete("/api/v1/relations/prices")
    assert api.delete("/api/v1/uploads/orders-2.csv").status_code == 204
    api.post("/api/v1/streams", json={"name": "others", "spec": spec})
    query = "SELECT ONLINE orders.id FROM orders, others WHERE orders.id = others.id WITHIN 10 SECONDS"
    answer = api.post("/api/v1/jobs", json={"name": "twice", "query": query})
    assert answer.status_code == 201, answer.text
    assert "job twice" in api.delete("/api/v1/uploads/orders.csv").json()["detail"]


@pytest.mark.parametrize("what", ["streams", "relations"])
def test_an_upload_that_is_removed_while_something_comes_to_read_it_leaves_no_reader_without_it(
    api: TestClient, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    def checked(*given: Any) -> None:
        check_place(*given)
        assert api.delete("/api/v1/uploads/orders.csv").status_code == 204  # somebody else is faster

    upload(api)
    monkeypatch.setattr(streams, "check_place", checked)
    monkeypatch.setattr(relations, "check_place", checked)
    spec = {"source": "csv", "path": "upload:orders.csv"} | ({"time": "at"} if what == "streams" else {})
    answer = api.post(f"/api/v1/{what}", json={"name": "reader", "spec": spec})
    assert (answer.status_code, answer.json()["subcode"]) == (422, "bad_place"), answer.text
    assert api.get(f"/api/v1/{what}").json()["data"] == []


def test_the_join_file_of_a_job_names_the_file_itself(api: TestClient, settings: Settings) -> None:
    upload(api)
    entries = {name: {**CSV, "path": "upload:orders.csv"} for name in ("a", "b")}
    relation = {"names": {"source": "csv", "path": "upload:*.csv"}}
    query = "SELECT ONLINE a.id FROM a, b WHERE a.id = b.id WITHIN 10 SECONDS"
    file = draft_file(settings, JobSpec(query), Inputs(entries, relation), {})
    assert file.streams["a"].path == str(settings.data.absolute() / "uploads" / "orders.csv")
    assert file.relations["names"].path == str(settings.data.absolute() / "uploads" / "*.csv")
    assert entries["a"]["path"] == "upload:orders.csv"


def test_several_uploads_are_read_as_one_stream(api: TestClient) -> None:
    for number in range(3):
        row = f"id,price,at\n{number},1.0,2026-01-01T00:00:0{number}Z\n"
        assert upload(api, f"day-{number}.csv", row.encode()).status_code == 201
    assert upload(api, "other.csv").status_code == 201
    spec = {**CSV, "path": "upload:day-*.csv"}
    seen = api.post("/api/v1/streams/test", json={"spec": spec}).json()
    assert seen["rows_seen"] == 3


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("path", ["upload:café.csv", "upload:caf?.csv", "upload:*é.csv"])
def test_an_upload_is_in_use_however_its_accents_are_written(api: TestClient, form: Any, path: str) -> None:
    assert upload(api, unicodedata.normalize(form, "café.csv")).status_code == 201
    entry = {"name": "orders", "spec": {**CSV, "path": unicodedata.normalize(form, path)}}
    assert api.post("/api/v1/streams", json=entry).status_code == 201
    refused = api.delete(f"/api/v1/uploads/{unicodedata.normalize(form, 'café.csv')}")
    assert refused.status_code == 409, refused.text


@pytest.mark.parametrize(
    "name",
    [
        "", ".", "..", "../catalog.db", "a/b.csv", "/etc/passwd", "a\\b.csv", ".hidden.csv", "_private.csv", "a\nb.csv",
        "a\0.csv", "a\x7f.csv", "orders\U0001f4a5.csv", "a\u202ecsv.exe", "a*.csv", "a?.csv", "a[1].csv", "x" * 121,
        "\u00fc" * 61, "a.csv ", "a.", "-rf", "a:b", "\ud800.csv",
    ],
)  # fmt: skip
def test_names_that_could_lead_elsewhere_are_refused(api: TestClient, settings: Settings, name: str) -> None:
    query = name.encode("utf-8", "surrogatepass")
    encoded = "".join(f"%{byte:02x}" for byte in query)
    answer = api.post(f"/api/v1/uploads?name={encoded}", content=ORDERS)
    assert answer.status_code in (400, 422), answer.text
    assert answer.json()["code"] in ("invalid", "bad_request")
    assert kept(settings) == {}
    assert api.delete(f"/api/v1/uploads/{encoded}").status_code in (400, 404, 405, 422)


@pytest.mark.parametrize("name", ["Bestellungen März (2).csv", "注文.jsonl", "a+b, c@d-1.parquet", "0"])
def test_names_of_files_that_people_have_are_taken(api: TestClient, settings: Settings, name: str) -> None:
    assert upload(api, name).status_code == 201
    assert list(kept(settings)) == [name]
    assert api.delete(f"/api/v1/uploads/{name}").status_code == 204


def test_an_accent_is_one_name_however_it_is_written(api: TestClient, settings: Settings) -> None:
    assert upload(api, "Ma\u0308rz.csv").json()["name"] == "M\u00e4rz.csv"
    assert upload(api, "M\u00e4rz.csv", b"other").status_code == 409


@pytest.mark.parametrize(
    "path", ["upload:../catalog.db", "upload:/etc/passwd", "upload:", "upload:.owners/orders.csv", "upload:a/../b",
             "upload:.owners", "upload:[o]rders.csv", "upload:nothing.csv", "upload:**/x"]
)  # fmt: skip
def test_a_reference_reaches_uploads_only(api: TestClient, path: str) -> None:
    upload(api)
    for what, spec in (("streams", {**CSV, "path": path}), ("relations", {"source": "csv", "path": path})):
        for body in ({"spec": spec}, {"name": "x", "spec": spec}):
            route = f"/api/v1/{what}" if "name" in body else f"/api/v1/{what}/test"
            answer = api.post(route, json=body)
            assert answer.status_code == 422, (path, answer.text)
            assert answer.json()["errors"][0]["pointer"] == "/spec/path"


def test_the_data_folder_stays_closed_for_paths(api: TestClient, settings: Settings) -> None:
    upload(api)
    path = str(settings.data.absolute() / "uploads" / "orders.csv")
    answer = api.post("/api/v1/streams/test", json={"spec": {**CSV, "path": path}})
    assert answer.status_code == 422 and "data folder" in answer.json()["detail"]


def test_a_link_among_the_uploads_is_not_followed(api: TestClient, settings: Settings, tmp_path: Path) -> None:
    upload(api)
    secret = tmp_path / "secret.csv"
    secret.write_bytes(b"id,price,at\n7,7,2026-01-01T00:00:00Z\n")
    (folder_of(settings) / "trick.csv").symlink_to(secret)
    for path in ("upload:trick.csv", "upload:t*.csv"):
        answer = api.post("/api/v1/streams/test", json={"spec": {**CSV, "path": path}})
        assert answer.status_code == 422 and "is a link" in answer.json()["detail"]
    assert [one["name"] for one in api.get("/api/v1/uploads").json()["data"]] == ["orders.csv"]
    assert api.delete("/api/v1/uploads/trick.csv").status_code == 404
    assert upload(api, "trick.csv", secret.read_bytes()).status_code == 409
    assert secret.exists()


def test_the_same_bytes_may_come_again_and_others_may_not(api: TestClient, settings: Settings) -> None:
    first = upload(api)
    again = upload(api)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    other = upload(api, content=ORDERS + b"3,1,2026-01-01T00:00:02Z\n")
    assert other.status_code == 409 and "already, with other content" in other.json()["detail"]
    assert kept(settings) == {"orders.csv": ORDERS}


def test_of_two_at_once_one_wins_whole(api: TestClient, settings: Settings) -> None:
    contents = [bytes([65 + number]) * 200_000 for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda content: upload(api, content=content), contents))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 7
    won = next(content for content, answer in zip(contents, answers, strict=True) if answer.status_code == 201)
    assert kept(settings) == {"orders.csv": won}


@pytest.fixture
def small(settings: Settings) -> None:
    """Uploads have 1,000 bytes at most; other bodies have more."""
    settings.upload_bytes_max = 1000


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("is_told", [True, False], ids=["with a length", "without one"])
def test_a_huge_file_is_counted_while_it_comes(settings: Settings, app: FastAPI, is_told: bool) -> None:
    taken = 0

    def endless() -> Any:
        nonlocal taken
        for _ in range(1000):
            taken += 100
            yield b"x" * 100

    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as api:
        answer = upload(api, content=b"x" * 1001 if is_told else endless())
        assert answer.status_code == 413
        assert "1,000 bytes" in answer.json()["detail"] and "STREAMJOIN_UPLOAD_BYTES_MAX" in answer.json()["detail"]
        assert kept(settings) == {}
        assert upload(api, content=b"x" * 1000).status_code == 201
        assert len(kept(settings)["orders.csv"]) == 1000


def test_a_file_that_breaks_off_leaves_nothing(app: FastAPI, settings: Settings) -> None:
    pieces = iter([{"type": "http.request", "body": ORDERS, "more_body": True}, {"type": "http.disconnect"}])
    said: list[Any] = []

    async def receive() -> Any:
        return next(pieces)

    async def send(message: Any) -> None:
        said.append(message)

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
        "path": "/api/v1/uploads", "raw_path": b"/api/v1/uploads", "query_string": b"name=orders.csv", "root_path": "",
        "headers": [(b"host", b"127.0.0.1")], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
    }  # fmt: skip
    asyncio.run(app(scope, receive, send))
    assert said[0]["status"] == 400
    assert kept(settings) == {}


def test_an_empty_file_is_refused(api: TestClient, settings: Settings) -> None:
    answer = upload(api, content=b"")
    assert answer.status_code == 422 and "orders.csv is empty" in answer.json()["detail"]
    assert kept(settings) == {}


def test_a_form_is_not_taken_for_a_file(api: TestClient, settings: Settings) -> None:
    answer = api.post("/api/v1/uploads?name=a.csv", files={"file": ("a.csv", ORDERS)})
    assert answer.status_code == 415 and "--data-binary" in answer.json()["detail"]
    assert kept(settings) == {}


@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", "text/plain", "application/octet-stream"])
@pytest.mark.parametrize("header", [{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}])
def test_other_pages_cannot_send_files(api: TestClient, settings: Settings, kind: str, header: dict[str, str]) -> None:
    answer = upload(api, headers={"Content-Type": kind, **header})
    assert answer.status_code == 403
    assert kept(settings) == {}


def test_what_a_crash_left_is_removed_later(
    api: TestClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafts = folder_of(settings) / ".drafts"
    drafts.mkdir(parents=True)
    (drafts / "upl_old").write_bytes(b"half")
    upload(api)
    assert (drafts / "upl_old").exists()  # it may still be coming in
    monkeypatch.setattr(store, "DRAFT_KEPT_S", -1.0)
    upload(api)
    assert kept(settings) == {"orders.csv": ORDERS}


def test_a_full_disk_is_told(api: TestClient, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    answer = upload(api)
    assert answer.status_code == 503 and "is full" in answer.json()["detail"]
    assert kept(settings) == {}


def test_a_small_archive_of_a_huge_file_is_looked_at_in_bounds(api: TestClient) -> None:
    bomb = gzip.compress(b"id,price,at\n" + b"1,2.5,2026-01-01T00:00:00Z\n" * 4_000_000, 9)
    assert len(bomb) < 1 << 20
    assert upload(api, "bomb.csv.gz", bomb).json()["format"] == "csv"
    answer = api.post("/api/v1/streams/test", json={"spec": {**CSV, "path": "upload:bomb.csv.gz"}})
    assert answer.status_code == 200, answer.text
    assert answer.json()["rows_seen"] <= 1_000_000


def test_operators_remove_their_own_and_admins_all(tmp_path: Path) -> None:
    app = new_app(Settings(data=tmp_path, redis_url="redis://127.0.0.1:1/0", auth="on"))
    people = {role: add_person(app.state.context, f"the-{role}", role) for role in ROLES}
    other = add_person(app.state.context, "another", "operator")
    with TestClient(app, base_url="http://127.0.0.1") as api:
        assert upload(api, headers=people["viewer"].headers).status_code == 403
        assert upload(api).status_code == 401
        made = upload(api, headers=people["operator"].headers)
        assert made.json()["owner_id"] == people["operator"].id
        assert api.get("/api/v1/uploads", headers=people["viewer"].headers).json()["data"] == [made.json()]
        assert upload(api, headers=other.headers).json()["owner_id"] == people["operator"].id  # it stays theirs
        assert api.delete("/api/v1/uploads/orders.csv", headers=other.headers).status_code == 403
        assert api.delete("/api/v1/uploads/orders.csv", headers=people["operator"].headers).status_code == 204
        upload(api, headers=people["operator"].headers)
        assert api.delete("/api/v1/uploads/orders.csv", headers=people["admin"].headers).status_code == 204


def test_uploads_are_listed_page_by_page(api: TestClient) -> None:
    names = [f"f{number}.csv" for number in range(5)]
    for name in reversed(names):
        upload(api, name)
    seen: list[str] = []
    url = "/api/v1/uploads?limit=2"
    while url:
        answer = api.get(url)
        seen += [item["name"] for item in answer.json()["data"]]
        url = answer.headers["link"].split(">")[0][1:] if answer.json()["has_more"] else ""
    assert seen == names


def test_what_is_wrong_with_an_upload_is_told_by_its_name(api: TestClient, settings: Settings) -> None:
    assert upload(api, "semi.csv", b"k;v\n1;2\n").status_code == 201
    for what in ("streams", "relations"):
        spec = {"source": "csv", "path": "upload:semi.csv"}
        wrong = api.post(f"/api/v1/{what}/test", json={"spec": spec})
        assert wrong.status_code == 422
        assert "upload:semi.csv" in wrong.text and "1 semicolon" in wrong.text
        assert str(settings.data) not in wrong.text


def test_attack_a_large_upload_is_not_read_to_see_that_it_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.csv").write_bytes(b"1234")
    assert store.has(tmp_path, "a.csv", content_of(b"1234"))
    assert not store.has(tmp_path, "a.csv", content_of(b"1243"))
    assert not store.has(tmp_path, "b.csv", content_of(b"1234"))
    monkeypatch.setattr(store, "file_digest", None)
    assert not store.has(tmp_path, "a.csv", content_of(b"12345"))
