"""Reads the URL of a PostgreSQL server so strictly that it names one server only.

Python's `urlsplit` and libpq disagree about an @ or a ? in an odd place: the one saw an allowed host while the other
connected elsewhere. So whatever can be read in two ways is refused, and libpq gets a URL built from the checked parts.
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
"""Settings that would override the server before the path."""


@dataclass(frozen=True, slots=True, repr=False)
class Server:
    """The parts of a URL, unquoted.

    Args:
        host: a name or an address, never a list, a path or empty; an IPv6 address has no brackets.
        settings: libpq's, in the order of the URL.
    """

    host: str
    port: str = ""
    user: str = ""
    password: str = ""
    database: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)

    def url(self, more: Mapping[str, object]) -> str:
        """The URL for libpq. `more` are settings that hold unless the URL has its own."""
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
        InputError: a part can be read in two ways, or has characters that cannot be printed.
    """
    before, _, behind = url.partition(":")[2].partition("?")
    place, _, database = before.removeprefix("//").partition("/")
    login, _, server = place.rpartition("@")
    if "@" in login:
        _refuse("has more than one @, so it is unclear which host is meant; write %40 for each but the one before it")
    found = _SERVER.fullmatch(server) if before.startswith("//") else None
    if found is None or (found[1] and not _is_ipv6(found[1])):
        _refuse("does not name one server; write postgresql://host/db")
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
    """The settings after the question mark; libpq splits them at & only."""
    found: dict[str, str] = {}
    for part in text.split("&") if text else ():
        name, equals, value = part.partition("=")
        if not equals or not _NAME.fullmatch(name):
            _refuse("has a setting that is not name=value; write for example sslmode=require, with & between two")
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
        _refuse(f"has a % in its {part} that does not begin a UTF-8 character; write %25 for the sign itself")
    if not found.isprintable():
        _refuse(f"has a character in its {part} that cannot be printed, such as the end of a line; leave it out")
    return found


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True


def _refuse(says: str) -> NoReturn:
    raise InputError(says, field="url")
