"""Registered entries are short, so that lists of them are too. Longer ones from before stay as they are."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.catalog.ids import new_id, now_us
from backend.catalog.models import Relation, Stream
from backend.entries import SPEC_BYTES_MAX
from backend.uploads import readers
from backend.uploads.names import STARS_MAX
from backend.uploads.readers import Readers
from streamjoin.plan.schema import COLUMNS_MAX

URL = "/api/v1"
STREAM = {"source": "push", "time": "ts"}
RELATION = {"source": "parquet", "path": "/data/customers"}
BY_WHAT = {"streams": STREAM, "relations": RELATION}


def wide(what: str, name_bytes: int, letter: str = "x") -> dict[str, Any]:
    """An entry of as many columns as may be, with names of so many bytes."""
    names = [
        f"{number:04d}".ljust(4 + (name_bytes - 4) // len(letter.encode()), letter) for number in range(1, COLUMNS_MAX)
    ]
    return {**BY_WHAT[what], "schema": {"ts": "timestamp"} | dict.fromkeys(names, "int64")}


def add_earlier(app: FastAPI, what: str, spec: dict[str, Any]) -> None:
    """As an earlier version registered it."""
    table, id = (Stream, new_id("str")) if what == "streams" else (Relation, new_id("rel"))
    row = table(id=id, name="old", owner_id=None, spec=spec, version=1, created_at_us=now_us(), updated_at_us=now_us())
    with app.state.context.catalog.begin() as session:
        session.add(row)


def refused(answer: Any) -> None:
    said = answer.json()
    assert (answer.status_code, said["subcode"], said["params"]) == (413, "spec_too_large", {"limit": SPEC_BYTES_MAX})
    assert said["errors"][0]["pointer"] == "/spec" and "32,768" in said["detail"]


@pytest.mark.parametrize("letter", ["x", "\u540d"])
def test_a_thousand_columns_of_twenty_bytes_fit(api: TestClient, letter: str) -> None:
    spec = wide("streams", 20, letter)
    answer = api.post(f"{URL}/streams", json={"name": "wide", "spec": spec})
    assert (answer.status_code, answer.json().get("spec")) == (201, spec)


@pytest.mark.parametrize("what", BY_WHAT)
def test_attack_large_entries_make_no_large_lists(what: str, app: FastAPI, api: TestClient) -> None:
    app.state.context.settings.allowed_paths = ("/data",)
    large = {"name": "large", "spec": wide(what, SPEC_BYTES_MAX // COLUMNS_MAX)}
    small = {"name": "small", "spec": wide(what, 8)}
    refused(api.post(f"{URL}/{what}", json=large))
    refused(api.post(f"{URL}/{what}/test", json={"spec": large["spec"]}))
    assert api.post(f"{URL}/{what}", json=small).status_code == 201
    refused(api.patch(f"{URL}/{what}/small", json={"spec": large["spec"]}, headers={"If-Match": "*"}))
    assert len(api.get(f"{URL}/{what}").content) < SPEC_BYTES_MAX


@pytest.mark.parametrize("what", BY_WHAT)
def test_a_large_entry_of_an_earlier_version_stays_and_may_shrink(what: str, app: FastAPI, api: TestClient) -> None:
    app.state.context.settings.allowed_paths = ("/data",)
    specs = [wide(what, name_bytes) for name_bytes in (60, 50, 55, 10, 50)]
    stored = {**specs[0], "source": "jsonl", "path": "/data"} if what == "streams" else specs[0]
    add_earlier(app, what, stored)
    assert api.get(f"{URL}/{what}/old").json()["spec"] == stored
    change = [stored, *specs[1:]]
    statuses = [api.patch(f"{URL}/{what}/old", json={"spec": spec}, headers={"If-Match": "*"}).status_code
                for spec in change]  # fmt: skip
    assert statuses == [200, 200, 413, 200, 413]


@pytest.mark.parametrize("what", BY_WHAT)
def test_a_pattern_of_uploads_has_few_stars(what: str, api: TestClient) -> None:
    assert api.post(f"{URL}/uploads", params={"name": "a-b.csv"}, content=b"ts\n1\n").status_code == 201
    for stars, status in ((STARS_MAX, 201), (STARS_MAX + 1, 422)):
        spec = {"source": "csv", "path": f"upload:{'*' * (stars - 1)}a*.csv"} | (
            {"time": "ts"} if what == "streams" else {}
        )
        answer = api.post(f"{URL}/{what}", json={"name": f"s{stars}", "spec": spec})
        assert answer.status_code == status, answer.text
    assert answer.json()["errors"][0]["pointer"] == "/spec/path"
    assert f"has {STARS_MAX + 1} *, and may have {STARS_MAX}" in answer.json()["detail"]


def test_attack_streams_of_one_pattern_are_matched_once_for_each_upload(
    app: FastAPI, api: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams, uploads = 500, [f"aaa-{number}.csv" for number in range(10)]
    patterns = ["upload:" + "*a" * 30 + "*", "upload:*-1.csv"]  # an earlier version took the first
    at_us = now_us()
    with app.state.context.catalog.begin() as session:
        for number in range(streams):
            spec = {"source": "csv", "path": patterns[number % 2], "time": "ts"}
            session.add(Stream(id=new_id("str"), name=f"s{number:03d}", owner_id=None, spec=spec, version=1,
                               created_at_us=at_us, updated_at_us=at_us))  # fmt: skip
    times = 0

    def counted(name: str, pattern: str) -> bool:
        nonlocal times
        times += 1
        return fnmatchcase(name, pattern)

    monkeypatch.setattr(readers, "fnmatchcase", counted)
    with app.state.context.catalog.read() as session:
        found = Readers(session)
    read_by = {name: found.of(name) for name in uploads}
    assert times == len(patterns) * len(uploads)
    assert read_by.pop("aaa-1.csv") == [f"stream s{number:03d}" for number in range(1, streams, 2)]
    assert set(map(len, read_by.values())) == {0}
