"""Rejected rows in a real browser: nothing is wider than its place, read by a machine, or more than text."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamjoin.client import Client
from streamjoin.intake import rejected
from streamjoin.intake.deadletter import BAD_VALUE, NO_TIME, DeadLetter, write_dead_letters

from .browser import API, TEST_S_MAX, platform, walk

pytestmark = [pytest.mark.services, pytest.mark.slow, pytest.mark.soak]
BIDS = {"source": "generator", "kind": "nexmark.bid", "time": "ts"}
QUERY = "SELECT ONLINE a.id FROM auctions a, bids b WHERE a.id = b.auction WITHIN 10 SECONDS"


def put_aside(folder: Path) -> None:
    """What a driver does as it commits a batch of 122 bad rows."""
    name = "a-folder-with-a-long-name/and-another-one/part-00000-of-many-files-of-a-day.csv"
    texts = ["2026-01-01T00:00:07Z,1O,3"] * 120 + ["y" * 5_000 + " the end of it", '<img src=x onerror="alert(1)">']
    letters = [
        DeadLetter("bids", name, at, BAD_VALUE, f'field "id": "{"z" * 200}" is no int64', text.encode(), "line")
        for at, text in enumerate(texts, 1)
    ]
    letters = [DeadLetter("bids", "1.csv", at, NO_TIME, "the event time is NULL", b"=1+2") for at in (1, 2)] + letters
    file = rejected.file_of(folder, 1, "0-0:0")
    write_dead_letters(file, letters, 1, 1_767_225_600_000_000)
    counts = {"bids": {BAD_VALUE: len(texts), NO_TIME: 2}}
    more = {"auctions": {rejected.LATE: 1_234_567}}
    rejected.add(folder, 1, {**counts, **more}, [rejected.Taken(file, counts)], sync=False)


@pytest.mark.timeout(TEST_S_MAX)
def test_rejected_rows_are_seen_chosen_and_downloaded(tmp_path: Path, browser: tuple[str, str]) -> None:
    with platform(tmp_path, API, AUTH="off") as address:
        with Client(address) as client:
            client.streams.create("bids", BIDS)
            client.streams.create("auctions", {**BIDS, "kind": "nexmark.auction"})
            job = client.jobs.create("lossy", QUERY)
        put_aside(tmp_path / "data" / "jobs" / job["id"] / "checkpoint-0" / "dead-letters")
        walk("rejected", browser, address, job["id"], str(tmp_path / "pictures"))
