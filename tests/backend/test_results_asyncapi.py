"""docs/asyncapi.json is what the frames are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from backend.results import asyncapi, frames


def references(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [found for value in node.values() for found in references(value)]
    return [found for value in node for found in references(value)] if isinstance(node, list) else []


def test_the_document_does_not_drift_from_the_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    assert json.loads(asyncapi.PATH.read_text()) == asyncapi.document()
    asyncapi.main(["--check"])
    monkeypatch.setitem(frames.CLOSE_CODES, 4999, "something new")
    with pytest.raises(SystemExit, match=r"python -m backend\.results\.asyncapi"):
        asyncapi.main(["--check"])


def test_every_reference_leads_somewhere() -> None:
    document = asyncapi.document()
    found = references(document)
    assert len(found) > 30
    for reference in found:
        node: Any = document
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]


def test_every_frame_is_described() -> None:
    messages = asyncapi.document()["components"]["messages"]
    assert {one["name"] for one in messages.values()} == {
        "connection_init", "connection_ack", "subscribe", "query", "schema", "next", "progress", "error", "complete",
        "ping", "pong",
    }  # fmt: skip
    assert all(one["summary"] for one in messages.values())
