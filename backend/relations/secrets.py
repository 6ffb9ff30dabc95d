"""The password of a relation's database: given apart from its entry, sealed, and in it only where that is opened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from backend.problems import Place, Problem
from backend.settings import Settings
from streamjoin.errors import InputError
from streamjoin.sources.database import Database

PASSWORD: Final = "password"


def check_secrets(settings: Settings, entry: Mapping[str, Any], secrets: Mapping[str, str]) -> None:
    """Refuse secrets that open nothing.

    Raises:
        Problem: names the field.
    """
    if _login(entry) is None:
        says = "only relations of a database server have secrets, and of Cassandra only with a username"
        raise _refused("no_secrets_here", says, "/secrets")
    for name, value in secrets.items():
        if name != PASSWORD:
            detail = f"is not a secret of a relation; the only one is {PASSWORD}"
            raise _refused("no_secrets_here", detail, f"/secrets/{name}")
        if not value or not value.isprintable():
            detail = "is empty, or has characters that cannot be printed; send {} as `secrets` to forget a password"
            raise _refused("bad_secret", detail, f"/secrets/{name}")


def with_secrets(entry: Mapping[str, Any], secrets: Mapping[str, str] | None) -> dict[str, Any]:
    """The entry as it is opened."""
    if not secrets:
        return dict(entry)
    if entry["source"] == "sql":
        return {**entry, "url": Database(entry["url"]).with_password(secrets[PASSWORD])}
    return {**entry, PASSWORD: secrets[PASSWORD]}


def check_same_server(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Secrets are for the server and the user that they were given for: whoever changes these must know them.

    Raises:
        Problem: it is another one.
    """
    if not is_same_server(before, after):
        detail = "is of another server or user than the secrets are for; send `secrets` again, or {} to forget them"
        raise _refused("secrets_of_other_servers", detail, "/spec/url" if after.get("source") == "sql" else "/spec")


def is_same_server(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether two entries log in at one place in one way; of that server, they may read any database and table."""
    login = _login(before)
    return login is not None and login == _login(after)


def _login(entry: Mapping[str, Any]) -> object:
    """Where and as whom one logs in; None where nobody does."""
    match entry.get("source"):
        case "sql":
            try:
                database = Database(entry["url"])
            except (KeyError, InputError):
                return None
            return None if database.file is not None else database.login
        case "cassandra":
            user = entry.get("username")
            return None if user is None else (sorted(map(str, entry["hosts"])), entry.get("port"), user)
    return None


def _refused(code: str, detail: str, pointer: str) -> Problem:
    said = detail if pointer == "/secrets" else f"{pointer[1:].replace('/', '.')} {detail}"
    return Problem(f"invalid.{code}", said, errors=[Place(pointer=pointer, detail=detail)])
