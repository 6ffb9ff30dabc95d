"""The password of a relation's database: given apart from its entry, sealed, in its URL only where that is opened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from backend.problems import Place, Problem
from streamjoin.errors import InputError
from streamjoin.sources.database import Database

PASSWORD: Final = "password"


def check_secrets(entry: Mapping[str, Any], secrets: Mapping[str, str]) -> None:
    """Refuse secrets that open nothing.

    Raises:
        Problem: names the field.
    """
    if entry.get("source") != "sql" or Database(entry["url"]).file is not None:
        raise _refused("no_secrets_here", "only relations of a database server have secrets", "/secrets")
    for name, value in secrets.items():
        if name != PASSWORD:
            detail = f"is no secret of a relation's; there is one, {PASSWORD}"
            raise _refused("no_secrets_here", detail, f"/secrets/{name}")
        if not value or not value.isprintable():
            detail = "is empty, or has characters that nobody types; send {} as `secrets` to forget a password"
            raise _refused("bad_secret", detail, f"/secrets/{name}")


def with_secrets(entry: Mapping[str, Any], secrets: Mapping[str, str] | None) -> dict[str, Any]:
    """The entry as it is opened."""
    if not secrets:
        return dict(entry)
    return {**entry, "url": Database(entry["url"]).with_password(secrets[PASSWORD])}


def check_same_server(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Secrets are for the server and the user that they were given for: whoever changes these must know them.

    Raises:
        Problem: it is another one.
    """
    if not is_same_server(before, after):
        detail = (
            "is of another server or user than the secrets were given for; send `secrets` again, or {} to forget them"
        )
        raise _refused("secrets_of_other_servers", detail, "/spec/url")


def is_same_server(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether two entries log in at one place in one way; of that server, they may read any database and table."""
    try:
        one, other = (Database(entry["url"]) for entry in (before, after))
    except (KeyError, InputError):
        return False
    return one.login == other.login


def _refused(code: str, detail: str, pointer: str) -> Problem:
    said = detail if pointer == "/secrets" else f"{pointer[1:].replace('/', '.')} {detail}"
    return Problem(f"invalid.{code}", said, errors=[Place(pointer=pointer, detail=detail)])
