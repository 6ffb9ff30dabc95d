"""Rows that are posted, and periods that end with each request: one that is sent again ends none."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from backend.settings import Settings
from backend.streams import spool
from backend.streams.entry import stored_entry
from backend.streams.pushed import PUSH
from streamjoin.results.question import Question

from .jobs import run_text
from .test_store_crashes import reader_of, rows_of

pytestmark = pytest.mark.spark

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
SENT = {"orders": ((8, 10), (20, 15), (30,), (40,)), "payments": ((9,), (18, 20), (17, 38))}
"""By stream, the seconds of the rows of each request; all have one key."""


def registered(settings: Settings, stream_id: str) -> dict[str, Any]:
    """A pushed stream as the platform writes it into join files."""
    entry = {
        "source": "push", "schema": {"k": "int64", "at": "timestamp"}, "time": "at", "delay": "5s",
        "punctuate": {"per": "file"},
    }  # fmt: skip
    return {field: value for field, value in stored_entry(settings, stream_id, entry).items() if field != PUSH}


def post(settings: Settings, stream_id: str, number: int, seconds: tuple[int, ...]) -> bool:
    """A request with a name of its own; whether its rows are new."""
    rows = [{"k": 1, "at": f"2026-01-01T00:00:{second:02d}Z"} for second in seconds]
    body = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    return spool.add(spool.folder_of(settings.data, stream_id), body, f"request-{number}")[1]


def test_each_request_ends_a_period_and_one_that_is_sent_again_does_not(session: SparkSession, tmp_path: Path) -> None:
    settings = Settings(data=tmp_path / "data", auth="off")
    ids = {name: f"str_{number:026d}" for number, name in enumerate(SENT)}
    job = {
        "streams": {name: registered(settings, one) for name, one in ids.items()},
        "query": (
            "SELECT ONLINE orders.at AS ordered, payments.at AS paid FROM orders, payments "
            "WHERE orders.k = payments.k WITHIN 1 MINUTE"
        ),
        "results": {"store": "sqlite", "path": "results.db", "snapshot": {"punctuation": True}},
        "run": {"checkpoint": "checkpoint", "slots": 2},
    }
    file = tmp_path / "join.yaml"
    file.write_text(json.dumps(job))
    for number in range(4):
        for name, requests in SENT.items():
            if number < len(requests):
                assert post(settings, ids[name], number, requests[number])
                assert not post(settings, ids[name], number, requests[number])
        run_text(session, file.read_text(), tmp_path)
    reader = reader_of(file)
    state = reader.refresh().state
    # The first periods end at 10 s and at 20 s, the later of their requests. The third one ends with the payments'
    # third request, at 38 s, and their watermark is at 33 s; had the second counted twice, it would end at 30 s.
    assert state.ended_us == round(BEGIN.timestamp() * 1e6) + 20_000_001
    earlier = [[second for request in requests for second in request if second <= 20] for requests in SENT.values()]
    assert rows_of(reader, Question()).total() == len(earlier[0]) * len(earlier[1])
