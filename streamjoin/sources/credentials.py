"""What in an entry of a join file is secret: who knows it may log in as its owner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streamjoin.errors import InputError
from streamjoin.sources.database import Database

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


def split_relation(entry: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """An entry of `relations:` without its password, which may stand in its URL, and this."""
    if entry.get("source") == "cassandra" and isinstance(entry.get("password"), str):
        return {name: value for name, value in entry.items() if name != "password"}, {"password": entry["password"]}
    try:
        url, password = Database(entry["url"]).without_password()
    except (KeyError, TypeError, InputError):
        return dict(entry), {}
    return ({**entry, "url": url}, {"password": password}) if password else (dict(entry), {})


def masked(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The same entry, with `MASK` in place of each secret."""
    shown, secrets = split(entry)
    return {**shown, "client": {**shown["client"], **dict.fromkeys(secrets, MASK)}} if secrets else dict(entry)
