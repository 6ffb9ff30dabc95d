"""Rows that are missing from a job's results: their counts, pages of them, and all of them as a file."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from test_jobs import created
from test_streams import BIDS, registered

from backend.catalog.models import Job
from backend.settings import Settings
from streamjoin.intake.deadletter import BAD_VALUE, NO_TIME, DeadLetter, write_dead_letters
from streamjoin.intake.rejected import Counts, Taken, add, file_of
from tests.backend.matrix import ANONYMOUS, add_person, new_app

AT_US = 1_767_225_600_000_000


@pytest.fixture
def job(api: TestClient) -> str:
    """The path of a job that never ran."""
    registered(api)
    registered(api, "auctions", **{**BIDS, "kind": "nexmark.auction"})
    return f"/api/v1/jobs/{created(api)['id']}"


def put_aside(
    settings: Settings, job: str, batch: int, *letters: DeadLetter, counted: Counts | None = None, incarnation: int = 0
) -> Path:
    """What a driver does as it commits a batch."""
    folder = settings.data.absolute() / "jobs" / job.rpartition("/")[2] / f"checkpoint-{incarnation}" / "dead-letters"
    file = file_of(folder, batch, "0-0:0")
    write_dead_letters(file, letters, batch, AT_US)
    counts: Counts = {}
    for letter in letters:
        by_reason = counts.setdefault(letter.stream, {})
        by_reason[letter.reason] = by_reason.get(letter.reason, 0) + 1
    add(folder, batch, {**counts, **(counted or {})}, [Taken(file, counts)], sync=False)
    return folder


def letter(text: bytes | None = b"{", at: int = 3, reason: str = BAD_VALUE, stream: str = "bids") -> DeadLetter:
    return DeadLetter(stream, "a/1.csv", at, reason, 'field "id": no number', text, "line")


def texts(page: dict[str, Any]) -> list[str]:
    return [row["record"] for row in page["data"]]


def test_a_job_without_any_has_no_rows_and_no_counts(api: TestClient, job: str) -> None:
    assert api.get(f"{job}/rejected").json() == {"data": [], "has_more": False, "counts": []}
    assert api.get(f"{job}/rejected/download").content == b""
    assert api.get("/api/v1/jobs/nobody/rejected").status_code == 404


def test_a_row_says_where_it_was_why_it_is_missing_and_what_it_was(
    api: TestClient, job: str, settings: Settings
) -> None:
    put_aside(settings, job, 7, letter(b'{"id":'), counted={"auctions": {"late": 9}})
    found = api.get(f"{job}/rejected").json()
    [row] = found["data"]
    assert row == {
        "id": "1-0", "stream": "bids", "reason": "bad_value", "batch": 7, "at": "2026-01-01T00:00:00.000000Z",
        "source": "a/1.csv", "unit": "line", "position": 3, "detail": 'field "id": no number', "record": '{"id":',
        "record_base64": None, "truncated": False,
    }  # fmt: skip
    assert [(one["stream"], one["reason"], one["rows"], one["kept"]) for one in found["counts"]] == [
        ("auctions", "late", 9, 0),
        ("bids", "bad_value", 1, 1),
    ]
    assert found["counts"][1]["meaning"] == "a value does not fit its column"


def test_a_batch_that_a_new_run_does_again_counts_once(api: TestClient, job: str, settings: Settings) -> None:
    for batch in (1, 2, 2):
        put_aside(settings, job, batch, letter(str(batch).encode()))
    found = api.get(f"{job}/rejected").json()
    assert texts(found) == ["2", "1"] and found["counts"][0]["rows"] == 2


def test_rows_come_in_pages_that_name_the_next_and_repeat_nothing(
    api: TestClient, job: str, settings: Settings
) -> None:
    put_aside(settings, job, 1, *(letter(str(at).encode(), at) for at in range(5)))
    url, seen = f"{job}/rejected?limit=2", []
    while url:
        answer = api.get(url)
        seen += texts(answer.json())
        assert ("Link" in answer.headers) is answer.json()["has_more"]
        url = answer.links["next"]["url"] if answer.json()["has_more"] else ""
        put_aside(settings, job, 1 + len(seen), letter(b"came meanwhile"))
    assert seen == ["4", "3", "2", "1", "0"]


def test_rows_of_one_stream_or_for_one_reason(api: TestClient, job: str, settings: Settings) -> None:
    put_aside(settings, job, 1, letter(b"1"), letter(b"2", stream="auctions"), letter(b"3", reason=NO_TIME))
    for asked, want in (("stream=bids", ["3", "1"]), ("reason=no_time", ["3"]), ("stream=auctions&reason=late", [])):
        found = api.get(f"{job}/rejected?{asked}").json()
        assert texts(found) == want and len(found["counts"]) == 3
        lines = api.get(f"{job}/rejected/download?{asked}").text.splitlines()
        assert [json.loads(line)["record"] for line in lines] == want[::-1]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("?starting_after=x", "not a row id"), ("?starting_after=1-1", "begin again without it"), ("?limit=0", "limit"),
        ("?reason=bad", "malformed, bad_value"), ("/download?reason=bad", "malformed, bad_value"),
        ("/download?format=xlsx", "'ndjson' or 'csv'"),
        ("?stream=nope", "it reads auctions, bids"), ("/download?stream=nope", "it reads auctions, bids"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_told_so(asked: str, said: str, api: TestClient, job: str, settings: Settings) -> None:
    put_aside(settings, job, 1, letter())
    answer = api.get(f"{job}/rejected{asked}")
    assert answer.status_code == 422 and said in answer.text


def test_a_damaged_head_is_said_without_places_of_the_host(api: TestClient, job: str, settings: Settings) -> None:
    folder = put_aside(settings, job, 1, letter())
    (folder / "kept.json").write_text("{")
    for path in ("rejected", "rejected/download"):
        answer = api.get(f"{job}/{path}")
        assert answer.status_code == 503 and "kept.json is damaged" in answer.json()["detail"]
        assert str(settings.data) not in answer.text


def test_what_starts_anew_begins_to_count_anew(api: TestClient, app: FastAPI, job: str, settings: Settings) -> None:
    put_aside(settings, job, 1, letter(b"before"))
    with app.state.context.catalog.begin() as session:
        session.get_one(Job, job.rpartition("/")[2]).incarnation = 1
    assert api.get(f"{job}/rejected").json()["counts"] == []
    put_aside(settings, job, 1, letter(b"after"), incarnation=1)
    assert texts(api.get(f"{job}/rejected").json()) == ["after"]


@pytest.mark.parametrize(
    "text", ["=1+2", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1", '=HYPERLINK("http://x","y")']
)
def test_attack_csv_has_no_formula_and_json_lines_have_the_text_as_it_is(
    text: str, api: TestClient, job: str, settings: Settings
) -> None:
    put_aside(settings, job, 1, DeadLetter(text, text, 3, BAD_VALUE, text, text.encode(), "line"))
    answer = api.get(f"{job}/rejected/download?format=csv")
    [row] = csv.DictReader(io.StringIO(answer.text, newline=""))
    assert {row[name] for name in ("stream", "source", "detail", "record")} == {f"'{text}"}
    assert row["position"] == "3" and row["truncated"] == "false"
    [line] = api.get(f"{job}/rejected/download?format=ndjson").text.splitlines()
    assert json.loads(line)["record"] == text


def test_a_download_is_a_file_with_the_job_s_name_and_all_rows_oldest_first(
    api: TestClient, job: str, settings: Settings
) -> None:
    put_aside(settings, job, 1, letter(b"a,b\nc"), letter(b"\xff"), letter(None), letter(b"y" * 70_000))
    answer = api.get(f"{job}/rejected/download?format=csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="wins-rejected.csv"'
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(answer.text, newline="")))
    assert [row["record"][:5] for row in rows] == ["a,b\nc", "", "", "yyyyy"]
    assert rows[1]["record_base64"] == "/w==" and rows[0]["at"] == "2026-01-01T00:00:00.000000Z"
    assert [row["truncated"] for row in rows] == ["false", "false", "false", "true"]
    lines = api.get(f"{job}/rejected/download")
    assert lines.headers["content-type"] == "application/x-ndjson" and len(lines.text.splitlines()) == 4


def test_whoever_may_read_sees_rows_and_nobody_else(tmp_path: Path) -> None:
    app = new_app(Settings(data=tmp_path / "data", auth="on", redis_url="redis://127.0.0.1:1/0"))
    people = {role: add_person(app.state.context, role, role).headers for role in ("viewer", "operator")}
    with TestClient(app, base_url="http://127.0.0.1") as client:
        for path in ("rejected", "rejected/download"):
            for role, want in ((ANONYMOUS, 401), ("viewer", 404), ("operator", 404)):
                answer = client.get(f"/api/v1/jobs/none/{path}", headers=people.get(role, {}))
                assert answer.status_code == want
