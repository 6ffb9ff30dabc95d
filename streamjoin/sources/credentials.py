"""Which settings of a Kafka client are secrets: who knows one may log in as its owner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

SECRET_SETTINGS: Final = frozenset({
    "sasl.password", "sasl.jaas.config", "ssl.key.password", "ssl.keystore.password", "ssl.truststore.password",
    "ssl.keystore.key", "ssl.key.pem",
})  # fmt: skip
MASK: Final = "(secret)"
"""What is shown in place of one."""


def split(entry: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """An entry of `streams:` without the secrets among its `client` settings, and these."""
    client = entry.get("client")
    if not isinstance(client, Mapping):
        return dict(entry), {}
    shown = {name: value for name, value in client.items() if name not in SECRET_SETTINGS}
    secrets = {name: value for name, value in client.items() if name in SECRET_SETTINGS}
    return {**entry, "client": shown}, secrets


def masked(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The same entry, with `MASK` in place of each secret."""
    shown, secrets = split(entry)
    return {**shown, "client": {**shown["client"], **dict.fromkeys(secrets, MASK)}} if secrets else dict(entry)
