"""Where a database is: a URL that is never shown with its password, and that no pickled copy has."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from streamjoin.errors import InputError
from streamjoin.sources.server_url import Server, read

SCHEMES = ("postgresql", "sqlite")
CONNECT_S = 10
"""A server that does not answer is given up after so long."""
_SAME = {"postgres": "postgresql"}
_HIDDEN = "***"
_ODD = re.compile(r"[\x00-\x1f\x7f#]")
_NOWHERE: Final = "/dev/null/none"
"""No file can be there; without a path libpq would look into the home folder."""
_REQUIRE_AUTH: Final = "none,password,md5,scram-sha-256"
"""Without Kerberos, whose tickets belong to the user of this process."""
_is_url_all = False


def log_in_by_urls_alone() -> None:
    """From now on, in this process: what a URL does not say about a login or a server, libpq gets from nowhere else.

    By itself libpq takes passwords, client certificates, a user and even another server from its environment and home
    folder. That is right for people who run their own join files, and wrong where they ask somebody else's process.
    """
    global _is_url_all
    _is_url_all = True


@dataclass(frozen=True, slots=True, repr=False)
class Database:
    """A PostgreSQL server's database, or an SQLite file.

    Args:
        url: as people write it, such as `postgresql://me:secret@host/db` or `sqlite:///data/rates.db`.
    """

    url: str

    def __post_init__(self) -> None:
        if odd := _ODD.search(self.url):  # libpq reads on after a #, where nothing was checked
            may_be = odd[0] == "#" or self.url.startswith("sqlite:")
            way_out = f"write %{ord(odd[0]):02X} where that is meant" if may_be else "leave it out"
            raise InputError(f"has {odd[0]!r} in it; {way_out}", field="url")
        try:
            found = urlsplit(self.url)
            host, _ = found.hostname, found.port
        except ValueError:
            says = "is not a URL, such as postgresql://host/db or sqlite:///data/rates.db"
            raise InputError(says, field="url") from None
        if self.scheme not in SCHEMES:
            raise InputError(
                "is not of a database that can be read; it begins with postgresql:// or sqlite:///", field="url"
            )
        if self.scheme == "sqlite" and (host or not found.path.strip("/") or found.query):
            raise InputError("names no file; write sqlite:///data/rates.db, or sqlite:////srv/rates.db from the root",
                             field="url")  # fmt: skip
        if self.scheme == "postgresql":
            read(self.url)

    @property
    def _parts(self) -> SplitResult:
        return urlsplit(self.url)

    @property
    def scheme(self) -> str:
        """One of `SCHEMES`, or what is written in its place."""
        written = self._parts.scheme.partition("+")[0]  # as SQLAlchemy has a driver there
        return _SAME.get(written, written)

    @property
    def file(self) -> str | None:
        """The path of an SQLite file, as written; None for a server."""
        return unquote(self._parts.path[1:]) if self.scheme == "sqlite" else None

    @property
    def server(self) -> Server | None:
        """The server that the URL names, as libpq gets it; None for a file."""
        return read(self.url) if self.scheme == "postgresql" else None

    @property
    def host(self) -> str:
        """The server's name or address; empty for a file."""
        return server.host.lower() if (server := self.server) else ""

    @property
    def secrets(self) -> list[str]:
        """Everything that must never be shown: the password as written, decoded and sent, and values of `password=`."""
        written = [self._parts.password or ""]
        written += [
            value for name, _, value in (part.partition("=") for part in self._parts.query.split("&"))
            if name.lower() in ("password", "sslpassword")
        ]  # fmt: skip
        forms = {one for text in written for one in (text, unquote(text), quote(unquote(text), safe="")) if one}
        return sorted(forms, key=len, reverse=True)

    @property
    def settings(self) -> list[str]:
        """The names of the settings after the question mark."""
        return list(server.settings) if (server := self.server) else []

    @property
    def shown(self) -> str:
        """The URL for people."""
        if self.file is not None:  # without secrets, and `urlunsplit` takes slashes away
            return self.url
        parts, secrets = self._parts, self.secrets
        place = parts.netloc
        if parts.password is not None:
            user, _, host = place.rpartition("@")
            place = f"{user.partition(':')[0]}:{_HIDDEN}@{host}"
        query = parts.query
        for secret in secrets:
            query = query.replace(f"={secret}", f"={_HIDDEN}")
        return urlunsplit(parts._replace(netloc=place, query=query))

    @property
    def login(self) -> tuple[str, str]:
        """Where and as whom one logs in, and how, without the password."""
        user, _, host = self._parts.netloc.rpartition("@")
        return f"{self.scheme}://{user.partition(':')[0]}@{host}", self._parts.query

    def with_password(self, password: str) -> str:
        """The URL with this password in it."""
        user, _, host = self._parts.netloc.rpartition("@")
        place = f"{user.partition(':')[0]}:{quote(password, safe='')}@{host}"
        return urlunsplit(self._parts._replace(netloc=place))

    def without_password(self) -> tuple[str, str | None]:
        """The URL without what stands before the host as a password, and this."""
        parts = self._parts
        if not parts.password:
            return self.url, None
        user, _, host = parts.netloc.rpartition("@")
        return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}@{host}")), unquote(parts.password)

    @property
    def for_libpq(self) -> str:
        """A URL made anew of what was looked at, with limits to how long libpq waits; that of a file stays."""
        limits: dict[str, object] = {"connect_timeout": CONNECT_S, "tcp_user_timeout": 30_000, "keepalives_idle": 15}
        if (server := self.server) is None:
            return self.url
        return server.url(limits | _nothing_else(server) if _is_url_all else limits)

    def without_secrets(self, text: str) -> str:
        """A text of a driver's, which may have the URL in it."""
        text = text.replace(self.url, self.shown).replace(self.for_libpq, self.shown)
        for secret in self.secrets:
            text = text.replace(secret, _HIDDEN)
        return text

    def __str__(self) -> str:
        return self.shown

    def __repr__(self) -> str:
        return f"Database({self.shown})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Database, (self.shown,)


def _nothing_else(server: Server) -> dict[str, str]:
    """Settings that keep libpq from looking elsewhere for what logs in, and for where to.

    How TLS protects a connection, and which servers' certificates are believed, is still for the environment and home
    folder to say: that lets nobody in.
    """
    given = {"port": server.port, "user": server.user, "password": server.password, "dbname": server.database}
    defaults = {"port": "5432", "user": _own_name(), "password": "", "dbname": ""}
    return {
        **{name: value for name, value in defaults.items() if not given[name]},
        "hostaddr": "", "passfile": _NOWHERE, "options": "", "sslcertmode": "disable", "gssencmode": "disable",
        "require_auth": os.environ.get("PGREQUIREAUTH") or _REQUIRE_AUTH,
    }  # fmt: skip


def _own_name() -> str:
    """Of the user of this process, as libpq takes it; empty where that has no name."""
    import pwd  # which Windows lacks

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return ""
