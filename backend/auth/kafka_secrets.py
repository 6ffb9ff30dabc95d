"""Secrets of streams: settings of a Kafka client, which are for the servers that they were given for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backend.auth.hosts import check_client
from backend.problems import Place, Problem
from backend.settings import Settings


def check_secrets(settings: Settings, entry: Mapping[str, Any], secrets: Mapping[str, str]) -> None:
    """Refuse secrets that open nothing, or that reach further than a topic.

    Raises:
        Problem: names the field.
    """
    if entry["source"] != "kafka":
        raise Problem(
            "invalid.no_secrets_here",
            "only Kafka streams have secrets",
            errors=[Place(pointer="/secrets", detail="not here")],
        )
    check_client(settings, secrets)


def check_same_servers(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Refuse other servers: whoever changes these must know the secrets.

    Raises:
        Problem: they are others.
    """
    if not is_same_servers(before, after):
        detail = "are others than the secrets were given for; send `secrets` again, or {} to forget them"
        raise Problem(
            "invalid.secrets_of_other_servers",
            f"servers {detail}",
            errors=[Place(pointer="/spec/servers", detail=detail)],
        )


def is_same_servers(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether two entries log in at the same servers, in whatever order; of these, they may read any topic."""
    return before.get("source") == after.get("source") and _servers(before) == _servers(after)


def _servers(entry: Mapping[str, Any]) -> set[str] | None:
    servers = entry.get("servers")
    return None if servers is None else {server.strip().lower() for server in str(servers).split(",")}
