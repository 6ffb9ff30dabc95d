"""Ended keys are kept as long as the audit record may name them, and only so many for one user."""

from __future__ import annotations

import re
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import select, update

from backend.api import api_keys
from backend.auth.keys import make_key
from backend.catalog.database import Catalog
from backend.catalog.ids import now_us
from backend.catalog.models import ApiKey
from tests.backend.matrix import PASSWORD, Person, add_person
from worker.thin import DAY_US, thin

URL = "/api/v1/api-keys"
PAGE = {"Origin": "http://127.0.0.1"}
EVENTS_DAYS, AUDIT_DAYS = 30, 365


@pytest.fixture
def catalog(app: FastAPI) -> Catalog:
    app.state.context.settings.auth = "on"
    found: Catalog = app.state.context.catalog
    return found


@pytest.fixture
def viewer(app: FastAPI, catalog: Catalog) -> Person:
    return add_person(app.state.context, "vic", "viewer")


def made(api: TestClient, viewer: Person) -> Any:
    return api.post(URL, json={"name": "k"}, headers=viewer.headers)


def make_and_revoke(api: TestClient, viewer: Person) -> str:
    answer = made(api, viewer)
    assert answer.status_code == 201, answer.text
    id: str = answer.json()["id"]
    assert api.delete(f"{URL}/{id}", headers=viewer.headers).status_code == 204
    return id


def keys_of(catalog: Catalog) -> set[str]:
    with catalog.read() as session:
        return set(session.scalars(select(ApiKey.id)))


def test_attack_keys_that_are_made_and_revoked_for_ever_are_forgotten(
    api: TestClient, catalog: Catalog, viewer: Person
) -> None:
    ended = {make_and_revoke(api, viewer) for _ in range(3)}
    for days, left in ((AUDIT_DAYS - 1, {*ended, viewer.key_id}), (AUDIT_DAYS + 1, {viewer.key_id})):
        thin(catalog, now_us() + days * DAY_US, EVENTS_DAYS, AUDIT_DAYS)
        assert keys_of(catalog) == left
    assert made(api, viewer).status_code == 201


def test_a_key_is_kept_from_its_end_on_and_for_those_that_it_made(catalog: Catalog, viewer: Person) -> None:
    now, old = now_us(), now_us() - (AUDIT_DAYS + 1) * DAY_US
    rows = {}

    def add(name: str, *, revoked: int | None, expires: int | None, by: str | None = None) -> None:
        row, _ = make_key(viewer.id, name, "viewer", expires, by_key=None if by is None else rows[by].id)
        row.revoked_at_us = revoked
        rows[name] = row
        with catalog.begin() as session:
            session.add(row)

    add("expired long ago", revoked=None, expires=old)
    add("expired, and revoked since", revoked=now, expires=old)
    add("revoked long before its end", revoked=old, expires=now + DAY_US)
    add("without an end", revoked=None, expires=None)
    add("revoked, of a version without ends", revoked=old, expires=None)
    add("made one that goes on", revoked=old, expires=None)
    add("goes on", revoked=None, expires=None, by="made one that goes on")
    add("made one that ended", revoked=old, expires=None)
    add("ended with it", revoked=old, expires=None, by="made one that ended")
    thin(catalog, now, EVENTS_DAYS, AUDIT_DAYS)
    left = {name for name, row in rows.items() if row.id in keys_of(catalog)}
    assert left == {"expired, and revoked since", "without an end", "made one that goes on", "goes on"}


def test_attack_one_user_has_so_many_keys_with_those_that_ended(
    app: FastAPI, api: TestClient, catalog: Catalog, viewer: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_keys, "ROWS_MAX", 8)
    first, *_ = [make_and_revoke(api, viewer) for _ in range(3)]
    with catalog.begin() as session:
        session.execute(update(ApiKey).where(ApiKey.id == first).values(revoked_at_us=0))
    refused = made(api, viewer)
    assert (refused.status_code, refused.json()["subcode"]) == (409, "too_many_keys")
    assert "you have 4 keys with those that ended" in refused.json()["detail"]
    assert re.search(r"forgotten at 1971-01-01T00:00:00(\.000)?Z;", refused.json()["detail"])
    other = add_person(app.state.context, "olga", "viewer")
    assert made(api, other).status_code == 201
    thin(catalog, now_us(), EVENTS_DAYS, AUDIT_DAYS)
    assert made(api, viewer).status_code == 201


def test_attack_a_key_that_leaked_leaves_room_for_whoever_logs_in(
    api: TestClient, catalog: Catalog, viewer: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_keys, "ROWS_MAX", 8)
    while (answer := made(api, viewer)).status_code == 201:
        assert api.delete(f"{URL}/{answer.json()['id']}", headers=viewer.headers).status_code == 204
    logged_in = api.post("/api/v1/sessions", json={"name": viewer.name, "password": PASSWORD})
    assert logged_in.status_code == 201, logged_in.text
    answers = [api.post(URL, json={"name": "k"}, headers=PAGE).status_code for _ in range(5)]
    assert answers == [201] * 4 + [409]
