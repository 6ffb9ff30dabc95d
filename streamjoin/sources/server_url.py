"""What a URL of a PostgreSQL server says, read so strictly that nobody can read another server in it.

Python's `urlsplit` and libpq part from each other over an @ or a ? at an odd place: one saw a host that was allowed,
and the other went elsewhere. So whatever they could read in two ways is refused, and libpq is given a URL made anew of
the parts that were looked at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from typing import NoReturn
from urllib.parse import quote, unquote

from streamjoin.errors import InputError

_SERVER = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::([0-9]*))?")
_UNQUOTED = re.compile(r"[\s@/?#\[\]]")
_UNQUOTED_OF_VALUE = re.compile(r"[\s@?#=&]")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_NAME = re.compile(r"[a-z_]+")
_ELSEWHERE = frozenset({"host", "hostaddr", "port", "service", "servicefile"})
"""Settings that lead to another server than the one before the path."""


@dataclass(frozen=True, slots=True, repr=False)
class Server:
    """What is between the marks of a URL, and no longer quoted.

    Args:
        host: a name or an address, never a list, a path or empty; one of IPv6 is without its brackets.
        settings: of libpq, in the order in which they are written.
    """

    host: str
    port: str = ""
    user: str = ""
    password: str = ""
    database: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)

    def url(self, more: Mapping[str, object]) -> str:
        """For libpq, with more settings where the URL had none of their name."""
        user = quote(self.user, safe="") + (f":{quote(self.password, safe='')}" if self.password else "")
        host = f"[{self.host}]" if ":" in self.host else self.host
        settings = {**self.settings, **{name: more[name] for name in more if name not in self.settings}}
        return "".join([
            "postgresql://", user and f"{user}@", host, self.port and f":{self.port}", "/",
            quote(self.database, safe=""), "?",
            "&".join(f"{name}={quote(str(value), safe='')}" for name, value in settings.items()),
        ])  # fmt: skip


def read(url: str) -> Server:
    """The parts of a URL with any scheme.

    Raises:
        InputError: something in it may be read in two ways, or is no text of printable characters.
    """
    before, _, behind = url.partition(":")[2].partition("?")
    place, _, database = before.removeprefix("//").partition("/")
    login, _, server = place.rpartition("@")
    if "@" in login:
        _refuse("has more than one @, so it is unclear which host is meant; write %40 for each but the one before it")
    found = _SERVER.fullmatch(server) if before.startswith("//") else None
    if found is None or (found[1] and not _is_ipv6(found[1])):
        _refuse("names no one server; write postgresql://host/db")
    user, _, password = login.partition(":")
    return Server(
        found[1] or found[2],
        found[3] or "",
        _decoded("user", user, _UNQUOTED),
        _decoded("password", password, _UNQUOTED),
        _decoded("database", database, _UNQUOTED),
        _settings(behind),
    )


def _settings(text: str) -> dict[str, str]:
    """What stands behind the question mark; libpq parts it at & alone."""
    found: dict[str, str] = {}
    for part in text.split("&") if text else ():
        name, equals, value = part.partition("=")
        if not equals or not _NAME.fullmatch(name):
            _refuse("has a setting that is no name=value of libpq's; write such as sslmode=require, and & between two")
        if name in _ELSEWHERE:
            _refuse(f"may not set {name} here; write the server before the path, as in postgresql://host:5432/db")
        if name in found:
            _refuse(f"sets {name[:50]} twice; leave one out")
        found[name] = _decoded(f"setting {name[:50]}", value, _UNQUOTED_OF_VALUE)
    return found


def _decoded(part: str, text: str, unquoted: re.Pattern[str]) -> str:
    if text.isprintable() and (odd := unquoted.search(text)):
        _refuse(f"has {odd[0]!r} in its {part}; write {quote(odd[0], safe='')} where that is meant")
    try:
        found = None if _BAD_ESCAPE.search(text) else unquote(text, errors="strict")
    except UnicodeDecodeError:
        found = None
    if found is None:
        _refuse(f"has a % in its {part} that begins no character of UTF-8; write %25 for the sign itself")
    if not found.isprintable():
        _refuse(f"has a character in its {part} that nobody types, such as the end of a line; leave it out")
    return found


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True


def _refuse(says: str) -> NoReturn:
    raise InputError(says, field="url")
